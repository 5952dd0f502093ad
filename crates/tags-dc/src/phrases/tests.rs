//! The captions of the specification, and laws for every text.

use proptest::prelude::*;

use super::*;

/// A caption, then the word positions of its objects, its attributes and its relations.
type Read = (
    &'static str,
    &'static [&'static [usize]],
    &'static [&'static [usize]],
    &'static [&'static [usize]],
);

/// Section 9 of the specification, by hand. Each object, attribute or relation has its own list; an empty list is a possessive.
const CAPTIONS: [Read; 18] = [
    ("A brown dog jumps over a fallen log .", &[&[2], &[7]], &[&[1], &[6]], &[&[3, 4]]),
    (
        "Two women in red coats talk near a bus stop .",
        &[&[1], &[4], &[8, 9]],
        &[&[0], &[3]],
        &[&[2], &[5, 6]],
    ),
    (
        "A child is eating a slice of chocolate cake with a small fork .",
        &[&[1], &[5], &[7, 8], &[12]],
        &[&[11]],
        &[&[3], &[6], &[9]],
    ),
    (
        "Three men are playing basketball on an outdoor court .",
        &[&[1], &[4], &[8]],
        &[&[0], &[7]],
        &[&[3], &[5]],
    ),
    (
        "A man wearing a black hat and sunglasses rides a motorcycle down the street .",
        &[&[1], &[5], &[7], &[10], &[13]],
        &[&[4]],
        &[&[2], &[2], &[8], &[11]],
    ),
    ("The cat on top of the television is asleep .", &[&[1], &[6]], &[&[8]], &[&[2, 3, 4]]),
    (
        "A group of people stand in front of a large stone building .",
        &[&[3], &[10, 11]],
        &[&[1], &[9]],
        &[&[4, 5, 6, 7]],
    ),
    (
        "Several sheep graze on green grass beside a wooden fence .",
        &[&[1], &[5], &[9]],
        &[&[0], &[4], &[8]],
        &[&[2, 3], &[6]],
    ),
    ("A woman is being helped by a firefighter .", &[&[1], &[7]], &[], &[&[4, 5]]),
    ("There is a yellow umbrella next to the pool .", &[&[4], &[8]], &[&[3]], &[&[5, 6]]),
    (
        "A boy 's bike leans against a graffiti-covered wall .",
        &[&[1], &[3], &[8]],
        &[&[7]],
        &[&[], &[4, 5]],
    ),
    (
        "People walking their dogs through a snowy park at night .",
        &[&[0], &[3], &[7], &[9]],
        &[&[6]],
        &[&[1], &[4], &[8]],
    ),
    ("A red and white train pulls into the station .", &[&[4], &[8]], &[&[1], &[3]], &[&[5, 6]]),
    ("Young girl blowing bubbles", &[&[1], &[3]], &[&[0]], &[&[2]]),
    (
        "The kitchen has a stove , two ovens and no refrigerator .",
        &[&[1], &[4], &[7], &[10]],
        &[&[6], &[9]],
        &[&[2], &[2], &[2]],
    ),
    (
        "A man and a woman sit on a bench looking at their phones .",
        &[&[1], &[4], &[8], &[12]],
        &[],
        &[&[5, 6], &[5, 6], &[9, 10], &[9, 10]],
    ),
    ("A barefoot runner smiles .", &[&[2]], &[&[1], &[3]], &[]),
    ("Snowboarder in mid air", &[&[0], &[2, 3]], &[], &[&[1]]),
];

