//! The element-wise and row operations on tensors: kernels and fallbacks against burn's own differentiation.

use burn::backend::tensor::FloatTensor;
use burn::module::Param;

use super::*;
use crate::Activation;
use crate::dropout::Mask;
use crate::ops::{self, ElementwiseOps};
use crate::random::Noise;
use crate::tests::{close, values};

type Primitive = FloatTensor<Dispatch>;

/// Checks a function of one tensor: the kernel, the fallback and the backward pass of the fallback, against burn's
/// differentiation of the fallback.
fn check(
    name: &str,
    x: Tensor<2>,
    fused: impl Fn(Tensor<2>) -> Tensor<2>,
    composed: impl Fn(Primitive) -> Primitive,
    composed_backward: impl Fn(Primitive, Primitive, Primitive) -> Primitive,
) {
    let device = Device::flex().autodiff();
    let c = uniform(x.dims(), 1.0, 99, &device);
    let x = x.require_grad();
    let y = fused(x.clone());
    let want_y = Tensor::<2>::from_dispatch(composed(x.clone().into_dispatch()));
    close(name, y.clone(), want_y.clone());
    let got = x.grad(&(y * c.clone()).sum().backward()).unwrap();
    let want = x.grad(&(want_y.clone() * c.clone()).sum().backward()).unwrap();
    close(&format!("{name}'s gradient"), got, want.clone());
    let plain = |t: Tensor<2>| t.inner().into_dispatch();
    let d = composed_backward(plain(x.clone()), plain(want_y), plain(c.clone()));
    close(&format!("{name}'s composed gradient"), Tensor::from_dispatch(d), want.clone());

    // x as a transposed view with an offset, so its gradient passes through the view.
    let [n, w] = x.dims();
    let edge = Tensor::zeros([w, 1], &device);
    let wide = Tensor::cat(vec![edge, x.detach().transpose()], 1).detach().require_grad();
    let view = wide.clone().narrow(1, 1, n).transpose();
    let grads = (fused(view).transpose() * c.transpose()).sum().backward();
    let got = wide.grad(&grads).unwrap().narrow(1, 1, n).transpose();
    close(&format!("{name}'s gradient through a view"), got, want);
}

#[test]
fn activations_agree_with_composed_and_autodiff() {
    use crate::Activation::{Gelu, GeluTanh, QuickGelu};
    use ops::elementwise::{composed_activation, composed_activation_backward};
    for f in [Gelu, QuickGelu, GeluTanh] {
        let x = uniform([7, 45], 4.0, 1, &Device::flex().autodiff());
        check(
            &format!("{f:?}"),
            x,
            |x| f.of(x),
            |x| composed_activation::<Dispatch>(x, f),
            |x, _, g| composed_activation_backward::<Dispatch>(x, g, f),
        );
    }
}

/// The gradient is the same if burn recomputes the cheap results of its own operations instead of keeping them.
#[test]
fn the_gradient_of_gelu_is_the_same_on_a_device_that_keeps_little() {
    let gradient = |device: &Device| {
        let x = uniform([5, 40], 3.0, 1, device).require_grad();
        let grads = Activation::Gelu
            .of(Activation::Gelu.of(x.clone() * 2.0))
            .powi_scalar(2)
            .sum()
            .backward();
        values(x.grad(&grads).unwrap())
    };
    let device = Device::flex().autodiff();
    assert_eq!(gradient(&device.clone().gradient_checkpointing()), gradient(&device));
}

/// Like the kernel, the fallback ignores entries that do not count, and a row where no entry counts is zero.
#[test]
fn the_fallback_of_softmax_masks_as_the_kernel() {
    let nan = f32::NAN;
    let rows = [[1.0, 1.0, nan], [nan, nan, nan], [0.0, 0.0, 0.0]];
    let x = || Tensor::<2>::from_floats(rows, &Device::flex()).into_dispatch();
    let want = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0];
    let kernel = <Dispatch as ops::AttentionOps>::masked_softmax(x(), vec![2, 0, 3]);
    assert_eq!(values(Tensor::<2>::from_dispatch(kernel)), want);
    let fallback = crate::composed::attention::masked_softmax::<Dispatch>(x(), &[2, 0, 3]);
    assert_eq!(values(Tensor::<2>::from_dispatch(fallback)), want);
}

