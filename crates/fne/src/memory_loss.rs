//! Eq. 15 over a memory, for embeddings of one's own.

use burn::tensor::Tensor;
use itm_core::{Error, Result, host};
use itm_kernels::random::derive;

use crate::bank::{Bank, check_ids};
use crate::draw::draw;
use crate::loss::{drawn_hinges, gather, row_dots};
use crate::statistics::Snapshot;
use crate::weights::{Excluded, Pool, Rule, weights};

/// How negatives are drawn: [`weights()`](crate::weights()) by this rule and these statistics.
#[derive(Debug, Clone, Copy)]
pub struct Draws<'a> {
    /// Prior, λ, τ, α, the margin a.
    pub rule: &'a Rule,
    /// What was seen of true and of mismatched pairs.
    pub seen: &'a Snapshot,
    /// Of this step. Each direction draws by a seed of its own, derived from it.
    pub seed: u64,
}

/// Eq. 15 with negatives out of a bank, for any encoders: each image draws one text of the bank, each text one image.
///
/// ```text
/// L = 1/b Σ_i max(a − ⟨v_i, w_i⟩ + ⟨v_i, ŵ_i⟩, 0) + max(a − ⟨v_i, w_i⟩ + ⟨w_i, v̂_i⟩, 0)
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | v, w | `images`, `texts`: rows of unit length, row i of each a pair | `[b, d]` |
/// | ŵ, v̂ | drawn rows of `bank`, never one of the pair's own image | `[d]` |
/// | a | `draws.rule.margin` | |
/// | L | result | `[1]` |
///
/// The gradient goes to `images` and `texts`; rows of the bank and draws are constants. An anchor whose candidates are all of its own
/// image counts 0. Push the batch's momentum embeddings into the bank before this (they are candidates then) or behind it. A loop that
/// saves the encoders, [`Bank::state`] and [`Statistics`](crate::Statistics) goes on with the same bits: `examples/own_loop.rs`.
///
/// # Errors
/// If an id is [`NEVER`](crate::NEVER), the bank has no row, or a score is not finite.
///
/// # Panics
/// If images, texts and ids differ in number, or the bank has another width.
///
/// # Departures
/// The positive is the online pair's; [`Fne`](crate::Fne) can take the momentum embeddings there too (`sampler.positive`).
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use fne::{Bank, Draws, Preset, Snapshot, memory_loss};
///
/// let device = Device::flex().autodiff();
/// let images = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &device).require_grad();
/// let texts = Tensor::<2>::from_floats([[0.6, 0.8], [0.8, 0.6]], &device);
/// let bank = Bank::new(64, 2, 7, &device);
/// let draws = Draws { rule: &Preset::Default.sampler().rule(), seen: &Snapshot::default(), seed: 1 };
/// let loss = memory_loss(images.clone(), texts, &[3, 5], &bank, &draws)?;
/// assert!(images.grad(&loss.backward()).is_some());
/// # }
/// # Ok::<(), fne::Error>(())
/// ```
pub fn memory_loss(
    images: Tensor<2>,
    texts: Tensor<2>,
    ids: &[i64],
    bank: &Bank,
    draws: &Draws,
) -> Result<Tensor<1>> {
    let [b, d] = images.dims();
    assert_eq!(texts.dims(), [b, d], "texts: one row an image");
    assert_eq!(ids.len(), b, "one image id a pair");
    assert_eq!(bank.width(), d, "width of the bank");
    check_ids(ids)?;
    if bank.capacity() == 0 {
        return Err(Error::invalid("bank", "at least 1 row", 0));
    }
    let positive = row_dots(images.clone(), texts.clone());
    let own = host(positive.clone().detach());
    let mut hinges = vec![];
    for (direction, (anchors, table)) in
        [(images, bank.texts()), (texts, bank.images())].into_iter().enumerate()
    {
        let like = |rows: Tensor<2>| match anchors.device().is_autodiff() {
            true => Tensor::from_inner(rows),
            false => rows,
        };
        let plain = anchors.clone().detach();
        let scores = host(plain.matmul(like(table.clone()).transpose()));
        if let Some(bad) = scores.iter().chain(&own).find(|score| !score.is_finite()) {
            return Err(Error::invalid("scores of a step", "finite numbers", bad));
        }
        let excluded = Excluded::SameImage { anchors: ids, candidates: bank.ids() };
        let pool = Pool { scores: &scores, positive: &own, excluded };
        let rho = weights(&pool, draws.rule, draws.seen);
        let chosen = draw(&rho, bank.capacity(), derive(draws.seed, direction as u64));
        let masked: Vec<bool> =
            chosen.iter().enumerate().map(|(i, &j)| pool.excluded(i, j)).collect();
        let negatives = like(gather(table, &chosen));
        hinges.push(drawn_hinges(anchors, positive.clone(), negatives, &masked, draws.rule.margin));
    }
    let sum: Tensor<1> = hinges
        .into_iter()
        .map(Tensor::sum)
        .fold(Tensor::zeros([1], &positive.device()), |sum, side| sum + side);
    Ok(sum / b as f64)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};
    use itm_kernels::random;

    use super::*;
    use crate::{Entries, Preset};

    const D: usize = 4;

    fn rows(n: usize, seed: u64) -> Vec<f32> {
        let mut values: Vec<f32> = (0..n * D).map(|k| random::unit(seed, k as u64) - 0.5).collect();
        for row in values.chunks_mut(D) {
            let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            row.iter_mut().for_each(|x| *x /= norm);
        }
        values
    }

    fn matrix(values: &[f32], device: &Device) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), [values.len() / D, D]), device)
    }

    fn bank(ids: &[i64], seed: u64, device: &Device) -> Bank {
        let mut bank = Bank::new(ids.len(), D, 1, device);
        let [images, texts] =
            [seed, seed + 1].map(|seed| matrix(&rows(ids.len(), seed), &Device::flex()));
        bank.push(Entries { images, texts, ids, captions: ids }).unwrap();
        bank
    }

    /// One candidate of another image: both directions draw it, so that L and its gradient are known in plain loops.
    #[test]
    fn golden_of_a_bank_with_one_candidate() {
        let device = Device::flex().autodiff();
        let (v, w, ids) = (rows(2, 3), rows(2, 4), [1, 2]);
        let bank = bank(&[9], 5, &device);
        let state = bank.state();
        let (rule, seen) = (Preset::Default.sampler().rule(), Snapshot::default());
        let images = matrix(&v, &device).require_grad();
        let texts = matrix(&w, &device).require_grad();
        let draws = Draws { rule: &rule, seen: &seen, seed: 1 };
        let loss = memory_loss(images.clone(), texts.clone(), &ids, &bank, &draws).unwrap();
        let grads = loss.backward();
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
        };
        let (mut want, mut slope) = (0.0, vec![0.0; 2 * D]);
        for i in 0..2 {
            let (v, w) = (&v[i * D..][..D], &w[i * D..][..D]);
            for (anchor, other, of_image) in [(v, &state.texts, true), (w, &state.images, false)] {
                let h = rule.margin - dot(v, w) + dot(anchor, other);
                if h > 0.0 {
                    want += h / 2.0;
                    for k in 0..D {
                        let negative = if of_image { other[k] } else { 0.0 };
                        slope[i * D + k] += f64::from(negative - w[k]) / 2.0;
                    }
                }
            }
        }
        assert!(want > 0.0 && (f64::from(host(loss.inner())[0]) - want).abs() < 1e-6);
        let got = host(images.grad(&grads).unwrap());
        assert!(got.iter().zip(&slope).all(|(g, s)| (f64::from(*g) - s).abs() < 1e-6), "{got:?}");
        assert!(texts.grad(&grads).is_some());
    }

    /// A bank of the pair's own image alone: nothing to learn from, and no NaN. Without autodiff the value is the same.
    #[test]
    fn own_images_are_never_drawn() {
        let plain = Device::flex();
        let value = |bank_ids: &[i64], device: &Device| {
            let bank = bank(bank_ids, 5, device);
            let rule = Preset::Default.sampler().rule();
            let draws = Draws { rule: &rule, seen: &Snapshot::default(), seed: 1 };
            let of = |seed| matrix(&rows(2, seed), device);
            host(memory_loss(of(3), of(4), &[1, 1], &bank, &draws).unwrap())[0]
        };
        assert_eq!(value(&[1, 1, 1], &plain), 0.0);
        assert!(value(&[1, 2, 1], &plain) > 0.0);
        assert_eq!(value(&[2, 3], &plain), value(&[2, 3], &plain.clone().autodiff()));
    }

    /// The two directions draw apart, though steps have one seed.
    #[test]
    fn directions_have_seeds_of_their_own() {
        assert_ne!(derive(7, 0), derive(7, 1));
        let rho = vec![1.0; 20 * 50];
        assert_ne!(draw(&rho, 50, derive(7, 0)), draw(&rho, 50, derive(7, 1)));
    }

    #[test]
    fn what_cannot_be_learnt_from_is_refused() {
        let device = Device::flex();
        let rule = Preset::Default.sampler().rule();
        let draws = Draws { rule: &rule, seen: &Snapshot::default(), seed: 1 };
        let of = |ids: &[i64], bank: &Bank, v: &[f32]| {
            let loss =
                memory_loss(matrix(v, &device), matrix(&rows(2, 4), &device), ids, bank, &draws);
            loss.unwrap_err().to_string()
        };
        let (full, empty, v) = (bank(&[9], 5, &device), Bank::new(0, D, 1, &device), rows(2, 3));
        assert_eq!(of(&[1, 2], &empty, &v), "bank: expected at least 1 row, got 0");
        assert!(of(&[1, -100], &full, &v).contains("batch row 1"));
        let mut bad = v.clone();
        bad[0] = f32::NAN;
        assert_eq!(of(&[1, 2], &full, &bad), "scores of a step: expected finite numbers, got NaN");
    }
}
