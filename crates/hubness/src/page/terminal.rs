//! The report in a terminal.

use itm_report::format::{ascii, bytes, clean, count, duration, score};
use itm_report::table::{Alignment, Table};
use itm_report::terminal::{self, Palette, fit, pad_left, pad_right, taken, width_of, wrap};

use super::histogram::{Bin, doubling};
use super::methods::{chosen, listed, marks, title};
use super::table::{self, items, name, queries};
use super::verdict::{self, Outcome};
use crate::Direction;
use crate::report::{ChoiceOrigin, HubSide, Report, ReportRow, Victim};

const MIN_WIDTH: usize = 60;
const HUBS: usize = 5;
const VICTIMS: usize = 1;
/// Sentences are at most this wide, even in a wider terminal.
const PROSE: usize = 110;

/// The report as text of at most `width` columns; a width below 60 counts as 60.
pub fn render(report: &Report, width: usize, palette: Palette) -> String {
    let width = width.max(MIN_WIDTH);
    let mut out = TerminalPage { text: String::new(), width, palette };
    for warning in &report.data.warnings {
        out.paragraph("1;33", &format!("warning: {warning}"));
    }
    // The line on the data already says how the pairs were found.
    for note in report.data.notes.iter().filter(|&note| *note != report.data.pairs_note) {
        out.paragraph("2", &format!("note: {note}"));
    }
    out.paragraph("", &data(report));
    out.line("");

    let verdict = verdict::of(report);
    let code = match verdict.outcome {
        Outcome::Helps => "1;32",
        Outcome::Nothing | Outcome::Untested => "1;33",
    };
    out.paragraph(code, &ascii(&verdict.text));
    out.line("");

    out.table(table::results(report), (width / 4).max(12)).iter().for_each(|l| out.line(l));
    choices(report).iter().for_each(|line| out.paragraph("2", line));
    footnotes(report).iter().for_each(|note| out.paragraph("2", note));

    for direction in Direction::BOTH {
        if let Some(side) = report.hubs.sides.get(direction) {
            histogram(&mut out, report, side, direction);
            worst(&mut out, report, side, direction);
        }
    }
    out.line("");
    out.paragraph("2", &cost(report));
    out.text
}

struct TerminalPage {
    text: String,
    width: usize,
    palette: Palette,
}

impl TerminalPage {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Adds a wrapped paragraph; every line after the first is indented.
    fn paragraph(&mut self, code: &str, text: &str) {
        for line in wrap(&clean(text), self.width.min(PROSE)) {
            self.line(&self.palette.paint(code, &line));
        }
    }

    /// The lines of a table, with its numbers in ASCII.
    fn table(&self, mut table: Table, words: usize) -> Vec<String> {
        for column in table.columns.iter_mut().filter(|c| c.side == Alignment::Right) {
            column.cells.iter_mut().for_each(|cell| cell.text = ascii(&cell.text));
        }
        terminal::table(&table, self.width, words, self.palette)
    }
}

fn data(report: &Report) -> String {
    let data = &report.data;
    let dim = data.dim.map_or(String::new(), |d| format!(", {d} dimensions"));
    format!("{}{dim}; {}", table::size(report).join(", "), data.pairs_note)
}

/// The chosen settings of the rows that were cross-fitted or validated; the table has no room for them.
fn choices(report: &Report) -> Vec<String> {
    let open = |row: &&ReportRow| {
        matches!(row.chosen, ChoiceOrigin::CrossFitted | ChoiceOrigin::Validation)
    };
    let one = |row: &ReportRow| {
        let of = |direction: Direction| {
            Some(format!("{direction} {}", listed(row.params.get(direction)?)))
        };
        let sides: Vec<_> = Direction::BOTH.into_iter().filter_map(of).collect();
        format!("{} chose {} ({})", title(&row.method), sides.join("; "), chosen(row.chosen))
    };
    report.rows.iter().filter(open).map(one).collect()
}

fn footnotes(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    if report.rows.iter().any(verdict::significant) {
        let (level, unit) = (verdict::LEVEL, &report.settings.unit);
        out.push(format!(
            "* differs from NNS: p < {level}, paired randomisation over {unit}, Holm over the rows"
        ));
    }
    out.extend(marks(report).map(|(setting, mark, why)| format!("{mark} {setting}: {why}")));
    if report.directions().count() == 1 {
        out.push("rSum: the sum of three recalls, because only one direction was measured".into());
    }
    out
}

fn cost(report: &Report) -> String {
    let settings = &report.settings;
    let mut parts = vec![format!("seed {}", settings.seed)];
    if settings.resamples > 0 {
        parts.push(format!("{} resamples of {}", count(settings.resamples), settings.unit));
    }
    parts.push(format!("ties: {}", table::ties(report)));
    parts.push(ascii(&duration(report.seconds)));
    parts.extend(report.peak_memory_bytes.map(|b| format!("{} at most", bytes(b))));
    parts.push(format!("hubness {}", report.version));
    parts.join("; ")
}

