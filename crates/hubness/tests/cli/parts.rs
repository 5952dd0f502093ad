//! `partial`, `merge`, `finish`: any split gives what one process gives.

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::common::{Folder, WIDTH, floats, made, recalls, row};

pub(crate) const SOURCE: &str = "--images i.npy --texts t.npy";
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

/// The hubs of merged lists are those of a report.
#[test]
fn hubs_of_parts_are_the_hubs_of_a_report() {
    let folder = Folder::made();
    folder.write("four.txt", "0\n1\n2\n3\n".repeat(18));
    let report = folder.report("--method nns");
    for (keep, direction) in [("top-texts", "i2t"), ("top-images", "t2i")] {
        joined(&folder, &format!("--keep {keep} --top 10"), &TREE);
        let found = folder.run("finish all.part --hubs").json();
        assert_eq!(found["measures"], report["hubs"][direction]["measures"], "{direction}");
        let worst = &report["hubs"][direction]["worst"][0];
        let count = found["worst"][0]["count"].as_u64().unwrap();
        assert!(
            count > 1
                && worst.as_object().unwrap().values().any(|v| v == &found["worst"][0]["count"]),
            "{worst} {found}"
        );
    }
    // With four images, every list of ten holds all.
    folder.npy("four.npy", WIDTH, &made().0[..4 * WIDTH]);
    let four = "--images four.npy --texts t.npy";
    let of_four = folder.report(&format!("{four} --pairs four.txt --method nns"));
    folder.run(&format!("partial {four} --keep top-images --out few.part")).good();
    let few = folder.run("finish few.part --hubs").json();
    assert_eq!(few["measures"], of_four["hubs"]["t2i"]["measures"]);
    folder.run(&format!("partial {SOURCE} --keep top-texts --top 4 --out few.part")).good();
    let few = folder.run("finish few.part --hubs").json();
    assert_eq!(few["measures"].as_array().unwrap().len(), 1, "lists of four have no N_5");
}

/// A kilobyte may say that there are billions of items: not each of them gets a name or a count.
#[test]
fn a_small_part_of_many_items() {
    let folder = Folder::made();
    folder.run(&format!("partial {SOURCE} --keep top-texts --top 1 --out few.part")).good();
    let few = folder.read("few.part");
    let tensors = SafeTensors::deserialize(&few).unwrap().tensors();
    let (_, metadata) = SafeTensors::read_metadata(&few).unwrap();
    let mut about = metadata.metadata().clone().unwrap();
    for text in about.values_mut() {
        *text = text.replace("[24,72]", "[24,4294967295]");
        *text = text.replace(r#""end":72"#, r#""end":4294967295"#);
    }
    folder.write("many.part", safetensors::serialize(tensors, Some(about)).unwrap());
    assert_eq!(folder.run("finish many.part").good().out, folder.run("finish few.part").good().out);
    let ran = folder.run("finish many.part --hubs");
    let want = "error: many.part: expected at most 268435456 items, got 4294967295\n";
    assert_eq!((ran.code, &ran.err[..]), (Some(2), want));
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
    folder.run(&format!("{finish} --out ranks.json")).good();
    let text = std::fs::read(folder.path().join("ranks.json")).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&text).unwrap(), found);
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
        // Lists have row numbers, so names did nothing.
        (
            "finish some.part --image-names names.txt",
            "options of the input: expected --pair-scores beside them, got none",
        ),
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
            &format!("{partial} --keep top-texts --csls-k 3"),
            "the argument '--keep <KEEP>' cannot be used with",
        ),
        (&format!("{partial} --keep top-texts --top 0"), "--top: expected at least 1 item, got 0"),
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

