//! Captions to w̄: a gated recurrent unit over words, or BERT over word pieces.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_core::encoders::{Bert, GruText, GruTextShape, PiecePool, TokenBatch};
use itm_core::weights::Hub;
use itm_core::{Error, Result};
use itm_kernels::{Linear, normalize_rows};

use super::{Dropout, Loaded, derive};
use crate::config::{BertConfig, Projected, TextConfig, TrainTruncate, Weights};

/// The text side of [`Encoders`](super::Encoders).
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // two of them exist
pub enum TextEncoder {
    /// Of words.
    Gru(GruText),
    /// Of word pieces.
    Bert(BertEncoder),
}

/// BERT, a mean over its rows, and perhaps a fully connected layer after it.
///
/// ```text
/// w̄ = (1/l) Σ w_j,   w̄ ← w̄ W + b  with a projection,   then w̄ / ‖w̄‖
/// ```
#[derive(Module, Debug)]
pub struct BertEncoder {
    /// Word pieces to a row each.
    pub bert: Bert,
    /// W, b
    pub projection: Option<Linear>,
    /// The rows whose mean is taken.
    #[module(skip)]
    pub pool: PiecePool,
}

impl BertEncoder {
    /// Rows in the joint space, not of unit length.
    pub(crate) fn projected(&self, rows: Tensor<2>) -> Tensor<2> {
        match &self.projection {
            Some(projection) => projection.forward(rows),
            None => rows,
        }
    }
}

impl TextEncoder {
    /// Random or published weights; the report of the latter.
    pub(super) fn open(
        config: &TextConfig,
        (vocabulary, embed_dim): (usize, usize),
        seed: u64,
        device: &Device,
    ) -> Result<Loaded<Self>> {
        let config = match config {
            TextConfig::Gru(config) => {
                let shape = GruTextShape {
                    vocabulary,
                    word_width: config.word_dim,
                    hidden: embed_dim,
                    pool: config.pool,
                };
                return Ok((Self::Gru(GruText::new(&shape, derive(seed, 2), device)), None));
            }
            TextConfig::Bert(config) => config,
        };
        let (mut bert, report) = bert(config, derive(seed, 2), device)?;
        let rows = bert.shape.vocabulary;
        if vocabulary > rows {
            let expected = format!("a vocabulary of at most {rows} word pieces");
            return Err(Error::invalid("model.text.weights", expected, vocabulary));
        }
        bert.blocks.iter_mut().for_each(|block| block.memory = config.activations);
        let projection = (config.projection == Projected::Linear)
            .then(|| Linear::seeded(bert.shape.width, embed_dim, derive(seed, 7), device));
        Ok((Self::Bert(BertEncoder { bert, projection, pool: config.pool }), report))
    }

    /// w̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary, or a caption has more pieces than BERT has positions.
    pub fn encode(&self, tokens: &TokenBatch, dropout: Dropout) -> Tensor<2> {
        match self {
            Self::Gru(gru) => encode_words(gru, tokens, dropout),
            Self::Bert(encoder) => {
                let states = encoder.bert.forward(tokens, dropout.noise(4));
                normalize_rows(encoder.projected(encoder.pool.pool(states, tokens)))
            }
        }
    }

    /// Most words of a caption, if there is a bound.
    pub(crate) fn most_words(&self) -> Option<usize> {
        match self {
            Self::Gru(_) => None,
            Self::Bert(encoder) => Some(encoder.bert.shape.positions),
        }
    }
}

fn bert(config: &BertConfig, seed: u64, device: &Device) -> Result<Loaded<Bert>> {
    match &config.weights {
        Weights::Pretrained(name) => {
            let (bert, report) = Bert::open(Hub::from_env().folder(name)?, device)?;
            Ok((bert, Some(report)))
        }
        Weights::Random(shape) => Ok((Bert::seeded(shape, seed, device), None)),
    }
}

fn encode_words(gru: &GruText, tokens: &TokenBatch, dropout: Dropout) -> Tensor<2> {
    let vectors = gru.vectors(tokens);
    let vectors = match dropout {
        Dropout::Off => vectors,
        Dropout::On { share, .. } => {
            itm_kernels::Dropout::new(share).forward(vectors, dropout.noise(2))
        }
    };
    gru.encode_vectors(vectors, tokens)
}

impl TextConfig {
    /// A caption of training: P3. Word pieces beyond `max_pieces` are left out, but for the last one, `[SEP]`.
    pub(crate) fn training(&self, words: &[u32]) -> Vec<u32> {
        match self {
            Self::Bert(config) if config.train_truncate == TrainTruncate::On => {
                cut(words, config.max_pieces)
            }
            _ => words.to_vec(),
        }
    }

    /// A caption of evaluation: always cut.
    pub(crate) fn evaluation(&self, words: &[u32]) -> Vec<u32> {
        match self {
            Self::Bert(config) => cut(words, config.max_pieces),
            Self::Gru(_) => words.to_vec(),
        }
    }

    /// The width that captions of evaluation are padded to, if it matters: P2.
    pub(crate) fn evaluation_width(&self) -> Option<usize> {
        match self {
            Self::Bert(config) if config.pool == PiecePool::All => Some(config.max_pieces),
            _ => None,
        }
    }

    /// Whether an embedding depends on how wide its batch is padded.
    pub(crate) fn padding_counts(&self) -> bool {
        self.evaluation_width().is_some()
    }
}

/// The first `most - 1` pieces and the last.
fn cut(words: &[u32], most: usize) -> Vec<u32> {
    match words {
        [first @ .., last] if words.len() > most => [&first[..most - 1], &[*last]].concat(),
        _ => words.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: [CLS] 2, [SEP] 3.
    #[test]
    fn a_cut_caption_ends_as_it_did() {
        assert_eq!(cut(&[2, 7, 8, 9, 3], 4), [2, 7, 8, 3]);
        assert_eq!(cut(&[2, 7, 8, 9, 3], 5), [2, 7, 8, 9, 3]);
        assert_eq!(cut(&[2, 7, 8, 9, 3], 2), [2, 3]);
        assert_eq!(cut(&[2, 3], 2), [2, 3]);
    }
}
