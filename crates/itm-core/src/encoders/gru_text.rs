//! A text encoder: word vectors, a gated recurrent unit, one embedding per caption.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use itm_kernels::{Gru, embedding, masked_mean, normalize_rows, random, uniform};
use serde::{Deserialize, Serialize};

use super::TokenBatch;

/// How the states of a caption's words become one embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TextPool {
    /// Their mean, FNE Eq. (1): `w̄ = (1/l) Σ w_j` over the real words.
    #[default]
    Mean,
    /// The state after the last real word.
    Last,
    /// The largest value of each coordinate over the real words.
    Max,
}

/// Encodes captions into the joint space: word vectors, states, one pooled row of unit length.
///
/// ```text
/// w_j = GRU(E[id_1], …, E[id_j]),   w̄ = (1/l) Σ_j w_j,  w_l  or  max_j w_j,   then w̄ / ‖w̄‖
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | E | `words` | `[V, e]` |
/// | GRU | `gru` | e → d |
/// | w̄ | result | `[b, d]` |
///
/// A caption's embedding does not depend on its batch. Dropout of word vectors goes between `vectors`
/// and [`encode_vectors`](Self::encode_vectors).
#[derive(Module, Debug)]
pub struct GruText {
    /// `[V, e]`
    pub words: Param<Tensor<2>>,
    /// e → d
    pub gru: Gru,
    /// How states become one embedding.
    #[module(skip)]
    pub pool: TextPool,
}

impl GruText {
    /// Draws word vectors uniformly from ±0.1 (as VSE++) and the unit as [`Gru::seeded`]. The seed decides all values. The sizes are
    /// `[V, e, d]`. V includes the words for padding and unknown words.
    ///
    /// # Panics
    /// If a width is 0, or memory cannot hold the weights.
    pub fn new(
        [vocabulary, word_width, hidden]: [usize; 3],
        pool: TextPool,
        seed: u64,
        device: &Device,
    ) -> Self {
        let words = uniform([vocabulary, word_width], 0.1, random::derive(seed, 0), device);
        let gru = Gru::seeded(word_width, hidden, random::derive(seed, 1), device);
        Self { words: Param::from_tensor(words), gru, pool }
    }

    /// Vectors of the words, `[b·l, e]`.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary.
    pub fn vectors(&self, captions: &TokenBatch) -> Tensor<2> {
        captions.check(self.words.dims()[0]);
        embedding(self.words.val(), &captions.ids, None)
    }

    /// Embeddings of captions.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary.
    pub fn encode(&self, captions: &TokenBatch) -> Tensor<2> {
        self.encode_vectors(self.vectors(captions), captions)
    }

    /// Embeddings of captions whose word vectors the caller has changed, for example by dropout with its own mask.
    ///
    /// # Panics
    /// If there is not one vector per word of the padded batch.
    pub fn encode_vectors(&self, vectors: Tensor<2>, captions: &TokenBatch) -> Tensor<2> {
        let [rows, width] = vectors.dims();
        captions.check_sizes();
        assert_eq!(rows, captions.ids.len(), "vectors of the words of a batch");
        let vectors = vectors.reshape([captions.len(), captions.width, width]);
        let states = self.gru.forward(vectors, &captions.lengths);
        let [b, l, d] = states.dims(); // padded steps repeat the last real state
        normalize_rows(match self.pool {
            TextPool::Mean => masked_mean(states, &captions.lengths),
            TextPool::Last => states.narrow(1, l - 1, 1).reshape([b, d]),
            TextPool::Max => states.max_dim(1).reshape([b, d]),
        })
    }
}
