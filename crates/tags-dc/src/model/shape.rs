//! Sizes of a UNITER.

use itm_core::encoders::BertShape;
use itm_core::learn::within;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::RegionBatch;
use crate::evidence::below_one;

/// Sizes and choices of a [`Uniter`](super::Uniter).
///
/// ```
/// use tags_dc::model::UniterShape;
///
/// let base = UniterShape::base();
/// assert_eq!((base.text.layers, base.text.width, base.text.heads), (12, 768, 12));
/// assert!(base.check().is_ok());
/// let tiny = UniterShape { features: 10, ..UniterShape::of_width(16, 4, 2, 50) };
/// assert_eq!(tiny.text.mlp, 64);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniterShape {
    /// Text embedding and blocks.
    pub text: BertShape,
    /// Width of a region's features.
    pub features: usize,
    /// Standard deviation of random matrices and tables. Published: 0.02 for widths of 768 and 1,024. A narrow model needs a larger
    /// deviation: a block multiplies by deviation · √width, and hardly changes its input where this product is small.
    pub initializer_range: f64,
}

/// The largest size: a model with a larger one fits no memory.
const MOST: usize = 1 << 24;

impl UniterShape {
    /// 12 blocks of width 768, cased word pieces.
    pub fn base() -> Self {
        Self::of_width(768, 12, 12, 28_996)
    }

    /// 24 blocks of width 1024, cased word pieces.
    pub fn large() -> Self {
        Self::of_width(1024, 16, 24, 28_996)
    }

    /// A shape of this width and these numbers of heads, blocks and word pieces. Everything else is as published.
    pub fn of_width(width: usize, heads: usize, layers: usize, vocabulary: usize) -> Self {
        let text = BertShape {
            vocabulary,
            positions: 512,
            kinds: 2,
            width,
            layers,
            heads,
            mlp: width.saturating_mul(4),
            epsilon: 1e-12,
            dropout: 0.1,
            attention_dropout: 0.1,
        };
        Self { text, features: 2048, initializer_range: 0.02 }
    }

    /// # Errors
    /// If a size is 0, the heads do not divide the width, there is no second kind, or a dropout, the deviation or ε is out of range.
    pub fn check(&self) -> Result<()> {
        let t = &self.text;
        let sizes = [t.vocabulary, t.positions, t.width, t.layers, t.heads, t.mlp, self.features];
        let place = "vocabulary, positions, width, layers, heads, mlp, features";
        Error::unless(!sizes.contains(&0), place, "none of them 0", format_args!("{sizes:?}"))?;
        let expected = format_args!("none of them above {MOST}");
        let fits = sizes.iter().all(|&size| size <= MOST);
        Error::unless(fits, place, expected, format_args!("{sizes:?}"))?;
        let expected = format_args!("a divisor of {}", t.width);
        Error::unless(t.width.is_multiple_of(t.heads), "heads", expected, t.heads)?;
        Error::unless(t.kinds >= 2, "kinds", "2: text and regions", t.kinds)?;
        for (name, share) in [("dropout", t.dropout), ("attention_dropout", t.attention_dropout)] {
            below_one(name, share)?;
        }
        let normal = |x: f64| x > 0.0 && (x as f32).is_normal();
        let above_zero = |name: &str, value: f64| within(name, value, "a number above 0", normal);
        above_zero("initializer_range", self.initializer_range)?;
        above_zero("epsilon", t.epsilon)
    }

    /// Refuses texts, with `[CLS]` and `[SEP]`, that are empty, need more positions than the model has, or have a token outside its table.
    ///
    /// # Errors
    /// The error names the text by `place`.
    pub(crate) fn check_texts<T: AsRef<[u32]>>(
        &self,
        texts: &[T],
        place: impl Fn(usize) -> String,
    ) -> Result<()> {
        let BertShape { positions, vocabulary, .. } = self.text;
        for (k, text) in texts.iter().enumerate() {
            let text = text.as_ref();
            if text.is_empty() || text.len() > positions {
                let expected = format!("1 to {positions} tokens, [CLS] and [SEP] included");
                return Err(Error::invalid(place(k), expected, text.len()));
            }
            if let Some(token) = text.iter().find(|&&token| token as usize >= vocabulary) {
                return Err(Error::invalid(place(k), format!("tokens below {vocabulary}"), token));
            }
        }
        Ok(())
    }

    /// Refuses regions of another width.
    ///
    /// # Errors
    /// Both widths are named.
    pub(crate) fn check_regions(&self, batch: &RegionBatch) -> Result<()> {
        let expected = format_args!("{} wide", self.features);
        Error::unless(batch.width == self.features, "features of regions", expected, batch.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_sizes_are_the_papers() {
        let large = UniterShape::large().text;
        assert_eq!((large.layers, large.width, large.heads, large.mlp), (24, 1024, 16, 4096));
        assert_eq!((large.positions, large.kinds, large.vocabulary), (512, 2, 28_996));
    }

    #[test]
    fn bad_sizes_are_named() {
        let refused = |change: fn(&mut UniterShape)| {
            let mut shape = UniterShape::base();
            change(&mut shape);
            shape.check().unwrap_err().to_string()
        };
        assert!(refused(|s| s.features = 0).contains("expected none of them 0"));
        assert_eq!(refused(|s| s.text.heads = 7), "heads: expected a divisor of 768, got 7");
        assert_eq!(refused(|s| s.text.kinds = 1), "kinds: expected 2: text and regions, got 1");
        assert_eq!(refused(|s| s.text.dropout = 1.0), "dropout: expected a share below 1, got 1");
        assert!(refused(|s| s.text.epsilon = 0.0).starts_with("epsilon: "));
        let line = "initializer_range: expected a number above 0, got 0";
        assert_eq!(refused(|s| s.initializer_range = 0.0), line);
        assert!(refused(|s| s.initializer_range = 1e-300).starts_with("initializer_range: "));
        assert!(refused(|s| s.text.epsilon = 1e-300).starts_with("epsilon: "), "0 as f32");
        assert!(refused(|s| s.text.epsilon = 1e300).starts_with("epsilon: "), "infinite as f32");
        let wide = UniterShape::of_width(usize::MAX, 1, 1, 1).check().unwrap_err().to_string();
        assert!(wide.contains("expected none of them above 16777216"), "{wide}");
    }
}
