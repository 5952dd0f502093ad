//! Pools the rows of an image or a caption into one row.

use std::f64::consts::FRAC_1_SQRT_2;

use burn::tensor::{Tensor, TensorData};
use itm_kernels::{masked_mean, normalize_rows};
use serde::{Deserialize, Serialize};

use super::TokenBatch;

/// How the rows of an image become one row, FNE Eq. (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImagePool {
    /// The mean over class token and patches, as in FNE's program.
    #[default]
    All,
    /// The mean over the patches, as in FNE's paper.
    Patches,
    /// The class token.
    Class,
    /// The class token's row and the mean of the patches, each at unit length, side by side at unit length: what `itm embed` makes of
    /// DINOv2.
    ClassPatches,
}

impl ImagePool {
    /// Width of the row of an image, for states of this width.
    pub(crate) fn width(self, states: usize) -> usize {
        if self == Self::ClassPatches { 2 * states } else { states }
    }

    /// Pools `[b, 1 + n, d]`, with the class token first, to `[b, d]`.
    ///
    /// # Panics
    /// If there is no row, or no patch to average.
    pub fn pool(self, states: Tensor<3>) -> Tensor<2> {
        let [b, l, d] = states.dims();
        assert!(l > 0, "states {:?} hold no row", [b, l, d]);
        let rows = match self {
            Self::All => states.mean_dim(1),
            Self::Patches => {
                assert!(l > 1, "states {:?} hold no patch", [b, l, d]);
                states.narrow(1, 1, l - 1).mean_dim(1)
            }
            Self::Class => states.narrow(1, 0, 1),
            Self::ClassPatches => {
                let halves = [Self::Class, Self::Patches];
                let halves = halves.map(|half| normalize_rows(half.pool(states.clone())));
                return Tensor::cat(halves.into(), 1) * FRAC_1_SQRT_2; // [b, 2d]
            }
        };
        rows.reshape([b, d])
    }
}

/// How the rows of a caption become one row, FNE Eq. (1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PiecePool {
    /// The mean over all real pieces, including `[CLS]` and `[SEP]`.
    #[default]
    Masked,
    /// The mean over all pieces and the padding, as in FNE's program. The embedding depends on the longest caption of
    /// the batch.
    All,
    /// The mean over the real pieces between `[CLS]` and `[SEP]`, as in FNE's paper; if there is none, over all real
    /// pieces.
    Words,
    /// The row of `[CLS]`.
    Class,
    /// The greatest value of each column over all real pieces.
    Max,
}

impl PiecePool {
    /// The name, as a configuration has it.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Pools `[b, l, d]` to `[b, d]`. The first and the last real piece of a caption are `[CLS]` and `[SEP]`.
    ///
    /// # Panics
    /// If the captions differ from the states in their number or their padded width.
    pub fn pool(self, states: Tensor<3>, captions: &TokenBatch) -> Tensor<2> {
        let [b, l, d] = states.dims();
        let (n, width) = (captions.len(), captions.width);
        captions.check_sizes();
        assert_eq!((b, l), (n, width), "states {:?} of captions [{n}, {width}]", [b, l, d]);
        match self {
            Self::Masked => masked_mean(states, &captions.lengths),
            Self::All => states.mean_dim(1).reshape([b, d]),
            Self::Class => states.narrow(1, 0, 1).reshape([b, d]),
            Self::Max => {
                // Padding must not win: it gets a value below every other.
                let row =
                    |&n: &usize| (0..l).map(move |j| if j < n { 0.0f32 } else { f32::MIN / 2.0 });
                let bias = captions.lengths.iter().flat_map(row).collect::<Vec<_>>();
                let bias =
                    Tensor::<3>::from_data(TensorData::new(bias, [b, l, 1]), &states.device());
                (states + bias).max_dim(1).reshape([b, d])
            }
            Self::Words => {
                let row = |&n: &usize| {
                    let words = if n > 2 { 1..n - 1 } else { 0..n };
                    let share = 1.0 / words.len() as f32;
                    (0..l).map(move |j| if words.contains(&j) { share } else { 0.0 })
                };
                let shares: Vec<f32> = captions.lengths.iter().flat_map(row).collect();
                let shares = TensorData::new(shares, [b, 1, l]);
                let shares = Tensor::<3>::from_data(shares, &states.device());
                shares.matmul(states).reshape([b, d])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn pooled(pool: impl Fn(Tensor<3>) -> Tensor<2>, rows: &[f32], shape: [usize; 3]) -> Vec<f32> {
        let states = TensorData::new(rows.to_vec(), shape);
        let pooled = pool(Tensor::from_data(states, &Device::flex()));
        assert_eq!(pooled.dims(), [shape[0], shape[2]]);
        pooled.into_data().try_to_vec().unwrap()
    }

    /// By hand: rows (1, 10), (2, 20), (6, 60).
    #[test]
    fn golden_images() {
        let of =
            |pool: ImagePool| pooled(|x| pool.pool(x), &[1., 10., 2., 20., 6., 60.], [1, 3, 2]);
        assert_eq!(of(ImagePool::All), [3., 30.]);
        assert_eq!(of(ImagePool::Patches), [4., 40.]);
        assert_eq!(of(ImagePool::Class), [1., 10.]);
    }

    /// By hand: class row (3, 4), patches (1, 0) and (3, 0). Unit halves (0.6, 0.8) and (1, 0), over √2.
    #[test]
    fn golden_class_beside_patches() {
        let rows = [3., 4., 1., 0., 3., 0.];
        let states = Tensor::from_data(TensorData::new(rows.to_vec(), [1, 3, 2]), &Device::flex());
        let got: Vec<f32> = ImagePool::ClassPatches.pool(states).into_data().try_to_vec().unwrap();
        let want = [0.6, 0.8, 1.0, 0.0].map(|x: f32| x / 2f32.sqrt());
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?}");
        assert_eq!(ImagePool::ClassPatches.width(2), got.len());
    }

    /// By hand: captions of four pieces, two pieces and one piece, padded to four.
    #[test]
    fn golden_captions() {
        let batch = TokenBatch::new(&[&[2, 7, 8, 3][..], &[2, 3], &[2]]);
        let rows = [1., 2., 6., 11., 4., 8., 100., 200., 5., 100., 100., 200.];
        let of = |pool: PiecePool| pooled(|x| pool.pool(x, &batch), &rows, [3, 4, 1]);
        assert_eq!(of(PiecePool::Masked), [5., 6., 5.]);
        assert_eq!(of(PiecePool::All), [5., 78., 101.25]);
        assert_eq!(of(PiecePool::Words), [4., 6., 5.]);
    }

    #[test]
    #[should_panic(expected = "states [1, 3, 2] of captions [1, 2]")]
    fn states_of_other_captions_are_refused() {
        let states = Tensor::zeros([1, 3, 2], &Device::flex());
        PiecePool::All.pool(states, &TokenBatch::new(&[&[1, 2]]));
    }
}
