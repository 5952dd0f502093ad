//! TREC runs: full lists give the numbers of the matrix. Pairs that a run does not hold are misses and make no hubs.

use super::common::{EACH, Folder, IMAGES, cosines, recalls, row, score_values};

/// Names that sort like their numbers.
fn image(at: usize) -> String {
    format!("i{at:03}")
}

fn text(at: usize) -> String {
    format!("t{at:03}")
}

/// The made data as two runs with the `k` best items of each query, with judgements, and as a matrix.
fn made(k: usize) -> Folder {
    let folder = Folder::new();
    let scores: Vec<Vec<f32>> =
        cosines().iter().map(|row| row.iter().map(|&s| s as f32).collect()).collect();
    let texts = IMAGES * EACH;
    let line = |query: String, mut list: Vec<(f32, String)>| {
        list.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let entry = |(rank, (score, doc)): (usize, (f32, String))| {
            format!("{query} Q0 {doc} {} {score} made\n", rank + 1)
        };
        list.into_iter().take(k).enumerate().map(entry).collect::<String>()
    };
    let i2t =
        (0..IMAGES).map(|i| line(image(i), (0..texts).map(|t| (scores[i][t], text(t))).collect()));
    folder.write("i2t.run", i2t.collect::<String>());
    let t2i =
        (0..texts).map(|t| line(text(t), (0..IMAGES).map(|i| (scores[i][t], image(i))).collect()));
    folder.write("t2i.run", t2i.collect::<String>());
    let judged = (0..texts).map(|t| format!("{} 0 {} 1\n", image(t / EACH), text(t)));
    folder.write("p.qrels", judged.collect::<String>());
    folder.npy("s.npy", texts, &score_values());
    folder
}

const BOTH: &str = "--run-i2t i2t.run --run-t2i t2i.run --pairs p.qrels";

#[test]
fn full_lists_say_what_the_matrix_says() {
    let folder = made(1000);
    let methods = "--method csls,is,nnn,auto";
    let (runs, matrix) = (
        folder.report(&format!("{BOTH} {methods}")),
        folder.report(&format!("--scores s.npy {methods}")),
    );
    for method in ["nns", "csls", "is", "nnn"] {
        assert_eq!(recalls(row(&runs, method)), recalls(row(&matrix, method)), "{method}");
        assert_eq!(row(&runs, method)["i2t"], row(&matrix, method)["i2t"], "{method}: ranks");
    }
    assert_eq!(runs["hubs"]["t2i"]["measures"], matrix["hubs"]["t2i"]["measures"]);
    let one = folder.report(&format!("--run-i2t i2t.run --pairs p.qrels {methods}"));
    let i2t = row(&one, "csls");
    assert_eq!((&i2t["i2t"], i2t["t2i"].is_null()), (&row(&matrix, "csls")["i2t"], true));
    let sum: f64 = recalls(i2t).iter().sum();
    assert!((i2t["rsum"].as_f64().unwrap() - sum).abs() < 1e-9);
}

/// A query without a judgement was asked too: hubs and corrections count it, whether there is another run or not.
#[test]
fn a_query_without_a_judgement_counts_the_same_beside_another_run() {
    let folder = made(1000);
    let judged = |query: &str, doc: &str| format!("{query} 0 {doc} 1\n");
    let of_images = (0..60).map(|t| judged(&image(t / EACH), &text(t)));
    let of_texts = (0..60).map(|t| judged(&text(t), &image(t / EACH)));
    folder.write("p.qrels", of_images.collect::<String>());
    folder.write("t2i.qrels", of_texts.collect::<String>());
    let both = folder.report(&format!("{BOTH} --method csls,is"));
    for (direction, qrels) in [("i2t", "p.qrels"), ("t2i", "t2i.qrels")] {
        let line = format!("--run-{direction} {direction}.run --pairs {qrels} --method csls,is");
        let one = folder.report(&line);
        for method in ["nns", "csls", "is"] {
            assert_eq!(row(&one, method)[direction], row(&both, method)[direction], "{method}");
        }
        assert_eq!(one["hubs"][direction]["measures"], both["hubs"][direction]["measures"]);
    }
    let queries = ["i2t", "t2i"].map(|direction| &row(&both, "nns")[direction]["queries"]);
    assert_eq!(queries, [20, 60]);
    let warnings = both["data"]["warnings"].to_string();
    assert!(warnings.contains("12 texts without an image, left out of recalls"), "{warnings}");
}

#[test]
fn a_run_offers_what_needs_no_other_scores() {
    let folder = made(1000);
    let got = folder.report(BOTH);
    assert_eq!(super::common::names(&got), ["nns", "csls", "is", "nnn", "auto"]);
}

