//! `auto`: cross-fitted or on validation.

use hubness::choose::FoldSplit;
use serde_json::Value;

use super::common::{EACH, Folder, IMAGES, WIDTH, cosines, made, names, recalls, row, transposed};
use super::formulas::percent;
use super::options::{BANKS, banked};

#[test]
fn rows_left_open_are_cross_fitted_by_seed() {
    let folder = Folder::made();
    let line = "--method auto,csls,is,rgm --csls-k auto --is-beta auto";
    let report = folder.report(line);
    for method in ["auto", "csls", "is", "rgm"] {
        assert_eq!(row(&report, method)["chosen"], "cross-fitted");
    }
    assert_eq!(row(&report, "nns")["chosen"], "default");
    assert_eq!(report["rows"], folder.report(line)["rows"]);
    let differs = (1..6)
        .any(|seed| folder.report(&format!("{line} --seed {seed}"))["rows"] != report["rows"]);
    assert!(differs, "folds depend on the seed");
}

/// β of both folds in the row of IS.
fn chosen(report: &Value, direction: &str) -> [f64; 2] {
    let beta = &row(report, "is")["params"][direction]["beta"];
    match beta.as_array() {
        Some(folds) => [0, 1].map(|fold| folds[fold].as_f64().unwrap()),
        None => [beta.as_f64().unwrap(); 2],
    }
}

fn folds() -> Vec<usize> {
    let ids: Vec<_> = (0..IMAGES).map(|image| image.to_string()).collect();
    FoldSplit::hashed(&ids, 2, 0).unwrap().of_image().to_vec()
}

const LEFT_OPEN: &str = "--pairs p.txt --method is --is-beta auto";

/// The pairs of one fold are wrong in many ways. The choice for that fold stays, because the other fold makes it.
#[test]
fn a_fold_does_not_see_its_own_pairs() {
    let (folder, folds) = (Folder::made(), folds());
    let write = |image_of: &dyn Fn(usize) -> usize| {
        let pairs: Vec<_> = (0..IMAGES * EACH).map(|t| image_of(t / EACH).to_string()).collect();
        folder.write("p.txt", pairs.join("\n"));
    };
    write(&|image| image);
    let before = folder.report(LEFT_OPEN);
    let mut changed = 0;
    for fold in 0..2 {
        let members: Vec<usize> = (0..IMAGES).filter(|&image| folds[image] == fold).collect();
        for shift in 1..members.len() {
            write(&|image| match members.iter().position(|&m| m == image) {
                Some(at) => members[(at + shift) % members.len()],
                None => image,
            });
            let after = folder.report(LEFT_OPEN);
            for direction in ["i2t", "t2i"] {
                let (a, b) = (chosen(&before, direction), chosen(&after, direction));
                assert_eq!(a[fold], b[fold], "{direction}, fold {fold}, shift {shift}");
                changed += usize::from(a[1 - fold] != b[1 - fold]);
            }
        }
    }
    assert!(changed > 0, "the pairs of one fold change the choice for the other");
}

/// Each image's queries use the β of its fold. The expected values come from dense loops.
#[test]
fn hits_of_both_folds_are_pooled() {
    let (folder, folds) = (Folder::made(), folds());
    let pairs: Vec<_> = (0..IMAGES * EACH).map(|t| (t / EACH).to_string()).collect();
    folder.write("p.txt", pairs.join("\n"));
    let report = folder.report(LEFT_OPEN);
    let softmax = |scores: &[Vec<f64>], beta: f64| -> Vec<Vec<f64>> {
        let sum = |column: Vec<f64>| column.iter().map(|s| (beta * s).exp()).sum::<f64>().ln();
        let sums: Vec<f64> = transposed(scores).into_iter().map(sum).collect();
        let row = |row: &Vec<f64>| row.iter().zip(&sums).map(|(s, z)| beta * s - z).collect();
        scores.iter().map(row).collect()
    };
    let scores = cosines();
    let sides = [("i2t", scores.clone(), 1, EACH), ("t2i", transposed(&scores), EACH, 1)];
    let mut want = Vec::new();
    for (direction, scores, queries, items) in sides {
        let betas = chosen(&report, direction);
        assert_ne!(
            betas[0], betas[1],
            "{direction}: folds must choose differently, or this shows nothing"
        );
        let by_fold = betas.map(|beta| softmax(&scores, beta));
        let mixed: Vec<_> =
            (0..scores.len()).map(|q| by_fold[folds[q / queries]][q].clone()).collect();
        want.extend(percent(&mixed, |query, item| query / queries == item / items));
    }
    let got = recalls(row(&report, "is"));
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-9), "got {got:?}, want {want:?}");
}

