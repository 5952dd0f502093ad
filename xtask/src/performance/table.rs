//! The table, and the page that keeps it.

use std::fmt::Write;

use anyhow::{Result, bail};
use serde_json::Value;

/// The command writes the text between these two lines of the page.
const BEGIN: &str = "<!-- performance: begin -->";
const END: &str = "<!-- performance: end -->";

const MIB: f64 = 1024.0 * 1024.0;

/// The role of a variant in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ours,
    /// The work that the row cannot avoid: only its matrix products, or a copy of the bytes that it must move.
    Floor,
    Eager,
    Compiled,
    /// Ours with products of bf16 operands. A separate table compares it with [`Kind::Bf16`], PyTorch's variant.
    OursBf16,
    Bf16,
}

/// The best measurement of one variant, or the reason why there is none.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) variant: String,
    pub(super) line: Result<Value, String>,
    /// Whether the next round measures it again.
    pub(super) in_the_race: bool,
}

impl Measured {
    pub(super) fn new(variant: &str) -> Self {
        Self {
            variant: variant.to_owned(),
            line: Err("not measured".to_owned()),
            in_the_race: true,
        }
    }

    /// Adds a round. The fastest measurement stays.
    pub(super) fn add(&mut self, line: Result<Value, String>) {
        self.in_the_race = line.is_ok();
        let time = |line: &Result<Value, String>| line.as_ref().map(seconds).ok();
        match (time(&self.line), time(&line)) {
            (Some(old), Some(new)) if new >= old => {}
            (Some(_), None) => {} // a later failure does not undo a measurement
            _ => self.line = line,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.variant.as_str() {
            "ours" => Kind::Ours,
            "ours-bf16" => Kind::OursBf16,
            "products" | "traffic" => Kind::Floor,
            name if name.starts_with("bf16") => Kind::Bf16,
            name if name.contains("compiled") => Kind::Compiled,
            _ => Kind::Eager,
        }
    }

    fn seconds(&self) -> Option<f64> {
        self.line.as_ref().ok().map(seconds)
    }

    fn bytes(&self, key: &str) -> Option<f64> {
        self.line.as_ref().ok()?[key].as_f64()
    }
}

fn seconds(line: &Value) -> f64 {
    line["best"].as_f64().unwrap_or(f64::INFINITY)
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) measured: Vec<Measured>,
}

impl Row {
    fn best(&self, kind: Kind) -> Option<&Measured> {
        let of_kind = self.measured.iter().filter(|m| m.kind() == kind && m.seconds().is_some());
        of_kind.min_by(|a, b| {
            a.seconds().partial_cmp(&b.seconds()).unwrap_or(std::cmp::Ordering::Equal)
        })
    }

    fn least_memory(&self, kinds: &[Kind]) -> Option<f64> {
        let peaks = self.of(kinds).filter_map(|m| m.bytes("peak_bytes"));
        peaks.fold(None, |least: Option<f64>, peak| Some(least.map_or(peak, |l| l.min(peak))))
    }

    fn of(&self, kinds: &[Kind]) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(move |m| kinds.contains(&m.kind()))
    }
}

/// Takes out of the race the variants of PyTorch that are more than `factor` times slower than the best of their kind.
pub(super) fn drop_hopeless(all: &mut [&mut Measured], factor: f64) {
    for kind in [Kind::Eager, Kind::Compiled, Kind::Bf16] {
        let times = all.iter().filter(|m| m.kind() == kind).filter_map(|m| m.seconds());
        let best = times.fold(f64::INFINITY, f64::min);
        for measured in all.iter_mut().filter(|m| m.kind() == kind) {
            measured.in_the_race &= measured.seconds().is_some_and(|t| t <= factor * best);
        }
    }
}

