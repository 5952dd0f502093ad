//! The tables that end a run in a terminal.

use itm_report::format::clean;
use itm_report::table::Table;
use itm_report::terminal::{Palette, table};

use super::json::Report;
use super::{Section, first_sections, tables, verdict};

/// How much of a report a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// One table of at most [`WIDTH`] columns, and the verdict.
    Short,
    /// Every table at its full width.
    Full,
}

/// Columns of a terminal of the usual width.
const WIDTH: usize = 80;
/// Maximum columns of a row's name in the short table.
const NAME: usize = 28;

/// The tables and the verdict for a terminal; `palette` says whether to colour.
pub(crate) fn render(
    report: &Report,
    measured: &[Section],
    detail: Detail,
    palette: Palette,
) -> String {
    let mut out = match detail {
        Detail::Short => laid_out(&tables::summary(report), WIDTH, NAME, palette),
        Detail::Full => {
            let first = first_sections(report);
            let tables = first.iter().chain(measured).flat_map(|section| &section.tables);
            tables.map(|t| laid_out(t, usize::MAX, usize::MAX, palette)).collect()
        }
    };
    let verdict = verdict::of(report);
    let [.., code] = verdict.look();
    out += &palette.paint(code, &clean(&verdict.line()));
    out + "\n"
}

fn laid_out(t: &Table, width: usize, words: usize, palette: Palette) -> String {
    let lines = table(t, width, words, palette).join("\n");
    format!("{}\n{lines}\n\n", palette.paint("1", &clean(&t.title)))
}

#[cfg(test)]
mod tests {
    use itm_report::terminal::width_of;

    use super::super::tests::sample;
    use super::super::{CCA, CHANCE};
    use super::*;

    #[test]
    fn columns_are_aligned_and_rows_all_there() {
        let report = sample::report(24.3, -5.5, &[1, 2, 3]);
        let text = render(&report, &[], Detail::Full, Palette::Plain);
        for name in [CHANCE, CCA, "Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"] {
            assert!(text.lines().any(|l| l.starts_with(name)), "{name}");
        }
        for block in text.split("\n\n").filter(|b| b.contains('─')) {
            let widths: Vec<_> = block.lines().skip(1).map(width_of).collect();
            assert!(widths.iter().all(|w| *w == widths[0]), "{block}");
        }
        assert!(text.trim_end().ends_with(&verdict::of(&report).line()));
    }

    /// By default: every row, one table, 80 columns, and the verdict.
    #[test]
    fn the_short_form_fits_a_terminal() {
        let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
        report.rows[3].name = "a row with a name that nobody would want to read".into();
        let text = render(&report, &[], Detail::Short, Palette::Plain);
        let (shown, verdict) = text.trim_end().rsplit_once("\n\n").unwrap();
        assert!(shown.lines().all(|line| width_of(line) <= WIDTH), "{shown}");
        assert_eq!(shown.lines().count(), 3 + report.rows.len(), "title, heads, rule, rows");
        assert!(shown.contains("rSum") && shown.contains("− CCA"), "{shown}");
        assert_eq!(verdict, verdict::of(&report).line());
    }

    #[test]
    fn colour_adds_only_colour() {
        let report = sample::report(-24.3, 5.5, &[1, 2, 3]);
        let plain = render(&report, &[], Detail::Full, Palette::Plain);
        let ansi = render(&report, &[], Detail::Full, Palette::Ansi);
        assert!(!plain.contains('\x1b') && ansi.contains("\x1b[1;31m")); // below w/o FNE: red
        let stripped: String = (ansi.split('\x1b').enumerate())
            .map(|(i, part)| if i == 0 { part } else { part.split_once('m').unwrap().1 })
            .collect();
        assert_eq!(stripped, plain);
    }

    #[test]
    fn the_paper_column_stands_only_beside_its_own_data() {
        let mut report = sample::report(24.3, -5.5, &[1, 2, 3]);
        assert!(!render(&report, &[], Detail::Full, Palette::Plain).contains("paper rSum"));
        report.paper_reference = None;
        report.substituted = false;
        let printed = crate::tests::paper("fne").reference(3, None, &[("Full", "Full")]).unwrap();
        report.rows[2].paper = Some(printed.rows[0].numbers.clone());
        let text = render(&report, &[], Detail::Full, Palette::Plain);
        assert!(text.contains("paper rSum"));
    }
}
