//! UNITER: one transformer that reads a text and the regions of an image side by side, and its four heads.
//!
//! | step | here |
//! |---|---|
//! | regions and their boxes | [`RegionBatch`], [`box_numbers`] |
//! | regions embedded, once per image | [`Uniter::embed_regions`] |
//! | texts beside them, through the blocks | [`Uniter::join`] |
//! | does the text match the image | [`Uniter::match_logits`] |
//! | which word is here | [`Uniter::word_logits`] |
//! | does this word match the image | [`Uniter::discrimination_logits`] |
//! | which word should be here | [`Uniter::correction_logits`] |
//! | scores of all pairs | [`UniterScores`] |
//! | one image: words for masks, scores of sentences | [`Beside`] |
//! | published files | [`Uniter::open`], [`Uniter::save`] |

mod beside;
mod files;
mod heads;
mod init;
mod joint;
mod prior;
mod regions;
mod scores;
mod shape;
mod start;
#[cfg(test)]
#[cfg(feature = "flex")]
pub(crate) mod tests;

use burn::module::Module;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use itm_core::encoders::{Bert, TokenBatch};
use itm_kernels::{Linear, Noise, Precision, embedding, random};

pub use beside::Beside;
pub use heads::{At, WordHead};
pub use prior::Prior;
pub use regions::{EmbeddedRegions, RegionBatch, RegionEmbedding, box_numbers};
pub use scores::UniterScores;
pub(crate) use scores::numbered;
pub use shape::UniterShape;
pub(crate) use start::unit;

use crate::Masking;
use joint::Layout;

/// UNITER with the heads of TAGS-DC.
///
/// ```text
/// x = drop([texts; regions of the row's image]),   X = blocks(x),   h = tanh(W_p X_0 + b_p)
///
/// match       s   = w h + b + p          probability σ(s); p only with a prior
/// words       a_j = H_MLM(X_j)           at the wanted positions
/// mismatch    d_j = W_d X_j + b_d        at every token; class 1: the token matches
/// correction  c_j = H_WoC(X_j)           at the wanted positions
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | texts, blocks | `bert` | `[b, l, d]` |
/// | regions | `regions` | `[Σ counts, d]` |
/// | W_p, b_p | `pooler` | d → d |
/// | w, b | `rank` | d → 1 |
/// | H_MLM | `cls` | d → vocabulary |
/// | p | `prior` | [`Prior`] |
/// | W_d, b_d | `discrimination` | d → 2 |
/// | H_WoC | `correction` | d → vocabulary |
///
/// Both word heads decode with the word embedding table, which is one parameter. `pair` is the two-way head of pretraining. Scores do not
/// use it, but every file keeps it, because the other heads begin as parts of it.
///
/// # Departures
/// The released program adds −10,000 to the scores of padding. Here padding is not a key at all: no number is added that an f16
/// cannot hold beside a score, and no mask of the size of the scores exists. Dropout of the embeddings is drawn after text and
/// regions are joined, one number for each value as in the released program.
#[derive(Module, Debug)]
pub struct Uniter {
    /// Embedding of texts, and the blocks.
    pub bert: Bert,
    /// Embedding of regions.
    pub regions: RegionEmbedding,
    /// d → d, on the first position.
    pub pooler: Linear,
    /// d → 2: the head of pretraining; class 1 is a match.
    pub pair: Linear,
    /// d → 1
    pub rank: Linear,
    /// Masked words.
    pub cls: WordHead,
    /// d → 2; from phase 2 on.
    pub discrimination: Option<Linear>,
    /// From phase 2 on.
    pub correction: Option<WordHead>,
    /// A term of the match logit: [`with_prior`](Self::with_prior).
    pub prior: Option<Prior>,
    /// Sizes.
    #[module(skip)]
    pub shape: UniterShape,
}