/// Only rows of equal ranges were compared: other cuts of other files, or of other lengths, were joined.
#[test]
fn parts_of_other_files_or_lengths_are_refused() {
    let folder = Folder::made();
    folder.npy("v2.npy", WIDTH, &made().0.iter().map(|v| v + 1.0).collect::<Vec<_>>());
    let part = |images: &str, options: &str, out: &str| {
        let keep = "--texts t.npy --keep top-images --top 4294967295"; // no more than there are
        folder.run(&format!("partial --images {images} {keep} {options} --out {out}")).good();
    };
    part("i.npy", "--rows 0..10", "a.part");
    for (images, options, what) in [
        ("i.npy", "--rows 10..24 --raw", "setting of --raw"),
        ("v2.npy", "--rows 10..24", "images"),
    ] {
        part(images, options, "b.part");
        let ran = folder.run("merge a.part b.part --out x.part");
        let want = format!("error: b.part: expected the same {what} as other parts, got others\n");
        assert_eq!((ran.code, ran.err), (Some(2), want));
    }
    // Scores of true pairs belong to their files too: only `finish` found that they were others.
    for (images, what) in [("i.npy --raw", "setting of --raw"), ("v2.npy", "images")] {
        let pairs = format!("partial --images {images} --texts t.npy --keep pair-scores");
        folder.run(&format!("{pairs} --out pairs.part")).good();
        let ranks = format!("partial {SOURCE} --keep ranks --pair-scores pairs.part");
        let ran = folder.run(&format!("{ranks} --out x.part"));
        let want = format!("error: pairs.part: expected the same {what} as here, got others\n");
        assert_eq!((ran.code, ran.err), (Some(2), want));
    }
    part("i.npy", "--rows 10..24", "b.part");
    folder.run("merge a.part b.part --out all.part").good();
    let found = folder.run("finish all.part").good().out;
    folder.run(&format!("partial {SOURCE} --keep top-images --top 24 --out one.part")).good();
    assert_eq!(folder.run("finish one.part").good().out, found);
}

