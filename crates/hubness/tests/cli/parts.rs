//! `partial`, `merge`, `finish`: any split gives what one process gives.

use super::common::{Folder, recalls, row};

const SOURCE: &str = "--images i.npy --texts t.npy";
const CUTS: [(&str, &str); 4] =
    [("0..10", "0..30"), ("0..10", "30..72"), ("10..24", "0..5"), ("10..24", "5..72")];

/// Four parts, `0.part` to `3.part`, joined in the order of `tree` into `all.part`.
fn joined(folder: &Folder, options: &str, tree: &[&str]) {
    for (at, (rows, cols)) in CUTS.into_iter().enumerate() {
        let line =
            format!("partial {SOURCE} {options} --rows {rows} --cols {cols} --out {at}.part");
        folder.run(&line).good();
    }
    for line in tree {
        folder.run(&format!("merge {line}")).good();
    }
}

const TREE: [&str; 3] =
    ["3.part 0.part --out a.part", "1.part 2.part --out b.part", "b.part a.part --out all.part"];

#[test]
fn lists_of_parts_are_the_lists_of_one_process() {
    let folder = Folder::made();
    for (keep, direction) in [("top-texts", "i2t"), ("top-images", "t2i")] {
        joined(&folder, &format!("--keep {keep} --top 7"), &TREE);
        let line = format!("rescore {SOURCE} --method nns --direction {direction} --top 7 --out -");
        let want = folder.run(&line).out.replace("hubness-nns", "hubness");
        assert_eq!(folder.run("finish all.part").good().out, want, "{keep}");
        joined(
            &folder,
            &format!("--keep {keep} --top 7"),
            &["0.part 1.part 2.part 3.part --out all.part"],
        );
        folder.run("finish all.part --out lists.run").good();
        assert_eq!(String::from_utf8(folder.read("lists.run")).unwrap(), want, "{keep}");
    }
}

#[test]
fn ranks_of_parts_are_the_ranks_of_one_process() {
    let folder = Folder::made();
    joined(&folder, "--keep pair-scores", &TREE);
    std::fs::rename(folder.path().join("all.part"), folder.path().join("pairs.part")).unwrap();
    joined(&folder, "--keep ranks --pair-scores pairs.part", &TREE);
    let finish = format!("finish all.part {SOURCE} --pair-scores pairs.part");
    let found = folder.run(&finish).json();
    let report = folder.report("--method nns");
    let got = ["i2t", "t2i"].map(|d| ["r1", "r5", "r10"].map(|k| found[d][k].as_f64().unwrap()));
    assert_eq!(got.concat(), recalls(row(&report, "nns")));
    // The pairs are others now, though the scores are as many.
    folder.write("pairs.txt", (0..72).map(|t| format!("{}\n", (t + 1) % 24)).collect::<String>());
    let ran = folder.run(&format!("{finish} --pairs pairs.txt"));
    let line = "error: all.part: expected the pairs and scores that it was made with, got others\n";
    assert_eq!((ran.code, &ran.err[..]), (Some(2), line));
}

#[test]
fn what_does_not_fit_is_one_line() {
    let folder = Folder::made();
    joined(&folder, "--keep top-texts", &["0.part 1.part 2.part --out some.part"]);
    let partial = format!("partial {SOURCE} --out x.part");
    folder
        .run(&format!(
            "partial {SOURCE} --keep top-texts --top 3 --rows 10..24 --cols 5..72 --out k.part"
        ))
        .good();
    let whole = folder.read("3.part");
    folder.write("cut.part", &whole[..whole.len() - 1]);
    for (line, want) in [
        (
            "merge some.part 1.part --out x.part",
            "1.part: expected every score once, got image 0, text 30 twice",
        ),
        ("finish some.part", "some.part: expected every score once, got image 10, text 5 never"),
        (
            "merge some.part k.part --out x.part",
            "k.part: expected the 10 best texts of every image, got the 3 best texts of every image",
        ),
        ("merge some.part i.npy --out x.part", "i.npy: expected a whole part, got "),
        ("merge some.part cut.part --out x.part", "cut.part: expected a whole part, got "),
        (
            &format!("{partial} --keep top-texts --rows 20..25"),
            "--rows: expected rows of i.npy, 0..24, got 20..25",
        ),
        (
            &format!("{partial} --keep top-texts --rows 9..9"),
            "invalid value '9..9' for '--rows <FIRST..END>': expected FIRST..END, FIRST below END, got `9..9`",
        ),
        (
            &format!("{partial} --keep top-texts --top 0"),
            "part: expected lists of at least 1 item, got 0",
        ),
        (
            &format!("{partial} --keep ranks"),
            "--pair-scores: expected the scores of all pairs: partial --keep pair-scores, then merge, got none",
        ),
        (
            &format!("{partial} --keep ranks --pair-scores 0.part"),
            "part: expected scores of pairs, got the 10 best texts of every image",
        ),
        (
            "partial --scores i.npy --keep top-texts --out x.part",
            "options: expected --images and --texts, got scores",
        ),
    ] {
        let ran = folder.run(line);
        assert!(ran.err.starts_with(&format!("error: {want}")), "{line}: {}", ran.err);
        assert_eq!((ran.code, ran.err.lines().count(), &ran.out[..]), (Some(2), 1, ""), "{line}");
        assert!(!folder.path().join("x.part").exists(), "{line}: nothing is written");
    }
}
