//! ARO's four orders of a caption's words.

use rand::RngExt;
use rand::seq::SliceRandom;

use crate::phrases::{Sentence, Tag};

/// Most words that ARO keeps of a caption.
const LONGEST: usize = 30;
/// The most shuffles that are tried until one changes the caption.
const TRIES: usize = 64;

/// Shuffles the places of some words.
type Shuffle<R> = fn(&Sentence, &mut [usize], &mut R);

/// The sentence, then its four orders without those that no shuffle changes and those that repeat an earlier order: nouns and adjectives each
/// among themselves; all other words; words inside groups of three; groups of three.
pub(super) fn orders<R: RngExt>(sentence: &Sentence, rng: &mut R) -> Vec<String> {
    let places: Vec<usize> = (0..sentence.words.len()).collect();
    let mut all = vec![shown(sentence, &places)];
    let shuffles: [Shuffle<R>; 4] = [content_words, other_words, inside_threes, threes];
    for shuffle in shuffles {
        let mut tries = (0..TRIES).map(|_| {
            let mut order = places.clone();
            shuffle(sentence, &mut order, rng);
            shown(sentence, &order)
        });
        let order = tries.find(|text| *text != all[0]);
        all.extend(order.filter(|text| !all.contains(text)));
    }
    all
}

fn content_words<R: RngExt>(sentence: &Sentence, order: &mut [usize], rng: &mut R) {
    for tag in [Tag::Noun, Tag::Adjective] {
        shuffle_where(order, |k| sentence.words[k].tag == tag, rng);
    }
}

fn other_words<R: RngExt>(sentence: &Sentence, order: &mut [usize], rng: &mut R) {
    shuffle_where(order, |k| !matches!(sentence.words[k].tag, Tag::Noun | Tag::Adjective), rng);
}

fn inside_threes<R: RngExt>(_: &Sentence, order: &mut [usize], rng: &mut R) {
    order.chunks_mut(3).for_each(|three| three.shuffle(rng));
}

fn threes<R: RngExt>(_: &Sentence, order: &mut [usize], rng: &mut R) {
    let own = order.to_vec();
    let mut groups: Vec<&[usize]> = own.chunks(3).collect();
    groups.shuffle(rng);
    order.copy_from_slice(&groups.concat());
}

/// Shuffles the words whose places pass among these places.
fn shuffle_where(order: &mut [usize], passes: impl Fn(usize) -> bool, rng: &mut impl RngExt) {
    let places: Vec<usize> = (0..order.len()).filter(|&k| passes(k)).collect();
    let mut moved = places.clone();
    moved.shuffle(rng);
    places.into_iter().zip(moved).for_each(|(place, word)| order[place] = word);
}

/// The words in this order, in lower case and without the signs that ARO removes. Blanks stand around each token, also around `,` and `'s`, in the
/// sentence and in its orders; ARO's sentence has `boy's dog,` as its caption has it.
fn shown(sentence: &Sentence, order: &[usize]) -> String {
    let words: Vec<&str> = order.iter().map(|&k| sentence.words[k].text.as_str()).collect();
    let text = words.join(" ").to_lowercase().replace(|c| ".!\"()*#:;~".contains(c), " ");
    text.split_whitespace().take(LONGEST).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::phrases::parse;

    const TEXT: &str = "A brown dog jumps over a fallen log beside two small cats";

    fn words(text: &str) -> Vec<&str> {
        text.split(' ').collect()
    }

    /// Each shuffle moves only its words: nouns stay at places of nouns, adjectives at places of adjectives, and so on.
    #[test]
    fn each_order_moves_its_own_words() {
        for seed in 0..20 {
            let all = orders(&parse(TEXT), &mut ChaCha8Rng::seed_from_u64(seed));
            let [own, content, other, inside, groups] = &all[..] else { panic!("{all:?}") };
            assert_eq!(own, "a brown dog jumps over a fallen log beside two small cats");
            let own = words(own);
            let moved = |text: &str| -> Vec<&str> {
                let pairs = own.iter().zip(words(text));
                pairs.filter(|(old, new)| *old != new).map(|(old, _)| *old).collect()
            };
            let is_content = |word: &&str| "brown dog fallen log small cats".contains(word);
            assert!(moved(content).iter().all(|w| *w != "a" && is_content(w)), "{content}");
            assert!(moved(other).iter().all(|w| *w == "a" || !is_content(w)), "{other}");
            for noun in [2, 7, 11].map(|k| words(content)[k]) {
                assert!(["dog", "log", "cats"].contains(&noun), "{content}");
            }
            for (old, new) in own.chunks(3).zip(words(inside).chunks(3)) {
                let [mut old, mut new] = [old.to_vec(), new.to_vec()];
                old.sort_unstable();
                new.sort_unstable();
                assert_eq!(old, new);
            }
            let groups = words(groups);
            let at = |word| groups.iter().position(|w| *w == word).unwrap();
            assert_eq!([at("dog") - at("brown"), at("log") - at("fallen")], [1, 1], "{groups:?}");
        }
    }

    #[test]
    fn an_order_that_changes_or_adds_nothing_is_left_out() {
        for (text, want) in [("Dogs.", &["dogs"][..]), ("A dog.", &["a dog", "dog a"])] {
            assert_eq!(orders(&parse(text), &mut ChaCha8Rng::seed_from_u64(0)), want);
        }
    }

    #[test]
    fn thirty_words_are_kept() {
        let text = (0..40).map(|k| format!("w{k}")).collect::<Vec<_>>().join(" ");
        let all = orders(&parse(&text), &mut ChaCha8Rng::seed_from_u64(0));
        assert!(all[0].ends_with("w29") && all.iter().all(|text| text.split(' ').count() == 30));
    }
}
