//! Negative-aware attention, Eq. 6 to 12, and SCAN, on which it is built: both are rules of one operation.

use itm_core::Result;
use itm_core::learn::within;
use itm_kernels::cross_attention::{
    Cosine, KeyWeights, Negative, Norm, Pool, Propagation, Rule, Side, Spreads,
};
use serde::{Deserialize, Serialize};

/// How an image and a text are scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Attention {
    /// Two branches around a boundary.
    Naaf(NegativeAware),
    /// Stacked cross attention (ECCV 2018), which has no boundary.
    Scan(Scan),
}

/// Training and inference differ only in the propagation of Eq. 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Without propagation.
    Training,
    /// With propagation, if the config has it.
    Inference,
}

impl Attention {
    /// Refuses a value out of range.
    ///
    /// # Errors
    /// The error names the key of the value.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Naaf(naaf) => naaf.check(),
            Self::Scan(scan) => scan.check(),
        }
    }

    /// The rule for [`itm_kernels::cross_attention`].
    pub fn rule(&self, phase: Phase) -> Rule {
        match self {
            Self::Naaf(naaf) => naaf.rule(phase),
            Self::Scan(scan) => scan.rule(),
        }
    }
}

/// Eq. 6 to 12.
///
/// ```text
/// s_i = max_j (s_ij − t),   neg_i = s_i · 1[s_i < 0]                                     (7), (8)
/// ŝ_i = Σ_l softmax_l(λ_a u_i·u_l) s_l    in the mask, or in both places, in inference    (9)
/// w_ij = e_ij / (Σ_j e_ij + 1e-8),  e_ij = exp(λ (s_ij − t)) · 1[s_ij > t]                (10)
/// f_i = cos(u_i, Σ_j w_ij v_j),   r_i = Σ_j softmax_j(λ φ(s_ij) / ‖φ(s_·j)‖) s_ij
/// S = (1/m) Σ_i (neg_i + f_i + r_i)                                                       (11), (12)
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NegativeAware {
    /// Whether neg_i counts. Without it: Table 4, "w/o Neg.".
    pub negative: bool,
    /// Whether the boundary masks. "w/o Masks" has no indicator in Eq. 8 and a softmax over all regions in Eq. 10; the paper
    /// gives no formula.
    pub masks: bool,
    /// λ
    pub scale: f64,
    /// Slope of φ below 0.
    pub relevance_leak: f64,
    /// Intra-text propagation, Eq. 9.
    pub intra: Intra,
    /// λ_a
    pub intra_scale: f64,
}

/// What intra-text propagation replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Intra {
    /// Nothing: Table 4, "w/o Intra".
    Off,
    /// The mask of Eq. 8 (released program). Values in the negative branch may then be positive.
    Mask,
    /// The mask and the value of Eq. 8 (paper).
    ValueAndMask,
}

impl NegativeAware {
    fn check(&self) -> Result<()> {
        factor("attention.scale", self.scale)?;
        factor("attention.intra_scale", self.intra_scale)?;
        within("attention.relevance_leak", self.relevance_leak, "in [0, 1]", |x| {
            (0.0..=1.0).contains(&x)
        })
    }

    fn rule(&self, phase: Phase) -> Rule {
        let scale = self.scale as f32;
        let spread = |what| Some(Propagation { scale: self.intra_scale as f32, what });
        let spread = match (phase, self.intra) {
            (Phase::Training, _) | (_, Intra::Off) => None,
            (Phase::Inference, Intra::Mask) => spread(Spreads::Mask),
            (Phase::Inference, Intra::ValueAndMask) => spread(Spreads::ValueAndMask),
        };
        let weights = if self.masks {
            KeyWeights::Above { scale }
        } else {
            KeyWeights::Softmax { scale, leak: 1.0, norm: Norm::None }
        };
        let leak = self.relevance_leak as f32;
        Rule {
            queries: Side::Words,
            negative: self.negative.then_some(Negative { masked: self.masks, spread }),
            cosine: Some(Cosine { weights, unit_queries: true }),
            relevance: Some(KeyWeights::Softmax { scale, leak, norm: Norm::Queries }),
            pool: Pool::Mean,
        }
    }
}

