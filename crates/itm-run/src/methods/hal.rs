//! HAL and its rivals for the runner: their inputs, their memory, and how their models are built.

use hubness::training::{Hal, HalConfig, Objective, TextKind, TrainConfig};
use itm_core::Result;
use itm_core::learn::Method;
use itm_core::scored::Similarity;
use itm_core::start::TextForm;
use itm_core::text::Marks;

use super::side::Side;
use super::{Captions, Given, Kind, Recipe, StartAsked, start_of};
use crate::plan::{Bytes, Sizes};
use crate::train::{Course, LastBatch};

pub(super) const KIND: Kind = Kind {
    name: "hal",
    about_hubs: true,
    recipe: |config, row| Ok(Box::new(config.row::<HalConfig>(row)?)),
    measures: |_| vec![],
    judge: |_, _, _| Ok(None),
};

impl Recipe for HalConfig {
    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, batch, .. } = self.train;
        Course::of_epochs(epochs, batch, LastBatch::Kept, start_of(self.start()))
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn memory(&self, sizes: &Sizes) -> Result<Bytes> {
        Ok(memory(self, sizes))
    }

    fn captions(&self) -> Result<Captions> {
        Ok(match self.model.text {
            TextKind::Gru => Captions::Words(Marks::Off),
            TextKind::Bag => Captions::Stems,
        })
    }

    fn start(&self) -> Option<StartAsked> {
        let options = self.model.closed_form()?.clone();
        let form = TextForm::Stems(self.model.bag_pooling);
        Some(StartAsked { options, width: self.model.embed_dim, form })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, inputs, start, device, .. } = *given;
        let seed = self.train.seed;
        let model = Hal::new(self, sizes.features, sizes.vocabulary, device, seed)?;
        let steps = sizes.captions.div_ceil(self.train.batch);
        let model = model.with_epochs_of(steps).with_inputs(inputs)?;
        Ok(Box::new(match start.filter(|_| self.model.closed_form().is_some()) {
            Some(start) => model.with_start(start)?,
            None => model,
        }))
    }
}

/// Bytes of a row's training, without its data.
///
/// ```text
/// bank        = 8·n·d + 8·n + 16·b·n       n = mb_rate · captions, both sides; scores of a batch against the bank, twice
/// activations = b · (image + text)
///             + 4 · 16·b²                  scores, factors, hinges both ways and their gradients
///             + 4 · (3·b² + 4·b·d)         order similarity on a CPU: scores, slopes; both sides and their gradients
/// checkpoint  = 2 · the larger file        encoders; moments and bank
/// ```
fn memory(config: &HalConfig, sizes: &Sizes) -> Bytes {
    let [d, b] = [config.model.embed_dim, config.train.batch].map(|x| x as u64);
    let image = Side::of_features(sizes, d, config.model.residual.as_ref());
    let text = match config.model.text {
        TextKind::Gru => Side::of_words(sizes, config.model.word_dim as u64, d),
        TextKind::Bag => Side::of_stems(sizes, d),
    };
    let weights = Bytes::of_weights(image.weights + text.weights);
    let n = match config.loss.objective {
        Objective::HalAaaiBank => (config.bank.mb_rate * sizes.captions as f64).ceil() as u64,
        _ => 0,
    };
    let bank = 8 * n * d + 8 * n;
    let order = match config.model.similarity {
        Similarity::Order => 4 * (3 * b * b + 4 * b * d),
        Similarity::Cosine => 0,
    };
    let items = b * (image.item + text.item);
    Bytes {
        banks: bank,
        activations: items + 4 * 16 * b * b + order + 16 * b * n,
        checkpoint: 2 * weights.parameters.max(weights.optimiser + bank),
        ..weights
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Module;
    use burn::tensor::Device;

    use super::*;

    const SIZES: Sizes = Sizes {
        features: 200,
        region_width: 0,
        regions: 0,
        vocabulary: 150,
        words: 12,
        captions: 15_000,
        pictures: 0,
    };

    fn config(objective: Objective) -> HalConfig {
        let mut config = HalConfig::new(objective);
        (config.model.embed_dim, config.model.word_dim) = (128, 64);
        config
    }

    /// The formula counts the weights of the built model.
    #[test]
    fn weights_are_the_models() {
        let config = config(Objective::Hal);
        let model = Hal::new(&config, 200, 150, &Device::flex(), 0).unwrap();
        assert_eq!(memory(&config, &SIZES).parameters, 4 * model.encoders().num_params() as u64);
    }

    /// By hand, b = 128, d = 128, e = 64: an image 4 · (1,000 + 512) = 6,048 bytes, a text 4 · 12 · (384 + 2,176) = 122,880;
    /// scores 4 · 16 · 16,384 = 1,048,576. Bank: n = 750, 8 · 750 · 129 = 774,000, scores 1,536,000. Order: 4 · 7 · 16,384.
    #[test]
    fn golden_bank_and_order() {
        let plain = memory(&config(Objective::Hal), &SIZES);
        assert_eq!((plain.banks, plain.momentum), (0, 0));
        assert_eq!(plain.activations, 128 * (6_048 + 122_880) + 1_048_576);
        let bank = memory(&config(Objective::HalAaaiBank), &SIZES);
        assert_eq!(bank.banks, 774_000);
        assert_eq!(bank.activations, plain.activations + 1_536_000);
        assert_eq!(bank.checkpoint, plain.checkpoint + 2 * 774_000);
        let mut order = config(Objective::Hal);
        order.model.similarity = Similarity::Order;
        assert_eq!(memory(&order, &SIZES).activations, plain.activations + 458_752);
    }
}
