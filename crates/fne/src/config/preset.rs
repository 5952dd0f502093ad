//! Presets: the paper, the released program, and the released program without its defects.

use itm_core::encoders::{ImagePool, PiecePool};
use itm_core::learn::Schedule;
use itm_core::start::StartFrom;
use itm_core::{Preset, WarmupLoss};
use itm_kernels::Precision;

use super::{
    Density, DropoutAfterValidation, Enqueue, Exclude, FneConfig, Loss, NegativeChoice, Positive,
    SamplerConfig, Tie, TrainConfig,
};
use crate::statistics::{Reset, Variance};
use itm_core::towers::{
    Augmentation, BertConfig, ImageConfig, JointLayer, LearningParts, ModelConfig, Pixels,
    TextConfig, TrainTruncate, VitConfig, Weights,
};

impl SamplerConfig {
    /// Bank, statistics and weights of a preset.
    ///
    /// | | official, default | paper |
    /// |---|---|---|
    /// | bank | 8224, batch enqueued after | 8192, batch enqueued before |
    /// | warm-up | 1 epoch | none |
    /// | λ, τ, P = λ | 0.001, 0.5, easy | 0.01, 1, non-easy |
    /// | margin cut | on | off |
    /// | s⁺ | online × momentum | online × online |
    ///
    /// `official` evaluates densities in f32, the others in log-odds.
    ///
    /// ```
    /// use fne::{Preset, SamplerConfig};
    ///
    /// assert_eq!(SamplerConfig::preset(Preset::Official).lambda, 0.001);
    /// assert_eq!(SamplerConfig::preset(Preset::Paper).lambda, 0.01);
    /// ```
    pub fn preset(preset: Preset) -> Self {
        let official = Self {
            negatives: NegativeChoice::Fne,
            exclude: Exclude::SameImage,
            margin: 0.2,
            bank_size: 8224,
            enqueue: Enqueue::After,
            momentum: 0.995,
            positive: Positive::Momentum,
            warmup_epochs: 1,
            warmup_loss: WarmupLoss::Hardest,
            mask_same_image_everywhere: false,
            prior: 1e-4,
            lambda: 0.001,
            tie: Tie::Easy,
            tau: 0.5,
            alpha: 0.5,
            margin_cut: true,
            min_count: 200,
            density: Density::F32,
            variance: Variance::Official,
            reset: Reset::Epoch,
        };
        match preset {
            Preset::Official => official,
            Preset::Default => Self { density: Density::LogOdds, ..official },
            Preset::Paper => Self {
                density: Density::LogOdds,
                bank_size: 8192,
                enqueue: Enqueue::Before,
                positive: Positive::Online,
                warmup_epochs: 0,
                lambda: 0.01,
                tie: Tie::NonEasy,
                tau: 1.0,
                margin_cut: false,
                ..official
            },
        }
    }
}

impl FneConfig {
    /// All three sections. The model is ViT-B/16 at 384 px and BERT base uncased, with published weights:
    ///
    /// | | official | default | paper |
    /// |---|---|---|---|
    /// | v̄: mean over | class token and patches | the same | patches |
    /// | w̄: mean over | all pieces, padding too | real pieces | real pieces between `[CLS]` and `[SEP]` |
    /// | projection | none, d = 768 | none, d = 768 | linear, d = 1024 |
    /// | captions of training | not cut | cut to 30 pieces | cut to 30 pieces |
    /// | augmentation | wraps around | saturates | saturates |
    pub fn preset(preset: Preset) -> Self {
        let (train, sampler) = (TrainConfig::preset(preset), SamplerConfig::preset(preset));
        Self { model: model(preset), train, sampler }
    }
}

impl TrainConfig {
    /// The section `[train]`. `official` loses its dropout after the first validation of an epoch.
    pub fn preset(preset: Preset) -> Self {
        let dropout_after_validation = match preset {
            Preset::Official => DropoutAfterValidation::Off,
            Preset::Default | Preset::Paper => DropoutAfterValidation::On,
        };
        Self {
            seed: 3407,
            epochs: 25,
            batch: 32,
            micro_batch: 32,
            parts: LearningParts::All,
            loss: Loss::Triplet,
            contrastive: None,
            learning_rate: 2e-5,
            layer_decay: None,
            schedule: Schedule::Steps,
            milestones: vec![5, 15],
            weight_decay: 0.0,
            grad_clip: 2.0,
            dropout: 0.0,
            word_dropout: 0.0,
            dropout_after_validation,
            precision: Precision::F32,
        }
    }
}

