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

use itm_core::towers::{
    CaptionInput, Encoders, ImageInput, TextConfig, TextEncoder, TowerDropout, derive,
};

/// Pairs that are encoded together.
struct PairChunk {
    first: usize,
    pairs: usize,
    captions: CaptionInput,
    number: u64,
}

/// The inputs of a step.
pub(super) struct StepInputs<'a> {
    images: &'a ImageInput<'a>,
    parts: Vec<PairChunk>,
}

/// Embeddings of a batch, `[b, d]` each, with gradients.
pub(super) struct BatchEmbeddings {
    pub(super) images: Tensor<2>,
    pub(super) texts: Tensor<2>,
}

impl<'a> StepInputs<'a> {
    /// Parts of at most `size` pairs. If embeddings depend on padding, all parts are as wide as the longest caption of the batch.
    pub(super) fn new<C: AsRef<[u32]>>(
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

    /// v̄ and w̄ of a part; `dropout` is the encoders' dropout in this step.
    fn encode(&self, model: &Encoders, part: &PairChunk, dropout: TowerDropout) -> [Tensor<2>; 2] {
        let dropout = match dropout {
            // The first part has the noise of an undivided batch.
            TowerDropout::On { share, words, seed } if part.number > 0 => {
                TowerDropout::On { share, words, seed: derive(seed, 16 + part.number) }
            }
            same => same,
        };
        let images = self.images.part(part.first, part.pairs);
        [model.images(images, dropout), model.captions(&part.captions, dropout)]
    }

    /// Embeddings by the online encoders.
    pub(super) fn embed(&self, online: &Encoders, dropout: TowerDropout) -> BatchEmbeddings {
        let [images, texts] = match self.parts.as_slice() {
            [whole] => self.encode(online, whole, dropout),
            _ => self
                .joined(&online.valid(), dropout)
                .map(|rows| Tensor::from_inner(rows).require_grad()),
        };
        BatchEmbeddings { images, texts }
    }

    /// Embeddings of all parts in one table, by encoders without gradients.
    pub(super) fn joined(&self, model: &Encoders, dropout: TowerDropout) -> [Tensor<2>; 2] {
        let encoded = self.parts.iter().map(|part| self.encode(model, part, dropout));
        let (images, texts) = encoded.map(<(_, _)>::from).unzip::<_, _, Vec<_>, Vec<_>>();
        [images, texts].map(|rows| Tensor::cat(rows, 0))
    }

    /// Gradients of the online encoders for a loss of their embeddings.
    pub(super) fn gradients(
        &self,
        online: &Encoders,
        embedded: BatchEmbeddings,
        loss: Tensor<1>,
        dropout: TowerDropout,
    ) -> GradientsParams {
        let grads = loss.backward();
        if self.parts.len() == 1 {
            return GradientsParams::from_grads(grads, online);
        }
        let of = |x: &Tensor<2>| x.grad(&grads).unwrap_or_else(|| x.clone().inner().zeros_like());
        let wanted = [of(&embedded.images), of(&embedded.texts)];
        let mut sum = GradientsAccumulator::new();
        for part in &self.parts {
            let rows = part.pairs;
            let encoded = self.encode(online, part, dropout);
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
