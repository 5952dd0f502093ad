//! The four operations. Channels are the innermost axis: `[height · width, channels]`.

use half::f16;
use safetensors::{Dtype, SafeTensors};

use super::FeatureMap;
use super::graph::{Activation, Layer};
use super::product::product;
use crate::tiles::widest;
use crate::{Error, Result};

/// Channels that the depthwise convolution sums in registers.
const LANES: usize = 16;

/// Number of result values that are finished while they are still in the cache.
const BAND: usize = 1 << 15;

/// Weights in the order of the loops: `[k · k · in, out]` or, depthwise, `[k · k, channels]`.
#[derive(Debug)]
pub(super) struct Weights {
    kernel: Vec<f32>,
    bias: Vec<f32>,
}

impl Weights {
    pub(super) fn read(place: &str, tensors: &SafeTensors<'_>, layer: &Layer) -> Result<Self> {
        let [out, inner, k, _] = layer.shape;
        let file = floats(place, tensors, &format!("{}.weight", layer.name), &layer.shape)?;
        let bias = floats(place, tensors, &format!("{}.bias", layer.name), &[out])?;
        let mut kernel = vec![0.0; file.len()];
        for (at, v) in file.into_iter().enumerate() {
            let (o, i, tap) = (at / (inner * k * k), at / (k * k) % inner, at % (k * k));
            kernel[(tap * inner + i) * out + o] = v;
        }
        Ok(Self { kernel, bias })
    }
}

/// Reads a tensor of a given shape, f16 or f32, whose values must be finite.
pub(in crate::vision) fn floats(
    place: &str,
    tensors: &SafeTensors<'_>,
    name: &str,
    shape: &[usize],
) -> Result<Vec<f32>> {
    let place = format!("{place} {name}");
    let tensor = tensors.tensor(name).map_err(|_| Error::invalid(&place, "a tensor", "none"))?;
    if tensor.shape() != shape {
        let expected = format!("shape {shape:?}");
        return Err(Error::invalid(place, expected, format!("{:?}", tensor.shape())));
    }
    let bytes = tensor.data();
    let values: Vec<f32> = match tensor.dtype() {
        Dtype::F16 => bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).into()).collect(),
        Dtype::F32 => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        other => return Err(Error::invalid(place, "f16 or f32", format!("{other:?}"))),
    };
    match values.iter().find(|v| !v.is_finite()) {
        Some(bad) => Err(Error::invalid(place, "finite numbers", bad)),
        None => Ok(values),
    }
}

/// Size of the result along one side, and the padding before the input ("same" padding).
fn same(side: usize, k: usize, stride: usize) -> (usize, usize) {
    let out = side.div_ceil(stride);
    let total = ((out - 1) * stride + k).saturating_sub(side);
    (out, total / 2)
}

fn shape_out(input: &FeatureMap, layer: &Layer, out: &mut FeatureMap) -> (usize, usize) {
    let (k, stride) = (layer.shape[2], layer.stride);
    let (height, top) = same(input.height, k, stride);
    let (width, left) = same(input.width, k, stride);
    (out.height, out.width, out.channels) = (height, width, layer.shape[0]);
    out.values.resize(height * width * out.channels, 0.0);
    (top, left)
}

#[inline(always)]
fn activate(values: &mut [f32], activation: Activation) {
    if activation == Activation::Relu6 {
        values.iter_mut().for_each(|v| *v = v.clamp(0.0, 6.0));
    }
}

/// Convolution as a product of rows of patches with the weights. For a 1 × 1 kernel with stride 1 the patches are the
/// positions themselves.
pub(super) fn conv(
    input: &FeatureMap,
    layer: &Layer,
    weights: &Weights,
    patches: &mut Vec<f32>,
    out: &mut FeatureMap,
) {
    let [channels, inner, k, _] = layer.shape;
    let (top, left) = shape_out(input, layer, out);
    let depth = k * k * inner;
    let places = out.height * out.width;
    let band = (BAND / channels).max(1);
    for first in (0..places).step_by(band) {
        let range = first..(first + band).min(places);
        let rows = if k == 1 && layer.stride == 1 {
            &input.values[range.start * depth..range.end * depth]
        } else {
            patches.resize(band * depth, 0.0);
            let rows = &mut patches[..range.len() * depth];
            for (place, row) in range.clone().zip(rows.chunks_exact_mut(depth)) {
                patch(input, layer, (place / out.width, place % out.width), (top, left), row);
            }
            rows
        };
        let to = &mut out.values[range.start * channels..range.end * channels];
        widest(
            #[inline(always)]
            || to.chunks_exact_mut(channels).for_each(|row| row.copy_from_slice(&weights.bias)),
        );
        product(rows, &weights.kernel, channels, to);
        widest(
            #[inline(always)]
            || activate(to, layer.activation),
        );
    }
}