/// The tables, the reasons for their gaps, and every variant.
pub(super) fn render(rows: &[Row], command: &str, repeat: u32) -> String {
    let mut text = format!(
        "`{command}`: the best of {repeat} round(s).\n\n\
         Both sides in f32:\n\n\
         | row | ours ms | PyTorch ms, eager | compiled | ratio | ours MiB | PyTorch MiB | ratio | what it cannot do without |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---|\n"
    );
    for row in rows {
        text += &line(row);
    }
    text += "\nBoth sides with products of bf16 operands, on this processor:\n\n\
             | row | ours ms | PyTorch ms | ratio | ours MiB | PyTorch MiB | ratio | ours, bf16 to f32 |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n";
    for row in rows.iter().filter(|row| row.best(Kind::Bf16).is_some()) {
        text += &line_of_bf16(row);
    }
    let mut reasons = String::new();
    for row in rows {
        for measured in &row.measured {
            if let Err(reason) = &measured.line {
                let reason = reason.replace('|', "\\|");
                let _ = writeln!(reasons, "* {}, {}: {reason}", row.name, measured.variant);
            }
        }
    }
    if !reasons.is_empty() {
        let _ = write!(text, "\nWithout a number:\n\n{reasons}");
    }
    text += "\nEvery variant; `start` is what its process held before it built anything.\n\n\
             | row | variant | best ms | median ms | peak MiB | start MiB |\n|---|---|---:|---:|---:|---:|\n";
    for row in rows {
        for measured in &row.measured {
            let Ok(found) = &measured.line else { continue };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                row.name,
                measured.variant,
                milliseconds(measured.seconds()),
                milliseconds(found["median"].as_f64()),
                mebibytes(measured.bytes("peak_bytes")),
                mebibytes(measured.bytes("start_bytes")),
            );
        }
    }
    text
}

fn line(row: &Row) -> String {
    let time = |kind| row.best(kind).and_then(Measured::seconds);
    let (ours, eager, compiled) = (time(Kind::Ours), time(Kind::Eager), time(Kind::Compiled));
    let our_peak = row.least_memory(&[Kind::Ours]);
    let their_peak = row.least_memory(&[Kind::Eager, Kind::Compiled]);
    let theirs = [eager, compiled].into_iter().flatten().fold(f64::INFINITY, f64::min);
    let floor = row.best(Kind::Floor).zip(ours).and_then(|(floor, ours)| {
        let what = if floor.variant == "products" { "products" } else { "memory traffic" };
        Some(format!("{what} {:.0} %", 100.0 * floor.seconds()? / ours))
    });
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        row.name,
        milliseconds(ours),
        milliseconds(eager),
        milliseconds(compiled),
        ratio(ours, Some(theirs).filter(|t| t.is_finite())),
        mebibytes(our_peak),
        mebibytes(their_peak),
        ratio(our_peak, their_peak),
        floor.as_deref().unwrap_or("-"),
    )
}

fn line_of_bf16(row: &Row) -> String {
    let time = |kind| row.best(kind).and_then(Measured::seconds);
    let (ours, theirs) = (time(Kind::OursBf16), time(Kind::Bf16));
    let [our_peak, their_peak] = [Kind::OursBf16, Kind::Bf16].map(|kind| row.least_memory(&[kind]));
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
        row.name,
        milliseconds(ours),
        milliseconds(theirs),
        ratio(ours, theirs),
        mebibytes(our_peak),
        mebibytes(their_peak),
        ratio(our_peak, their_peak),
        ratio(ours, time(Kind::Ours)),
    )
}

/// The time of one measurement, or why there is none.
pub(super) fn outcome(line: &Result<Value, String>) -> String {
    match line {
        Ok(line) => format!("{} ms", milliseconds(Some(seconds(line)))),
        Err(reason) => reason.clone(),
    }
}

fn milliseconds(seconds: Option<f64>) -> String {
    let Some(ms) = seconds.map(|s| 1e3 * s) else { return "-".to_owned() };
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms => format!("{ms:.2}"),
    }
}

fn mebibytes(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{:.0}", bytes / MIB))
}

fn ratio(ours: Option<f64>, theirs: Option<f64>) -> String {
    ours.zip(theirs)
        .map_or_else(|| "-".to_owned(), |(ours, theirs)| format!("{:.2}", ours / theirs))
}

