//! Another relation: two noun chunks change places, or a preposition becomes another.

use std::collections::HashSet;
use std::ops::Range;

use super::{Edit, Number, Rules, change, fits_mark, is_tag, lemma, number};
use crate::phrases::{Chunk, Sentence, Tag};
use crate::record::Kind;

/// VSE-C's groups of prepositions, without its noise. Words of one group may mean the same.
const GROUPS: [&[&str]; 17] = [
    &["to", "toward", "towards", "beyond"],
    &["behind", "after", "past"],
    &["outside", "out", "off"],
    &["on", "upon", "up", "atop", "onto", "over", "above"],
    &["in", "within", "among", "at", "during", "into", "inside", "from", "between"],
    &["with", "by", "beside"],
    &["around", "like"],
    &["under", "underneath", "beneath", "below", "down"],
    &["for", "of", "to"],
    &["near", "next to", "beside"],
    &["through", "thru"],
    &["against", "next to"],
    &["along", "across", "during"],
    &["without"],
    &["before"],
    &["than"],
    &["about", "within"],
];

/// What contradicts a preposition: where the left side is true of two things, the right side is false of them.
const CONTRARY: [(&[&str], &[&str]); 9] = [
    (&["on", "upon", "atop", "onto", "on top of"], &["under", "behind"]),
    (&["over", "above"], &["under", "below"]),
    (&["in", "inside", "into", "within", "in the middle of"], &["outside", "behind"]),
    (&["under", "underneath", "beneath", "below"], &["on", "above"]),
    (&["behind"], &["in front of", "on"]),
    (&["in front of"], &["behind"]),
    (&["outside", "out of"], &["inside"]),
    (&["near", "next to", "close to", "beside", "against"], &["far from"]),
    (&["with"], &["without"]),
];

/// Prepositions of several words.
const LONG: &str = "in the middle of, in front of, on top of, next to, close to, out of, \
because of, along with, far from";

/// Words that `Rules::Fitting` takes as symmetric.
const SYMMETRIC: &str = "with near beside by to of and & / or , alongside from opposite";

/// Nouns that name a time, a state or clothes, not a place: `at night`, `in motion`.
const NO_PLACE: &str = include_str!("no_place.txt");

/// Participles whose preposition names no place: `topped with`, `covered in`.
const BOUND: &str = "covered dressed clad coated wrapped soaked filled topped decorated loaded made \
adorned lined packed stuffed garnished served cooked";

/// All changes of relations.
pub(super) fn edits(sentence: &Sentence, rules: Rules) -> Vec<Edit> {
    let mut all = swaps(sentence, rules);
    all.extend(prepositions(sentence, rules));
    all
}

/// Any two chunks that do not belong to one group change places.
fn swaps(sentence: &Sentence, rules: Rules) -> Vec<Edit> {
    let chunks = &sentence.chunks;
    let mut group = vec![0; chunks.len()];
    for (k, pair) in chunks.windows(2).enumerate() {
        let together = joined(sentence, pair[0].words.end..pair[1].words.start, rules);
        group[k + 1] = group[k] + usize::from(!together);
    }
    let mut all = Vec::new();
    for (a, first) in chunks.iter().enumerate() {
        for (b, second) in chunks.iter().enumerate().skip(a + 1) {
            if group[a] == group[b] || rules == Rules::Fitting && !alike(sentence, first, second) {
                continue;
            }
            let (p, q) = (first.words.clone(), second.words.clone());
            let (p_words, q_words) =
                (change::words(sentence, p.clone()), change::words(sentence, q.clone()));
            all.extend(change::edit(sentence, Kind::Relation, vec![(p, q_words), (q, p_words)]));
        }
    }
    all
}

/// Whether the words between two chunks put both chunks into one group.
fn joined(sentence: &Sentence, between: Range<usize>, rules: Rules) -> bool {
    let text = |k: usize| sentence.words[k].text.to_lowercase();
    match (rules, between.len()) {
        (_, 0) => true,
        (Rules::VseC, 1) => matches!(&text(between.start)[..], "with" | "and" | "or"),
        (Rules::VseC, _) => false,
        // `talks with`, `is next to`, `group of`
        (Rules::Fitting, _) => {
            let last = text(between.end - 1);
            SYMMETRIC.split(' ').any(|word| word == last)
        }
    }
}

