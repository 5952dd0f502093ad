//! The encoders: a map of regions, and a bidirectional recurrent unit over words or a table of word vectors; or the patches and word pieces of two
//! published towers.

mod regions;
mod words;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_core::data::WordVectors;
use itm_core::encoders::{BiGruText, InputDropout, TokenBatch};
use itm_core::learn::{Images, check_texts, precision_of, size_within};
use itm_core::start::Start;
use itm_core::towers::{
    CaptionInput, Encoders, ImageEncoder, ModelConfig, TextEncoder, TowerDropout,
};
use itm_core::{Error, Result};
use itm_kernels::dropout::Mask;
use itm_kernels::{Linear, Noise, masked_mean, normalize_rows, random};

use crate::config::{NaafModelConfig, NaafTrainConfig, TextKind};
pub use regions::RegionMap;
pub use words::WordTable;

/// Both sides of the model.
#[derive(Module, Debug)]
pub struct NaafEncoders {
    /// Regions to the joint space.
    pub image: RegionEncoder,
    /// Words to the joint space.
    pub text: WordEncoder,
}

/// Regions to the joint space.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // only one value exists
pub enum RegionEncoder {
    /// A map of given regions.
    Map(RegionMap),
    /// An encoder of pictures, whose patches are the regions.
    Patches(ImageEncoder),
}

/// Words to the joint space.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // only one value exists
pub enum WordEncoder {
    /// A bidirectional recurrent unit.
    BiGru(BiGru),
    /// A table of word vectors.
    Words(WordTable),
    /// An encoder of word pieces, which are the words.
    Pieces(TextEncoder),
}

/// A bidirectional recurrent unit over word vectors, which may be frozen.
#[derive(Module, Debug)]
pub struct BiGru {
    /// Word vectors and recurrent units.
    pub words: BiGruText,
    /// Whether the vectors are frozen.
    pub frozen: bool,
}

impl BiGru {
    fn states(&self, captions: &TokenBatch, dropout: InputDropout) -> Tensor<3> {
        let vectors = self.words.vectors(captions);
        let vectors = if self.frozen { vectors.detach() } else { vectors };
        self.words.states(words::dropped(vectors, dropout), captions)
    }
}

/// Rows of a batch, padded: `[b, l, d]`, and how many rows of each item are real.
#[derive(Debug, Clone)]
pub struct PaddedRows {
    /// `[b, l, d]`
    pub rows: Tensor<3>,
    /// `[b]`
    pub counts: Vec<usize>,
}

impl PaddedRows {
    /// Rows at unit length.
    pub(crate) fn unit(self) -> Self {
        let [b, l, d] = self.rows.dims();
        Self { rows: normalize_rows(self.rows.reshape([b * l, d])).reshape([b, l, d]), ..self }
    }

    /// The mean row of each item at unit length, `[b, d]`.
    pub(crate) fn means(self) -> Tensor<2> {
        normalize_rows(masked_mean(self.rows, &self.counts))
    }
}

impl NaafEncoders {
    /// Refuses captions that the text encoder cannot read.
    ///
    /// # Errors
    /// If a caption has no word, or a word's number is outside the vocabulary; and as [`TextEncoder::check`].
    pub(crate) fn check_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Result<()> {
        check_texts(texts, None)?;
        let known = match &self.text {
            WordEncoder::Pieces(encoder) => return encoder.check(texts),
            WordEncoder::BiGru(unit) => unit.words.words.dims()[0],
            WordEncoder::Words(table) => table.table.dims()[0],
        };
        let large = |text: &C| text.as_ref().iter().copied().find(|&word| word as usize >= known);
        let mut all = texts.iter().map(large).enumerate();
        let Some((row, Some(word))) = all.find(|(_, word)| word.is_some()) else { return Ok(()) };
        let place = format!("caption {row} of the batch");
        Err(Error::invalid(place, format!("numbers of words below {known}"), word))
    }

    /// Random weights: a function of the seed.
    ///
    /// `region_dim` is the width of a region. `vocabulary` counts words: their numbers are below it.
    ///
    /// # Errors
    /// If the config holds a value that no model can have, or a size is 0.
    pub fn new(
        config: &NaafModelConfig,
        region_dim: usize,
        vocabulary: usize,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        config.check()?;
        size_within("region_dim, the width of a region", region_dim)?;
        size_within("vocabulary", vocabulary)?;
        let (d, part) = (config.embed_dim, |part| random::derive(seed, part));
        let text = match config.text {
            TextKind::Words => WordEncoder::Words(WordTable::new(vocabulary, d, part(1), device)),
            TextKind::Bigru => {
                let words = BiGruText::new([vocabulary, config.word_dim, d], part(1), device);
                WordEncoder::BiGru(BiGru { words, frozen: config.freeze_embedding })
            }
        };
        let image = RegionMap::new(config.region_map, [region_dim, d], part(0), device);
        Ok(Self { image: RegionEncoder::Map(image), text })
    }

