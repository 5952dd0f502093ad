//! Another noun. Captions teach which nouns may replace a noun.

use std::collections::HashMap;
use std::ops::Range;

use super::{
    CaptionLemmas, Edit, Number, Rules, change, family, fits_mark, is_one, is_plural, lemma, number,
};
use crate::inflect::ALIKE;
use crate::phrases::{Chunk, Sentence, Tag, Word};
use crate::record::Kind;
use crate::siblings::SiblingStatistics;

/// The number of captions in which VSE-C counted.
const CAPTIONS: usize = 150_000;
/// The least count of a candidate in that many captions.
const COUNT: usize = 200;
/// The least count, however few captions there are.
const FLOOR: usize = 20;

/// The candidate nouns, and which candidates may replace a noun.
///
/// ```text
/// x is a candidate:    #x ≥ max(20, 200 · captions / 150,000), x is seen in pictures
/// x may replace w:     both are candidates, other lemmas, of no family, x not excluded for w by siblings
/// ```
///
/// # Departures
/// The published program asks WordNet whether two nouns share a sense, and for hypernyms. Here the captions of one image answer this question.
#[derive(Debug, Clone, Default)]
pub struct NounTable {
    candidates: Vec<String>,
    replacements: HashMap<String, Vec<usize>>,
    numbers: HashMap<String, u32>,
    siblings: SiblingStatistics,
}

impl NounTable {
    /// Counts nouns in training captions, grouped by image.
    pub fn fit(images: &[Vec<Sentence>]) -> Self {
        let captions: usize = images.iter().map(Vec::len).sum();
        let mut counts: HashMap<String, usize> = HashMap::new();
        let words = images.iter().flatten().flat_map(|caption| &caption.words);
        let nouns = words.filter(|word| word.tag == Tag::Noun).map(|word| word.text.to_lowercase());
        nouns.for_each(|noun| *counts.entry(noun).or_default() += 1);
        let least = FLOOR.max((COUNT * captions).div_ceil(CAPTIONS));
        let shown = |noun: &str| plain(noun) && family::visual(&lemma(noun));
        let often = counts.into_iter().filter(|(noun, count)| *count >= least && shown(noun));
        let mut candidates: Vec<String> = often.map(|(noun, _)| noun).collect();
        candidates.sort_unstable();
        let mut numbers = HashMap::new();
        let mut numbered = |word: &Word| {
            let next = numbers.len() as u32;
            *numbers.entry(lemma(&word.text)).or_insert(next)
        };
        let mut caption = |of: &Sentence| of.words.iter().map(&mut numbered).collect::<Vec<u32>>();
        let grouped: Vec<Vec<Vec<u32>>> =
            images.iter().map(|of| of.iter().map(&mut caption).collect()).collect();
        let siblings = SiblingStatistics::fit(&grouped);
        let mut table = Self { candidates, replacements: HashMap::new(), numbers, siblings };
        let of = |w: &String| {
            let allowed = |&x: &usize| table.may_replace(w, &table.candidates[x]);
            (w.clone(), (0..table.candidates.len()).filter(allowed).collect())
        };
        table.replacements = table.candidates.iter().map(of).collect();
        table
    }

    /// The candidates that may replace a noun, in alphabetical order; none for a noun that is not a candidate.
    pub(crate) fn replacements(&self, w: &str) -> impl Iterator<Item = &str> {
        let numbers = self.replacements.get(w).into_iter().flatten();
        numbers.map(|&x| self.candidates[x].as_str())
    }

    /// Whether `x` in the place of `w` makes a caption false, as far as families and siblings tell.
    fn may_replace(&self, w: &str, x: &str) -> bool {
        let (w, x) = (lemma(w), lemma(x));
        let excluded = match (self.numbers.get(&w), self.numbers.get(&x)) {
            (Some(&w), Some(&x)) => self.siblings.excludes(w, x) || self.siblings.excludes(x, w),
            _ => false,
        };
        w != x && !family::related(&w, &x) && !excluded
    }
}

/// Replaces the last noun of each chunk by each candidate that no caption of the image has. `Rules::Fitting` also drops the nouns before the
/// last one: `a soccer ball` becomes `a cup`.
pub(super) fn edits(
    sentence: &Sentence,
    told: &CaptionLemmas,
    table: &NounTable,
    rules: Rules,
) -> Vec<Edit> {
    let mut all = Vec::new();
    for chunk in &sentence.chunks {
        let at = chunk.nouns.end - 1;
        let noun = sentence.words[at].text.to_lowercase();
        let letters = chunk.words.clone().all(|k| plain(&sentence.words[k].text.to_lowercase()));
        if !letters {
            continue;
        }
        let fits = fitting(sentence, chunk);
        for new in table.replacements(&noun) {
            if told.has(new) || rules == Rules::Fitting && !fits(new) {
                continue;
            }
            let change = match rules {
                Rules::VseC => (at..at + 1, vec![new.to_owned()]),
                Rules::Fitting => with_article(sentence, chunk.nouns.clone(), new),
            };
            all.extend(change::edit(sentence, Kind::Noun, vec![change]));
        }
    }
    all
}

