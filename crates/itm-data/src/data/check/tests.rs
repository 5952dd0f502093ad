use std::fs;

use super::super::check_report::LINES;
use super::*;
use crate::data::tests::{Folder, JPEG, npy};

fn checked(folder: &Folder) -> (CheckReport, String) {
    let report = check(folder.dir.path()).unwrap();
    let text = report.to_string().replace(&format!("{}", folder.dir.path().display()), "DIR");
    (report, text)
}

fn counted((name, images, captions): (&str, usize, usize)) -> String {
    format!("{name:<12} {images:>8} images {captions:>9} captions")
}

#[test]
fn a_whole_folder_has_no_problem() {
    let folder = Folder::new();
    folder.write("precomp/val_grid.npy", npy(&[2, 1, 2], [0.0; 4]));
    folder.write("words.json", "{\"a\": 1}"); // none of ours
    folder.write("list.json", "[1, 2]");
    let (report, text) = checked(&folder);
    assert!(report.problems.is_empty(), "{text}");
    let layouts: Vec<_> = report.layouts.iter().map(|l| l.layout).collect();
    assert_eq!(layouts, ["Karpathy JSON", "precomputed features"]);
    let splits = [("train", 4, 20), ("train_extra", 2, 10), ("val", 2, 10), ("test", 3, 15)];
    assert_eq!(report.layouts[1].splits, splits.map(counted));
    // 11 rows of 3 numbers, 55 captions of 25 or 26 bytes and 24 for each string.
    let memory = format!("in memory: {} bytes", 11 * 12 + 55 * (25 + 24) + 5);
    assert_eq!(report.layouts[1].notes.last(), Some(&memory));
    for want in [
        "Karpathy JSON: DIR/dataset_dogs.json",
        "  train               4 images        20 captions",
        "9 of 9 pictures are there and whole",
        "test in train: 0 images, 0 of 15 captions",
        "val_grid.npy: f32 [2, 1, 2]",
        "val: 1 regions per image, 2 wide, without boxes",
        "images/ with 9 pictures (306 bytes)",
        "\nno problem found",
    ] {
        assert!(text.contains(want), "{want}\n{text}");
    }
    assert_eq!(report.manifest.files.len(), 1 + 9 + 12 + 1);
    let loaded = crate::data::load_precomp(folder.dir.path(), &Default::default()).unwrap();
    assert!(text.contains(&loaded.dataset.sha256));
}

#[test]
fn every_mismatch_has_a_line() {
    let folder = Folder::new();
    folder.write("images/0.jpg", &JPEG[..20]);
    folder.write("images/8.jpg", "<html>");
    folder.remove("images/9.jpg");
    folder.write("images/other.jpg", JPEG);
    folder.write("precomp/val_grid.npy", npy(&[3, 2], [0.0; 6]));
    folder.write("precomp/test_ims.npy", npy(&[3, 1], [f32::NAN, 0.0, f32::INFINITY]));
    folder.change("precomp/train_caps.txt", "take 1", "take 7");
    folder.change("precomp/train_caps.txt", "take 2", "take 7");
    folder.change("precomp/train_caps.txt", "3 , take 3", "3 , take 8");
    folder.remove("precomp/train_extra_caps.txt");
    let (report, text) = checked(&folder);
    let problems: Vec<_> =
        text.split("problems\n").nth(1).unwrap().lines().map(str::trim).collect();
    let wants = [
        "DIR/images/0.jpg: expected a whole image",
        "DIR/images/8.jpg: expected a JPEG, PNG or WebP image",
        "DIR/images/9.jpg: No such file",
        "DIR/precomp/train_caps.txt line 2: expected \"A dog number 0 , take 1 .\"",
        "DIR/precomp/train_caps.txt line 3:",
        "DIR/precomp/train_caps.txt line 19:",
        "DIR/precomp/train_extra_caps.txt: No such file",
        "DIR/precomp/val_grid.npy: expected 2 rows, one per image, got 3",
        "DIR/precomp/test_ims.npy row 0, column 0: expected a finite number, got NaN",
        "DIR/precomp/test_ims.npy row 2, column 0: expected a finite number, got inf",
    ];
    assert_eq!(problems.len(), wants.len(), "{text}");
    for (problem, want) in problems.iter().zip(wants) {
        assert!(problem.starts_with(want), "{problem}\n{want}");
    }
    assert!(!report.problems.is_empty());
    assert!(text.contains("6 of 9 pictures are there and whole"));
    assert!(text.contains("1 pictures beside them are not listed"));
    assert!(text.contains("leakage is checked when the problems below are gone"));
}

#[test]
fn an_empty_caption_is_said() {
    let folder = Folder::new();
    folder.remove("dataset_dogs.json");
    folder.change("precomp/val_caps.txt", "A dog number 6 , take 2 .", " ");
    let (report, text) = checked(&folder);
    assert!(report.problems.is_empty(), "{text}");
    assert!(text.contains("DIR/precomp/val_caps.txt line 3: an empty caption"), "{text}");
}

