//! The optimiser of a training: which parameters decay.

use itm_kernels::{AdamForm, AdamOptions, DecayRule};

use crate::config::TagsDcConfig;

/// Names of the parameters without weight decay: biases, and the factors of all norms except the norms of a region's features and of its
/// box. The released program exempts names with `bias` or `LayerNorm.weight`, and calls these two norms `img_layer_norm` and
/// `pos_layer_norm`.
const FREE: &[&str] = &[
    "bias",
    "beta",
    "bert.norm.gamma",
    "norm_1.gamma",
    "norm_2.gamma",
    "regions.norm.gamma",
    "cls.norm.gamma",
    "correction.norm.gamma",
];

pub(super) fn options(config: &TagsDcConfig) -> AdamOptions {
    let clip = config.train.grad_clip;
    AdamOptions {
        betas: [0.9, 0.98],
        epsilon: 1e-6,
        weight_decay: config.train.weight_decay,
        decayed: DecayRule::Unless(FREE),
        form: AdamForm::Bert,
        clip: (clip > 0.0).then_some(clip),
    }
}
