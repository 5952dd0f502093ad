use proptest::prelude::*;

use super::*;
use crate::Purpose;
use crate::phrases::{Chunk, Sentence, Tag, Word, parse};
use crate::record::write;

/// A sentence of tagged words: `a/D man/N with/P a/D dog/N ./.`. A word without a tag is a noun. A full stop has no blank before it.
pub(super) fn sentence(tagged: &str) -> Sentence {
    let mut words = Vec::new();
    let mut end = 0;
    for piece in tagged.split_whitespace() {
        let (text, tag) = piece.rsplit_once('/').unwrap_or((piece, "N"));
        let start = if end == 0 || text == "." { end } else { end + 1 };
        end = start + text.len();
        words.push(Word { text: text.into(), span: start..end, tag: of(tag) });
    }
    let chunks = chunks(&words);
    Sentence { words, chunks, ..Sentence::default() }
}

fn of(tag: &str) -> Tag {
    match tag {
        "N" => Tag::Noun,
        "D" => Tag::Determiner,
        "S" => Tag::Possessive,
        "#" => Tag::Number,
        "A" => Tag::Adjective,
        "P" => Tag::Preposition,
        "V" => Tag::Verb,
        "X" => Tag::Auxiliary,
        "C" => Tag::Conjunction,
        "." => Tag::Punctuation,
        other => panic!("no tag {other}"),
    }
}

/// Determiner, numbers and adjectives, then nouns.
fn chunks(words: &[Word]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let (mut start, mut k) = (0, 0);
    while k < words.len() {
        let tag = words[k].tag;
        if tag == Tag::Noun {
            let nouns = k;
            while words.get(k).is_some_and(|word| word.tag == Tag::Noun) {
                k += 1;
            }
            chunks.push(Chunk { words: start..k, nouns: nouns..k });
            start = k;
        } else {
            k += 1;
            if !matches!(tag, Tag::Determiner | Tag::Possessive | Tag::Number | Tag::Adjective) {
                start = k;
            }
        }
    }
    chunks
}

fn captions() -> Vec<Captions> {
    let of = |id: &str, texts: &[&str]| Captions {
        id: id.into(),
        texts: texts.iter().map(|&text| text.into()).collect(),
    };
    let mut images = vec![of("odd", &["", "Dog", "...", "two", "on\na line end"])];
    for n in 0..45 {
        let [a, b] = [["dog", "tree"], ["cat", "boat"], ["owl", "cup"]][n % 3];
        images.push(of(
            &format!("i{n}"),
            &[&format!("A {a} sits on a {b}."), &format!("The {a} sees two {b}s ."), "Two men run"],
        ));
    }
    images
}

fn parsed() -> Vec<Vec<Sentence>> {
    captions().iter().map(|image| image.texts.iter().map(|text| parse(text)).collect()).collect()
}

fn written(rules: Rules, seed: u64, images: &[Captions]) -> (String, Counts) {
    let mut bytes = Vec::new();
    let edits = Edits { nouns: NounTable::fit(&parsed()), rules };
    let wanted = Quota { seed, per_caption: 3, kinds: Kind::RULES.to_vec() };
    let (records, counts) = negatives(images, &edits, &wanted);
    write(&records, &mut bytes, "t").unwrap();
    (String::from_utf8(bytes).unwrap(), counts)
}

/// No order of these words reads differently if case is ignored, and the search ends.
#[test]
fn words_that_differ_in_case_alone_are_not_shuffled() {
    for text in ["é É", "a A", "a", ""] {
        let sentence = parse(text);
        let mut rng = Purpose::Edits.stream(0, 0);
        let all = Edits::default().of(&sentence, &CaptionLemmas::of([&sentence]), &mut rng);
        assert!(all.iter().all(|edit| edit.kind != Kind::Order), "{text}");
    }
}

#[test]
fn one_seed_gives_one_file_and_another_seed_another() {
    for rules in [Rules::Fitting, Rules::VseC] {
        let (first, counts) = written(rules, 1, &captions());
        assert_eq!(written(rules, 1, &captions()), (first.clone(), counts.clone()));
        assert_ne!(written(rules, 2, &captions()).0, first);
        assert_eq!(counts.captions, 140);
        assert!(counts.without >= 3, "an empty caption, dots, one word: {counts:?}");
        for kind in Kind::RULES {
            assert!(counts.records[&kind] > 10, "{counts:?}");
        }
    }
    assert_ne!(written(Rules::VseC, 1, &captions()).0, written(Rules::Fitting, 1, &captions()).0);
}

