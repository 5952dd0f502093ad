//! A transformer block.

use burn::backend::Dispatch;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{Dropout, LayerNorm, Linear, SelfAttention};
use crate::ops::{BlockOps, BlockSpec, Memory, NormOrder, Tensors};
use crate::random::{self, Noise};
use crate::{Activation, Precision};

/// Self-attention and two linear maps with an activation φ between them, each with a residual.
///
/// ```text
/// Pre:   x ← x + A(N₁ x);   x ← x + F(N₂ x)
/// Post:  x ← N₁(x + A x);   x ← N₂(x + F x)          F x = W_down φ(W_up x)
/// ```
#[derive(Module, Debug)]
pub struct TransformerBlock {
    /// N₁
    pub norm_1: LayerNorm,
    /// A
    pub attention: SelfAttention,
    /// N₂
    pub norm_2: LayerNorm,
    /// d → m
    pub up: Linear,
    /// m → d
    pub down: Linear,
    /// Dropout of the outputs of A and F.
    pub dropout: Dropout,
    /// φ
    #[module(skip)]
    pub activation: Activation,
    /// Where the block normalises.
    #[module(skip)]
    pub order: NormOrder,
    /// What the block keeps for the gradient; [`Memory::Keep`] by default.
    #[module(skip)]
    pub memory: Memory,
}

/// Sizes and choices of a [`TransformerBlock`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockShape {
    /// Width d.
    pub width: usize,
    /// Heads h, which divide d.
    pub heads: usize,
    /// Width m between the two linear maps.
    pub mlp: usize,
    /// ε of the layer norms.
    pub epsilon: f64,
    /// φ
    pub activation: Activation,
    /// Whether a position attends only to itself and to those before it.
    pub causal: bool,
    /// Where the block normalises.
    pub order: NormOrder,
    /// Dropout rate of the outputs of A and F.
    pub dropout: f64,
    /// Dropout rate of the attention weights.
    pub attention_dropout: f64,
}

impl TransformerBlock {
    /// Weights as in [`Linear::seeded`], norms with γ = 1 and β = 0.
    ///
    /// # Panics
    /// If the heads do not divide the width, or a dropout is not in `[0, 1)`.
    pub fn seeded(shape: &BlockShape, seed: u64, device: &Device) -> Self {
        let &BlockShape { width, heads, mlp, epsilon, activation, order, dropout, .. } = shape;
        let seed = |part| random::derive(seed, part);
        let rate = shape.attention_dropout;
        let attention = SelfAttention::seeded(width, heads, rate, seed(0), device);
        Self {
            norm_1: LayerNorm::new(width, epsilon, device),
            attention: SelfAttention { causal: shape.causal, ..attention },
            norm_2: LayerNorm::new(width, epsilon, device),
            up: Linear::seeded(width, mlp, seed(1), device),
            down: Linear::seeded(mlp, width, seed(2), device),
            dropout: Dropout::new(dropout),
            activation,
            order,
            memory: Memory::Keep,
        }
    }

