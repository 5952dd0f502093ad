//! Goldens of `tests/reference/uniter_databases.py`, which other libraries wrote, and malformed values and files.

pub(super) mod malformed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::*;
use crate::phrases::Phrases;

/// The contents that the reference program wrote.
#[derive(Deserialize)]
struct Expected {
    images: BTreeMap<String, ExpectedImage>,
    width: usize,
}

#[derive(Deserialize)]
struct ExpectedImage {
    count: usize,
    features: Vec<f32>,
    boxes: Vec<f32>,
    conf: Vec<f32>,
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/databases").join(name)
}

/// A copy of a golden, for tests that change it.
fn copy(name: &str) -> tempfile::TempDir {
    fn all(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if from.is_dir() {
                all(&from, &to);
            } else {
                fs::copy(from, to).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    all(&golden(name), folder.path());
    folder
}

fn expected() -> Expected {
    serde_json::from_slice(&fs::read(golden("expected.json")).unwrap()).unwrap()
}

/// The lists are compared in one pass: sentence by sentence, this would take minutes.
#[test]
fn one_image_may_have_any_number_of_sentences() {
    let folder = copy("text.db");
    let ids: Vec<String> = (0..200_000).map(|id| format!("sentence {id}")).collect();
    let write = |name: &str, value: serde_json::Value| {
        fs::write(folder.path().join(name), value.to_string()).unwrap();
    };
    let each =
        |value: serde_json::Value| ids.iter().map(|id| (id.clone(), value.clone())).collect();
    write("id2len.json", serde_json::Value::Object(each(5.into())));
    write("txt2img.json", serde_json::Value::Object(each("a.npz".into())));
    write("img2txts.json", serde_json::json!({ "a.npz": ids }));
    TextDatabase::open(folder.path()).unwrap();
    write("img2txts.json", serde_json::json!({ "a.npz": ids[1..] }));
    let line = TextDatabase::open(folder.path()).unwrap_err().to_string();
    assert!(line.contains("expected sentence `sentence 0` under image `a.npz`"), "{line}");
}

// Trap 24
#[test]
fn golden_sentences_have_the_order_of_the_file() {
    let folder = copy("text.db");
    let database = TextDatabase::open(folder.path()).unwrap();
    let all = database.read(None).unwrap();
    assert_eq!(all.ids, ["30", "4", "7", "1"]);
    assert_eq!(all.pieces[0], [110, 111, 112, 113, 114]);
    assert_eq!(all.pieces[2], (200..261).collect::<Vec<_>>());
    assert_eq!(all.images, ["b.npz", "a.npz"]);
    assert_eq!(all.pairs.image_of_text(), [0, 1, 0, 1]);
    let phrases = Phrases {
        node: vec![vec![1], vec![3, 4]],
        attribute: vec![vec![0]],
        relation: vec![vec![2]],
    };
    assert_eq!(all.phrases[0], Some(phrases));
    assert_eq!((&all.phrases[1], &all.phrases[2]), (&None, &None));
    let meta = Meta { cls: 101, sep: 102, mask: 103, unk: 100, words: 106..300 };
    assert_eq!(database.meta(), &meta);
    assert_eq!(meta.around(&[7]), [101, 7, 102]);
    assert!(!folder.path().join("lock.mdb").exists(), "a database is only read");
}

// Trap 15
#[test]
fn long_sentences_do_not_train_and_protect_all_the_same() {
    let folder = copy("text.db");
    let database = TextDatabase::open(folder.path()).unwrap();
    let train = database.read(Some(LONGEST_IN_TRAINING)).unwrap();
    assert_eq!(
        (&train.ids[..], train.pairs.image_of_text()),
        (&["30", "4", "1"].map(String::from)[..], &[0, 1, 1][..])
    );
    let told = database.protected("b.npz").unwrap();
    assert!([110, 200, 260].into_iter().all(|piece| told.contains(piece)));
    assert!(!told.contains(120), "a piece of another image");
    assert!(database.read(Some(61)).unwrap().ids.contains(&"7".to_owned()));
}

/// Arrays in MessagePack with binary and with string keys, and archives with and without compression.
#[test]
fn golden_regions_of_every_layout() {
    let Expected { images, width } = expected();
    for folder in ["images", "images/zipped"].map(copy) {
        let database = ImageDatabase::open(folder.path(), Detections::default()).unwrap();
        assert_eq!(database.names().unwrap(), ["b.npz", "a.npz", "c.npz"]);
        for (name, want) in &images {
            let got = database.image(name).unwrap();
            assert_eq!((got.rows(), got.width), (want.count, width), "{name}");
            assert_eq!(got.features, want.features[..want.count * width]);
            assert_eq!(got.boxes.as_flattened(), &want.boxes[..want.count * 6]);
            assert_eq!(got.confidences.unwrap(), want.conf[..want.count]);
        }
    }
}

/// By hand: confidences 1, 1/2, 1/3 (and 1/4) of three images with 4, 3 and 2 regions.
#[test]
fn without_counts_the_confidences_decide() {
    let folder = copy("images/unfiltered");
    let counts = |threshold, most, least| {
        let detections = Detections::Confident { threshold, most, least };
        let database = ImageDatabase::open(folder.path(), detections).unwrap();
        assert_eq!(database.names().unwrap(), ["b.npz", "a.npz", "c.npz"]);
        ["a.npz", "b.npz", "c.npz"].map(|name| database.image(name).unwrap().rows())
    };
    assert_eq!(counts(0.3, 100, 1), [3, 3, 2]);
    assert_eq!(counts(0.3, 2, 1), [2, 2, 2]);
    assert_eq!(counts(0.5, 100, 1), [1, 1, 1], "equal is not above");
    assert_eq!(counts(0.5, 100, 3), [3, 3, 2], "no more than there are");
}

#[test]
fn fixed_counts_have_a_folder_of_their_own() {
    let folder = copy("images");
    let feat = folder.path().join("feat_th0.2_max100_min10");
    fs::rename(feat, folder.path().join("feat_numbb2")).unwrap();
    let database = ImageDatabase::open(folder.path(), Detections::Fixed(2)).unwrap();
    let rows = ["a.npz", "b.npz", "c.npz"].map(|name| database.image(name).unwrap().rows());
    assert_eq!(rows, [2, 2, 2]);
}

/// The seventh number is the product of the two before it.
#[cfg(feature = "burn")]
#[test]
fn a_batch_has_seven_numbers_a_box() {
    let (folder, Expected { images, width }) = (copy("images"), expected());
    let database = ImageDatabase::open(folder.path(), Detections::default()).unwrap();
    let batch = database.batch(&["c.npz", "a.npz"]).unwrap();
    assert_eq!((&batch.counts[..], batch.width), (&[1, 2][..], width));
    let [c, a] = ["c.npz", "a.npz"].map(|name| &images[name]);
    let features = [&c.features[..width], &a.features[..2 * width]].concat();
    let rows = [&c.boxes[..6], &a.boxes[..6], &a.boxes[6..12]];
    let boxes = rows.iter().flat_map(|six| [six, &[six[4] * six[5]][..]].concat()).collect();
    let want = crate::model::RegionBatch::new(width, vec![1, 2], features, boxes).unwrap();
    assert_eq!(batch, want);
}
