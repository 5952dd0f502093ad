//! Captions to w̄: a gated recurrent unit over words, a bag of stems, or BERT, CLIP or SigLIP over word pieces.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_kernels::{Dropout, Linear, TransformerBlock, normalize_rows};

use super::config::set_memory;
use super::{TextConfig, TowerDropout, TrainTruncate, WithReport, derive, projected, started};
use crate::encoders::{
    BagOfWords, Bert, DualEncoder, GruText, PiecePool, TextTower, TokenBatch, table_values,
};
use crate::learn::{check_texts, size_within};
use crate::ranges::in_memory;
use crate::start::{InputStatistics, Start};
use crate::{Error, Result};

/// The encoder of captions.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // only two values exist
pub enum TextEncoder {
    /// Reads words in their order.
    Gru(GruText),
    /// Reads word pieces in their order.
    Bert(BertEncoder),
    /// Reads stems as a set.
    Bag(BagOfWords),
    /// Reads the word pieces of CLIP or SigLIP in their order: w̄ = rows / ‖rows‖ with `TextTower::rows`.
    Clip(TextTower),
}

/// Captions of a batch as an encoder takes them.
#[derive(Debug, Clone)]
pub enum CaptionInput {
    /// In their order, padded.
    Ordered(TokenBatch),
    /// As sets; some may be empty.
    Sets(Vec<Vec<u32>>),
}

/// BERT, a mean over its rows, and perhaps a fully connected layer after it.
///
/// ```text
/// w̄ = (1/l) Σ w_j,   w̄ ← w̄ W + b  with a projection,   then w̄ / ‖w̄‖
/// ```
///
/// w̄ has unit length before the projection too if a folder of sentence-transformers says so, or if the projection begins with
/// closed-form CCA of such rows.
#[derive(Module, Debug)]
pub struct BertEncoder {
    /// Makes a row for each word piece.
    pub bert: Bert,
    /// W and b, if there is a projection.
    pub projection: Option<Linear>,
    /// Which rows the mean is over.
    #[module(skip)]
    pub pool: PiecePool,
    /// Whether rows have unit length before the projection.
    #[module(skip)]
    pub unit: bool,
}

impl TextEncoder {
    /// An encoder with random or published weights, and a report on the published weights.
    ///
    /// # Errors
    /// As [`Encoders::open`](super::Encoders::open).
    pub fn open(
        config: &TextConfig,
        (vocabulary, embed_dim): (usize, usize),
        seed: u64,
        device: &Device,
    ) -> Result<WithReport<Self>> {
        size_within("vocabulary", vocabulary)?;
        let config = match config {
            TextConfig::Gru(config) => {
                let (word_width, hidden) = (config.word_dim, embed_dim);
                let maps = [[vocabulary, word_width], [3 * hidden, word_width + hidden]];
                in_memory("model.text", maps.iter().map(|map| table_values(map)).sum())?;
                let sizes = [vocabulary, word_width, hidden];
                let gru = GruText::new(sizes, config.pool, derive(seed, 2), device);
                return Ok((Self::Gru(gru), None));
            }
            TextConfig::Bag(config) => {
                in_memory("model.text", table_values(&[vocabulary, embed_dim]))?;
                let mut bag = BagOfWords::new(vocabulary, embed_dim, derive(seed, 2), device);
                bag.pooling = config.pooling;
                return Ok((Self::Bag(bag), None));
            }
            TextConfig::Clip(config) => {
                let (model, report) = DualEncoder::open(config.folder()?.0, device)?;
                let mut tower = model.text;
                covers(vocabulary, tower.shape.vocabulary)?;
                set_memory(&mut tower.blocks, config.gradient_checkpointing);
                return Ok((Self::Clip(tower), Some(report)));
            }
            TextConfig::Bert(config) => config,
        };
        let (mut bert, report) = match config.weights.folder()? {
            Some(folder) => {
                Bert::open(folder, device).map(|(bert, report)| (bert, Some(report)))?
            }
            None => {
                let shape = config.shape()?;
                in_memory("model.text.weights", shape.values())?;
                (Bert::seeded(&shape, derive(seed, 2), device), None)
            }
        };
        covers(vocabulary, bert.shape.vocabulary)?;
        set_memory(&mut bert.blocks, config.gradient_checkpointing);
        let sizes = [bert.shape.width, embed_dim];
        let projection = config.projection.map(sizes, derive(seed, 7), device)?;
        let (pool, unit) = (config.pool, config.sentence()?.unwrap_or(false));
        Ok((Self::Bert(BertEncoder { bert, projection, pool, unit }), report))
    }

