//! Every table of a report, once, as text cells: Markdown, HTML and terminal only lay them out.

mod detection;
mod hubs;
mod paper;
mod pointing;
mod rescored;
mod truth;

use super::format::{bytes, count, duration, interval, p_value, recall, rsum, signed};
use super::json::{Kind, Report, Row};

pub(super) use detection::{detection, detection_epochs, epochs};
pub(super) use hubs::{hub_counts, hub_differences, hubs};
pub(super) use paper::{paper, paper_differences};
pub(super) use pointing::pointing;
pub(super) use rescored::rescored;
pub(super) use truth::{draws, truth};

/// A table of text.
pub(super) struct Table {
    pub(super) title: String,
    /// What a reader must know to read it; may be empty.
    pub(super) note: String,
    /// Heads the first column.
    pub(super) stub: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) lines: Vec<Line>,
}

/// Head of a column; neighbours of one non-empty `group` share a head above theirs.
pub(super) struct Column {
    pub(super) group: &'static str,
    /// The group where width is short.
    pub(super) short: &'static str,
    pub(super) label: String,
}

pub(super) struct Line {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) cells: Vec<Cell>,
}

/// What a line is to the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Baseline,
    /// The claim's own row.
    Method,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    /// Whether no line has a better value in this column.
    pub(super) best: bool,
}

/// Stands where nothing was measured or printed.
const NONE: &str = "–";

/// How wide the interval of rSum is written.
#[derive(Clone, Copy)]
pub(super) enum Interval {
    /// `± 8.2`: half the width.
    Half,
    /// `301.2 to 317.6`.
    Ends,
}

/// Recalls of all rows, the paper's rSum last if it was measured on the same data.
pub(super) fn recalls(report: &Report, style: Interval) -> Table {
    let mut columns = recall_columns();
    columns.push(column("rSum"));
    columns.push(column(match style {
        Interval::Half => "±",
        Interval::Ends => "95 % interval",
    }));
    let same_data = report.rows.iter().any(|row| row.paper.is_some());
    if same_data {
        columns.push(column("paper rSum"));
    }
    let lines = report.rows.iter().map(|row| {
        let m = &row.measured;
        let mut cells: Vec<_> = six(row).into_iter().map(recall).collect();
        cells.push(rsum(m.rsum));
        cells.push(m.ci95.map_or(NONE.into(), |ci| match style {
            Interval::Half => recall((ci[1] - ci[0]) / 2.0),
            Interval::Ends => interval(ci),
        }));
        if same_data {
            cells.push(number(row.paper.as_ref().and_then(|p| p.rsum)));
        }
        line(report, row, cells)
    });
    let mut table = Table {
        title: format!("Recall on {}", report.dataset),
        note: format!(
            "Recall in percent. {} Interval: {}. Ties: {}{}.",
            over_seeds(report),
            report.ci95_unit,
            report.tie_policy,
            ties(report)
        ),
        stub: "row",
        columns,
        lines: lines.collect(),
    };
    for k in 0..6 {
        mark_best(&mut table, k, |i| Some(six(&report.rows[i])[k]));
    }
    mark_best(&mut table, 6, |i| Some(report.rows[i].measured.rsum));
    table
}

/// Every seed's rSum, and the checkpoint validation chose.
pub(super) fn seeds(report: &Report) -> Table {
    let columns = (report.seeds.iter().map(|s| column(&format!("seed {s}")))).chain([
        column("validation rSum"),
        column("best epochs"),
        column("time"),
    ]);
    let lines = report.rows.iter().map(|row| {
        let m = &row.measured;
        let of_seed = |s: &u64| m.per_seed.iter().find(|r| r.seed == *s);
        let mut cells: Vec<_> =
            report.seeds.iter().map(|s| number(of_seed(s).map(|r| r.rsum))).collect();
        cells.push(number(m.validation_rsum));
        let epochs: Vec<_> =
            m.per_seed.iter().filter_map(|r| r.best_epoch).map(|e| e.to_string()).collect();
        cells.push(if epochs.is_empty() { NONE.into() } else { epochs.join(", ") });
        cells.push(m.seconds.map_or(NONE.into(), duration));
        line(report, row, cells)
    });
    Table {
        title: "Seeds".into(),
        note: "Test rSum of the checkpoint with the best validation rSum; the test split chooses \
               nothing. Rows without seeds show none."
            .into(),
        stub: "row",
        columns: columns.collect(),
        lines: lines.collect(),
    }
}

