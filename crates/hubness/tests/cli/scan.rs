//! `scan`: planted hubs among the items, and the gate for new ones.

use super::common::Folder;

const TOPICS: usize = 10;
const WIDTH: usize = TOPICS + 2;

/// Texts of ten topics with a direction in common, five hundred images of the topics; the last image is planted, and so is the first of
/// the two new ones.
fn planted() -> Folder {
    let noise = |at: usize, d: usize| ((at * 7919 + d * 104_729) % 1009) as f32 / 1009.0 - 0.5;
    let row = |at: usize, common: f32| {
        (0..WIDTH).map(move |d| match d {
            _ if d == at % TOPICS => 1.0 + 0.8 * noise(at, d),
            TOPICS => common,
            _ => 0.8 * noise(at, d),
        })
    };
    let folder = Folder::new();
    let texts: Vec<f32> = (0..900).flat_map(|at| row(at + 31, 0.9)).collect();
    let mut images: Vec<f32> = (0..500).flat_map(|at| row(at, 0.0)).collect();
    let everywhere: Vec<f32> = (0..WIDTH).map(|d| if d < TOPICS { 0.35 } else { 1.0 }).collect();
    let new: Vec<f32> = everywhere.iter().copied().chain(row(2000, 0.0)).collect();
    images.extend(everywhere);
    folder.npy("t.npy", WIDTH, &texts);
    folder.npy("i.npy", WIDTH, &images);
    folder.npy("clean.npy", WIDTH, &images[..500 * WIDTH]);
    folder.npy("new.npy", WIDTH, &new);
    folder
}

#[test]
fn the_planted_item_is_the_alert() {
    let folder = planted();
    let found = folder.run("scan --images i.npy --texts t.npy --json").json();
    let alerts = found["alerts"].as_array().unwrap();
    assert_eq!((alerts.len(), &alerts[0]["item"]), (1, &500.into()), "{found}");
    assert_eq!((&found["scan"]["queries"], &found["scan"]["items"]), (&900.into(), &501.into()));
    let text = folder.run("scan --images i.npy --texts t.npy").good().out;
    assert!(text.starts_with("t2i: 900 queries in 30 clusters, 501 items. N10: median "), "{text}");
    assert!(text.lines().last().unwrap().starts_with("      500 "), "{text}");
    let three = folder.run("scan --images i.npy --texts t.npy --alerts 3 --json").json();
    assert_eq!((three["alerts"].as_array().unwrap().len(), &three["alerts"][0]), (3, &alerts[0]));
    let text = folder.run("scan --images i.npy --texts t.npy --alerts 3").good().out;
    assert!(!text.contains("e0"), "{text}");
    let clean = folder.run("scan --images clean.npy --texts t.npy").good().out;
    assert_eq!(clean.lines().last(), Some("No alert."), "{clean}");
    // The other direction scans the texts.
    let texts = folder.run("scan --images i.npy --texts t.npy --direction i2t --json").json();
    assert_eq!((&texts["scan"]["items"], &texts["scan"]["queries"]), (&900.into(), &501.into()));
}

#[test]
fn the_gate_refuses_the_planted_item() {
    let folder = planted();
    let line = "scan --images clean.npy --texts t.npy --admit new.npy";
    let text = folder.run(line).good().out;
    let verdicts: Vec<_> = text.lines().map(|line| line.rsplit(": ").next().unwrap()).collect();
    assert_eq!(verdicts, ["refused", "admitted"], "{text}");
    assert!(text.starts_with("item 0 would be the first answer of "), "{text}");
    let found = folder.run(&format!("{line} --json")).json();
    let refused: Vec<_> =
        found["items"].as_array().unwrap().iter().map(|i| &i["refused"]).collect();
    assert_eq!(refused, [true, false]);
    // Alone the gate counts what the scan counts with the item among the others.
    let scan = folder.run("scan --images i.npy --texts t.npy --json").json();
    for key in ["count", "first", "capture"] {
        assert_eq!(found["items"][0][key], scan["alerts"][0][key], "{key}");
    }
}

#[test]
fn what_does_not_fit_is_one_line() {
    let folder = planted();
    folder.npy("narrow.npy", 3, &[1.0; 6]);
    for (options, want) in [
        ("--top 0", "--top: expected at least 1 item, got 0"),
        ("--alerts 0", "--alerts: expected at least 1 item, got 0"),
        ("--false-alarms 0", "--false-alarms: expected a finite number above 0, got 0"),
        ("--false-alarms nan", "--false-alarms: expected a finite number above 0, got NaN"),
        ("--admit narrow.npy", "narrow.npy: expected "),
    ] {
        let ran = folder.run(&format!("scan --images i.npy --texts t.npy {options}"));
        assert!(ran.err.starts_with(&format!("error: {want}")), "{options}: {}", ran.err);
        assert_eq!(
            (ran.code, ran.err.lines().count(), &ran.out[..]),
            (Some(2), 1, ""),
            "{options}"
        );
    }
}
