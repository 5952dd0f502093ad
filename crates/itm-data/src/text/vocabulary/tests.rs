use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn vocabulary(min_count: u64, marks: Marks) -> Vocabulary {
    let train = ["b a dog", "a b", "c dog's", "zebra dog"];
    Vocabulary::build(train, VocabularyOptions { min_count, tokens: Tokens::Words, marks })
}

#[test]
fn words_are_ordered_by_count_then_alphabet() {
    let v = vocabulary(1, Marks::Off);
    assert_eq!(v.words(), ["<pad>", "<unk>", "dog", "a", "b", "c", "s", "zebra"]);
    let v = vocabulary(2, Marks::StartEnd);
    assert_eq!(v.words(), ["<pad>", "<unk>", "dog", "a", "b", "<start>", "<end>"]);
    assert_eq!((v.len(), v.is_empty()), (7, false));
    assert!(vocabulary(4, Marks::StartEnd).is_empty());
}

#[test]
fn encoding_knows_specials_and_length() {
    let v = vocabulary(2, Marks::Off);
    assert_eq!(v.encode("A cat, a DOG!", 30), [3, 1, 3, 2]);
    assert_eq!(v.encode("A cat, a DOG!", 2), [3, 1]);
    assert_eq!(v.encode(" . ", 30), [1]);
    assert_eq!(v.encode("<pad> <unk>", 9), [1, 1]); // a caption cannot name a special
    let v = vocabulary(2, Marks::StartEnd);
    assert_eq!(v.encode("A cat, a DOG!", 30), [5, 3, 1, 3, 2, 6]);
    assert_eq!(v.encode("A cat, a DOG!", 2), [5, 3, 1, 6]);
    assert_eq!(v.encode("dog", 30), [5, 2, 6]);
    assert_eq!(v.encode("", 30), [5, 6]);
    assert_eq!(v.encode("xyz <start>", 30), [5, 1, 1, 6]);
    let long = "a ".repeat(999);
    assert_eq!(v.encode(&long, 10_000).len(), 1001, "more words than ever seen");
}

/// Writes a file and reads it; an error message leaves out the folder.
fn read(json: &str, marks: Marks) -> Result<Vocabulary, String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("v.json");
    std::fs::write(&path, json).unwrap();
    let options = VocabularyOptions { tokens: Tokens::Treebank, marks, ..Default::default() };
    let place = format!("{}/", folder.path().display());
    Vocabulary::read(&path, options).map_err(|e| e.to_string().replace(&place, ""))
}

/// Two vocabularies of NAAF's program: one for learnt word vectors, one for GloVe.
const PLAIN: &str = r#"{"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3, "dog": 5, "n't": 4, ".": 6},
    "idx2word": {"0": "<pad>"}, "idx": 7}"#;
const GLOVE: &str = r#"{"word2idx": {".": 6, "dog": 4, "<pad>": 0, "<unk>": 1, "<start>": 2, "<end>": 3, "n't": 5},
    "char_level": false, "max_len": null}"#;

#[test]
fn trap_14_both_released_layouts_are_read_by_name() {
    let plain = read(PLAIN, Marks::StartEnd).unwrap();
    assert_eq!(plain.words(), ["<pad>", "<start>", "<end>", "<unk>", "n't", "dog", "."]);
    assert_eq!(plain.encode("Isn't DOG .", 30), [1, 3, 4, 5, 6, 2]);
    assert_eq!(plain.encode("", 30), [1, 2]);
    let glove = read(GLOVE, Marks::StartEnd).unwrap();
    assert_eq!(glove.encode("Isn't DOG .", 30), [2, 1, 5, 4, 6, 3]);
    let without = read(GLOVE, Marks::Off).unwrap();
    assert_eq!(without.encode("Isn't DOG .", 30), [1, 5, 4, 6]);
    assert_eq!((without.encode("", 30), without.len()), (vec![1], 7));
    assert_eq!(glove.unseen(["a dog.", "a cat"]), 1, "n't");
    assert_eq!(["dog", "<start>", "cat"].map(|word| glove.number(word)), [Some(4), None, None]);
}

#[test]
fn other_layouts_and_missing_specials_are_refused() {
    for (from, to, want) in [
        (
            "\"word2idx\"",
            "\"words\"",
            "v.json: expected a vocabulary with `word2idx`, got missing field",
        ),
        ("{\"word2idx\": {", "[{", "v.json: expected a vocabulary with `word2idx`, got "),
        ("\"<start>\"", "\"<s>\"", "v.json: expected an entry <start>, got none"),
        ("\"<end>\"", "\"end\"", "v.json: expected an entry <end>, got none"),
        ("\"<unk>\"", "\"unk\"", "v.json: expected an entry <unk>, got none"),
        ("\"<pad>\"", "\"pad\"", "v.json: expected an entry <pad>, got none"),
        (
            "\"<pad>\": 0, \"<unk>\": 1",
            "\"<pad>\": 1, \"<unk>\": 0",
            "<pad> with the number 0, got \"<unk>\"",
        ),
        (
            "\"dog\": 4",
            "\"dog\": 7",
            "expected each number from 0 on once, so 4 next, got 5 of \"n't\"",
        ),
        ("\"dog\": 4", "\"dog\": 3", "so 4 next, got 3 of \"dog\""),
        ("\"dog\": 4", "\"dog\": -4", "expected a vocabulary with `word2idx`"),
        ("false", "true", "v.json: expected a vocabulary of words, got `char_level` is true"),
    ] {
        assert!(GLOVE.contains(from), "{from}");
        let line = read(&GLOVE.replacen(from, to, 1), Marks::Off).unwrap_err();
        assert!(line.contains(want) && line.lines().count() == 1, "{to}: {line}");
    }
    let options = VocabularyOptions::default();
    let line = Vocabulary::read(Path::new("no/such.json"), options).unwrap_err().to_string();
    assert!(line.contains("no/such.json: No such file"), "{line}");
}

proptest! {
    #[test]
    fn order_of_captions_does_not_matter(mut captions in proptest::collection::vec("[a-d ]{0,9}", 0..9)) {
        let one = Vocabulary::build(&captions, VocabularyOptions::default());
        captions.reverse();
        prop_assert_eq!(one, Vocabulary::build(&captions, VocabularyOptions::default()));
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&String::from_utf8_lossy(&bytes), Marks::Off);
    }

    /// No caption gives a word the number of a special entry, except of `<unk>`.
    #[test]
    fn no_word_is_a_special(caption in "[a-z<>\\[\\] .]{0,20}(<pad>|<start>|<end>|<unk>)[a-z ]{0,5}") {
        let v = read(GLOVE, Marks::StartEnd).unwrap();
        for tokens in [Tokens::Words, Tokens::WordsWithApostrophes, Tokens::Treebank, Tokens::TreebankLine] {
            prop_assert!(tokens.of(&caption).iter().all(|word| !is_special(word)));
        }
        let ids = v.encode(&caption, 99);
        prop_assert!(ids[1..ids.len() - 1].iter().all(|&id| id == 1 || id > 3));
    }
}
