use std::fs;

use proptest::prelude::*;

use super::*;
use crate::Pairs;
use crate::data::Repeats;
use crate::data::tests::{Folder, lines, npy, npy_of};

fn load(dir: impl AsRef<Path>, options: &LoadOptions) -> Result<Dataset> {
    load_precomp(dir, options).map(|loaded| loaded.dataset)
}

fn load_all(folder: &Folder) -> Result<Loaded> {
    load_precomp(folder.dir.path(), &LoadOptions::default())
}

/// The error line without the folder's name.
fn error(folder: &Folder) -> String {
    let line = load_all(folder).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line.replace(&format!("{}/", folder.dir.path().display()), "")
}

#[test]
fn a_whole_folder_loads() {
    let folder = Folder::new();
    let loaded = load_all(&folder).unwrap();
    let data = &loaded.dataset;
    assert_eq!(data.name, "dogs");
    let counts = [&data.train, &data.val, &data.test].map(|p| (p.images.len(), p.captions.len()));
    assert_eq!(counts, [(6, 30), (2, 10), (3, 15)]);
    assert_eq!(data.train.images[4], "4.jpg");
    assert_eq!(data.train.features.row(4), [400.0, 401.0, 402.0]);
    assert_eq!(data.train.captions[23], "A dog number 4 , take 3 .");
    assert_eq!(data.train.pairs, Pairs::uniform(6, 5));
    assert_eq!(data.test.features.row(2), [1000.0, 1001.0, 1002.0]);
    assert_eq!(loaded.images.image_path("8.jpg"), Some(folder.path("images").join("8.jpg")));
    assert_eq!(loaded.images.image_path("4.jpg"), None); // an extra image has no picture
    assert!(loaded.notes.iter().any(|n| n.contains("train_extra: 2 images are not in the JSON")));
    assert_eq!(loaded.manifest.files.len(), 13);
}

#[test]
fn the_hash_follows_every_file_and_not_the_place() {
    let (folder, other) = (Folder::new(), Folder::new());
    let hash = |f: &Folder| load_all(f).unwrap().dataset.sha256;
    let before = hash(&folder);
    assert_eq!(before, hash(&other));
    other.change("precomp/val_caps.txt", "A dog", "a dog"); // the same words
    assert_ne!(before, hash(&other));
    other.change("precomp/val_caps.txt", "a dog", "A dog");
    assert_eq!(before, hash(&other));
    other.remove("precomp/train_extra_ims.npy");
    assert_ne!(before, hash(&other));
}

#[test]
fn repeated_images_give_the_same_data() {
    let folder = Folder::new();
    let want = load_all(&folder).unwrap().dataset;
    let rows = (0..15).flat_map(|row| [0., 1., 2.].map(|c| (100 * (8 + row / 5)) as f32 + c));
    folder.write("precomp/test_ims.npy", npy(&[15, 3], rows.clone()));
    let ids = (0..15).map(|row| format!("{}.jpg", 8 + row / 5));
    folder.write("precomp/test_ids.txt", lines(ids.clone()));
    let loaded = load_all(&folder).unwrap();
    assert_eq!(loaded.dataset.test.features, want.test.features);
    assert_eq!(loaded.dataset.test.images, want.test.images);
    assert_eq!(loaded.dataset.test.pairs, want.test.pairs);
    assert!(loaded.notes.iter().any(|n| n.contains("images repeated 5 times (verified)")));

    folder.write("precomp/test_ids.txt", lines(ids.map(|id| id.replace("10", "9"))));
    let want = "precomp/test_ids.txt line 11: expected each image once, got a second 9.jpg";
    assert_eq!(error(&folder), want);
    let ids = (0..15).map(|row| format!("{}.jpg", 8 + (row + 1) / 5));
    folder.write("precomp/test_ids.txt", lines(ids));
    let want = "precomp/test_ids.txt line 5: expected \"8.jpg\" again, got \"9.jpg\"";
    assert_eq!(error(&folder), want);

    for changed in [1, 4, 6, 9, 14] {
        let value = |(i, v)| if i == 3 * changed + 1 { -1.0 } else { v };
        folder.write("precomp/test_ims.npy", npy(&[15, 3], rows.clone().enumerate().map(value)));
        let first = changed - changed % 5;
        let want = format!(
            "precomp/test_ims.npy row {changed}: expected row {first} again (15 rows and captions: \
             each image 5 times; one caption per image needs a target with protocol = \"full\"), got other values"
        );
        assert_eq!(error(&folder), want);
    }
}

