//! The later (AAAI 2020) loss, from the released code.

mod weights;

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::reweight::without_diagonal;

pub use weights::{BankOptions, BankScores, BankWeights};

/// Constants of the exponents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AaaiOptions {
    /// g: 30 for COCO, 60 for Flickr30K.
    pub local_alpha: f64,
    /// e: 0.3 for COCO, 0.7 for Flickr30K.
    pub local_ep: f64,
}

impl AaaiOptions {
    /// The values of the released code for COCO.
    pub const COCO: Self = Self { local_alpha: 30.0, local_ep: 0.3 };
    /// The values of the released code for Flickr30K.
    pub const FLICKR30K: Self = Self { local_alpha: 60.0, local_ep: 0.7 };
}

/// The AAAI loss within the batch, one term per pair, `[b]`; `.mean()` is the loss.
///
/// ```text
/// E_it = exp( g (O_it − e) ),   O = S with the diagonal 0
/// ℓ_j  = (1/g) log(1 + Σ_i E_ij) + (1/g) log(1 + Σ_t E_jt) − log(1 + max(S_jj, 0))
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | S | `scores` | `[b, b]`, images × texts |
/// | g, e | `options` | |
/// | ℓ | result | `[b]` |
///
/// The diagonal's `exp(−g e)` stays in both sums, as released. No exponential overflows. Where all true pairs have scores of at most 0, and all others
/// scores far below e, the gradient vanishes: from such a random start nothing is learned.
///
/// # Panics
/// If `scores` is not square or is empty, g is not above 0, or a number of the options is not finite.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use hubness::losses::{AaaiOptions, aaai_local};
///
/// let s = Tensor::<2>::from_floats([[0.5]], &Device::flex());
/// let loss = aaai_local(s, &AaaiOptions { local_alpha: 2.0, local_ep: 0.0 }).mean();
/// assert!((loss.into_scalar::<f32>() - (2f32.ln() - 1.5f32.ln())).abs() < 1e-6);
/// # }
/// ```
pub fn aaai_local(scores: Tensor<2>, options: &AaaiOptions) -> Tensor<1> {
    check(&scores, options);
    let own = diagonal(&scores);
    let exponents = (without_diagonal(scores) - options.local_ep) * options.local_alpha;
    terms(exponents, own, options.local_alpha)
}

/// The AAAI loss weighted by a memory bank, one term per pair, `[b]`; `.mean()` is the loss.
///
/// ```text
/// E_it = exp( g W_it (O_it − e) ),   W_ii = 0
/// ℓ_j  = (1/g) log(1 + Σ_i E_ij) + (1/g) log(1 + Σ_t E_jt) − log(1 + max(w_j S_jj, 0))
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | S | `scores` | `[b, b]`, images × texts |
/// | W, w | [`BankWeights`] of `bank` | `[b, b]`, `[b]`; constants |
/// | ℓ | result | `[b]` |
///
/// The diagonal's `exp(0) = 1` stays in both sums, as released.
///
/// # Panics
/// If `scores` is not square or is empty, g is not above 0, or a number of `options` is not finite; with an entry in the bank also if its
/// scores are for another number of pairs, its k is 0, or a number of `of_bank` is not finite.
///
/// # Departures
/// A bank without an entry gives [`aaai_local`]; there the released code would give every weight 0, or fail. Use a bank
/// only with cosine similarity: for order embeddings the released code mistakes images for texts in the bank.
pub fn aaai_bank(
    scores: Tensor<2>,
    bank: &BankScores,
    options: &AaaiOptions,
    of_bank: &BankOptions,
) -> Tensor<1> {
    let b = check(&scores, options);
    if bank.entries == 0 {
        return aaai_local(scores, options);
    }
    let device = scores.device();
    let BankWeights { negatives, positives } =
        BankWeights::new(&itm_core::host(scores.clone()), bank, of_bank);
    let negatives = Tensor::<2>::from_data(TensorData::new(negatives, [b, b]), &device);
    let positives = Tensor::<1>::from_data(TensorData::new(positives, [b]), &device);
    let own = diagonal(&scores) * positives;
    let exponents = (without_diagonal(scores) - options.local_ep) * negatives * options.local_alpha;
    terms(exponents, own, options.local_alpha)
}

/// The size of the batch.
fn check(scores: &Tensor<2>, options: &AaaiOptions) -> usize {
    let [b, n] = scores.dims();
    assert_eq!(b, n, "in-batch scores of shape [{b}, {n}] are not square");
    let AaaiOptions { local_alpha, local_ep } = *options;
    let fine = local_alpha > 0.0 && (local_alpha as f32).is_normal();
    assert!(fine, "local_alpha: expected a finite number above 0, got {local_alpha}");
    assert!((local_ep as f32).is_finite(), "local_ep: expected a finite number, got {local_ep}");
    assert!(b > 0, "a batch has at least one pair");
    b
}

/// ℓ from the exponents z and the weighted positives.
fn terms(exponents: Tensor<2>, own: Tensor<1>, g: f64) -> Tensor<1> {
    let [b, _] = exponents.dims();
    let sums =
        log_one_plus_sum_exp(exponents.clone().transpose()) + log_one_plus_sum_exp(exponents);
    let negative = own.clone().lower_equal_elem(0.0);
    sums.reshape([b]) / g - own.mask_fill(negative, 0.0).log1p()
}

/// `log(1 + Σ_c exp z_c)` of each row, `[b, 1]`, whatever the size of z.
fn log_one_plus_sum_exp(z: Tensor<2>) -> Tensor<2> {
    let dims = z.dims();
    let peak = z.clone().detach().max_dim(1).clamp_min(0.0); // [b, 1]
    let scaled = (z - peak.clone().expand(dims)).exp().sum_dim(1);
    (scaled + (-peak.clone()).exp()).log() + peak
}

fn diagonal(scores: &Tensor<2>) -> Tensor<1> {
    let [b, _] = scores.dims();
    let own = super::select::index(&(0..b).collect::<Vec<_>>(), 1, &scores.device());
    scores.clone().gather(1, own).reshape([b])
}
