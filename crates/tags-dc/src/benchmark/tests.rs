use std::path::PathBuf;

use super::*;
use crate::benchmark::Measure::{Accuracy, Group, Image, Text};

/// Reads files of these names and texts.
fn read(format: Format, files: &[(&str, &str)]) -> Result<Benchmark> {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, text): &(&str, &str)| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let paths: Vec<PathBuf> = files.iter().map(write).collect();
    let found = Benchmark::read(format, &paths, 0);
    found.map_err(|e| {
        let line = e.to_string().replace(&format!("{}/", folder.path().display()), "");
        Error::invalid("", "", line)
    })
}

/// What the error says after the folder.
fn refused(format: Format, file: &str, text: &str) -> String {
    read(format, &[(file, text)]).unwrap_err().to_string()
}

const OBJECTS: &str = r#"{
    "0": {"filename": "1.jpg", "caption": "A dog  on grass.", "negative_caption": "A cat on grass."},
    "10": {"filename": "1.jpg", "caption": "A dog on grass.", "negative_caption": "A cow on grass."},
    "2": {"filename": "2.jpg", "caption": "Two cups.", "negative_caption": "Two cups and a fork."}
}"#;
const RELATIONS: &str = r#"{"0": {"filename": "2.jpg", "caption": "A cup on a table.", "negative_caption": "A cup under a table."}}"#;

#[test]
fn sugarcrepe_is_read() {
    let files = [("swap_obj.json", OBJECTS), ("replace_rel.json", RELATIONS)];
    let all = read(Format::Sugarcrepe, &files).unwrap();
    let names: Vec<&str> = all.pictures.iter().map(|picture| &picture.name[..]).collect();
    assert_eq!(names, ["1.jpg", "2.jpg"]);
    assert_eq!(all.captions[..3], ["A dog on grass.", "A cat on grass.", "A cow on grass."]);
    let sorts: Vec<_> = all.questions.iter().map(|q| (q.category, &q.subset[..])).collect();
    let (object, relation) = ((Category::Object, "swap_obj"), (Category::Relation, "replace_rel"));
    assert_eq!(sorts, [object, object, object, relation]);
    // Entries "0", "10", "2": the caption that two entries share is scored once with its picture.
    assert_eq!(all.pairs(), [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5), (1, 6)]);
}

/// By hand. Right: A dog over A cat; A dog and A cow tie; Two cups below Two cups and a fork; the relation is right.
/// Image 1 has one of two, image 2 one of two.
#[test]
fn golden_shares_of_sugarcrepe() {
    let files = [("swap_obj.json", OBJECTS), ("replace_rel.json", RELATIONS)];
    let all = read(Format::Sugarcrepe, &files).unwrap();
    let scores = [0.9, 0.1, 0.9, 0.3, 0.4, 0.8, -0.8];
    let lines = all.judge(|_, caption| scores[caption]).unwrap();
    let found: Vec<_> = lines
        .iter()
        .map(|line| {
            (line.category, line.subset.as_deref(), line.right.value, line.right.of, line.ties)
        })
        .collect();
    let (object, relation) = (Some(Category::Object), Some(Category::Relation));
    assert_eq!(
        found,
        [
            (None, None, 0.5, 4, 1),
            (object, None, 1.0 / 3.0, 3, 1),
            (object, Some("swap_obj"), 1.0 / 3.0, 3, 1),
            (relation, None, 1.0, 1, 0),
            (relation, Some("replace_rel"), 1.0, 1, 0),
        ]
    );
    assert!(lines.iter().all(|line| line.measure == Accuracy && line.chance == 0.5));
    // Both images have one of two: every resample has one half.
    assert_eq!(lines[0].right.ci95, [0.5, 0.5]);
    let error = all.judge(|_, caption| [f64::NAN, 0.0][caption.min(1)]).unwrap_err().to_string();
    let want = "the score of \"1.jpg\" and \"A dog on grass.\": expected a finite number, got NaN";
    assert_eq!(error, want);
}

const VG: &str = r#"[
    {"image_id": "7", "image_path": "7.jpg", "bbox_x": 4, "bbox_y": 5, "bbox_w": 30, "bbox_h": 20, "relation_name": "on",
     "true_caption": "the cup is on the table", "false_caption": "the table is on the cup"},
    {"image_id": "7", "image_path": "7.jpg", "bbox_x": 0, "bbox_y": 5, "bbox_w": 30, "bbox_h": 20, "relation_name": "behind",
     "true_caption": "the dog is behind the man", "false_caption": "the man is behind the dog"}
]"#;

