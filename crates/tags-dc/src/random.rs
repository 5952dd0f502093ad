//! Random numbers by purpose and caption. Neither order nor threads change a draw.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The seed of a run, and the round in which it draws: an epoch, or a step.
///
/// Each purpose and each caption has its own stream, so that more draws from one stream never change another.
///
/// ```
/// use rand::RngExt;
/// use tags_dc::{Purpose, Streams};
///
/// let streams = Streams { seed: 7, round: 0 };
/// let draw = |caption| streams.of(Purpose::Masks, caption).random::<u64>();
/// assert_eq!(draw(3), draw(3));
/// assert_ne!(draw(3), draw(4));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    /// Seed of the run.
    pub seed: u64,
    /// Epoch or step; 0 if there is only one round.
    pub round: u64,
}

/// What a stream is for.
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

impl Streams {
    /// The stream of a caption, or of an image, by its number.
    pub fn of(self, purpose: Purpose, number: u64) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.round.to_le_bytes());
        key[16] = purpose as u8;
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
    fn seed_round_purpose_and_number_each_give_another_stream() {
        let draw = |seed, round, purpose, number| {
            Streams { seed, round }.of(purpose, number).random::<u64>()
        };
        let first = draw(1, 2, Purpose::Masks, 3);
        assert_eq!(first, draw(1, 2, Purpose::Masks, 3));
        let others = [
            draw(2, 2, Purpose::Masks, 3),
            draw(1, 1, Purpose::Masks, 3),
            draw(1, 2, Purpose::Refills, 3),
            draw(1, 2, Purpose::Masks, 4),
        ];
        assert!(!others.contains(&first));
    }
}
