//! The losses of Eq. 1, 4, 5 and 7 to 9 over scores and logits of any model, with gradients.
//!
//! | loss | rows of one anchor | call |
//! |---|---|---|
//! | Eq. 5, L_ITM | its retrieved negatives | [`hinges`], twice its mean over both kinds of anchors |
//! | Eq. 7, L_ISTM | the negatives of its pool | [`hinges`] |
//! | not in the paper, in place of Eq. 4 | its negatives, all at once | [`cross_entropy`] |
//! | Eq. 1, L_MLM | all targets of all its maskings | [`masked_words`] |
//! | Eq. 8, L_WoD | all tokens of its negatives | [`discrimination`] |
//! | Eq. 9, L_WoC | the targets of its negatives | [`correction`] |
//!
//! An anchor is a caption or an image with its negatives. A loss is first the mean over the rows of an anchor, and then the mean over
//! the anchors. `per_anchor` says how many rows each anchor has, in the order of the anchors. An anchor without rows adds 0, and counts
//! in the mean. A batch of one anchor has `per_anchor = &[rows]`.
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! use burn::tensor::{Device, Tensor};
//! use tags_dc::{losses, stayed};
//!
//! let device = Device::flex().autodiff();
//! // The scores of a caption and of two negatives, as a model gives them; then two logits per token of the first negative.
//! let scores = Tensor::<1>::from_floats([0.9, 0.8, 0.3], &device).require_grad();
//! let tokens = Tensor::<2>::from_floats([[0.0, 1.0], [0.0, 1.0]], &device).require_grad();
//! let (istm, pulls) = losses::hinges(scores.clone(), &[[0, 1], [0, 2]], &[2], 0.2)?; // Eq. 7
//! let wod = losses::discrimination(tokens, &stayed(&[4, 5], &[4, 9])?, &[2], [1.0, 0.11])?; // Eq. 8
//! assert_eq!(pulls, 0.5); // 0.2 − 0.9 + 0.8 is above 0, 0.2 − 0.9 + 0.3 is not
//! let gradients = (istm + wod).backward();
//! assert!(scores.grad(&gradients).is_some());
//! # }
//! # Ok::<(), tags_dc::Error>(())
//! ```

use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Bool, Tensor, TensorData};
use itm_core::{Error, Result, host};
use itm_kernels::embedding;

/// The least log-probability of Eq. 8 and 9. Below this value there is no gradient.
const LEAST: f64 = -23.025_850_929_940_457; // ln 1e-10

/// Triplets of scores, Eq. 4: the loss, and the share of triplets whose hinge is above 0.
///
/// ```text
/// TripL = max(a − s_p + s_n, 0)        loss = mean over the anchors of the mean over an anchor's triplets
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | s | `scores`: probabilities σ(logit), not logits | `[scores]` |
/// | p, n | `triplets`: rows of `scores`, first the true pair, then the false one | one per triplet |
/// | a | `margin` | |
///
/// Without triplets the loss and the share are 0.
///
/// # Errors
/// If the margin is negative or not finite, a row is outside the scores, the number of triplets is not the sum of `per_anchor`, or a score
/// is NaN or infinite.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use tags_dc::losses::hinges;
///
/// // Two anchors: 0.9 with two negatives, 0.4 with one. Hinges 0.1, 0 and 0.4.
/// let scores = Tensor::<1>::from_floats([0.9, 0.8, 0.3, 0.4, 0.6], &Device::flex());
/// let (loss, pulls) = hinges(scores, &[[0, 1], [0, 2], [3, 4]], &[2, 1], 0.2)?;
/// assert!((loss.into_scalar::<f32>() - (0.05 + 0.4) / 2.0).abs() < 1e-6);
/// assert_eq!(pulls, 2.0 / 3.0);
/// # }
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn hinges(
    scores: Tensor<1>,
    triplets: &[[usize; 2]],
    per_anchor: &[usize],
    margin: f64,
) -> Result<(Tensor<1>, f64)> {
    let fits = margin >= 0.0 && (margin as f32).is_finite();
    Error::unless(fits, "margin", "a number of at least 0", margin)?;
    let weights = weights(triplets.len(), per_anchor)?;
    let device = scores.device();
    let Some(above) = differences(scores.clone(), triplets)? else {
        return Ok((scores.sum() * 0.0, 0.0)); // in the graph, so that it can be differentiated
    };
    let each = relu(above + margin); // [triplets, 1]
    let pull = host(each.clone().inner()).into_iter().filter(|&x| x > 0.0).count();
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [triplets.len(), 1]), &device);
    Ok(((each * weights).sum(), pull as f64 / triplets.len() as f64))
}

