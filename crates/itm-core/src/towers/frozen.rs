//! States after the blocks that do not learn, made once for each picture.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Tensor, TensorData};
use itm_kernels::Noise;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::encoders::{EarlyStates, Vit, pixels};
use crate::host;

/// The first blocks of a [`Vit`], which do not learn, and the states of pictures after them. Clones share the states.
#[derive(Clone, Default)]
pub(crate) struct FrozenBlocks {
    count: usize,
    states: Arc<States>,
}

#[derive(Default)]
struct States {
    /// The most values to keep.
    most: AtomicUsize,
    kept: Mutex<Kept>,
}

/// States `[1 + n, d]` by the hash of a picture's pixels.
type Kept = HashMap<[u8; 32], Arc<[f32]>>;

impl FrozenBlocks {
    /// The first `count` blocks. No states are kept until [`keep`](Self::keep).
    pub(super) fn first(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// Forgets all states, and from now on keeps as many as fit into these bytes.
    pub(super) fn keep(&self, bytes: u64) {
        let values = usize::try_from(bytes / size_of::<f32>() as u64).unwrap_or(usize::MAX);
        self.states.most.store(values, Ordering::Relaxed);
        *self.states.kept() = Kept::default();
    }

    /// States of pictures `[b, 3, size, size]` after the frozen blocks, kept or made now. If nothing is kept, no block is frozen, or the blocks
    /// drop values, these are the states before the first block.
    pub(super) fn states(
        &self,
        vit: &Vit,
        (size, values): (usize, &[f32]),
        noise: Noise,
    ) -> EarlyStates {
        let device = vit.positions.val().device();
        let drops = vit.shape.dropout > 0.0 || vit.shape.attention_dropout > 0.0;
        let most = self.states.most.load(Ordering::Relaxed);
        if self.count == 0 || most == 0 || drops && noise != Noise::Off {
            return vit.begun(pixels(size, values.to_vec(), &device), 0, noise);
        }
        let pictures: Vec<&[f32]> = values.chunks_exact(3 * size * size).collect();
        let keys: Vec<[u8; 32]> = pictures
            .par_iter()
            .map(|picture| Sha256::digest(bytemuck::cast_slice::<f32, u8>(picture)).into())
            .collect();
        let mut here: Kept = {
            let kept = self.states.kept();
            keys.iter().filter_map(|key| Some((*key, kept.get(key)?.clone()))).collect()
        };
        let is_missing = |&k: &usize| !here.contains_key(&keys[k]) && !keys[..k].contains(&keys[k]);
        let missing: Vec<usize> = (0..keys.len()).filter(is_missing).collect();
        if !missing.is_empty() {
            let new: Vec<f32> = missing.iter().flat_map(|&k| pictures[k]).copied().collect();
            let made = vit.begun(pixels(size, new, &device), self.count, Noise::Off).values;
            let [_, rows, d] = made.dims();
            let made = host(made);
            let mut kept = self.states.kept();
            for (&k, states) in missing.iter().zip(made.chunks_exact(rows * d)) {
                let states: Arc<[f32]> = states.into();
                if (kept.len() + 1).saturating_mul(states.len()) <= most {
                    kept.insert(keys[k], states.clone());
                }
                here.insert(keys[k], states);
            }
        }
        let all: Vec<f32> = keys.iter().flat_map(|key| here[key].iter()).copied().collect();
        let (b, d) = (keys.len(), vit.shape.width);
        let values = TensorData::new(all, [b, here.values().next().map_or(0, |s| s.len() / d), d]);
        EarlyStates { values: Tensor::from_data(values, &device), blocks: self.count }
    }
}

impl States {
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner) // a state is inserted whole
    }
}

impl fmt::Debug for FrozenBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks", self.count)
    }
}

#[cfg(test)]
mod tests {
    use burn::optim::GradientsParams;
    use itm_kernels::AdamOptions;
    use itm_kernels::random::unit;

    use super::super::learning::tests::{opened, published, values, vit_and_bert};
    use super::*;
    use crate::learn::Images;
    use crate::towers::TowerDropout;
    use crate::towers::{Encoders, ImageConfig, ImageEncoder, LearningParts, ModelConfig, Weights};

    fn encoders(config: &ModelConfig, parts: &LearningParts) -> Encoders {
        opened(config).with_learning(parts, config, 3).unwrap()
    }

    fn frozen(encoders: &Encoders) -> (&FrozenBlocks, usize) {
        match &encoders.image {
            ImageEncoder::Vit(encoder) => (&encoder.frozen, encoder.size),
            ImageEncoder::Clip(encoder) => (&encoder.frozen, encoder.size),
            ImageEncoder::Features(_) => panic!("an encoder of pictures"),
        }
    }

    fn kept(encoders: &Encoders) -> usize {
        frozen(encoders).0.states.kept().len()
    }

    /// Three pictures, and the second again.
    fn pictures(encoders: &Encoders) -> (usize, Vec<f32>) {
        let size = frozen(encoders).1;
        let n = 3 * size * size;
        let mut all: Vec<f32> = (0..3 * n as u64).map(|k| unit(5, k) - 0.5).collect();
        all.extend_from_within(n..2 * n);
        (size, all)
    }

    fn rows(encoders: &Encoders, (size, values): (usize, &[f32])) -> Tensor<2> {
        let dropout = TowerDropout { share: 0.0, words: 0.0, noise: Noise::Seeded(4) };
        encoders.image.encode(Images::Pixels { size, values }, dropout)
    }

