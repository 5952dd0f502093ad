//! Sizes of the weights and activations of encoders.
//!
//! Numbers of weights are exact and count values. Activations are the bytes, in f32, that one item (an image or a
//! caption) adds to a step. They are an upper estimate of two parts: values that are kept from the forward pass to the
//! backward pass, and values that either pass needs temporarily.

/// The values that a step keeps from the blocks of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// All values that the backward pass reads.
    All,
    /// Only the input of each block; the other values are computed again (gradient checkpointing).
    BlockInputs,
}

/// Whether the attention scores are ever stored as a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    /// No: attention is one operation, which keeps a few numbers per row.
    Fused,
    /// Yes: attention is composed of matrix products and a softmax.
    Composed,
}

/// The blocks of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transformer {
    /// Width d of a token.
    pub width: u64,
    /// Number L of blocks.
    pub layers: u64,
    /// Number h of heads.
    pub heads: u64,
    /// Hidden width m of the perceptron.
    pub mlp: u64,
}

impl Transformer {
    /// Number of weights of all blocks.
    ///
    /// ```text
    /// L · (3d² + 3d   packed q, k, v
    ///    + d² + d     output of the attention
    ///    + 2dm + m + d
    ///    + 4d)        two layer norms
    /// ```
    pub fn weights(&self) -> u64 {
        let Self { width: d, layers, mlp: m, .. } = *self;
        layers * (4 * d * d + 4 * d + 2 * d * m + m + d + 4 * d)
    }

    /// Bytes of one item of `tokens` tokens.
    ///
    /// ```text
    /// block = 8td + 2tm + s     x, norm, q, k, v, attended, x′, norm | up, gelu     s = 2th fused, 2ht² composed
    /// all          = (L + 1) · block
    /// block inputs = L · td + 2 · block
    /// ```
    ///
    /// The extra block stands for the gradients that the backward pass of a block holds. With checkpointing, the second
    /// extra block is the block that is computed again.
    pub fn activations(&self, tokens: u64, kept: Kept, scores: Scores) -> u64 {
        let Self { width: d, layers, heads, mlp: m } = *self;
        let scores = match scores {
            Scores::Fused => 2 * tokens * heads,
            Scores::Composed => 2 * heads * tokens * tokens,
        };
        let block = 8 * tokens * d + 2 * tokens * m + scores;
        4 * match kept {
            Kept::All => (layers + 1) * block,
            Kept::BlockInputs => layers * tokens * d + 2 * block,
        }
    }
}

/// A vision transformer without a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vit {
    /// Its blocks.
    pub blocks: Transformer,
    /// Width and height of an image.
    pub pixels: u64,
    /// Width and height of a patch.
    pub patch: u64,
}

impl Vit {
    /// ViT-B/16 for images of this size in pixels.
    pub fn base_16(pixels: u64) -> Self {
        let blocks = Transformer { width: 768, layers: 12, heads: 12, mlp: 3072 };
        Self { blocks, pixels, patch: 16 }
    }

    /// Number of patches plus one for the class token.
    pub fn tokens(&self) -> u64 {
        let side = self.pixels / self.patch;
        side * side + 1
    }

    /// Number of weights: patches, class token, positions, blocks, last norm.
    pub fn weights(&self) -> u64 {
        let d = self.blocks.width;
        (3 * self.patch * self.patch + 1) * d
            + d
            + self.tokens() * d
            + self.blocks.weights()
            + 2 * d
    }

    /// Bytes of one image: pixels twice (as an image and as patches), embedded patches, blocks, last norm.
    pub fn activations(&self, kept: Kept, scores: Scores) -> u64 {
        let (t, d) = (self.tokens(), self.blocks.width);
        let ends = 2 * 3 * self.pixels * self.pixels + 3 * t * d;
        4 * ends + self.blocks.activations(t, kept, scores)
    }
}

/// BERT without its pooler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bert {
    /// Its blocks.
    pub blocks: Transformer,
    /// Number of word pieces.
    pub vocabulary: u64,
    /// Longest text in tokens.
    pub positions: u64,
}

impl Bert {
    /// BERT-base, uncased.
    pub fn base() -> Self {
        let blocks = Transformer { width: 768, layers: 12, heads: 12, mlp: 3072 };
        Self { blocks, vocabulary: 30_522, positions: 512 }
    }

    /// Number of weights: word pieces, positions, two kinds of text, first norm, blocks.
    pub fn weights(&self) -> u64 {
        let d = self.blocks.width;
        (self.vocabulary + self.positions + 2) * d + 2 * d + self.blocks.weights()
    }

    /// Bytes of one text: sum of the three embeddings, first norm, blocks.
    pub fn activations(&self, tokens: u64, kept: Kept, scores: Scores) -> u64 {
        4 * 4 * tokens * self.blocks.width + self.blocks.activations(tokens, kept, scores)
    }
}

/// Word vectors and a gated recurrent unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GruText {
    /// Number V of words.
    pub vocabulary: u64,
    /// Width e of a word vector.
    pub word_width: u64,
    /// Width d of the states.
    pub hidden: u64,
}

impl GruText {
    /// Number of weights: `V·e + 3d(e + d) + 6d`.
    pub fn weights(&self) -> u64 {
        let Self { vocabulary, word_width: e, hidden: d } = *self;
        vocabulary * e + 3 * d * (e + d) + 6 * d
    }

    /// Bytes of one text.
    ///
    /// ```text
    /// l · (6e      vectors, mask, masked vectors, and their gradients
    ///    + 17d)    forward: three gates of the input, four kept, states twice; backward: twice three gates, states twice
    /// ```
    pub fn activations(&self, words: u64) -> u64 {
        4 * words * (6 * self.word_width + 17 * self.hidden)
    }
}

