//! The optimiser of a training: which parameters decay, and how fast each learns.

use burn::module::list_param_ids;
use itm_kernels::{AdamForm, AdamOptions, DecayRule};

use crate::config::TagsDcConfig;
use crate::model::Uniter;

/// Names of the parameters without weight decay: a prior, biases, and the factors of all norms except the norms of a region's features and of its
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
    "prior.",
];

/// The rate of a prior, as a share of the rate of the random weights beside it: at their rate it loses in an epoch what CCA gave it.
const PRIOR_RATE: f64 = 0.1;

/// The factor of the rate for each parameter; none without a prior.
pub(super) fn factors(model: &Uniter) -> Vec<f64> {
    let Some(prior) = &model.prior else { return vec![] };
    let (all, own) = (list_param_ids(model).len(), list_param_ids(prior).len());
    [vec![1.0; all - own], vec![PRIOR_RATE; own]].concat() // it is the last field
}

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