#[test]
fn aro_is_read_with_the_boxes() {
    let all = read(Format::Aro, &[("visual_genome_relation.json", VG)]).unwrap();
    assert_eq!(all.pictures[0].name, "7_4_5_30_20.jpg");
    assert_eq!((&all.pictures[1].file[..], all.pictures[1].part), ("7.jpg", Some([0, 5, 30, 20])));
    assert_eq!(
        (all.questions[1].category, &all.questions[1].subset[..]),
        (Category::Relation, "behind")
    );
    // Both parts are one image.
    let lines =
        all.judge(|picture, caption| f64::from(u8::from(picture == 0 && caption == 0))).unwrap();
    assert_eq!((lines[0].right.value, lines[0].right.ci95, lines[0].ties), (0.5, [0.5, 0.5], 1));
    let attributes =
        VG.replace("\"relation_name\": \"on\"", "\"attributes\": [\"white\", \"black\"]");
    let all = read(Format::Aro, &[("visual_genome_attribution.json", &attributes)]).unwrap();
    assert_eq!(
        (all.questions[0].category, &all.questions[0].subset[..]),
        (Category::Attribute, "white_black")
    );
}

#[test]
fn orders_are_drawn_from_captions() {
    let text = r#"[{"image": "val2014/9.jpg", "caption": ["A brown dog jumps over a small white log.", "Dog."]}]"#;
    let all = read(Format::Order, &[("coco_karpathy_test.json", text)]).unwrap();
    assert_eq!((all.questions.len(), all.left_out), (1, 1), "one word has no other order");
    let Ask::Caption { captions, .. } = &all.questions[0].ask else { panic!("one picture") };
    assert_eq!(captions.len(), 5);
    assert_eq!(all.captions[0], "a brown dog jumps over a small white log");
    let lines = all.judge(|_, caption| -(caption as f64)).unwrap();
    assert_eq!((lines[0].chance, lines[0].right.value), (0.2, 1.0));
    assert_eq!(lines[1].category, Some(Category::Order));
    let again = read(Format::Order, &[("coco_karpathy_test.json", text)]).unwrap();
    assert_eq!(again, all, "the seed decides");
}

#[test]
fn valse_is_read_where_annotators_agree() {
    let entry = |votes: u8| {
        format!(
            r#"{{"dataset": "SWiG", "linguistic_phenomena": "actions", "image_file": "e_{votes}.jpg", "caption": "A man exercises his torso.",
                "classes": "man", "mturk": {{"foil": 0, "caption": {votes}, "other": 0}}, "foil": "A torso exercises for a man."}}"#
        )
    };
    let text = format!(r#"{{"a_0": {}, "a_1": {}, "a_2": {}}}"#, entry(3), entry(2), entry(1));
    let all = read(Format::Valse, &[("actant-swap.json", &text)]).unwrap();
    assert_eq!((all.questions.len(), all.left_out), (2, 1));
    assert_eq!(
        (all.questions[0].category, &all.questions[0].subset[..]),
        (Category::Relation, "actant-swap")
    );
    for (name, category) in [
        ("existence.json", Category::Object),
        ("foil-it.json", Category::Object),
        ("counting-small-quant.json", Category::Attribute),
        ("plurals.json", Category::Attribute),
        ("relations.json", Category::Relation),
        ("coreference-hard.json", Category::Other),
    ] {
        assert_eq!(read(Format::Valse, &[(name, &text)]).unwrap().questions[0].category, category);
    }
}

const PAIRS: &str = r#"{"id": 0, "image_0": "ex_0_img_0", "image_1": "ex_0_img_1", "caption_0": "some plants surrounding a lightbulb", "caption_1": "a lightbulb surrounding some plants", "tag": "Scope", "secondary_tag": "", "num_main_preds": 1, "collapsed_tag": "Object"}
{"id": 1, "image_0": "ex_1_img_0", "image_1": "ex_1_img_1", "caption_0": "a dog sees a man", "caption_1": "a man sees a dog", "tag": "Noun", "secondary_tag": "", "num_main_preds": 1, "collapsed_tag": "Relation"}
"#;

/// By hand. First example, rows pictures, columns captions: [[0.6, 0.5], [0.3, 0.4]]: text (0.6 > 0.5, 0.4 > 0.3) right;
/// image needs 0.6 > 0.3 and 0.4 > 0.5: wrong; group wrong.
/// Second: [[0.6, 0.5], [0.6, 0.7]]: text right; image: 0.6 > 0.6 is a tie, 0.7 > 0.5; so image and group are ties.
#[test]
fn golden_scores_of_winoground() {
    let all = read(Format::Winoground, &[("examples.jsonl", PAIRS)]).unwrap();
    assert_eq!(all.pairs().len(), 8);
    let scores = [[0.6, 0.5], [0.3, 0.4], [0.6, 0.5], [0.6, 0.7]];
    let lines = all.judge(|picture, caption| scores[picture][caption % 2]).unwrap();
    let found: Vec<_> = lines[..3].iter().map(|l| (l.measure, l.right.value, l.ties)).collect();
    assert_eq!(found, [(Text, 1.0, 0), (Image, 0.0, 1), (Group, 0.0, 1)]);
    let subsets: Vec<_> = lines[6..].iter().map(|line| line.subset.as_deref()).collect();
    assert_eq!(
        subsets,
        [
            Some("Object"),
            Some("Object"),
            Some("Object"),
            Some("Relation"),
            Some("Relation"),
            Some("Relation")
        ]
    );
    let chances: Vec<f64> = lines[..3].iter().map(|line| line.chance).collect();
    assert_eq!(chances, [0.25, 0.25, 1.0 / 6.0]);
    let good = all.judge(|picture, caption| f64::from(u8::from(picture == caption))).unwrap();
    assert!(good.iter().all(|line| line.right.value == 1.0));
}