/// The numbers of a tensor of a finished correction.
pub(crate) fn tensor(folder: &Folder, file: &str, name: &str) -> Vec<f64> {
    let bytes = folder.read(file);
    let all = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let (values, _) = all.tensor(name).unwrap().data().as_chunks();
    values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// What `hubness export` subtracts: the last value of each vector, from its centre.
pub(crate) fn exported(folder: &Folder, options: &str, direction: &str) -> Vec<f32> {
    let line =
        format!("export {SOURCE} {options} --direction {direction} --centre 0 --out x --force");
    assert_eq!(folder.run(&line).code, Some(0));
    let (width, values) = floats(&folder.read("x/items.npy"));
    values.chunks(width).map(|row| row[width - 1]).collect()
}

#[test]
fn biases_of_parts_are_the_biases_of_an_export() {
    let folder = Folder::made();
    for (method, cut) in [
        ("csls --csls-k 4", true),
        ("nnn --nnn-k 5 --nnn-alpha 0.3", true),
        ("is --is-beta 10", false), // one cell: parts of sums are cut at multiples of 4096
    ] {
        for direction in ["i2t", "t2i"] {
            let options = format!("--method {method}");
            let fit = format!("{options} --direction {direction}");
            match cut {
                true => joined(&folder, &fit, &TREE),
                false => drop(folder.run(&format!("partial {SOURCE} {fit} --out all.part")).good()),
            }
            folder.run(&format!("finish all.part {fit} --out b.safetensors")).good();
            let got: Vec<f32> =
                tensor(&folder, "b.safetensors", "bias").iter().map(|&b| -b as f32).collect();
            assert_eq!(got, exported(&folder, &options, direction), "{fit}");
        }
    }
}

/// Against the formulas, on cosines in f64.
#[test]
fn what_other_corrections_take_from_each_item() {
    let folder = Folder::made();
    let unit = |name: &str| {
        let (width, values) = floats(&folder.read(name));
        let row = |row: &[f32]| {
            let norm = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            row.iter().map(|&v| f64::from(v) / norm).collect::<Vec<_>>()
        };
        values.chunks(width).map(row).collect::<Vec<_>>()
    };
    let (images, texts) = (unit("i.npy"), unit("t.npy"));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // Texts are the queries: the scores of each image, largest first.
    let scores = |image: &Vec<f64>| {
        let mut scores: Vec<f64> = texts.iter().map(|text| dot(image, text)).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        scores
    };
    let scores: Vec<_> = images.iter().map(scores).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let finished = |fit: &str, more: &str| {
        folder.run(&format!("partial {SOURCE} {fit} --direction t2i --out all.part")).good();
        let line = format!("finish all.part {fit} --direction t2i {more} --out f.safetensors");
        folder.run(&line).good();
    };
    let check = |name: &str, of: &dyn Fn(&Vec<f64>) -> f64| {
        let got = tensor(&folder, "f.safetensors", name);
        assert_eq!(got.len(), images.len());
        for (got, want) in got.iter().zip(scores.iter().map(of)) {
            assert!((got - want).abs() < 1e-5, "{name}: {got} for {want}");
        }
    };
    finished("--method ls --local-k 3", "");
    check("width", &|s| 1.0 - s[2]);
    finished("--method nicdm --local-k 3", "");
    check("width", &|s| 1.0 - mean(&s[..3]));
    finished("--method mp", "");
    check("mean", &|s| mean(s));
    check("deviation", &|s| {
        mean(&s.iter().map(|x| (x - mean(s)).powi(2)).collect::<Vec<_>>()).sqrt()
    });
    // An image that is equally far from all texts.
    folder.npy("zero.npy", WIDTH, &[0.0; WIDTH]);
    let fit = "--method mp --direction t2i";
    folder.run(&format!("partial --images zero.npy --texts t.npy {fit} --out z.part")).good();
    folder.run(&format!("finish z.part {fit} --out z.safetensors")).good();
    assert_eq!(tensor(&folder, "z.safetensors", "deviation"), [1e-6]);
    // The second phase of QB-Norm: the best image of each text.
    joined(&folder, "--keep top-images --top 1", &TREE);
    std::fs::rename(folder.path().join("all.part"), folder.path().join("best.part")).unwrap();
    finished("--method qbnorm --qbnorm-beta 5", "--best best.part");
    check("log_sum", &|s| s.iter().map(|x| (5.0 * x).exp()).sum::<f64>().ln());
    let best = |text: &Vec<f64>| {
        let score = |image: usize| dot(&images[image], text);
        (0..images.len()).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap()
    };
    let active: Vec<_> = texts.iter().map(best).collect();
    let want: Vec<_> =
        (0..images.len()).map(|image| f64::from(u8::from(active.contains(&image)))).collect();
    assert!(want.contains(&0.0) && want.contains(&1.0));
    assert_eq!(tensor(&folder, "f.safetensors", "active"), want);
}

/// An export of finished parts has the files of an export that fits the correction itself.
#[test]
fn biases_of_parts_are_exported() {
    let folder = Folder::made();
    for direction in ["i2t", "t2i"] {
        let fit = format!("--method csls --csls-k 4 --direction {direction}");
        joined(&folder, &fit, &TREE);
        folder.run(&format!("finish all.part {fit} --out b.safetensors")).good();
        assert_eq!(folder.run(&format!("export {SOURCE} {fit} --out want --force")).code, Some(0));
        let export = format!("export {SOURCE} --direction {direction} --force");
        let told = folder.run(&format!("{export} --biases b.safetensors --out got")).good().out;
        assert!(told.contains("of width 9 in items.npy (biases of parts)"), "{told}");
        for file in ["items.npy", "queries.npy", "expected.npy"] {
            let [got, want] = ["got", "want"].map(|of| folder.read(&format!("{of}/{file}")));
            assert!(got == want, "{direction}, {file}");
        }
        let about: serde_json::Value =
            serde_json::from_slice(&folder.read("got/export.json")).unwrap();
        assert_eq!((&about["method"], &about["setting"]), (&"biases".into(), &().into()));
        let centred = folder.run(&format!("{export} --biases b.safetensors --centre 0 --out x"));
        assert_eq!(centred.code, Some(0), "{}", centred.err);
        let last = |file: &str| {
            let (width, values) = floats(&folder.read(file));
            values.chunks(width).map(|row| row[width - 1]).sum::<f32>()
        };
        assert!(last("got/items.npy").abs() < 1e-4 && last("x/items.npy").abs() > 1e-2);
    }
    folder.run(&format!("partial {SOURCE} --method mp --direction t2i --out m.part")).good();
    folder.run("finish m.part --method mp --direction t2i --out m.safetensors").good();
    let export = format!("export {SOURCE} --direction i2t --out y --biases");
    folder.npy("v2.npy", WIDTH, &made().0.iter().map(|v| v + 1.0).collect::<Vec<_>>());
    let bias = TensorView::new(Dtype::F64, vec![24], &[0; 192]).unwrap();
    folder.write("old.safetensors", safetensors::serialize([("bias", bias)], None).unwrap());
    // The other side may be another file.
    let square = "--texts i.npy --direction i2t";
    folder.run(&format!("partial --images i.npy {square} --method csls --out s.part")).good();
    folder.run("finish s.part --method csls --direction i2t --out s.safetensors").good();
    let ran =
        folder.run(&format!("export --images v2.npy {square} --biases s.safetensors --out square"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let t2i = "--texts t.npy --direction t2i --out y --biases";
    for (line, want) in [
        (
            format!("{export} b.safetensors"),
            "b.safetensors: expected biases of direction i2t, got t2i",
        ),
        (
            format!("export --images i.npy --raw {t2i} b.safetensors"),
            "b.safetensors: expected biases of parts with --raw true, got false",
        ),
        (
            format!("export --images v2.npy {t2i} b.safetensors"),
            "b.safetensors: expected biases of the rows of v2.npy, got biases of other rows",
        ),
        (
            format!("export --images i.npy {t2i} old.safetensors"),
            "old.safetensors: expected biases that name their direction (make them again by `hubness finish`), got biases without one",
        ),
        (
            format!("{export} m.safetensors"),
            "m.safetensors: expected a tensor `bias` (csls, nnn, is, dual-is), got deviation, mean",
        ),
        (format!("{export} i.npy"), "i.npy: expected a file of `hubness finish --method`, got "),
        (
            format!("{export} b.safetensors --method csls"),
            "the argument '--biases <FILE.safetensors>' cannot be used with",
        ),
        (
            format!("{export} b.safetensors --csls-k 3"),
            "the argument '--biases <FILE.safetensors>' cannot be used with",
        ),
    ] {
        let ran = folder.run(&line);
        assert!(ran.err.contains(want), "{line}: {}", ran.err);
        assert_eq!(ran.code, Some(2), "{line}");
        assert!(!folder.path().join("y").exists(), "{line}");
    }
}

#[test]
fn corrections_that_do_not_fit_are_one_line() {
    let folder = Folder::made();
    let partial = format!("partial {SOURCE} --direction t2i");
    folder.run(&format!("{partial} --method csls --out c.part")).good();
    folder.run(&format!("{partial} --method qbnorm --out q.part")).good();
    folder.npy("one.npy", WIDTH, &made().1[..WIDTH]);
    let one = "partial --images i.npy --texts one.npy --direction t2i";
    folder.run(&format!("{one} --method is --out one.part")).good();
    let finish = "finish c.part --direction t2i --method";
    for (line, want) in [
        (
            format!("{partial} --method sinkhorn --out x.part"),
            "--method: expected csls, nnn, is, qbnorm, dual-is, dual-dis, ls, nicdm or mp, got sinkhorn",
        ),
        (
            format!("{partial} --method csls+rgm --out x.part"),
            "--method: expected csls, nnn, is, qbnorm, dual-is, dual-dis, ls, nicdm or mp, got csls+rgm",
        ),
        (
            format!("{partial} --method is --is-beta auto --out x.part"),
            "--is-beta: expected one number (`hubness report` chooses one), got auto",
        ),
        (
            format!("{partial} --raw --method ls --out x.part"),
            "--method ls: expected cosines (of embeddings of unit length), got other scores",
        ),
        (
            format!("{partial} --raw --method nicdm --out x.part"),
            "--method nicdm: expected cosines (of embeddings of unit length), got other scores",
        ),
        (
            "finish one.part --direction t2i --method is --out x.safetensors".into(),
            "one.part: expected a bank of at least 2 queries, got 1",
        ),
        (
            format!("{partial} --method mp --cols 0..40 --out x.part"),
            "part: expected texts that begin and end at multiples of 4096 or at the end, 72, for sums, got 0 to 40",
        ),
        (format!("{finish} csls --out x"), "--out: expected FILE.safetensors, got x"),
        (
            format!("{finish} csls --csls-k 5 --out x.safetensors"),
            "c.part: expected the 5 best texts of every image, got the 10 best texts of every image",
        ),
        (
            format!("{finish} mp --out x.safetensors"),
            "c.part: expected mean and deviation of every image, got the 10 best texts",
        ),
        (
            "finish q.part --direction t2i --method qbnorm --out x.safetensors".into(),
            "--best: expected the merged lists of the best items of each query, got none",
        ),
        (
            "finish q.part --direction t2i --method qbnorm --best c.part --out x.safetensors"
                .into(),
            "c.part: expected the 1 best images of every text, got the 10 best texts of every image",
        ),
    ] {
        let ran = folder.run(&line);
        assert!(ran.err.starts_with(&format!("error: {want}")), "{line}: {}", ran.err);
        assert_eq!((ran.code, ran.err.lines().count(), &ran.out[..]), (Some(2), 1, ""), "{line}");
        assert!(
            !folder.path().join("x.part").exists() && !folder.path().join("x.safetensors").exists()
        );
    }
}

/// Roundings can be forced, so that processors of different kinds make one result; unforced they are refused.
#[test]
fn parts_of_processors_of_different_kinds() {
    let folder = Folder::made();
    let partial = |fused: &str, cols: &str, out: &str| {
        let line = format!("partial {SOURCE} --keep top-texts --top 7 --cols {cols} --out {out}");
        folder.forced(&line, fused)
    };
    let mut seen = Vec::new();
    for fused in ["0", "1"] {
        for (cols, out) in [("0..30", "a.part"), ("30..72", "b.part")] {
            assert_eq!(partial(fused, cols, out).code, Some(0));
        }
        folder.run("merge a.part b.part --out all.part").good();
        let found = folder.run("finish all.part").good().out;
        assert_eq!(partial(fused, "0..72", "one.part").code, Some(0));
        assert_eq!(folder.run("finish one.part").good().out, found, "{fused}");
        seen.push(found);
    }
    assert_ne!(seen[0], seen[1], "other roundings, other last digits");
    assert_eq!(partial("0", "30..72", "b.part").code, Some(0));
    let ran = folder.run("merge a.part b.part --out x.part");
    let want = "error: b.part: expected scores of processors of one kind, Fused, got Separate\n";
    assert_eq!((ran.code, &ran.err[..]), (Some(2), want));
    let ran = partial("yes", "0..72", "x.part");
    assert_eq!((ran.code, &ran.err[..]), (Some(2), "error: ITM_FUSED: expected 0 or 1, got yes\n"));
}

/// The help named sources that parts refuse.
#[test]
fn help_has_no_option_that_is_refused() {
    let folder = Folder::new();
    for command in ["partial", "finish"] {
        let help = folder.run(&format!("{command} --help")).good().out;
        assert!(help.contains("--images <FILE>") && help.contains("--raw"), "{help}");
        for refused in ["--scores", "--run-i2t", "--run-t2i", "--bank-images", "--bank-texts"] {
            assert!(!help.contains(&format!("{refused} <")), "{command}: {help}");
        }
    }
}
