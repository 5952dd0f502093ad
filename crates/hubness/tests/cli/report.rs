//! `report`: equal sources give equal reports; the shape of the JSON; threads and pipes.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::common::{EACH, Folder, IMAGES, WIDTH, made, names, npy, recalls, row, score_values};

const METHODS: &str = "--method csls,is,nnn,gm,csls+rgm,auto";

#[test]
fn json_has_the_published_shape() {
    let folder = Folder::made();
    let report = folder.report("--method csls,auto --resamples 50");
    assert_eq!(names(&report), ["nns", "csls", "auto"]);
    for row in report["rows"].as_array().unwrap() {
        for direction in ["i2t", "t2i"] {
            assert!(row["params"][direction].is_object());
            for recall in ["r1", "r5", "r10"] {
                assert!(row[direction][recall].is_f64(), "{row}");
            }
        }
        assert_eq!(row["transductive"], row["method"] != "nns");
        assert_eq!(row["ci95"].as_array().unwrap().len(), 2);
        assert_eq!(row["p_value"].is_null(), row["method"] == "nns");
        let sum: f64 = recalls(row).iter().sum();
        assert!((row["rsum"].as_f64().unwrap() - sum).abs() < 1e-9);
    }
    assert_eq!(row(&report, "csls")["params"]["i2t"]["k"], 10);
    for direction in ["i2t", "t2i"] {
        assert_eq!(report["hubs"][direction]["measures"].as_array().unwrap().len(), 3);
        assert!(!report["hubs"][direction]["worst"].as_array().unwrap().is_empty());
    }
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    assert!(report["peak_memory_bytes"].as_u64().unwrap() > 1 << 20);
    assert_eq!(report["data"]["images"], IMAGES);
    assert_eq!(report["data"]["files"].as_array().unwrap().len(), 2);
    folder.write("truth.json", format!("{:?}", vec![[0]; IMAGES]));
    let truth = folder.report("--method csls --truth truth.json");
    assert_eq!(truth["data"]["files"][2]["name"], "truth.json");
    let note = "pairs guessed from the shapes: 24 images, 72 texts: 3 texts per image, in order";
    assert_eq!(report["data"]["pairs_note"], note);
}

/// Recalls and hubs, which do not depend on the source of the scores.
fn found(report: &Value) -> (Vec<Vec<f64>>, Vec<Value>) {
    let rows = report["rows"].as_array().unwrap();
    let counts = ["i2t", "t2i"].map(|d| report["hubs"][d]["histograms"].clone());
    (rows.iter().map(recalls).collect(), counts.to_vec())
}

#[test]
fn every_source_of_the_same_scores_says_the_same() {
    let folder = Folder::made();
    let want = found(&folder.report(METHODS));
    folder.npy("s.npy", IMAGES * EACH, &score_values());
    assert_eq!(found(&folder.report(&format!("--scores s.npy {METHODS}"))), want, "a matrix");

    let (images, texts) = made();
    let header = format!(
        r#"{{"v":{{"dtype":"F32","shape":[{IMAGES},{WIDTH}],"data_offsets":[0,{}]}},"w":{{"dtype":"F32","shape":[{},{WIDTH}],"data_offsets":[{},{}]}}}}"#,
        images.len() * 4,
        IMAGES * EACH,
        images.len() * 4,
        (images.len() + texts.len()) * 4,
    );
    let values = images.iter().chain(&texts).flat_map(|v| v.to_le_bytes());
    let length = (header.len() as u64).to_le_bytes();
    let file: Vec<u8> = length.into_iter().chain(header.bytes()).chain(values).collect();
    folder.write("e.safetensors", file);
    let both = "--images e.safetensors:v --texts e.safetensors:w";
    assert_eq!(found(&folder.report(&format!("{both} {METHODS}"))), want, "safetensors");

    let doubles: Vec<u8> = images.iter().flat_map(|&v| f64::from(v).to_le_bytes()).collect();
    folder.write("d.npy", npy("<f8", false, &[IMAGES, WIDTH], &doubles));
    let doubles = format!("--images d.npy --texts t.npy {METHODS}");
    assert_eq!(found(&folder.report(&doubles)), want, "f64");

    let pairs: Vec<String> = (0..IMAGES * EACH).map(|t| (t / EACH).to_string()).collect();
    folder.write("p.txt", pairs.join("\n"));
    assert_eq!(found(&folder.report(&format!("--pairs p.txt {METHODS}"))), want, "pairs");
    let stdin = folder.piped(
        &format!("report --images - --texts t.npy --resamples 0 --json {METHODS}"),
        &folder.read("i.npy"),
    );
    assert_eq!(found(&stdin.json()), want, "standard input");
}

