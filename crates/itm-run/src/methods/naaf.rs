//! NAAF and the models beside it for the runner: their inputs, their memory, and how they are built.

mod word_scores;

use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::{Error, Result};
use naaf::{
    Naaf, NaafConfig, RegionMapKind, Score, TextKind, TrainConfig, VectorsFrom, evaluation_bytes,
};

use self::word_scores::WordScores;
use super::{Given, Kind, Recipe, Sees, StartAsked, start_of};
use crate::plan::{Bytes, Sizes};
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "naaf",
    about_hubs: false,
    recipe: |config, row| Ok(Box::new(config.row::<NaafConfig>(row)?)),
    measures: |_| vec![Box::new(WordScores::default())],
    judge: |_, _, _| Ok(None),
};

impl Recipe for NaafConfig {
    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
        Course::of_epochs(epochs, batch, LastBatch::Kept, start_of(self.start()))
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn sees(&self) -> Sees {
        Sees::Regions
    }

    fn memory(&self, sizes: &Sizes) -> Result<Bytes> {
        Ok(memory(self, sizes))
    }

    fn evaluation(&self, regions: &[usize], words: &[usize]) -> u64 {
        let d = self.model.embed_dim;
        match self.model.score {
            Score::Attention => evaluation_bytes(d, regions, words) as u64,
            Score::Global => 4 * (d * (regions.len() + words.len())) as u64,
        }
    }

    fn start(&self) -> Option<StartAsked> {
        let options = self.model.closed_form()?.clone();
        Some(StartAsked { options, width: self.model.embed_dim, form: TextForm::Words })
    }

    fn needs_vectors(&self) -> bool {
        self.model.word_vectors == VectorsFrom::Given
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, start, vectors, device, .. } = *given;
        let model = Naaf::new(self, sizes.region_width, sizes.vocabulary, device)?;
        let model = model.with_epochs_of(sizes.captions.div_ceil(self.train.batch));
        let model = match start.filter(|_| self.model.closed_form().is_some()) {
            Some(start) => model.with_start(start)?,
            None => model,
        };
        Ok(Box::new(match (self.needs_vectors(), vectors) {
            (true, Some(vectors)) => model.with_vectors(vectors)?,
            (true, None) => return Err(Error::invalid("model.word_vectors", "vectors", "none")),
            (false, _) => model,
        }))
    }
}

/// Bytes of a row's training, without its data.
///
/// ```text
/// region      = 4 · (4x + 4d)              as read, dropped, a tensor, a gradient; product, unit row, gradients
/// word        = 4 · 8d                     of a table: vector, dropped, with its mean, unit row, gradients
///             = 4 · (6e + 2·17d + 6d)      of a recurrent unit: vectors; both directions; mean, unit row, gradients
/// products    = 4 · 4·b²·l·r               values, on the host, gradients of each image, gradient
/// grams       = 4 · (3·b·r² + (3 + b)·b·l²)  values, on the host, gradients
/// activations = b · (r · region + l · word) + products + grams
/// ```
///
/// A global score has neither products nor Gram matrices, but `4 · 4·b²` for its scores.
fn memory(config: &NaafConfig, sizes: &Sizes) -> Bytes {
    let [d, e, b] = [config.model.embed_dim, config.model.word_dim, config.train.batch];
    let [d, e, b, x] = [d, e, b, sizes.region_width].map(|n| n as u64);
    let [r, l, v] = [sizes.regions, sizes.words, sizes.vocabulary].map(|n| n as u64);
    let gain = u64::from(config.model.region_map == RegionMapKind::WeightNorm);
    let (text, word) = match config.model.text {
        TextKind::Words => (v * d + d, 8 * d),
        TextKind::Bigru => (v * e + 2 * (3 * d * (e + d) + 6 * d), 6 * e + 40 * d),
    };
    let scores = match config.model.score {
        Score::Attention => 4 * b * b * l * r + 3 * b * r * r + (3 + b) * b * l * l,
        Score::Global => 4 * b * b,
    };
    let rows = b * (r * (4 * x + 4 * d) + l * word);
    let weights = Bytes::of_weights((x + 1) * d + gain + text);
    Bytes { activations: 4 * (rows + scores), ..weights }
}

#[cfg(test)]
mod tests {
    use burn::module::Module;
    use burn::tensor::Device;
    use naaf::Preset;

    use super::*;

    const SIZES: Sizes = Sizes {
        features: 200,
        region_width: 100,
        regions: 10,
        vocabulary: 150,
        words: 12,
        captions: 15_000,
        pictures: 0,
    };

    fn config(text: TextKind, region_map: RegionMapKind) -> NaafConfig {
        let mut config = Preset::Default.config();
        (config.model.embed_dim, config.model.word_dim) = (64, 32);
        (config.model.text, config.model.region_map) = (text, region_map);
        config
    }

    /// The formula counts the weights of the built model.
    #[test]
    fn weights_are_the_models() {
        for text in [TextKind::Words, TextKind::Bigru] {
            for region_map in [RegionMapKind::Xavier, RegionMapKind::WeightNorm] {
                let config = config(text, region_map);
                let model = Naaf::new(&config, 100, 150, &Device::flex()).unwrap();
                let count = model.encoders().num_params() as u64;
                assert_eq!(memory(&config, &SIZES).parameters, 4 * count, "{text:?}");
            }
        }
    }

    /// By hand, b = 128, d = 64, x = 100, r = 10, l = 12: an image 10 · (400 + 256) = 6,560 values, a caption 12 · 512 = 6,144
    /// with a table and 12 · (192 + 2,560) = 33,024 with a unit; products 4 · 16,384 · 120 = 7,864,320; Gram matrices 3 · 128 · 100 =
    /// 38,400 and 131 · 128 · 144 = 2,414,592. Global scores: 65,536.
    #[test]
    fn golden_activations() {
        let of = |text| memory(&config(text, RegionMapKind::Xavier), &SIZES).activations;
        let pairs = 7_864_320 + 38_400 + 2_414_592;
        assert_eq!(of(TextKind::Words), 4 * (128 * (6_560 + 6_144) + pairs));
        assert_eq!(of(TextKind::Bigru), 4 * (128 * (6_560 + 33_024) + pairs));
        let mut global = config(TextKind::Words, RegionMapKind::Xavier);
        global.model.score = Score::Global;
        assert_eq!(memory(&global, &SIZES).activations, 4 * (128 * (6_560 + 6_144) + 65_536));
    }

    /// Scores by attention hold rows and Gram matrices; global scores hold one row per item.
    #[test]
    fn evaluation_is_counted() {
        let mut config = config(TextKind::Words, RegionMapKind::Xavier);
        let (regions, words) = ([10; 7], [12; 9]);
        let whole = config.evaluation(&regions, &words);
        assert_eq!(whole, evaluation_bytes(64, &regions, &words) as u64);
        config.model.score = Score::Global;
        assert_eq!(config.evaluation(&regions, &words), 4 * 64 * 16);
    }
}