/// A folder with faults only in its regions.
#[test]
fn regions_are_looked_into() {
    let folder = Folder::new();
    folder.write("precomp/val_grid.npy", npy(&[2, 1, 2], [0.0, 0.0, 1.0, f32::NAN]));
    folder.write("precomp/test_grid.npy", npy(&[3, 1, 2], [0.0; 6]));
    folder.write("precomp/grid_boxes.npy", npy(&[1, 4], [0.0, 0.0, 2.0, 1.0]));
    folder.write("precomp/train_regions.npy", npy(&[4, 2], [0.0; 8]));
    let (report, text) = checked(&folder);
    let wants = [
        "DIR/precomp/train_regions.npy: expected regions [n, r, d]",
        "DIR/precomp/val_grid.npy row 1, region 0: expected finite values, got NaN",
        "DIR/precomp/grid_boxes.npy row 0, box 0: expected x1, y1, x2, y2",
    ];
    assert_eq!(report.problems.len(), wants.len(), "{text}");
    wants.iter().for_each(|want| assert!(text.contains(want), "{want}\n{text}"));
    let hashed = |name: &str| report.manifest.files.iter().filter(|f| f.name == name).count();
    assert_eq!((hashed("precomp/test_grid.npy"), hashed("precomp/grid_boxes.npy")), (1, 1));
}

/// What a run refuses, the check refuses with the same line.
#[test]
fn the_check_loads_what_a_run_loads() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    let image = |name: &str, split: &str| {
        format!(
            r#"{{"filename": "{name}", "split": "{split}", "sentences": [{{"raw": "x {name}"}}]}}"#
        )
    };
    let list = |last: &str| {
        let all = [image("1.jpg", "train"), image("2.jpg", "val"), image("3.jpg", last)];
        format!(r#"{{"images": [{}]}}"#, all.join(","))
    };
    write("dataset_own.json", &list("test"));
    let problems = || check(dir.path()).unwrap().problems;
    let found = problems();
    assert!(found.len() == 1 && found[0].contains("expected 3 pictures, got 3 fewer"), "{found:?}");
    for name in ["1.jpg", "2.jpg", "3.jpg"] {
        fs::write(dir.path().join(name), JPEG).unwrap();
    }
    assert!(problems().is_empty(), "{:?}", problems());
    write("dataset_own.json", &list("train"));
    let found = problems();
    assert!(
        found.len() == 1 && found[0].ends_with("split test: expected an image, got none"),
        "{found:?}"
    );
}

/// A run reads the judgements of a folder, with features or with pictures only; so does the check.
#[test]
fn judgements_are_read() {
    let folder = Folder::new();
    for (name, text) in [("image_to_caption", r#"{"a": ["b"]}"#), ("caption_to_image", "{}")] {
        folder.write(&format!("cxc_{name}.json"), text);
    }
    for pictures_only in [false, true] {
        if pictures_only {
            fs::remove_dir_all(folder.dir.path().join("precomp")).unwrap();
        }
        let (report, _) = checked(&folder);
        let want = "cxc_image_to_caption.json: expected ids of the test split (cocoid and sentid of the JSON), got none";
        assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
        assert!(report.problems[0].ends_with(want), "{}", report.problems[0]);
    }
}

#[test]
fn many_problems_of_a_kind_are_cut() {
    let folder = Folder::new();
    folder.write("precomp/val_ims.npy", npy(&[2, 3], [f32::NAN; 6]));
    let mut report = checked(&folder).0;
    report.problems.clear();
    report.extend((0..23).collect());
    assert_eq!(report.problems.len(), LINES + 1);
    assert_eq!(report.problems[LINES], "… and 3 more of this kind");
}

#[test]
fn annotations_of_fne_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("f30k_train.json", r#"[{"image": "x/a.jpg", "caption": "a dog", "image_id": 1}]"#);
    let test = |name: &str| {
        format!(r#"[{{"image": "{name}", "caption": ["a dog", "2", "3", "4", "5", "6"]}}]"#)
    };
    write("f30k_test.json", &test("x/b.jpg"));
    let report = check(dir.path()).unwrap();
    // A run needs all three lists.
    assert_eq!(report.problems.len(), 1, "{report}");
    assert!(report.problems[0].ends_with("expected a list of the val split, got none"), "{report}");
    assert_eq!(report.layouts[0].layout, "FNE annotations");
    let splits = [("f30k_test.json", 1, 5), ("f30k_train.json", 1, 1)];
    assert_eq!(report.layouts[0].splits, splits.map(counted));
    let text = report.to_string();
    for want in [
        "f30k_test.json: 1 captions beyond 5 per image dropped",
        "1 of 5 captions: \"a dog\" (1 / 1)",
        "no pictures below",
    ] {
        assert!(text.contains(want), "{text}");
    }
    write("f30k_test.json", &test("y/a.jpg"));
    let report = check(dir.path()).unwrap();
    assert_eq!(report.problems.len(), 1, "{report}");
    assert!(
        report.problems[0]
            .ends_with("test split: expected no image of the train split, got 1, first a.jpg")
    );
    write("f30k_val.json", r#"[{"image": "c.jpg", "caption": ["1", "2", "3"]}]"#);
    let report = check(dir.path()).unwrap();
    assert!(
        report.problems[0].ends_with("f30k_val.json entry 0.caption: expected 5 captions, got 3")
    );
}

#[test]
fn a_folder_without_a_layout_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let error = |path: &Path| check(path).unwrap_err().to_string();
    assert!(error(dir.path()).ends_with("got none of them"));
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/dataset_dogs.json"), "").unwrap();
    assert!(error(dir.path()).ends_with("sub"), "{}", error(dir.path()));
    assert!(error(&dir.path().join("missing")).contains("No such file"));
}
