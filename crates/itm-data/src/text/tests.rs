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
        ("<per-son>", "<per son>"), // hyphens are replaced before the tag is searched
        ("<per.son>", "person"),    // full stops are deleted before, too
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
        assert_eq!(clean_caption(caption, CLEANED_WORDS), want, "{caption:?}");
    }
}

#[test]
fn thirty_words_count_a_tabbed_pair_as_one() {
    let caption = format!("a\tb {}", vec!["w"; 30].join(" "));
    assert_eq!(clean_caption(&caption, 30).split(' ').count(), 30);
    assert!(clean_caption(&caption, 30).starts_with("a\tb w"));
    assert_eq!(clean_caption(&caption, 2), "a\tb w");
    assert_eq!(clean_caption(&caption, 31).split(' ').count(), 31);
    assert_eq!(clean_caption(&caption, 0), "");
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
    assert_ne!(caption_key("一只狗。"), caption_key("两只猫。"));
    assert_eq!(caption_key("Un café"), caption_key("un caf"));
}

proptest! {
    #[test]
    fn cleaning_bounds(caption in any::<String>()) {
        let clean = clean_caption(&caption, CLEANED_WORDS);
        prop_assert!(clean.split(' ').count() <= CLEANED_WORDS);
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
}