/// The true pair of an anchor among its negatives: cross-entropy, or InfoNCE with τ = 1. Returns the loss, and the share of triplets
/// whose negative is above the true pair.
///
/// ```text
/// L = mean over the anchors of −log( exp l_p / (exp l_p + Σ_n exp l_n) ) = mean over the anchors of log(1 + Σ_n exp(l_n − l_p))
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | l | `logits`, not probabilities | `[scores]` |
/// | p, n | `triplets`: rows of `logits`, first the true pair, then the false one | one per triplet |
///
/// Without triplets the loss and the share are 0. A hinge of probabilities hardly changes a pair that is far from the margin; here such a
/// pair has the greatest gradient.
///
/// # Errors
/// If a row is outside the logits, the number of triplets is not the sum of `per_anchor`, or a logit is NaN or infinite.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use tags_dc::losses::cross_entropy;
///
/// // e² / (e² + e⁰ + e¹) and 1 / (1 + 3): the loss is −log of them.
/// let logits = Tensor::<1>::from_floats([2.0, 0.0, 1.0, 0.0, 3f32.ln()], &Device::flex());
/// let (loss, above) = cross_entropy(logits, &[[0, 1], [0, 2], [3, 4]], &[2, 1])?;
/// assert!((loss.into_scalar::<f32>() - (0.407_606 + 4f32.ln()) / 2.0).abs() < 1e-5);
/// assert_eq!(above, 1.0 / 3.0);
/// # }
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn cross_entropy(
    logits: Tensor<1>,
    triplets: &[[usize; 2]],
    per_anchor: &[usize],
) -> Result<(Tensor<1>, f64)> {
    weights(triplets.len(), per_anchor)?; // for its check: all negatives of an anchor have one weight
    let (device, anchors) = (logits.device(), per_anchor.len());
    let Some(differences) = differences(logits.clone(), triplets)? else {
        return Ok((logits.sum() * 0.0, 0.0));
    };
    let above = host(differences.clone().inner()).into_iter().filter(|&x| x > 0.0).count();
    // A row per anchor: first the true pair's 0, then its negatives, then padding.
    let most = per_anchor.iter().max().map_or(0, |most| *most);
    let (mut rows, mut padding, mut first) = (vec![], vec![], 0);
    for &negatives in per_anchor {
        rows.extend((0..most).map(|k| if k < negatives { (first + k) as u32 } else { 0 }));
        padding.extend((0..most).map(|k| k >= negatives));
        first += negatives;
    }
    let shape = [anchors, most];
    let negatives = embedding(differences, &rows, None).reshape(shape);
    let padding = Tensor::<2, Bool>::from_data(TensorData::new(padding, shape), &device);
    let negatives = negatives.mask_fill(padding, f32::MIN);
    let all = Tensor::cat(vec![Tensor::zeros([anchors, 1], &device), negatives], 1);
    let own = log_softmax(all, 1).narrow(1, 0, 1);
    Ok((own.sum() * (-1.0 / anchors as f64), above as f64 / triplets.len() as f64))
}