/// Whether the sentence stays good after two chunks change places: both are singular or both plural, a picture shows both, the second one
/// does not begin with a possessive, neither stands behind `'s`, and each fits the mark behind the other.
fn alike(sentence: &Sentence, first: &Chunk, second: &Chunk) -> bool {
    let head = |chunk: &Chunk| sentence.words[chunk.nouns.end - 1].text.to_lowercase();
    let (a, b) = (head(first), head(second));
    let owned = |chunk: &Chunk| is_tag(sentence, chunk.words.start, Tag::Possessive);
    let possessed = |chunk: &Chunk| {
        let before = chunk.words.start.checked_sub(1).map(|k| &sentence.words[k]);
        let mark = before.filter(|word| word.text.starts_with(['\'', '’']));
        mark.is_some_and(|word| word.tag != Tag::Auxiliary) // `'s` of `it's` is one
    };
    let owned = owned(second) || possessed(first) || possessed(second);
    let [p, q] = [first, second].map(|chunk| number(sentence, chunk));
    let fits = |old: &Chunk, new: &str| fits_mark(sentence, old.nouns.end - 1, new);
    let fit = p == q && p != Number::Either && fits(first, &b) && fits(second, &a);
    fit && a != b && is_place(&a) && is_place(&b) && !owned
}

/// Each preposition becomes every preposition that cannot mean the same.
fn prepositions(sentence: &Sentence, rules: Rules) -> Vec<Edit> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < sentence.words.len() {
        let words = at..at + length(sentence, at);
        at = words.end;
        let old = change::words(sentence, words.clone()).join(" ").to_lowercase();
        if words.len() == 1 && !is_tag(sentence, words.start, Tag::Preposition) {
            continue;
        }
        // `helped by` names no place
        let agent = old == "by" && at > 1 && is_tag(sentence, words.start - 1, Tag::Verb);
        let before = words.start.checked_sub(1).map(|k| sentence.words[k].text.to_lowercase());
        let bound = before.is_some_and(|word| BOUND.split_whitespace().any(|verb| verb == word));
        if rules == Rules::Fitting && (agent || bound || !says_where(sentence, words.end)) {
            continue;
        }
        for new in replacements(&old, rules) {
            let new = new.split(' ').map(str::to_owned).collect();
            all.extend(change::edit(sentence, Kind::Relation, vec![(words.clone(), new)]));
        }
    }
    all
}

/// The number of words of the preposition at `at`: 3 for `in front of`. A word that is not a preposition counts as 1, too.
fn length(sentence: &Sentence, at: usize) -> usize {
    let here = |long: &&str| {
        let mut words = sentence.words[at..].iter();
        let is_next = |part| words.next().is_some_and(|word| word.text.eq_ignore_ascii_case(part));
        long.split(' ').all(is_next)
    };
    LONG.split(", ").find(here).map_or(1, |long| long.split(' ').count())
}

/// Whether the chunk at `at` is a thing, not a time or a state.
fn says_where(sentence: &Sentence, at: usize) -> bool {
    let chunk = sentence.chunks.iter().find(|chunk| chunk.words.start == at);
    chunk.is_some_and(|chunk| is_place(&sentence.words[chunk.nouns.end - 1].text))
}

fn is_place(noun: &str) -> bool {
    !NO_PLACE.split_whitespace().any(|word| lemma(word) == lemma(noun))
}

/// The prepositions that may replace `old`.
fn replacements(old: &str, rules: Rules) -> Vec<&'static str> {
    if rules == Rules::Fitting {
        let contrary = CONTRARY.iter().find(|(left, _)| left.contains(&old));
        return contrary.map(|(_, right)| right.to_vec()).unwrap_or_default();
    }
    let groups = GROUPS.iter().copied().filter(|group| group.contains(&old));
    let own = groups.collect::<Vec<_>>().concat();
    let mut seen = HashSet::new();
    let mut others = GROUPS.concat();
    others.retain(|word| !own.is_empty() && !own.contains(word) && seen.insert(*word));
    others
}

#[cfg(test)]
mod tests {
    use super::super::tests::sentence;
    use super::*;

    fn texts(tagged: &str, rules: Rules, only: fn(&Sentence, Rules) -> Vec<Edit>) -> Vec<String> {
        only(&sentence(tagged), rules).into_iter().map(|edit| edit.text).collect()
    }

    #[test]
    fn a_man_with_a_dog_yields_no_swap() {
        for rules in [Rules::Fitting, Rules::VseC] {
            assert!(texts("a/D man with/P a/D dog", rules, swaps).is_empty());
        }
    }

    #[test]
    fn chunks_change_places_with_their_articles_and_capitals() {
        for rules in [Rules::Fitting, Rules::VseC] {
            let swapped = texts("A/D man rides/V a/D brown/A horse ./.", rules, swaps);
            assert_eq!(swapped, ["A brown horse rides a man."]);
            let swapped = texts("Rain falls/V ./. A/D man rides/V a/D horse", rules, |s, rules| {
                swaps(s, rules).into_iter().filter(|edit| edit.positions[0] > 0).collect()
            });
            assert_eq!(swapped, ["Rain falls. A horse rides a man"], "{rules:?}");
        }
    }

    /// man–dog–girl are one group by closure; each of the three changes places with the ball.
    #[test]
    fn groups_are_closed_transitively() {
        let tagged = "a/D man with/P a/D dog and/C a/D girl throw/V a/D ball";
        assert_eq!(texts(tagged, Rules::VseC, swaps).len(), 3);
    }