/// The input values under the kernel for one position of the result, `[k · k, in]`; zero outside the input.
fn patch(
    input: &FeatureMap,
    layer: &Layer,
    (y, x): (usize, usize),
    (top, left): (usize, usize),
    row: &mut [f32],
) {
    let k = layer.shape[2];
    let inner = input.channels;
    for (tap, to) in row.chunks_exact_mut(inner).enumerate() {
        let at = (y * layer.stride + tap / k, x * layer.stride + tap % k);
        match (at.0.checked_sub(top), at.1.checked_sub(left)) {
            (Some(sy), Some(sx)) if sy < input.height && sx < input.width => {
                to.copy_from_slice(&input.values[(sy * input.width + sx) * inner..][..inner]);
            }
            _ => to.fill(0.0),
        }
    }
}

/// Depthwise convolution: every channel has its own kernel.
pub(super) fn depthwise(
    input: &FeatureMap,
    layer: &Layer,
    weights: &Weights,
    out: &mut FeatureMap,
) {
    let (top, left) = shape_out(input, layer, out);
    let (k, stride) = (layer.shape[2], layer.stride);
    let (width, channels) = (out.width, out.channels);
    let row = input.width * channels;
    widest(
        #[inline(always)]
        || {
            for (place, out) in out.values.chunks_exact_mut(channels).enumerate() {
                let (y, x) = (place / width * stride, place % width * stride);
                // Taps inside the picture: y + ky − top in 0..height.
                let rows = top.saturating_sub(y)..k.min(input.height + top - y);
                let cols = left.saturating_sub(x)..k.min(input.width + left - x);
                let corner = |ky: usize| (y + ky - top) * row;
                let whole = channels - channels % LANES;
                for c in (0..whole).step_by(LANES) {
                    let mut sums = [0.0; LANES];
                    sums.copy_from_slice(&weights.bias[c..c + LANES]);
                    for ky in rows.clone() {
                        for kx in cols.clone() {
                            let from = corner(ky) + (x + kx - left) * channels + c;
                            let values = &input.values[from..from + LANES];
                            let taps = &weights.kernel[(ky * k + kx) * channels + c..][..LANES];
                            for i in 0..LANES {
                                sums[i] += taps[i] * values[i];
                            }
                        }
                    }
                    out[c..c + LANES].copy_from_slice(&sums);
                }
                #[allow(clippy::needless_range_loop)] // the channel counts in four places
                for c in whole..channels {
                    let mut sum = weights.bias[c];
                    for ky in rows.clone() {
                        for kx in cols.clone() {
                            let value = input.values[corner(ky) + (x + kx - left) * channels + c];
                            sum += weights.kernel[(ky * k + kx) * channels + c] * value;
                        }
                    }
                    out[c] = sum;
                }
                activate(out, layer.activation);
            }
        },
    );
}

pub(super) fn add(a: &FeatureMap, b: &FeatureMap, out: &mut FeatureMap) {
    assert_eq!((a.height, a.width, a.channels), (b.height, b.width, b.channels), "a sum of maps");
    out.values.clear();
    out.values.extend(a.values.iter().zip(&b.values).map(|(a, b)| a + b));
    (out.height, out.width, out.channels) = (a.height, a.width, a.channels);
}

pub(super) fn mean(input: &FeatureMap, out: &mut FeatureMap) {
    (out.height, out.width, out.channels) = (1, 1, input.channels);
    out.values.clear();
    out.values.resize(input.channels, 0.0);
    for place in input.values.chunks_exact(input.channels) {
        out.values.iter_mut().zip(place).for_each(|(sum, v)| *sum += v);
    }
    let places = (input.height * input.width) as f32;
    out.values.iter_mut().for_each(|sum| *sum /= places);
}
