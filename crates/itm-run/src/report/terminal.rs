//! The tables that end a run in a terminal.

use std::io::IsTerminal;

use super::json::Report;
use super::tables::{self, Cell, Interval, Line, Role, Table};
use super::verdict::{self, Outcome};

/// Whether to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            Self::Ansi if !code.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

pub(super) fn render(report: &Report, palette: Palette) -> String {
    let measured = [
        Some(tables::recalls(report, Interval::Half)),
        tables::hubs(report),
        tables::hub_differences(report),
        tables::rescored(report),
        tables::truth(report),
        tables::draws(report),
        tables::detection(report),
        tables::pointing(report),
        tables::paper(report).filter(|_| report.paper_reference.is_some()),
        tables::paper_differences(report),
    ];
    let mut out = String::new();
    for t in measured.iter().flatten() {
        table(&mut out, t, palette);
    }
    let verdict = verdict::of(report);
    let code = match verdict.outcome {
        Outcome::Above => "1;32",
        Outcome::Unsure | Outcome::Incomplete => "1;33",
        Outcome::Below => "1;31",
    };
    out + &palette.paint(code, &verdict.text) + "\n"
}

fn table(out: &mut String, t: &Table, palette: Palette) {
    let heads: Vec<_> = t.columns.iter().map(|c| format!("{}{}", c.short, c.label)).collect();
    let name_width = t.lines.iter().map(|l| width(&l.name)).chain([width(t.stub)]).max();
    let name_width = name_width.unwrap_or(0);
    let widths: Vec<_> = (0..heads.len())
        .map(|k| t.lines.iter().map(|l| width(&l.cells[k].text)).max().unwrap_or(0))
        .zip(&heads)
        .map(|(cell, head)| cell.max(width(head)))
        .collect();

    *out += &palette.paint("1", &t.title);
    *out += &format!("\n{}", pad_right(t.stub, name_width));
    for (head, &w) in heads.iter().zip(&widths) {
        *out += &format!("  {}", pad_left(head, w));
    }
    let rule = name_width + widths.iter().map(|w| w + 2).sum::<usize>();
    *out += &format!("\n{}\n", palette.paint("2", &"─".repeat(rule)));
    for line in &t.lines {
        *out += &row(line, name_width, &widths, palette);
        out.push('\n');
    }
    out.push('\n');
}

fn row(line: &Line, name_width: usize, widths: &[usize], palette: Palette) -> String {
    let code = match line.role {
        Role::Baseline => "2",
        Role::Method => "1",
        Role::Other => "",
    };
    let mut out = palette.paint(code, &pad_right(&line.name, name_width));
    for (Cell { text, best }, &w) in line.cells.iter().zip(widths) {
        let code = if *best { "1;36" } else { code };
        out += &format!("  {}", palette.paint(code, &pad_left(text, w)));
    }
    out
}

/// Characters, which is columns for everything these tables hold.
fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad_left(text: &str, w: usize) -> String {
    " ".repeat(w.saturating_sub(width(text))) + text
}

fn pad_right(text: &str, w: usize) -> String {
    text.to_owned() + &" ".repeat(w.saturating_sub(width(text)))
}

#[cfg(test)]
mod tests {
    use super::super::{CCA, CHANCE, sample};
    use super::*;

    #[test]
    fn columns_are_aligned_and_rows_all_there() {
        let report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let text = render(&report, Palette::Plain);
        for name in [CHANCE, CCA, "Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"] {
            assert!(text.lines().any(|l| l.starts_with(name)), "{name}");
        }
        for block in text.split("\n\n").filter(|b| b.contains('─')) {
            let widths: Vec<_> = block.lines().skip(1).map(width).collect();
            assert!(widths.iter().all(|w| *w == widths[0]), "{block}");
        }
        assert!(text.trim_end().ends_with(&verdict::of(&report).text));
    }

    #[test]
    fn colour_adds_only_colour() {
        let report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let plain = render(&report, Palette::Plain);
        let ansi = render(&report, Palette::Ansi);
        assert!(!plain.contains('\x1b') && ansi.contains("\x1b[1;31m")); // below CCA: red
        let stripped: String = (ansi.split('\x1b').enumerate())
            .map(|(i, part)| if i == 0 { part } else { part.split_once('m').unwrap().1 })
            .collect();
        assert_eq!(stripped, plain);
    }

    #[test]
    fn a_file_is_not_coloured() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(Palette::of(&file), Palette::Plain);
    }

    #[test]
    fn the_paper_column_stands_only_beside_its_own_data() {
        let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
        assert!(!render(&report, Palette::Plain).contains("paper rSum"));
        report.paper_reference = None;
        report.substituted = false;
        let printed = crate::paper::fne_row(3, "flickr30k", "Full").unwrap();
        report.rows[2].paper = Some(printed.numbers());
        let text = render(&report, Palette::Plain);
        assert!(text.contains("paper rSum") && !text.contains("(paper)"));
    }
}
