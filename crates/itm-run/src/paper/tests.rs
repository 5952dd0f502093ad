use std::fs;

use super::*;
use crate::tests::{configs, paper};

fn flickr() -> Option<PaperData> {
    paper_data(DatasetName::Flickr30k, Protocol::Flickr1k)
}

fn count(paper: &Paper, table: u32) -> usize {
    paper.of_table(table).count()
}

/// The number of lines of each table, also in the papers of other methods. Recalls are in percent.
#[test]
fn every_file_is_read_whole() {
    for (name, want) in [
        ("fne", [36, 14, 4, 5, 4]),
        ("hal", [6, 23, 21, 21, 0]),
        ("naaf", [12, 20, 8, 6, 0]),
        ("tags-dc", [26, 6, 4, 6, 0]),
    ] {
        let paper = paper(name);
        assert_eq!([1, 2, 3, 4, 5].map(|table| count(&paper, table)), want, "{name}");
    }
    for name in Config::names(&configs().join("papers")).unwrap() {
        let paper = paper(&name);
        assert!(!paper.lines.is_empty(), "{name}");
        for line in &paper.lines {
            let numbers = line.numbers(1);
            for (i, v) in numbers.i2t.values().iter().chain(&numbers.t2i.values()).enumerate() {
                let real = v.is_none_or(|v| (5.0..=100.0).contains(&v));
                assert!(real, "{name}, {}, column {i}", line.row);
            }
        }
    }
}

/// Tables 3 and 4 of TAGS-DC have keys of their own. Numbers beside NAAF's released code have no number of a table.
#[test]
fn keys_of_one_paper_are_kept() {
    let tags = paper("tags-dc");
    let perplexity = tags.of_table(3).map(|line| line.perplexity.unwrap());
    assert_eq!(perplexity.collect::<Vec<_>>(), [51.13, 87.63, 70.87, 292.76]);
    assert!(tags.of_table(4).all(|line| line.generator.is_some() && line.row.is_empty()));
    let naaf = paper("naaf");
    let beside = naaf.lines.iter().filter(|line| line.table == "repository");
    assert_eq!(beside.count(), 9);
    let line = naaf.line(4, flickr().unwrap(), "NAAF Full").unwrap();
    assert_eq!((line.model.as_deref(), line.kind.as_deref()), (Some("ensemble"), Some("method")));
}

/// Table 3 read off the page: 84.7 97.1 99.1 68.1 90.0 94.0, and w/o FNE 83.8 … 93.1.
#[test]
fn the_ablation_rows() {
    let fne = paper("fne");
    let numbers = |row| fne.line(3, flickr().unwrap(), row).unwrap().numbers(3);
    let full = numbers("Full");
    assert_eq!(full.i2t.values(), [Some(84.7), Some(97.1), Some(99.1)]);
    assert_eq!(full.t2i.values(), [Some(68.1), Some(90.0), Some(94.0)]);
    assert!((full.rsum.unwrap() - 533.0).abs() < 1e-9);
    assert!((numbers("w/o FNE").rsum.unwrap() - 528.8).abs() < 1e-9);
}

#[test]
fn tables_of_one_method_are_told_apart() {
    let fne = paper("fne");
    let r1 = |table, protocol| {
        let on = paper_data(DatasetName::Coco, protocol).unwrap();
        fne.line(table, on, "SCAN").unwrap().numbers(table).i2t.r1
    };
    assert_eq!((r1(1, Protocol::Coco1kFolds), r1(2, Protocol::Coco5k)), (Some(72.7), Some(50.4)));
}

#[test]
fn a_missing_number_is_no_zero() {
    let fne = paper("fne");
    let r = fne.line(5, flickr().unwrap(), "lambda = 0.5").unwrap().numbers(5);
    assert_eq!((r.i2t.r10, r.t2i.r10, r.rsum), (None, None, None));
}

#[test]
fn reference_keeps_the_order_asked() {
    let names = ["Full", "chance", "w/o MMM"].map(|name| (name, name));
    let got = paper("fne").reference(3, flickr(), &names).unwrap();
    assert_eq!(got.rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["Full", "w/o MMM"]);
}