/// States of a batch after the blocks.
#[derive(Debug, Clone)]
pub struct Joint {
    /// `[b, s, d]`: tokens, regions, padding.
    pub states: Tensor<3>,
    /// Tokens of each row: its first positions.
    pub tokens: Vec<usize>,
    /// Tokens and regions of each row.
    pub keys: Vec<usize>,
    /// p of each row, `[b]`, if the model has a prior.
    pub prior: Option<Tensor<1>>,
}

impl Uniter {
    /// Random weights, a function of the seed, without the heads of phase 2. Matrices and tables are normal with the deviation
    /// [`initializer_range`](UniterShape::initializer_range), biases are 0, norms 1 and 0. `rank` begins as class 1 of `pair`, as in a model
    /// from a file without this head.
    ///
    /// # Panics
    /// If [`UniterShape::check`] refuses the sizes.
    pub fn seeded(shape: &UniterShape, seed: u64, device: &Device) -> Self {
        let unset = Self::unset(shape, device);
        let model = init::normal(unset, shape.initializer_range, random::derive(seed, 0));
        Self { rank: heads::output(&model.pair, 1), ..model }
    }

    /// A model of this shape whose weights are not set yet.
    fn unset(shape: &UniterShape, device: &Device) -> Self {
        if let Err(e) = shape.check() {
            panic!("{e}");
        }
        let (t, d) = (&shape.text, shape.text.width);
        let linear = |outputs| Linear::seeded(d, outputs, 0, device);
        Self {
            bert: Bert::seeded(t, 0, device),
            regions: RegionEmbedding::new(shape.features, t, device),
            pooler: linear(d),
            pair: linear(2),
            rank: linear(1),
            cls: WordHead::new(t, device),
            discrimination: None,
            correction: None,
            prior: None,
            shape: shape.clone(),
        }
    }

    /// The model with blocks of this precision: [`Bert::with_precision`].
    #[must_use]
    pub(crate) fn with_precision(self, precision: Precision) -> Self {
        Self { bert: self.bert.with_precision(precision), ..self }
    }

    /// The model with the heads of phase 2: missing heads are made, existing heads stay as they are.
    ///
    /// `discrimination` begins as both rows of `pair`, `correction` as a copy of the current `cls`.
    pub fn with_word_heads(self) -> Self {
        let discrimination = self.discrimination.or_else(|| Some(heads::copied(&self.pair)));
        let correction = self.correction.or_else(|| Some(heads::copied(&self.cls)));
        Self { discrimination, correction, ..self }
    }

    /// The model without the heads of phase 2.
    pub(crate) fn without_word_heads(self) -> Self {
        Self { discrimination: None, correction: None, ..self }
    }

    /// Rows of all regions, without dropout: [`join`](Self::join) draws dropout for each text.
    ///
    /// # Panics
    /// If the features have another width.
    pub fn embed_regions(&self, regions: &RegionBatch) -> EmbeddedRegions {
        let embedded = self.regions.forward(regions, self.bert.kinds.val().narrow(0, 1, 1));
        let prior = self.prior.as_ref().map(|prior| prior.images(regions));
        EmbeddedRegions { prior, ..embedded }
    }

    /// Encodes texts beside images: text k beside image `images[k]` of `regions`.
    ///
    /// ```
    /// # #[cfg(feature = "flex")] {
    /// use burn::tensor::Device;
    /// use itm_core::encoders::TokenBatch;
    /// use itm_kernels::Noise;
    /// use tags_dc::model::{At, RegionBatch, Uniter, UniterShape};
    ///
    /// let shape = UniterShape { features: 3, ..UniterShape::of_width(8, 2, 1, 30) };
    /// let model = Uniter::seeded(&shape, 1, &Device::flex()).with_word_heads();
    /// let image = RegionBatch::new(3, vec![2], vec![0.5; 6], vec![0.5; 14])?;
    /// let regions = model.embed_regions(&image);
    /// let texts = TokenBatch::new(&[&[2, 9, 3][..], &[2, 9, 9, 3]]);
    /// let joint = model.join(&texts, &regions, &[0, 0], Noise::Off);
    ///
    /// assert_eq!(model.match_logits(&joint).dims(), [2]);
    /// assert_eq!(model.word_logits(&joint, &[At { row: 1, position: 2 }]).dims(), [1, 30]);
    /// assert_eq!(model.discrimination_logits(&joint, &joint.every_token()).dims(), [3 + 4, 2]);
    /// # }
    /// # Ok::<(), itm_core::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is not one image for each text, an image does not exist, a token is not in the vocabulary, a text is longer
    /// than the position table, or the model has a prior and the regions come from a model without one.
    pub fn join(
        &self,
        texts: &TokenBatch,
        regions: &EmbeddedRegions,
        images: &[usize],
        noise: Noise,
    ) -> Joint {
        self.join_as_released(texts, regions, images, noise, &[])
    }

