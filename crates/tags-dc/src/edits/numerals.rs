//! Another number, with its noun in the singular or the plural to match.

use super::{CaptionLemmas, Edit, Rules, change, family, fits_mark, is_plural, lemma};
use crate::inflect::{plural, singular};
use crate::phrases::{Chunk, Sentence, Tag};
use crate::record::Kind;

/// Names of the numbers 1 to 20, then of the tens to 80.
const NUMBERS: &str = "one two three four five six seven eight nine ten eleven twelve thirteen \
fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy \
eighty";

/// The largest number that `Rules::Fitting` puts in place of a smaller one: nobody tells larger numbers in a picture apart at a glance.
const LARGEST: u8 = 6;

/// Names of groups: `a group of people` does not become `two groups of people`.
const COLLECTIVE: &str = "group bunch pair couple crowd row herd flock lot number variety set pile \
line stack team band piece body field bit kind sort type";

/// Words before an article that no number follows: `half a sandwich`.
const BEFORE_ARTICLE: &str = "half such what many quite rather once twice";

/// Words that at least two things follow: `between two cars`.
const BEFORE_MANY: &str = "between among amongst these those";

/// Replaces each number before a noun by every number of another value.
pub(super) fn edits(sentence: &Sentence, told: &CaptionLemmas, rules: Rules) -> Vec<Edit> {
    let mut all = Vec::new();
    for at in 0..sentence.words.len() {
        let written = sentence.words[at].text.to_lowercase();
        let (Some(old), Some(noun)) = (value(&written), noun_after(sentence, at)) else { continue };
        let text = &sentence.words[noun].text;
        // `a pitcher throws`: a plural behind `a` is a verb
        let one_of_many = old == 1 && (is_plural(text) || told.many.contains(&lemma(text)));
        let bound = follows(sentence, at, 1, BEFORE_ARTICLE);
        if rules == Rules::Fitting && (one_of_many || bound || !countable(sentence, noun)) {
            continue;
        }
        let many = follows(sentence, at, 2, BEFORE_MANY);
        for (name, new) in numbers().filter(|&(_, new)| new != old) {
            let noun_text = with_number(text, old, new);
            let fits = fits(name, new, old, told)
                && !(new == 1 && (many || is_plural(&noun_text)))
                && fits_mark(sentence, noun, &noun_text);
            if rules == Rules::Fitting && !fits {
                continue;
            }
            let changes = vec![(at..at + 1, vec![name.into()]), (noun..noun + 1, vec![noun_text])];
            all.extend(change::edit(sentence, Kind::Numeral, changes));
        }
    }
    all
}

/// Whether a chunk has an exact number above 1; not `a few dogs`.
pub(super) fn counted(sentence: &Sentence, chunk: &Chunk) -> bool {
    sentence.words[chunk.words.clone()].iter().any(|word| {
        let text = word.text.to_lowercase();
        value(&text).is_some_and(|value| value > 1) || text.parse::<u32>().is_ok()
    })
}

/// Values by name; `a` and `an` are 1 too.
fn numbers() -> impl Iterator<Item = (&'static str, u8)> {
    let values = (1..=20).chain((30..=80).step_by(10));
    NUMBERS.split(' ').zip(values).chain([("a", 1), ("an", 1)])
}

fn value(word: &str) -> Option<u8> {
    numbers().find(|(name, _)| *name == word).map(|(_, value)| value)
}

/// The last noun of the run of nouns after the number. Adjectives and conjunctions may come between.
fn noun_after(sentence: &Sentence, at: usize) -> Option<usize> {
    let tag = |k: usize| sentence.words.get(k).map(|word| word.tag);
    let mut k = at + 1;
    while matches!(tag(k), Some(Tag::Adjective | Tag::Conjunction)) {
        k += 1;
    }
    let first = k;
    while tag(k) == Some(Tag::Noun) {
        k += 1;
    }
    (k > first).then(|| k - 1)
}

/// The noun in the singular or plural that the new value needs. It stays as it is if both values are above 1.
fn with_number(noun: &str, old: u8, new: u8) -> String {
    let lower = noun.to_lowercase();
    let other = match (old, new) {
        (_, 1) => singular(&lower),
        (1, _) if !is_plural(noun) => plural(&lower),
        _ => lower,
    };
    // `Men` becomes `Man`, and `TV` becomes `TVs`: the case stays as far as the letters stay.
    let same = |(a, b): &(char, char)| a.to_lowercase().eq(b.to_lowercase());
    let kept = noun.chars().zip(other.chars()).take_while(same).count();
    noun.chars().take(kept).chain(other.chars().skip(kept)).collect()
}

/// Whether the new number may be used. `a` in the place of a larger number would stay true, and a number that another caption has may, too.
fn fits(name: &str, new: u8, old: u8, told: &CaptionLemmas) -> bool {
    let article = name == "a" || name == "an";
    !article && (new <= LARGEST || new < old) && !told.has(name) && !told.has(&new.to_string())
}

/// Whether one of the `near` words before a word is in a list.
fn follows(sentence: &Sentence, at: usize, near: usize, list: &str) -> bool {
    let before = &sentence.words[at.saturating_sub(near)..at];
    let listed = |text: String| list.split(' ').any(|word| word == text);
    before.iter().any(|word| listed(word.text.to_lowercase()))
}