/// Half precision changes nothing if it holds the numbers exactly.
#[test]
fn half_precision_is_read() {
    let folder = Folder::new();
    let (halves, singles): (Vec<u16>, Vec<f32>) =
        [(0x3c00, 1.0), (0, 0.0), (0xb800, -0.5), (0x4000, 2.0)].into_iter().unzip();
    let bytes: Vec<u8> = halves.iter().flat_map(|v| v.to_le_bytes()).collect();
    folder.write("h.npy", npy("<f2", false, &[2, 2], &bytes));
    folder.npy("f.npy", 2, &singles);
    folder.npy("t.npy", 2, &[1.0, 0.25, 0.5, 0.5]);
    let of = |name: &str| found(&folder.report(&format!("--images {name} --texts t.npy --raw")));
    assert_eq!(of("h.npy"), of("f.npy"));
}

/// Worked by hand: texts 0 and 1 belong to image 0, text 2 to image 1. Image 1 finds text 0 first, text 2 second.
#[test]
fn pairs_may_be_unequal() {
    let folder = Folder::new();
    folder.npy("s.npy", 3, &[0.9, 0.2, 0.1, 0.8, 0.1, 0.7]);
    folder.write("p.txt", "0\n0\n1\n");
    let report = folder.report("--scores s.npy --pairs p.txt --method csls");
    let plain = row(&report, "nns");
    assert_eq!((&plain["i2t"]["r1"], &plain["i2t"]["r5"]), (&50.0.into(), &100.0.into()));
    assert_eq!(plain["t2i"]["r1"], 100.0);
    let swapped = "1\n0\n0\n"; // only text 1 finds its image first: image 0 over image 1
    folder.write("p.txt", swapped);
    let report = folder.report("--scores s.npy --pairs p.txt --method csls");
    let r1 = row(&report, "nns")["t2i"]["r1"].as_f64().unwrap();
    assert!((r1 - 100.0 / 3.0).abs() < 1e-9);
}

#[test]
fn every_method_has_its_row() {
    let folder = Folder::made();
    let names_of = |report: &Value| names(report).into_iter().map(String::from).collect::<Vec<_>>();
    let all = names_of(&folder.report(""));
    let want =
        "nns csls is nnn sinkhorn qbnorm mp mp-empirical ls nicdm gm rgm is+rgm csls+rgm auto";
    let want: Vec<_> = want.split(' ').collect();
    assert_eq!(all, want);
    let others: Vec<_> =
        want.iter().filter(|name| !name.contains("gm") && **name != "auto").collect();
    for then in ["gm", "rgm"] {
        let asked: Vec<_> = others.iter().map(|name| format!("{name}+{then}")).collect();
        let got = names_of(&folder.report(&format!("--method {}", asked.join(","))));
        assert_eq!((&got[0][..], &got[1][..]), ("nns", then));
        assert_eq!(got[2..], asked[1..]);
    }
    let rows = folder.report("--rgm-lambda 1");
    let found = |name: &str| ["i2t", "t2i", "hubs_after"].map(|key| row(&rows, name)[key].clone());
    for name in &want[1..14] {
        assert_ne!(found(name), found("nns"), "{name} changes what is found");
    }
}

#[test]
fn a_method_asked_twice_has_one_row() {
    let folder = Folder::made();
    let report = folder.report("--method csls,nns,csls,rgm,nns+rgm --csls-k 5,5 --rgm-lambda 2,2");
    assert_eq!(names(&report), ["nns", "csls", "rgm"]);
}

#[test]
fn threads_change_nothing() {
    let folder = Folder::made();
    let line = "report --images i.npy --texts t.npy --resamples 100 --json";
    let of = |threads: &str| {
        let mut report = folder.command(line, threads, &[]).json();
        for key in ["seconds", "peak_memory_bytes"] {
            report[key] = Value::Null;
        }
        report
    };
    let all = std::thread::available_parallelism().unwrap().to_string(); // more are capped
    assert_eq!(of("1"), of(&all));
}

/// A reader that closes the pipe early is no error.
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::made();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hubness"))
        .args("report --images i.npy --texts t.npy --json --resamples 0".split(' '))
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &ended.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn the_terminal_says_each_thing_once() {
    let folder = Folder::made();
    let ran = folder.run(
        "report --images i.npy --texts t.npy --resamples 20 --method is,auto --is-beta 10,auto",
    );
    let text = ran.good().out;
    assert_eq!(text.matches("pairs guessed from").count(), 1, "{text}");
    for part in ["IS (β = 10)", "IS (β = auto)", "auto chose i2t ", "(cross-fitted)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains('\x1b'), "no colours in a pipe");
}

#[test]
fn the_page_is_written_beside_the_terminal() {
    let folder = Folder::made();
    let line = "report --images i.npy --texts t.npy --resamples 20 --method is+rgm --is-beta 10,20";
    let text = folder.run(&format!("{line} --html page.html")).good().out;
    assert!(text.ends_with("\nPage: page.html\n"));
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    for part in ["IS + RGM (β = 10, λ = auto)", "R@10 against λ", "inverted softmax", "AAAI 2020"]
    {
        assert!(page.contains(part), "{part}");
    }
}