/// Paired tests between rows; `None` if none was made.
pub(super) fn comparisons(report: &Report) -> Option<Table> {
    let first = report.comparisons.first()?;
    let test = report.comparisons.iter().find_map(|c| c.test.clone());
    let lines = report.comparisons.iter().map(|c| Line {
        name: format!("{} − {}", c.row, c.minus),
        role: if c.row == report.claim.row { Role::Method } else { Role::Other },
        cells: [
            signed(c.rsum),
            c.ci95.map_or(NONE.into(), interval),
            c.p_value.map_or(NONE.into(), p_value),
        ]
        .map(plain)
        .into(),
    });
    let made = if first.ci95.is_some() { "Interval: the same queries for both rows. " } else { "" };
    Some(Table {
        title: "Differences between rows".into(),
        note: format!("{made}Test: {}.", test.as_deref().unwrap_or("none")),
        stub: "difference",
        columns: ["rSum", "95 % interval", "two-sided test"].map(column).into(),
        lines: lines.collect(),
    })
}

/// What was run, as label and value.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let seeds: Vec<_> = report.seeds.iter().map(u64::to_string).collect();
    let mut protocols: Vec<&str> = report.rows.iter().map(|r| r.protocol.as_str()).collect();
    protocols.dedup();
    vec![
        ("Target", report.target.clone()),
        ("Data", report.dataset.clone()),
        ("Protocol", protocols.join("; ")),
        ("Preset", report.preset.clone()),
        ("Seeds", if seeds.is_empty() { "none".into() } else { seeds.join(", ") }),
        ("Backend", report.backend.clone()),
        ("Threads", report.threads.to_string()),
        ("Time", duration(report.seconds)),
        ("Peak memory", bytes(report.peak_memory_bytes)),
        ("Commit", report.commit.clone()),
        ("Config SHA-256", report.config_sha256.clone()),
        ("Data SHA-256", report.data_sha256.clone()),
    ]
}

fn over_seeds(report: &Report) -> String {
    match report.seeds.len() {
        0 => String::new(),
        1 => "Trained rows: one seed.".into(),
        n => format!("Trained rows: mean of {n} seeds."),
    }
}

fn ties(report: &Report) -> String {
    let decided: Vec<_> = report.rows.iter().filter_map(|r| r.measured.ties_decided).collect();
    match decided.iter().sum::<u64>() {
        _ if decided.is_empty() => String::new(),
        0 => ", which decided no query".into(),
        1 => ", which decided 1 query".into(),
        n => format!(", which decided {} queries", count(n)),
    }
}

fn recall_columns() -> Vec<Column> {
    let of = |group, short| {
        ["R@1", "R@5", "R@10"].map(|label| Column { group, short, label: label.into() })
    };
    [of("image → text", "i2t "), of("text → image", "t2i ")].into_iter().flatten().collect()
}

fn column(label: &str) -> Column {
    Column { group: "", short: "", label: label.into() }
}

fn six(row: &Row) -> [f64; 6] {
    let ([a, b, c], [d, e, f]) = (row.measured.i2t.values(), row.measured.t2i.values());
    [a, b, c, d, e, f]
}

fn number(x: Option<f64>) -> String {
    x.map_or(NONE.into(), rsum)
}

fn plain(text: String) -> Cell {
    Cell { text, best: false }
}

fn line(report: &Report, row: &Row, cells: Vec<String>) -> Line {
    let role = role(report, &row.name, row.kind);
    Line { name: row.name.clone(), role, cells: cells.into_iter().map(plain).collect() }
}

/// What the row `name` is to the claim.
pub(super) fn role(report: &Report, name: &str, kind: Kind) -> Role {
    match kind {
        _ if name == report.claim.row => Role::Method,
        Kind::Baseline => Role::Baseline,
        Kind::Trained => Role::Other,
    }
}