/// `s_n − s_p` of each triplet, `[triplets, 1]`; nothing without triplets.
///
/// # Errors
/// If a row is outside the scores, or a score is NaN or infinite.
fn differences(scores: Tensor<1>, triplets: &[[usize; 2]]) -> Result<Option<Tensor<2>>> {
    let [n] = scores.dims();
    for (k, row) in triplets.iter().enumerate().flat_map(|(k, rows)| rows.map(|row| (k, row))) {
        let expected = format_args!("rows below {n}, the number of scores");
        Error::unless(row < n, format_args!("triplet {k}"), expected, row)?;
    }
    let values = host(scores.clone().inner());
    Error::unless_finite(&values, |at| format!("score {at}"), "a finite number")?;
    if triplets.is_empty() {
        return Ok(None);
    }
    let table = scores.reshape([n, 1]);
    let of = |side: usize| {
        let rows: Vec<u32> = triplets.iter().map(|triplet| triplet[side] as u32).collect();
        embedding(table.clone(), &rows, None)
    };
    Ok(Some(of(1) - of(0)))
}

/// Masked words, Eq. 1.
///
/// ```text
/// L_MLM = mean over the anchors of   1/Σ_k|P_k| Σ_{k, p ∈ P_k} −log softmax(logits_{k,p})_{y_p}
/// ```
///
/// `logits` are `[targets, V]` in the order of [`Generator::logits`](crate::Generator::logits); `words` are the original words y:
/// the labels of the maskings.
///
/// # Errors
/// If the number of words is not the number of rows or not the sum of `per_anchor`, a word is not below V, or the loss of a row is
/// not finite.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
///
/// let logits = Tensor::<2>::from_floats([[2.0, 2.0, 2.0, 2.0]], &Device::flex());
/// let loss = tags_dc::losses::masked_words(logits, &[1], &[1])?;
/// assert!((loss.into_scalar::<f32>() - 4f32.ln()).abs() < 1e-6); // all four are equally likely
/// # }
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn masked_words(logits: Tensor<2>, words: &[u32], per_anchor: &[usize]) -> Result<Tensor<1>> {
    let weights = weights(words.len(), per_anchor)?;
    weighted_cross_entropy(logits, words, &weights, None)
}

/// Word discrimination, Eq. 8.
///
/// ```text
/// L_WoD = mean over the anchors of   1/(m |T|) Σ_{t,j} −w_G max(log softmax(logits_tj)_G, log 1e-10)
/// ```
///
/// | symbol | here | shape or value |
/// |---|---|---|
/// | logits | `logits` of each token of each negative | `[tokens, 2]` |
/// | G | `stayed`, from [`stayed`](crate::stayed()) of each negative, one after the other | one per token |
/// | w | `weights` of class 0 and 1 | 1.0 and 0.11 in the released program |
///
/// The mean is over the tokens: it is not divided by the sum of the weights.
///
/// # Errors
/// If there are not two logits per row, the number of classes is not the number of rows or not the sum of `per_anchor`, a class is not 0
/// or 1, a weight is negative or not finite, or the logits of a row have no softmax.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
///
/// let logits = Tensor::<2>::from_floats([[0.0, 0.0], [0.0, 0.0]], &Device::flex());
/// let loss = tags_dc::losses::discrimination(logits, &[0, 1], &[2], [1.0, 0.11])?;
/// assert!((loss.into_scalar::<f32>() - (1.0 + 0.11) * 2f32.ln() / 2.0).abs() < 1e-6);
/// # }
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn discrimination(
    logits: Tensor<2>,
    stayed: &[u32],
    per_anchor: &[usize],
    weights: [f64; 2],
) -> Result<Tensor<1>> {
    let [_, two] = logits.dims();
    Error::unless(two == 2, "logits of a token", "2 of them", two)?;
    if let Some(class) = weights.iter().position(|w| !(*w >= 0.0 && (*w as f32).is_finite())) {
        let place = format!("weight of class {class}");
        return Err(Error::invalid(place, "a number of at least 0", weights[class]));
    }
    let mut each = self::weights(stayed.len(), per_anchor)?;
    for (weight, &class) in each.iter_mut().zip(stayed) {
        // weighted_cross_entropy refuses a third class
        *weight *= weights.get(class as usize).copied().unwrap_or(0.0) as f32;
    }
    weighted_cross_entropy(logits, stayed, &each, Some(LEAST))
}

