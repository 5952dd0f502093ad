//! `report.md`: the verdict on the first line, then the tables.

use super::json::Report;
use super::tables::{self, Interval, Table};
use super::verdict;

pub(super) fn render(report: &Report) -> String {
    let mut out =
        format!("{}\n\n# {}\n\n", line(&verdict::of(report).text), escape(&report.target));
    if let Some(why) = &report.substitution {
        out += &format!("> {}\n\n", escape(&line(why)));
    }
    let measured = [
        Some(tables::recalls(report, Interval::Ends)),
        tables::comparisons(report),
        Some(tables::seeds(report)),
        tables::truth(report),
        tables::draws(report),
        tables::paper(report),
        tables::paper_differences(report),
    ];
    for t in measured.iter().flatten() {
        table(&mut out, t);
    }
    if !report.notes.is_empty() {
        out += "## Notes\n\n";
        for note in &report.notes {
            out += &format!("- {}\n", escape(&line(note)));
        }
        out.push('\n');
    }
    out += "## Run\n\n";
    for (label, value) in tables::facts(report) {
        out += &format!("- {label}: {}\n", escape(&line(&value)));
    }
    out + &format!("\n```sh\n{}\n```\n", line(&report.command))
}

fn table(out: &mut String, t: &Table) {
    *out += &format!("## {}\n\n| {} |", escape(&t.title), t.stub);
    for c in &t.columns {
        *out += &format!(" {}{} |", c.short, escape(&c.label));
    }
    *out += "\n|---|";
    *out += &"---:|".repeat(t.columns.len());
    for l in &t.lines {
        *out += &format!("\n| {} |", escape(&l.name));
        for cell in &l.cells {
            let text = escape(&cell.text);
            *out += &if cell.best { format!(" **{text}** |") } else { format!(" {text} |") };
        }
    }
    *out += &format!("\n\n{}\n\n", escape(&t.note));
}

/// One line, whatever stood in the data.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text that stays text: no markup, no table cell of its own.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}
