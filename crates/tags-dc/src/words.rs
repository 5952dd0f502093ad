//! Words of a negative: which words stayed, which are corrected, and how many a model gets right.

use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// Which tokens of a negative are the targets of word correction (departure 7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CorrectionTargets {
    /// The tokens that were masked, whether they changed or not.
    #[default]
    Masked,
    /// The tokens that differ from the caption's.
    Changed,
    /// Every token.
    All,
}

impl CorrectionTargets {
    /// The positions that Eq. 9 corrects, ascending. The target at position `p` is `caption[p]`.
    ///
    /// `negative` and `masked` have one entry per token of `caption`, like [`Negative::tokens`](crate::Negative::tokens) and
    /// [`Negative::masked`](crate::Negative::masked).
    ///
    /// # Errors
    /// If `negative` or `masked` has another length than `caption`.
    ///
    /// ```
    /// use tags_dc::CorrectionTargets;
    ///
    /// let (caption, negative) = ([1, 5, 6, 2], [1, 9, 6, 2]);
    /// let masked = [false, true, true, false];
    /// assert_eq!(CorrectionTargets::Masked.positions(&caption, &negative, &masked)?, [1, 2]);
    /// assert_eq!(CorrectionTargets::Changed.positions(&caption, &negative, &masked)?, [1]);
    /// assert_eq!(CorrectionTargets::All.positions(&caption, &negative, &masked)?, [0, 1, 2, 3]);
    /// # Ok::<(), tags_dc::Error>(())
    /// ```
    pub fn positions(
        self,
        caption: &[u32],
        negative: &[u32],
        masked: &[bool],
    ) -> Result<Vec<usize>> {
        same_length("negative", negative.len(), caption)?;
        same_length("masked", masked.len(), caption)?;
        let asked = |&at: &usize| match self {
            Self::Masked => masked[at],
            Self::Changed => caption[at] != negative[at],
            Self::All => true,
        };
        Ok((0..caption.len()).filter(asked).collect())
    }
}

/// The classes of word discrimination, one per token: 1 where the negative has the caption's token, 0 where it has another token.
///
/// ```text
/// G_tj = 1 if T⁻_tj = T_j, else 0        Eq. 8
/// ```
///
/// All positions count, `[CLS]` and `[SEP]` too.
///
/// # Errors
/// If the negative has another length than the caption.
///
/// ```
/// assert_eq!(tags_dc::stayed(&[1, 5, 6, 2], &[1, 9, 6, 2])?, [1, 0, 1, 1]);
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn stayed(caption: &[u32], negative: &[u32]) -> Result<Vec<u32>> {
    same_length("negative", negative.len(), caption)?;
    Ok(caption.iter().zip(negative).map(|(own, new)| u32::from(own == new)).collect())
}

/// The share of rows whose largest logit is their class: the accuracy of word discrimination, and of word correction.
///
/// | head | a row of `logits` | `classes` |
/// |---|---|---|
/// | discrimination | 2 logits of a token; class 1 is chosen if its probability is above 0.5 | [`stayed`] |
/// | correction | V logits of a target | the caption's token |
///
/// `logits` are `[classes.len(), width]`, row after row. The first of equal logits counts as the largest.
///
/// # Errors
/// If there is no class, the number of logits is not a multiple of the number of classes, a class is outside the width, or a logit
/// is NaN.
///
/// ```
/// let logits = [0.2, 0.9, /* second token */ 0.2, 0.9];
/// assert_eq!(tags_dc::accuracy(&logits, &[1, 0])?, 0.5);
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn accuracy(logits: &[f32], classes: &[u32]) -> Result<f64> {
    let n = classes.len();
    Error::unless(n > 0, "classes", "at least one", "none")?;
    let expected = format_args!("a positive multiple of {n}, the number of classes");
    let fits = !logits.is_empty() && logits.len().is_multiple_of(n);
    Error::unless(fits, "number of logits", expected, logits.len())?;
    let width = logits.len() / n;
    let mut right = 0;
    for (k, (row, &class)) in logits.chunks_exact(width).zip(classes).enumerate() {
        if class as usize >= width {
            return Err(Error::invalid(format!("class {k}"), format!("below {width}"), class));
        }
        if let Some(at) = row.iter().position(|logit| logit.is_nan()) {
            return Err(Error::invalid(format!("row {k}, logit {at}"), "a number", "NaN"));
        }
        right += usize::from(largest(row) == class as usize);
    }
    Ok(right as f64 / n as f64)
}

/// The place of the largest value; of equal values, the first place.
pub(crate) fn largest(values: &[f32]) -> usize {
    let better = |best: usize, k: usize| if values[k] > values[best] { k } else { best };
    (0..values.len()).fold(0, better)
}

/// The distinct values, in order.
pub(crate) fn distinct<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

fn same_length(place: &str, got: usize, caption: &[u32]) -> Result<()> {
    let expected = format_args!("{} tokens, as the caption", caption.len());
    Error::unless(got == caption.len(), place, expected, got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_differ_are_named() {
        let line = |error: Error| error.to_string();
        let caption = [1, 2, 3];
        let want = "negative: expected 3 tokens, as the caption, got 2";
        assert_eq!(line(stayed(&caption, &[1, 2]).unwrap_err()), want);
        let of = |negative: &[u32], masked: &[bool]| {
            line(CorrectionTargets::Masked.positions(&caption, negative, masked).unwrap_err())
        };
        assert_eq!(of(&[1, 2], &[true; 3]), want);
        assert_eq!(of(&[1, 2, 3], &[]), "masked: expected 3 tokens, as the caption, got 0");
    }

    /// By hand: 3 > 1 and 2 > 0 are right; 5 > 4 is wrong, because the class is 0.
    #[test]
    fn golden_share_of_right_rows() {
        let logits = [1.0, 3.0, 2.0, 0.0, 4.0, 5.0];
        assert_eq!(accuracy(&logits, &[1, 0, 0]).unwrap(), 2.0 / 3.0);
        assert_eq!(accuracy(&logits, &[2, 2]).unwrap(), 0.5, "rows 1 3 2 and 0 4 5");
    }

    /// A head whose logits are all equal is not right everywhere.
    #[test]
    fn of_equal_logits_the_first_is_the_answer() {
        assert_eq!(accuracy(&[2.0; 4], &[1, 1]).unwrap(), 0.0);
        assert_eq!(accuracy(&[2.0; 4], &[0, 1]).unwrap(), 0.5);
    }

    #[test]
    fn what_has_no_accuracy_is_refused() {
        let line =
            |logits: &[f32], classes: &[u32]| accuracy(logits, classes).unwrap_err().to_string();
        assert_eq!(line(&[], &[]), "classes: expected at least one, got none");
        let multiple = "number of logits: expected a positive multiple of 2, the number of classes";
        assert_eq!(line(&[0.0; 3], &[0, 0]), format!("{multiple}, got 3"));
        assert_eq!(line(&[], &[0, 0]), format!("{multiple}, got 0"));
        assert_eq!(line(&[0.0; 4], &[0, 2]), "class 1: expected below 2, got 2");
        let nan = [0.0, 1.0, f32::NAN, 1.0];
        assert_eq!(line(&nan, &[1, 1]), "row 1, logit 0: expected a number, got NaN");
    }
}
