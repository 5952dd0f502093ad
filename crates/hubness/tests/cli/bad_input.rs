//! Refused input: one line, exit code 2, nothing on standard output, no file. Odd input: a warning with a count.

use super::common::{Folder, WIDTH, made, names, npy, row};

/// Runs a command line that must be refused.
fn refused(folder: &Folder, line: &str, want: &str) {
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let ran = folder.run(line);
    let got = (ran.code, &ran.err[..], &ran.out[..]);
    assert_eq!(got, (Some(2), &format!("error: {want}\n")[..], ""), "{line}");
    let after = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(before, after, "{line}: nothing is written");
}

#[test]
fn settings_that_no_correction_can_use() {
    let folder = Folder::made();
    let hint = "(`hubness --help` says what there is)";
    for (option, want) in [
        ("--csls-k 0", "--csls-k: expected a whole number of neighbours, 1 to 1000000000, got 0"),
        (
            "--csls-k 2.5",
            "--csls-k: expected a whole number of neighbours, 1 to 1000000000, got 2.5",
        ),
        (
            "--csls-k inf",
            "--csls-k: expected a whole number of neighbours, 1 to 1000000000, got inf",
        ),
        (
            "--csls-k 5,-1",
            "--csls-k: expected a whole number of neighbours, 1 to 1000000000, got -1",
        ),
        ("--is-beta 0", "--is-beta: expected a number above 0 and below 1e200, got 0"),
        ("--is-beta -1", "--is-beta: expected a number above 0 and below 1e200, got -1"),
        ("--is-beta inf", "--is-beta: expected a number above 0 and below 1e200, got inf"),
        ("--rgm-lambda -1", "--rgm-lambda: expected a number above 0, or inf, got -1"),
        ("--rgm-lambda 0", "--rgm-lambda: expected a number above 0, or inf, got 0"),
        ("--nnn-alpha 1e9", "--nnn-alpha: expected a number from 0 to 1000000, got 1000000000"),
        ("--nnn-alpha -1", "--nnn-alpha: expected a number from 0 to 1000000, got -1"),
        ("--nnn-alpha nan", "--nnn-alpha: expected a number from 0 to 1000000, got NaN"),
        ("--nnn-k 0", "--nnn-k: expected 1 to 1000000000 neighbours, got 0"),
        ("--qbnorm-beta inf", "--qbnorm-beta: expected a number above 0 and below 1e200, got inf"),
        ("--qbnorm-k 0", "--qbnorm-k: expected 1 to 1000000000 neighbours, got 0"),
        ("--dual-beta 1 -1", "--dual-beta: expected a number from 0, below 1e200, got -1"),
        ("--dual-beta 0 0", "--dual-beta: expected numbers with a sum above 0, got 0"),
        ("--sinkhorn-eps 1e-250", "--sinkhorn-eps: expected a number above 1e-200, got 1e-250"),
        ("--sinkhorn-eps 0", "--sinkhorn-eps: expected a number above 0 and below 1e200, got 0"),
        ("--sinkhorn-iterations 0", "--sinkhorn-iterations: expected 1 to 1000000, got 0"),
        (
            "--resamples 18446744073709551615",
            "--resamples: expected 0 to 1000000, got 18446744073709551615",
        ),
        (
            "--nnn-k 1000000000001",
            "--nnn-k: expected 1 to 1000000000 neighbours, got 1000000000001",
        ),
        (
            "--sinkhorn-iterations 1000000000000",
            "--sinkhorn-iterations: expected 1 to 1000000, got 1000000000000",
        ),
        ("--local-k 0", "--local-k: expected 1 to 1000000000 neighbours, got 0"),
        (
            "--method dual-is",
            "--method dual-is: expected banks of images and of texts, got at most one of them",
        ),
        (
            "--bank-texts t.npy",
            "--bank-images: expected banks of both sides: every row has both directions, got none",
        ),
        (
            "--method ls --raw",
            "--method ls: expected cosines (of embeddings of unit length), got other scores",
        ),
    ] {
        let line = format!("report --images i.npy --texts t.npy {option} --html page.html");
        refused(&folder, &line, want);
    }
    for (option, want) in [
        (
            "--is-beta nan",
            "invalid value 'nan' for '--is-beta <BETA>': expected a number or `auto`, got `nan`",
        ),
        (
            "--rgm-lambda nan",
            "invalid value 'nan' for '--rgm-lambda <LAMBDA>': expected a number or `auto`, got `nan`",
        ),
        ("--csls-k 5,", "invalid value '' for '--csls-k <K>': expected a number or `auto`, got ``"),
        ("--nope", "unexpected argument '--nope' found"),
        (
            "--val-scores s.npy",
            "the following required arguments were not provided: --scores <FILE>",
        ),
        (
            "--val-images i.npy",
            "the following required arguments were not provided: --val-texts <FILE>",
        ),
    ] {
        let line = format!("report --images i.npy --texts t.npy {option}");
        refused(&folder, &line, &format!("{want} {hint}"));
    }
    for name in ["nope", "csls+", "auto+rgm", ""] {
        let want = format!(
            "--method: expected auto, gm, rgm, or one of nns, csls, is, nnn, sinkhorn, qbnorm, dual-is, \
             dual-dis, mp, mp-empirical, ls, nicdm, alone or with +gm or +rgm, got {name}"
        );
        refused(&folder, &format!("report --images i.npy --texts t.npy --method={name}"), &want);
    }
}

