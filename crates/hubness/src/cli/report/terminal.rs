//! The report in a terminal.

mod grid;
mod text;

use std::io::IsTerminal;

use super::format::{bytes, clean, count, counted, duration, score};
use super::histogram::{Bin, doubling};
use super::methods::{MARKS, chosen, listed, title};
use super::model::{Chosen, Hub, HubSide, Report, Row, Victim};
use super::table::{self, items, name, queries};
use super::verdict::{self, Outcome};
use crate::Direction;
use grid::{hubs_grid, lines};
use text::{fit, pad_left, pad_right, width_of, wrap};

const MIN_WIDTH: usize = 60;
const HUBS: usize = 5;
const VICTIMS: usize = 1;
/// Sentences are no wider than this, however wide the terminal.
const PROSE: usize = 110;

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// Text alone: pipes and files.
    Plain,
    /// ANSI bold, dim and three colours.
    Ansi,
}

impl Palette {
    /// Colours if `stream` is a terminal and the environment does not say `NO_COLOR`.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        if stream.is_terminal() && !refused { Self::Ansi } else { Self::Plain }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Ansi if !code.is_empty() && !text.is_empty() => {
                format!("\x1b[{code}m{text}\x1b[0m")
            }
            _ => text.to_owned(),
        }
    }
}

pub(super) fn render(report: &Report, width: usize, palette: Palette) -> String {
    let width = width.max(MIN_WIDTH);
    let mut out = Page { text: String::new(), width, palette };
    for warning in &report.data.warnings {
        out.paragraph("1;33", &format!("warning: {warning}"));
    }
    // How pairs were found stands in the line on the data.
    for note in report.data.notes.iter().filter(|&note| *note != report.data.pairs_note) {
        out.paragraph("2", &format!("note: {note}"));
    }
    out.paragraph("", &data(report));
    out.blank();

    let verdict = verdict::of(report);
    let code = match verdict.outcome {
        Outcome::Helps => "1;32",
        Outcome::Nothing | Outcome::Untested => "1;33",
    };
    out.paragraph(code, &verdict.text);
    out.blank();

    lines(&table::results(report), width, palette).iter().for_each(|l| out.line(l));
    choices(report).iter().for_each(|line| out.paragraph("2", line));
    footnotes(report).iter().for_each(|note| out.paragraph("2", note));

    for direction in Direction::BOTH {
        if let Some(side) = report.hubs.sides.get(direction) {
            histogram(&mut out, report, side, direction);
            worst(&mut out, report, side, direction);
        }
    }
    out.blank();
    out.paragraph("2", &cost(report));
    out.text
}

struct Page {
    text: String,
    width: usize,
    palette: Palette,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.line("");
    }

    /// Wrapped, every further line indented.
    fn paragraph(&mut self, code: &str, text: &str) {
        for line in wrap(&clean(text), self.width.min(PROSE)) {
            self.line(&self.palette.paint(code, &line));
        }
    }
}

fn data(report: &Report) -> String {
    let data = &report.data;
    let mut parts =
        vec![counted(data.images, "image", "images"), counted(data.texts, "text", "texts")];
    parts.extend(data.dim.map(|d| format!("{d} dimensions")));
    format!("{}; {}", parts.join(", "), data.pairs_note)
}

/// What was chosen for the rows that left it open: the table has no room for it.
fn choices(report: &Report) -> Vec<String> {
    let open = |row: &&Row| matches!(row.chosen, Chosen::CrossFitted | Chosen::Validation);
    let one = |row: &Row| {
        let of = |direction: Direction| {
            let params = row.params.get(direction)?;
            Some(format!("{direction} {}", listed(params)))
        };
        let sides: Vec<_> = Direction::BOTH.into_iter().filter_map(of).collect();
        format!("{} chose {} ({})", title(&row.method), sides.join("; "), chosen(row.chosen))
    };
    report.rows.iter().filter(open).map(one).collect()
}

fn footnotes(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    if report.rows.iter().any(verdict::significant) {
        let level = verdict::LEVEL;
        out.push(format!(
            "* differs from NNS: p < {level}, paired randomisation over {}, Holm over the rows",
            report.settings.unit
        ));
    }
    for (setting, word, why) in MARKS {
        if let Some(row) = report.rows.iter().find(|r| r.seen.0 == setting) {
            out.push(format!("{} {word}: {why}", super::methods::mark(row)));
        }
    }
    if report.directions().count() == 1 {
        out.push("rSum: of three recalls, for only one direction was measured".into());
    }
    out
}