    /// These towers, with random or published weights, of which the configured parts learn.
    ///
    /// # Errors
    /// If the device cannot compute in `train.precision`; as [`Encoders::open`] and [`Encoders::with_learning`].
    pub(crate) fn of_towers(
        pair: &ModelConfig,
        train: &NaafTrainConfig,
        vocabulary: usize,
        device: &Device,
    ) -> Result<Self> {
        let NaafTrainConfig { seed, precision, .. } = *train;
        let (towers, _) = Encoders::open(pair, 0, vocabulary, seed, device)?;
        precision_of("train.precision", precision, device)?;
        let towers = towers.with_precision(precision);
        let Encoders { image, text, .. } = towers.with_learning(&train.parts, pair, seed)?;
        Ok(Self { image: RegionEncoder::Patches(image), text: WordEncoder::Pieces(text) })
    }

    /// The towers, if the encoders are towers.
    pub(crate) fn towers(&self) -> Option<Encoders> {
        match (&self.image, &self.text) {
            (RegionEncoder::Patches(image), WordEncoder::Pieces(text)) => {
                Some(Encoders { image: image.clone(), text: text.clone(), contrast: None })
            }
            _ => None,
        }
    }

    /// The encoders with these maps as weights: the start of `model.start = "cca"`.
    ///
    /// # Errors
    /// If the encoder of captions is not a table of words, or the maps have another shape or a value that is not finite.
    pub fn with_start(self, start: &Start) -> Result<Self> {
        let WordEncoder::Words(words) = self.text else {
            return Err(Error::invalid("a start", "a table of words", "another encoder"));
        };
        let RegionEncoder::Map(image) = self.image else {
            return Err(Error::invalid("a start", "a map of regions", "an encoder of pictures"));
        };
        let text = WordEncoder::Words(words.with_map(&start.text)?);
        Ok(Self { image: RegionEncoder::Map(image.with_map(&start.image)?), text })
    }

    /// The encoders with given vectors, such as GloVe's, for the words that have one: the start of `model.word_vectors = "given"`.
    ///
    /// # Errors
    /// If the encoder of captions is not a recurrent unit, or the vectors are of another width or vocabulary, or hold a value that is not
    /// finite.
    pub fn with_vectors(self, vectors: &WordVectors) -> Result<Self> {
        let WordEncoder::BiGru(BiGru { words, frozen }) = self.text else {
            return Err(Error::invalid("word vectors", "a recurrent unit", "another encoder"));
        };
        let words = words.with_vectors(vectors)?;
        Ok(Self { text: WordEncoder::BiGru(BiGru { words, frozen }), ..self })
    }

    /// Refuses encoders of another kind or width than a config says.
    pub(crate) fn check(&self, config: &NaafModelConfig) -> Result<()> {
        let unit = |vectors: usize, frozen: bool| {
            format!("a recurrent unit over vectors of {vectors}, freeze_embedding {frozen},")
        };
        let image = match &self.image {
            RegionEncoder::Patches(_) => "patches",
            RegionEncoder::Map(map) if map.gain.is_some() => "WeightNorm",
            RegionEncoder::Map(_) => "Xavier",
        };
        let text = match &self.text {
            WordEncoder::Pieces(_) => "word pieces".to_owned(),
            WordEncoder::Words(_) => "words".to_owned(),
            WordEncoder::BiGru(BiGru { words, frozen }) => unit(words.words.dims()[1], *frozen),
        };
        let [v, u] = self.widths();
        let got = format!("{image} to {v}, {text} to {u}");
        let (d, map) = (config.embed_dim, config.region_map);
        let want = match (&config.towers, config.text) {
            (Some(_), _) => format!("patches to {d}, word pieces to {d}"),
            (None, TextKind::Words) => format!("{map:?} to {d}, words to {d}"),
            (None, TextKind::Bigru) => {
                let unit = unit(config.word_dim, config.freeze_embedding);
                format!("{map:?} to {d}, {unit} to {d}")
            }
        };
        Error::unless(got == want, "encoders", &want, &got)
    }

