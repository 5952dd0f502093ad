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
//!
//! Several devices share the parts: part k is on device k mod n, with a copy of the weights. The embeddings of all parts and the loss are
//! on the first device, and the gradients are added there in the order of the parts. So the sum has the same bits on any number of
//! devices of one kind.

use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::{Device, Tensor};

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
    replicas: &'a [Device],
}

/// Embeddings of a batch, `[b, d]` each, with gradients.
pub struct BatchEmbeddings {
    /// v̄
    pub images: Tensor<2>,
    /// w̄
    pub texts: Tensor<2>,
    /// The encoders that learn, on the further devices.
    copies: Vec<Encoders>,
}

impl<'a> StepInputs<'a> {
    /// Parts of at most `size` pairs. If embeddings depend on padding, all parts are as wide as the longest caption of the batch.
    ///
    /// # Panics
    /// If `size` is 0, there is no caption, or their number is not that of the images.
    pub fn new<C: AsRef<[u32]>>(
        images: &'a ImageInput<'a>,
        texts: &[C],
        size: usize,
        (encoder, config): (&TextEncoder, &TextConfig),
    ) -> Self {
        let (n, count) = (texts.len(), images.count());
        assert!(n > 0 && n == count, "{n} captions of {count} images");
        let longest = texts.iter().map(|text| text.as_ref().len()).max().unwrap_or(0);
        let width = config.evaluation_width().map(|_| longest);
        let part = |(number, texts): (usize, &[C])| {
            let captions = encoder.read(texts, width);
            PairChunk { first: number * size, pairs: texts.len(), captions, number: number as u64 }
        };
        Self { images, parts: texts.chunks(size).enumerate().map(part).collect(), replicas: &[] }
    }

    /// The inputs with parts on further devices too. The device of the encoders is the first. A device without a part is not used.
    #[must_use]
    pub fn with_replicas(self, replicas: &'a [Device]) -> Self {
        let used = replicas.len().min(self.parts.len().saturating_sub(1));
        Self { replicas: &replicas[..used], ..self }
    }

    /// Copies of the encoders as they are now, on the further devices.
    fn copies(&self, model: &Encoders) -> Vec<Encoders> {
        self.replicas.iter().map(|device| model.clone().fork(device)).collect()
    }

    fn encode(&self, model: &Encoders, part: &PairChunk, encode: EncodePart) -> [Tensor<2>; 2] {
        encode(model, self.images.part(part.first, part.pairs), &part.captions, part.number)
    }

    /// Embeddings by the encoders that learn.
    pub fn embed(&self, online: &Encoders, encode: EncodePart) -> BatchEmbeddings {
        let copies = self.copies(online);
        let [images, texts] = match self.parts.as_slice() {
            [whole] => self.encode(online, whole, encode),
            _ => {
                let fixed: Vec<_> = copies.iter().map(Module::valid).collect();
                let strategy = online.devices()[0].gradient_checkpointing_strategy();
                self.gathered(&online.valid(), &fixed, encode).map(|rows| {
                    let rows = Tensor::from_inner(rows);
                    rows.with_gradient_checkpointing_strategy(strategy.unwrap_or_default())
                        .require_grad()
                })
            }
        };
        BatchEmbeddings { images, texts, copies }
    }

    /// Embeddings of all parts in one table, by encoders without gradients.
    pub fn joined(&self, model: &Encoders, encode: EncodePart) -> [Tensor<2>; 2] {
        self.gathered(model, &self.copies(model), encode)
    }

    fn gathered(
        &self,
        model: &Encoders,
        copies: &[Encoders],
        encode: EncodePart,
    ) -> [Tensor<2>; 2] {
        let encoded = self.parts.iter().zip(turns(model, copies));
        // All parts are begun before the first one is waited for.
        let encoded: Vec<_> =
            encoded.map(|(part, model)| self.encode(model, part, encode)).collect();
        [0, 1].map(|side| {
            let rows: Vec<_> = encoded.iter().map(|both| both[side].clone()).collect();
            let first = rows[0].device();
            Tensor::cat(rows.into_iter().map(|rows| moved(rows, &first)).collect(), 0)
        })
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
        let first = wanted[0].device();
        for round in self.parts.chunks(1 + embedded.copies.len()) {
            let models = turns(online, &embedded.copies);
            // All devices have begun before the first one is waited for.
            let of_parts: Vec<_> = round
                .iter()
                .zip(models)
                .map(|(part, model)| self.part_gradients(model, part, &wanted, encode))
                .collect();
            for (number, grads) in of_parts.into_iter().enumerate() {
                let grads = if number == 0 { grads } else { grads.to_device(&first, online) };
                sum.accumulate(online, grads);
            }
        }
        sum.grads()
    }

    /// ∂(Σ g ⊙ v̄ + Σ h ⊙ w̄)/∂θ of one part, on the device of `model`.
    fn part_gradients(
        &self,
        model: &Encoders,
        part: &PairChunk,
        wanted: &[Tensor<2>; 2],
        encode: EncodePart,
    ) -> GradientsParams {
        let encoded = self.encode(model, part, encode);
        let [images, texts] = [0, 1].map(|side| {
            let rows = encoded[side].clone();
            let grad = wanted[side].clone().narrow(0, part.first, part.pairs);
            let grad = moved(grad, &rows.device());
            (rows * grad).sum()
        });
        GradientsParams::from_grads((images + texts).backward(), model)
    }
}

/// The encoders of part 0, 1, …: the model itself and its copies, in turns.
fn turns<'m>(model: &'m Encoders, copies: &'m [Encoders]) -> impl Iterator<Item = &'m Encoders> {
    std::iter::once(model).chain(copies).cycle()
}

/// Rows on a device. Rows that are there already are not copied.
fn moved(rows: Tensor<2>, device: &Device) -> Tensor<2> {
    if rows.device() == *device { rows } else { rows.to_device(device) }
}
