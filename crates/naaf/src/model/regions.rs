//! Regions to the joint space.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::Result;
use itm_core::start::LinearMap;
use itm_kernels::{Linear, embedding, matmul, random, uniform};

use crate::config::RegionMapKind;

/// Maps features of regions to the joint space, one row per region.
///
/// ```text
/// v = unit(W r + b),   W = weight,  or  g · weight / ‖weight‖
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | W, b | `linear` | `[x, d]`, `[d]` |
/// | g | `gain`, if there is one | `[1]` |
///
/// # Departures
/// The released program divides by `‖·‖ + 1e-8`. In f32 this is the same number for any row longer than 0.25. Here a row of zeros
/// stays a row of zeros, with a gradient of 0.
#[derive(Module, Debug)]
pub struct RegionMap {
    /// `[x, d]` with bias.
    pub linear: Linear,
    /// g: one factor for the whole matrix.
    pub gain: Option<Param<Tensor<1>>>,
}

impl RegionMap {
    /// Random weights: a function of the seed.
    ///
    /// # Panics
    /// If memory cannot hold the weight.
    pub(super) fn new(kind: RegionMapKind, [x, d]: [usize; 2], seed: u64, device: &Device) -> Self {
        match kind {
            RegionMapKind::Xavier => {
                let bound = (6.0 / (x as f32 + d as f32)).sqrt();
                let weight = uniform([x, d], bound, random::derive(seed, 0), device);
                let bias = Param::from_tensor(Tensor::zeros([d], device));
                Self { linear: Linear::new(Param::from_tensor(weight), bias), gain: None }
            }
            RegionMapKind::WeightNorm => Self::gained(Linear::seeded(x, d, seed, device)),
        }
    }

    /// A map with a gain that changes nothing yet.
    fn gained(linear: Linear) -> Self {
        let norm = norm(linear.weight.val()).inner();
        let device = linear.weight.val().device();
        let gain = Tensor::from_data(norm.into_data(), &device);
        Self { linear, gain: Some(Param::from_tensor(gain)) }
    }

    /// This map with the given weights, which have the same shape.
    pub(super) fn with_map(self, map: &LinearMap) -> Result<Self> {
        let weight = self.linear.weight.val();
        let (weight, bias) = map.parameters("map of regions", weight.dims(), &weight.device())?;
        let linear = Linear::new(weight, bias);
        Ok(if self.gain.is_some() { Self::gained(linear) } else { Self { linear, gain: None } })
    }

    /// Widths of a region's features and of a row.
    pub(crate) fn dims(&self) -> [usize; 2] {
        self.linear.weight.dims()
    }

    /// Mapped rows of regions, `[regions, d]`, before normalisation. `values` are row-major.
    pub(super) fn mapped(&self, values: Vec<f32>) -> Tensor<2> {
        let [x, _] = self.dims();
        let weight = self.linear.weight.val();
        let shape = [values.len() / x, x];
        let rows = Tensor::from_data(TensorData::new(values, shape), &weight.device());
        let Some(gain) = &self.gain else { return self.linear.forward(rows) };
        let factor = gain.val() / norm(weight.clone());
        let product = matmul(rows, weight) * factor.unsqueeze();
        product + self.linear.bias.val().unsqueeze()
    }
}

/// The root of the sum of all squares, `[1]`.
fn norm(weight: Tensor<2>) -> Tensor<1> {
    (weight.clone() * weight).sum().sqrt()
}

/// Rows of images, `[Σ counts, d]`, as `[images, r, d]`. The padding is a copy of the first row of all.
pub(super) fn padded(rows: Tensor<2>, counts: &[usize]) -> Tensor<3> {
    let (n, [all, d]) = (counts.len(), rows.dims());
    let r = counts.iter().copied().max().unwrap_or(0);
    if all == n * r {
        return rows.reshape([n, r, d]);
    }
    let mut ids = Vec::with_capacity(n * r);
    let mut at = 0;
    for &count in counts {
        ids.extend((0..r).map(|k| if k < count { at + k as u32 } else { 0 }));
        at += count as u32;
    }
    embedding(rows, &ids, None).reshape([n, r, d])
}