    /// Widths of a row of an image and of a word; 0 for encoders without patches or word pieces.
    fn widths(&self) -> [usize; 2] {
        let out = |map: &Option<Linear>, d| map.as_ref().map_or(d, |map| map.weight.dims()[1]);
        let image = match &self.image {
            RegionEncoder::Map(map) => map.dims()[1],
            RegionEncoder::Patches(ImageEncoder::Features(_)) => 0,
            RegionEncoder::Patches(ImageEncoder::Vit(vit)) => {
                out(&vit.projection, vit.vit.shape.width)
            }
            RegionEncoder::Patches(ImageEncoder::Clip(clip)) => {
                let (map, d) = (&clip.tower.projection, clip.tower.vit.shape.width);
                map.as_ref().map_or(d, |map| map.dims()[1])
            }
        };
        let text = match &self.text {
            WordEncoder::BiGru(unit) => unit.words.gru.ahead.w_hh.dims()[0],
            WordEncoder::Words(words) => words.table.dims()[1],
            WordEncoder::Pieces(TextEncoder::Bert(b)) => out(&b.projection, b.bert.shape.width),
            WordEncoder::Pieces(TextEncoder::Clip(tower)) => tower.projection.dims()[1],
            WordEncoder::Pieces(_) => 0,
        };
        [image, text]
    }

    /// Unit rows of regions or patches, padded with meaningless rows. Dropout has one mask per image.
    ///
    /// # Panics
    /// If the images are of another kind than the encoder's, there are not as many values as the counts say, or an image has no region.
    pub fn regions(&self, batch: Images, dropout: InputDropout) -> PaddedRows {
        self.mapped(batch, dropout).unit()
    }

    /// Mapped regions, not of unit length.
    pub(crate) fn mapped(&self, batch: Images, dropout: InputDropout) -> PaddedRows {
        let (map, counts, values) = match (&self.image, batch) {
            (RegionEncoder::Patches(encoder), images) => {
                let rows = encoder.tokens(images, TowerDropout::inside(dropout));
                let [b, n, _] = rows.dims();
                return PaddedRows { rows, counts: vec![n; b] };
            }
            (RegionEncoder::Map(map), Images::Regions { counts, values, .. }) => {
                (map, counts, values)
            }
            (RegionEncoder::Map(_), images) => panic!("{} for a map of regions", images.kind()),
        };
        let [width, _] = map.dims();
        let all = counts.iter().try_fold(0usize, |n, &count| n.checked_add(count));
        let all = all.and_then(|rows| rows.checked_mul(width));
        assert_eq!(Some(values.len()), all, "regions of width {width}, as many as the counts say");
        assert!(counts.iter().all(|&count| count > 0), "each image has at least one region");
        let mut values = values.to_vec();
        if let Noise::Seeded(seed) = dropout.noise
            && dropout.share > 0.0
        {
            let mut rows = values.chunks_exact_mut(width);
            for (image, &count) in counts.iter().enumerate() {
                let seed = random::derive(seed, image as u64);
                let mask = Mask::new(dropout.share, seed).factors(width);
                for row in rows.by_ref().take(count) {
                    row.iter_mut().zip(&mask).for_each(|(x, factor)| *x *= factor);
                }
            }
        }
        PaddedRows { rows: regions::padded(map.mapped(values), counts), counts: counts.to_vec() }
    }

    /// Unit rows of words, padded with meaningless rows.
    ///
    /// # Panics
    /// If there is no caption, a caption has no word, or a word's number is not in the vocabulary.
    pub fn words<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> PaddedRows {
        self.sums(captions, dropout).unit()
    }

    /// Number of the words of each caption.
    pub(crate) fn lengths<C: AsRef<[u32]>>(&self, captions: &[C]) -> Vec<usize> {
        let length = |caption: &C| match &self.text {
            WordEncoder::Pieces(encoder) => encoder.unpadded(caption.as_ref()),
            WordEncoder::BiGru(_) | WordEncoder::Words(_) => caption.as_ref().len(),
        };
        captions.iter().map(length).collect()
    }

    /// Rows of words, not of unit length.
    pub(crate) fn sums<C: AsRef<[u32]>>(
        &self,
        captions: &[C],
        dropout: InputDropout,
    ) -> PaddedRows {
        let batch = TokenBatch::new(captions);
        let rows = match &self.text {
            WordEncoder::BiGru(bigru) => bigru.states(&batch, dropout),
            WordEncoder::Words(words) => words.sums(&batch, dropout),
            WordEncoder::Pieces(encoder) => {
                encoder.tokens(&CaptionInput::Ordered(batch), TowerDropout::inside(dropout))
            }
        };
        PaddedRows { rows, counts: self.lengths(captions) }
    }
}

#[cfg(test)]
mod tests;
