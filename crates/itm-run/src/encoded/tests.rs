use std::fs;
use std::path::Path;

use burn::tensor::Device;
use itm_core::text::Tokens;

use super::*;
use crate::config::{Config, ScenesConfig};
use crate::tests::small_scenes;

fn target(features: ImageFeatures) -> Target {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let target = Config::load(&configs, "fne-scenes").unwrap().target;
    Target { features, ..target }
}

fn source() -> Source {
    small_scenes([20, 3, 3]).1
}

/// By hand: `<pad>` and `<unk>`, then the words by count and alphabetically, then the marks. Trained weights depend on these numbers.
#[test]
fn golden_numbers_of_words() {
    let mut source = source();
    let texts = ["A dog runs.", "a cat", "The dog's dog", "the", "a"].map(String::from);
    source.dataset.train.captions = texts.into();
    source.dataset.test.captions[0] = "A bird, the DOG's cat".into();
    source.dataset.test.captions[1] = ".".into();
    let mut target = target(ImageFeatures::Given);
    // a and dog occur 3 times, the 2 times; cat, runs and s once.
    for (min_word_count, marks, size, want) in [
        (1, Marks::Off, 8, [vec![2, 1, 4, 3, 7, 5], vec![1]]),
        (1, Marks::StartEnd, 10, [vec![8, 2, 1, 4, 3, 7, 5, 9], vec![8, 9]]),
        (2, Marks::Off, 5, [vec![2, 1, 4, 3, 1, 1], vec![1]]),
        (2, Marks::StartEnd, 7, [vec![5, 2, 1, 4, 3, 1, 1, 6], vec![5, 6]]),
    ] {
        target.min_word_count = min_word_count;
        let reading = Reading::new(&source, &target, Captions::Words(marks)).unwrap();
        assert_eq!((reading.vocabulary, &reading.texts(Split::Test)[..2]), (size, &want[..]));
        assert_eq!(reading.note(&source), None);
    }
}

/// By hand: with at most two words one test caption of three is cut, and one has no word of training.
#[test]
fn captions_that_lose_words_are_counted() {
    let mut source = source();
    source.dataset.train.captions = vec!["a dog".into(), "a cat".into()];
    source.dataset.val.captions = vec!["a cat".into()];
    source.dataset.test.captions = ["a dog runs", "birds fly", "a cat"].map(String::from).into();
    let mut target = target(ImageFeatures::Given);
    (target.min_word_count, target.max_words) = (1, 2);
    let reading = Reading::new(&source, &target, Captions::Words(Marks::Off)).unwrap();
    let want = [
        "test: 1 of 3 captions cut to their first 2 words (max_words)",
        "test: 1 of 3 captions have no known word",
    ];
    assert_eq!(reading.cut(&source), want);
    target.max_words = 3;
    let reading = Reading::new(&source, &target, Captions::Words(Marks::Off)).unwrap();
    assert_eq!(reading.cut(&source), want[1..]);
}

/// FNE's cleaning keeps 30 words of a caption before they become pieces; without cleaning all words become pieces.
#[test]
fn captions_that_cleaning_cuts_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").unwrap();
    let mut source = source();
    source.dataset.train.captions = vec![["a"; 31].join(" "), ["a"; 30].join(" ")];
    source.dataset.val.captions = vec!["a ".repeat(15) + &"a-".repeat(16)];
    source.dataset.test.captions = vec!["a".into()];
    let target = target(ImageFeatures::Pictures);
    let cut = |cleaning| {
        let captions = Captions::Pieces(folder.path().into(), cleaning);
        Reading::new(&source, &target, captions).unwrap().cut(&source)
    };
    let want = [
        "train: 1 of 2 captions cut to their first 30 words (as the released cleaning does)",
        "val: 1 of 1 captions cut to their first 30 words (as the released cleaning does)",
    ];
    assert_eq!(cut(Cleaning::Cleaned), want);
    assert_eq!(cut(Cleaning::Raw), [""; 0]);
}

