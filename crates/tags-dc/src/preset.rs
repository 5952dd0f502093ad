//! Presets: the paper, the released program, and the values used here.

use itm_core::Preset;
use itm_core::start::StartFrom;
use itm_kernels::Precision;

use crate::config::{
    CorrectionTargets, FilterKind, GeneratorKind, ImageAnchors, LossConfig, MaskingConfig,
    ModelConfig, RankingLoss, RetrievalConfig, Sampling, SyntheticConfig, TagsDcConfig,
    TrainConfig,
};
use crate::phrases::Duplicates;
use crate::{Choice, MaskBy, Repeat};

/// The values of UNITER-base on Flickr30K; the hyper-parameters of the paper are in its Table 5.
impl TagsDcConfig {
    /// Phase 1, TAGS: retrieved negatives, masked words, synthetic sentences. The weights are random; `model.published` names a file to
    /// begin with instead.
    ///
    /// | | official | paper | default |
    /// |---|---|---|---|
    /// | which sentences are no negatives | `penalty` | `paper` | `paper` |
    /// | positive beside synthetic sentences | its second token, repeated | the caption | the caption |
    /// | τ; λ of masked words, of synthetic sentences | 2; 0.05, 5e-4 | 1.5; 0.1, 1e-3 | 1.5; 0.1, 1e-3 |
    /// | anchors per update | 128 | 256 | 256 |
    ///
    /// ```
    /// use tags_dc::{Preset, config::TagsDcConfig};
    ///
    /// assert_eq!(TagsDcConfig::tags(Preset::Official).synthetic.temperature, 2.0);
    /// assert_eq!(TagsDcConfig::tags(Preset::Paper).synthetic.temperature, 1.5);
    /// ```
    pub fn tags(preset: Preset) -> Self {
        let mut config = default();
        let Self { masking, synthetic, retrieval, loss, train, .. } = &mut config;
        match preset {
            Preset::Default => {}
            Preset::Paper => {
                retrieval.image_anchors = ImageAnchors::Same;
                (loss.wod_weights, loss.woc_targets) = ([1.0, 1.0], CorrectionTargets::All);
                train.weight_decay = 0.0;
            }
            Preset::Official => {
                masking.duplicates = Duplicates::Kept;
                (synthetic.temperature, synthetic.filter) = (2.0, FilterKind::Penalty);
                synthetic.repeat = Repeat::Last;
                (synthetic.share_forward, synthetic.released_positive) = (false, true);
                (loss.mlm, loss.istm) = (0.05, 5e-4);
                train.batch = 128;
            }
        }
        config
    }

    /// Phase 2, TAGS-DC, which begins with the weights of phase 1. It also discriminates and corrects words.
    pub fn tags_dc(preset: Preset) -> Self {
        let mut config = Self::tags(preset);
        let Self { synthetic, loss, train, .. } = &mut config;
        (loss.wod, loss.woc) = (1e-3, 1e-3);
        (train.learning_rate, train.updates) = (1e-5, Some(1500));
        if preset == Preset::Official {
            (loss.mlm, loss.wod, loss.woc) = (0.1, 5e-4, 5e-4);
            (synthetic.temperature, train.updates, train.batch) = (1.5, Some(5000), 256);
        }
        config
    }
}

fn default() -> TagsDcConfig {
    TagsDcConfig {
        model: ModelConfig {
            embed_dim: 768,
            heads: 12,
            layers: 12,
            positions: 512,
            hidden_dropout: 0.1,
            initializer_range: 0.02,
            start: StartFrom::Random,
            cca: None,
            prior: None,
            published: None,
        },
        captions: None,
        masking: MaskingConfig {
            by: MaskBy::Phrases,
            duplicates: Duplicates::Once,
            maskings: 20,
            rate: 0.15,
        },
        synthetic: SyntheticConfig {
            generator: GeneratorKind::Dynamic,
            sampling: Sampling::Training,
            refills: 20,
            temperature: 1.5,
            forbid_special: false,
            filter: FilterKind::Paper,
            repeat: Repeat::First,
            choice: Choice::Best,
            kept: 31,
            share_forward: true,
            released_positive: false,
        },
        retrieval: RetrievalConfig {
            sampled: 399,
            kept: 31,
            image_anchors: ImageAnchors::Independent,
        },
        loss: LossConfig {
            ranking: RankingLoss::Hinge,
            margin: 0.2,
            itm: 1.0,
            mlm: 0.1,
            istm: 1e-3,
            wod: 0.0,
            wod_weights: [1.0, 0.11],
            woc: 0.0,
            woc_targets: CorrectionTargets::Masked,
        },
        train: TrainConfig {
            seed: 0,
            epochs: 9,
            updates: Some(5000),
            validate_every: Some(1000),
            validate_among: Some(400),
            batch: 256,
            micro_batch: 1,
            learning_rate: 5e-5,
            warmup: 0.1,
            weight_decay: 0.01,
            grad_clip: 2.0,
            precision: Precision::F32,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each preset is a valid configuration, reads back from its file, and differs from the others.
    #[test]
    fn presets_are_valid_and_differ() {
        let both = |preset| [TagsDcConfig::tags(preset), TagsDcConfig::tags_dc(preset)];
        let configs: Vec<_> = Preset::ALL.into_iter().flat_map(both).collect();
        for (k, config) in configs.iter().enumerate() {
            config.check().unwrap();
            let text = serde_json::to_string(config).unwrap();
            assert_eq!(&serde_json::from_str::<TagsDcConfig>(&text).unwrap(), config);
            assert!(!configs[..k].contains(config), "{k}");
        }
    }

    /// The specification's table of the released scripts, UNITER-base on Flickr30K.
    #[test]
    fn the_programs_scripts_differ_from_table_5() {
        let [one, two] =
            [TagsDcConfig::tags(Preset::Official), TagsDcConfig::tags_dc(Preset::Official)];
        assert_eq!((one.synthetic.temperature, two.synthetic.temperature), (2.0, 1.5));
        assert_eq!((one.loss.mlm, one.loss.istm, one.train.batch), (0.05, 5e-4, 8 * 16));
        assert_eq!((two.loss.mlm, two.loss.istm, two.train.batch), (0.1, 5e-4, 8 * 32));
        assert_eq!((two.loss.wod, two.loss.woc, two.train.updates), (5e-4, 5e-4, Some(5000)));
        assert_eq!((one.loss.synthetic(), one.loss.words(), two.loss.words()), (true, false, true));
    }
}
