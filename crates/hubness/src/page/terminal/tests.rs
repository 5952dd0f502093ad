use super::super::tests::sample::{self, report};
use super::*;

fn plain(report: &Report, width: usize) -> String {
    render(report, width, Palette::Plain)
}

#[test]
fn never_wider_than_asked() {
    let mut long = report();
    long.rows[1].method = "a+method+with+a+name+that+is+longer+than+anybody+wants".into();
    long.data.warnings.push(format!("/{}", "a-path-without-an-end".repeat(20)));
    for report in [report(), long, sample::one_direction(Direction::T2i), sample::poisoned()] {
        for width in (60..=200).step_by(7) {
            for line in plain(&report, width).lines() {
                assert!(width_of(line) <= width, "{width}: {} {line}", width_of(line));
            }
        }
    }
}

/// A terminal narrower than 60 columns gets 60 columns.
#[test]
fn a_narrow_terminal_gets_sixty_columns() {
    assert_eq!(plain(&report(), 20), plain(&report(), 60));
}

#[test]
fn all_rows_stay_at_every_width_and_wide_ones_show_all() {
    for width in [60, 80, 120, 200] {
        let text = plain(&report(), width);
        for row in &report().rows {
            let name = title(&row.method);
            assert!(text.lines().any(|l| l.starts_with(&name)), "{width}: {name}");
        }
        assert!(text.contains("rSum") && text.contains("vs NNS") && text.contains("483.0"));
    }
    let [narrow, wide] = [60, 200].map(|w| plain(&report(), w));
    for head in ["R@10", "parameters", "95 % of it", "N10 t2i"] {
        assert!(wide.contains(head) && !narrow.contains(&format!("{head}  ")), "{head}");
    }
}

#[test]
fn warnings_come_first_and_the_verdict_before_the_table() {
    let text = plain(&report(), 100);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
    assert!(text.starts_with("warning: 2 image rows are equal"));
    let order = [
        "warning:",
        "note:",
        "500 images",
        "IS lifts rSum",
        "method",
        "T transductive",
        "lists of ten",
        "worst hubs",
        "seed 0",
    ];
    assert!(order.windows(2).all(|w| at(w[0]) < at(w[1])));
}

#[test]
fn marks_are_explained_where_they_occur() {
    let text = plain(&report(), 100);
    assert!(text.contains("T transductive:") && text.contains("H held-out bank:"));
    assert!(text.contains("* differs from NNS"));
    let mut alone = report();
    alone.rows.truncate(1);
    let text = plain(&alone, 100);
    assert!(!text.contains("transductive") && !text.contains("* differs"));
}

#[test]
fn colour_adds_only_colour() {
    let strip = |text: &str| -> String {
        let parts = text.split('\x1b').enumerate();
        parts.map(|(i, p)| if i == 0 { p } else { p.split_once('m').unwrap().1 }).collect()
    };
    // Colours also surround trailing blanks; a plain line has none.
    let trimmed = |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    for report in [report(), sample::poisoned()] {
        let ansi = render(&report, 100, Palette::Ansi);
        assert!(ansi.contains("\x1b["));
        assert_eq!(trimmed(&strip(&ansi)), trimmed(&plain(&report, 100)));
    }
    assert!(!plain(&report(), 100).contains('\x1b'));
}

#[test]
fn names_cannot_move_the_cursor() {
    let mut report = report();
    report.data.notes = vec![sample::EVIL.into()];
    report.rows[1].method = sample::EVIL.into();
    let text = plain(&report, 200);
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
    assert!(text.contains("<script>alert('hub')</script>"));
}

#[test]
fn one_direction_is_enough() {
    let text = plain(&sample::one_direction(Direction::I2t), 120);
    assert!(text.contains("i2t") && !text.contains("text -> image") && !text.contains("t2i"));
    assert!(text.contains("rSum: the sum of three recalls"));
    assert!(!plain(&report(), 120).contains("of three recalls"));
}

#[test]
fn what_is_no_number_is_a_dash() {
    for width in [60, 200] {
        let text = plain(&sample::poisoned(), width);
        assert!(!sample::says_no_number(&text), "{text}");
    }
}

#[test]
fn a_report_of_nothing_is_text() {
    assert!(plain(&sample::empty(), 80).contains("No verdict"));
}

#[test]
fn bars_are_as_long_as_their_share_and_nothing_is_unseen() {
    assert_eq!(
        [0, 1, 50, 99, 100].map(|n| bar(n, 100, 10)),
        ["", "▏", "█████", "█████████▉", "██████████"]
    );
    assert_eq!(bar(1, 1_000_000, 10), "▏");
}

/// Items of the histogram in the text add up to all items.
#[test]
fn the_histogram_holds_every_item() {
    let text = plain(&report(), 100);
    let block = text.split("image -> text: texts by N10").nth(1).unwrap();
    let block = block.split("\n\n").next().unwrap();
    let lines = block.lines().skip_while(|l| !l.trim_start().starts_with("N10  NNS")).skip(1);
    let before = lines.map(|l| {
        let number = l.split_whitespace().nth(1).unwrap().replace(',', "");
        number.parse::<u64>().unwrap()
    });
    assert_eq!(before.sum::<u64>(), 2500);
}

/// A report that was read may hold any counts.
#[test]
fn counts_of_any_size_have_a_mean() {
    let mut report = report();
    for histogram in &mut report.hubs.sides.i2t.as_mut().unwrap().histograms {
        histogram.counts = vec![(u64::MAX, 2)];
    }
    assert!(plain(&report, 100).contains("N10 = 18446744073709551616.0"));
}

#[test]
fn names_are_cut_inside_their_quotes() {
    assert_eq!(called(Some("a dog on grass"), "text", 3, 40), "text 3 \"a dog on grass\"");
    assert_eq!(called(Some("a dog on grass"), "text", 3, 15), "text 3 \"a dog…\"");
    assert_eq!(called(Some("a dog on grass"), "text", 3, 10), "text 3");
    assert_eq!(called(None, "image", 7, 40), "image 7");
}