    /// As [`join`](Self::join), but every position of the rows `positives` holds the second token, as in the released program (departure 4).
    pub(crate) fn join_as_released(
        &self,
        texts: &TokenBatch,
        regions: &EmbeddedRegions,
        images: &[usize],
        noise: Noise,
        positives: &[usize],
    ) -> Joint {
        let mut layout = Layout::new(texts, &regions.counts, images, None);
        positives.iter().for_each(|&row| layout.repeat_second_token(row, texts.width));
        let x = layout.gather(self.bert.embed(texts, Noise::Off), regions);
        let x = self.bert.dropout.forward(x, noise.part(0)); // [b, s, d]
        let states = self.bert.encode(x, &layout.keys, noise);
        let prior = self.priors(texts, regions, images);
        Joint { states, tokens: layout.tokens, keys: layout.keys, prior }
    }

    /// [`match_logits`](Self::match_logits) of texts beside images, without noise. The batch has `width` positions, or as many as its longest
    /// row. The last block computes only the first position.
    fn match_logits_of(
        &self,
        texts: &TokenBatch,
        regions: &EmbeddedRegions,
        images: &[usize],
        width: Option<usize>,
    ) -> Tensor<1> {
        let layout = Layout::new(texts, &regions.counts, images, width);
        let x = layout.gather(self.bert.embed(texts, Noise::Off), regions);
        let first = self.bert.encode_first(x, &layout.keys);
        self.logits_of_first(first, self.priors(texts, regions, images))
    }

    /// Encodes texts without an image, as [`join`](Self::join) does beside one.
    fn alone(&self, texts: &TokenBatch, noise: Noise) -> Joint {
        let x = self.bert.dropout.forward(self.bert.embed(texts, Noise::Off), noise.part(0)); // [b, l, d]
        let states = self.bert.encode(x, &texts.lengths, noise);
        let (tokens, keys) = (texts.lengths.clone(), texts.lengths.clone());
        Joint { states, tokens, keys, prior: None }
    }

    /// p of texts beside images, `[b]`.
    fn priors(
        &self,
        texts: &TokenBatch,
        regions: &EmbeddedRegions,
        images: &[usize],
    ) -> Option<Tensor<1>> {
        let prior = self.prior.as_ref()?;
        let all = regions.prior.clone().expect("regions that a model with a prior embedded");
        let rows: Vec<u32> = images.iter().map(|&image| image as u32).collect();
        Some(prior.logits(texts, embedding(all, &rows, None)))
    }

    /// `s`, `[b]`: the scores that rank pairs.
    pub fn match_logits(&self, joint: &Joint) -> Tensor<1> {
        let [b, _, d] = joint.states.dims();
        let first = joint.states.clone().narrow(1, 0, 1).reshape([b, d]);
        self.logits_of_first(first, joint.prior.clone())
    }

    /// `s` of the states `X_0`, `[b, d]`.
    fn logits_of_first(&self, first: Tensor<2>, prior: Option<Tensor<1>>) -> Tensor<1> {
        let pooled = self.pooler.forward(first).tanh(); // h, [b, d]
        let logits = self.rank.forward(pooled).squeeze_dim(1);
        match prior {
            Some(prior) => logits + prior,
            None => logits,
        }
    }

