//! Layers and functions on burn tensors.

mod activations;
mod attention;
mod block;
mod dropout;
mod linear;
mod norm;

use burn::backend::Dispatch;
use burn::module::{Module, Param};
use burn::tensor::{Device, Distribution, Tensor, TensorData};

use crate::ops::FusedOps;
use crate::random;

pub use activations::{gelu, softmax};
pub use attention::SelfAttention;
pub use block::{BlockShape, Memory, NormOrder, TransformerBlock};
pub use dropout::Dropout;
pub use linear::Linear;
pub use norm::LayerNorm;

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
        let drawn = Tensor::<1>::random([4], Distribution::Default, device).into_data();
        let fold = |seed, u: f32| random::derive(seed, u64::from(u.to_bits()));
        let seed = drawn.convert::<f32>().iter::<f32>().fold(0, fold);
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
    let values: Vec<f32> = (0..n).map(|k| bound * (2.0 * random::unit(seed, k) - 1.0)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn check_lengths(dims: [usize; 3], lengths: &[usize]) {
    assert_eq!(
        dims[0],
        lengths.len(),
        "sequences of shape {dims:?} with {} lengths",
        lengths.len()
    );
    for (row, &length) in lengths.iter().enumerate() {
        let steps = dims[1];
        assert!((1..=steps).contains(&length), "sequence {row}: length {length}, not 1 to {steps}");
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod elementwise_tests;
#[cfg(test)]
#[cfg(feature = "flex")]
mod testing;

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use super::testing::{close, values};
    use super::*;
    use crate::composed;
    use crate::ops::Params;

    const LENGTHS: [usize; 4] = [3, 5, 1, 4];

    /// The unit in burn's operations, on the dispatch backend: burn differentiates it.
    fn composed_gru(gru: &Gru, x: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
        let params = Params::<Dispatch> {
            w_ih: gru.w_ih.val().into_dispatch(),
            w_hh: gru.w_hh.val().into_dispatch(),
            b_ih: gru.b_ih.val().into_dispatch(),
            b_hh: gru.b_hh.val().into_dispatch(),
        };
        Tensor::from_dispatch(composed::gru::<Dispatch>(x.into_dispatch(), params, lengths).0)
    }

    /// Output and all gradients: the kernel, and the composed backward pass, against burn's own differentiation.
    #[test]
    fn gru_agrees_with_composed_and_autodiff() {
        let device = Device::flex().autodiff();
        let gru = Gru::seeded(3, 18, 5, &device);
        let x = uniform([4, 5, 3], 1.0, 6, &device).require_grad();
        let weights = uniform([4, 5, 18], 1.0, 7, &device);
        let fused = gru.forward(x.clone(), &LENGTHS);
        let composed = composed_gru(&gru, x.clone(), &LENGTHS);
        close("states", fused.clone(), composed.clone());
        let got = (fused * weights.clone()).sum().backward();
        let want = (composed * weights.clone()).sum().backward();
        close("x", x.grad(&got).unwrap(), x.grad(&want).unwrap());
        close("w_ih", gru.w_ih.val().grad(&got).unwrap(), gru.w_ih.val().grad(&want).unwrap());
        close("w_hh", gru.w_hh.val().grad(&got).unwrap(), gru.w_hh.val().grad(&want).unwrap());
        close("b_ih", gru.b_ih.val().grad(&got).unwrap(), gru.b_ih.val().grad(&want).unwrap());
        close("b_hh", gru.b_hh.val().grad(&got).unwrap(), gru.b_hh.val().grad(&want).unwrap());

        // The fallback's own backward pass.
        let plain = |t: Tensor<2>| t.inner().into_dispatch();
        let params = || Params::<Dispatch> {
            w_ih: plain(gru.w_ih.val()),
            w_hh: plain(gru.w_hh.val()),
            b_ih: gru.b_ih.val().inner().into_dispatch(),
            b_hh: gru.b_hh.val().inner().into_dispatch(),
        };
        let inner = x.clone().inner().into_dispatch();
        let (states, gates) = composed::gru::<Dispatch>(inner.clone(), params(), &LENGTHS);
        let grad = weights.inner().into_dispatch();
        let d = composed::gru_backward::<Dispatch>(inner, params(), states, gates, grad, &LENGTHS);
        close("composed x", Tensor::<3>::from_dispatch(d.x), x.grad(&want).unwrap());
        let w_ih = Tensor::<2>::from_dispatch(d.w_ih);
        close("composed w_ih", w_ih, gru.w_ih.val().grad(&want).unwrap());
        let w_hh = Tensor::<2>::from_dispatch(d.w_hh);
        close("composed w_hh", w_hh, gru.w_hh.val().grad(&want).unwrap());
        let b_ih = Tensor::<1>::from_dispatch(d.b_ih);
        close("composed b_ih", b_ih, gru.b_ih.val().grad(&want).unwrap());
        let b_hh = Tensor::<1>::from_dispatch(d.b_hh);
        close("composed b_hh", b_hh, gru.b_hh.val().grad(&want).unwrap());
    }

    /// Whatever else asks for a gradient, a tensor's own is the same; checkpointing on the device changes nothing.
    #[test]
    fn a_gradient_does_not_depend_on_who_else_asks() {
        let device = Device::flex().autodiff();
        let checkpointing = Device::flex().autodiff().gradient_checkpointing();
        let gradients = |gru: &Gru, x: &Tensor<3>| {
            let states = gru.forward(x.clone(), &LENGTHS);
            let grads = (states.clone() * states).sum().backward();
            (gru.w_hh.val().grad(&grads).map(values), x.grad(&grads).map(values))
        };
        let gru = Gru::seeded(3, 4, 1, &device);
        let x = uniform([4, 5, 3], 1.0, 2, &device);
        let (w_hh, dx) = gradients(&gru, &x.clone().require_grad());
        assert!(w_hh.is_some() && dx.is_some());
        assert_eq!(gradients(&gru, &x), (w_hh.clone(), None));
        let frozen = gru.clone().no_grad();
        assert_eq!(gradients(&frozen, &x.require_grad()), (None, dx.clone()));
        let x = uniform([4, 5, 3], 1.0, 2, &checkpointing).require_grad();
        assert_eq!(gradients(&Gru::seeded(3, 4, 1, &checkpointing), &x), (w_hh, dx));
    }

    /// An input that is a view (transposed, and past offset 0) is read as what it shows.
    #[test]
    fn views_are_read_as_what_they_show() {
        let device = Device::flex();
        let gru = Gru::seeded(3, 4, 1, &device);
        let wide = uniform([3, 6, 4], 1.0, 2, &device); // as [i, l + 1, b]
        let view = wide.permute([2, 1, 0]).narrow(1, 1, 5); // [b, l, i]
        let copy = Tensor::<3>::from_data(view.to_data(), &device);
        let (got, want) = (gru.forward(view, &LENGTHS), gru.forward(copy, &LENGTHS));
        assert_eq!(values(got), values(want));
    }

    #[test]
    fn unit_rows_agree_with_composed_and_autodiff() {
        let device = Device::flex().autodiff();
        let x = uniform([5, 19], 2.0, 3, &device).require_grad();
        let weights = uniform([5, 19], 1.0, 4, &device);
        let fused = normalize_rows(x.clone());
        let (y, norms) = composed::normalize_rows::<Dispatch>(x.clone().into_dispatch());
        let composed = Tensor::<2>::from_dispatch(y.clone());
        close("unit rows", fused.clone(), composed.clone());
        let got = x.grad(&(fused * weights.clone()).sum().backward()).unwrap();
        let want = x.grad(&(composed * weights.clone()).sum().backward()).unwrap();
        close("gradient", got, want.clone());
        let plain = |t| Tensor::<2>::from_dispatch(t).inner().into_dispatch();
        let grad = weights.inner().into_dispatch();
        let d = composed::normalize_rows_backward::<Dispatch>(plain(y), plain(norms), grad);
        close("composed gradient", Tensor::from_dispatch(d), want);
    }

    /// A row of zeros: no NaN forward, gradient zero, and its neighbour keeps its own. Kernel and fallback.
    #[test]
    fn a_zero_row_has_a_finite_gradient() {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::from_floats([[0., 0.], [3., 4.]], &device).require_grad();
        let y = normalize_rows(x.clone());
        assert_eq!(values(y.clone()), [0., 0., 0.6, 0.8]);
        let grads = y.slice([0..2, 0..1]).sum().backward();
        let d = values(x.grad(&grads).unwrap());
        assert_eq!(d[..2], [0., 0.]);
        assert!((d[2] - 0.64 / 5.0).abs() < 1e-6 && (d[3] + 0.48 / 5.0).abs() < 1e-6, "{d:?}");

        let (y, norms) = composed::normalize_rows::<Dispatch>(x.inner().into_dispatch());
        let grad = Tensor::<2>::from_floats([[1., 0.], [1., 0.]], &Device::flex()).into_dispatch();
        let d = composed::normalize_rows_backward::<Dispatch>(y, norms, grad);
        let d = values(Tensor::<2>::from_dispatch(d));
        assert!(d[..2] == [0., 0.] && (d[2] - 0.64 / 5.0).abs() < 1e-6, "{d:?}");
    }

    #[test]
    fn means_agree_with_composed_and_autodiff() {
        let device = Device::flex().autodiff();
        let x = uniform([4, 5, 7], 1.0, 8, &device).require_grad();
        let weights = uniform([4, 7], 1.0, 9, &device);
        let fused = masked_mean(x.clone(), &LENGTHS);
        let composed = composed::masked_mean::<Dispatch>(x.clone().into_dispatch(), &LENGTHS);
        let composed = Tensor::<2>::from_dispatch(composed);
        close("means", fused.clone(), composed.clone());
        let got = x.grad(&(fused * weights.clone()).sum().backward()).unwrap();
        let want = x.grad(&(composed * weights.clone()).sum().backward()).unwrap();
        close("gradient", got, want.clone());
        let grad = weights.inner().into_dispatch();
        let d = composed::masked_mean_backward::<Dispatch>(grad, &LENGTHS, 5);
        close("composed gradient", Tensor::from_dispatch(d), want);
    }

    /// Without gradients to track nothing is saved, and the answer is the same.
    #[test]
    fn inference_equals_training() {
        let device = Device::flex().autodiff();
        let gru = Gru::seeded(3, 8, 1, &device);
        let x = uniform([4, 5, 3], 1.0, 2, &device);
        let train = values(gru.forward(x.clone(), &LENGTHS));
        assert_eq!(values(gru.valid().forward(x.inner(), &LENGTHS)), train);
    }

    #[test]
    fn initial_weights_depend_on_the_seed_alone() {
        let device = Device::flex();
        let all = |g: Gru| {
            [values(g.w_ih.val()), values(g.w_hh.val()), values(g.b_ih.val()), values(g.b_hh.val())]
        };
        let first = all(Gru::seeded(30, 40, 1, &device));
        Tensor::<1>::random([9], Distribution::Default, &device); // another draw in between
        assert_eq!(all(Gru::seeded(30, 40, 1, &device)), first);
        assert_ne!(all(Gru::seeded(30, 40, 2, &device)), first);
        let bound = 1.0 / 40f32.sqrt();
        for part in &first {
            let (mean, largest) =
                part.iter().fold((0.0, 0.0f32), |(m, l), v| (m + v, l.max(v.abs())));
            assert!(largest <= bound && largest > 0.9 * bound);
            assert!((mean / part.len() as f32).abs() < bound * 2.0 / (part.len() as f32).sqrt());
        }
        device.seed(3);
        let drawn = all(Gru::new(30, 40, &device));
        device.seed(3);
        assert_eq!(all(Gru::new(30, 40, &device)), drawn);
        assert_ne!(all(Gru::new(30, 40, &device)), drawn);
    }

    #[test]
    #[should_panic(expected = "sequence 2: length 0, not 1 to 5")]
    fn an_empty_sequence_is_refused() {
        let device = Device::flex();
        Gru::seeded(3, 4, 1, &device).forward(Tensor::zeros([3, 5, 3], &device), &[1, 5, 0]);
    }

    #[test]
    #[should_panic(expected = "input of shape [1, 5, 2] for a unit of width 3")]
    fn another_width_is_refused() {
        let device = Device::flex();
        Gru::seeded(3, 4, 1, &device).forward(Tensor::zeros([1, 5, 2], &device), &[5]);
    }
}
