//! A batch in parts: only one part's activations are in memory, but the gradients are for the whole batch.
//!
//! ```text
//! 1.  v̄, w̄ of every part, without a graph
//! 2.  loss of the whole batch;  g = ∂loss/∂v̄, h = ∂loss/∂w̄
//! 3.  part by part once more, with a graph:  ∂(Σ g ⊙ v̄ + Σ h ⊙ w̄)/∂θ, added up
//! ```
//!
//! The sum over the parts is ∂loss/∂θ of the whole batch, for every loss over its pairs. The price is one more forward
//! pass. Noise is a function of the seed, so the second pass drops the same values as the first.

use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::Tensor;

use super::{CaptionInput, Encoders, ImageInput, TextConfig, TextEncoder};
use crate::learn::Images;

/// Pairs that are encoded together.
struct PairChunk {
    first: usize,
    pairs: usize,
    captions: CaptionInput,
    number: u64,
}

/// Makes v̄ and w̄ of a part. The number of the part is for its dropout masks.
pub(crate) type EncodePart<'a> =
    &'a dyn Fn(&Encoders, Images<'_>, &CaptionInput, u64) -> [Tensor<2>; 2];

/// The inputs of a step, in parts.
///
/// | step of the method | function |
/// |---|---|
/// | v̄ and w̄ of the batch, with gradients | [`embed`](Self::embed) |
/// | the same by encoders without gradients | [`joined`](Self::joined) |
/// | ∂loss/∂θ | [`gradients`](Self::gradients) |
pub struct StepInputs<'a> {
    images: &'a ImageInput<'a>,
    parts: Vec<PairChunk>,
}

/// Embeddings of a batch, `[b, d]` each, with gradients.
pub struct BatchEmbeddings {
    /// v̄
    pub images: Tensor<2>,
    /// w̄
    pub texts: Tensor<2>,
}

impl<'a> StepInputs<'a> {
    /// Parts of at most `size` pairs. If embeddings depend on padding, all parts are as wide as the longest caption of the batch.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn new<C: AsRef<[u32]>>(
        images: &'a ImageInput<'a>,
        texts: &[C],
        size: usize,
        (encoder, config): (&TextEncoder, &TextConfig),
    ) -> Self {
        let longest = texts.iter().map(|text| text.as_ref().len()).max().unwrap_or(0);
        let width = config.padding_counts().then_some(longest);
        let part = |(number, texts): (usize, &[C])| {
            let captions = encoder.read(texts, width);
            PairChunk { first: number * size, pairs: texts.len(), captions, number: number as u64 }
        };
        Self { images, parts: texts.chunks(size).enumerate().map(part).collect() }
    }

    fn encode(&self, model: &Encoders, part: &PairChunk, encode: EncodePart) -> [Tensor<2>; 2] {
        encode(model, self.images.part(part.first, part.pairs), &part.captions, part.number)
    }

    /// Embeddings by the encoders that learn.
    pub fn embed(&self, online: &Encoders, encode: EncodePart) -> BatchEmbeddings {
        let [images, texts] = match self.parts.as_slice() {
            [whole] => self.encode(online, whole, encode),
            _ => self
                .joined(&online.valid(), encode)
                .map(|rows| Tensor::from_inner(rows).require_grad()),
        };
        BatchEmbeddings { images, texts }
    }

    /// Embeddings of all parts in one table, by encoders without gradients.
    pub fn joined(&self, model: &Encoders, encode: EncodePart) -> [Tensor<2>; 2] {
        let encoded = self.parts.iter().map(|part| self.encode(model, part, encode));
        let (images, texts) = encoded.map(<(_, _)>::from).unzip::<_, _, Vec<_>, Vec<_>>();
        [images, texts].map(|rows| Tensor::cat(rows, 0))
    }

    /// Gradients of the encoders for a loss of their embeddings.
    pub fn gradients(
        &self,
        online: &Encoders,
        embedded: BatchEmbeddings,
        loss: Tensor<1>,
        encode: EncodePart,
    ) -> GradientsParams {
        let grads = loss.backward();
        if self.parts.len() == 1 {
            return GradientsParams::from_grads(grads, online);
        }
        let of = |x: &Tensor<2>| x.grad(&grads).unwrap_or_else(|| x.clone().inner().zeros_like());
        let wanted = [of(&embedded.images), of(&embedded.texts)];
        let mut sum = GradientsAccumulator::new();
        // A temperature that is learnt is no part of the encoding: its gradient is the loss's own.
        sum.accumulate(online, GradientsParams::from_grads(grads, online));
        for part in &self.parts {
            let rows = part.pairs;
            let encoded = self.encode(online, part, encode);
            let [images, texts] = [0, 1].map(|side| {
                let grad = wanted[side].clone().narrow(0, part.first, rows);
                (encoded[side].clone() * Tensor::from_inner(grad)).sum()
            });
            let grads = (images + texts).backward();
            sum.accumulate(online, GradientsParams::from_grads(grads, online));
        }
        sum.grads()
    }
}
