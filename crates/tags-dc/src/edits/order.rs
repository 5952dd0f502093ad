//! The words of a sentence in another order.

use std::ops::Range;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::{Edit, change};
use crate::phrases::{Sentence, Tag};
use crate::record::Kind;

/// The most shuffles that are tried until one changes the text. Of two words every second shuffle does.
const TRIES: usize = 64;

/// Shuffles all words, each with what is glued to it, such as `'s`; punctuation stays. `None` if no shuffle that was tried changes the
/// text.
pub(super) fn edit(sentence: &Sentence, rng: &mut impl RngExt) -> Option<Edit> {
    let places: Vec<usize> =
        (0..sentence.words.len()).filter(|&k| sentence.words[k].tag != Tag::Punctuation).collect();
    let glued = |&a: &usize, &b: &usize| sentence.words[a].span.end == sentence.words[b].span.start;
    let places: Vec<Range<usize>> =
        places.chunk_by(glued).map(|run| run[0]..run[0] + run.len()).collect();
    let words: Vec<Vec<String>> =
        places.iter().map(|place| change::words(sentence, place.clone())).collect();
    (0..TRIES).find_map(|_| {
        let mut shuffled = words.clone();
        shuffled.shuffle(rng);
        change::edit(sentence, Kind::Order, places.iter().cloned().zip(shuffled).collect())
    })
}
