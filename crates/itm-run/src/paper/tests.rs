use super::*;
use crate::testing::{configs, paper};

fn flickr() -> Option<Measured> {
    Measured::new(DatasetName::Flickr30k, Protocol::Flickr1k)
}

fn count(paper: &Paper, table: u32) -> usize {
    paper.of_table(table).count()
}

/// The number of lines of each table, also in the papers of other methods. Recalls are in percent.
#[test]
fn every_file_is_read_whole() {
    for (name, want) in [
        ("fne", [36, 14, 4, 5, 4]),
        ("hal", [6, 23, 0, 0, 0]),
        ("hubness", [0, 0, 21, 21, 0]),
        ("naaf", [12, 20, 8, 6, 0]),
        ("tags-dc", [26, 6, 4, 6, 0]),
    ] {
        let paper = paper(name);
        assert_eq!([1, 2, 3, 4, 5].map(|table| count(&paper, table)), want, "{name}");
    }
    for name in names(&configs().join("papers")).unwrap() {
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
    let perplexity = tags.of_table(3).map(|line| line.number("perplexity").unwrap());
    assert_eq!(perplexity.collect::<Vec<_>>(), [51.13, 87.63, 70.87, 292.76]);
    assert!(tags.of_table(4).all(|line| line.word("generator").is_some() && line.row.is_empty()));
    let naaf = paper("naaf");
    let beside = naaf.lines.iter().filter(|line| line.table == Number::Word("repository".into()));
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
        let on = Measured::new(DatasetName::Coco, protocol).unwrap();
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
    let folds = Measured::new(DatasetName::Coco, Protocol::Coco1kFolds);
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
    assert_eq!(Measured::new(DatasetName::Flickr8k, Protocol::Flickr1k), None);
}

/// Tables read off the page: line 1.3 is GRU with HAL, 303.2 and 9.03; the lines of Table 2 are of COCO.
#[test]
fn lines_of_the_hubs_paper() {
    let hal = paper("hal");
    let line = hal.line(1, flickr().unwrap(), "1.3").unwrap();
    assert_eq!(
        (line.word("loss"), line.rsum, line.number("hs_sum"), line.number("hal_k")),
        (Some("HAL"), Some(303.2), Some(9.03), Some(3.0))
    );
    assert_eq!(line.numbers(1).t2i.values(), [Some(24.8), Some(50.6), Some(62.8)]);
    let folds = Measured::new(DatasetName::Coco, Protocol::Coco1kFolds).unwrap();
    assert!(hal.line(2, folds, "2.1").is_some() && hal.line(2, flickr().unwrap(), "2.1").is_none());
    for line in hal.lines.iter().chain(&paper("hubness").lines) {
        if let (Some(ours), Some(theirs)) = (line.numbers(1).rsum, line.rsum) {
            assert!((ours - theirs).abs() < 0.25, "{}: {ours} {theirs}", line.row);
        }
    }
}

/// Table 3 read off the page: 303.2 298.8 307.1 308.2 307.3 308.5 309.6 on Flickr30K.
#[test]
fn inferences_of_the_hubs_paper() {
    let hubs = paper("hubness");
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

/// The paper of a target with the line `method`. The target makes Tables 3 and 4; `papers/fne.toml` is beside it.
fn beside(method: &str, tables: &str) -> Result<Paper> {
    let dir = tempfile::tempdir().unwrap();
    let scenes = fs::read_to_string(configs().join("fne-scenes.toml")).unwrap();
    let head = scenes.split("[row.Full]").next().unwrap();
    let head = head.replacen("method = \"fne\"", method, 1);
    let toy = format!("{head}[row.Full]\n[table.4]\nrows = [\"Full\"]\n");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("toy.toml", &toy);
    write("broken.toml", "= 1"); // a broken target makes no table
    fs::create_dir(dir.path().join("papers")).unwrap();
    write("papers/fne.toml", tables);
    Paper::of(&AnyConfig::load(dir.path(), "toy").unwrap().origin())
}

#[test]
fn a_target_has_the_paper_of_its_method_or_one_that_it_names_or_none() {
    let line = "[[row]]\ntable = 3\nrsum = 500.5\n";
    assert_eq!(beside(FNE, line).unwrap().lines[0].rsum, Some(500.5));
    assert_eq!(beside("method = \"toy\"", line).unwrap(), Paper::default());
    let own = "method = \"toy\"\ntables = \"fne\"";
    assert_eq!(beside(own, line).unwrap().lines.len(), 1);
    let error = beside(&own.replace("\"fne\"", "\"hal\""), line).unwrap_err().to_string();
    for part in ["toy.toml, target.tables: expected a file of", "papers: fne, got `hal`"] {
        assert!(error.contains(part), "{error}");
    }
    for name in names(&configs()).unwrap() {
        let paper = Paper::of(&AnyConfig::load(&configs(), &name).unwrap().origin()).unwrap();
        assert!(!paper.lines.is_empty(), "{name} has no paper");
    }
}

#[test]
fn wrong_tables_are_one_line() {
    let good = "[[row]]\ntable = 4\nrsum = 1.0\n[[row]]\ntable = 5\nperplexity = 2.0\n[[row]]\n\
                table = \"repository\"\nrsum = 1.0\n";
    assert_eq!(beside(FNE, good).unwrap().lines.len(), 3);
    let unmade = good.replace("perplexity", "rsum");
    assert_eq!(beside(FNE, &format!("unmade = [5]\n{unmade}")).unwrap().lines.len(), 3);
    for (text, parts) in [
        (unmade, ["row 2, table", "a target makes (3, 4) or `unmade` names", "got 5"]),
        (good.replace("table = 4", "tabel = 4"), ["row 1", "missing field `table`", "known"]),
        (good.replace("rsum = 1.0", "i2t_r1 = \"1.0\""), ["row 1", "i2t_r1", "string"]),
        (good.replace("table = 4", "table = = 4"), ["line 2", "valid TOML", "got"]),
        (good.replace("[[row]]", "[[rows]]"), ["tables", "missing field `row`", "known"]),
    ] {
        let line = beside(FNE, &text).unwrap_err().to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        for part in ["papers/fne.toml"].iter().chain(&parts) {
            assert!(line.contains(part), "{line:?} names no {part:?}");
        }
    }
}