/// All settings of a grid are rows. A choice on the test set itself is the best of them in each direction.
#[test]
fn validation_chooses_the_best_there() {
    let folder = Folder::made();
    let same = "--val-images i.npy --val-texts t.npy";
    let report = folder.report(&format!("{same} --method csls,rgm,auto --csls-k auto"));
    let grid = folder.report("--method csls --csls-k 100,50,30,20,10,5,3,2,1");
    let sum = |row: &Value, direction: &str| -> f64 {
        let all = recalls(row);
        (if direction == "i2t" { &all[..3] } else { &all[3..] }).iter().sum()
    };
    for direction in ["i2t", "t2i"] {
        let rows = grid["rows"].as_array().unwrap();
        let best = rows[1..].iter().map(|row| sum(row, direction)).fold(0.0, f64::max);
        let got = sum(row(&report, "csls"), direction);
        assert!((got - best).abs() < 1e-9, "{direction}: {got}, best {best}");
        assert!(sum(row(&report, "auto"), direction) >= best - 1e-9);
    }
    assert_eq!(report["data"]["warnings"][0], "the validation set is the test set itself");
    for method in ["csls", "rgm", "auto"] {
        assert_eq!(row(&report, method)["chosen"], "validation");
    }
    let notes = report["data"]["notes"].to_string();
    assert!(notes.contains("validation: pairs guessed from the shapes"), "{notes}");
    assert_eq!(report["data"]["files"].as_array().unwrap().len(), 4);
}

/// A matrix serves for validation as embeddings do: the same scores lead to the same choices.
#[test]
fn a_matrix_is_validated_by_a_matrix() {
    let folder = Folder::made();
    let (_, texts) = made();
    folder.npy("vi.npy", WIDTH, &texts[..IMAGES * WIDTH]);
    let methods = "--method csls,is,rgm,auto --csls-k auto --is-beta auto";
    for (validation, name) in [("i.npy", "v.npy"), ("vi.npy", "w.npy")] {
        folder.run(&format!(
            "rescore --images {validation} --texts t.npy --method nns --direction i2t --out {name}"
        ));
    }
    folder.run("rescore --images i.npy --texts t.npy --method nns --direction i2t --out s.npy");
    let report = |line: &str| {
        let ran = folder.run(&format!("report {line} {methods} --json"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        serde_json::from_str::<Value>(&ran.out).unwrap()
    };
    let embedded = folder.report(&format!("{methods} --val-images vi.npy --val-texts t.npy"));
    let matrix = report("--scores s.npy --val-scores w.npy");
    let own = report("--scores s.npy --val-scores v.npy");
    for method in ["csls", "is", "rgm", "auto"] {
        assert_eq!(row(&matrix, method)["chosen"], "validation");
        assert_eq!(row(&matrix, method)["params"], row(&embedded, method)["params"], "{method}");
        assert_eq!(recalls(row(&matrix, method)), recalls(row(&embedded, method)), "{method}");
    }
    assert_ne!(row(&own, "auto")["params"], row(&matrix, "auto")["params"], "the set is read");
}

#[test]
fn another_validation_set_chooses_otherwise() {
    let folder = Folder::made();
    let (images, texts) = made();
    let noisy: Vec<f32> =
        texts.iter().enumerate().map(|(at, v)| v + ((at * 37) % 19) as f32 / 6.0).collect();
    folder.npy("vi.npy", WIDTH, &images);
    folder.npy("vt.npy", WIDTH, &noisy);
    let of = |set: &str| folder.report(&format!("{set} --method auto"));
    let own = of("--val-images i.npy --val-texts t.npy");
    let other = of("--val-images vi.npy --val-texts vt.npy");
    assert_ne!(row(&own, "auto")["params"], row(&other, "auto")["params"]);
    assert_eq!(row(&own, "nns")["rsum"], row(&other, "nns")["rsum"]);
}

/// Validation uses the same bank of training data: no row is refused because of the bank.
#[test]
fn banks_and_validation_go_together() {
    let folder = banked();
    let line =
        format!("{BANKS} --val-images i.npy --val-texts t.npy --method csls,dual-is,csls+rgm");
    let report = folder.report(&format!("{line} --csls-k auto"));
    let want = ["nns", "csls", "csls@bank", "dual-is", "csls+rgm", "csls+rgm@bank"];
    assert_eq!(names(&report), want);
    assert_eq!(row(&report, "csls@bank")["chosen"], "validation");
    assert_eq!(row(&report, "csls@bank")["transductive"], false);
}
