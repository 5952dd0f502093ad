//! Malformed input. Each error is one line that names the place.

use std::io::Write;

use heed::EnvOpenOptions;
use heed::types::Bytes;
use lz4_flex::frame::FrameEncoder;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Writes values into a new environment.
pub(in crate::databases) fn environment(folder: &Path, values: &[(&str, &[u8])]) {
    fs::create_dir_all(folder).unwrap();
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 26);
    // SAFETY: nobody else has the folder open.
    #[allow(unsafe_code)]
    let env = unsafe { options.open(folder) }.unwrap();
    let mut transaction = env.write_txn().unwrap();
    let database = env.create_database::<Bytes, Bytes>(&mut transaction, None).unwrap();
    for (key, value) in values {
        database.put(&mut transaction, key.as_bytes(), value).unwrap();
    }
    transaction.commit().unwrap();
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(vec![]);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn packed(value: &Value) -> Vec<u8> {
    rmp_serde::to_vec(value).unwrap()
}

fn text(value: &Value) -> Vec<u8> {
    compressed(&packed(value))
}

/// The error of a refused sentence.
fn refused_text(value: &[u8]) -> String {
    one_line(Text::decode("sentence", value).unwrap_err())
}

fn refused_image(value: &[u8]) -> String {
    one_line(ImageValue::decode("image", value).unwrap_err())
}