/// The target's tokens, a released vocabulary from other captions, and its note.
#[test]
fn tokens_and_a_vocabulary_of_a_file() {
    let (mut source, mut target) = (source(), target(ImageFeatures::Given));
    source.dataset.train.captions = vec!["A dog isn't here.".into(), "x".into()];
    source.dataset.test.captions[0] = "The dog isn't.".into();
    target.tokens = Tokens::Treebank;
    let captions = || Captions::Words(Marks::StartEnd);
    let built = Reading::new(&source, &target, captions()).unwrap();
    // . a dog here is n't x
    assert_eq!(
        (built.vocabulary, &built.texts(Split::Test)[0][..]),
        (11, &[9, 1, 4, 6, 7, 2, 10][..])
    );
    let words = built.words("The dog isn't.").unwrap();
    assert_eq!((&words[3].text[..], words[3].pieces.clone()), ("n't", 4..5));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.json");
    let json =
        r#"{"word2idx": {"<pad>": 0, "<unk>": 1, "<start>": 2, "<end>": 3, "the": 4, "n't": 5}}"#;
    fs::write(&file, json).unwrap();
    source.vocabulary = Some(file.clone());
    let read = Reading::new(&source, &target, captions()).unwrap();
    assert_eq!((read.vocabulary, &read.texts(Split::Test)[0][..]), (6, &[2, 4, 1, 1, 5, 1, 3][..]));
    let note =
        "the vocabulary comes from `words.json`: 6 entries, 1 of them in no training caption";
    assert_eq!(read.note(&source).as_deref(), Some(note));
    fs::write(&file, "{}").unwrap();
    let line = Reading::new(&source, &target, captions()).err().unwrap().to_string();
    assert!(line.contains("words.json: expected a vocabulary with `word2idx`"), "{line}");
}

/// With marks, an empty line is two marks. Without marks, it is refused, and the error names its place.
#[test]
fn an_empty_caption_needs_marks() {
    let (mut source, target) = (source(), target(ImageFeatures::Given));
    source.dataset.val.captions[7] = " ".into();
    let read = |captions| Reading::new(&source, &target, captions);
    let marked = read(Captions::Words(Marks::StartEnd)).unwrap();
    let n = marked.vocabulary as u32;
    assert_eq!(marked.texts(Split::Val)[7], [n - 2, n - 1]);
    for without in [Captions::Words(Marks::Off), Captions::Stems] {
        let line = read(without).err().unwrap().to_string();
        let want = "scenes, line 8 of the val captions: expected a caption that is not empty, because it has no marks, got an empty line";
        assert_eq!(line, want);
    }
}

#[test]
fn marks_stand_around_the_same_words() {
    let (source, target) = (source(), target(ImageFeatures::Given));
    let plain = Reading::new(&source, &target, Captions::Words(Marks::Off)).unwrap();
    let marked = Reading::new(&source, &target, Captions::Words(Marks::StartEnd)).unwrap();
    assert_eq!(marked.vocabulary, plain.vocabulary + 2);
    let words = plain.words_by_number().unwrap();
    assert_eq!(marked.words_by_number().unwrap(), [&words[..], &["", ""]].concat());
    assert_eq!((words[..2].concat(), words.len()), (String::new(), plain.vocabulary));
    let n = plain.vocabulary as u32;
    for (plain, marked) in plain.texts(Split::Val).iter().zip(marked.texts(Split::Val)) {
        assert_eq!(*marked, [&[n], plain.as_slice(), &[n + 1]].concat());
    }
}

/// HAL's released code has marks; the paper does not say. The option changes the captions of every row.
#[test]
fn a_target_can_ask_for_marks() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let text = fs::read_to_string(configs.join("hal-scenes.toml")).unwrap();
    let of_words = |text: &str| {
        let random = text.replace("\nstart = \"cca\"", "\nstart = \"random\"");
        let (before, after) = random.split_once("[model.text]").unwrap();
        let (_, after) = after.split_once("[model.cca]").unwrap();
        let gru = "[model.text]\nkind = \"gru\"\nword_dim = 8\npool = \"last\"\n\n[model.cca]";
        [before, gru, after].concat()
    };
    assert!(text.contains("\nmarks = \"off\""), "{text}");
    let read = |text: String| -> Result<Reading> {
        let mut config = Config::parse("toy", "toy.toml".into(), text)?;
        let size =
            ScenesConfig { train: 8, val: 3, test: 3, pixels: 32, ..ScenesConfig::default() };
        config.target.scenes = Some(size);
        let (config, source) = Source::open(&config, None, &configs)?;
        Ok(crate::run::Run::new(config, source, vec![Device::flex()])?.readings.remove(0))
    };
    let marked = |text: &str, marks: &str| {
        text.replace("\nmarks = \"off\"", &format!("\nmarks = \"{marks}\""))
    };
    let words = of_words(&text);
    let on = read(marked(&words, "start_end")).unwrap();
    let off = read(words).unwrap();
    let marks = [0, 1].map(|k| off.vocabulary as u32 + k);
    assert_eq!(on.vocabulary, off.vocabulary + 2);
    for (on, off) in on.texts(Split::Test).iter().zip(off.texts(Split::Test)) {
        assert_eq!(on[1..on.len() - 1], off[..]);
        assert_eq!([on[0], on[on.len() - 1]], marks);
    }
    for (wrong, part) in [("both", "unknown variant `both`"), ("start_end", "no order of words")] {
        let line = read(marked(&text, wrong)).err().unwrap().to_string();
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(Captions::Words(Marks::StartEnd).marked(Marks::StartEnd), None);
    for without in [Captions::Pieces("x".into(), Cleaning::Raw), Captions::Stems] {
        assert_eq!(without.marked(Marks::StartEnd), None);
    }
}