/// Word correction, Eq. 9.
///
/// ```text
/// L_WoC = mean over the anchors of   1/#targets Σ_{t,j} −max(log softmax(logits_tj)_{T_j}, log 1e-10)
/// ```
///
/// `logits` are `[targets, V]` at [`CorrectionTargets::positions`](crate::CorrectionTargets::positions) of each negative, one after the other;
/// `words` are the caption's tokens at these positions.
///
/// # Errors
/// If the number of words is not the number of rows or not the sum of `per_anchor`, a word is not below V, or the logits of a row
/// have no softmax.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
///
/// let logits = Tensor::<2>::from_floats([[0.0, 900.0]], &Device::flex());
/// let loss = tags_dc::losses::correction(logits, &[0], &[1])?;
/// assert!((loss.into_scalar::<f32>() - 1e10f32.ln()).abs() < 1e-4); // not 900
/// # }
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn correction(logits: Tensor<2>, words: &[u32], per_anchor: &[usize]) -> Result<Tensor<1>> {
    let weights = weights(words.len(), per_anchor)?;
    weighted_cross_entropy(logits, words, &weights, Some(LEAST))
}

/// The weight of each row in the mean over the anchors of the means over their rows.
fn weights(rows: usize, per_anchor: &[usize]) -> Result<Vec<f32>> {
    let sum = per_anchor.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    let got = sum.map_or("more than can be counted".into(), |sum| sum.to_string());
    let expected = format_args!("{rows}, the rows");
    Error::unless(sum == Some(rows), "sum of per_anchor", expected, got)?;
    let of = |&n: &usize| std::iter::repeat_n(1.0 / (n * per_anchor.len()) as f32, n);
    Ok(per_anchor.iter().flat_map(of).collect())
}

/// Σ w · (−log softmax(row)_y), where `least` bounds the log-probabilities from below.
fn weighted_cross_entropy(
    logits: Tensor<2>,
    labels: &[u32],
    weights: &[f32],
    least: Option<f64>,
) -> Result<Tensor<1>> {
    let ([n, v], device) = (logits.dims(), logits.device());
    let expected = format_args!("{n}, one per row of logits");
    Error::unless(labels.len() == n, "targets", expected, labels.len())?;
    if let Some(row) = labels.iter().position(|&label| label as usize >= v) {
        return Err(Error::invalid(format!("target {row}"), format!("below {v}"), labels[row]));
    }
    let expected = format_args!("at most {} logits at once", u32::MAX);
    Error::unless(n * v <= u32::MAX as usize, "logits", expected, n * v)?;
    if n == 0 {
        return Ok(logits.sum() * 0.0); // in the graph, like a loss of rows
    }
    let flat: Vec<u32> = (0..n).zip(labels).map(|(row, &label)| (row * v) as u32 + label).collect();
    let picked = embedding(log_softmax(logits, 1).reshape([n * v, 1]), &flat, None);
    let values = host(picked.clone().inner());
    // The bound would turn NaN into a finite loss, so NaN is refused. The bound is for −∞, a probability of 0.
    let bad = |x: &f32| if least.is_some() { x.is_nan() } else { !x.is_finite() };
    if let Some(row) = values.iter().position(bad) {
        let place = format!("logits of target {row}");
        let expected = "numbers whose softmax gives the target a finite log-probability";
        return Err(Error::invalid(place, expected, values[row]));
    }
    let picked = match least {
        Some(least) => picked.clamp_min(least),
        None => picked,
    };
    let weights: Vec<f32> = weights.iter().map(|weight| -weight).collect();
    let weights = Tensor::<2>::from_data(TensorData::new(weights, [n, 1]), &device);
    Ok((picked * weights).sum())
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;