#[test]
fn files_that_do_not_fit() {
    let folder = Folder::made();
    let (_, texts) = made();
    folder.npy("wide.npy", WIDTH + 1, &texts);
    folder.npy("seven.npy", WIDTH, &texts[..7 * WIDTH]);
    let mut bad = texts.clone();
    (bad[WIDTH], bad[5 * WIDTH + 2]) = (f32::NAN, f32::INFINITY);
    folder.npy("bad.npy", WIDTH, &bad);
    let bytes: Vec<u8> = texts.iter().flat_map(|v| v.to_le_bytes()).collect();
    folder.write("fortran.npy", npy("<f4", true, &[72, WIDTH], &bytes));
    folder.write("big.npy", npy(">f4", false, &[72, WIDTH], &bytes));
    folder.write("object.npy", npy("|O", false, &[72, WIDTH], &bytes));
    folder.write("cut.npy", npy("<f4", false, &[72, WIDTH], &bytes[..1000]));
    folder.write("p.txt", "0\n1\n");
    for (texts, want) in [
        ("wide.npy", "wide.npy: expected rows of 8 numbers as in i.npy, got 9"),
        (
            "bad.npy",
            "bad.npy: expected finite numbers (in f32), got NaN or infinity in 2 rows: 1, 5",
        ),
        ("none.npy", "none.npy: No such file or directory (os error 2)"),
    ] {
        let line = format!("report --images i.npy --texts {texts} --html page.html");
        refused(&folder, &line, want);
    }
    // The tests of the readers check the whole lines.
    for texts in
        ["seven.npy", "fortran.npy", "big.npy", "object.npy", "cut.npy", "t.npy --pairs p.txt"]
    {
        let ran = folder.run(&format!("report --images i.npy --texts {texts}"));
        assert_eq!((ran.code, ran.out.len(), ran.err.lines().count()), (Some(2), 0, 1), "{texts}");
        let place = texts.rsplit(' ').next().unwrap();
        assert!(ran.err.starts_with(&format!("error: {place}")), "{}", ran.err);
        assert!(ran.err.contains(": expected ") && ran.err.contains(", got "), "{}", ran.err);
    }
    refused(
        &folder,
        "report --images i.npy",
        "options: expected --images and --texts, or --scores, or --run-i2t and/or --run-t2i, got --images alone",
    );
    folder.write("r.run", "a Q0 b 1 0.5 x\na Q0 c 2 0.4 x\n");
    refused(
        &folder,
        "report --run-i2t r.run",
        "--pairs: expected qrels: a report needs the true pairs, got none",
    );
}

#[test]
fn an_output_never_replaces_an_input() {
    let folder = Folder::made();
    std::fs::create_dir(folder.path().join("shards")).unwrap();
    let (images, _) = made();
    folder.npy("shards/s_0.npy", WIDTH, &images);
    let source = "--images i.npy --texts t.npy";
    assert_eq!(folder.run(&format!("export {source} --direction t2i --out x")).code, Some(0));
    folder.run(&format!("partial {source} --keep top-texts --out a.part")).good();
    for (line, out) in [
        (format!("rescore {source} --direction t2i --out"), "i.npy"),
        (format!("report {source} --html"), "./t.npy"),
        (format!("report {source} --val-images a.part --val-texts t.npy --html"), "a.part"),
        (format!("partial {source} --keep top-texts --out"), "t.npy"),
        ("merge a.part --out".into(), "a.part"),
        ("finish a.part --out".into(), "a.part"),
        ("rescore --images shards --texts t.npy --direction i2t --out".into(), "shards/s_0.npy"),
        (
            "export --images x/items.npy --texts x/queries.npy --direction t2i --force --out"
                .into(),
            "x",
        ),
    ] {
        let want = format!("{out}: expected an output that is no input, got an input");
        refused(&folder, &format!("{line} {out}"), &want);
    }
    folder.run("finish a.part --out shards/new.run").good();
}

