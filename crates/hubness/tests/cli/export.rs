//! `export`: the files, checked by brute force.

use super::common::{EACH, Folder, IMAGES, WIDTH, floats, made, parsed};
use super::options::banked;

const SOURCE: &str = "export --images i.npy --texts t.npy --out x --force";

/// The ten largest inner products of every query, in f64, the smaller index first.
fn brute_force(items: &[f32], queries: &[f32]) -> Vec<i32> {
    let score = |q: &[f32], v: &[f32]| {
        q.iter().zip(v).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
    };
    let best = |q: &[f32]| {
        let scores: Vec<f64> = items.chunks(WIDTH + 1).map(|v| score(q, v)).collect();
        let mut order: Vec<i32> = (0..scores.len() as i32).collect();
        let of = |item: i32| scores[item as usize];
        order.sort_by(|&a, &b| of(b).total_cmp(&of(a)).then(a.cmp(&b)));
        order.truncate(10);
        order
    };
    queries.chunks(WIDTH + 1).flat_map(best).collect()
}

#[test]
fn plain_search_of_the_vectors_is_the_corrected_search() {
    let folder = banked();
    for direction in ["i2t", "t2i"] {
        let mut seen = Vec::new();
        for options in [
            "--method nns",
            "--method csls",
            "--method is --is-beta 10",
            "--method nnn --nnn-k 5",
            "--method sinkhorn",
            "--method csls --bank-images bi.npy --bank-texts bt.npy",
            "--method csls --raw",
        ] {
            let ran = folder.run(&format!("{SOURCE} {options} --direction {direction}"));
            assert_eq!(ran.code, Some(0), "{options}: {}", ran.err);
            let (items, queries) =
                (floats(&folder.read("x/items.npy")), floats(&folder.read("x/queries.npy")));
            let (k, expected) = parsed(&folder.read("x/expected.npy"), "<i4", i32::from_le_bytes);
            assert_eq!((items.0, queries.0, k), (WIDTH + 1, WIDTH + 1, 10));
            assert_eq!(brute_force(&items.1, &queries.1), expected, "{options} {direction}");
            assert!(queries.1.chunks(WIDTH + 1).all(|q| q[WIDTH] == 1.0));
            assert!(!seen.contains(&expected), "{options} {direction}: other lists than before");
            seen.push(expected);
            let about: serde_json::Value =
                serde_json::from_slice(&folder.read("x/export.json")).unwrap();
            assert_eq!((&about["dim"], &about["direction"]), (&9.into(), &direction.into()));
            let setting = match options {
                "--method nns" => "plain",
                with if with.contains("bank") => "held_out",
                _ => "transductive",
            };
            assert_eq!(about["setting"], setting, "{options}");
        }
    }
}

/// Numbers of rows that fit no pairs were refused, and copies of an image left out.
#[test]
fn every_row_stays_without_pairs() {
    let (folder, (images, texts)) = (Folder::made(), made());
    folder.npy("t7.npy", WIDTH, &texts[..7 * WIDTH]);
    let twice: Vec<f32> = images.chunks(WIDTH).flat_map(|row| [row, row].concat()).collect();
    folder.npy("i2.npy", WIDTH, &twice);
    for (images, texts, [n, m]) in
        [("i.npy", "t7.npy", [IMAGES, 7]), ("i2.npy", "t.npy", [2 * IMAGES, IMAGES * EACH])]
    {
        let input = format!("--images {images} --texts {texts} --direction t2i");
        let ran = folder.run(&format!("export {input} --out x --force"));
        assert_eq!((ran.code, ran.err.contains("pairs")), (Some(0), false), "{}", ran.err);
        assert_eq!(floats(&folder.read("x/items.npy")).1.len(), n * (WIDTH + 1));
        assert_eq!(folder.run(&format!("rescore {input} --out u.npy")).code, Some(0));
        assert_eq!(floats(&folder.read("u.npy")).1.len(), n * m);
    }
}

#[test]
fn the_setting_is_in_the_description() {
    let folder = Folder::made();
    let ran = folder.run(&format!("{SOURCE} --method is --is-beta 12 --direction t2i"));
    assert!(ran.out.starts_with(&format!("x: {IMAGES} images of width 9 in items.npy")));
    let about: serde_json::Value = serde_json::from_slice(&folder.read("x/export.json")).unwrap();
    assert_eq!((&about["method"], &about["params"]["beta"]), (&"is".into(), &12.into()));
}

