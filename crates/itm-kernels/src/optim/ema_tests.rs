use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};

use super::ema;

#[derive(Module, Debug)]
struct Two {
    a: Param<Tensor<2>>,
    b: Param<Tensor<1>>,
}

fn two(a: [f32; 4], b: [f32; 2], device: &Device) -> Two {
    let a = Tensor::from_data(TensorData::new(a.to_vec(), [2, 2]), device);
    Two { a: Param::from_tensor(a), b: Param::from_tensor(Tensor::from_floats(b, device)) }
}

fn values(m: &Two) -> Vec<f32> {
    let mut all = m.a.val().into_data().try_to_vec::<f32>().unwrap();
    all.extend(m.b.val().into_data().try_to_vec::<f32>().unwrap());
    all
}

/// By hand: 0.75 · 1 + 0.25 · 5 = 2 and so on; `online` does not change.
#[test]
fn golden_one_update() {
    let online = two([5., 6., 7., 8.], [-4., 0.], &Device::flex().autodiff());
    let target = two([1., 2., 3., 4.], [0., 4.], &Device::flex());
    let target = ema(target, &online, 0.75);
    assert_eq!(values(&target), [2., 3., 4., 5., -1., 3.]);
    assert_eq!(values(&online), [5., 6., 7., 8., -4., 0.]);
}

/// After k updates towards a constant c, θᵐ is c + mᵏ (θ₀ − c). Here m = 0.995 and k = 1,000; half precision would
/// stop long before. Each update rounds once or twice at 2⁻²⁴; with this m, about the last 200 rounding errors add
/// up.
#[test]
fn a_thousand_updates_follow_the_closed_form() {
    let (start, goal) = ([1., -1., 0.5, 100.], [0.1, 0.3, 0.5, 99.]);
    let online = two(goal, [0., 1.], &Device::flex().autodiff());
    let mut target = two(start, [1., 0.], &Device::flex());
    for _ in 0..1000 {
        target = ema(target, &online, 0.995);
    }
    let left = 0.995f64.powi(1000);
    let pairs = start.into_iter().chain([1., 0.]).zip(goal.into_iter().chain([0., 1.]));
    for (got, (start, goal)) in values(&target).into_iter().zip(pairs) {
        let (start, goal) = (f64::from(start), f64::from(goal));
        let want = goal + left * (start - goal);
        let error = (f64::from(got) - want).abs();
        assert!(error < 2.5e-5 * want.abs().max(0.1), "got {got}, want {want}");
    }
}

#[test]
fn momentum_one_keeps_and_zero_copies() {
    let online = two([5., 6., 7., 8.], [1., 2.], &Device::flex());
    let target = || two([1., 2., 3., 4.], [0., 4.], &Device::flex());
    assert_eq!(values(&ema(target(), &online, 1.0)), values(&target()));
    assert_eq!(values(&ema(target(), &online, 0.0)), values(&online));
}

#[test]
#[should_panic(expected = "parameters of shape [2] and [3]")]
fn modules_that_differ_are_refused() {
    let device = Device::flex();
    let other = Two {
        b: Param::from_tensor(Tensor::zeros([3], &device)),
        ..two([0.; 4], [0.; 2], &device)
    };
    ema(two([0.; 4], [0.; 2], &device), &other, 0.5);
}

#[test]
#[should_panic(expected = "momentum 1.5, not in 0 to 1")]
fn a_momentum_out_of_range_is_refused() {
    let online = two([0.; 4], [0.; 2], &Device::flex());
    ema(online.clone(), &online, 1.5);
}