    /// Sets one precision for the products of the four linear maps and of attention.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.linears_mut().into_iter().for_each(|map| map.precision = precision);
        self
    }

    /// The linear maps: of attention to its queries, keys and values, and behind it; up; down.
    pub fn linears(&self) -> [&Linear; 4] {
        [&self.attention.qkv, &self.attention.out, &self.up, &self.down]
    }

    /// [`linears`](Self::linears), to change them.
    pub fn linears_mut(&mut self) -> [&mut Linear; 4] {
        [&mut self.attention.qkv, &mut self.attention.out, &mut self.up, &mut self.down]
    }

    /// `[b, l, d]` to `[b, l, d]`; `keys` as in [`SelfAttention::forward`].
    ///
    /// # Panics
    /// If the width or the number of counts differs, if a count is 0 or more than `l`, or if a linear map has
    /// precision bf16 on a backend other than the CPU.
    pub fn forward(&self, x: Tensor<3>, keys: Option<&[usize]>, noise: Noise) -> Tensor<3> {
        let (dims, [d]) = (x.dims(), self.norm_1.gamma.dims());
        assert_eq!(dims[2], d, "input of shape {dims:?} for a block of width {d}");
        let spec = BlockSpec {
            heads: self.attention.heads_of(dims, keys, noise.part(0)),
            activation: self.activation,
            order: self.order,
            memory: self.memory,
            precision: self.linears().map(|map| map.precision),
            epsilon: [self.norm_1.epsilon, self.norm_2.epsilon],
            masks: [self.dropout.mask(noise.part(1)), self.dropout.mask(noise.part(2))],
        };
        let vector = |p: &Param<Tensor<1>>| p.val().into_dispatch();
        let norm = |norm: &LayerNorm| [vector(&norm.gamma), vector(&norm.beta)];
        let map = |map: &Linear| [map.matrix().into_dispatch(), vector(&map.bias)];
        let ([norm_1, norm_2], [qkv, out, up, down]) =
            ([&self.norm_1, &self.norm_2].map(norm), self.linears().map(map));
        let parameters = [norm_1, qkv, out, norm_2, up, down].concat();
        let (x, parameters) = (x.into_dispatch(), Tensors(parameters));
        Tensor::from_dispatch(<Dispatch as BlockOps>::transformer_block(x, parameters, spec))
    }

    /// The first position of [`forward`](Self::forward) without noise, `[b, d]`. It suffices as the last block of a
    /// model whose score reads no other position. Its cost is a small part of the cost of a whole block; see
    /// [`SelfAttention::pool`].
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn first(&self, x: Tensor<3>, keys: Option<&[usize]>) -> Tensor<2> {
        let [b, l, d] = x.dims();
        assert!(l > 0, "input of shape {:?} has no first position", [b, l, d]);
        let first = x.clone().narrow(1, 0, 1);
        self.attention.heads_of([b, l, d], keys, Noise::Off); // refuses counts that do not fit
        let (x, keys) = if self.attention.causal { (first.clone(), None) } else { (x, keys) };
        self.one(first.reshape([b, d]), x, keys)
    }

    /// One position of each sequence in [`forward`](Self::forward) without noise, `[b, d]`: `position` is its input, `[b, d]`,
    /// and it attends to `keys` positions of `x`. A causal mask is up to the caller: position i attends to `i + 1`.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn one(&self, position: Tensor<2>, x: Tensor<3>, keys: Option<&[usize]>) -> Tensor<2> {
        let (got, [b, l, d]) = (position.dims(), x.dims());
        assert!(got == [b, d], "positions of shape {got:?} for input of shape {:?}", [b, l, d]);
        let mlp = |x| self.down.forward(self.activation.of(self.up.forward(x)));
        match self.order {
            NormOrder::Pre => {
                let [query, x] =
                    [position.clone().unsqueeze_dim(1), x].map(|x| self.norm_1.forward(x));
                let x = position + self.attention.pool(query.squeeze_dim(1), x, keys);
                x.clone() + mlp(self.norm_2.forward(x))
            }
            NormOrder::Post => {
                let x = self.attention.pool(position.clone(), x, keys);
                let x = self.norm_1.forward(position + x);
                self.norm_2.forward(x.clone() + mlp(x))
            }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use super::super::uniform;
    use super::*;
    use crate::tests::{close, values};

    const KEYS: [usize; 2] = [7, 4];

    fn shape(order: NormOrder, dropout: f64) -> BlockShape {
        let attention_dropout = dropout;
        BlockShape {
            width: 12,
            heads: 3,
            mlp: 20,
            epsilon: 1e-12,
            activation: Activation::default(),
            causal: false,
            order,
            dropout,
            attention_dropout,
        }
    }

    /// The block composed of its layers, as in its equations.
    fn in_layers(block: &TransformerBlock, x: Tensor<3>, noise: Noise) -> Tensor<3> {
        let attend = |x| {
            let y = block.attention.forward(x, Some(&KEYS), noise.part(0));
            block.dropout.forward(y, noise.part(1))
        };
        let mlp = |x| {
            let y = block.down.forward(block.activation.of(block.up.forward(x)));
            block.dropout.forward(y, noise.part(2))
        };
        match block.order {
            NormOrder::Pre => {
                let x = x.clone() + attend(block.norm_1.forward(x));
                x.clone() + mlp(block.norm_2.forward(x))
            }
            NormOrder::Post => {
                let x = block.norm_1.forward(x.clone() + attend(x));
                block.norm_2.forward(x.clone() + mlp(x))
            }
        }
    }

    /// Gradients of the input and of one parameter of each kind.
    fn gradients(block: &TransformerBlock, x: &Tensor<3>, y: Tensor<3>) -> [Vec<f32>; 6] {
        let weights = uniform(y.dims(), 1.0, 3, &y.device());
        let grads = (y * weights).sum().backward();
        let vector = |p: &Param<Tensor<1>>| values(p.val().grad(&grads).unwrap());
        let matrix = |p: &Param<Tensor<2>>| values(p.val().grad(&grads).unwrap());
        let SelfAttention { qkv, out, .. } = &block.attention;
        [
            values(x.grad(&grads).unwrap()),
            vector(&block.norm_1.gamma),
            matrix(&qkv.weight),
            matrix(&out.weight),
            vector(&block.up.bias),
            vector(&block.norm_2.beta),
        ]
    }

    #[test]
    fn both_orders_are_as_their_equations_read_with_dropout_and_without() {
        let device = Device::flex().autodiff();
        for order in [NormOrder::Pre, NormOrder::Post] {
            for (rate, noise) in [(0.0, Noise::Off), (0.3, Noise::Seeded(5)), (0.3, Noise::Off)] {
                let block = TransformerBlock::seeded(&shape(order, rate), 1, &device);
                let x = uniform([2, 7, 12], 1.0, 2, &device).require_grad();
                let y = block.forward(x.clone(), Some(&KEYS), noise);
                let want = in_layers(&block, x.clone(), noise);
                close("y", y.clone(), want.clone());
                let want = gradients(&block, &x, want);
                for (got, want) in gradients(&block, &x, y).iter().zip(&want) {
                    let off = got.iter().zip(want).map(|(g, w)| (g - w).abs());
                    let off = off.max_by(f32::total_cmp).unwrap();
                    assert!(off < 2e-5, "{order:?}, dropout {rate}: {off:e}");
                }
            }
        }
    }

    /// The first position of a causal block sees itself alone, whatever the counts.
    #[test]
    fn the_first_position_of_a_causal_block() {
        let device = Device::flex();
        let causal = BlockShape { causal: true, ..shape(NormOrder::Pre, 0.0) };
        let block = TransformerBlock::seeded(&causal, 1, &device);
        let x = uniform([2, 7, 12], 1.0, 2, &device);
        let whole = block.forward(x.clone(), Some(&KEYS), Noise::Off);
        close("first", block.first(x, Some(&KEYS)), whole.narrow(1, 0, 1).reshape([2, 12]));
    }

    /// In bf16, values and gradients are close to the f32 results. The values differ from them exactly if the
    /// processor has bf16. Recomputation and a single thread give the same bits.
    #[test]
    fn bf16_is_near_f32_and_the_same_with_recomputation_and_any_threads() {
        let device = Device::flex().autodiff();
        let plain = TransformerBlock::seeded(&shape(NormOrder::Pre, 0.3), 1, &device);
        let x = uniform([2, 7, 12], 1.0, 2, &device).require_grad();
        let all = |block: &TransformerBlock| {
            let y = block.forward(x.clone(), Some(&KEYS), Noise::Seeded(5));
            let mut all = vec![values(y.clone())];
            all.extend(gradients(block, &x, y));
            all
        };
        let want = all(&plain);
        let mut rounded = plain.with_precision(Precision::Bf16);
        let got = all(&rounded);
        for (got, want) in got.iter().zip(&want) {
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            let cosine = dot(got, want) / (dot(got, got) * dot(want, want)).sqrt();
            assert!(cosine > 0.9995, "cosine {cosine}");
        }
        assert_eq!(got[0] != want[0], crate::bf16::supported());
        rounded.memory = Memory::Recompute;
        assert!(all(&rounded) == got, "recomputed");
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(one.install(|| all(&rounded)) == got, "one thread");
    }

    #[test]
    fn the_first_position_alone_is_that_of_the_whole_block() {
        let device = Device::flex();
        for order in [NormOrder::Pre, NormOrder::Post] {
            let block = TransformerBlock::seeded(&shape(order, 0.3), 1, &device);
            let x = uniform([2, 7, 12], 1.0, 2, &device);
            for keys in [Some(&KEYS[..]), None] {
                let whole = block.forward(x.clone(), keys, Noise::Off);
                let first = whole.narrow(1, 0, 1).reshape([2, 12]);
                close("first", block.first(x.clone(), keys), first);
            }
        }
    }

    #[test]
    fn the_first_position_alone_has_the_gradients_of_the_whole_block() {
        let device = Device::flex().autodiff();
        for order in [NormOrder::Pre, NormOrder::Post] {
            let block = TransformerBlock::seeded(&shape(order, 0.3), 1, &device);
            let x = uniform([2, 7, 12], 1.0, 2, &device).require_grad();
            let c = uniform([2, 12], 1.0, 3, &device);
            let whole = block.forward(x.clone(), Some(&KEYS), Noise::Off);
            let whole = whole.narrow(1, 0, 1).reshape([2, 12]);
            let gradients = |y: Tensor<2>| {
                let grads = (y * c.clone()).sum().backward();
                let weight = &block.attention.qkv.weight;
                (x.grad(&grads).unwrap(), weight.val().grad(&grads).unwrap())
            };
            let (got, want) = (gradients(block.first(x.clone(), Some(&KEYS))), gradients(whole));
            close("d_x", got.0, want.0);
            close("d_qkv", got.1, want.1);
        }
    }

    /// Recomputed activations give the same bits: no dropout mask is drawn anew.
    #[test]
    fn recomputing_changes_no_bit_of_a_gradient() {
        let device = Device::flex().autodiff();
        for order in [NormOrder::Pre, NormOrder::Post] {
            let keep = TransformerBlock::seeded(&shape(order, 0.3), 1, &device);
            let recompute = TransformerBlock { memory: Memory::Recompute, ..keep.clone() };
            let x = uniform([2, 7, 12], 1.0, 2, &device).require_grad();
            let [first, second] = [&keep, &recompute].map(|block| {
                // Two blocks in a row: the second block passes its gradient to the first.
                let y = block.forward(x.clone(), Some(&KEYS), Noise::Seeded(5));
                let y = block.forward(y, Some(&KEYS), Noise::Seeded(6));
                (values(y.clone()), gradients(block, &x, y))
            });
            assert!(first == second, "{order:?}");
        }
    }

    /// A frozen block passes the gradient on, but its parameters get none.
    #[test]
    fn a_frozen_block_passes_its_gradient_on() {
        let device = Device::flex().autodiff();
        let block = TransformerBlock::seeded(&shape(NormOrder::Pre, 0.0), 1, &device).no_grad();
        let x = uniform([2, 7, 12], 1.0, 2, &device).require_grad();
        let d = [Memory::Keep, Memory::Recompute].map(|memory| {
            let block = TransformerBlock { memory, ..block.clone() };
            let grads = block.forward(x.clone(), None, Noise::Off).powi_scalar(2).sum().backward();
            assert!(block.up.weight.val().grad(&grads).is_none());
            values(x.grad(&grads).unwrap())
        });
        assert_eq!(d[0], d[1]);
    }

    #[test]
    #[should_panic(expected = "input of shape [2, 7, 11] for a block of width 12")]
    fn another_width_is_refused() {
        let device = Device::flex();
        let block = TransformerBlock::seeded(&shape(NormOrder::Pre, 0.0), 1, &device);
        block.forward(Tensor::zeros([2, 7, 11], &device), None, Noise::Off);
    }
}
