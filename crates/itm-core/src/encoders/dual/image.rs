//! The image tower.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_kernels::{Activation, LayerNorm, Linear, Noise, SelfAttention, matmul, random, uniform};

use super::{DualFamily, DualShape};
use crate::encoders::{EarlyStates, ImagePool, Vit};

/// One row per image: the class row of a [`Vit`] and a linear map (CLIP), or an attention pool (SigLIP).
///
/// ```text
/// CLIP     v = norm(x₀) W_v
/// SigLIP   v = pool(norm(x))
/// ```
#[derive(Module, Debug)]
pub struct ImageTower {
    /// Patches to rows.
    pub vit: Vit,
    /// SigLIP's pool.
    pub(crate) pool: Option<AttentionPool>,
    /// W_v, `[d, e]`, in CLIP.
    pub projection: Option<Param<Tensor<2>>>,
}

impl ImageTower {
    pub(super) fn seeded(shape: &DualShape, seed: u64, device: &Device) -> Self {
        let (d, e) = (shape.image.width, shape.joint);
        let seed = |part| random::derive(seed, part);
        let clip = shape.family == DualFamily::Clip;
        Self {
            vit: Vit::seeded(&shape.image, seed(0), device),
            pool: (!clip).then(|| AttentionPool::seeded(shape, seed(1), device)),
            projection: clip.then(|| Linear::seeded(d, e, seed(2), device).weight),
        }
    }

    /// One row per image, `[b, 3, h, w]` to `[b, e]`, not of unit length. The last block of CLIP computes only the class row.
    ///
    /// # Panics
    /// If there are not three channels, or an image holds no patch.
    pub(crate) fn rows(&self, pixels: Tensor<4>) -> Tensor<2> {
        self.rows_after(self.vit.begun(pixels, 0, Noise::Off))
    }

    /// `rows` from the states after some blocks.
    pub(crate) fn rows_after(&self, begun: EarlyStates) -> Tensor<2> {
        match &self.pool {
            Some(_) => self.rows_of(self.vit.finished(begun, Noise::Off)),
            None => self.projected(self.vit.class_row_of(begun)),
        }
    }

    /// `rows` from [`tokens`](Self::tokens), for a caller that needs both.
    ///
    /// # Panics
    /// If the width differs.
    pub(crate) fn rows_of(&self, tokens: Tensor<3>) -> Tensor<2> {
        match &self.pool {
            Some(pool) => pool.forward(tokens),
            None => self.projected(ImagePool::Class.pool(tokens)),
        }
    }

    fn projected(&self, rows: Tensor<2>) -> Tensor<2> {
        match &self.projection {
            Some(map) => matmul(rows, map.val()),
            None => rows,
        }
    }

    /// All rows after the last layer norm, `[b, 1 + n, d]`, or `[b, n, d]` in SigLIP.
    ///
    /// # Panics
    /// As `rows`.
    pub(crate) fn tokens(&self, pixels: Tensor<4>) -> Tensor<3> {
        self.vit.forward(pixels, Noise::Off)
    }
}

/// A learnt query that attends to all rows of an image, and an MLP: SigLIP's head.
///
/// ```text
/// a = attention(probe, x);   z = a + W_down φ(W_up norm(a))
/// ```
#[derive(Module, Debug)]
pub(crate) struct AttentionPool {
    /// The query, `[d]`.
    pub probe: Param<Tensor<1>>,
    /// The maps of query, keys, values and output.
    pub attention: SelfAttention,
    /// The layer norm before the MLP.
    pub norm: LayerNorm,
    /// d → m
    pub up: Linear,
    /// m → d
    pub down: Linear,
    /// φ
    #[module(skip)]
    pub activation: Activation,
}

impl AttentionPool {
    fn seeded(shape: &DualShape, seed: u64, device: &Device) -> Self {
        let (image, seed) = (&shape.image, |part| random::derive(seed, part));
        let (d, m) = (image.width, image.mlp);
        Self {
            probe: Param::from_tensor(uniform([d], 0.02, seed(0), device)),
            attention: SelfAttention::seeded(d, image.heads, 0.0, seed(1), device),
            norm: LayerNorm::new(d, image.epsilon, device),
            up: Linear::seeded(d, m, seed(2), device),
            down: Linear::seeded(m, d, seed(3), device),
            activation: image.activation,
        }
    }

    /// `[b, n, d]` to `[b, d]`.
    ///
    /// # Panics
    /// If the width differs.
    pub(crate) fn forward(&self, states: Tensor<3>) -> Tensor<2> {
        let [b, _, d] = states.dims();
        let probe = self.probe.val().reshape([1, d]).expand([b, d]);
        let a = self.attention.pool(probe, states, None);
        a.clone() + self.down.forward(self.activation.of(self.up.forward(self.norm.forward(a))))
    }
}
