use std::fs;

use tempfile::TempDir;

use super::*;

const TRAIN: &str = "a.jpg\nb.jpg\n";

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn read_all(dir: &TempDir) -> Result<Karpathy> {
    read(dir.path(), CaptionRule::All, &mut Manifest::default()).map(Option::unwrap)
}

/// The error without the folder.
fn refusal(dir: &TempDir) -> String {
    let line = read_all(dir).unwrap_err().to_string();
    line.replace(&format!("{}/", dir.path().display()), "")
        .replace(&dir.path().display().to_string(), "DIR")
}

fn of(split: Split, json: &Karpathy) -> Vec<(String, Vec<String>)> {
    json.images_of(split).map(|i| (i.filename.clone(), i.captions.clone())).collect()
}

fn words(all: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    all.iter().map(|(name, texts)| ((*name).to_owned(), own(texts))).collect()
}

#[test]
fn flickr8k_as_its_authors_gave_it() {
    let tokens = "a.jpg#0\tA dog .\nb.jpg#0\tA cat .\na.jpg#1\tA dog runs .\nc.jpg#0\tSnow .\nd.jpg#0\tA car .\nz.jpg#0\tNot listed .\n";
    let dir = folder(&[
        ("Flickr8k.token.txt", tokens),
        ("Flickr8k.lemma.token.txt", "another form"),
        ("Flickr_8k.trainImages.txt", TRAIN),
        ("Flickr_8k.devImages.txt", "c.jpg\n"),
        ("Flickr_8k.testImages.txt", "d.jpg\r\n"),
        ("Flicker8k_Dataset/a.jpg", ""),
    ]);
    let json = read_all(&dir).unwrap();
    let train = words(&[("a.jpg", &["A dog .", "A dog runs ."]), ("b.jpg", &["A cat ."])]);
    assert_eq!(of(Split::Train, &json), train);
    assert_eq!(of(Split::Val, &json), words(&[("c.jpg", &["Snow ."])]));
    assert_eq!(of(Split::Test, &json), words(&[("d.jpg", &["A car ."])]));
    assert_eq!(json.images[0].filepath.as_deref(), Some("Flicker8k_Dataset"));
}

#[test]
fn tables_with_commas_and_with_bars() {
    let lists = [("train.txt", "a\nb\n"), ("validation.txt", "c\n"), ("test.txt", "d.jpg\n")];
    let comma =
        "image,caption\na.jpg,\"A dog, \"\"Rex\"\", runs .\"\nb.jpg,Two\nc.jpg,Three\nd.jpg,Four\n";
    let bars = "image_name| comment_number| comment\na.jpg| 0| A dog, \"Rex\", runs .\nb.jpg| 4   Two\nc.jpg| 0| Three\nd.jpg| 0| Four\n";
    for (name, text, first) in [
        ("captions.txt", comma, "A dog, \"Rex\", runs ."),
        ("results.csv", bars, "A dog, \"Rex\", runs ."),
    ] {
        let dir = folder(&[&[(name, text)], &lists[..]].concat());
        let json = read_all(&dir).unwrap();
        let want = words(&[("a.jpg", &[first]), ("b.jpg", &["Two"])]);
        assert_eq!(of(Split::Train, &json), want, "{name}");
        assert_eq!(of(Split::Test, &json), words(&[("d.jpg", &["Four"])]));
    }
}

/// `a.v2` was taken for the image `a.jpg`, and `05.01` for no image.
#[test]
fn a_name_without_its_ending_may_have_dots() {
    let table = "image,caption\na.jpg,One\na.v2.jpg,Two\n05.01.jpg,Three\nd.jpg,Four\nd.png,Five\n";
    let lists =
        |test: &'static str| [("train.txt", "a.v2\n"), ("val.txt", "05.01\n"), ("test.txt", test)];
    let with = |test| folder(&[&[("captions.txt", table)], &lists(test)[..]].concat());
    let json = read_all(&with("a\n")).unwrap();
    assert_eq!(of(Split::Train, &json), words(&[("a.v2.jpg", &["Two"])]));
    assert_eq!(of(Split::Val, &json), words(&[("05.01.jpg", &["Three"])]));
    assert_eq!(of(Split::Test, &json), words(&[("a.jpg", &["One"])]));
    let want = "test.txt line 1: expected an image of captions.txt, got \"d\"";
    assert_eq!(refusal(&with("d\n")), want, "two images have this name");
}

/// They were in the order of the lines.
#[test]
fn captions_are_in_the_order_of_their_numbers() {
    let lists = [("train.txt", "a\n"), ("val.txt", "b\n"), ("test.txt", "c\n")];
    let bars = "image_name| comment_number| comment\na.jpg| 10| Last\nb.jpg| 0| B\na.jpg| 2| Second\na.jpg| 0   First\nc.jpg| 0| C\n";
    let tokens = "a.jpg#10\tLast\nb.jpg#0\tB\na.jpg#2\tSecond\na.jpg#0\tFirst\nc.jpg#0\tC\n";
    for (name, text) in [("results.csv", bars), ("x.token", tokens)] {
        let json = read_all(&folder(&[&[(name, text)], &lists[..]].concat())).unwrap();
        assert_eq!(json.images[0].captions, ["First", "Second", "Last"], "{name}");
    }
    let dir = folder(&[("results.csv", bars)]);
    let rows = caption_table(&dir.path().join("results.csv")).unwrap().unwrap();
    let rows: Vec<_> = rows.iter().map(|(line, _, caption)| (*line, &caption[..])).collect();
    assert_eq!(rows, [(5, "First"), (3, "B"), (4, "Second"), (2, "Last"), (6, "C")]);
}