#[test]
fn odd_rows_are_warned_of_and_counted() {
    let folder = Folder::made();
    let (_, mut texts) = made();
    texts[5 * WIDTH..6 * WIDTH].fill(0.0);
    texts.copy_within(6 * WIDTH..7 * WIDTH, 7 * WIDTH);
    folder.npy("odd.npy", WIDTH, &texts);
    let report = folder.report("--images i.npy --texts odd.npy");
    let want = [
        "odd.npy: 1 row of zeros only, kept as they are: 5",
        "odd.npy: 1 row equals an earlier one: 7 = 6",
    ];
    assert_eq!(report["data"]["warnings"], serde_json::json!(want));
    folder.npy("same.npy", WIDTH, &[0.5; 72 * WIDTH]);
    let report = folder.report("--images i.npy --texts same.npy");
    let warnings = report["data"]["warnings"].to_string();
    assert!(warnings.contains("same.npy: 71 rows equal an earlier one"), "{warnings}");
    assert!(warnings.contains("same.npy: collapsed: all rows point nearly the same way"));
    // All texts are equal: every image has text 0 first, which is right for one image of 24.
    let r1 = row(&report, "nns")["i2t"]["r1"].as_f64().unwrap();
    assert!((r1 - 100.0 / 24.0).abs() < 1e-9, "{r1}");
}

/// There are no other queries to compare with: by default only nearest neighbours run, and a named correction is refused.
#[test]
fn a_single_image_has_nothing_to_correct() {
    let folder = Folder::new();
    let (images, texts) = made();
    folder.npy("i.npy", WIDTH, &images[..WIDTH]);
    folder.npy("t.npy", WIDTH, &texts[..3 * WIDTH]);
    folder.npy("b.npy", WIDTH, &texts);
    let report = folder.report("");
    assert_eq!(names(&report), ["nns"]);
    let note = "a single image or query: corrections compare several and are left out";
    assert!(report["data"]["notes"].to_string().contains(note));
    for method in ["csls", "is", "gm", "rgm", "auto", "is+rgm"] {
        let want = format!(
            "--method {method}: expected at least 2 queries and 2 images in each direction, got 1"
        );
        let line = format!("report --images i.npy --texts t.npy --method {method}");
        refused(&folder, &line, &want);
    }
    let want = "--method csls: expected at least 2 queries and 2 images in each direction, got 1";
    refused(&folder, "rescore --images i.npy --texts t.npy --direction i2t --out u.npy", want);
    refused(&folder, "export --images i.npy --texts t.npy --direction i2t --out x", want);
    // A bank has the queries that the test lacks.
    let report = folder.report("--bank-images b.npy --bank-texts b.npy --method csls,is");
    assert_eq!(names(&report), ["nns", "csls@bank", "is@bank"]);
}

/// One image in each fold: each image gets the setting that is best for the other image.
#[test]
fn two_images_are_cross_fitted() {
    let folder = Folder::new();
    let (images, texts) = made();
    folder.npy("i.npy", WIDTH, &images[..2 * WIDTH]);
    folder.npy("t.npy", WIDTH, &texts[..6 * WIDTH]);
    let report = folder.report("");
    assert_eq!(names(&report).len(), 15);
    assert_eq!(row(&report, "auto")["chosen"], "cross-fitted");
}

/// All queries in one fold leave nothing to choose on: the weakest correction, not a refusal of the whole report.
#[test]
fn a_single_judged_image_has_a_report() {
    let folder = Folder::new();
    folder.npy("s.npy", 6, &(0..36).map(|k| ((k * 7) % 11) as f32 / 11.0).collect::<Vec<_>>());
    folder.write("p.json", "[[0],[],[],[],[],[]]");
    let report = folder.report("--scores s.npy --pairs p.json --method auto");
    let recalls = |method: &str| super::common::recalls(row(&report, method));
    assert_eq!(recalls("auto"), recalls("nns"));
}