/// Which side attends to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Words attend to regions: t-i.
    Words,
    /// Regions attend to words: i-t.
    Regions,
}

/// How products are normalised before their softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RawNorm {
    /// LeakyReLU 0.1, then unit length over the queries.
    #[serde(rename = "clipped_l2norm")]
    ClippedL2,
    /// Unit length over the queries.
    #[serde(rename = "l2norm")]
    L2,
    /// LeakyReLU 0.1.
    #[serde(rename = "clipped")]
    Clipped,
    /// No normalisation.
    #[serde(rename = "no_norm")]
    Off,
}

/// How the numbers of all queries become one score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// `ln(Σ exp(λ₂ R)) / λ₂`
    LogSumExp,
    /// The largest.
    Max,
    /// The sum.
    Sum,
    /// The mean.
    Mean,
}

/// Scores of SCAN: the cosine of each word and its attended regions, or of each region and its attended words.
///
/// ```text
/// e_rj = norm_j(s_rj),   w_rj = softmax_r(λ₁ e_rj),   R_j = cos(u_j, Σ_r w_rj v_r),   S = pool_j R_j        t-i
/// ```
///
/// # Departures
/// Three norms of the program are missing here. The program cannot reach `l1norm` and `clipped_l1norm`, and no published row uses
/// `softmax`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// Which side attends to the other.
    pub asks: Asks,
    /// How products are normalised before their softmax.
    pub raw_norm: RawNorm,
    /// λ₁
    pub lambda_softmax: f64,
    /// How the numbers of all queries become one score.
    pub pooling: Pooling,
    /// λ₂
    pub lambda_lse: f64,
}

impl Scan {
    /// t-i as published: λ₁ 9, λ₂ 6.
    pub fn text_to_image(pooling: Pooling) -> Self {
        let (asks, raw_norm) = (Asks::Words, RawNorm::ClippedL2);
        Self { asks, raw_norm, lambda_softmax: 9.0, pooling, lambda_lse: 6.0 }
    }

    /// i-t as published for Flickr30K: λ₁ 4, λ₂ 5; COCO has λ₂ 20.
    pub fn image_to_text(pooling: Pooling) -> Self {
        let (asks, raw_norm) = (Asks::Regions, RawNorm::ClippedL2);
        Self { asks, raw_norm, lambda_softmax: 4.0, pooling, lambda_lse: 5.0 }
    }

    fn check(&self) -> Result<()> {
        let range = |x| (0.0..=1e30).contains(&x);
        within("attention.lambda_softmax", self.lambda_softmax, "from 0 to 1e30", range)?;
        factor("attention.lambda_lse", self.lambda_lse)
    }

    fn rule(&self) -> Rule {
        let (leak, norm) = match self.raw_norm {
            RawNorm::ClippedL2 => (0.1, Norm::Queries),
            RawNorm::L2 => (1.0, Norm::Queries),
            RawNorm::Clipped => (0.1, Norm::None),
            RawNorm::Off => (1.0, Norm::None),
        };
        let weights = KeyWeights::Softmax { scale: self.lambda_softmax as f32, leak, norm };
        Rule {
            queries: match self.asks {
                Asks::Words => Side::Words,
                Asks::Regions => Side::Regions,
            },
            negative: None,
            cosine: Some(Cosine { weights, unit_queries: false }),
            relevance: None,
            pool: match self.pooling {
                Pooling::LogSumExp => Pool::LogSumExp { scale: self.lambda_lse as f32 },
                Pooling::Max => Pool::Max,
                Pooling::Sum => Pool::Sum,
                Pooling::Mean => Pool::Mean,
            },
        }
    }
}

/// Refuses a factor that an f32 does not hold.
fn factor(key: &str, value: f64) -> Result<()> {
    within(key, value, "from 1e-30 to 1e30", |x| (1e-30..=1e30).contains(&x))
}

#[cfg(test)]
mod tests;