#[test]
fn regions_are_averaged_and_bytes_scaled() {
    let folder = Folder::new();
    for (name, first, count) in
        [("train", 0, 4), ("train_extra", 4, 2), ("val", 6, 2), ("test", 8, 3)]
    {
        // Two regions of 3: image, 0, 1 and image + 2, 4, 7; scale 0.5, 1, 2.
        let values = (first..first + count).flat_map(|i| [i, 0, 1, i + 2, 4, 7]);
        folder.write(
            &format!("precomp/{name}_ims.npy"),
            npy_of("|i1", &[count as usize, 2, 3], values),
        );
    }
    assert!(error(&folder).starts_with("precomp/ims_scale.npy: No such file"));
    folder.write("precomp/ims_scale.npy", npy(&[3], [0.5, 1.0, 2.0]));
    let loaded = load_all(&folder).unwrap();
    assert_eq!(loaded.dataset.test.features.row(2), [5.5, 2.0, 8.0]); // (10 + 12) / 2 · 0.5, …
    assert!(
        loaded.notes.iter().any(|n| n.contains("i8 [3, 2, 3]") && n.contains("means over regions"))
    );
    assert!(loaded.manifest.files.iter().any(|f| f.name == "precomp/ims_scale.npy"));
}

#[test]
fn features_alone_load_under_scans_names() {
    let folder = Folder::new();
    folder.remove("dataset_dogs.json");
    for name in ["train", "train_extra", "val", "test"] {
        folder.remove(&format!("precomp/{name}_ids.txt"));
    }
    for end in ["ims.npy", "caps.txt"] {
        let file = |name: &str| folder.path(&format!("precomp/{name}_{end}"));
        fs::rename(file("val"), file("dev")).unwrap();
        fs::copy(file("test"), file("testall")).unwrap();
    }
    fs::rename(folder.path("precomp"), folder.path("f30k_precomp")).unwrap();
    let loaded = load_all(&folder).unwrap();
    assert_eq!(loaded.dataset.val.images, ["dev/0", "dev/1"]);
    assert!(loaded.notes[0].starts_with("no dataset_*.json"));
    let options = LoadOptions { test: TestSet::TestAll, ..Default::default() };
    assert_eq!(load(folder.dir.path(), &options).unwrap().test.images[2], "testall/2");
    // The feature folder can be given itself, too.
    let data = load(folder.path("f30k_precomp"), &LoadOptions::default()).unwrap();
    assert_eq!(data.name, "f30k_precomp");
    fs::create_dir(folder.path("coco_precomp")).unwrap();
    assert!(error(&folder).contains("expected one folder *_precomp, got"));
}

#[test]
fn ids_may_be_numbers_or_missing() {
    let folder = Folder::new();
    let want = load_all(&folder).unwrap().dataset;
    folder.write("precomp/test_ids.txt", "8\n9\n10\n"); // imgid
    assert_eq!(load_all(&folder).unwrap().dataset.test.images, want.test.images);
    folder.remove("precomp/test_ids.txt");
    assert_eq!(load_all(&folder).unwrap().dataset.test.images, want.test.images);
    folder.remove("precomp/train_extra_ids.txt"); // not in the JSON, so their order is unknown
    let images = load_all(&folder).unwrap().dataset.train.images;
    assert_eq!(images[3..], ["3.jpg", "train_extra/0", "train_extra/1"]);
    folder.change("precomp/test_caps.txt", "number 9 , take 1", "number 9 , take 2");
    let want =
        "precomp/test_caps.txt line 7: expected \"A dog number 9 , take 1 .\" (caption 1 of 9.jpg)";
    assert!(error(&folder).starts_with(want), "{}", error(&folder));
}