fn cost(report: &Report) -> String {
    let settings = &report.settings;
    let mut parts = vec![format!("seed {}", settings.seed)];
    if settings.resamples > 0 {
        parts.push(format!("{} resamples of {}", count(settings.resamples), settings.unit));
    }
    parts.push(format!("ties: {}", settings.tie_policy));
    parts.push(duration(report.seconds));
    parts.extend(report.peak_memory_bytes.map(|b| format!("{} at most", bytes(b))));
    parts.push(format!("hubness {}", report.version));
    parts.join("; ")
}

/// How many items turn up how often, before and after.
fn histogram(out: &mut Page, report: &Report, side: &HubSide, direction: Direction) {
    let Some(before) = side.histogram(Report::BASELINE, 10) else { return };
    let after = verdict::shown(report).and_then(|row| side.histogram(&row.method, 10));
    let max = before.max().max(after.map_or(0, |h| h.max()));
    let columns: Vec<(String, Vec<Bin>)> = [Some(before), after]
        .into_iter()
        .flatten()
        .map(|h| (title(&h.method), doubling(h, max)))
        .collect();
    let [_, things] = items(direction);

    out.blank();
    let n = direction.queries(report.data.images, report.data.texts);
    let head = format!(
        "{}: {things} by N10, in how many of the {} lists of ten they turn up",
        name(direction),
        count(n)
    );
    out.paragraph("1", &head);
    if n > 0 && before.items() > 0 {
        let share = before.counts.iter().map(|(k, items)| k * items).sum::<u64>() as f64
            / before.items() as f64;
        out.paragraph("2", &format!("if all turned up equally often: N10 = {share:.1}"));
    }

    let label = |bin: &Bin| match bin {
        Bin { lo, hi, .. } if lo == hi => lo.to_string(),
        Bin { lo, hi, .. } => format!("{lo}-{hi}"),
    };
    let labels: Vec<_> = columns[0].1.iter().map(label).collect();
    let label_width = labels.iter().map(|l| l.len()).chain([3]).max().unwrap_or(3);
    let all = || columns.iter().flat_map(|c| &c.1).map(|b| b.items);
    let number_width = count(all().max().unwrap_or(0)).len();
    let room = (out.width - label_width) / columns.len();
    let bar_width = room.saturating_sub(number_width + 3).clamp(4, 48);
    let most = all().max().unwrap_or(0).max(1);

    let heads = columns.iter().map(|(name, _)| {
        format!(
            "  {}",
            pad_right(&fit(name, bar_width + number_width + 1), bar_width + number_width + 1)
        )
    });
    let head = pad_left("N10", label_width) + &heads.collect::<String>();
    out.line(&out.palette.paint("2", head.trim_end()));
    for (i, label) in labels.iter().enumerate() {
        let mut line = pad_left(label, label_width);
        for (k, (_, bins)) in columns.iter().enumerate() {
            let bar = bar(bins[i].items, most, bar_width);
            let number = pad_left(&count(bins[i].items), number_width);
            let cell = pad_right(&bar, bar_width);
            line += &format!("  {number} {}", out.palette.paint(["33", "36"][k % 2], &cell));
        }
        out.line(line.trim_end());
    }
}

/// A bar of eighths of a block; what is there at all is seen.
fn bar(items: u64, most: u64, width: usize) -> String {
    let eighths = (items as f64 / most as f64 * width as f64 * 8.0).round() as usize;
    let eighths = if items > 0 { eighths.max(1) } else { 0 };
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

/// The worst hubs and whom they take the first place from.
fn worst(out: &mut Page, report: &Report, side: &HubSide, direction: Direction) {
    if side.worst.is_empty() {
        return;
    }
    let hubs: Vec<&Hub> = side.worst.iter().take(HUBS).collect();
    let shown = verdict::shown(report).map(|r| r.method.as_str());
    let [_, things] = items(direction);
    out.blank();
    out.paragraph("1", &format!("{}: the worst hubs among the {things}", name(direction)));
    let (width, palette) = (out.width, out.palette);
    let table = hubs_grid(&hubs, items(direction)[0], shown, width, palette);
    let (head, rows) = table.split_at(table.len().saturating_sub(hubs.len()));
    head.iter().for_each(|l| out.line(l));
    for (line, hub) in rows.iter().zip(&hubs) {
        out.line(line);
        for victim in hub.victims.iter().take(VICTIMS) {
            let line = victim_line(victim, queries(direction)[0], width);
            out.line(&palette.paint("2", &line));
        }
    }
}

fn victim_line(victim: &Victim, noun: &str, width: usize) -> String {
    let why = format!(
        ": {} over {}, right one at rank {}",
        score(victim.hub_score),
        score(victim.true_score),
        count(victim.true_rank)
    );
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