/// How many items turn up how often, before and after.
fn histogram(out: &mut TerminalPage, report: &Report, side: &HubSide, direction: Direction) {
    let Some(before) = side.histogram(Report::BASELINE, 10) else { return };
    let after = verdict::shown(report).and_then(|row| side.histogram(&row.method, 10));
    let max = before.max().max(after.map_or(0, |h| h.max()));
    let shown = [Some(before), after].into_iter().flatten();
    let columns: Vec<_> = shown.map(|h| (title(&h.method), doubling(h, max))).collect();

    out.line("");
    let n = direction.queries(report.data.images, report.data.texts);
    let (way, things) = (ascii(name(direction)), items(direction)[1]);
    let lists = count(n);
    out.paragraph(
        "1",
        &format!("{way}: {things} by N10, in how many of the {lists} lists of ten they turn up"),
    );
    if n > 0 && before.items() > 0 {
        let answers = before.counts.iter().map(|&(k, items)| k as f64 * items as f64).sum::<f64>();
        let share = answers / before.items() as f64;
        out.paragraph("2", &format!("if all items turned up equally often: N10 = {share:.1}"));
    }

    let label = |bin: &Bin| match bin {
        Bin { lo, hi, .. } if lo == hi => lo.to_string(),
        Bin { lo, hi, .. } => format!("{lo}-{hi}"),
    };
    let labels: Vec<_> = columns[0].1.iter().map(label).collect();
    let label_width = labels.iter().map(|l| l.len()).chain([3]).max().unwrap_or(3);
    let most = columns.iter().flat_map(|c| &c.1).map(|b| b.items).max().unwrap_or(0);
    let number_width = count(most).len();
    let room = (out.width - label_width) / columns.len();
    let bar_width = room.saturating_sub(number_width + 3).clamp(4, 48);

    let cell = bar_width + number_width + 1;
    let heads = columns.iter().map(|(name, _)| format!("  {}", pad_right(&fit(name, cell), cell)));
    let head = pad_left("N10", label_width) + &heads.collect::<String>();
    out.line(&out.palette.paint("2", head.trim_end()));
    for (i, label) in labels.iter().enumerate() {
        let mut line = pad_left(label, label_width);
        for ((_, bins), colour) in columns.iter().zip(["33", "36"]) {
            let items = bins[i].items;
            let bar = pad_right(&bar(items, most.max(1), bar_width), bar_width);
            let number = pad_left(&count(items), number_width);
            line += &format!("  {number} {}", out.palette.paint(colour, &bar));
        }
        out.line(line.trim_end());
    }
}

/// A bar in eighths of a block, with at least one eighth if there are any items.
fn bar(items: u64, most: u64, width: usize) -> String {
    let eighths = (items as f64 / most as f64 * width as f64 * 8.0).round() as usize;
    let eighths = if items > 0 { eighths.max(1) } else { 0 };
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

/// The worst hubs and the queries whose first place they take.
fn worst(out: &mut TerminalPage, report: &Report, side: &HubSide, direction: Direction) {
    if side.worst.is_empty() {
        return;
    }
    let [noun, things] = items(direction);
    out.line("");
    let way = ascii(name(direction));
    out.paragraph("1", &format!("{way}: the worst hubs among the {things}"));
    let shown: Vec<_> = verdict::shown(report).map(|r| r.method.as_str()).into_iter().collect();
    let mut table = table::hubs(side, direction, HUBS, &shown);
    for column in &mut table.columns {
        column.label = fit(&column.label, 18 - column.short.len());
    }
    let room = out.width.saturating_sub(taken(&table.columns));
    for (line, hub) in table.lines.iter_mut().zip(&side.worst) {
        line.0 = called(hub.name.as_deref(), noun, hub.item, room);
    }
    let hubs = table.lines.len();
    let lines = out.table(table, out.width);
    let (head, rows) = lines.split_at(lines.len() - hubs);
    head.iter().for_each(|line| out.line(line));
    for (line, hub) in rows.iter().zip(&side.worst) {
        out.line(line);
        for victim in hub.victims.iter().take(VICTIMS) {
            let line = victim_line(victim, queries(direction)[0], out.width);
            out.line(&out.palette.paint("2", &line));
        }
    }
}

fn victim_line(victim: &Victim, noun: &str, width: usize) -> String {
    let [hub, right] = [victim.hub_score, victim.true_score].map(|s| ascii(&score(s)));
    let why = format!(": {hub} over {right}, right one at rank {}", count(victim.true_rank));
    let lead = "    wins ";
    let room = width.saturating_sub(lead.len() + width_of(&why));
    lead.to_owned() + &called(victim.name.as_deref(), noun, victim.query, room) + &why
}

/// A name in quotes with its index, or `text 17`, in at most `width` columns.
fn called(name: Option<&str>, noun: &str, index: u64, width: usize) -> String {
    let bare = fit(&format!("{noun} {index}"), width);
    let room = width.saturating_sub(width_of(&bare) + 3);
    match name {
        Some(name) if room >= 4 => format!("{bare} \"{}\"", fit(&clean(name), room)),
        _ => bare,
    }
}

#[cfg(test)]
mod tests;