/// The range of a word selects the word's numbers in the caption.
#[test]
fn words_point_at_their_numbers() {
    let (mut source, mut target) = (source(), target(ImageFeatures::Pictures));
    source.dataset.test.captions[0] = "A Red ball, on".into();
    target.max_words = 3;
    let of = |captions: Captions| {
        let reading = Reading::new(&source, &target, captions).unwrap();
        let words = reading.words(&source.dataset.test.captions[0]).unwrap();
        (words, reading.texts(Split::Test)[0].clone())
    };
    let (plain, of_plain) = of(Captions::Words(Marks::Off));
    let (marked, of_marked) = of(Captions::Words(Marks::StartEnd));
    let texts: Vec<_> = plain.iter().map(|w| w.text.as_str()).collect();
    assert_eq!(texts, ["a", "red", "ball"]);
    for (plain, marked) in plain.iter().zip(&marked) {
        assert_eq!(plain.text, marked.text);
        assert_eq!(of_plain[plain.pieces.clone()], of_marked[marked.pieces.clone()]);
    }
    assert_eq!((plain.len(), marked.len(), marked[2].pieces.clone()), (3, 3, 3..4));
    let folder = tempfile::tempdir().unwrap();
    let lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nred\nba\n##ll\n";
    fs::write(folder.path().join("vocab.txt"), lines).unwrap();
    let (pieces, numbers) = of(Captions::Pieces(folder.path().into(), Cleaning::Cleaned));
    assert_eq!(numbers, [2, 1, 4, 5, 6, 1, 3]); // all four words: `max_words` limits only words of a vocabulary
    let ball = Word { text: "ball".into(), pieces: 3..5 };
    assert_eq!((pieces.len(), &pieces[2]), (4, &ball));
}

/// By hand: `a` is piece 4, and every other word is the unknown piece 1; cleaning removes the full stop.
#[test]
fn pieces_are_those_of_the_folder_and_features_stay_away() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").unwrap();
    let mut source = source();
    source.dataset.test.captions[0] = "A x-ray.".into();
    let captions = Captions::Pieces(folder.path().into(), Cleaning::Cleaned);
    let target = target(ImageFeatures::Pictures);
    let reading = Reading::new(&source, &target, captions).unwrap();
    assert_eq!(reading.vocabulary, 5);
    assert_eq!(reading.texts(Split::Test)[0], [2, 4, 1, 1, 3]);
    // Without cleaning, case and punctuation stay for the tokenizer, which here makes each sign an unknown piece.
    let raw = Captions::Pieces(folder.path().into(), Cleaning::Raw);
    let raw = Reading::new(&source, &target, raw).unwrap();
    assert_eq!(raw.texts(Split::Test)[0], [2, 4, 1, 1, 1, 1, 3]);
    let [.., features] = features(&source.dataset, &target);
    assert_eq!((features.dim, features.rows()), (0, 0));
    let none = Captions::Pieces("no/such".into(), Cleaning::Raw);
    assert!(Reading::new(&source, &target, none).is_err());
}

/// By hand: `dog` and `run` occur in two training captions, `cat` in one, `bird` in none.
#[test]
fn stems_are_a_set_and_of_training_alone() {
    let mut source = source();
    let texts = ["Dogs run", "a running dog", "the cat"].map(String::from);
    source.dataset.train.captions = texts.into();
    source.dataset.test.captions[..3]
        .clone_from_slice(&["Run, dog, run!", "A bird", "cat"].map(String::from));
    let target = target(ImageFeatures::Given);
    let reading = Reading::new(&source, &target, Captions::Stems).unwrap();
    assert_eq!((reading.vocabulary, reading.terms().unwrap().len()), (2, 2));
    assert_eq!(reading.texts(Split::Test)[..3], [vec![0, 1], vec![], vec![]]);
    assert!(reading.words("A dog").unwrap().is_empty());
    source.dataset.train.captions = vec!["a".into(), "b".into()];
    let line = Reading::new(&source, &target, Captions::Stems).err().unwrap().to_string();
    assert_eq!(
        line,
        "scenes, training captions: expected a word that occurs in 2 of them, got none"
    );
}