    /// Rows before and after two steps, and the values of each parameter then.
    fn trained(encoders: Encoders) -> Vec<Vec<f32>> {
        let (size, pictures) = pictures(&encoders);
        let before = host(rows(&encoders, (size, &pictures)));
        let mut learner = encoders.learner(AdamOptions::default(), None);
        for _ in 0..2 {
            let rows = rows(learner.module(), (size, &pictures));
            let loss = rows.clone().powi_scalar(3).sum();
            let of = |encoders: &Encoders, loss: Tensor<1>| {
                GradientsParams::from_grads(loss.backward(), encoders)
            };
            learner.update(0.25, loss, of).unwrap();
        }
        let encoders = learner.module().clone();
        let after = host(rows(&encoders, (size, &pictures)));
        let parameters = values(&encoders).into_iter().map(|(_, values)| values);
        [before, after].into_iter().chain(parameters).collect()
    }

    #[test]
    fn kept_states_change_no_bit_of_a_training() {
        for config in [vit_and_bert(), published("clip", 12), published("siglip", 24)] {
            for parts in [LearningParts::Heads, LearningParts::Last(1), LearningParts::Last(9)] {
                let (plain, keeping) = (encoders(&config, &parts), encoders(&config, &parts));
                keeping.keep_states(1 << 20);
                let (shared, (size, pictures)) = (keeping.clone(), pictures(&keeping));
                assert!(trained(plain) == trained(keeping), "{parts:?}");
                let count = if parts == LearningParts::Last(9) { 0 } else { 3 };
                assert_eq!(kept(&shared), count, "{parts:?}");
                let all = host(rows(&shared, (size, &pictures)));
                shared.keep_states(0);
                assert_eq!(host(rows(&shared, (size, &pictures))), all, "{parts:?}");
                assert_eq!(kept(&shared), 0);
            }
        }
    }

    /// A picture alone has the bits that it has in a batch: what is kept does not depend on the batch in which it was made.
    #[test]
    fn a_state_is_the_same_in_any_batch() {
        for config in [vit_and_bert(), published("clip", 12), published("siglip", 24)] {
            let encoders = encoders(&config, &LearningParts::Last(1));
            encoders.keep_states(1 << 20);
            let (frozen, vit) = match &encoders.image {
                ImageEncoder::Vit(encoder) => (&encoder.frozen, &encoder.vit),
                ImageEncoder::Clip(encoder) => (&encoder.frozen, &encoder.tower.vit),
                ImageEncoder::Features(_) => panic!("an encoder of pictures"),
            };
            let (size, pictures) = pictures(&encoders);
            let states =
                |values: &[f32]| host(frozen.states(vit, (size, values), Noise::Off).values);
            let all = states(&pictures);
            encoders.keep_states(1 << 20);
            let each = pictures.chunks(3 * size * size).flat_map(states);
            assert!(all == each.collect::<Vec<_>>());
        }
    }

    /// Without a check, the rest behind the last whole picture was left out.
    #[test]
    fn pixels_that_are_no_whole_pictures_are_refused() {
        for config in [vit_and_bert(), published("clip", 12)] {
            let encoders = encoders(&config, &LearningParts::Last(1));
            encoders.keep_states(1 << 20);
            let (size, pictures) = pictures(&encoders);
            let line = |size, values: &[f32]| {
                let rows = std::panic::AssertUnwindSafe(|| rows(&encoders, (size, values)));
                let panic = std::panic::catch_unwind(rows).unwrap_err();
                *panic.downcast::<String>().unwrap()
            };
            let (n, one) = (pictures.len() - 1, 3 * size * size);
            assert_eq!(line(size, &pictures[1..]), format!("{n} values in pictures of {one}"));
            assert_eq!(line(size, &[]), format!("0 values in pictures of {one}"));
            let got = line(size / 2, &pictures);
            assert!(got.contains(&format!("{} px for an encoder of {size}", size / 2)), "{got}");
        }
    }

    /// 5 rows of 4 values take 80 bytes. What does not fit is made again.
    #[test]
    fn no_more_is_kept_than_fits() {
        for (bytes, count) in [(79, 0), (80, 1), (239, 2), (240, 3)] {
            let encoders = encoders(&vit_and_bert(), &LearningParts::Last(1));
            let (size, pictures) = pictures(&encoders);
            let want = host(rows(&encoders, (size, &pictures)));
            encoders.keep_states(bytes);
            for _ in 0..2 {
                assert_eq!(host(rows(&encoders, (size, &pictures))), want);
                assert_eq!(kept(&encoders), count, "{bytes} bytes");
            }
        }
    }

    #[test]
    fn blocks_that_drop_values_keep_nothing_in_training() {
        let mut config = vit_and_bert();
        if let ImageConfig::Vit(vit) = &mut config.image
            && let Weights::Random(shape) = &mut vit.weights
        {
            shape.dropout = 0.5;
        }
        let encoders = encoders(&config, &LearningParts::Last(1));
        encoders.keep_states(1 << 20);
        let (size, pictures) = pictures(&encoders);
        _ = rows(&encoders, (size, &pictures));
        assert_eq!(kept(&encoders), 0);
        _ = encoders.image.encode(Images::Pixels { size, values: &pictures }, TowerDropout::OFF);
        assert_eq!(kept(&encoders), 3);
    }
}