/// `Cats chase dogs.` is a relation and an order of `Dogs chase cats.`, but one text.
#[test]
fn texts_are_distinct_and_long_ones_have_none() {
    let image = Captions { id: "i".into(), texts: vec!["Dogs chase cats.".into()] };
    for seed in 0..20 {
        let all = Quota { seed, per_caption: 9, kinds: Kind::RULES.to_vec() };
        let (records, _) = negatives(std::slice::from_ref(&image), &Edits::default(), &all);
        let texts: HashSet<_> = records.iter().map(|record| &record.text).collect();
        assert!(!records.is_empty() && texts.len() == records.len(), "{records:?}");
    }
    for (words, some) in [(MOST_WORDS, true), (MOST_WORDS + 1, false)] {
        let text = sentence(&["two/# dogs", &" run/V".repeat(words - 2)].concat());
        let mut rng = Purpose::Edits.stream(0, 0);
        let found = Edits::default().of(&text, &CaptionLemmas::default(), &mut rng);
        assert_eq!(!found.is_empty(), some, "{words} words");
    }
}

/// Each caption has its own random stream, so that later images do not change the negatives of earlier ones.
#[test]
fn a_longer_set_begins_with_the_negatives_of_a_shorter_one() {
    let all = written(Rules::Fitting, 1, &captions()).0;
    let few = written(Rules::Fitting, 1, &captions()[..9]).0;
    assert!(few.len() > 1000 && all.starts_with(&few));
}

