//! Images in folds, by a hash of their names.

use std::collections::HashSet;

use itm_core::{Error, Result, mix};

/// The most folds: a count of folds is no count of bytes.
const MOST_FOLDS: usize = 1 << 16;

/// Largest number of keys to try until two folds have images. With two names, one key in `folds` puts both into one fold.
const KEYS: usize = 64;

/// The fold of every image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldSplit {
    pub(crate) folds: usize,
    of_image: Vec<usize>,
}

impl FoldSplit {
    /// Folds that were made elsewhere, `of_image[i] < folds`.
    ///
    /// A fold may be empty; it counts nothing. If all images are in one fold, there are no images to choose on.
    ///
    /// # Errors
    /// If a fold is not below `folds`, there are more than 65,536 folds, or fewer than two folds have an image.
    pub fn new(folds: usize, of_image: Vec<usize>) -> Result<Self> {
        let expected = format_args!("at most {MOST_FOLDS}");
        Error::unless(folds <= MOST_FOLDS, "folds of a split", expected, folds)?;
        if let Some(image) = of_image.iter().position(|&fold| fold >= folds) {
            let expected = format!("a fold below {folds}");
            return Err(Error::invalid(format!("split, image {image}"), expected, of_image[image]));
        }
        let got = format_args!("all {} images in one of {folds}", of_image.len());
        Error::unless(spread(&of_image) >= 2, "split", "images in at least 2 folds", got)?;
        Ok(Self { folds, of_image })
    }

    /// Folds by a hash of each image's name (or its index, written out), never by its position, because data may be sorted.
    /// All entries of one name share a fold.
    ///
    /// ```text
    /// fold(id) = ⌊ folds · mix( FNV-1a(id) ⊕ key ) / 2⁶⁴ ⌋        key = mix(seed)
    /// ```
    ///
    /// `FNV-1a` is the 64-bit hash of the name's bytes; `mix` is one step of SplitMix64 with its argument as the state. If all
    /// images fall into one fold (which can happen with very few images), the key is mixed again.
    ///
    /// # Errors
    /// If there are fewer than two folds or two names, or more than 65,536 folds.
    pub fn hashed<S: AsRef<str>>(ids: &[S], folds: usize, seed: u64) -> Result<Self> {
        let place = "cross-fitting";
        let expected = format_args!("2 to {MOST_FOLDS} folds");
        Error::unless((2..=MOST_FOLDS).contains(&folds), place, expected, folds)?;
        let names: HashSet<&str> = ids.iter().map(AsRef::as_ref).collect();
        let got = format_args!("{} of {} entries", names.len(), ids.len());
        Error::unless(names.len() >= 2, place, "at least 2 different image names", got)?;
        let keys = std::iter::successors(Some(mix(seed)), |&key| Some(mix(key)));
        let split = |key| ids.iter().map(|id| fold(id.as_ref(), folds, key)).collect::<Vec<_>>();
        let of_image = keys.take(KEYS).map(split).find(|of_image| spread(of_image) > 1);
        Self::new(folds, of_image.unwrap_or_else(|| vec![0; ids.len()]))
    }

    /// The fold of every image.
    pub fn of_image(&self) -> &[usize] {
        &self.of_image
    }
}

/// Number of folds that have an image.
fn spread(of_image: &[usize]) -> usize {
    of_image.iter().collect::<HashSet<_>>().len()
}

fn fold(id: &str, folds: usize, key: u64) -> usize {
    let hash = u128::from(mix(fnv_1a(id.as_bytes()) ^ key));
    ((hash * folds as u128) >> 64) as usize
}

pub(super) fn fnv_1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
