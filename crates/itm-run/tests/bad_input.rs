//! Bad input: one line that names file and place, exit code 2, nothing overwritten.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;
#[path = "common/refused.rs"]
mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use common::{files, itm, run, set, small_configs, text};
use refused::{change, copy, holds, refused};

#[test]
fn command_lines() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    fs::create_dir(dir.path().join("taken")).unwrap();
    fs::write(dir.path().join("taken/mine.txt"), "mine").unwrap();
    let reproduce = |rest: &[&'static str]| [&["reproduce", "small"], rest].concat();
    let cases: [(Vec<&str>, &[&str]); 32] = [
        (reproduce(&["--seeds", "0"]), &["--seeds", "1 to 1000", "got 0"]),
        (reproduce(&["--seeds", "18446744073709551615"]), &["--seeds", "1 to 1000"]),
        (reproduce(&["--jobs", "0"]), &["--jobs", "1 to 256", "got 0"]),
        (reproduce(&["--seeds", "three"]), &["--seeds", "'three'"]),
        (reproduce(&["--rows", "Ful"]), &["--rows", "Full", "`Ful`"]),
        (reproduce(&["--rows", ""]), &["--rows", "Full", "``"]),
        (reproduce(&["--table", "9"]), &["--table", "got 9"]),
        (reproduce(&["--figure", "9"]), &["--figure", "figure 4, figure 5", "got 9"]),
        (reproduce(&["--table", "1", "--figure", "4"]), &["'--table <N>'", "'--figure <N>'"]),
        (reproduce(&["--table", "1", "--seeds", "3"]), &["--seeds", "a multiple of 2", "got 3"]),
        (reproduce(&["--table", "4", "--rows", "w/o MMM"]), &["--rows", "p = 1/1000", "`w/o MMM`"]),
        (reproduce(&["--rescore", "csls,best"]), &["--rescore", "csls, is, rgm", "`best`"]),
        (reproduce(&["--rescore", "is,is"]), &["--rescore", "each name once", "`is` twice"]),
        (reproduce(&["--backend", "gpu"]), &["backend", "wgpu", "`gpu`"]),
        (reproduce(&["--precision", "half"]), &["--precision", "f32 or bf16", "'half'"]),
        (
            reproduce(&["--precision", "bf16"]),
            &[
                "small.toml, row.",
                "--precision",
                "no ViT, BERT, CLIP, SigLIP or UNITER",
                "got bf16",
            ],
        ),
        (reproduce(&["--data", "taken"]), &["--data", "Scenes", "`taken`"]),
        (reproduce(&["--out", "taken"]), &["taken", "new or empty", "--resume"]),
        (reproduce(&["--out", "taken/mine.txt"]), &["taken/mine.txt"]),
        (
            reproduce(&["--out", "absent", "--resume"]),
            &["--resume", "a run in absent", "no such folder"],
        ),
        (reproduce(&["--resume"]), &["--resume", "a run of small", "none"]),
        (reproduce(&["--unknown"]), &["'--unknown'"]),
        (vec!["reproduce"], &["<TARGET>"]),
        (vec!["reproduce", "nothing"], &["target", "small", "`nothing`"]),
        (vec!["train"], &["'train'"]),
        (vec!["data", "check", "absent"], &["absent: No such file"]),
        (vec!["scenes"], &["--out", "--sheet", "--embeddings"]),
        (vec!["scenes", "--embeddings", "taken"], &["taken", "new or empty"]),
        (vec!["scenes", "--out", "taken"], &["taken", "new or empty"]),
        (vec!["scenes", "--out", "taken/mine.txt"], &["taken/mine.txt", "got a file"]),
        (vec!["scenes", "--out", "new", "--test", "0"], &["--test", "1 to", "got 0"]),
        (vec!["scenes", "--sheet", "--pixels", "9"], &["--pixels", "16 to", "got 9"]),
    ];
    for (args, parts) in cases {
        holds(&refused(&configs, &args), parts);
    }
    holds(&refused(&dir.path().join("nowhere"), &["list"]), &["nowhere: No such file"]);
    assert_eq!(files(&dir.path().join("taken")), [("mine.txt".into(), b"mine".into())]);
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "a refused command left something: {left:?}");
}