/// y and the gradients of x, γ and β.
#[test]
fn layer_norm_agrees_with_composed_and_autodiff() {
    let device = Device::flex().autodiff();
    let mut norm = LayerNorm::new(45, 1e-12, &device);
    norm.gamma = Param::from_tensor(uniform([45], 1.0, 1, &device));
    norm.beta = Param::from_tensor(uniform([45], 1.0, 2, &device));
    let params = || (norm.gamma.val().into_dispatch(), norm.beta.val().into_dispatch());
    let composed = |x: Primitive| {
        let (gamma, beta) = params();
        ops::layer_norm::composed::<Dispatch>(x, gamma, beta, 1e-12).0
    };
    let composed_backward = |x: Primitive, grad: Primitive| {
        let gamma = norm.gamma.val().inner().into_dispatch();
        let beta = norm.beta.val().inner().into_dispatch();
        let (_, saved) =
            ops::layer_norm::composed::<Dispatch>(x.clone(), gamma.clone(), beta, 1e-12);
        ops::layer_norm::composed_backward::<Dispatch>(x, gamma, saved, grad)
    };
    let x = uniform([7, 45], 1.0, 3, &device);
    check("norm", x.clone(), |x| norm.forward(x), composed, |x, _, g| composed_backward(x, g).0);

    let c = uniform([7, 45], 1.0, 5, &device);
    let gradients = |y: Tensor<2>| {
        let grads = (y * c.clone()).sum().backward();
        [&norm.gamma, &norm.beta].map(|p| p.val().grad(&grads).unwrap())
    };
    let want = gradients(Tensor::from_dispatch(composed(x.clone().into_dispatch())));
    let got = gradients(norm.forward(x.clone()));
    for (name, got, want) in [("γ", &got[0], &want[0]), ("β", &got[1], &want[1])] {
        close(name, got.clone(), want.clone());
    }
    let d = composed_backward(x.inner().into_dispatch(), c.clone().inner().into_dispatch());
    let [gamma, beta] = want;
    close("composed γ", Tensor::from_dispatch(d.1), gamma);
    close("composed β", Tensor::from_dispatch(d.2), beta);
}

fn fused_sum(x: Tensor<2>, r: Tensor<2>, mask: Option<Mask>) -> Tensor<2> {
    let (x, r) = (x.into_dispatch(), r.into_dispatch());
    Tensor::from_dispatch(<Dispatch as ElementwiseOps>::fused_sum(x, r, mask))
}

/// The sum overwrites a summand only if nobody else holds that summand.
#[test]
fn a_summand_that_others_see_is_not_changed() {
    let device = Device::flex();
    let of = |seed| uniform([3, 20], 1.0, seed, &device);
    let sum = |x: Tensor<2>, r: Tensor<2>| values(fused_sum(x, r, None));
    let (x, r) = (of(1), of(2));
    for (a, b) in [(x.clone(), r.clone()), (x.clone(), of(2)), (of(1), r.clone())] {
        assert_eq!(sum(a, b), values(of(1) + of(2)));
    }
    assert_eq!(sum(x.clone(), x.clone()), values(of(1) + of(1)));
    let dropout = Dropout::new(0.5);
    let noise = Noise::Seeded(1);
    let dropped = values(dropout.forward(of(1), noise));
    assert_eq!(values(dropout.forward(x.clone(), noise)), dropped);
    Activation::Gelu.of(x.clone());
    assert_eq!((values(x), values(r)), (values(of(1)), values(of(2))));
}

#[test]
fn layers_keep_the_shape() {
    let device = Device::flex();
    let x = uniform([2, 3, 4, 20], 1.0, 1, &device);
    let norm = LayerNorm::new(20, 1e-5, &device);
    let flat = |x: Tensor<4>| x.reshape([24, 20]);
    let y = norm.forward(x.clone());
    assert_eq!(values(flat(y)), values(norm.forward(flat(x.clone()))));
    assert_eq!(
        values(flat(Activation::Gelu.of(x.clone()))),
        values(Activation::Gelu.of(flat(x.clone())))
    );
}

#[test]
#[should_panic(expected = "input of shape [2, 19] for a norm of width 20")]
fn another_width_is_refused() {
    let device = Device::flex();
    LayerNorm::new(20, 1e-5, &device).forward(Tensor::<2>::zeros([2, 19], &device));
}

#[test]
#[should_panic(expected = "a norm of width 20 with ε 1000")]
fn an_epsilon_beyond_f32_is_refused() {
    LayerNorm::new(20, 1e39, &Device::flex());
}