#[test]
fn what_is_no_inner_product_is_refused() {
    let folder = Folder::made();
    for (options, line) in [
        (
            "--method csls+rgm --rgm-lambda 2",
            "--method: expected csls, is, nnn or sinkhorn: a matching has no vectors, got csls+rgm",
        ),
        (
            "--method mp",
            "export: expected a correction with one number per item (CSLS, IS, NNN, Sinkhorn), got one that depends on query or score",
        ),
        (
            "--method auto",
            "--method: expected one correction with its number (`hubness report --method auto` chooses one), got auto",
        ),
    ] {
        let ran = folder.run(&format!("{SOURCE} {options} --direction t2i"));
        assert_eq!(ran.code, Some(2));
        assert_eq!(ran.err.lines().last(), Some(&format!("error: {line}")[..]));
        assert!(!folder.path().join("x").exists(), "{options}: nothing is written");
    }
    folder.npy("s.npy", 3, &[0.1; 9]);
    let ran = folder.run("export --scores s.npy --direction t2i --out x");
    let line =
        "error: export: expected --images and --texts: an export needs embeddings, got scores\n";
    assert_eq!((ran.code, &ran.err[..]), (Some(2), line));
}

/// Old vectors beside a new description were the remains of a killed export: now the whole folder is replaced, and a file of
/// another export is refused by its hash.
#[test]
fn an_export_is_one_folder() {
    let folder = Folder::made();
    let line = "export --images i.npy --texts t.npy --direction t2i --out x";
    assert_eq!(folder.run(line).code, Some(0));
    let old = ["items.npy", "queries.npy", "expected.npy"].map(|f| folder.read(&format!("x/{f}")));
    let again = folder.run(line);
    let want = "error: x: expected a new or empty folder, or --force, got a folder with files\n";
    assert_eq!((again.code, &again.err[..]), (Some(2), want));
    let report = "report --images x/items.npy --texts x/queries.npy --raw --resamples 0";
    assert_eq!(folder.run(report).code, Some(0));

    // Killed before the new folder had its name.
    for (name, text) in [("new-folder.lock", "17"), ("new/items.npy", "half")] {
        std::fs::create_dir_all(folder.path().join("x.tmp/new")).unwrap();
        folder.write(&format!("x.tmp/{name}"), text);
    }
    let forced = folder.run(&format!("{line} --method is --is-beta 9 --force"));
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert!(!folder.path().join("x.tmp").exists(), "nothing is left");
    assert_ne!(folder.read("x/items.npy"), old[0]);
    assert_eq!(folder.run(report).code, Some(0));
    folder.write("x/items.npy", &old[0]);
    let mixed = folder.run(report);
    assert_eq!(mixed.code, Some(2));
    assert!(mixed.err.starts_with("error: x/items.npy: expected SHA-256 "), "{}", mixed.err);
    assert!(mixed.err.contains(" as in x/export.json, got ") && mixed.err.lines().count() == 1);

    folder.write("x/notes.txt", "mine");
    let other = folder.run(&format!("{line} --force"));
    let want = "error: x: expected a folder of only items.npy, queries.npy, expected.npy, export.json, got notes.txt\n";
    assert_eq!((other.code, &other.err[..]), (Some(2), want));
}

/// Shards of the items around one centre are the rows of one export. By default each is centred on its own mean, and their scores
/// are shifted against each other.
#[test]
fn shards_around_one_centre_are_one_index() {
    let folder = banked();
    let images = floats(&folder.read("i.npy")).1;
    let (first, second) = images.split_at(IMAGES / 2 * WIDTH);
    folder.npy("i0.npy", WIDTH, first);
    folder.npy("i1.npy", WIDTH, second);
    let export = |images: &str, centre: &str| {
        let line = format!(
            "export --images {images} --texts t.npy --bank-texts bt.npy --direction t2i --out x --force {centre}"
        );
        let ran = folder.run(&line);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let about = serde_json::from_slice::<serde_json::Value>(&folder.read("x/export.json"));
        (floats(&folder.read("x/items.npy")).1, about.unwrap()["centre"].to_string())
    };
    let (whole, centre) = export("i.npy", "");
    let centre = format!("--centre {centre}");
    let shards = |centre: &str| [export("i0.npy", centre).0, export("i1.npy", centre).0].concat();
    assert_eq!(shards(&centre), whole);
    assert_ne!(shards(""), whole);
    let ran = folder.run(&format!("{SOURCE} --direction t2i --centre inf"));
    let line = "error: --centre: expected a finite number, got inf\n";
    assert_eq!((ran.code, &ran.err[..]), (Some(2), line));
}