/// Four entries per query: R@5 and R@10 count only these four, lists of ten hold no more, and there is no mean rank.
#[test]
fn what_a_run_does_not_hold_is_no_hit_and_no_hub() {
    let folder = made(4);
    let line = format!("report {BOTH} --method csls,is --resamples 0 --json");
    let short = folder.run(&line).json();
    for method in ["nns", "csls", "is"] {
        for (direction, lists) in [("i2t", IMAGES), ("t2i", IMAGES * EACH)] {
            let found = &row(&short, method)[direction];
            assert_eq!(found["r5"], found["r10"], "{method} {direction}");
            assert!(found["r10"].as_f64().unwrap() < 100.0 && found["mean_rank"].is_null());
            let side = &short["hubs"][direction]["histograms"];
            let of = |h: &&serde_json::Value| h["method"] == method && h["k"] == 10;
            let counts = side.as_array().unwrap().iter().find(of).unwrap()["counts"].clone();
            let places: u64 = counts
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c[0].as_u64().unwrap() * c[1].as_u64().unwrap())
                .sum();
            assert_eq!(places, 4 * lists as u64, "{method} {direction}");
            if method == "nns" {
                let worst = &short["hubs"][direction]["worst"][0]["count"];
                assert_eq!(worst, &counts.as_array().unwrap().last().unwrap()[0], "{direction}");
            }
        }
    }
    let full = made(1000).report(BOTH);
    assert_eq!(row(&short, "nns")["i2t"]["r1"], row(&full, "nns")["i2t"]["r1"]);
    // 24 images × 72 texts; four entries for each image, and for each text.
    let notes = short["data"]["notes"].to_string();
    for start in ["i2t: 1632 of 1728 pairs are not in the run; they count as ", "t2i: 1440 of"] {
        assert!(notes.contains(start), "{notes}");
    }
    assert!(!full["data"]["notes"].to_string().contains("not in the run"));
    let warnings = short["data"]["warnings"].to_string();
    assert!(warnings.contains("not in the run: misses at every K"), "{warnings}");
}

/// An image without a text is an item of t2i, but never a query.
#[test]
fn an_image_without_a_text_is_only_an_item() {
    let folder = Folder::new();
    folder.write("t2i.run", "a Q0 x 1 0.5 r\na Q0 z 2 0.4 r\nb Q0 z 1 0.9 r\nb Q0 y 2 0.8 r\n");
    folder.write("p.qrels", "a 0 x 1\nb 0 y 1\n");
    let report = folder.report("--run-t2i t2i.run --pairs p.qrels --method csls --csls-k 1");
    let plain = row(&report, "nns");
    assert_eq!((&plain["t2i"]["r1"], &plain["t2i"]["r5"]), (&50.0.into(), &100.0.into()));
    assert_eq!(report["data"]["images"], 3);
}

/// Pairs that the run lacks pushed entries out of lists as long as `--top`.
#[test]
fn what_a_run_lacks_takes_no_place() {
    let folder = Folder::new();
    let lines =
        [("a", "h", 0.6), ("a", "x", 0.5), ("b", "h", 0.9), ("b", "y", 0.5), ("c", "h", 0.9)];
    let lines = lines.map(|(query, doc, score)| format!("{query} Q0 {doc} 1 {score} r\n"));
    folder.write("r.run", lines.concat() + "c Q0 z 1 0.5 r\n");
    for method in ["csls --csls-k 1", "is", "nnn"] {
        let line =
            format!("rescore --run-i2t r.run --method {method} --direction i2t --top 2 --out -");
        let ran = folder.run(&line);
        assert_eq!(ran.out.lines().count(), 6, "{method}: {} {}", ran.out, ran.err);
    }
}

/// `rescore` writes exactly the entries that the run holds.
#[test]
fn a_rescored_run_holds_the_same_entries() {
    let folder = made(4);
    let ran =
        folder.run("rescore --run-t2i t2i.run --method csls --csls-k 2 --direction t2i --out -");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let entries = |run: &str| {
        let mut all: Vec<_> = run
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .map(|words| (words[0].to_owned(), words[2].to_owned()))
            .collect();
        all.sort();
        all
    };
    let given = String::from_utf8(folder.read("t2i.run")).unwrap();
    assert_eq!(entries(&ran.out), entries(&given));
    let first = |run: &str| {
        run.lines()
            .filter(|l| l.split(' ').nth(3) == Some("1"))
            .map(|l| l.split(' ').nth(2).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_ne!(first(&ran.out), first(&given), "the correction changes who comes first");
}