#[test]
fn each_fault_has_its_line() {
    type Fault = fn(&Folder);
    let faults: [(Fault, &str); 17] = [
        (|f| f.remove("precomp/test_ims.npy"), "precomp/test_ims.npy: No such file"),
        (|f| f.remove("precomp/val_caps.txt"), "precomp/val_caps.txt: No such file"),
        (
            |f| f.remove("precomp/val_ims.npy"),
            "precomp: expected val_ims.npy or dev_ims.npy, got neither",
        ),
        (
            |f| f.change("precomp/val_caps.txt", "A dog number 6 , take 2 .\n", ""),
            "precomp/val_caps.txt: expected 10 lines (5 for each of the 2 rows of precomp/val_ims.npy), \
             got 9 lines; line 3 should be \"A dog number 6 , take 2 .\"",
        ),
        (
            |f| f.change("precomp/val_caps.txt", "A dog number 6 , take 2 .", ""),
            "precomp/val_caps.txt line 3: expected \"A dog number 6 , take 2 .\" (caption 2 of 6.jpg), got \"\"",
        ),
        (
            |f| f.change("precomp/val_caps.txt", "6 , take 2", "6 , take 9"),
            "precomp/val_caps.txt line 3: expected \"A dog number 6 , take 2 .\" (caption 2 of 6.jpg), \
             got \"A dog number 6 , take 9 .\"",
        ),
        (
            |f| f.change("precomp/test_ids.txt", "9.jpg", "7.jpg"),
            "precomp/test_ids.txt, image 1: expected an image of the test split, got \"7.jpg\" of val",
        ),
        (
            |f| f.change("precomp/train_extra_ids.txt", "5.jpg", "9.jpg"),
            "precomp/train_extra_ids.txt, image 1: expected an image of the train split, got \"9.jpg\" of test",
        ),
        (
            |f| f.change("precomp/train_ids.txt", "3.jpg", "x.jpg"),
            "precomp/train_ids.txt, image 3: expected an image of the JSON, got \"x.jpg\"",
        ),
        (
            |f| f.change("precomp/train_ids.txt", "3.jpg\n", ""),
            "precomp/train_ids.txt: expected 4 lines, one per image (or 20), got 3 lines",
        ),
        (
            |f| f.write("precomp/test_ims.npy", npy(&[3, 2], [1.0; 6])),
            "precomp features of test: expected the width of training, 3, got 2",
        ),
        (
            |f| f.write("precomp/train_extra_ims.npy", npy(&[2, 2], [1.0; 4])),
            "precomp features of train_extra: expected the width of train, 3, got 2",
        ),
        (
            |f| f.write("precomp/test_ims.npy", npy(&[9], [1.0; 9])),
            "precomp/test_ims.npy: expected an array of rank 2 or 3, got rank 1 (shape [9])",
        ),
        (
            |f| f.write("precomp/test_ims.npy", npy_of("<i8", &[3, 1], [0; 24])),
            "precomp/test_ims.npy: expected features of f16, f32, f64, i8 or u8, got i64",
        ),
        (
            |f| f.write("precomp/test_ims.npy", npy(&[3, 2], [1.0, 2.0, 3.0, f32::NAN, 5.0, 6.0])),
            "precomp/test_ims.npy row 1, column 1: expected a finite number, got NaN",
        ),
        (
            |f| f.change("dataset_dogs.json", "{\"raw\":\"A dog number 8 , take 4 .\"}", "3"),
            "dataset_dogs.json: expected Karpathy's JSON (images[].sentences[].raw), got entry 6: entry 4",
        ),
        (|f| f.write("dataset_cats.json", "{}"), "expected one dataset_*.json, got"),
    ];
    for (fault, want) in faults {
        let folder = Folder::new();
        fault(&folder);
        let line = error(&folder);
        assert!(line.contains(want), "{line}\n{want}");
    }
    let empty = tempfile::tempdir().unwrap();
    let line = load(empty.path(), &LoadOptions::default()).unwrap_err().to_string();
    assert!(
        line.ends_with(
            "precomp/train_ims.npy, train_ims.npy or a folder *_precomp, got none of them"
        )
    );
    assert!(load(empty.path().join("no"), &LoadOptions::default()).is_err());
}

