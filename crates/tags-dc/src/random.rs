//! Random numbers by purpose and caption. Neither order nor threads change a draw.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What a stream of random numbers is for.
///
/// Each purpose and each caption has its own stream, so that more draws from one stream never change another.
///
/// ```
/// use rand::RngExt;
/// use tags_dc::Purpose;
///
/// let draw = |caption| Purpose::Masks.stream(7, caption).random::<u64>();
/// assert_eq!(draw(3), draw(3));
/// assert_ne!(draw(3), draw(4));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Which phrases are masked.
    Masks,
    /// Which tokens replace masked ones.
    Refills,
    /// Retrieved images of a text.
    Images,
    /// Retrieved texts of an image.
    Texts,
    /// Edits without a model.
    Edits,
    /// Which sentences that pass the filter become negatives.
    Choice,
    /// Captions that are read without their images.
    Captions,
}

impl Purpose {
    /// The stream of a caption, or of an image, by its number: with the seed of a run, an epoch or a step.
    pub fn stream(self, seed: u64, number: u64) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[16] = self as u8;
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(number);
        rng
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn seed_purpose_and_number_each_give_another_stream() {
        let draw = |seed, purpose: Purpose, number| purpose.stream(seed, number).random::<u64>();
        let first = draw(1, Purpose::Masks, 3);
        assert_eq!(first, draw(1, Purpose::Masks, 3));
        let others =
            [draw(2, Purpose::Masks, 3), draw(1, Purpose::Refills, 3), draw(1, Purpose::Masks, 4)];
        assert!(!others.contains(&first));
    }
}
