//! Every operation of `itm-kernels`: an entry each.

use burn::tensor::{Device, Tensor};
use itm_kernels::{Gru, masked_mean, normalize_rows, uniform};

use crate::values::{Values, applied, learnt};

/// One operation: what it gives on a device with autodiff, gradients included.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Largest deviation from `cpu`, of [`crate::values::deviation`].
    pub(crate) bound: f64,
    pub(crate) run: fn(&Device) -> Values,
}

/// Widths are odd on purpose: no tile, no vector fits them.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "gru",
        bound: 1e-5,
        run: |d| learnt(Gru::seeded(7, 19, 1, d), x([4, 6, 7], d), |m, x| m.forward(x, &LENGTHS)),
    },
    Case { name: "normalize_rows", bound: 1e-5, run: |d| applied(x([5, 37], d), normalize_rows) },
    Case {
        name: "normalize_rows, a zero row",
        bound: 1e-5,
        run: |d| {
            let rows = Tensor::cat(vec![x([2, 37], d), Tensor::zeros([1, 37], d)], 0);
            applied(Tensor::from_data(rows.into_data(), d), normalize_rows)
        },
    },
    Case {
        name: "masked_mean",
        bound: 1e-5,
        run: |d| applied(x([4, 6, 37], d), |x| masked_mean(x, &LENGTHS)),
    },
];

/// Real steps of four sequences of six.
const LENGTHS: [usize; 4] = [3, 6, 1, 4];

/// The input.
fn x<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    uniform(shape, 1.0, 7, device)
}