#[test]
fn five_captions_are_insisted_on() {
    let folder = Folder::new();
    let options = |n| LoadOptions { captions: CaptionRule::First(n), ..Default::default() };
    let line = load(folder.dir.path(), &options(6)).unwrap_err().to_string();
    assert!(
        line.ends_with("images[0] (\"0.jpg\").sentences: expected 6 captions, got 5"),
        "{line}"
    );
    assert!(load(folder.dir.path(), &options(0)).is_err());
    folder.remove("dataset_dogs.json");
    let line = load(folder.dir.path(), &options(3)).unwrap_err().to_string();
    assert!(line.contains("train_caps.txt: expected 12 lines (3 for each of the 4 rows"), "{line}");
    let split = |captions| {
        let (folder, rule) = (folder.path("precomp"), CaptionRule::First(captions));
        PrecompSplit::open_hashed(&folder, &folder, "test", rule, &mut Manifest::default())
    };
    // One caption per image: there are as many rows as lines, but nothing is repeated.
    let one = split(5).unwrap();
    assert_eq!((one.images(), one.repeats, one.row_of(2)), (3, None, 2));
    folder.write("precomp/test_caps.txt", "a\nb\nc\n");
    let one = split(1).unwrap();
    assert_eq!((one.images(), one.repeats), (3, None));
}

/// Two rows, one of them with three captions: the lines of `val_of.txt` are rows, or names.
#[test]
fn a_file_may_say_whose_each_caption_is() {
    let folder = Folder::new();
    folder.remove("dataset_dogs.json");
    folder.write("precomp/val_caps.txt", "b\na\nb too\nb again\n");
    let ids = std::fs::read_to_string(folder.path("precomp/val_ids.txt")).unwrap();
    let ids: Vec<_> = ids.lines().collect();
    let named = format!("{1}\n{0}\n{1}\n{1}\n", ids[0], ids[1]);
    let all = LoadOptions { captions: CaptionRule::All, ..Default::default() };
    for of in ["1\n0\n1\n1\n", &named] {
        folder.write("precomp/val_of.txt", of);
        let val = load(folder.dir.path(), &all).unwrap().val;
        assert_eq!(val.pairs.image_of_text(), [1, 0, 1, 1]);
        assert_eq!((val.captions[1].as_str(), val.images.len()), ("a", 2));
    }
    let line = load(folder.dir.path(), &LoadOptions::default()).unwrap_err().to_string();
    assert!(line.ends_with("val_of.txt, image 0: expected 5 captions, got 1"), "{line}");
    for (of, want) in [
        (
            "1\n0\n1\n2\n",
            "val_of.txt line 4: expected a row below 2, or a name of the ids, got \"2\"",
        ),
        ("1\n0\n1\n", "val_of.txt: expected 4 lines, one for each caption, got 3 lines"),
        ("1\n1\n1\n1\n", "val_of.txt, image 0: expected a caption, got 0"),
    ] {
        folder.write("precomp/val_of.txt", of);
        let line = load(folder.dir.path(), &all).unwrap_err().to_string();
        assert!(line.ends_with(want), "{line}");
    }
    // Numbers as names: in the order of the rows they say the same.
    folder.write("precomp/val_of.txt", "1\n0\n1\n1\n");
    folder.write("precomp/val_ids.txt", "0\n1\n");
    let val = load(folder.dir.path(), &all).unwrap().val;
    assert_eq!(val.pairs.image_of_text(), [1, 0, 1, 1]);
    folder.write("precomp/val_ids.txt", "1\n0\n");
    let line = load(folder.dir.path(), &all).unwrap_err().to_string();
    let want =
        "val_of.txt line 1: expected a row or a name, not both: row 1 has another name, got \"1\"";
    assert!(line.ends_with(want), "{line}");
}