/// A list of captions has one on each line: the second line became the next caption.
#[test]
fn a_caption_in_quotes_is_one_line() {
    let dir = folder(&[("captions.csv", "image,caption\na.jpg,\"A dog\r\n runs.\"\nb.jpg,Two\n")]);
    let rows = caption_table(&dir.path().join("captions.csv")).unwrap().unwrap();
    let rows: Vec<_> = rows.iter().map(|(line, _, caption)| (*line, &caption[..])).collect();
    assert_eq!(rows, [(2, "A dog runs."), (4, "Two")]);
}

#[test]
fn files_of_coco_are_splits() {
    let file = |id: i64, name: &str| {
        format!(
            r#"{{"info": {{}}, "images": [{{"id": {id}, "file_name": "{name}"}}], "annotations": [{{"image_id": {id}, "id": 7, "caption": "A car."}}]}}"#
        )
    };
    let [train, val] = [file(1, "a.jpg"), file(2, "b.jpg")];
    let files = [
        ("annotations/captions_train2014.json", &train[..]),
        ("annotations/captions_val2014.json", &val[..]),
    ];
    let dir = folder(&files);
    let want = "DIR: expected a list of the test split beside captions_train2014.json: test.txt or \
                Flickr_8k.testImages.txt, a file name on each line, got none";
    assert_eq!(refusal(&dir), want);
    let lists = [("train.txt", "a.jpg\n"), ("val.txt", "b.jpg\n"), ("test.txt", "c.jpg\n")];
    let test = file(3, "c.jpg");
    let more = [("annotations/captions_test2014.json", &test[..])];
    for files in [[&files[..], &more].concat(), [&files[..], &more, &lists].concat()] {
        let json = read_all(&folder(&files)).unwrap();
        assert_eq!(of(Split::Val, &json), words(&[("b.jpg", &["A car."])]));
        let train = json.images_of(Split::Train).next().unwrap();
        assert_eq!(train.filepath.as_deref(), Some("train2014"));
    }
    // A part of the validation split as a file of its own: each caption counted twice.
    let both = [&files[..], &[("annotations/captions_minival2014.json", &val[..])]].concat();
    let want = "annotations/captions_val2014.json annotations[0]: expected each image in one file, \
                got \"b.jpg\" also in captions_minival2014.json";
    assert_eq!(refusal(&folder(&both)), want);
}

#[test]
fn what_is_wrong_is_named() {
    let token = "a.jpg#0\tOne\nb.jpg#0\tTwo\nc.jpg#0\tThree\n";
    let lists = |train: &'static str| {
        vec![
            ("Flickr8k.token.txt", token),
            ("train.txt", train),
            ("val.txt", "b.jpg"),
            ("test.txt", "c.jpg"),
        ]
    };
    assert_eq!(
        refusal(&folder(&lists("x.jpg\n"))),
        "train.txt line 1: expected an image of Flickr8k.token.txt, got \"x.jpg\""
    );
    assert_eq!(
        refusal(&folder(&lists("a.jpg\nb.jpg\n"))),
        "val.txt line 1: expected each image once, got \"b.jpg\" again, first in train.txt line 2"
    );
    assert_eq!(
        refusal(&folder(&lists("a.jpg\n\n"))),
        "train.txt line 2: expected the file name of an image, got an empty line"
    );
    let mut two = lists("a.jpg");
    two.push(("captions.txt", "image,caption\n"));
    assert!(refusal(&folder(&two)).starts_with("DIR: expected captions in one form, got "));
    for (name, text, want) in [
        (
            "x.token",
            "a.jpg\tOne\n",
            "x.token line 1: expected name#number<TAB>caption, got \"a.jpg\\tOne\"",
        ),
        (
            "x.token",
            "a.jpg#x\tOne\n",
            "x.token line 1: expected name#number<TAB>caption, got \"a.jpg#x\\tOne\"",
        ),
        (
            "x.token",
            "../a.jpg#0\tOne\n",
            "x.token line 1: expected a path below the data folder, got \"../a.jpg\"",
        ),
        ("x.token", "a.jpg#0\t \n", "x.token line 1: expected a caption, got an empty one"),
        (
            "x.token",
            "a.jpg#0\tOne\na.jpg#1\tTwo\na.jpg#0\tThree\n",
            "x.token line 3: expected each caption once, got number 0 of \"a.jpg\" again",
        ),
        (
            "results.csv",
            "image_name| comment_number| comment\na.jpg| 4| One\na.jpg| 4   Two\n",
            "results.csv line 3: expected each caption once, got number 4 of \"a.jpg\" again",
        ),
        (
            "captions_val.json",
            "{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, {\"id\": 1, \"file_name\": \"b\"}], \"annotations\": []}",
            "captions_val.json images[1]: expected each id once, got 1",
        ),
        (
            "captions.txt",
            "a.jpg,One\n",
            "captions.txt line 1: expected image,caption, got \"a.jpg,One\"",
        ),
        (
            "captions.txt",
            "image,caption\na.jpg,One, two\n",
            "captions.txt line 2: expected image,caption (a caption with a comma in quotes), got 3 fields",
        ),
        (
            "results.csv",
            "image_name| comment_number| comment\na.jpg| One\n",
            "results.csv line 2: expected image_name| comment_number| comment, got 2 fields",
        ),
        (
            "captions_val.json",
            "{\"images\": [], \"annotations\": [{\"image_id\": 4, \"caption\": \"x\"}]}",
            "captions_val.json annotations[0]: expected an image_id of its images, got 4",
        ),
    ] {
        assert_eq!(refusal(&folder(&[(name, text)])), want);
    }
    let dir = folder(&[("notes.txt", "nothing")]);
    assert!(read(dir.path(), CaptionRule::All, &mut Manifest::default()).unwrap().is_none());
}