fn one_line(error: itm_core::Error) -> String {
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn sentences_of_another_compression_type_or_shape() {
    let fine = json!({"input_ids": [7, 8], "img_fname": "a", "tree": null});
    assert_eq!(Text::decode("sentence", &text(&fine)).unwrap().pieces, [7, 8]);
    let what = "sentence: expected a sentence with `input_ids` and `img_fname`, got ";
    assert!(refused_text(&packed(&fine)).starts_with("sentence: expected an LZ4 frame, got "));
    let mut cut = text(&fine);
    cut.truncate(cut.len() - 6);
    assert!(refused_text(&cut).starts_with("sentence: expected an LZ4 frame, got "));
    for (value, want) in [
        (json!({"input_ids": [7]}), "missing field `img_fname`"),
        (json!({"input_ids": [-7], "img_fname": "a"}), "invalid value: integer `-7`"),
        (json!({"input_ids": "7", "img_fname": "a"}), "invalid type: string"),
        (json!([[7, 8], "a"]), "invalid type: sequence, expected a map"),
        (
            json!({"input_ids": [7], "img_fname": "a", "tree": {"node": [[[0]]], "attribute": [], "relation": []}}),
            "invalid type",
        ),
        (
            json!({"input_ids": [7], "img_fname": "a", "tree": {"node": []}}),
            "missing field `attribute`",
        ),
    ] {
        let line = refused_text(&text(&value));
        assert!(line.starts_with(what) && line.contains(want), "{line}");
    }
    let outside = json!({"input_ids": [7], "img_fname": "a", "tree": {"node": [{"ids": [1]}], "attribute": [], "relation": []}});
    assert_eq!(
        refused_text(&text(&outside)),
        "sentence: expected positions of phrases below 1, got 1"
    );
}

/// Values that claim four billion numbers, map entries or bytes: no memory is allocated for a claim.
#[test]
fn lengths_that_lie_cost_nothing() {
    let ids = b"\x81\xa9input_ids\xdd\xff\xff\xff\xff\x07";
    let map = b"\xdf\xff\xff\xff\xff\xa9input_ids\x91\x07";
    let name = b"\x82\xa9input_ids\x91\x07\xa9img_fname\xdb\xff\xff\xff\xffa";
    for value in [&ids[..], map, name] {
        assert!(refused_text(&compressed(value)).starts_with("sentence: expected a sentence"));
    }
    let data = b"\x81\xa8features\x84\xa2nd\xc3\xa4type\xa3<f2\xa5shape\x92\x01\x01\xa4data\xc6\xff\xff\xff\xff\x00";
    assert!(refused_image(data).starts_with("image: expected the arrays of an image, got "));
    let bomb = compressed(&vec![0; (1 << 26) + 1]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(refused_text(&bomb), "sentence: expected at most 67108864 bytes, got more");
}

/// An image as maps of arrays. The bytes of an array are a text here.
#[derive(serde::Serialize)]
struct Image {
    features: Stored,
    #[serde(skip_serializing_if = "Option::is_none")]
    norm_bb: Option<Stored>,
}

#[derive(Clone, serde::Serialize)]
struct Stored {
    nd: bool,
    r#type: &'static str,
    shape: Vec<usize>,
    data: String,
}

/// Zeros: their bytes are a valid text.
fn zeros(shape: &[usize]) -> Stored {
    let data = "\0".repeat(4 * shape.iter().product::<usize>());
    Stored { nd: true, r#type: "<f4", shape: shape.to_vec(), data }
}

fn stored(features: Stored, boxes: Option<Stored>) -> Vec<u8> {
    rmp_serde::to_vec_named(&Image { features, norm_bb: boxes }).unwrap()
}

#[test]
fn regions_of_another_type_or_shape() {
    let fine = ImageValue::decode("image", &stored(zeros(&[2, 3]), Some(zeros(&[2, 6])))).unwrap();
    assert_eq!((fine.rows(), fine.width), (2, 3));
    let boxes = || Some(zeros(&[2, 6]));
    let line = |features: Stored| refused_image(&stored(features, boxes()));
    assert_eq!(
        refused_image(&stored(zeros(&[2, 3]), None)),
        "image: expected an array `norm_bb`, got none"
    );
    assert_eq!(line(zeros(&[6])), "image features: expected rows of numbers, got shape [6]");
    assert_eq!(
        line(zeros(&[3, 2])),
        "image norm_bb: expected 3 rows of 6 numbers, got shape [2, 6]"
    );
    let other = |change: fn(&mut Stored)| {
        let mut features = zeros(&[2, 3]);
        change(&mut features);
        line(features)
    };
    assert_eq!(
        other(|f| f.r#type = ">f4"),
        "image features: expected numbers of type <f2, <f4 or <f8, got >f4"
    );
    assert_eq!(other(|f| f.nd = false), "image features: expected an array, got a single number");
    assert_eq!(
        other(|f| f.shape = vec![2, 4]),
        "image features: expected numbers of shape [2, 4], got 6 numbers"
    );
    assert!(other(|f| f.shape = vec![usize::MAX, usize::MAX]).ends_with("got 6 numbers"));
    assert!(other(|f| f.data.push('a')).contains("complete numbers of type <f4, got 25 bytes"));
    // 0x7f7f7f7f is a box far outside the picture.
    let mut outside = zeros(&[2, 6]);
    outside.data.replace_range(24..28, "\x7f\x7f\x7f\x7f");
    let line = refused_image(&stored(zeros(&[2, 3]), Some(outside)));
    assert!(line.starts_with("image norm_bb, region 1: expected x1 ≤ x2 and y1 ≤ y2"), "{line}");
    assert!(
        refused_image(b"PK\x03\x04 and no archive")
            .starts_with("image features: expected an NPZ archive")
    );
}

/// A text database with changed JSON files.
fn texts(
    change: impl Fn(&mut BTreeMap<&str, Value>),
) -> (tempfile::TempDir, itm_core::Result<TextDatabase>) {
    let folder = tempfile::tempdir().unwrap();
    let value = |ids: Value, image: &str| text(&json!({"input_ids": ids, "img_fname": image}));
    environment(folder.path(), &[("1", &value(json!([7, 8]), "a")), ("2", &value(json!([]), "b"))]);
    let mut files = BTreeMap::from([
        ("meta", json!({"CLS": 1, "SEP": 2, "MASK": 3, "UNK": 4, "v_range": [5, 9]})),
        ("id2len", json!({"1": 2, "2": 0})),
        ("txt2img", json!({"1": "a", "2": "b"})),
        ("img2txts", json!({"a": ["1"], "b": ["2"], "none": []})),
    ]);
    change(&mut files);
    for (name, content) in files {
        fs::write(folder.path().join(format!("{name}.json")), content.to_string()).unwrap();
    }
    let opened = TextDatabase::open(folder.path());
    (folder, opened)
}

/// The error of a refused database, with `T` for its folder.
fn line(folder: &tempfile::TempDir, error: itm_core::Error) -> String {
    one_line(error).replace(&format!("{}", folder.path().display()), "T")
}

#[test]
fn files_that_contradict_each_other() {
    let refused = |change: fn(&mut BTreeMap<&str, Value>)| {
        let (folder, opened) = texts(change);
        line(&folder, opened.unwrap_err())
    };
    let no_mask = refused(|f| f.get_mut("meta").unwrap()["MASK"] = Value::Null);
    assert!(
        no_mask
            .starts_with("T/meta.json: expected `CLS`, `SEP`, `MASK`, `UNK` and `v_range`, got ")
    );
    let order = refused(|f| f.get_mut("meta").unwrap()["v_range"] = json!([9, 9]));
    assert_eq!(order, "T/meta.json v_range: expected a first token below the last, got 9, 9");
    let image = refused(|f| f.get_mut("txt2img").unwrap()["2"] = json!("a"));
    assert_eq!(
        image,
        "T/img2txts.json: expected sentence `2` under image `a`, as in txt2img.json, got none"
    );
    let none = refused(|f| *f.get_mut("txt2img").unwrap() = json!({"1": "a"}));
    assert_eq!(none, "T/txt2img.json: expected the image of sentence `2`, got none");
    let negative = refused(|f| f.get_mut("id2len").unwrap()["1"] = json!(-1));
    assert!(
        negative.starts_with("T/id2len.json: expected lengths by sentence, got "),
        "{negative}"
    );
}

#[test]
fn sentences_that_are_not_what_the_files_say() {
    let (_, opened) = texts(|_| ());
    let read = opened.unwrap().read(None).unwrap();
    assert_eq!(
        (read.pieces, read.images),
        (vec![vec![7, 8], vec![]], vec!["a".into(), "b".into()])
    );

    let (folder, opened) = texts(|f| f.get_mut("id2len").unwrap()["1"] = json!(3));
    let refused = line(&folder, opened.unwrap().read(None).unwrap_err());
    assert_eq!(refused, "T `1`: expected pieces: 3, as in the JSON files, got 2");

    let (folder, opened) = texts(|f| {
        f.get_mut("id2len").unwrap()["9"] = json!(1);
        f.get_mut("txt2img").unwrap()["9"] = json!("a");
        f.get_mut("img2txts").unwrap()["a"] = json!(["1", "9"]);
    });
    let database = opened.unwrap();
    assert_eq!(
        line(&folder, database.read(None).unwrap_err()),
        "T `9`: expected a value, got none"
    );
    assert_eq!(
        line(&folder, database.protected("z").unwrap_err()),
        "T/img2txts.json: expected image `z`, got none"
    );
    assert!(database.meta().check(9).is_ok());
    let small = database.meta().check(8).unwrap_err();
    assert_eq!(one_line(small), "meta.json: expected tokens of a model with 8 tokens, got token 8");

    let (folder, opened) = texts(|f| *f.get_mut("id2len").unwrap() = json!({"1": 2}));
    let short = opened.unwrap().read(Some(1)).unwrap_err();
    assert_eq!(line(&folder, short), "T: expected a sentence of at most 1 pieces, got none");
}

#[test]
fn an_environment_that_is_missing_foreign_or_cut_short() {
    let folder = copy("text.db");
    let file = folder.path().join("data.mdb");
    let whole = fs::read(&file).unwrap();
    let refused = || line(&folder, TextDatabase::open(folder.path()).unwrap_err());
    fs::write(&file, &whole[..whole.len() - 4096]).unwrap();
    assert_eq!(refused(), "T/data.mdb: expected 12288 bytes, 3 pages, got 8192");
    for foreign in [vec![7; 12288], vec![], whole[..100].to_vec()] {
        fs::write(&file, foreign).unwrap();
        assert!(refused().starts_with("T/data.mdb: "), "{}", refused());
    }
    fs::remove_file(&file).unwrap();
    assert!(refused().starts_with("T/data.mdb: No such file"));
}

#[test]
fn region_counts_that_do_not_fit() {
    let folder = copy("images");
    let counts = folder.path().join("nbb_th0.2_max100_min10.json");
    let refused = |content: Value, name: &str| {
        fs::write(&counts, content.to_string()).unwrap();
        let opened = ImageDatabase::open(folder.path(), Detections::default()).unwrap();
        line(&folder, opened.image(name).unwrap_err())
    };
    let at = "T/feat_th0.2_max100_min10 `a.npz`: expected";
    assert_eq!(
        refused(json!({"a.npz": 0}), "a.npz"),
        format!("{at} a region count above 0, got 0")
    );
    assert_eq!(refused(json!({"a.npz": 5}), "a.npz"), format!("{at} 5 regions, as counted, got 4"));
    assert_eq!(refused(json!({"b.npz": 1}), "a.npz"), format!("{at} a region count, got none"));
    assert!(refused(json!({"z.npz": 1}), "z.npz").ends_with("`z.npz`: expected a value, got none"));
    let none = ImageDatabase::open(folder.path(), Detections::Fixed(36)).unwrap_err();
    assert_eq!(
        line(&folder, none),
        "T: expected a folder `feat_numbb36` or `feat_numbb36_compressed`, got neither"
    );
}

proptest! {
    /// Changed bytes are refused or read, and never panic.
    #[test]
    fn changed_values_do_not_panic(at in 0usize..10_000, byte: u8, cut in 0usize..10_000) {
        let sentence = text(&json!({"input_ids": [7, 8], "img_fname": "a", "tree": {"node": [{"ids": [1]}], "attribute": [], "relation": []}}));
        let image = stored(zeros(&[2, 3]), Some(zeros(&[2, 6])));
        for mut value in [sentence, packed(&json!({"input_ids": [7]})), image] {
            let n = value.len();
            value[at % n] = byte;
            value.truncate(1 + cut % n);
            let _ = Text::decode("sentence", &value);
            let _ = Text::decode("sentence", &compressed(&value));
            let _ = ImageValue::decode("image", &value);
        }
    }
}
