//! The sampler of false-negative elimination, behind the seam every triplet loss uses.

use burn::tensor::{Bool, Tensor, TensorData};
use itm_core::{Block, NegativeSampler, host};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::draw::draw;
use crate::statistics::Snapshot;
use crate::weights::{Excluded, Pool, Rule, weights};

/// Draws one negative per anchor with the weights of Eq. 13: w_FNE, v_FNE of Eq. 15.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use fne::{FneSampler, Preset, Snapshot};
/// use itm_core::{Block, triplet};
///
/// let scores = Tensor::<2>::from_floats([[0.9, 0.8], [0.1, 0.5]], &Device::flex());
/// let rule = Preset::Official.sampler().rule();
/// let mut sampler = FneSampler::new(rule, Snapshot::default(), 7);
/// let loss = triplet(&Block::in_batch(scores), &mut sampler, 0.2).sum(); // one candidate each
/// assert!((loss.into_scalar::<f32>() - 0.1).abs() < 1e-6);
/// ```
#[derive(Debug, Clone)]
pub struct FneSampler {
    rule: Rule,
    seen: Snapshot,
    rng: ChaCha8Rng,
}

impl FneSampler {
    /// Weighs by `rule` with the statistics `seen`; a function of the seed.
    pub fn new(rule: Rule, seen: Snapshot, seed: u64) -> Self {
        Self { rule, seen, rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// One column per anchor; each call draws anew. A row without an admissible candidate may get a
    /// masked one: its hinge counts 0.
    pub fn choose(&mut self, pool: &Pool) -> Vec<usize> {
        draw(&weights(pool, &self.rule, &self.seen), pool.candidates(), self.rng.random())
    }
}

impl NegativeSampler for FneSampler {
    fn select(&mut self, block: &Block) -> Tensor<2, Bool> {
        let [b, n] = block.scores.dims();
        let floats = |t: &Tensor<2>| host(t.clone().detach());
        let excluded = block.excluded.clone().into_data().convert::<bool>();
        let excluded = excluded.try_into_vec::<bool>().expect("a mask is bool after conversion");
        let pool = Pool {
            scores: &floats(&block.scores),
            positive: &floats(&block.positive),
            excluded: Excluded::Mask(&excluded),
        };
        let mut selected = vec![false; b * n];
        for (i, j) in self.choose(&pool).into_iter().enumerate() {
            selected[i * n + j] = !pool.excluded(i, j);
        }
        Tensor::from_data(TensorData::new(selected, [b, n]), &block.scores.device())
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::Preset;

    #[test]
    fn one_admissible_column_per_row() {
        let scores = Tensor::<2>::from_floats([[0.9, 0.8, 0.7], [0.1, 0.5, 0.4]], &Device::flex());
        let excluded = Tensor::<2, Bool>::from_data(
            [[true, false, false], [true, true, true]],
            &Device::flex(),
        );
        let block = Block::new(scores.clone().narrow(1, 0, 1), scores, excluded);
        let rule = Preset::Official.sampler().rule();
        let mut sampler = FneSampler::new(rule, Snapshot::default(), 1);
        for _ in 0..20 {
            let got =
                sampler.select(&block).into_data().convert::<bool>().try_to_vec::<bool>().unwrap();
            assert_eq!(got[..3].iter().filter(|&&x| x).count(), 1);
            assert!(!got[0] && !got[3] && !got[4] && !got[5], "{got:?}");
        }
        let rows =
            |seed| FneSampler::new(rule, Snapshot::default(), seed).select(&block).into_data();
        assert_eq!(rows(5), rows(5));
    }
}