fn countable(sentence: &Sentence, noun: usize) -> bool {
    let lemma = lemma(&sentence.words[noun].text);
    !family::mass(&lemma) && !COLLECTIVE.split_whitespace().any(|word| word == lemma)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sentence;
    use super::*;

    fn texts(tagged: &str, rules: Rules) -> Vec<String> {
        let sentence = sentence(tagged);
        let told = CaptionLemmas::of([&sentence]);
        edits(&sentence, &told, rules).into_iter().map(|edit| edit.text).collect()
    }

    #[test]
    fn two_dogs_become_one_dog_and_a_dog_three() {
        for rules in [Rules::Fitting, Rules::VseC] {
            assert!(texts("two/# dogs run/V ./.", rules).contains(&"one dog run.".into()));
            assert!(texts("two/# dogs run/V ./.", rules).contains(&"three dogs run.".into()));
            assert!(texts("a/D dog runs/V", rules).contains(&"three dogs runs".into()));
            assert!(texts("Two/# men walk/V", rules).contains(&"One man walk".into()));
            assert!(texts("One/# Man walks/V", rules).contains(&"Three Men walks".into()));
            assert!(texts("two/# Women walk/V", rules).contains(&"one Woman walk".into()));
            assert!(texts("a/D TV", rules).contains(&"two TVs".into()));
        }
    }

    #[test]
    fn adjectives_and_compounds_lie_between() {
        let variants = texts("a/D big/A and/C red/A fire/N bus/N stops/V", Rules::VseC);
        assert!(variants.contains(&"two big and red fire buses stops".into()), "{variants:?}");
    }

    /// 26 names without `one`; then 26 names and two articles without the value 5.
    #[test]
    fn every_number_of_another_value_is_written() {
        assert_eq!(texts("an/D ape eats/V", Rules::VseC).len(), 25);
        let of_five = texts("five/# apes eat/V", Rules::VseC);
        assert_eq!(of_five.len(), 27);
        assert!(of_five.contains(&"a ape eat".into()), "whatever the sound");
        assert_eq!(texts("five/# apes eat/V", Rules::Fitting).len(), 5, "1, 2, 3, 4, 6");
    }

    /// A line that ends with a number makes VSE-C's program scan forever.
    #[test]
    fn a_number_without_a_noun_stays() {
        for rules in [Rules::Fitting, Rules::VseC] {
            assert!(texts("dogs run/V by/P two/#", rules).is_empty());
            assert!(texts("one/# of/P the/D dogs", rules).is_empty());
            assert!(texts("3/# dogs", rules).is_empty(), "digits stay");
        }
    }

    #[test]
    fn what_cannot_be_counted_is_left_alone() {
        assert!(texts("a/D group of/P people", Rules::Fitting).is_empty());
        assert!(!texts("a/D group of/P people", Rules::VseC).is_empty());
    }

    #[test]
    fn a_number_of_another_caption_is_not_used() {
        let (own, other) = (sentence("two/# dogs"), sentence("4/# dogs and/C three/# cats"));
        let variants = edits(&own, &CaptionLemmas::of([&own, &other]), Rules::Fitting);
        assert!(variants.iter().all(|edit| !["three", "four"].contains(&&edit.new[0][..])));
        let variants = edits(&own, &CaptionLemmas::of([&own, &other]), Rules::VseC);
        assert!(variants.iter().any(|edit| edit.new[0] == "three"), "VSE-C does not look");
    }

    #[test]
    fn a_plural_without_a_number_may_be_any_number() {
        let own = sentence("a/D building");
        for (other, some) in [
            ("large/A buildings", false),
            ("a/D few/A buildings", false),
            ("two/# buildings", true),
        ] {
            let told = CaptionLemmas::of([&own, &sentence(other)]);
            let variants = edits(&own, &told, Rules::Fitting);
            assert_eq!(!variants.is_empty(), some, "{other}: {variants:?}");
        }
    }

    #[test]
    fn one_is_never_before_a_plural() {
        assert!(texts("a/D pitcher throws", Rules::Fitting).is_empty(), "a verb");
        assert!(texts("a/D sheep", Rules::Fitting).contains(&"two sheep".into()));
        assert!(!texts("two/# pants", Rules::Fitting).contains(&"one pants".into()));
        for tagged in ["between/P two/# cars", "between/P the/D two/# cars", "those/D two/# cars"] {
            let variants = texts(tagged, Rules::Fitting);
            assert!(variants.len() == 4 && !variants.concat().contains("one"), "{variants:?}");
        }
    }

    #[test]
    fn words_beside_a_number_keep_it() {
        for tagged in ["half/# a/D sandwich", "such/D a/D dog", "A/D boy 's/. bike"] {
            assert!(texts(tagged, Rules::Fitting).is_empty(), "{tagged}");
        }
        assert!(
            texts("two/# boys '/. bikes", Rules::Fitting).contains(&"three boys ' bikes".into())
        );
        assert!(!texts("two/# boys '/. bikes", Rules::Fitting).concat().contains("one"));
        assert!(texts("A/D man 's/. bike", Rules::Fitting).contains(&"Two men 's bike".into()));
    }

    #[test]
    fn number_and_noun_are_the_only_words_that_change() {
        let edit =
            &edits(&sentence("two/# big/A dogs"), &CaptionLemmas::default(), Rules::Fitting)[0];
        assert_eq!(
            (edit.positions.as_slice(), edit.old.join(" ")),
            (&[0, 2][..], "two dogs".into())
        );
        assert_eq!(edit.new, ["one", "dog"]);
    }
}
