//! `rescore`: matrices and runs that other programs and `report` can read. The tests in `formulas` check the values.

use super::common::{EACH, Folder, IMAGES, floats, recalls, row, transposed};
use super::options::banked;

const SOURCE: &str = "rescore --images i.npy --texts t.npy";

/// Judgements of a run have the names of its queries first.
fn judged(folder: &Folder) {
    let of = |line: fn(usize) -> String| (0..IMAGES * EACH).map(line).collect::<String>();
    folder.write("i2t.qrels", of(|t| format!("{} 0 {t} 1\n", t / EACH)));
    folder.write("t2i.qrels", of(|t| format!("{t} 0 {} 1\n", t / EACH)));
}

#[test]
fn both_files_of_a_matrix_hold_the_same() {
    let folder = Folder::made();
    for out in ["u.npy", "u.safetensors"] {
        let ran = folder.run(&format!("{SOURCE} --direction t2i --out {out}"));
        assert_eq!((ran.code, &ran.out[..]), (Some(0), ""));
        assert!(ran.err.ends_with("csls t2i: transductive\n"), "{}", ran.err);
    }
    let (file, (_, values)) = (folder.read("u.safetensors"), floats(&folder.read("u.npy")));
    let header = 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let read: Vec<f32> =
        file[header..].chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect();
    assert_eq!(read, values);
    let json: serde_json::Value = serde_json::from_slice(&file[8..header]).unwrap();
    assert_eq!(json["t2i"]["shape"], serde_json::json!([IMAGES, IMAGES * EACH]));
    // Plain search of the corrected matrix is the corrected search, in the direction it was made for.
    let plain = folder.report("--scores u.npy --method nns");
    let want = folder.report("--method csls");
    assert_eq!(recalls(row(&plain, "nns"))[3..], recalls(row(&want, "csls"))[3..]);
}

#[test]
fn a_run_reads_back_to_the_same_recalls() {
    let folder = Folder::made();
    judged(&folder);
    for (method, lambda) in [("csls", ""), ("is+rgm", "--rgm-lambda 1.5"), ("nns", "")] {
        for direction in ["i2t", "t2i"] {
            let line =
                format!("{SOURCE} --method {method} {lambda} --direction {direction} --top 10");
            assert_eq!(folder.run(&format!("{line} --out u.run")).code, Some(0));
            let piped = folder.run(&format!("{line} --out -"));
            assert_eq!(piped.out.as_bytes(), folder.read("u.run"));
            let single = if lambda.is_empty() { "" } else { "--rgm-single-run" };
            let want = folder.report(&format!("--method {method} {lambda} {single}"));
            let read = folder
                .report(&format!("--run-{direction} u.run --pairs {direction}.qrels --method nns"));
            let of = |row: &serde_json::Value| {
                ["r1", "r5", "r10"].map(|k| row[direction][k].as_f64().unwrap())
            };
            assert_eq!(of(row(&read, "nns")), of(row(&want, method)), "{method} {direction}");
        }
    }
}

#[test]
fn lists_are_as_long_as_asked_and_ranked() {
    let folder = Folder::made();
    let ran = folder.run(&format!("{SOURCE} --direction t2i --top 3 --out -"));
    assert_eq!(ran.out.lines().count(), 3 * IMAGES * EACH);
    let scores: Vec<f64> =
        ran.out.lines().map(|line| line.split(' ').nth(4).unwrap().parse().unwrap()).collect();
    assert!(scores.chunks(3).all(|list| list[0] >= list[1] && list[1] >= list[2]));
    // All items, if there are fewer than `--top`.
    let all = folder.run(&format!("{SOURCE} --direction t2i --top 999 --out -"));
    assert_eq!(all.out.lines().count(), IMAGES * IMAGES * EACH);
}

#[test]
fn what_was_looked_at_is_said() {
    let folder = banked();
    for (method, options, setting) in [
        ("nns", "", "plain"),
        ("csls", "", "transductive"),
        ("csls", "--bank-texts bt.npy", "held-out bank"),
        ("csls+gm", "--bank-texts bt.npy", "transductive"),
        ("gm", "", "transductive"),
    ] {
        let line = format!("{SOURCE} --method {method} {options} --direction t2i --out u.run");
        let ran = folder.run(&line);
        assert!(ran.err.ends_with(&format!("{method} t2i: {setting}\n")), "{}", ran.err);
    }
}

#[test]
fn names_of_a_run_are_single_words() {
    let folder = Folder::made();
    let names: Vec<_> = (0..IMAGES).map(|i| format!("a photo {i}.jpg")).collect();
    folder.write("names.txt", names.join("\n"));
    let ran =
        folder.run(&format!("{SOURCE} --image-names names.txt --direction i2t --top 1 --out -"));
    assert!(ran.out.starts_with("a_photo_0.jpg Q0 "), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.split(' ').count() == 6));
}

/// A matrix of one direction corrects that direction's items.
#[test]
fn directions_are_corrected_apart() {
    let folder = Folder::made();
    let of = |direction: &str| {
        folder.run(&format!("{SOURCE} --method csls --direction {direction} --out u.npy"));
        let (width, values) = floats(&folder.read("u.npy"));
        values.chunks(width).map(|row| row.iter().map(|&v| f64::from(v)).collect()).collect()
    };
    let (i2t, t2i): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (of("i2t"), of("t2i"));
    // The difference of the two is one number for each text minus one number for each image.
    let apart: Vec<Vec<f64>> =
        i2t.iter().zip(&t2i).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect()).collect();
    let steps = |rows: &[Vec<f64>]| -> f64 {
        let step = |row: &Vec<f64>| (row[1] - row[0]) - (rows[0][1] - rows[0][0]);
        rows.iter().map(step).fold(0.0, |most, step| step.abs().max(most))
    };
    assert!(steps(&apart) < 1e-5 && steps(&transposed(&apart)) < 1e-5);
    assert!(steps(&i2t) > 0.1, "the scores themselves are not such a difference");
}

#[cfg(unix)]
#[test]
fn files_have_the_rights_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::made();
    folder.run(&format!("{SOURCE} --direction t2i --out u.npy"));
    let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode();
    assert_eq!(mode("u.npy"), mode("i.npy"));
    assert_eq!(folder.run(&format!("{SOURCE} --direction t2i --out /dev/null")).code, Some(0));
    assert!(!std::path::Path::new("/dev/null").is_file(), "a device stays a device");
}

/// A name of a stranger cleared the screen, or turned the line.
#[test]
fn names_do_not_reach_the_terminal_raw() {
    let folder = Folder::new();
    folder.npy("i.npy", 2, &[1.0, 0.0, 0.0, 1.0, 0.6, 0.8]);
    folder.npy("t.npy", 2, &[1.0, 0.0, 0.0, 1.0]);
    folder.write("names", "a\nc\nb\x1b[2J\u{202e}\u{9b}1m\n");
    folder.write("p.json", "[[0], [1], []]");
    let input = "--images i.npy --texts t.npy --pairs p.json --image-names names";
    let ran = folder.run(&format!("rescore {input} --direction t2i --csls-k 1 --out x.npy"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains("1 image without a text") && ran.err.contains("b\u{fffd}[2J"),
        "{}",
        ran.err
    );
    let report = folder.run(&format!("report {input} --resamples 0 --method nns"));
    assert!(report.out.contains("b\u{fffd}[2J"), "{}", report.out);
    for text in [ran.err, report.out, report.err] {
        assert!(!text.contains(['\x1b', '\u{202e}', '\u{9b}']), "{text:?}");
    }
}