/// Chances are shares of random scores.
#[test]
fn chances_are_what_random_scores_reach() {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let all = read(Format::Winoground, &[("examples.jsonl", PAIRS)]).unwrap();
    let mut sums = [0.0; 3];
    for _ in 0..2_000 {
        let scores: Vec<f64> = (0..16).map(|_| rng.random()).collect();
        for question in &all.questions {
            let marks = question.marks(|v, w| Ok(scores[4 * v + w])).unwrap();
            marks
                .iter()
                .zip(&mut sums)
                .for_each(|((_, m), sum)| *sum += f64::from(u8::from(m.right)));
        }
    }
    for (sum, want) in sums.into_iter().zip([0.25, 0.25, 1.0 / 6.0]) {
        assert!((sum / 4_000.0 - want).abs() < 0.02, "{sum} {want}");
    }
}

/// A blind score sees no picture, so it passes no part of Winoground; of two captions it prefers the one that reads well.
#[test]
fn a_blind_score_sees_no_picture() {
    let model = Trigrams::fit([
        "a dog sees a man",
        "a dog sees a cat",
        "a man sees a dog",
        "a cat sees a man",
    ]);
    let all = read(Format::Winoground, &[("examples.jsonl", PAIRS)]).unwrap();
    let blind = all.blind(&model);
    assert!(
        all.judge(|_, caption| blind[caption]).unwrap().iter().all(|line| line.right.value == 0.0)
    );
    let text = r#"{"0": {"filename": "1", "caption": "a dog sees a man", "negative_caption": "man a sees dog a"}}"#;
    let all = read(Format::Sugarcrepe, &[("order.json", text)]).unwrap();
    let blind = all.blind(&model);
    assert!(blind[0] > blind[1]);
    let (surprise, words) = model.surprise("a dog sees a man");
    assert_eq!(blind[0], -surprise / words as f64);
}

#[test]
fn bad_files_are_refused_with_a_place() {
    for (format, file, text, want) in [
        (
            Format::Sugarcrepe,
            "captions.json",
            "{}",
            "captions.json: expected a name that ends in obj, att, rel, order or refill",
        ),
        (
            Format::Sugarcrepe,
            "add_obj.json",
            "{}",
            "add_obj.json: expected at least one question, got none",
        ),
        (
            Format::Sugarcrepe,
            "add_obj.json",
            r#"{"3": {"filename": "1.jpg", "caption": " ", "negative_caption": "a"}}"#,
            "add_obj.json, entry 3: expected a caption of 1 to 10000 bytes, got 0 bytes",
        ),
        (
            Format::Sugarcrepe,
            "add_obj.json",
            r#"{"3": {"filename": "1.jpg", "caption": "a  b", "negative_caption": "a b"}}"#,
            "add_obj.json, entry 3: expected a false caption, got the true one",
        ),
        (
            Format::Sugarcrepe,
            "add_obj.json",
            r#"{"3": {"filename": "a\tb", "caption": "a", "negative_caption": "b"}}"#,
            "add_obj.json, entry 3: expected the name of a picture, got \"a\\tb\"",
        ),
        (
            Format::Sugarcrepe,
            "add_obj.json",
            r#"{"3": {"caption": "a", "negative_caption": "b"}}"#,
            "missing field `filename`",
        ),
        (Format::Valse, "other.json", "{}", "other.json: expected a name of VALSE's"),
        (
            Format::Aro,
            "a.json",
            &VG.replace("\"relation_name\"", "\"x\""),
            "a.json, entry 0: expected either relation_name or two attributes",
        ),
        (
            Format::Aro,
            "a.json",
            &VG.replace("\"bbox_w\": 30", "\"bbox_w\": 0"),
            "a.json, entry 0: expected a box with pixels, got 0 × 20",
        ),
        (
            Format::Winoground,
            "e.jsonl",
            &PAIRS.replace("ex_1_img_1", "ex_1_img_0"),
            "e.jsonl line 2: expected two pictures and two captions, got the same twice",
        ),
        (
            Format::Winoground,
            "e.jsonl",
            &PAIRS.replace("collapsed_tag", "x"),
            "e.jsonl line 1: expected an example of Winoground, got missing field `collapsed_tag`",
        ),
    ] {
        let line = refused(format, file, text);
        assert!(line.contains(want) && !line.contains('\n'), "{line}");
    }
    let none = Benchmark::default().judge(|_, _| 0.0).unwrap_err().to_string();
    assert_eq!(none, "the benchmark: expected at least one question, got none");
}
