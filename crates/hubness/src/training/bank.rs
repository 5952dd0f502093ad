//! The memory bank of the AAAI objective.

use burn::tensor::Tensor;
use itm_core::host;
use itm_kernels::matmul;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::losses::BankScores;

/// Embeddings of some training pairs, made once per epoch; they have no gradient.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryBank {
    /// `[n, d]`; none while the bank is empty.
    rows: Option<[Tensor<2>; 2]>,
    /// Caption number of each entry.
    pub(super) captions: Vec<i64>,
}

impl MemoryBank {
    /// Embeddings of images and of texts on the host, `[n, d]` each.
    pub(super) fn embeddings(&self) -> [Vec<f32>; 2] {
        self.rows.clone().map_or_else(Default::default, |rows| rows.map(host))
    }

    /// Adds pairs.
    pub(super) fn push(&mut self, images: Tensor<2>, texts: Tensor<2>, captions: &[i64]) {
        self.rows = Some(match self.rows.take() {
            None => [images, texts],
            Some([u, v]) => [Tensor::cat(vec![u, images], 0), Tensor::cat(vec![v, texts], 0)],
        });
        self.captions.extend(captions);
    }

    /// Scores of a batch against the entries of other captions than its own.
    pub(super) fn scores(
        &self,
        images: Tensor<2>,
        texts: Tensor<2>,
        captions: &[i64],
    ) -> BankScores {
        let Some([u, v]) = self.rows.clone() else { return BankScores::default() };
        let mut own = captions.to_vec();
        own.sort_unstable();
        let kept: Vec<bool> =
            self.captions.iter().map(|caption| own.binary_search(caption).is_err()).collect();
        let left = |anchors: Tensor<2>, bank: Tensor<2>| -> Vec<f32> {
            let scores = host(matmul(anchors, bank.transpose()));
            let keep = scores.into_iter().zip(kept.iter().cycle());
            keep.filter_map(|(score, &kept)| kept.then_some(score)).collect()
        };
        BankScores {
            entries: kept.iter().filter(|&&kept| kept).count(),
            to_texts: left(images, v),
            to_images: left(texts, u),
        }
    }
}

/// The batches whose pairs make the bank of an epoch. The captions are shuffled and cut into batches; each batch is kept
/// whole with probability `rate`. The result is a function of the seed.
pub(super) fn chosen_batches(
    captions: usize,
    batch: usize,
    rate: f64,
    seed: u64,
) -> Vec<Vec<usize>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..captions).collect();
    order.shuffle(&mut rng);
    let batches = order.chunks(batch).map(<[usize]>::to_vec);
    batches.filter(|_| rng.random::<f64>() < rate).collect()
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests;