/// A linear map of given features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projection {
    /// Width x of the features.
    pub features: u64,
    /// Width d of the result.
    pub width: u64,
}

impl Projection {
    /// Number of weights: `x·d + d`.
    pub fn weights(&self) -> u64 {
        (self.features + 1) * self.width
    }

    /// Bytes of one image: its features five times (given, transformed, mask, masked, as a tensor), the result four
    /// times.
    pub fn activations(&self) -> u64 {
        4 * (5 * self.features + 4 * self.width)
    }
}

/// A perceptron parallel to a linear map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residual {
    /// Width x of the features.
    pub features: u64,
    /// Width h of the hidden layer.
    pub hidden: u64,
    /// Width d of the result.
    pub width: u64,
}

impl Residual {
    /// Number of weights: `x·h + h + h·d + d`.
    pub fn weights(&self) -> u64 {
        let Self { features: x, hidden: h, width: d } = *self;
        (x + 1) * h + (h + 1) * d
    }

    /// Bytes of one image.
    ///
    /// ```text
    /// 2x      scaled features, as values and as a tensor
    /// + 7h    hidden layer: product, times f, ReLU, dropped; three gradients
    /// + 4d    result: product, times f, sum with the map; a gradient
    /// ```
    pub fn activations(&self) -> u64 {
        4 * (2 * self.features + 7 * self.hidden + 4 * self.width)
    }
}

/// A bag of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BagOfWords {
    /// Number V of terms.
    pub terms: u64,
    /// Width d of the result.
    pub width: u64,
}

impl BagOfWords {
    /// Number of weights: `V·d + d`.
    pub fn weights(&self) -> u64 {
        (self.terms + 1) * self.width
    }

    /// Bytes of one text with this number of terms: for each term, number, value and bag twice; the sum, the sum with
    /// bias, the row of unit length, and the gradients of these three.
    pub fn activations(&self, terms: u64) -> u64 {
        4 * (6 * terms + 6 * self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand; the papers round to 86 and 110 million. A block has 4 · 768² + 4 · 768 + 2 · 768 · 3072 + 3072 + 768 +
    /// 4 · 768 = 7,087,872 weights. ViT also has 769 · 768 = 590,592 for the patches (768 + 1 rows), 768 for the class
    /// token, 197 · 768 = 151,296 for the positions and 1,536 for the norm. BERT also has 31,036 · 768 = 23,835,648 for
    /// its tables and 1,536 for its norm.
    #[test]
    fn weights_of_the_papers_models() {
        let vit = Vit::base_16(224);
        assert_eq!(vit.blocks.weights(), 12 * 7_087_872);
        assert_eq!(vit.weights(), 85_798_656);
        assert_eq!(Vit::base_16(384).weights(), 85_798_656 + (577 - 197) * 768);
        assert_eq!(Bert::base().weights(), 108_891_648);
    }

    /// By hand, for an image of ViT-B/16 at 224 pixels: t = 197, td = 151,296, tm = 605,184. A block has 8 · 151,296 +
    /// 2 · 605,184 + 2 · 197 · 12 = 2,425,464 values, thirteen blocks have 31,531,032. Pixels, embedded patches and
    /// last norm add 301,056 + 453,888 = 754,944. In bytes: 129,143,904.
    #[test]
    fn activations_of_an_image_and_a_text() {
        let vit = Vit::base_16(224);
        assert_eq!(vit.activations(Kept::All, Scores::Fused), 129_143_904);
        // Each of thirteen blocks has 2 · 12 · 197² − 2 · 197 · 12 = 926,688 more values.
        let more = 4 * 13 * 926_688;
        assert_eq!(vit.activations(Kept::All, Scores::Composed), 129_143_904 + more);
        // 12 · 151,296 + 2 · 2,425,464 = 6,666,480 values, plus the same 754,944.
        assert_eq!(vit.activations(Kept::BlockInputs, Scores::Fused), 4 * (6_666_480 + 754_944));
        // 32 tokens: td = 24,576, tm = 98,304; 13 · (196,608 + 196,608 + 768) + 98,304 values.
        let text = Bert::base().activations(32, Kept::All, Scores::Fused);
        assert_eq!(text, 4 * (13 * 393_984 + 98_304));
    }

    /// By hand: 10 · 4 + 3 · 6 · (4 + 6) + 36 = 256 weights, 3 · (24 + 102) = 378 values for three words; 5 · 3 + 3 =
    /// 18 weights, 25 + 12 = 37 values.
    #[test]
    fn a_small_unit_and_a_projection() {
        let gru = GruText { vocabulary: 10, word_width: 4, hidden: 6 };
        assert_eq!((gru.weights(), gru.activations(3)), (256, 4 * 378));
        let map = Projection { features: 5, width: 3 };
        assert_eq!((map.weights(), map.activations()), (18, 4 * 37));
    }

    /// By hand: 6 · 4 + 5 · 3 = 39 weights, 10 + 28 + 12 = 50 values; 11 · 3 = 33 weights, 24 + 18 = 42 values for four
    /// terms.
    #[test]
    fn a_small_perceptron_and_a_bag() {
        let residual = Residual { features: 5, hidden: 4, width: 3 };
        assert_eq!((residual.weights(), residual.activations()), (39, 4 * 50));
        let bag = BagOfWords { terms: 10, width: 3 };
        assert_eq!((bag.weights(), bag.activations(4)), (33, 4 * 42));
    }
}
