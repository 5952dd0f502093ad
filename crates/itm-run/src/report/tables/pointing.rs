//! Whether the patch closest to a word lies on what the word names.

use itm_report::format::{count, interval, share};
use itm_report::table::Table;

use super::of_rows;
use crate::report::json::{Pointed, Pointing, Report, Row};

/// Pointing of every row, in annotated pairs and in false negatives; `None` if no row has patches and a truth.
pub(in crate::report) fn pointing(report: &Report) -> Option<Table> {
    let note = "Share of words whose closest patch (cosine of last hidden states) has its centre in a box of \
                an object that the word is about, over words that have such a box, on the test split. By chance: \
                a patch drawn at random. False negatives: each caption with the next image that it is true of \
                but not annotated with. Interval: bootstrap over images and seeds.";
    of_words(report, ["Words that point at what they name", note], |row| {
        row.truth.as_ref()?.pointing.as_ref()
    })
}

/// The same table for the regions that words attend to.
pub(in crate::report) fn grounding(report: &Report) -> Option<Table> {
    let note = "Share of words whose most attended region has an IoU of at least 0.5 with a box of an object \
                that the word is about, over words that have such a box, on the test split. Idle words attend to no region \
                and hit nothing. By chance: a region drawn at random. False negatives: each caption with the next image \
                that it is true of but not annotated with. Interval: bootstrap over images and seeds.";
    of_words(report, ["Words that attend to what they name", note], |row| {
        row.truth.as_ref()?.grounding.as_ref()
    })
}

fn of_words(
    report: &Report,
    [title, note]: [&str; 2],
    of_row: fn(&Row) -> Option<&Pointing>,
) -> Option<Table> {
    let found = || report.rows.iter().map(of_row);
    found().find_map(|p| p)?;
    let mut t = of_rows(report, title).noted(note);
    type Of = fn(&Pointing) -> Option<&Pointed>;
    let sides: [(_, _, Of); 2] = [
        ("annotated pairs", "pairs: ", |p| Some(&p.annotated)),
        ("false negatives", "FN: ", |p| p.false_negatives.as_ref()),
    ];
    for (group, short, of) in sides {
        let each = || found().map(|p| of(p?));
        let percent = |ends: [f64; 2]| format!("{} %", interval(ends.map(|end| 100.0 * end)));
        t.best("on target", each().map(|p| Some(p?.share)), share).under(group, short);
        t.numbers("95 % interval", each().map(|p| Some(p?.ci95)), percent).under(group, short);
        t.numbers("by chance", each().map(|p| Some(p?.chance)), share).under(group, short);
        if each().flatten().any(|p| p.idle > 0.0) {
            t.numbers("idle", each().map(|p| Some(p?.idle)), share).under(group, short);
        }
        t.numbers("words", each().map(|p| Some(p?.words)), count).under(group, short);
    }
    Some(t)
}

#[cfg(test)]
mod tests {
    use itm_report::format::NONE;

    use super::super::super::tests::sample;
    use super::super::texts;
    use super::*;

    #[test]
    fn pointing_stands_beside_chance() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        let table = pointing(&report).unwrap();
        let full = texts(&table, "Full");
        assert_eq!(full[0], "41.2 %");
        assert_eq!(full[1], "39.2 to 44.2 %");
        assert_eq!(full[2..4], ["9.1 %", "17,345"]);
        assert_eq!((full[4], full[6]), ("38.7 %", "8.8 %"));
        assert!(texts(&table, "w/o FNE").iter().all(|cell| *cell == NONE));
        assert_eq!((table.columns.len(), full.len()), (8, 8));
        report.rows.iter_mut().for_each(|r| r.truth.as_mut().unwrap().pointing = None);
        assert!(pointing(&report).is_none());
    }

    #[test]
    fn regions_have_a_table_of_their_own() {
        let mut report = sample::report(24.3, -5.5, &[1]);
        assert!(grounding(&report).is_none());
        let truth = report.rows[2].truth.as_mut().unwrap();
        truth.grounding = truth.pointing.take();
        truth.grounding.as_mut().unwrap().annotated.idle = 0.125;
        report.rows[4].truth.as_mut().unwrap().pointing = None;
        assert!(pointing(&report).is_none());
        let table = grounding(&report).unwrap();
        assert!(table.title.contains("attend"));
        assert_eq!(
            texts(&table, "Full")[..5],
            ["41.2 %", "39.2 to 44.2 %", "9.1 %", "12.5 %", "17,345"]
        );
        assert_eq!(table.columns.len(), 9, "no idle word in false negatives");
    }
}
