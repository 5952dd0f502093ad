//! The encoders: a map of regions, and a bidirectional recurrent unit over words or a table of word vectors.

mod regions;
mod words;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_core::Result;
use itm_core::data::WordVectors;
use itm_core::encoders::{BiGruText, BiGruTextShape, InputDropout, TokenBatch};
use itm_core::learn::{check_texts, size_within};
use itm_core::start::Start;
use itm_core::{Error, data::RegionRows};
use itm_kernels::dropout::Mask;
use itm_kernels::{masked_mean, normalize_rows, random};

use crate::config::{NaafModelConfig, RegionMapKind, TextKind};
pub use regions::RegionMap;
pub use words::WordTable;

/// Both sides of the model.
#[derive(Module, Debug)]
pub struct NaafEncoders {
    /// Regions to the joint space.
    pub image: RegionMap,
    /// Words to the joint space.
    pub text: WordEncoder,
}

/// Words to the joint space.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // only one value exists
pub enum WordEncoder {
    /// A bidirectional recurrent unit.
    BiGru(BiGru),
    /// A table of word vectors.
    Words(WordTable),
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
    fn unit(self) -> Self {
        let [b, l, d] = self.rows.dims();
        Self { rows: normalize_rows(self.rows.reshape([b * l, d])).reshape([b, l, d]), ..self }
    }

    /// The mean row of each item at unit length, `[b, d]`.
    fn means(self) -> Tensor<2> {
        normalize_rows(masked_mean(self.rows, &self.counts))
    }
}

/// Regions of a batch, without padding.
#[derive(Debug, Clone, Copy)]
pub struct RegionBatch<'a> {
    /// Number of regions of each image, at least 1.
    pub counts: &'a [usize],
    /// `[Σ counts, x]`
    pub values: &'a [f32],
}

impl<'a> From<&'a RegionRows> for RegionBatch<'a> {
    fn from(rows: &'a RegionRows) -> Self {
        Self { counts: &rows.counts, values: &rows.values }
    }
}

