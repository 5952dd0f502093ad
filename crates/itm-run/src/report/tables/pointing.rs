//! Whether the patch closest to a word lies on what the word names.

use super::{Column, NONE, Table, line, mark_best};
use crate::report::format::{count, interval, share};
use crate::report::json::{Pointed, Report};

/// Pointing of every row, in annotated pairs and in false negatives; `None` where nothing has patches and a truth.
pub(in crate::report) fn pointing(report: &Report) -> Option<Table> {
    let found: Vec<_> = report
        .rows
        .iter()
        .map(|row| row.truth.as_ref().and_then(|t| t.pointing.as_ref()))
        .collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let of = |pointed: Option<&Pointed>| match pointed {
        Some(p) => [
            share(p.share),
            format!("{} %", interval(p.ci95.map(|end| 100.0 * end))),
            share(p.chance),
            count(p.words),
        ],
        None => [NONE; 4].map(str::to_owned),
    };
    let lines = report.rows.iter().zip(&found).map(|(row, found)| {
        let annotated = of(found.map(|p| &p.annotated));
        let others = of(found.and_then(|p| p.false_negatives.as_ref()));
        line(report, row, annotated.into_iter().chain(others).collect())
    });
    let head = |group, short| {
        ["on target", "95 % interval", "by chance", "words"].map(|label| Column {
            group,
            short,
            label: label.into(),
        })
    };
    let columns = [head("annotated pairs", "pairs: "), head("false negatives", "FN: ")];
    let mut table = Table {
        title: "Words that point at what they name".into(),
        note: "Share of words whose closest patch (cosine of last hidden states) has its centre in a \
               box of an object that the word is about, over words that have one, on the test split. \
               By chance: a patch drawn at random. False negatives: each caption with the next image \
               that it is true of and not annotated with. Interval: bootstrap over images and seeds."
            .into(),
        stub: "row",
        columns: columns.into_iter().flatten().collect(),
        lines: lines.collect(),
    };
    mark_best(&mut table, 0, |i| found[i].map(|p| p.annotated.share));
    mark_best(&mut table, 4, |i| found[i]?.false_negatives.as_ref().map(|p| p.share));
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;

    #[test]
    fn pointing_stands_beside_chance() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        let table = pointing(&report).unwrap();
        let cells = |name: &str| {
            let line = table.lines.iter().find(|line| line.name == name).unwrap();
            line.cells.iter().map(|c| c.text.clone()).collect::<Vec<_>>()
        };
        let full = cells("Full");
        assert_eq!(full[0], "41.2 %");
        assert_eq!(full[1], "39.2 to 44.2 %");
        assert_eq!(full[2..4], ["9.1 %", "17,345"]);
        assert_eq!((full[4].as_str(), full[6].as_str()), ("38.7 %", "8.8 %"));
        assert!(cells("w/o FNE").iter().all(|cell| cell == NONE));
        assert_eq!((table.columns.len(), full.len()), (8, 8));
        report.rows.iter_mut().for_each(|r| r.truth.as_mut().unwrap().pointing = None);
        assert!(pointing(&report).is_none());
    }
}