    #[test]
    fn symmetric_words_and_other_numbers_are_no_swaps_that_fit() {
        let tagged = "a/D man stands/V near/P a/D woman";
        assert!(texts(tagged, Rules::Fitting, swaps).is_empty(), "it would stay true");
        assert_eq!(texts(tagged, Rules::VseC, swaps).len(), 1);
        for word in ["&", "opposite/P"] {
            let tagged = format!("a/D man {word} a/D woman");
            assert!(texts(&tagged, Rules::Fitting, swaps).is_empty(), "{word}");
        }
        let tagged = "two/# men ride/V a/D horse";
        assert!(texts(tagged, Rules::Fitting, swaps).is_empty());
        assert_eq!(texts(tagged, Rules::VseC, swaps), ["a horse ride two men"]);
        for tagged in ["two/# sheep see/V a/D dog", "the/D sheep see/V the/D dog"] {
            assert!(texts(tagged, Rules::Fitting, swaps).is_empty(), "{tagged}");
        }
        let swapped = texts("a/D sheep sees/V a/D dog", Rules::Fitting, swaps);
        assert_eq!(swapped, ["a dog sees a sheep"]);
    }

    #[test]
    fn a_possession_keeps_its_place() {
        let face = crate::phrases::parse("A woman paints a picture on a girl's face.");
        let swapped: Vec<_> = swaps(&face, Rules::Fitting).into_iter().map(|e| e.text).collect();
        assert!(swapped.contains(&"A girl paints a picture on a woman's face.".into()));
        assert!(swapped.iter().all(|text| text.ends_with("'s face.")), "{swapped:?}");
        let men = sentence("the/D men 's/. horse sees/V dogs");
        assert!(swaps(&men, Rules::Fitting).is_empty(), "no `dogs's horse`");
        let is = crate::phrases::parse("There's a man riding a horse.");
        assert_eq!(swaps(&is, Rules::Fitting)[0].text, "There's a horse riding a man.");
    }

    /// `on` is in one group of seven; the seventeen groups have 45 words; two or three groups share six of these words.
    #[test]
    fn a_preposition_becomes_every_word_of_every_other_group() {
        let variants = texts("a/D dog on/P grass", Rules::VseC, prepositions);
        let mut distinct: Vec<&str> = GROUPS.concat();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(variants.len(), distinct.len() - 7);
        assert!(variants.contains(&"a dog next to grass".into()));
        assert!(!variants.contains(&"a dog over grass".into()), "one group");
    }

    /// `beside` is in the groups of `with` and of `near`: no word of either group replaces `beside`.
    #[test]
    fn a_word_of_several_groups_keeps_the_words_of_all_from_being_used() {
        let variants = texts("a/D dog beside/P grass", Rules::VseC, prepositions);
        for kept in ["with", "by", "near", "next to"] {
            assert!(!variants.contains(&format!("a dog {kept} grass")), "{kept}");
        }
        assert!(variants.contains(&"a dog under grass".into()));
    }

    #[test]
    fn a_preposition_of_its_verb_stays() {
        for tagged in [
            "a/D pizza topped/V with/P cheese",
            "a/D cake covered/V in/P chocolate",
            "a/D woman in/P a/D bikini",
        ] {
            assert!(texts(tagged, Rules::Fitting, prepositions).is_empty(), "{tagged}");
        }
    }

    #[test]
    fn prepositions_of_several_words_are_one() {
        let tagged = "a/D dog in/P front/N of/P a/D bus";
        let mut front = sentence(tagged);
        front.chunks.remove(1); // `front` is no chunk
        let variants: Vec<String> =
            prepositions(&front, Rules::Fitting).into_iter().map(|edit| edit.text).collect();
        assert_eq!(variants, ["a dog behind a bus"]);
        let edit = &prepositions(&front, Rules::Fitting)[0];
        assert_eq!(
            (edit.positions.as_slice(), edit.new.as_slice()),
            (&[2, 3, 4][..], &["behind".to_owned()][..])
        );
    }

    #[test]
    fn fitting_prepositions_contradict_and_name_a_place() {
        let variants = texts("a/D cup on/P a/D table at/P night", Rules::Fitting, prepositions);
        assert_eq!(variants, ["a cup under a table at night", "a cup behind a table at night"]);
    }

    #[test]
    fn who_does_it_and_what_is_worn_are_no_places() {
        for tagged in ["a/D man helped/V by/P a/D woman", "a/D man in/P jeans", "men in/P hats"] {
            assert!(texts(tagged, Rules::Fitting, prepositions).is_empty(), "{tagged}");
        }
    }

    #[test]
    fn a_sentence_without_a_word_has_no_variant() {
        assert!(edits(&Sentence::default(), Rules::VseC).is_empty());
    }
}
