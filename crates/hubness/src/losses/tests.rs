mod formula;
mod golden;
mod traps;

use burn::tensor::{Device, Tensor, TensorData};
use itm_core::host;
use serde_json::Value;

use super::*;

const MARGIN: f64 = 0.2;

/// A square matrix that requires its gradient.
fn square(values: &[f32]) -> Tensor<2> {
    let b = values.len().isqrt();
    matrix(values, b)
}

fn matrix(values: &[f32], width: usize) -> Tensor<2> {
    let data = TensorData::new(values.to_vec(), [values.len() / width, width]);
    Tensor::from_data(data, &Device::flex().autodiff()).require_grad()
}

/// Value of a loss and its gradient in the scores.
fn value_and_gradient(
    values: &[f32],
    loss: impl FnOnce(Tensor<2>) -> Tensor<1>,
) -> (f32, Vec<f32>) {
    let s = square(values);
    let loss = loss(s.clone());
    let value = host(loss.clone())[0];
    let grads = loss.backward();
    (value, s.grad(&grads).map_or_else(|| vec![0.0; values.len()], host))
}

fn total([i2t, t2i]: [Tensor<2>; 2]) -> Tensor<1> {
    i2t.sum() + t2i.sum()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn floats(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|x| x as f32).collect()
}

/// Fails where two rows of numbers differ by more than `tolerance`; the difference is relative where `want` is above 1.
fn close(name: &str, got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{name}: length");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let d = (f64::from(g) - w).abs() / w.abs().max(1.0);
        assert!(d <= tolerance, "{name}[{i}]: got {g}, want {w}");
    }
}

fn differ(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).any(|(a, b)| (a - b).abs() > 1e-4)
}