#[test]
fn options_that_would_do_nothing_or_lose_numbers() {
    let folder = Folder::made();
    let source = "--images i.npy --texts t.npy";
    let want = "options: expected the bank itself as --images or --texts: parts have no other bank, got --bank-images or --bank-texts";
    let line = format!("partial {source} --bank-texts t.npy --method csls --direction t2i --out x");
    refused(&folder, &line, want);
    let line = format!("rescore {source} --method is --is-beta 1e40 --direction t2i --out x.npy");
    let ran = folder.run(&line);
    let place = ran.err.contains(
        "error: corrected score of image 0 and text 0: expected a number that f32 holds, got ",
    );
    assert!(ran.code == Some(2) && place, "{}", ran.err);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::made();
    let source = "--images i.npy --texts t.npy";
    let lost = "No such file or directory (os error 2)";
    refused(
        &folder,
        &format!("report {source} --html no/page.html"),
        &format!("no/page.html: {lost}"),
    );
    refused(
        &folder,
        &format!("report {source} --html ."),
        ".: expected a file to write, got a folder",
    );
    let rescore = format!("rescore {source} --direction t2i --out");
    refused(&folder, &format!("{rescore} no/u.npy"), &format!("no/u.npy: {lost}"));
    let matched = format!("{rescore} u.npy --method gm");
    let want = "--out: expected a run file: a matching gives lists, not scores, got u.npy";
    refused(&folder, &matched, want);
    refused(
        &folder,
        &format!("{rescore} u.run --top 0"),
        "--top: expected 1 to 1000000000 items, got 0",
    );
    let want = "--top: expected 1 to 1000000000 items, got 18446744073709551615";
    refused(&folder, &format!("{rescore} u.run --top 18446744073709551615"), want);
    let ran = folder.run(&format!("export {source} --direction t2i --out i.npy"));
    let last = ran.err.lines().last();
    assert_eq!((ran.code, last), (Some(2), Some("error: i.npy: expected a folder, got a file")));
}

#[test]
fn what_rescore_does_not_choose() {
    let folder = Folder::made();
    let source = "rescore --images i.npy --texts t.npy --direction t2i --out u.run";
    for (options, want) in [
        (
            "--method auto",
            "--method: expected one correction with its number (`hubness report --method auto` chooses one), got auto",
        ),
        ("--csls-k auto", "--csls-k: expected one number (`hubness report` chooses one), got auto"),
        (
            "--method is --is-beta 5,6",
            "--is-beta: expected one number (`hubness report` chooses one), got 5,6",
        ),
        (
            "--method rgm",
            "--rgm-lambda: expected one number (`hubness report` chooses one), got auto",
        ),
        ("--bank-images i.npy", "--bank-texts: expected held-out queries for t2i, got none"),
        ("--is-beta -1", "--is-beta: expected a number above 0 and below 1e200, got -1"),
        (
            "--raw --method ls",
            "--method ls: expected cosines (of embeddings of unit length), got other scores",
        ),
    ] {
        refused(&folder, &format!("{source} {options}"), want);
    }
    folder.write("r.run", "a Q0 b 1 0.5 x\na Q0 c 2 0.4 x\nd Q0 b 1 0.4 x\n");
    for method in ["mp", "gm"] {
        let want = format!("--method {method}: expected all scores, got only the scores of a run");
        refused(
            &folder,
            &format!(
                "rescore --run-i2t r.run --direction i2t --out u.run --method {method} --rgm-lambda 1"
            ),
            &want,
        );
    }
    refused(
        &folder,
        "rescore --run-i2t r.run --direction t2i --out u.run",
        "--run-t2i: expected a run of this direction, got none",
    );
}

/// A pipe made every reader wait forever, and a rename replaced the link.
#[cfg(unix)]
#[test]
fn pipes_devices_and_links() {
    let folder = Folder::made();
    let at = |name: &str| folder.path().join(name);
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    for (given, got) in [("pipe", "a named pipe"), ("/dev/zero", "a device"), (".", "a folder")] {
        for line in [
            format!("report --images i.npy --texts {given}"),
            format!("report --images i.npy --texts t.npy --pairs {given}"),
            format!("report --images i.npy --texts t.npy --truth {given}"),
        ] {
            if given == "." && line.contains("--texts .") {
                continue; // a folder of numbered files
            }
            refused(&folder, &line, &format!("{given}: expected a file, got {got}"));
        }
    }
    folder.write("page.html", "");
    std::os::unix::fs::symlink("page.html", at("link")).unwrap();
    let html = "report --images i.npy --texts t.npy --html link";
    refused(&folder, html, "link: expected a name that is no link, got a link");
}

/// 100,000 threads took nine minutes to start.
#[test]
fn threads_are_capped_at_the_cores() {
    let folder = Folder::made();
    let line = "report --images i.npy --texts t.npy --resamples 0";
    let ran = folder.command(line, "100000", &[]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.starts_with("note: RAYON_NUM_THREADS = 100000: "), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1);
}