/// Which nouns in the place of a chunk's nouns leave a good sentence.
fn fitting<'a>(sentence: &'a Sentence, chunk: &Chunk) -> impl Fn(&str) -> bool + 'a {
    let old = chunk.nouns.end - 1;
    let (one, number) = (is_one(sentence, chunk), number(sentence, chunk));
    let first = &sentence.words[chunk.words.start];
    let definite = ["the", "this", "that"].contains(&&first.text.to_lowercase()[..]);
    // `in water` does not become `in dog`
    let bare = !one && !definite && first.tag != Tag::Possessive;
    let uncountable = bare && family::mass(&lemma(&sentence.words[old].text));
    move |new| {
        let plural = is_plural(new);
        let of_number = match number {
            Number::One => !plural,
            Number::Many => plural,
            Number::Either => ALIKE.contains(new),
        };
        let mass = of_number && (one || uncountable) && family::mass(new);
        let of_kind = (mass || !uncountable) && !(one && (mass || plural));
        of_number && of_kind && fits_mark(sentence, old, new)
    }
}

fn is_article(word: &str) -> bool {
    ["a", "an"].iter().any(|article| word.eq_ignore_ascii_case(article))
}

/// Replaces the nouns, and also the article right before them if the new noun needs the other article.
fn with_article(
    sentence: &Sentence,
    nouns: Range<usize>,
    new: &str,
) -> (Range<usize>, Vec<String>) {
    let article = article(new);
    let before = nouns.start.checked_sub(1).map(|k| &sentence.words[k].text);
    match before.filter(|old| is_article(old) && !old.eq_ignore_ascii_case(article)) {
        Some(_) => (nouns.start - 1..nouns.end, vec![article.into(), new.into()]),
        None => (nouns, vec![new.into()]),
    }
}

/// The article that fits the sound of a word: `an owl`, `a uniform`, `an hour`.
fn article(word: &str) -> &'static str {
    let consonant = ["uni", "use", "usu", "uti", "ute", "uri", "uku", "eu", "ewe", "one", "ufo"];
    let silent = ["hour", "heir", "honest", "honor", "suv", "rv"];
    let starts = |with: &[&str]| with.iter().any(|start| word.starts_with(start));
    let vowel = word.starts_with(['a', 'e', 'i', 'o', 'u']) && !starts(&consonant);
    if vowel || starts(&silent) { "an" } else { "a" }
}