#[test]
fn golden_captions() {
    let mut wrong = vec![];
    for (caption, objects, attributes, relations) in CAPTIONS {
        let sentence = parse(caption);
        let found = [
            sentence.objects.iter().map(|of| &of.words[..]).collect::<Vec<_>>(),
            sentence.attributes.iter().map(|of| &of.words[..]).collect(),
            sentence.relations.iter().map(|of| &of.words[..]).collect(),
        ];
        if found != [objects, attributes, relations] {
            let tags: Vec<_> =
                sentence.words.iter().map(|w| format!("{}/{:?}", w.text, w.tag)).collect();
            wrong.push(format!("{}\n  {found:?}", tags.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Who does what: subject, words and object of each relation.
#[test]
fn golden_subjects() {
    let ends = |caption: &str| -> Vec<(String, String, String)> {
        let s = parse(caption);
        let name = |k: usize| s.objects[k].name.clone();
        s.relations.iter().map(|r| (name(r.subject), r.name.clone(), name(r.object))).collect()
    };
    for (caption, want) in [
        (
            "A child is eating a slice of chocolate cake with a small fork .",
            "child eating slice|slice of cake|child with fork",
        ),
        (
            "A man and a woman sit on a bench looking at their phones .",
            "man sit on bench|woman sit on bench|man looking at phones|woman looking at phones",
        ),
        (
            "A boy 's bike leans against a graffiti-covered wall .",
            "boy have bike|bike leans against wall",
        ),
        ("A woman is being helped by a firefighter .", "woman helped by firefighter"),
        ("A man sits next to a woman wearing a hat .", "man sits next to woman|woman wearing hat"),
        ("A dog that carries a stick runs .", "dog carries stick"),
        ("A man walks down a road lined with trees .", "man walks down road|road lined with trees"),
    ] {
        let found = ends(caption).into_iter().map(|(a, b, c)| format!("{a} {b} {c}"));
        assert_eq!(found.collect::<Vec<_>>().join("|"), want, "{caption}");
    }
}

/// `skis` is a thing that a boy can have.
#[test]
fn plurals_of_words_in_i_are_objects() {
    let names: Vec<_> =
        parse("A boy has skis and poles.").objects.into_iter().map(|o| o.name).collect();
    assert_eq!(names, ["boy", "skis", "poles"]);
}

/// Long texts of one pattern need no deep recursion and no hours.
#[test]
fn long_texts_are_read() {
    for pattern in ["dog 's ", "a dog , ", "a dog and ", "red , ", "of ", "runs "] {
        assert!(!parse(&pattern.repeat(4_000)).words.is_empty(), "{pattern}");
    }
    for pattern in ["red ", "up very ", "dog ", "stand "] {
        assert!(!parse(&pattern.repeat(100_000)).words.is_empty(), "{pattern}");
    }
    assert_eq!(parse(&"dog 's ".repeat(100_000)).objects.len(), 100_000);
    let dogs = "a dog and ".repeat(200);
    let relations = parse(&format!("{dogs} a dog chase {dogs} a cat .")).relations.len();
    assert!(relations <= 2 * 32 * 32, "{relations}");
}

proptest! {
    /// Any text is read: positions are words, chunks do not overlap, and the same text gives the same graph.
    #[test]
    fn any_text_is_read(text in "(\\PC|[ a-z,.'-]){0,60}") {
        let sentence = parse(&text);
        prop_assert_eq!(&sentence, &parse(&text));
        for word in &sentence.words {
            prop_assert_eq!(&text[word.span.clone()], &word.text);
        }
        let n = sentence.words.len();
        let ends: Vec<_> = sentence.chunks.iter().map(|c| (c.words.start, c.words.end)).collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        prop_assert!(sentence.chunks.iter().all(|c| !c.nouns.is_empty() && c.nouns.end == c.words.end));
        let lists = sentence.phrases(Duplicates::Kept).lists(n);
        prop_assert!(lists.iter().flatten().all(|&at| at < n));
    }

    /// Any row of caption words is read: relations and attributes name existing objects.
    #[test]
    fn any_row_of_words_is_read(words in prop::collection::vec(
        prop::sample::select(vec!["a", "the", "dog", "man", "red", "and", ",", "of", "in", "on", "next", "to", "is", "running",
            "runs", "who", "group", "'s", "fallen", "wearing", "two", "there", "while", "it", "orange", "top"]), 0..14)) {
        let text = words.join(" ");
        let sentence = parse(&text);
        let objects = sentence.objects.len();
        prop_assert!(sentence.relations.iter().all(|r| r.subject < objects && r.object < objects));
        prop_assert!(sentence.attributes.iter().all(|a| a.object < objects && !a.words.is_empty()));
    }
}
