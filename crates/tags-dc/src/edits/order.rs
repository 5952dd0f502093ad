//! The words of a sentence in another order.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::{Edit, change};
use crate::phrases::{Sentence, Tag};
use crate::record::Kind;

/// The most shuffles that are tried until one changes the text. Of two words every second shuffle does.
const TRIES: usize = 64;

/// Shuffles all words; punctuation stays. `None` if no shuffle that was tried changes the text.
pub(super) fn edit(sentence: &Sentence, rng: &mut impl RngExt) -> Option<Edit> {
    let places: Vec<usize> =
        (0..sentence.words.len()).filter(|&k| sentence.words[k].tag != Tag::Punctuation).collect();
    let words: Vec<String> =
        places.iter().flat_map(|&k| change::words(sentence, k..k + 1)).collect();
    for _ in 0..TRIES {
        let mut shuffled = words.clone();
        shuffled.shuffle(rng);
        let changes =
            places.iter().zip(shuffled).map(|(&k, word)| (k..k + 1, vec![word])).collect();
        if let Some(edit) = change::edit(sentence, Kind::Order, changes) {
            return Some(edit);
        }
    }
    None
}