fn model(preset: Preset) -> ModelConfig {
    let (image_pool, text_pool, projection, embed_dim) = match preset {
        Preset::Official => (ImagePool::All, PiecePool::All, JointLayer::None, 768),
        Preset::Default => (ImagePool::All, PiecePool::Masked, JointLayer::None, 768),
        Preset::Paper => (ImagePool::Patches, PiecePool::Words, JointLayer::Linear, 1024),
    };
    let (augment, train_truncate) = match preset {
        Preset::Official => (Augmentation::Wraparound, TrainTruncate::Off),
        Preset::Default | Preset::Paper => (Augmentation::Saturating, TrainTruncate::On),
    };
    ModelConfig {
        embed_dim,
        start: StartFrom::Random,
        cca: None,
        image: ImageConfig::Vit(VitConfig {
            weights: Weights::Pretrained("google/vit-base-patch16-384".into()),
            image_size: 384,
            pixels: Pixels::Clip,
            augment,
            pool: image_pool,
            projection,
            gradient_checkpointing: false,
        }),
        text: TextConfig::Bert(BertConfig {
            weights: Weights::Pretrained("google-bert/bert-base-uncased".into()),
            max_length: 30,
            train_truncate,
            pool: text_pool,
            projection,
            gradient_checkpointing: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's values are from the equations and §A.2, the official values from the released program.
    #[test]
    fn samplers_differ_where_paper_and_program_do() {
        let (o, p, d) = (
            SamplerConfig::preset(Preset::Official),
            SamplerConfig::preset(Preset::Paper),
            SamplerConfig::preset(Preset::Default),
        );
        assert_eq!(o, SamplerConfig { density: Density::F32, ..d.clone() });
        assert_eq!((d.density, p.density), (Density::LogOdds, Density::LogOdds));
        assert_eq!((o.bank_size, p.bank_size), (8224, 8192));
        assert_eq!((o.enqueue, p.enqueue), (Enqueue::After, Enqueue::Before));
        assert_eq!((o.warmup_epochs, p.warmup_epochs), (1, 0));
        assert_eq!((o.lambda, p.lambda, o.tau, p.tau), (0.001, 0.01, 0.5, 1.0));
        assert_eq!((o.tie, p.tie), (Tie::Easy, Tie::NonEasy));
        assert_eq!((o.margin_cut, p.margin_cut), (true, false));
        assert_eq!((o.positive, p.positive), (Positive::Momentum, Positive::Online));
        assert_eq!((o.prior, o.alpha, o.margin, o.momentum), (1e-4, 0.5, 0.2, 0.995));
        assert_eq!((o.min_count, o.variance, o.reset), (200, Variance::Official, Reset::Epoch));
        assert_eq!((p.mask_same_image_everywhere, p.negatives), (false, NegativeChoice::Fne));
    }

    #[test]
    fn encoders_and_training_differ_where_paper_and_program_do() {
        let of = |preset: Preset| {
            let FneConfig { model, train, .. } = FneConfig::preset(preset);
            FneConfig::preset(preset).validate().unwrap();
            match (model.image, model.text) {
                (ImageConfig::Vit(vit), TextConfig::Bert(bert)) => {
                    (model.embed_dim, vit, bert, train)
                }
                other => panic!("{other:?}"),
            }
        };
        let (d_o, vit_o, bert_o, train_o) = of(Preset::Official);
        let (d_d, vit_d, bert_d, train_d) = of(Preset::Default);
        let (d_p, vit_p, bert_p, train_p) = of(Preset::Paper);
        assert_eq!((d_o, d_d, d_p), (768, 768, 1024));
        assert_eq!(vit_d, VitConfig { augment: Augmentation::Saturating, ..vit_o.clone() });
        assert_eq!((vit_o.augment, vit_o.pool), (Augmentation::Wraparound, ImagePool::All));
        assert_eq!((vit_o.image_size, vit_o.pixels), (384, Pixels::Clip));
        let patches =
            VitConfig { pool: ImagePool::Patches, projection: JointLayer::Linear, ..vit_d.clone() };
        assert_eq!((vit_p, vit_d.projection), (patches, JointLayer::None));
        assert_eq!((bert_o.pool, bert_o.train_truncate), (PiecePool::All, TrainTruncate::Off));
        assert_eq!((bert_d.pool, bert_d.train_truncate), (PiecePool::Masked, TrainTruncate::On));
        assert_eq!((bert_p.pool, bert_p.train_truncate), (PiecePool::Words, TrainTruncate::On));
        assert_eq!((bert_d.projection, bert_p.projection), (JointLayer::None, JointLayer::Linear));
        assert_eq!(bert_o.max_length, 30);
        assert_eq!(train_o.dropout_after_validation, DropoutAfterValidation::Off);
        assert_eq!(train_d.dropout_after_validation, DropoutAfterValidation::On);
        assert_eq!(train_p, train_d);
        assert_eq!((train_d.epochs, train_d.batch, train_d.grad_clip), (25, 32, 2.0));
        assert_eq!((train_d.learning_rate, &train_d.milestones[..]), (2e-5, &[5, 15][..]));
    }
}