/// Table 1: the ensemble's line under our row's name, then the lines of other methods. Table 2 has only COCO.
#[test]
fn reference_of_main_results_has_the_other_methods() {
    let fne = paper("fne");
    let full = [("Full", "FNE (ours)")];
    let got = fne.reference(1, flickr(), &full).unwrap();
    assert_eq!((got.rows.len(), got.rows[0].name.as_str()), (18, "Full"));
    assert_eq!(got.rows[0].numbers.i2t.r1, Some(85.4));
    assert_eq!((got.rows[1].name.as_str(), got.dataset.as_str()), ("SCAN", "Flickr30K"));
    let folds = paper_data(DatasetName::Coco, Protocol::Coco1kFolds);
    let of_coco = fne.reference(1, folds, &full).unwrap();
    assert_eq!(
        (of_coco.rows[0].numbers.i2t.r1, of_coco.protocol.as_str()),
        (Some(82.5), "test_1k_5fold")
    );
    // If the paper did not measure the data, the reference has the paper's data and names it.
    let elsewhere = fne.reference(2, flickr(), &full).unwrap();
    assert_eq!(
        (elsewhere.dataset.as_str(), elsewhere.rows[0].numbers.i2t.r1),
        ("MS-COCO", Some(64.3))
    );
    assert_eq!(fne.reference(3, None, &full), None);
    assert_eq!(paper_data(DatasetName::Flickr8k, Protocol::Flickr1k), None);
}

/// Tables read off the page: line 1.3 is GRU with HAL, 303.2 and 9.03; the lines of Table 2 are of COCO.
#[test]
fn lines_of_the_hubs_paper() {
    let hal = paper("hal");
    let line = hal.line(1, flickr().unwrap(), "1.3").unwrap();
    assert_eq!(
        (line.loss.as_deref(), line.rsum, line.hs_sum, line.k),
        (Some("HAL"), Some(303.2), Some(9.03), Some(3))
    );
    assert_eq!(line.numbers(1).t2i.values(), [Some(24.8), Some(50.6), Some(62.8)]);
    let folds = paper_data(DatasetName::Coco, Protocol::Coco1kFolds).unwrap();
    assert!(hal.line(2, folds, "2.1").is_some() && hal.line(2, flickr().unwrap(), "2.1").is_none());
    for line in &hal.lines {
        if let (Some(ours), Some(theirs)) = (line.numbers(1).rsum, line.rsum) {
            assert!((ours - theirs).abs() < 0.25, "{}: {ours} {theirs}", line.row);
        }
    }
}

/// Table 3 read off the page: 303.2 298.8 307.1 308.2 307.3 308.5 309.6 on Flickr30K.
#[test]
fn inferences_of_the_hubs_paper() {
    let hubs = paper("hal");
    let over = |model| hubs.inferences(3, model, || "target.printed".into());
    let first = over(None).unwrap();
    assert_eq!((first.model.as_str(), first.dataset.as_str()), ("1.3", "flickr30k"));
    assert_eq!(over(Some("1.3")).unwrap(), first);
    let names = ["nns", "gm", "rgm", "is", "csls", "is+rgm", "csls+rgm"];
    let want = [303.2, 298.8, 307.1, 308.2, 307.3, 308.5, 309.6].map(Some);
    assert_eq!(names.map(|name| first.rsum.get(name).copied()), want);
    assert_eq!(first.rsum.len(), 7);
    let rsum = |model, name| over(Some(model)).unwrap().rsum[name];
    assert_eq!((rsum("2.1", "csls"), rsum("2.12", "nns")), (427.6, 460.2));
    let line = over(Some("2.2")).unwrap_err().to_string();
    assert_eq!(
        line,
        "target.printed: expected models of the paper's Table 3: 1.3, 2.1, 2.12, got `2.2`"
    );
    assert_eq!(Paper::default().inferences(3, None, String::new).unwrap(), Inferences::default());
}

const FNE: &str = "method = \"fne\"";

/// What `papers/fne.toml` says of one line of Table 3, two of Table 4, and one beside the program.
const ABOUT: &str = "paper = \"P\"\n[lines]\n3 = 1\n4 = 2\nrepository = 1\n";
const LINES: &str =
    "table,row,rsum,perplexity\n3,a,500.5,\n4,a,1.0,\n4,b,,2.0\nrepository,a,1.0,\n";