/// Marks the largest value of column `k`, as it is written: what reads equal is equally best.
/// A column with one value has no best.
fn mark_best(table: &mut Table, k: usize, value: impl Fn(usize) -> Option<f64>) {
    let values = || (0..table.lines.len()).filter_map(|i| value(i).map(|x| (i, x)));
    if values().count() < 2 {
        return;
    }
    let Some((best, _)) = values().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let text = table.lines[best].cells[k].text.clone();
    for cell in table.lines.iter_mut().map(|line| &mut line.cells[k]) {
        cell.best = cell.text == text;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CCA, CHANCE, sample};
    use super::*;

    fn texts(line: &Line) -> Vec<&str> {
        line.cells.iter().map(|c| c.text.as_str()).collect()
    }

    fn at<'a>(table: &'a Table, name: &str) -> &'a Line {
        table.lines.iter().find(|l| l.name == name).unwrap()
    }

    #[test]
    fn every_table_of_rows_carries_the_baselines() {
        let report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let of_rows = [
            recalls(&report, Interval::Ends),
            recalls(&report, Interval::Half),
            seeds(&report),
            truth(&report).unwrap(),
            draws(&report).unwrap(),
        ];
        for table in &of_rows {
            let names: Vec<_> = table.lines.iter().map(|l| l.name.as_str()).collect();
            assert_eq!(names, [CHANCE, CCA, "Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"]);
        }
        let others = [paper(&report), paper_differences(&report), comparisons(&report)];
        for table in of_rows.into_iter().chain(others.into_iter().flatten()) {
            for line in &table.lines {
                assert_eq!(line.cells.len(), table.columns.len(), "{}: {}", table.title, line.name);
            }
        }
    }

    #[test]
    fn cells_stand_under_their_heads() {
        let report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let table = recalls(&report, Interval::Half);
        let heads: Vec<_> =
            table.columns.iter().map(|c| format!("{}{}", c.short, c.label)).collect();
        let want = "i2t R@1,i2t R@5,i2t R@10,t2i R@1,t2i R@5,t2i R@10,rSum,±";
        assert_eq!(heads.join(","), want);
        let m = &report.rows[2].measured;
        assert_eq!(
            texts(at(&table, "Full"))[..4],
            [m.i2t.r1, m.i2t.r5, m.i2t.r10, m.t2i.r1].map(recall)
        );
        assert_eq!(texts(at(&table, "Full"))[6..], ["312.0", "8.1"]); // (7.9 + 8.3) / 2
        let full = recalls(&report, Interval::Ends);
        assert_eq!(texts(at(&full, "Full"))[6..], ["312.0", "304.1 to 320.3"]);
        let truth = truth(&report).unwrap();
        let want = ["0.873", "−0.021", "0.184", "2.1 %", "1,234,567"];
        assert_eq!(texts(at(&truth, "Full"))[2..], want);
        assert_eq!(truth.columns[3].label, "Brier skill, p = 1e-4");
        let draws = draws(&report).unwrap();
        assert_eq!(texts(at(&draws, "Full")), ["3.1 %", "2.4 %", "27.0 %", "48,000"]);
        assert_eq!(texts(at(&draws, CCA)), ["–"; 4]);
    }

    #[test]
    fn the_best_is_marked_and_equals_share_it() {
        let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let best = |report: &Report| -> Vec<String> {
            let table = recalls(report, Interval::Ends);
            let lines = table.lines.iter().filter(|l| l.cells[6].best);
            lines.map(|l| l.name.clone()).collect()
        };
        assert_eq!(best(&report), [CCA]);
        report.rows[2].measured.rsum = 317.49; // written 317.5, as CCA's
        assert_eq!(best(&report), [CCA, "Full"]);
        report.rows.truncate(1);
        assert!(best(&report).is_empty());
    }

    #[test]
    fn paper_numbers_stand_apart_from_other_data() {
        let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
        assert!(recalls(&report, Interval::Ends).columns.iter().all(|c| c.label != "paper rSum"));
        let block = paper(&report).unwrap();
        assert_eq!(block.title, "Flickr30K (paper)");
        assert_eq!(texts(at(&block, "w/o MMM"))[..2], ["77.0", "95.0"]);

        report.paper_reference = None;
        assert!(paper(&report).is_none() && paper_differences(&report).is_none());
        let printed = crate::paper::fne_row(3, "flickr30k", "Full").unwrap();
        report.rows[2].paper = Some(printed.numbers());
        let table = recalls(&report, Interval::Ends);
        assert_eq!(table.columns.last().unwrap().label, "paper rSum");
        assert_eq!(texts(at(&table, "Full")).last(), Some(&"533.0"));
        assert_eq!(texts(at(&table, CCA)).last(), Some(&"–"));
    }

    /// Table 3: Full 533.0, w/o FNE 528.8, w/o MMM 516.4.
    #[test]
    fn differences_are_compared_by_sign() {
        let report = sample::report(-24.3, -5.5, &[1, 2, 3]);
        let table = paper_differences(&report).unwrap();
        let want = ["+4.2", "−24.3", "−27.3 to −21.3", "no"];
        assert_eq!(texts(at(&table, "Full − w/o FNE")), want);
        assert_eq!(texts(at(&table, "Full − w/o MMM"))[..2], ["+16.6", "+21.0"]);
        assert_eq!(texts(at(&table, "Full − w/o MMM"))[3], "yes");
        let unsure = paper_differences(&sample::report(2.0, -5.5, &[1, 2, 3])).unwrap();
        assert_eq!(texts(at(&unsure, "Full − w/o FNE"))[3], "unsure");
    }
}