    /// `σ(s)`, `[b]`, in (0, 1): the scores that the triplet losses compare.
    pub fn match_scores(&self, joint: &Joint) -> Tensor<1> {
        sigmoid(self.match_logits(joint))
    }

    /// Logits of the two-way head of pre-training, `[b, 2]`; class 1 is a match. Their softmax gives probabilities, and UNITER ranks by its
    /// class 1. [`match_logits`](Self::match_logits) is another head after fine-tuning.
    pub fn itm_logits(&self, joint: &Joint) -> Tensor<2> {
        let [b, _, d] = joint.states.dims();
        let first = joint.states.clone().narrow(1, 0, 1).reshape([b, d]);
        self.pair.forward(self.pooler.forward(first).tanh())
    }

    /// `a`, `[asked, vocabulary]`, only at these positions.
    ///
    /// # Panics
    /// If a position is not a token's position.
    pub fn word_logits(&self, joint: &Joint, asked: &[At]) -> Tensor<2> {
        self.cls.forward(joint.rows(asked), self.bert.words.val())
    }

    /// `a` at all targets of masked texts, text after text: beside images as in [`join`](Self::join), or alone.
    pub(crate) fn target_logits(
        &self,
        rows: &[&Masking],
        beside: Option<(&EmbeddedRegions, &[usize])>,
        noise: Noise,
    ) -> Tensor<2> {
        let texts: Vec<&[u32]> = rows.iter().map(|row| &row.ids[..]).collect();
        let texts = TokenBatch::new(&texts);
        let at = |(row, masked): (usize, &&Masking)| -> Vec<At> {
            masked.targets().map(|position| At { row, position }).collect()
        };
        let asked: Vec<At> = rows.iter().enumerate().flat_map(at).collect();
        let joint = match beside {
            Some((regions, images)) => self.join(&texts, regions, images, noise),
            None => self.alone(&texts, noise),
        };
        self.word_logits(&joint, &asked)
    }

    /// `d`, `[asked, 2]`, only at these positions. [`Joint::every_token`] gives all of them.
    ///
    /// # Panics
    /// If [`with_word_heads`](Self::with_word_heads) has not made the head yet, or a position is not a token's position.
    pub fn discrimination_logits(&self, joint: &Joint, asked: &[At]) -> Tensor<2> {
        let head = self.discrimination.as_ref().expect("a model with the heads of phase 2");
        head.forward(joint.rows(asked))
    }

    /// `c`, `[asked, vocabulary]`, only at these positions.
    ///
    /// # Panics
    /// If [`with_word_heads`](Self::with_word_heads) has not made the head yet, or a position is not a token's position.
    pub fn correction_logits(&self, joint: &Joint, asked: &[At]) -> Tensor<2> {
        let head = self.correction.as_ref().expect("a model with the heads of phase 2");
        head.forward(joint.rows(asked), self.bert.words.val())
    }
}

impl Joint {
    /// The positions of all tokens, text after text, also of `[CLS]` and `[SEP]`.
    pub fn every_token(&self) -> Vec<At> {
        let of =
            |(row, &tokens): (usize, &usize)| (0..tokens).map(move |position| At { row, position });
        self.tokens.iter().enumerate().flat_map(of).collect()
    }

    /// States at these positions, `[asked, d]`.
    ///
    /// # Panics
    /// If a position is not a token's position: regions begin right after a text.
    fn rows(&self, asked: &[At]) -> Tensor<2> {
        let [b, s, d] = self.states.dims();
        let id = |at: &At| {
            assert!(at.row < b, "row {} of a batch of {b}", at.row);
            let tokens = self.tokens[at.row];
            assert!(at.position < tokens, "position {} of a text of {tokens}", at.position);
            (at.row * s + at.position) as u32
        };
        let ids: Vec<u32> = asked.iter().map(id).collect();
        embedding(self.states.clone().reshape([b * s, d]), &ids, None)
    }
}