/// One caption per image, three, and five of which every row is stored five times, exactly or up to rounding.
#[test]
fn the_rows_say_how_many_captions_an_image_has() {
    let folder = Folder::new();
    let open = |rule| {
        let (dir, mut manifest) = (folder.dir.path(), Manifest::default());
        PrecompSplit::open_hashed(dir, &folder.path("precomp"), "test", rule, &mut manifest)
    };
    folder.write("precomp/test_caps.txt", "a\nb\nc\n");
    let split = open(CaptionRule::All).unwrap();
    assert_eq!((split.images(), split.repeats, split.pairs.texts()), (3, None, 3));
    let line = open(CaptionRule::First(3)).unwrap_err().to_string();
    assert!(
        line.contains("one caption per image needs a target with protocol = \"full\""),
        "{line}"
    );
    folder.write("precomp/test_caps.txt", "a\nb\nc\n".repeat(3));
    assert_eq!(open(CaptionRule::All).unwrap().pairs.captions_per_image(), Some(3));
    folder.write("precomp/test_caps.txt", "a\nb\nc\nd\n");
    let line = open(CaptionRule::All).unwrap_err().to_string();
    assert!(line.contains("for each of the 3 rows of ") && line.ends_with("got 4 lines"), "{line}");
    folder.write("precomp/test_caps.txt", "a\n\nc\n\n");
    let line = open(CaptionRule::All).unwrap_err().to_string();
    assert!(line.ends_with("got 4 lines (line 2 is empty)"), "{line}");
    folder.write("precomp/test_caps.txt", "a\nb\n\nd\n\nf\n");
    let described = open(CaptionRule::All).unwrap().describe();
    assert!(described.contains("3 images, 6 captions (line 3 is empty); "), "{described}");
    folder.remove("precomp/test_ids.txt");
    folder.write("precomp/test_caps.txt", "a\nb\nc\nd\ne\n".repeat(2));
    for (noise, exact) in [(0.0, true), (1e-3, false)] {
        let row = |at: usize| [7.0 + noise * (at % 5) as f32, (at / 5) as f32];
        folder.write("precomp/test_ims.npy", npy(&[10, 2], (0..10).flat_map(row)));
        for rule in [CaptionRule::All, CaptionRule::First(5)] {
            let split = open(rule).unwrap();
            let repeats = Some(Repeats { every: 5, exact });
            assert_eq!((split.repeats, split.images(), split.row_of(1)), (repeats, 2, 5));
        }
    }
    folder.write("precomp/test_ims.npy", npy(&[10, 2], (0..20).map(|v| v as f32)));
    assert_eq!(open(CaptionRule::All).unwrap().images(), 10);
    assert!(open(CaptionRule::First(5)).is_err());
}

/// Without a JSON, only the names show that a test image is in training.
#[test]
fn an_image_of_two_splits_is_refused() {
    let folder = Folder::new();
    folder.remove("dataset_dogs.json");
    folder.change("precomp/train_extra_ids.txt", "5.jpg", "9.jpg");
    let line = error(&folder);
    assert!(
        line.ends_with(", test split: expected no image of the train split, got 1, first 9.jpg"),
        "{line}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn changed_files_give_an_answer(
        which in 0..5usize, at in 0..400usize, byte: u8, cut in 0..2000usize,
    ) {
        let folder = Folder::new();
        let name = ["dataset_dogs.json", "precomp/train_ims.npy", "precomp/val_ids.txt",
            "precomp/test_caps.txt", "precomp/test_ims.npy"][which];
        let mut bytes = fs::read(folder.path(name)).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        folder.write(name, &bytes);
        let _ = load_all(&folder);
        bytes.truncate(cut % bytes.len());
        folder.write(name, &bytes);
        // A text without its last line end is still whole.
        prop_assert!(load_all(&folder).is_err() || name.ends_with(".txt"));
    }
}
