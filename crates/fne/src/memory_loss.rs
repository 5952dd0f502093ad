//! Eq. 15 over a memory, for your own embeddings.

use burn::tensor::Tensor;
use itm_core::{Error, Result, host};
use itm_kernels::matmul;
use itm_kernels::random::derive;

use crate::bank::Bank;
use crate::checks;
use crate::checks::NEVER;
use crate::config::SamplerConfig;
use crate::draw::draw;
use crate::loss::{drawn_hinges, gather, row_dots};
use crate::statistics::Statistics;
use crate::weights::{CandidatePool, same_image, weights};

/// A batch, embedded by the encoders that learn. Row i of both sides is one pair.
#[derive(Debug, Clone)]
pub struct Online<'a> {
    /// v, `[b, d]`, rows of unit length.
    pub images: Tensor<2>,
    /// w, `[b, d]`, rows of unit length.
    pub texts: Tensor<2>,
    /// Image ids, `[b]`: any numbers except [`NEVER`]. Pairs of one image have one id.
    pub ids: &'a [i64],
}

/// How negatives are drawn: by the [`weights()`](crate::weights()) of this rule, with the statistics of this step.
#[derive(Debug, Clone, Copy)]
pub struct Draws<'a> {
    /// Prior, λ, τ, α, the margin γ.
    pub rule: &'a SamplerConfig,
    /// Statistics of matched and mismatched pairs. Update them before the loss, with the scores of this batch.
    pub statistics: &'a Statistics,
    /// A different number in each step. The loss derives one seed for each direction from it.
    pub seed: u64,
}

/// Eq. 15 with negatives from a bank, for any encoders. Each image draws one text from the bank, and each text draws one image.
///
/// ```text
/// L = 1/b Σ_i [γ − ⟨v_i, w_i⟩ + ⟨v_i, ŵ_i⟩]₊ + [γ − ⟨v_i, w_i⟩ + ⟨w_i, v̂_i⟩]₊
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | v, w | `online.images`, `online.texts` | `[b, d]` |
/// | ŵ, v̂ | drawn rows of `bank`, never of the pair's own image | `[d]` |
/// | γ | `draws.rule.margin` | |
/// | L | result | `[1]` |
///
/// The gradient goes to both sides of `online`. Rows of the bank and draws are constants. An anchor counts 0 if all rows of the bank
/// are of its own image. Push the batch's momentum embeddings into the bank before the loss if they must be candidates, otherwise
/// after the loss. Always push the first batch before the loss. A loop that saves its encoders, its optimiser, [`Bank::state`] and
/// the [`Statistics`] resumes with the same bits: `examples/own_loop.rs`.
///
/// # Errors
/// If the parts of `online` differ in their number of rows or have another width than the bank; if an image id is [`NEVER`]; if the
/// bank has no rows, or nothing was ever pushed into it; if a score is not finite, or a number of the rule or the statistics is
/// out of its range.
///
/// # Panics
/// If the embeddings are on a device of another backend than the bank.
///
/// # Departures
/// The positive score is online × online; [`Fne`](crate::Fne) can also take online × momentum (`sampler.positive`). The released
/// code begins with a bank of random rows only. Here that is an error, because a loop that forgets to push would train on noise
/// without a message.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use fne::{Bank, BankRows, Draws, Online, Preset, Reset, SamplerConfig, Statistics, Variance, memory_loss};
///
/// let device = Device::flex().autodiff();
/// let images = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &device).require_grad();
/// let texts = Tensor::<2>::from_floats([[0.6, 0.8], [0.8, 0.6]], &device);
/// let ids = [3, 5];
///
/// let mut bank = Bank::new(64, 2, 7, &device);
/// bank.push(BankRows { images: images.clone(), texts: texts.clone(), ids: &ids, captions: &[0, 1] })?;
/// let mut statistics = Statistics::new(Variance::Official, Reset::Epoch);
/// statistics.update(&[0.6, 0.8, 0.8, 0.6], 2)?; // v wᵀ, as plain numbers
///
/// let rule = SamplerConfig::preset(Preset::Default);
/// let draws = Draws { rule: &rule, statistics: &statistics, seed: 1 };
/// let loss = memory_loss(Online { images: images.clone(), texts, ids: &ids }, &bank, &draws)?;
/// assert!(images.grad(&loss.backward()).is_some());
/// # }
/// # Ok::<(), fne::Error>(())
/// ```
pub fn memory_loss(online: Online, bank: &Bank, draws: &Draws) -> Result<Tensor<1>> {
    let Online { images, texts, ids } = online;
    let shape = [ids.len(), bank.width()];
    Error::unless(!ids.is_empty(), "image ids", "at least 1 pair", 0)?;
    checks::shape("images", shape, &images)?;
    checks::shape("texts", shape, &texts)?;
    checks::ids("batch row", ids)?;
    Error::unless(bank.capacity() > 0, "bank", "at least 1 row", 0)?;
    let expected = "at least 1 pair that was pushed into it";
    let fits = bank.ids().iter().any(|&id| id != NEVER);
    Error::unless(fits, "bank", expected, "only random rows; push a batch first")?;
    let seen = draws.statistics.snapshot();
    let positive = row_dots(images.clone(), texts.clone());
    let (own, excluded) = (host(positive.clone().inner()), same_image(ids, bank.ids())?);
    let side = |direction, anchors: Tensor<2>, table: Tensor<2>| -> Result<Tensor<1>> {
        let scores = host(matmul(anchors.clone().inner(), table.clone().transpose()));
        let pool = CandidatePool { scores: &scores, positive: &own, excluded: &excluded };
        let rho = weights(&pool, draws.rule, &seen)?;
        let chosen = draw(&rho, bank.capacity(), derive(draws.seed, direction))?;
        let masked: Vec<bool> =
            chosen.iter().enumerate().map(|(i, &j)| pool.excluded(i, j)).collect();
        let negatives = gather(table, &chosen); // without a graph: a constant
        Ok(drawn_hinges(anchors, positive.clone(), negatives, &masked, draws.rule.margin).sum())
    };
    let both = side(0, images, bank.texts())? + side(1, texts, bank.images())?;
    Ok(both / ids.len() as f64)
}

#[cfg(test)]
mod tests;