/// The paper of a target with the line `method`. The target makes Tables 3 and 4; `papers/fne.toml` and `papers/fne.csv` are beside it.
fn beside(method: &str, about: &str, lines: &str) -> Result<Paper> {
    let dir = tempfile::tempdir().unwrap();
    let scenes = fs::read_to_string(configs().join("fne-scenes.toml")).unwrap();
    let head = scenes.split("[row.Full]").next().unwrap();
    let head = head.replacen("method = \"fne\"", method, 1);
    let toy = format!("{head}[row.Full]\n[table.4]\nrows = [\"Full\"]\n");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("toy.toml", &toy);
    write("broken.toml", "= 1"); // a broken target makes no table
    fs::create_dir(dir.path().join("papers")).unwrap();
    write("papers/fne.toml", about);
    write("papers/fne.csv", lines);
    Paper::of(&Config::load(dir.path(), "toy").unwrap())
}

#[test]
fn a_target_has_the_paper_of_its_method_or_one_that_it_names_or_none() {
    assert_eq!(beside(FNE, ABOUT, LINES).unwrap().lines[0].rsum, Some(500.5));
    assert_eq!(beside("method = \"toy\"", ABOUT, LINES).unwrap(), Paper::default());
    let own = "method = \"toy\"\ntables = \"fne\"";
    assert_eq!(beside(own, ABOUT, LINES).unwrap().lines.len(), 4);
    let error = beside(&own.replace("\"fne\"", "\"hal\""), ABOUT, LINES).unwrap_err().to_string();
    for part in ["toy.toml, target.tables: expected a file of", "papers: fne, got `hal`"] {
        assert!(error.contains(part), "{error}");
    }
    for name in Config::names(&configs()).unwrap() {
        let paper = Paper::of(&Config::load(&configs(), &name).unwrap()).unwrap();
        assert!(!paper.lines.is_empty(), "{name} has no paper");
    }
}

#[test]
fn wrong_tables_are_one_line() {
    let five = (ABOUT.replace("4 = 2", "4 = 1\n5 = 1"), LINES.replace("4,b", "5,b"));
    assert_eq!(beside(FNE, &five.0, &five.1).unwrap().lines.len(), 4); // no recalls
    let recalls = five.1.replace(",,2.0", ",2.0,");
    let unmade = format!("unmade = [5]\n{}", five.0);
    assert_eq!(beside(FNE, &unmade, &recalls).unwrap().lines.len(), 4);
    let set = |from: &str, to: &str| {
        assert!(LINES.contains(from), "{from}");
        LINES.replacen(from, to, 1)
    };
    let same = || ABOUT.to_owned();
    for (about, lines, want) in [
        (
            five.0,
            recalls,
            "fne.toml, lines: expected a table that a target makes (3, 4) or `unmade` names, got 5",
        ),
        (
            same(),
            set("500.5", "5oo.5"),
            "fne.csv: expected lines of numbers under known columns, got CSV deserialize error: record 1 (line: 2, ",
        ),
        (
            same(),
            set("4,a,1.0,\n", ""),
            "fne.csv line 3, table 4: expected 2 lines up to here, got 1",
        ),
        (
            same(),
            set("4,b,,2.0\n", "4,b,,2.0\n4,c,,\n"),
            "fne.csv line 5, table 4: expected 2 lines up to here, got 3",
        ),
        (
            same(),
            set("4,b", "4,a"),
            "fne.csv line 4: expected each row once, got `a` of line 3 again",
        ),
        (
            same(),
            set("3,a", "6,a"),
            "fne.csv line 2, table: expected one of 3, 4, repository, which `lines` counts, got `6`",
        ),
        (
            same(),
            set("4,b,,2.0", "4,b,2.0"),
            "fne.csv: expected lines of numbers under known columns, got CSV error: record 3 (line: 4, ",
        ),
        (
            same(),
            set("rsum", "rsums"),
            "fne.csv: expected lines of numbers under known columns, got CSV deserialize error: record 1 (line: 2, ",
        ),
        (
            ABOUT.replace("4 = 2", "4 = = 2"),
            LINES.into(),
            "fne.toml line 4: expected valid TOML, got",
        ),
        (
            ABOUT.replace("[lines]", "[line]"),
            LINES.into(),
            "fne.toml, tables: expected every key known",
        ),
    ] {
        let line = beside(FNE, &about, &lines).unwrap_err().to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains(&format!("papers/{want}")), "{line:?} is not {want:?}");
    }
}