/// The page with another text between the markers.
pub(super) fn between_markers(page: &str, text: &str) -> Result<String> {
    let (Some(begin), Some(end)) = (page.find(BEGIN), page.find(END)) else {
        bail!("docs/performance.md: expected the lines {BEGIN} and {END}, got neither or one");
    };
    if end < begin {
        bail!("docs/performance.md: expected {BEGIN} before {END}, got it after");
    }
    let before = &page[..begin + BEGIN.len()];
    Ok(format!("{before}\n{}\n{}", text.trim_end(), &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn measured(variant: &str, best: f64, peak_mib: f64) -> Measured {
        let mut m = Measured::new(variant);
        m.add(Ok(json!({"best": best, "median": 2.0 * best, "peak_bytes": peak_mib * MIB, "start_bytes": MIB})));
        m
    }

    /// By hand: ours 0.5 s against 1.0, the fastest of 1.0, 1.25 and 2.0; 300 MiB against 400, the least, of another variant. In bf16
    /// 0.3 s against 0.4 s, and 100 MiB against 200 MiB.
    #[test]
    fn a_row_compares_with_the_faster_and_the_smaller() {
        let mut failed = Measured::new("own-compiled-fused");
        failed.add(Err("no | compiler".to_owned()));
        let row = Row {
            name: "vit".to_owned(),
            measured: vec![
                measured("ours", 0.5, 300.0),
                measured("products", 0.375, 10.0),
                measured("own", 1.25, 400.0),
                measured("transformers", 2.0, 500.0),
                measured("own-compiled", 1.0, 800.0),
                measured("ours-bf16", 0.3, 100.0),
                measured("bf16-own-compiled", 0.4, 200.0),
                failed,
            ],
        };
        assert_eq!(
            line(&row),
            "| vit | 500 | 1250 | 1000 | 0.50 | 300 | 400 | 0.75 | products 75 % |\n"
        );
        let of_bf16 = "| vit | 300 | 400 | 0.75 | 100 | 200 | 0.50 | 0.60 |\n";
        assert_eq!(line_of_bf16(&row), of_bf16);
        let text = render(&[row], "command", 3);
        assert!(text.contains(of_bf16), "{text}");
        assert!(text.contains("* vit, own-compiled-fused: no \\| compiler\n"), "{text}");
        assert!(text.contains("| vit | own | 1250 | 2500 | 400 | 1 |\n"), "{text}");
    }

    #[test]
    fn a_side_without_a_number_leaves_gaps() {
        let row = Row { name: "gelu".to_owned(), measured: vec![measured("eager", 0.00123, 5.0)] };
        assert_eq!(line(&row), "| gelu | - | 1.23 | - | - | - | 5 | - | - |\n");
    }

    /// The best round stays, and a later failure does not erase it. A variant 1.3 times slower than the best of its kind is dropped.
    #[test]
    fn rounds_keep_the_best_and_drop_the_hopeless() {
        let mut eager = measured("own", 1.0, 1.0);
        eager.add(Ok(json!({"best": 2.0})));
        assert_eq!(eager.seconds(), Some(1.0));
        eager.add(Ok(json!({"best": 0.5})));
        assert_eq!(eager.seconds(), Some(0.5));
        let mut slow = measured("transformers", 0.7, 1.0);
        let mut compiled = measured("own-compiled", 3.0, 1.0);
        drop_hopeless(&mut [&mut eager, &mut slow, &mut compiled], 1.3);
        assert!(eager.in_the_race && !slow.in_the_race && compiled.in_the_race);
        eager.add(Err("stopped".to_owned()));
        assert!(!eager.in_the_race && eager.seconds() == Some(0.5));
    }

    #[test]
    fn the_page_keeps_what_stands_around_the_markers() {
        let page = format!("# Title\n{BEGIN}\nold\n{END}\nrest\n");
        let want = format!("# Title\n{BEGIN}\nnew\n{END}\nrest\n");
        assert_eq!(between_markers(&page, "new\n").unwrap(), want);
        assert!(between_markers("no markers", "new").is_err());
        assert!(between_markers(&format!("{END}{BEGIN}"), "new").is_err());
    }
}
