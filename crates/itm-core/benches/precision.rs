//! How far bf16 moves outputs and gradients, at full size: ViT-B/16 on 4 images of 224 px and BERT-base on 8 captions of
//! 32 words, with random weights. Nothing is timed.
//!
//! ```text
//! cargo bench -p itm-core --bench precision --features burn,itm-kernels/flex
//! ```
//!
//! The loss is the sum of the output, each value times a random weight. The figures compare with f32: the cosine of the
//! output, the cosine of all gradients as one vector, and the lowest cosine of a single parameter's gradient.

#![allow(clippy::print_stdout)] // a benchmark prints

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use itm_core::encoders::{Bert, BertShape, TokenBatch, Vit, VitShape};
use itm_kernels::{Noise, Precision, bf16, uniform};

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return; // `cargo test --benches` starts it too
    }
    if !bf16::supported() {
        println!("this processor has no AVX512-BF16: precision bf16 computes in f32");
        return;
    }
    let device = Device::flex().autodiff();
    let shape = VitShape { image: [224, 224], ..VitShape::base_16_384() };
    let pixels = uniform([4, 3, 224, 224], 1.0, 1, &device);
    let vit = Vit::seeded(&shape, 1, &device);
    compare("ViT-B/16", [vit.clone(), vit.with_precision(Precision::Bf16)], |model| {
        model.forward(pixels.clone(), Noise::Off)
    });
    let shape = BertShape::base_uncased();
    let piece = |row: u32, column: u32| 1 + (row * 32 + column) * 7919 % 30_521;
    let pieces: Vec<Vec<u32>> =
        (0..8).map(|row| (0..32).map(|column| piece(row, column)).collect()).collect();
    let captions = TokenBatch::new(&pieces);
    let bert = Bert::seeded(&shape, 1, &device);
    compare("BERT-base", [bert.clone(), bert.with_precision(Precision::Bf16)], |model| {
        model.forward(&captions, Noise::Seeded(5))
    });
}

/// Prints the figures of a model in f32 and in bf16.
fn compare<M: Module>(name: &str, models: [M; 2], forward: impl Fn(&M) -> Tensor<3>) {
    let [(y, gradients), (rounded_y, rounded)] = models.map(|model| {
        let y = forward(&model);
        let weights = uniform(y.dims(), 1.0, 3, &y.device());
        let loss = (y.clone() * weights).sum();
        let mut all = All { gradients: loss.backward(), values: vec![] };
        model.visit(&mut all);
        (values(y), all.values)
    });
    assert_eq!(gradients.len(), rounded.len(), "gradients in both precisions");
    let each: Vec<[f64; 3]> = gradients.iter().zip(&rounded).map(|(a, b)| products(a, b)).collect();
    let all = [0, 1, 2].map(|k| each.iter().map(|products| products[k]).sum());
    // `min` passes over NaN, the cosine of a gradient that is 0.
    let lowest = each.iter().map(|products| cosine(*products)).fold(1.0, f64::min);
    println!("{name}: 1 − cosine of the output {:.1e}", 1.0 - cosine(products(&y, &rounded_y)));
    println!("  of all {} gradients {:.1e}", each.len(), 1.0 - cosine(all));
    println!("  of the parameter that moves most {:.1e}", 1.0 - lowest);
}

/// `a·b`, `a·a`, `b·b`.
fn products(a: &[f32], b: &[f32]) -> [f64; 3] {
    let dot =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    [dot(a, b), dot(a, a), dot(b, b)]
}

fn cosine([ab, aa, bb]: [f64; 3]) -> f64 {
    ab / (aa * bb).sqrt()
}

/// The gradients of a module's parameters, in the order of the module. A parameter without a gradient is left out.
struct All {
    gradients: Gradients,
    values: Vec<Vec<f32>>,
}

impl ModuleVisitor for All {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad(&self.gradients) {
            self.values.push(values(gradient));
        }
    }
}

fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_into_vec().expect("32-bit values")
}