/// Every variant changes only the words at its positions; a relation or an order with as many new words only permutes the words.
#[test]
fn every_variant_differs_in_exactly_one_place() {
    let table = NounTable::fit(&parsed());
    let mut seen = [0; 4];
    for rules in [Rules::Fitting, Rules::VseC] {
        let edits = Edits { nouns: table.clone(), rules };
        for sentence in parsed().concat() {
            let told = CaptionLemmas::of([&sentence]);
            let mut rng = Purpose::Edits.stream(1, 0);
            for edit in edits.of(&sentence, &told, &mut rng) {
                let old: Vec<String> = texts(&sentence);
                let new: Vec<String> = texts(&parse(&edit.text));
                seen[edit.kind as usize] += 1;
                match edit.kind {
                    Kind::Noun => assert!(changed(&old, &new).len() <= 2, "{old:?} {edit:?}"),
                    Kind::Numeral => {
                        let places = changed(&old, &new);
                        assert!(places.iter().all(|at| edit.positions.contains(at)), "{edit:?}");
                    }
                    _ => {
                        let swap = edit.old.len() == edit.new.len() && edit.old.len() > 1;
                        let (mut a, mut b) = (old.clone(), new.clone());
                        a.sort();
                        b.sort();
                        assert!(!swap || a == b, "a permutation: {edit:?}");
                    }
                }
                assert_ne!(old, new, "{edit:?}");
                assert!(!edit.text.contains("  ") && edit.text.trim() == edit.text, "{edit:?}");
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

fn texts(sentence: &Sentence) -> Vec<String> {
    sentence.words.iter().map(|word| word.text.to_lowercase()).collect()
}

/// Places of the words that differ between two sentences of one length.
fn changed(old: &[String], new: &[String]) -> Vec<usize> {
    assert_eq!(old.len(), new.len(), "{old:?} {new:?}");
    (0..old.len()).filter(|&k| old[k] != new[k]).collect()
}

#[test]
fn no_new_noun_stands_in_a_sibling() {
    let table = NounTable::fit(&parsed());
    for image in parsed() {
        let told = CaptionLemmas::of(&image);
        for sentence in &image {
            for edit in nouns::edits(sentence, &told, &table, Rules::VseC) {
                assert!(edit.new.iter().all(|new| !told.has(new)), "{edit:?}");
            }
        }
    }
}

#[test]
fn a_shuffle_keeps_the_words_and_the_full_stop() {
    let brown = sentence("A/D brown/A dog runs/V ./.");
    let mut rng = Purpose::Edits.stream(1, 0);
    for _ in 0..100 {
        let edit = order::edit(&brown, &mut rng).unwrap();
        assert!(edit.text.ends_with('.') && !edit.text.ends_with(" ."), "{}", edit.text);
        assert!(edit.text.starts_with(char::is_uppercase), "{}", edit.text);
        let mut words: Vec<String> =
            edit.text[..edit.text.len() - 1].split(' ').map(str::to_lowercase).collect();
        assert_ne!(words, ["a", "brown", "dog", "runs"]);
        words.sort();
        assert_eq!(words, ["a", "brown", "dog", "runs"]);
    }
    for same in ["Dog/N", "dog/N Dog/N dog/N", "./."] {
        assert_eq!(order::edit(&sentence(same), &mut rng), None, "{same}");
    }
}

#[test]
fn a_shuffle_keeps_words_that_are_glued() {
    let text = "The young child's umbrella isn't the boy ’s own";
    let words = |text: &str| {
        let mut words: Vec<_> = text.split(' ').map(str::to_lowercase).collect();
        words.sort();
        words
    };
    let mut rng = Purpose::Edits.stream(1, 0);
    for _ in 0..100 {
        let edit = order::edit(&parse(text), &mut rng).unwrap();
        assert_eq!(words(&edit.text), words(text), "{}", edit.text);
        assert_eq!((edit.positions.len(), edit.new.len()), (10, 10));
    }
}

/// `isn't wearing two hats` would be true. The next sentence denies nothing.
#[test]
fn nothing_changes_behind_a_negation() {
    for (text, denied) in [
        ("A man isn't wearing a hat on a boat. Two dogs run.", 3..9),
        ("A man climbs a wall without a rope", 6..8),
        ("Two men and no dog", 4..5),
    ] {
        let sentence = parse(text);
        let told = CaptionLemmas::of([&sentence]);
        let mut rng = Purpose::Edits.stream(1, 0);
        let mut all = Edits::default().of(&sentence, &told, &mut rng);
        all.retain(|edit| edit.kind != Kind::Order);
        let changes = |edit: &Edit| edit.positions.iter().any(|at| denied.contains(at));
        assert!(!all.is_empty() && !all.iter().any(changes), "{all:?}");
        let after = all.iter().any(|edit| edit.positions.iter().all(|&at| at >= denied.end));
        assert_eq!(after, text.ends_with("run."), "{all:?}");
    }
}

/// Three kinds with 1, 2 and 6 variants: each kind gets a third of the draws.
#[test]
fn a_kind_is_drawn_before_a_variant() {
    let edit = |kind| Edit { kind, positions: vec![], old: vec![], new: vec![], text: "".into() };
    let kinds = [vec![Kind::Noun], vec![Kind::Numeral; 2], vec![Kind::Order; 6]].concat();
    let edits: Vec<Edit> = kinds.into_iter().map(edit).collect();
    let mut rng = Purpose::Edits.stream(1, 0);
    let drawn: Vec<usize> = (0..9000).map(|_| choose(&edits, &mut rng).unwrap()).collect();
    let nouns = drawn.iter().filter(|&&at| at == 0).count();
    assert!((2780..3220).contains(&nouns), "{nouns}: 3,000 expected, standard deviation 45");
    assert_eq!(choose(&[], &mut rng), None);
}

proptest! {
    #[test]
    fn any_text_is_edited(text in "\\PC{0,60}", other in "([a-zA-Z,.']{1,9}[ \n]){0,12}") {
        let edits = Edits { nouns: NounTable::fit(&parsed()[..3]), rules: Rules::VseC };
        for sentence in [parse(&text), parse(&other)] {
            let mut rng = Purpose::Edits.stream(1, 0);
            let told = CaptionLemmas::of([&sentence]);
            for edit in edits.of(&sentence, &told, &mut rng) {
                prop_assert!(edit.positions.iter().all(|&at| at < sentence.words.len()));
                prop_assert_eq!(edit.old.len(), edit.positions.len());
            }
        }
    }
}