/// Tensors have the same mask as the vector half. The gradient has the same zeros. The sum adds the other tensor.
#[test]
fn dropout_agrees_with_composed_and_autodiff() {
    for (rate, seed) in [(0.1, 3), (0.5, 4)] {
        let (dropout, noise) = (Dropout::new(rate), Noise::Seeded(seed));
        let mask = Mask::new(rate, seed);
        let composed = |x| ops::elementwise::composed_dropout::<Dispatch>(x, mask);
        let x = uniform([7, 45], 1.0, 1, &Device::flex().autodiff());
        check("dropout", x.clone(), |x| dropout.forward(x, noise), composed, |_, _, g| composed(g));
        let r = uniform([7, 45], 1.0, 2, &Device::flex().autodiff()).require_grad();
        let plus = |x| (Tensor::<2>::from_dispatch(composed(x)) + r.clone()).into_dispatch();
        let sum = |x: Tensor<2>| fused_sum(x, r.clone(), Some(mask));
        check("sum", x.clone(), sum, plus, |_, _, g| composed(g));
        let plain = |x: Tensor<2>| fused_sum(x, r.clone(), None);
        let plus = |x| (Tensor::<2>::from_dispatch(x) + r.clone()).into_dispatch();
        check("sum without a mask", x.clone(), plain, plus, |_, _, g| g);
        let c = uniform([7, 45], 1.0, 3, &Device::flex().autodiff());
        for y in [sum(x.clone()), plain(x)] {
            let grads = (y * c.clone()).sum().backward();
            assert_eq!(values(r.grad(&grads).unwrap()), values(c.clone()), "the other summand");
        }
    }
}

#[test]
fn dropout_off_is_the_identity() {
    let device = Device::flex();
    let x = uniform([3, 20], 1.0, 1, &device);
    for (rate, noise) in [(0.5, Noise::Off), (0.0, Noise::Seeded(1))] {
        let dropout = Dropout::new(rate);
        assert_eq!(values(dropout.forward(x.clone(), noise)), values(x.clone()));
    }
    let on = Dropout::new(0.5);
    let dropped = values(on.forward(x.clone(), Noise::Seeded(1)));
    assert_ne!(dropped, values(on.forward(x.clone(), Noise::Seeded(2))), "another seed");
    assert_eq!(dropped, values(on.forward(x, Noise::Seeded(1))), "the same seed");
}

/// The kernel, the fallback and the backward pass of the fallback, against burn's differentiation of the fallback.
/// One text is inside every image, and the texts are a view.
#[test]
fn order_similarity_agrees_with_composed_and_autodiff() {
    let device = Device::flex().autodiff();
    let images = uniform([6, 45], 1.0, 1, &device).require_grad();
    let wide = Tensor::cat(
        vec![uniform([46, 7], 1.0, 2, &device), Tensor::full([46, 1], -2.0, &device)],
        1,
    );
    let wide = wide.detach().require_grad();
    let texts = || wide.clone().narrow(0, 1, 45).transpose(); // a new graph each time
    let c = uniform([6, 8], 1.0, 99, &device);
    let got = order_similarity(images.clone(), texts());
    let (i, t) = (images.clone().into_dispatch(), texts().into_dispatch());
    let want = Tensor::<2>::from_dispatch(crate::composed::order::forward::<Dispatch>(i, t));
    close("scores", got.clone(), want.clone());
    let grads = |s: &Tensor<2>| (s.clone() * c.clone()).sum().backward();
    let (got, by_burn) = (grads(&got), grads(&want));
    let [to_images, to_wide] = [&images, &wide].map(|x| x.grad(&by_burn).unwrap());
    close("the images' gradient", images.grad(&got).unwrap(), to_images.clone());
    close("the texts' gradient", wide.grad(&got).unwrap(), to_wide.clone());
    let plain = |t: Tensor<2>| t.inner().into_dispatch();
    let d = crate::composed::order::backward::<Dispatch>(
        plain(images.clone()),
        plain(texts()),
        plain(want),
        plain(c),
    );
    close("the images' composed gradient", Tensor::from_dispatch(d.0), to_images);
    let to_texts = to_wide.narrow(0, 1, 45).transpose();
    close("the texts' composed gradient", Tensor::from_dispatch(d.1), to_texts);
}

#[test]
#[should_panic(expected = "images of shape [2, 5] against texts of shape [3, 4]")]
fn order_embeddings_of_two_widths_are_refused() {
    let zeros = |shape| Tensor::<2>::zeros(shape, &Device::flex());
    order_similarity(zeros([2, 5]), zeros([3, 4]));
}
