//! `report.md`: the verdict on the first line, then the tables.

use super::json::Report;
use super::tables::{self, Interval, Table};
use super::verdict;

pub(super) fn render(report: &Report) -> String {
    let mut out =
        format!("{}\n\n# {}\n\n", escape(&line(&verdict::of(report).text)), escape(&report.target));
    if let Some(why) = &report.substitution {
        out += &format!("> {}\n\n", prose(&line(why)));
    }
    let measured = [
        Some(tables::recalls(report, Interval::Ends)),
        tables::comparisons(report),
        tables::hubs(report),
        tables::hub_differences(report),
        tables::hub_counts(report),
        tables::rescored(report),
        Some(tables::seeds(report)),
        tables::truth(report),
        tables::draws(report),
        tables::epochs(report),
        tables::detection_epochs(report),
        tables::detection(report),
        tables::pointing(report),
        tables::paper(report),
        tables::paper_differences(report),
    ];
    for t in measured.iter().flatten() {
        table(&mut out, t);
    }
    if !report.notes.is_empty() {
        out += "## Notes\n\n";
        for note in &report.notes {
            out += &format!("- {}\n", prose(&line(note)));
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

/// Text in which `backquotes` mark code.
fn prose(text: &str) -> String {
    let parts: Vec<_> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escape(text); // an odd backquote is only a character
    }
    let code = |(i, part): (usize, &&str)| match i % 2 {
        1 => format!("`{part}`"),
        _ => escape(part),
    };
    parts.iter().enumerate().map(code).collect()
}

/// Text that stays text: no markup, no line and no table cell of its own.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            // "p < 0.001" and "a & b" open neither a tag nor an entity.
            '<' | '&' if rest.as_str().starts_with(' ') => out.push(c),
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_first_line_is_the_verdict() {
        let report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let text = render(&report);
        assert_eq!(text.lines().next().unwrap(), verdict::of(&report).text);
        assert!(text.contains("\n## Flickr30K (paper)\n"));
        assert!(text.contains("p < 0.001"));
        assert!(text.contains("`cargo xtask data`"));
    }

    #[test]
    fn tables_are_rectangles() {
        let text = render(&sample::report(24.3, -5.5, &[1, 2, 3]));
        let lines: Vec<_> = text.lines().collect();
        let tables = lines.chunk_by(|a, b| a.starts_with('|') == b.starts_with('|'));
        let mut seen = 0;
        for table in tables.filter(|t| t[0].starts_with('|')) {
            let bars = |line: &str| line.replace("\\|", "").matches('|').count();
            assert!(table.iter().all(|line| bars(line) == bars(table[0])), "{}", table[0]);
            seen += 1;
        }
        assert_eq!(seen, 8);
    }

    #[test]
    fn data_stays_text() {
        let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
        report.dataset = "a|b <b>*x*</b>\n# y".into();
        report.notes = vec!["odd ` quote <script>".into()];
        let text = render(&report);
        assert!(!text.contains("<b>") && !text.contains("<script>") && !text.contains("\n# y"));
        assert!(text.contains("a\\|b &lt;b>\\*x\\*"), "{text}");
    }
}
