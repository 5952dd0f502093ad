use proptest::prelude::*;

use super::*;

/// By hand from the order of the rules.
#[test]
fn cleaning_follows_its_order() {
    let forty = vec!["w"; 40].join(" ");
    for (caption, want) in [
        ("A t-shirt/jacket", "a t shirt jacket"),
        ("a -- b", "a b"),
        ("It's John's", "its johns"),
        ("one.two", "onetwo"),
        (forty.as_str(), vec!["w"; 30].join(" ").as_str()),
        ("<person> waves at <PERSON>", "person waves at person"),
        ("<per-son>", "<per son>"), // hyphens go before the tag is looked for
        ("<per.son>", "person"),    // full stops too
        ("a\tb", "a\tb"),           // one white-space character stays
        ("a \tb\n\nc", "a b c"),    // runs do not
        ("a , b", "a b"),           // the comma leaves two spaces
        ("a b .\n", "a b"),         // \" \n\" is a run, then the space is stripped
        ("a b\n", "a b"),
        ("a b\t", "a b\t"), // only newlines and spaces are stripped
        ("\nab", "\nab"),   // and newlines only at the end
        ("\"a\" (b) * # : ; ~ ! ? c_d&e", "a b c_d&e"),
        ("", ""),
        (" . ", ""),
        ("ÉTÉ\u{a0} x", "été x"),  // Unicode's spaces count
        ("a\u{1f}\u{1c}b", "a b"), // and Python's
    ] {
        assert_eq!(clean_caption(caption), want, "{caption:?}");
    }
}

#[test]
fn thirty_words_count_a_tabbed_pair_as_one() {
    let caption = format!("a\tb {}", vec!["w"; 30].join(" "));
    assert_eq!(clean_caption(&caption).split(' ').count(), 30);
    assert!(clean_caption(&caption).starts_with("a\tb w"));
}

#[test]
fn apostrophes() {
    let caption = "The dog's 'n' dogs' rock''n roll, o'clock's 3-D café";
    let plain =
        ["the", "dog", "s", "n", "dogs", "rock", "n", "roll", "o", "clock", "s", "3", "d", "caf"];
    let joined = ["the", "dog's", "n", "dogs", "rock", "n", "roll", "o'clock's", "3", "d", "caf"];
    assert_eq!(words(caption), plain);
    assert_eq!(words_with_apostrophes(caption), joined);
    assert_eq!(caption_key("A dog , runs !"), caption_key("a DOG runs"));
    assert_ne!(caption_key("a dog runs"), caption_key("a do gruns"));
}

fn vocabulary(min_count: u64, specials: Specials) -> Vocabulary {
    let train = ["b a dog", "a b", "c dog's", "zebra dog"];
    Vocabulary::build(train, VocabularyOptions { min_count, tokens: Tokens::Words, specials })
}

#[test]
fn words_are_ordered_by_count_then_alphabet() {
    let v = vocabulary(1, Specials::PadUnk);
    assert_eq!(v.words(), ["<pad>", "<unk>", "dog", "a", "b", "c", "s", "zebra"]);
    assert_eq!(["dog", "a", "zebra", "cat", "<pad>"].map(|w| v.count(w)), [3, 2, 1, 0, 0]);
    let v = vocabulary(2, Specials::PadUnkStartEnd);
    assert_eq!(v.words(), ["<pad>", "<unk>", "<start>", "<end>", "dog", "a", "b"]);
    assert_eq!((v.len(), v.is_empty()), (7, false));
    assert!(vocabulary(4, Specials::PadUnk).is_empty());
}

#[test]
fn encoding_knows_specials_and_length() {
    let v = vocabulary(2, Specials::PadUnk);
    assert_eq!(v.encode("A cat, a DOG!", 30), [3, 1, 3, 2]);
    assert_eq!(v.encode("A cat, a DOG!", 2), [3, 1]);
    assert_eq!(v.encode(" . ", 30), [Vocabulary::UNK]);
    assert_eq!(v.encode("<pad> <unk>", 9), [1, 1]); // a caption cannot name a special
    let v = vocabulary(2, Specials::PadUnkStartEnd);
    assert_eq!(v.encode("A cat, a DOG!", 30), [2, 5, 1, 5, 4, 3]);
    assert_eq!(v.encode("A cat, a DOG!", 4), [2, 5, 1, 3]);
    assert_eq!(v.encode("", 3), [2, 1, 3]);
}

#[test]
fn unknown_words_are_counted_with_repeats() {
    let oov = vocabulary(2, Specials::PadUnk).out_of_vocabulary(["a cat", "cat dog b"]);
    assert_eq!(oov, OutOfVocabulary { words: 5, unknown: 2 });
    assert!((oov.rate() - 0.4).abs() < 1e-12);
    assert_eq!(OutOfVocabulary { words: 0, unknown: 0 }.rate(), 0.0);
}

#[test]
fn stored_vocabularies_are_checked() {
    let v = vocabulary(1, Specials::PadUnkStartEnd);
    let json = serde_json::to_string(&v).unwrap();
    let back: Vocabulary = serde_json::from_str(&json).unwrap();
    assert_eq!(back, v);
    assert_eq!(back.sha256(), v.sha256());
    assert_ne!(v.sha256(), vocabulary(1, Specials::PadUnk).sha256());
    for (from, to, want) in [
        (
            "[\"a\",2],[\"b\",2]",
            "[\"b\",2],[\"a\",2]",
            "vocabulary, word 2: expected words by falling",
        ),
        ("[\"a\",2],[\"b\",2]", "[\"a\",2],[\"a\",2]", "vocabulary, word 2"),
        ("[\"a\",2]", "[\"A\",2]", "vocabulary, word 1: expected a lower-case word"),
        ("[\"zebra\",1]", "[\"zebra\",0]", "counted 1 times, got \"zebra\", 0 times"),
        ("\"words\":", "\"wrds\":", "unknown field"),
    ] {
        assert!(json.contains(from), "{json}");
        let error = serde_json::from_str::<Vocabulary>(&json.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
}

proptest! {
    #[test]
    fn cleaning_bounds(caption in any::<String>()) {
        let clean = clean_caption(&caption);
        prop_assert!(clean.split(' ').count() <= FNE_MAX_WORDS);
        prop_assert!(!clean.contains("  ") && !clean.starts_with(' ') && !clean.ends_with(' '));
        prop_assert!(!clean.contains([',', '.', '\'', '!', '?', '"', '(', ')', '-', '/', '~']));
    }

    #[test]
    fn words_are_words(caption in any::<String>()) {
        let plain = |w: &String| w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        prop_assert!(words(&caption).iter().all(|w| !w.is_empty() && plain(w)));
        for word in words_with_apostrophes(&caption) {
            prop_assert!(word.split('\'').all(|part| !part.is_empty() && plain(&part.into())));
        }
        // Apostrophes only join: without them the two agree.
        let joined = words_with_apostrophes(&caption).join(" ").replace('\'', " ");
        prop_assert_eq!(joined, words(&caption).join(" "));
    }

    #[test]
    fn order_of_captions_does_not_matter(mut captions in proptest::collection::vec("[a-d ]{0,9}", 0..9)) {
        let one = Vocabulary::build(&captions, VocabularyOptions::default());
        captions.reverse();
        prop_assert_eq!(one, Vocabulary::build(&captions, VocabularyOptions::default()));
    }

    #[test]
    fn any_stored_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = serde_json::from_slice::<Vocabulary>(&bytes);
    }
}