impl NaafEncoders {
    /// Refuses captions that the text encoder cannot read.
    ///
    /// # Errors
    /// If a caption has no word, or a word's number is outside the vocabulary.
    pub(crate) fn check_texts<C: AsRef<[u32]>>(&self, texts: &[C]) -> Result<()> {
        check_texts(texts, None)?;
        let known = match &self.text {
            WordEncoder::BiGru(unit) => unit.words.words.dims()[0],
            WordEncoder::Words(table) => table.table.dims()[0],
        };
        for (row, text) in texts.iter().enumerate() {
            if let Some(word) = text.as_ref().iter().find(|&&word| word as usize >= known) {
                let place = format!("caption {row} of the batch");
                let expected = format!("numbers of words below {known}");
                return Err(Error::invalid(place, expected, word));
            }
        }
        Ok(())
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
                let shape = BiGruTextShape { vocabulary, word_width: config.word_dim, hidden: d };
                let words = BiGruText::new(&shape, part(1), device);
                WordEncoder::BiGru(BiGru { words, frozen: config.freeze_embedding })
            }
        };
        let image = RegionMap::new(config.region_map, [region_dim, d], part(0), device);
        Ok(Self { image, text })
    }

    /// The encoders with these maps as weights: the start of `model.start = "cca"`.
    ///
    /// # Errors
    /// If the encoder of captions is not a table of words, or the maps have another shape or a value that is not finite.
    pub fn with_start(self, start: &Start) -> Result<Self> {
        let WordEncoder::Words(words) = self.text else {
            return Err(Error::invalid("a start", "a table of words", "a recurrent unit"));
        };
        let text = WordEncoder::Words(words.with_map(&start.text)?);
        Ok(Self { image: self.image.with_map(&start.image)?, text })
    }

    /// The encoders with given vectors, such as GloVe's, for the words that have one: the start of `model.word_vectors = "given"`.
    ///
    /// # Errors
    /// If the encoder of captions is not a recurrent unit, or the vectors are of another width or vocabulary, or hold a value that is not
    /// finite.
    pub fn with_vectors(self, vectors: &WordVectors) -> Result<Self> {
        let WordEncoder::BiGru(BiGru { words, frozen }) = self.text else {
            return Err(Error::invalid("word vectors", "a recurrent unit", "a table of words"));
        };
        let words = words.with_vectors(vectors)?;
        Ok(Self { text: WordEncoder::BiGru(BiGru { words, frozen }), ..self })
    }

    /// Refuses encoders of another kind or width than a config says.
    pub(crate) fn check(&self, config: &NaafModelConfig) -> Result<()> {
        let described = |[image, text]: [usize; 2], map: RegionMapKind, of_text, frozen: bool| {
            let TextKind::Bigru = of_text else {
                return format!("{map:?} to {image}, words to {text}");
            };
            format!("{map:?} to {image}, a recurrent unit to {text}, freeze_embedding {frozen}")
        };
        let map = match self.image.gain {
            Some(_) => RegionMapKind::WeightNorm,
            None => RegionMapKind::Xavier,
        };
        let [_, image] = self.image.dims();
        let got = match &self.text {
            WordEncoder::BiGru(BiGru { words, frozen }) => {
                let width = words.gru.ahead.w_hh.dims()[0];
                described([image, width], map, TextKind::Bigru, *frozen)
            }
            WordEncoder::Words(words) => {
                described([image, words.table.dims()[1]], map, TextKind::Words, false)
            }
        };
        let d = config.embed_dim;
        let want = described([d, d], config.region_map, config.text, config.freeze_embedding);
        if got == want { Ok(()) } else { Err(Error::invalid("encoders", want, got)) }
    }

    /// Unit rows of regions, padded with meaningless rows. Dropout has one mask per image.
    ///
    /// # Panics
    /// If there are not as many values as the counts say, or an image has no region.
    pub fn regions(&self, batch: RegionBatch, dropout: InputDropout) -> PaddedRows {
        self.mapped(batch, dropout).unit()
    }

    /// The mean of the mapped regions of each image, at unit length, `[b, d]`.
    ///
    /// # Panics
    /// As [`regions`](Self::regions).
    pub(crate) fn image_means(&self, batch: RegionBatch, dropout: InputDropout) -> Tensor<2> {
        self.mapped(batch, dropout).means()
    }

    fn mapped(&self, batch: RegionBatch, dropout: InputDropout) -> PaddedRows {
        let RegionBatch { counts, values } = batch;
        let [width, _] = self.image.dims();
        let all = counts.iter().try_fold(0usize, |n, &count| n.checked_add(count));
        let all = all.and_then(|rows| rows.checked_mul(width));
        assert_eq!(Some(values.len()), all, "regions of width {width}, as many as the counts say");
        assert!(counts.iter().all(|&count| count > 0), "each image has at least one region");
        let mut values = values.to_vec();
        if let InputDropout::On { share, seed } = dropout
            && share > 0.0
        {
            let mut at = 0;
            for (image, count) in counts.iter().enumerate() {
                let mask = Mask::new(share, random::derive(seed, image as u64)).factors(width);
                for row in values[at * width..(at + count) * width].chunks_exact_mut(width) {
                    row.iter_mut().zip(&mask).for_each(|(x, factor)| *x *= factor);
                }
                at += count;
            }
        }
        PaddedRows {
            rows: regions::padded(self.image.mapped(values), counts),
            counts: counts.to_vec(),
        }
    }

    /// Unit rows of words, padded with meaningless rows.
    ///
    /// # Panics
    /// If there is no caption, a caption has no word, or a word's number is not in the vocabulary.
    pub fn words<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> PaddedRows {
        self.sums(captions, dropout).unit()
    }

    /// The mean of each caption's rows of words before normalisation, at unit length, `[b, d]`.
    ///
    /// # Panics
    /// As [`words`](Self::words).
    pub(crate) fn text_means<C: AsRef<[u32]>>(
        &self,
        captions: &[C],
        dropout: InputDropout,
    ) -> Tensor<2> {
        self.sums(captions, dropout).means()
    }

    fn sums<C: AsRef<[u32]>>(&self, captions: &[C], dropout: InputDropout) -> PaddedRows {
        let captions = TokenBatch::new(captions);
        let rows = match &self.text {
            WordEncoder::BiGru(bigru) => bigru.states(&captions, dropout),
            WordEncoder::Words(words) => words.sums(&captions, dropout),
        };
        PaddedRows { rows, counts: captions.lengths }
    }
}

#[cfg(test)]
mod tests;