#[test]
fn configs_with_unknown_missing_and_impossible_keys() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let good = fs::read_to_string(configs.join("small.toml")).unwrap();
    let cut = |key: &str| {
        let lines = good.lines().filter(|l| l.split('=').next().is_none_or(|k| k.trim() != key));
        lines.collect::<Vec<_>>().join("\n")
    };
    let row = |line: &str| good.replace("[row.\"w/o MMM\"]", &format!("[row.\"w/o MMM\"]\n{line}"));
    let epochs = 1 + good.lines().position(|line| line.starts_with("epochs")).unwrap();
    let line_of_epochs = format!("broken.toml line {epochs}:");
    let cases: [(String, &[&str]); 17] = [
        (good.replace("[model]", "colour = 1\n[model]"), &["target", "colour"]),
        (format!("colour = 1\n{good}"), &["`colour`"]),
        (format!("{good}\n[colours]\nred = 1"), &["`colours`"]),
        (set(&good, "momentum", "0.9\ncolour = 1"), &["sampler", "colour"]),
        (set(&good, "pixels", "48\ncolour = 1"), &["target", "scenes", "colour"]),
        (row("sampler.colour = 1"), &["row.w/o MMM", "sampler", "colour"]),
        (row("colour = 1"), &["row.w/o MMM", "colour"]),
        (cut("preset"), &["row.Full", "missing field"]),
        (cut("seeds"), &["target", "missing", "seeds"]),
        (cut("pixels"), &["target", "missing", "pixels"]),
        (good.replace("[train]", "[trainer]"), &["`trainer`"]),
        (set(&good, "negatives", "\"easiest\""), &["sampler", "easiest"]),
        (set(&good, "batch", "\"many\""), &["train", "batch", "string"]),
        (set(&good, "batch", "0"), &["row.Full", "train.batch", "at least 1"]),
        (set(&good, "batch", "301"), &["row.Full", "one batch of 301", "got 300"]),
        (set(&good, "max_words", "0"), &["target.max_words", "got 0"]),
        (set(&good, "epochs", "= 4"), &[&line_of_epochs, "TOML"]),
    ];
    for (broken, parts) in cases {
        fs::write(configs.join("broken.toml"), broken).unwrap();
        // The command names another row than the broken one, but the file is refused.
        let line = refused(&configs, &["reproduce", "broken", "--rows", "Full", "--out", "out"]);
        holds(&line, &["broken.toml"]);
        holds(&line, parts);
        assert!(!dir.path().join("out").exists(), "{line}");
    }
}

#[test]
fn targets_that_extend_others_and_papers_that_nobody_makes() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let extends = |name: &str, other: &str| {
        let text = format!("extends = \"{other}\"\n[target]\nmethod = \"fne\"\n");
        fs::write(configs.join(format!("{name}.toml")), text).unwrap();
    };
    let refused = |parts: &[&str]| {
        let line = refused(&configs, &["reproduce", "own", "--out", "out"]);
        holds(&line, parts);
        assert!(!dir.path().join("out").exists(), "{line}");
    };
    extends("other", "own");
    extends("own", "other");
    refused(&["other.toml, extends", "back to itself", "own → other → own"]);
    extends("own", "small-too");
    refused(&["own.toml, extends", "one of other, own, small", "`small-too`"]);
    fs::copy(shipped("hal-scenes.toml"), configs.join("other.toml")).unwrap();
    extends("own", "other");
    refused(&["own.toml, extends", "method \"fne\"", "`other`, whose method is \"hal\""]);

    extends("own", "small");
    change(&configs.join("own.toml"), |b| [&b[..], b"tables = \"none\"\n"].concat());
    refused(&["own.toml, target.tables", "papers: fne, hal, naaf", "got `none`"]);
    extends("own", "small");
    let (about, paper) = (configs.join("papers/fne.toml"), configs.join("papers/fne.csv"));
    change(&paper, |b| [&b[..], b"9,own,,,,,,1,2,3,4,5,6,\n"].concat());
    refused(&["papers/fne.csv line 65, table: expected one of 1, 2, 3, 4, 5,", "`9`"]);
    change(&about, |b| [&b[..], b"9 = 1\n"].concat());
    refused(&["papers/fne.toml, lines", "(1, 2, 3, 4, 5)", "`unmade`", "got 9"]);
    change(&paper, |b| [&b[..], b"9,own,,,,,,1,2,3,4,5,6,\n"].concat());
    change(&configs.join("own.toml"), |b| [&b[..], b"[row.Full]\ntrain.botch = 1\n"].concat());
    refused(&["papers/fne.csv line 66: expected each row once, got `own` of line 65 again"]);
    fs::copy(shipped("papers/fne.toml"), &about).unwrap();
    fs::copy(shipped("papers/fne.csv"), &paper).unwrap();
    refused(&["own.toml, row.Full", "botch"]);
    change(&configs.join("own.toml"), |_| b"extends = \"small\"\ntarget.method = \"fme\"\n".into());
    refused(&["own.toml, extends", "method \"fme\""]);
    change(&configs.join("small.toml"), |b| {
        set(&String::from_utf8(b).unwrap(), "method", "\"fme\"").into_bytes()
    });
    refused(&["own.toml, target.method", "one of fne, hal", "`fme`"]);
}

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(file)
}

