//! A table of word vectors.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::Result;
use itm_core::encoders::{InputDropout, TokenBatch};
use itm_core::start::LinearMap;
use itm_kernels::dropout::Mask;
use itm_kernels::{Noise, embedding, masked_mean, uniform};

/// Words to the joint space without a recurrent unit: each word gets the mean of its caption.
///
/// ```text
/// e_i = drop(T[w_i]) + b,   u_i = unit(e_i + 1/m Σ_l e_l)
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | T, b | `table`, `bias` | `[vocabulary, d]`, `[d]` |
/// | u | result | `[b, l, d]` |
///
/// The mean replaces what a recurrent unit adds: with only unit rows of single words, the weight of each word would be lost. A
/// dropped word has a vector of zeros; it still counts as a word.
#[derive(Module, Debug)]
pub struct WordTable {
    /// `[vocabulary, d]`
    pub table: Param<Tensor<2>>,
    /// `[d]`
    pub bias: Param<Tensor<1>>,
}

impl WordTable {
    /// Vectors uniform in ±0.1, as a function of the seed, and a bias of 0.
    ///
    /// # Panics
    /// If memory cannot hold the vectors.
    pub(super) fn new(vocabulary: usize, d: usize, seed: u64, device: &Device) -> Self {
        let table = Param::from_tensor(uniform([vocabulary, d], 0.1, seed, device));
        Self { table, bias: Param::from_tensor(Tensor::zeros([d], device)) }
    }

    /// This table with the vectors of a map, one row per word.
    pub(super) fn with_map(self, map: &LinearMap) -> Result<Self> {
        let table = self.table.val();
        let (table, bias) = map.parameters("map of words", table.dims(), &table.device())?;
        Ok(Self { table, bias })
    }

    /// `e_i + 1/m Σ_l e_l`, `[b, l, d]`.
    pub(super) fn sums(&self, captions: &TokenBatch, dropout: InputDropout) -> Tensor<3> {
        let ([vocabulary, d], (b, l)) = (self.table.dims(), (captions.len(), captions.width));
        if let Some(k) = captions.ids.iter().position(|&id| id as usize >= vocabulary) {
            let (caption, word) = (k / l, k % l);
            panic!("caption {caption}, word {word}: {} of {vocabulary} words", captions.ids[k]);
        }
        let words = dropped(embedding(self.table.val(), &captions.ids, None), dropout);
        let words = words.reshape([b, l, d]);
        let mean = masked_mean(words.clone(), &captions.lengths).reshape([b, 1, d]);
        let twice = self.bias.val().reshape([1, 1, d]) * 2.0; // the word's own and the mean's
        words + (mean + twice)
    }
}

/// Vectors of words, `[words, e]`, after dropout: some are zero, and the others are scaled up.
pub(super) fn dropped(vectors: Tensor<2>, dropout: InputDropout) -> Tensor<2> {
    match dropout.noise {
        Noise::Seeded(seed) if dropout.share > 0.0 => {
            let [n, _] = vectors.dims();
            let mask = TensorData::new(Mask::new(dropout.share, seed).factors(n), [n, 1]);
            let mask = Tensor::<2>::from_data(mask, &vectors.device());
            vectors * mask
        }
        Noise::Seeded(_) | Noise::Off => vectors,
    }
}
