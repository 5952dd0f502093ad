//! A batch in parts: memory for the activations of one part, the gradients of the whole batch.
//!
//! ```text
//! 1.  v̄, w̄ of every part, without a graph
//! 2.  loss of the whole batch;  g = ∂loss/∂v̄, h = ∂loss/∂w̄
//! 3.  part by part once more, with a graph:  ∂(Σ g ⊙ v̄ + Σ h ⊙ w̄)/∂θ, added up
//! ```
//!
//! The sum over the parts is ∂loss/∂θ of the whole batch, in whatever way the loss compares its pairs; one more forward
//! pass is the price. Noise is a function of the seed, so the second pass drops what the first did.

use std::ops::Range;

use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::Tensor;
use itm_core::encoders::TokenBatch;

use crate::host::host;
use crate::model::{Dropout, Encoders, derive};

/// Pairs that are encoded together.
struct Part {
    features: Range<usize>,
    tokens: TokenBatch,
    number: u64,
}

/// The inputs of a step.
pub(super) struct Parts<'a> {
    features: &'a [f32],
    parts: Vec<Part>,
    dropout: f64,
}

/// Embeddings of a batch, `[b, d]` each, asking for their gradient.
pub(super) struct Embedded {
    pub(super) images: Tensor<2>,
    pub(super) texts: Tensor<2>,
}

impl<'a> Parts<'a> {
    /// At most `size` pairs in each.
    pub(super) fn new<C: AsRef<[u32]>>(
        features: &'a [f32],
        texts: &[C],
        size: usize,
        dropout: f64,
    ) -> Self {
        let dim = features.len() / texts.len();
        let part = |(number, texts): (usize, &[C])| {
            let first = number * size * dim;
            Part {
                features: first..first + texts.len() * dim,
                tokens: TokenBatch::new(texts),
                number: number as u64,
            }
        };
        Self { features, parts: texts.chunks(size).enumerate().map(part).collect(), dropout }
    }

    /// v̄ and w̄ of a part; `seed` is that of the encoders' noise in this step.
    fn encode(&self, model: &Encoders, part: &Part, seed: u64) -> [Tensor<2>; 2] {
        // The first part has the noise of an undivided batch.
        let seed = if part.number == 0 { seed } else { derive(seed, 16 + part.number) };
        let noise = Dropout::training(self.dropout, seed);
        let images = model.images(&self.features[part.features.clone()], noise);
        [images, model.texts(&part.tokens, noise)]
    }

    /// Embeddings by the online encoders.
    pub(super) fn embed(&self, online: &Encoders, seed: u64) -> Embedded {
        let [images, texts] = match self.parts.as_slice() {
            [whole] => self.encode(online, whole, seed),
            parts => {
                let plain = online.valid();
                let encoded = parts.iter().map(|part| self.encode(&plain, part, seed));
                let (images, texts) = encoded.map(<(_, _)>::from).unzip::<_, _, Vec<_>, Vec<_>>();
                [images, texts].map(|rows| Tensor::from_inner(Tensor::cat(rows, 0)).require_grad())
            }
        };
        Embedded { images, texts }
    }

    /// What [`embed`](Self::embed) gives as one graph: what the gradients by parts are tested against.
    #[cfg(test)]
    pub(super) fn in_one_graph(&self, online: &Encoders, seed: u64) -> [Tensor<2>; 2] {
        let encoded = self.parts.iter().map(|part| self.encode(online, part, seed));
        let (images, texts) = encoded.map(<(_, _)>::from).unzip::<_, _, Vec<_>, Vec<_>>();
        [images, texts].map(|rows| Tensor::cat(rows, 0))
    }

    /// Embeddings by encoders without gradients, on the host.
    pub(super) fn embed_plainly(&self, model: &Encoders, seed: u64) -> [Vec<f32>; 2] {
        let mut all = [vec![], vec![]];
        for part in &self.parts {
            let encoded = self.encode(model, part, seed);
            all.iter_mut().zip(encoded).for_each(|(all, rows)| all.extend(host(rows)));
        }
        all
    }

    /// Gradients of the online encoders for a loss of their embeddings.
    pub(super) fn gradients(
        &self,
        online: &Encoders,
        embedded: &Embedded,
        loss: &Tensor<1>,
        seed: u64,
    ) -> GradientsParams {
        let grads = loss.backward();
        if self.parts.len() == 1 {
            return GradientsParams::from_grads(grads, online);
        }
        let of = |x: &Tensor<2>| x.grad(&grads).unwrap_or_else(|| x.clone().inner().zeros_like());
        let wanted = [of(&embedded.images), of(&embedded.texts)];
        let (mut sum, mut first) = (GradientsAccumulator::new(), 0);
        for part in &self.parts {
            let rows = part.tokens.len();
            let encoded = self.encode(online, part, seed);
            let [images, texts] = [0, 1].map(|side| {
                let grad = wanted[side].clone().narrow(0, first, rows);
                (encoded[side].clone() * Tensor::from_inner(grad)).sum()
            });
            let grads = (images + texts).backward();
            sum.accumulate(online, GradientsParams::from_grads(grads, online));
            first += rows;
        }
        sum.grads()
    }
}