fn plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sentence;
    use super::*;

    /// 20 images of each thing. A second caption calls each cup a goblet.
    fn table() -> NounTable {
        let mut images = Vec::new();
        for thing in ["dog", "cat", "owl", "boat", "cup", "tree", "cups"] {
            for _ in 0..20 {
                let mut captions = vec![sentence(&format!("a/D {thing}"))];
                if thing == "cup" {
                    captions.push(sentence("a/D goblet"));
                }
                images.push(captions);
            }
        }
        images.push(vec![sentence("a/D zebra in/P front/N of/P a/D wall")]);
        images.push(vec![sentence("a/D front"); 30]);
        NounTable::fit(&images)
    }

    fn new_words(tagged: &str, others: &[&str], rules: Rules) -> Vec<String> {
        let own = sentence(tagged);
        let others: Vec<Sentence> = others.iter().map(|tagged| sentence(tagged)).collect();
        let told = CaptionLemmas::of(others.iter().chain([&own]));
        edits(&own, &told, &table(), rules).into_iter().map(|edit| edit.new.join(" ")).collect()
    }

    #[test]
    fn candidates_are_frequent_and_seen() {
        let wanted = ["boat", "cat", "cup", "cups", "dog", "goblet", "owl", "tree"];
        assert_eq!(table().candidates, wanted, "no zebra (once), no front (not seen)");
    }

    #[test]
    fn a_noun_becomes_every_candidate_of_its_number() {
        let words = new_words("the/D dog runs/V", &[], Rules::Fitting);
        assert_eq!(words, ["boat", "cat", "cup", "goblet", "owl", "tree"]);
        let words = new_words("the/D dog runs/V", &[], Rules::VseC);
        assert!(words.contains(&"cups".into()), "number is not adapted");
        assert!(
            new_words("the/D zebra runs/V", &[], Rules::VseC).is_empty(),
            "no candidate itself"
        );
    }

    #[test]
    fn no_word_of_a_sibling_replaces_whatever_its_punctuation_and_number() {
        let words = new_words("the/D dog", &["two/# cats ./.", "an/D Owl ./."], Rules::Fitting);
        assert_eq!(words, ["boat", "cup", "goblet", "tree"]);
        let parsed = crate::phrases::parse("I see a boat.");
        assert!(CaptionLemmas::of([&parsed]).has("boat"), "`boat.` protects `boat`");
    }

    #[test]
    fn siblings_teach_that_a_goblet_is_a_cup() {
        let table = table();
        assert!(!table.may_replace("cup", "goblet") && !table.may_replace("cups", "goblet"));
        assert!(table.may_replace("dog", "goblet"));
        assert!(!table.may_replace("cup", "cups"), "one lemma");
        assert!(!table.may_replace("dog", "animal"), "one family");
    }

    #[test]
    fn the_article_before_the_noun_fits_its_sound() {
        let words = new_words("a/D dog", &[], Rules::Fitting);
        assert!(words.contains(&"an owl".into()) && words.contains(&"cat".into()));
        let words = new_words("a/D dog", &[], Rules::VseC);
        assert!(words.contains(&"owl".into()), "VSE-C leaves the article");
        let words = new_words("a/D brown/A dog", &[], Rules::Fitting);
        assert!(words.contains(&"owl".into()), "the article fits the sound of `brown`");
    }

    #[test]
    fn an_article_has_no_plural_and_nothing_uncountable() {
        let of = |thing| vec![vec![sentence(&format!("the/D {thing}"))]; 20];
        let things = ["dog", "cats", "glasses", "dirt", "rugby", "sheep"];
        let table = NounTable::fit(&things.map(of).concat());
        for (tagged, want) in [
            ("the/D dog", &["dirt", "rugby", "sheep"][..]),
            ("the/D cats", &["glasses"]),
            ("a/D dog", &["sheep"]),
            ("half/# a/D dog", &["sheep"]),
            ("One/# dog", &["sheep"]),
            ("a/D glasses", &[]),
            ("in/P dirt", &["rugby"]),
            ("in/P the/D dirt", &["dog", "rugby", "sheep"]),
            ("two/# sheep", &["cats", "glasses"]),
            ("a/D sheep", &["dog"]),
            ("the/D sheep", &[]),
            ("the/D cats '/.", &["glasses"]),
            ("the/D dog 's/.", &["dirt", "rugby", "sheep"]),
        ] {
            let own = sentence(tagged);
            let all = edits(&own, &CaptionLemmas::of([&own]), &table, Rules::Fitting);
            let new: Vec<_> = all.iter().flat_map(|edit| &edit.new).collect();
            assert_eq!(new, want, "{tagged}");
        }
    }

    #[test]
    fn only_the_last_noun_of_a_plain_chunk_is_replaced() {
        let own = sentence("a/D tree boat and/C a/D 2nd/A dog");
        let all = edits(&own, &CaptionLemmas::of([&own]), &table(), Rules::VseC);
        assert!(all.len() > 3 && all.iter().all(|edit| edit.positions == [2]), "{all:?}");
        let all = edits(&own, &CaptionLemmas::of([&own]), &table(), Rules::Fitting);
        let text = &all[0].text;
        assert_eq!((text.as_str(), all[0].positions.len()), ("a cat and a 2nd dog", 2));
    }

    #[test]
    fn an_article_goes_by_sound() {
        let words = ["owl", "uniform", "umbrella", "unicycle", "hour", "horse", "one"];
        assert_eq!(words.map(article), ["an", "a", "an", "a", "an", "a", "a"]);
        let words = ["urinal", "utensil", "ukulele", "ewe", "suv", "urn", "egg"];
        assert_eq!(words.map(article), ["a", "a", "a", "a", "an", "an", "an"]);
    }

    /// Counts scale with the number of captions, down to 20.
    #[test]
    fn the_least_count_scales() {
        let many = |n: usize| {
            let mut images = vec![vec![sentence("a/D cat")]; 30_000 - n];
            images.extend(vec![vec![sentence("a/D dog")]; n]);
            NounTable::fit(&images).candidates.contains(&"dog".to_owned())
        };
        assert!(many(40) && !many(39), "200 of 150,000 are 40 of 30,000");
    }
}