    /// The blocks, if there are any.
    pub(super) fn blocks_mut(&mut self) -> &mut [TransformerBlock] {
        match self {
            Self::Gru(_) | Self::Bag(_) => &mut [],
            Self::Bert(encoder) => &mut encoder.bert.blocks,
            Self::Clip(tower) => &mut tower.blocks,
        }
    }

    /// Prepares captions for this encoder. Captions in word order are padded to `width`, if it is given.
    pub fn read<C: AsRef<[u32]>>(&self, captions: &[C], width: Option<usize>) -> CaptionInput {
        match (self, width) {
            (Self::Bag(_), _) => CaptionInput::Sets(
                captions.iter().map(|caption| caption.as_ref().to_vec()).collect(),
            ),
            (_, Some(width)) => CaptionInput::Ordered(TokenBatch::padded_to(captions, width)),
            (_, None) => CaptionInput::Ordered(TokenBatch::new(captions)),
        }
    }

    /// w̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If the captions were read by another kind of encoder, a word's number is not in the vocabulary, or a caption has more
    /// pieces than BERT has positions.
    pub fn encode(&self, captions: &CaptionInput, dropout: TowerDropout) -> Tensor<2> {
        match (self, captions) {
            (Self::Gru(gru), CaptionInput::Ordered(tokens)) => encode_words(gru, tokens, dropout),
            (Self::Bag(bag), CaptionInput::Sets(captions)) => bag.encode(captions, dropout.stems()),
            (Self::Bert(encoder), CaptionInput::Ordered(tokens)) => {
                let states = encoder.bert.forward(tokens, dropout.part(4));
                let rows = encoder.pool.pool(states, tokens);
                let rows = if encoder.unit { normalize_rows(rows) } else { rows };
                normalize_rows(projected(&encoder.projection, rows))
            }
            (Self::Clip(tower), CaptionInput::Ordered(tokens)) => {
                normalize_rows(tower.rows(tokens))
            }
            (Self::Bag(_), CaptionInput::Ordered(_)) => panic!("words in order for a bag of stems"),
            (_, CaptionInput::Sets(_)) => panic!("a bag of stems for an encoder of words in order"),
        }
    }

    /// A row of the joint space for each word piece, `[b, l, d]`, not of unit length: what the encoder's map makes of the piece's row.
    /// Where the pooled row gets unit length before the map, the piece's row keeps its own length.
    ///
    /// # Panics
    /// As [`encode`](Self::encode), and if the encoder reads no word pieces.
    pub fn tokens(&self, captions: &CaptionInput, dropout: TowerDropout) -> Tensor<3> {
        let CaptionInput::Ordered(tokens) = captions else { panic!("stems without an order") };
        let states = match self {
            Self::Bert(encoder) => encoder.bert.forward(tokens, dropout.part(4)),
            Self::Clip(tower) => tower.tokens(tokens),
            Self::Gru(_) | Self::Bag(_) => panic!("word pieces of an encoder of words or stems"),
        };
        let [b, l, width] = states.dims();
        let each = states.reshape([b * l, width]);
        let rows = match self {
            Self::Bert(encoder) => projected(&encoder.projection, each),
            Self::Clip(tower) => tower.rows_of(each),
            Self::Gru(_) | Self::Bag(_) => each,
        };
        let d = rows.dims()[1];
        rows.reshape([b, l, d])
    }

    /// Number of the word pieces of a caption without its padding, which SigLIP reads too: all pieces but the copies of the last.
    pub fn unpadded(&self, caption: &[u32]) -> usize {
        let padded = matches!(self, Self::Clip(tower) if tower.shape.end.is_none());
        let copies = caption.windows(2).rev().take_while(|two| padded && two[0] == two[1]).count();
        caption.len() - copies
    }

