//! `report.md`: the verdict on the first line, then the tables.

use itm_report::markdown::{escape, line, prose, table};

use super::json::Report;
use super::{Section, tables, verdict};

pub(super) fn render(report: &Report, sections: &[&Section]) -> String {
    let verdict = escape(&line(&verdict::of(report).line()));
    let mut out = format!("{verdict}\n\n# {}\n\n", escape(&report.target));
    if let Some(why) = &report.substitution {
        out += &format!("> {}\n\n", prose(why));
    }
    sections.iter().flat_map(|section| &section.tables).for_each(|t| out += &table(t));
    if !report.notes.is_empty() {
        out += "## Notes\n\n";
        report.notes.iter().for_each(|note| out += &format!("- {}\n", prose(note)));
        out.push('\n');
    }
    out += "## Run\n\n";
    for (label, value) in tables::facts(report) {
        out += &format!("- {label}: {}\n", escape(&line(&value)));
    }
    out + &format!("\n```sh\n{}\n```\n", line(&report.command))
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn render(report: &Report) -> String {
        let first = super::super::first_sections(report);
        super::render(report, &first.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_first_line_is_the_verdict() {
        let report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let text = render(&report);
        assert_eq!(text.lines().next().unwrap(), verdict::of(&report).line());
        assert!(text.contains("\n## Flickr30K (paper)\n"));
        assert!(text.contains("p < 0.001"));
        let chosen = "ridges 0.3 of images and 2 of texts, power 1.25, 256 dimensions";
        assert!(text.contains(chosen), "{text}");
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
        assert_eq!(seen, 4);
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
