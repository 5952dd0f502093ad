//! Layers and functions on burn tensors.

use burn::backend::Dispatch;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};

use crate::ops::FusedOps;
use crate::random;

/// A gated recurrent unit over whole sequences: one operation forward, one backward. Equations: [`crate::gru`].
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Distribution, Tensor};
/// use itm_kernels::Gru;
///
/// let device = Device::flex();
/// let gru = Gru::seeded(3, 4, 7, &device);
/// let x = Tensor::<3>::random([2, 5, 3], Distribution::Default, &device);
/// let states = gru.forward(x, &[5, 2]); // the second sequence has two real steps
/// assert_eq!(states.dims(), [2, 5, 4]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct Gru {
    /// `[input, 3·hidden]`, gates r, z, n.
    pub w_ih: Param<Tensor<2>>,
    /// `[hidden, 3·hidden]`
    pub w_hh: Param<Tensor<2>>,
    /// `[3·hidden]`
    pub b_ih: Param<Tensor<1>>,
    /// `[3·hidden]`
    pub b_hh: Param<Tensor<1>>,
}

impl Gru {
    /// Weights and biases uniform in ±1/√hidden, as PyTorch, drawn from the device's generator.
    pub fn new(input: usize, hidden: usize, device: &Device) -> Self {
        let seed = Tensor::<1>::random([4], burn::tensor::Distribution::Default, device);
        let bits = seed.into_data().convert::<f32>().into_vec::<f32>().unwrap_or_default();
        let seed = bits.iter().fold(0, |seed, u| random::derive(seed, u64::from(u.to_bits())));
        Self::seeded(input, hidden, seed, device)
    }

    /// Weights and biases uniform in ±1/√hidden: a function of the seed alone.
    pub fn seeded(input: usize, hidden: usize, seed: u64, device: &Device) -> Self {
        let bound = 1.0 / (hidden as f32).sqrt();
        let seed = |part| random::derive(seed, part);
        Self {
            w_ih: Param::from_tensor(uniform([input, 3 * hidden], bound, seed(0), device)),
            w_hh: Param::from_tensor(uniform([hidden, 3 * hidden], bound, seed(1), device)),
            b_ih: Param::from_tensor(uniform([3 * hidden], bound, seed(2), device)),
            b_hh: Param::from_tensor(uniform([3 * hidden], bound, seed(3), device)),
        }
    }

    /// States of every step, `[b, l, i]` to `[b, l, h]`; the first state is zero.
    ///
    /// A padded step repeats the state of the last real one, so the last step holds every sequence's final state. The
    /// input's gradient is zero on padded steps.
    ///
    /// # Panics
    /// If a length is 0 or more than `l`, or `x` is not `[lengths.len(), l, input]`.
    pub fn forward(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
        let (dims, [input, _]) = (x.dims(), self.w_ih.dims());
        check_lengths(dims, lengths);
        assert_eq!(dims[2], input, "input of shape {dims:?} for a unit of width {input}");
        Tensor::from_dispatch(<Dispatch as FusedOps>::gru(
            x.into_dispatch(),
            self.w_ih.val().into_dispatch(),
            self.w_hh.val().into_dispatch(),
            self.b_ih.val().into_dispatch(),
            self.b_hh.val().into_dispatch(),
            lengths.to_vec(),
        ))
    }
}

/// Rows of unit length: `x / max(‖x‖, 1e-12)`.
///
/// # Departures
/// A row no longer than 1e-12 has the gradient 0 instead of 10¹²: finite, and no step survives the latter.
pub fn normalize_rows(x: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as FusedOps>::normalize_rows_saving(x.into_dispatch()).0)
}

/// Mean over the real steps, `[b, l, w]` to `[b, w]`; padded steps get the gradient 0.
///
/// # Panics
/// If a length is 0 or more than `l`, or there are not `b` of them.
pub fn masked_mean(x: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
    check_lengths(x.dims(), lengths);
    let mean = <Dispatch as FusedOps>::masked_mean(x.into_dispatch(), lengths.to_vec());
    Tensor::from_dispatch(mean)
}

/// A tensor uniform in `±bound`: a function of the seed and the position alone.
pub fn uniform<const D: usize>(
    shape: [usize; D],
    bound: f32,
    seed: u64,
    device: &Device,
) -> Tensor<D> {
    let n = shape.iter().product::<usize>() as u64;
    let values: Vec<f32> =
        (0..n).map(|k| bound * (2.0 * random::unit(seed, k) - 1.0)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn check_lengths(dims: [usize; 3], lengths: &[usize]) {
    assert_eq!(dims[0], lengths.len(), "sequences of shape {dims:?} with {} lengths", lengths.len());
    for (row, &length) in lengths.iter().enumerate() {
        let steps = dims[1];
        assert!((1..=steps).contains(&length), "sequence {row}: length {length}, not 1 to {steps}");
    }
}