    /// Refuses captions that the encoder cannot encode.
    ///
    /// # Errors
    /// If a word's number is outside the vocabulary. Except for a bag of words, also if a caption has no word, or more words
    /// than the encoder has positions. CLIP and SigLIP: also if a caption of CLIP
    /// does not end with the end piece, or captions of SigLIP are not padded to all positions.
    pub fn check<C: AsRef<[u32]>>(&self, captions: &[C]) -> Result<()> {
        let known = match self {
            Self::Gru(gru) => gru.words.dims()[0],
            Self::Bag(bag) => bag.weight.dims()[0],
            Self::Bert(encoder) => encoder.bert.shape.vocabulary,
            Self::Clip(tower) => tower.shape.vocabulary,
        };
        let has = |word: u32| match self {
            Self::Bag(bag) => bag.has(word),
            _ => (word as usize) < known,
        };
        for (row, caption) in captions.iter().enumerate() {
            if let Some(word) = caption.as_ref().iter().find(|&&word| !has(word)) {
                let place = format!("caption {row} of the batch");
                let expected = format!("numbers of words below {known}, the vocabulary");
                return Err(Error::invalid(place, expected, word));
            }
        }
        if !matches!(self, Self::Bag(_)) {
            check_texts(captions, self.most_words())?;
        }
        match self {
            Self::Clip(tower) if !captions.is_empty() => {
                tower.shape.check(&TokenBatch::new(captions))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn with_inputs(self, inputs: &InputStatistics) -> Result<Self> {
        let Self::Bag(mut bag) = self else { return Ok(self) };
        if let Some(rows) = &inputs.rows {
            bag = bag.with_rows(rows.clone())?;
        }
        if let Some(idf) = &inputs.idf {
            bag = bag.with_idf(idf)?;
        }
        Ok(Self::Bag(bag))
    }

    pub(super) fn with_start(self, start: &Start) -> Result<Self> {
        match self {
            Self::Bag(bag) => Ok(Self::Bag(bag.with_map(&start.text)?)),
            Self::Bert(encoder) => {
                let projection = started(encoder.projection, &start.text, "map of captions")?;
                Ok(Self::Bert(BertEncoder { projection, ..encoder }))
            }
            _ => {
                let got = "one of words in their order";
                Err(Error::invalid("a start", "a text encoder of stems", got))
            }
        }
    }

    /// Whether a word can be replaced by the unknown word.
    pub fn has_unknown_word(&self) -> bool {
        matches!(self, Self::Gru(_))
    }

    /// The largest number of words per caption, if there is a bound.
    pub(super) fn most_words(&self) -> Option<usize> {
        match self {
            Self::Gru(_) | Self::Bag(_) => None,
            Self::Bert(encoder) => Some(encoder.bert.shape.positions),
            Self::Clip(tower) => Some(tower.shape.positions),
        }
    }
}

/// Refuses captions of more word pieces than a table has rows.
fn covers(vocabulary: usize, rows: usize) -> Result<()> {
    let expected = format!("a vocabulary of at most {rows} word pieces");
    Error::unless(vocabulary <= rows, "model.text.weights", expected, vocabulary)
}

fn encode_words(gru: &GruText, tokens: &TokenBatch, dropout: TowerDropout) -> Tensor<2> {
    let vectors = Dropout::new(dropout.share).forward(gru.vectors(tokens), dropout.part(2));
    gru.encode_vectors(vectors, tokens)
}

impl TextConfig {
    /// A training caption. With P3, a caption of more than `max_length` word pieces keeps its first pieces and its last one, `[SEP]`.
    pub fn training(&self, words: &[u32]) -> Vec<u32> {
        match self {
            Self::Bert(config) if config.train_truncate == TrainTruncate::Off => words.to_vec(),
            _ => self.evaluation(words),
        }
    }

    /// An evaluation caption. For BERT it is always cut.
    pub fn evaluation(&self, words: &[u32]) -> Vec<u32> {
        match self {
            Self::Bert(config) => cut(words, config.max_length),
            _ => words.to_vec(),
        }
    }

    /// P2: the width that evaluation captions are padded to, if the embedding depends on this width.
    pub(crate) fn evaluation_width(&self) -> Option<usize> {
        match self {
            Self::Bert(config) if config.pool == PiecePool::All => Some(config.max_length),
            _ => None,
        }
    }
}

/// The first `most - 1` pieces and the last.
fn cut(words: &[u32], most: usize) -> Vec<u32> {
    match words {
        [first @ .., last] if words.len() > most => {
            [&first[..most.saturating_sub(1)], &[*last]].concat()
        }
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