/// A target that reads a folder, and such a folder.
fn exported(dir: &Path) -> (PathBuf, PathBuf) {
    let configs = small_configs(dir);
    let small = fs::read_to_string(configs.join("small.toml")).unwrap();
    let own = set(&set(&small, "dataset", "\"flickr8k\""), "epochs", "1");
    let own = set(&own, "dims", "4");
    fs::write(configs.join("own.toml"), own).unwrap();
    let sizes = ["--train", "8", "--val", "4", "--test", "4", "--pixels", "32"];
    let output = run(&configs, &[&["scenes", "--out", "scenes"][..], &sizes].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    (configs, dir.join("scenes"))
}

/// A `.npy` file, format 1.0.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend(data);
    bytes
}

fn without_lines(bytes: Vec<u8>, drop: impl Fn(usize) -> bool) -> Vec<u8> {
    let text = String::from_utf8(bytes).unwrap();
    let kept = text.lines().enumerate().filter(|&(n, _)| !drop(n));
    kept.map(|(_, line)| format!("{line}\n")).collect::<String>().into_bytes()
}

#[test]
fn data_folders() {
    type Break = fn(&Path);
    let dir = tempfile::tempdir().unwrap();
    let (configs, whole) = exported(dir.path());
    let cases: [(Break, &[&str]); 15] = [
        (
            |d| fs::remove_file(d.join("precomp/test_ims.npy")).unwrap(),
            &["test_ims.npy: No such file"],
        ),
        (
            |d| fs::remove_file(d.join("precomp/val_caps.txt")).unwrap(),
            &["val_caps.txt: No such file"],
        ),
        (
            |d| change(&d.join("images/test_000003.png"), |b| b[..b.len() / 2].to_vec()),
            &[
                "images/test_000003.png",
                "expected a whole image",
                "got a truncated or damaged file",
            ],
        ),
        (
            |d| fs::write(d.join("images/test_000003.png"), "<html>").unwrap(),
            &["images/test_000003.png", "expected a JPEG, PNG or WebP image", "got an HTML page"],
        ),
        (
            |d| change(&d.join("precomp/test_caps.txt"), |b| without_lines(b, |n| n == 6)),
            &["test_caps.txt", "the same number of lines", "got 19", "line 7 should be"],
        ),
        (
            |d| {
                fs::remove_file(d.join("dataset_scenes.json")).unwrap();
                change(&d.join("precomp/test_caps.txt"), |b| without_lines(b, |n| n == 6));
            },
            &["test_caps.txt", "the same number of lines, for each of the 4 rows", "got 19"],
        ),
        (
            |d| {
                change(&d.join("dataset_scenes.json"), |b| {
                    let mut json: serde_json::Value = serde_json::from_slice(&b).unwrap();
                    for key in ["sentences", "sentids"] {
                        json["images"][13][key].as_array_mut().unwrap().truncate(3);
                    }
                    json.to_string().into_bytes()
                });
            },
            &["_caps.txt line ", "expected 3 captions of ", "got 5"],
        ),
        (
            |d| change(&d.join("dataset_scenes.json"), |b| b[..b.len() / 2].to_vec()),
            &["dataset_scenes.json", "EOF"],
        ),
        (
            |d| change(&d.join("precomp/test_ims.npy"), |b| npy("<f4", "(2816,)", &b[128..])),
            &["test_ims.npy", "rank 2 or 3", "got rank 1"],
        ),
        (
            |d| change(&d.join("precomp/test_ims.npy"), |b| npy("<c8", "(4, 352)", &b[128..])),
            &["test_ims.npy", "expected a dtype among f16", "<c8"],
        ),
        (
            |d| change(&d.join("precomp/test_ims.npy"), |b| npy(">f4", "(4, 704)", &b[128..])),
            &["test_ims.npy", "little-endian", ">f4"],
        ),
        (
            |d| {
                change(&d.join("precomp/test_ims.npy"), |mut b| {
                    b[128 + 4 * (704 + 5)..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
                    b
                });
            },
            &["test_ims.npy row 1, column 5", "finite", "NaN"],
        ),
        (
            |d| change(&d.join("precomp/test_ims.npy"), |b| b[..b.len() / 2].to_vec()),
            &["test_ims.npy", "expected 11392 bytes", "got 5696"],
        ),
        (
            |d| change(&d.join("precomp/test_ims.npy"), |b| npy("<f4", "(8, 352)", &b[128..])),
            &["test_caps.txt", "for each of the 8 rows", "got 20"],
        ),
        (
            |d| fs::remove_dir_all(d.join("precomp")).unwrap(),
            &["precomp/train_ims.npy", "got none"],
        ),
    ];
    let broken = dir.path().join("broken");
    for (number, (spoil, parts)) in cases.iter().enumerate() {
        copy(&whole, &broken);
        spoil(&broken);
        let before = files(&broken);
        let args = ["reproduce", "own", "--data", "broken", "--out", "out", "--seeds", "1"];
        holds(&refused(&configs, &args), parts);
        assert!(!dir.path().join("out").exists(), "case {number}");
        if number + 1 < cases.len() {
            // The last case is no problem for a check: a folder without features is a folder of pictures and captions.
            let line = refused(&configs, &["data", "check", "broken"]);
            holds(&line, &["broken: expected no problem, got"]);
            holds(&line, parts);
        }
        assert!(files(&broken) == before, "case {number}");
    }
    // A protocol that needs an exact number of images.
    change(&configs.join("own.toml"), |b| {
        set(&String::from_utf8(b).unwrap(), "protocol", "\"flickr_1k\"").into_bytes()
    });
    let args = ["reproduce", "own", "--data", "scenes", "--out", "out"];
    holds(&refused(&configs, &args), &["own.toml", "protocol flickr_1k", "1000 images", "got 4"]);
    assert!(!dir.path().join("out").exists());
}

/// An impossible start, and a stored start that is damaged or belongs to other data: one line, nothing overwritten.
#[test]
fn starts() {
    let dir = tempfile::tempdir().unwrap();
    let (configs, _) = exported(dir.path());
    let own = fs::read_to_string(configs.join("own.toml")).unwrap();
    let args = ["reproduce", "wrong", "--data", "scenes", "--out", "out", "--rows", "Full"];
    for (from, to, parts) in [
        ("dims = 4", "dims = 17", ["row.Full, model.cca.dims", "at most 16", "17"]),
        ("fill = 0.3", "fill = 0.0", ["row.Full, model.cca.fill", "above 0", "0"]),
        ("fill = 0.3", "fill = -1.0", ["row.Full, model.cca.fill", "from 0", "-1"]),
        ("[model.cca]", "[model.pca]", ["row.Full", "unknown field", "pca"]),
        ("power = 1.0\n", "", ["row.Full", "missing field", "power"]),
        (
            "[model.text]\nkind = \"bag\"            # paper: BERT; here a linear map of the stems that occur\npooling = \"tf_idf\"",
            "[model.text]\nkind = \"gru\"\nword_dim = 4\npool = \"mean\"",
            ["model.start", "text.kind", "another encoder of captions"],
        ),
    ] {
        assert!(own.contains(from), "{from}");
        let rows = own.find("[row.").unwrap();
        let text = format!("{}[row.Full]\n", &own[..rows]).replacen(from, to, 1);
        fs::write(configs.join("wrong.toml"), text).unwrap();
        holds(&refused(&configs, &args), &parts);
        assert!(!dir.path().join("out").exists());
    }
    // More dimensions than the training pairs have are cut, and the report says so.
    let cut = ["reproduce", "own", "--data", "scenes", "--out", "cut", "--rows", "Full"];
    let cut = [&cut[..], &["--seeds", "1", "--set", "model.cca.dims=8"]].concat();
    let output = run(&configs, &cut);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = fs::read_to_string(dir.path().join("cut/report.json")).unwrap();
    let note = "model.cca.dims = 8 is cut to 7, the rank of the training pairs";
    assert!(report.contains(note), "no note on the cut");

    let args = ["reproduce", "own", "--data", "scenes", "--out", "whole", "--rows", "Full"];
    let first = [&args[..], &["--seeds", "1"]].concat();
    let resumed = [&first[..], &["--resume"]].concat();
    let output = run(&configs, &first);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let whole = dir.path().join("whole");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let start = fs::read_dir(&whole).unwrap().map(|entry| name(entry.unwrap()));
    let start = whole.join(start.into_iter().find(|name| name.starts_with("start-")).unwrap());
    let bytes = fs::read(&start).unwrap();
    let hash = bytes.windows(6).position(|w| w == b"sha256").unwrap() + 12;
    for (spoil, part) in [(&bytes[..bytes.len() - 1], "whole start"), (&bytes[..3], "whole start")]
    {
        fs::write(&start, spoil).unwrap();
        holds(&refused(&configs, &resumed), &["start-", part]);
        assert_eq!(fs::read(&start).unwrap(), spoil, "it was overwritten");
    }
    let mut other = bytes.clone();
    other[hash] = if other[hash] == b'0' { b'1' } else { b'0' };
    fs::write(&start, &other).unwrap();
    holds(&refused(&configs, &resumed), &["start-", "of this data and configuration", "another"]);
    fs::write(&start, &bytes).unwrap();
    assert!(run(&configs, &resumed).status.success());
}

/// An exported world runs through `--data`, and the report calls it by its own name.
#[test]
fn a_whole_folder_runs_and_is_called_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (configs, _) = exported(dir.path());
    let output = run(&configs, &["data", "check", "scenes"]);
    assert!(output.status.success() && text(&output.stdout).contains("no problem found"));
    // Rows that train with the truth need a world that knows it; the other rows of the file run without it.
    let args = ["reproduce", "own", "--data", "scenes", "--rows", "Full + truth"];
    let line = refused(&configs, &args);
    holds(&line, &["row.Full + truth", "a complete truth of Scenes", "got none"]);
    let args = ["reproduce", "own", "--data", "scenes", "--out", "out", "--rows", "Full"];
    let output = run(&configs, &[&args[..], &["--seeds", "1"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = fs::read_to_string(dir.path().join("out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["dataset"], "Scenes");
    let note = "the target is for Flickr8k, but the data declare Scenes";
    assert!(report["notes"].as_array().unwrap().contains(&note.into()), "{}", report["notes"]);
}

/// As root, a rename turned the device into a picture.
#[cfg(target_os = "linux")]
#[test]
fn devices_and_links_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let configs = small_configs(dir.path());
    let size = ["--train", "2", "--val", "0", "--test", "1"];
    let sheet =
        |path: &'static str| refused(&configs, &[&["scenes", "--sheet", path][..], &size].concat());
    holds(&sheet("/dev/full"), &["/dev/full: No space left on device"]);
    assert!(!Path::new("/dev/full").is_file());
    std::os::unix::fs::symlink("mine.txt", dir.path().join("link")).unwrap();
    holds(&sheet("link"), &["link: expected a name that is no link, got a link"]);
    assert!(dir.path().join("link").is_symlink());
}

/// A line that nobody can read is no success.
#[cfg(target_os = "linux")]
#[test]
fn a_full_output_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    small_configs(dir.path());
    for command in [&["list"][..], &["data"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let itm = std::process::Command::new(env!("CARGO_BIN_EXE_itm"))
            .args(command)
            .current_dir(dir.path())
            .env_remove("RAYON_NUM_THREADS")
            .stdout(full)
            .output();
        let ran = itm.unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.starts_with("error: standard output: No space left on device"), "{said}");
    }
}

/// rayon reads the old name of its variable where the new one holds no number.
#[test]
fn the_old_name_of_the_number_of_threads_is_capped() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = itm(&small_configs(dir.path()), &["list"]);
    let command = command.env("RAYON_NUM_THREADS", "many").env("RAYON_RS_NUM_CPUS", "2000");
    let output = command.output().unwrap();
    let line = text(&output.stderr);
    assert!(line.starts_with("note: RAYON_RS_NUM_CPUS = 2000: "), "{line}");
}
