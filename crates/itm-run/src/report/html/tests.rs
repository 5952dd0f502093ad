use super::super::json::{DistributionOf, EpochDraws, Row};
use super::super::tests::sample;
use super::super::{CCA, CHANCE, Figures};
use super::*;

fn page() -> String {
    render(&sample::input(24.3, -5.5, &[1, 2, 3]))
}

/// Writes the page of the made-up report to the file that `ITM_PAGE` names, for a person to look at.
#[test]
fn a_page_to_look_at() {
    if let Some(path) = std::env::var_os("ITM_PAGE") {
        std::fs::write(path, render(&of_regions())).unwrap();
    }
}

/// The made-up report with a method that compares words with regions: it adds word effects and moments of word scores.
fn of_regions() -> ReportInput {
    let mut input = sample::input(24.3, -5.5, &[1, 2, 3]);
    input.figures.word_maps.push(sample::effects());
    for curve in input.figures.curves.iter_mut().filter(|c| c.row == "Full") {
        let course = |from: f64, to: f64| -> Vec<(f64, f64)> {
            let at = |e: f64| (e, to + (from - to) * (-e / 4.0).exp());
            (1..=16).map(f64::from).map(at).collect()
        };
        curve.numbers = [
            ("matched_mean", course(0.3, 0.55)),
            ("matched_deviation", course(0.14, 0.09)),
            ("mismatched_mean", course(0.25, 0.2)),
            ("mismatched_deviation", course(0.1, 0.08)),
            ("t", course(0.0, 0.36)),
            ("t_s", course(0.0, 0.28)),
        ]
        .map(|(name, points)| (name.to_owned(), points))
        .into();
    }
    let full = input.report.rows[2].truth.as_mut().unwrap();
    full.grounding = full.pointing.clone();
    input
}

#[test]
fn words_and_regions_have_a_section_and_their_scores_two_figures() {
    let page = render(&of_regions());
    assert!(page.contains("<h2>Words and regions</h2>") && page.contains("class=\"effects\""));
    assert!(page.contains("Words that attend to what they name"));
    let before = self::page();
    assert_eq!(page.matches("<figure>").count(), before.matches("<figure>").count() + 2);
    assert!(!before.contains("Words and regions") && !before.contains(".takes"));
}

#[test]
fn all_rows_and_sections_are_there() {
    let page = page();
    for name in [CHANCE, CCA, "Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"] {
        let cells = page.matches(&format!("<th scope=\"row\">{name}</th>")).count();
        assert!(cells >= 4, "{name}: {cells}");
    }
    let sections = ["Recall on Scenes", "Flickr30K (paper)", "Training", "False negatives"];
    for title in sections.into_iter().chain([
        "Most probable false negatives",
        "Words and patches",
        "Retrieved examples",
        "What was run",
    ]) {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
    assert_eq!(page.matches("<figure>").count(), 3 + 2 + 3);
    assert_eq!(page.matches("<article").count(), 12 + 2 + 2);
    assert!(page.contains("The claim holds.") && page.contains("stays below CCA"));
}

/// A figure of the paper, and shares over epochs, are drawn where the report has them.
#[test]
fn parameters_and_epochs_are_drawn() {
    let mut input = sample::input(24.3, -5.5, &[1, 2]);
    let before = render(&input).matches("<figure>").count();
    let point = |row: &str, x| crate::report::FigurePoint { row: row.into(), x };
    input.report.figure = Some(crate::report::Figure {
        number: 5,
        x: "sampler.bank_size".into(),
        points: vec![point("w/o MMM", 256.0), point("Full", 1024.0), point("gone", 1.0)],
    });
    let draws = |epoch| EpochDraws {
        epoch,
        drawn: 0.02,
        uniform: 0.01,
        hardest: 0.3,
        others: [("FNE paper".to_owned(), 0.015)].into(),
        detection: vec![],
    };
    input.report.rows[2].truth.as_mut().unwrap().epochs = vec![draws(1), draws(2)];
    let page = render(&input);
    assert_eq!(page.matches("<figure>").count(), before + 2 + 1);
    // The axis for shares of 0.01 to 0.3 is in percent.
    let shares =
        page.split("<figcaption>").find(|f| f.starts_with("Full: negatives that are")).unwrap();
    assert!(shares.contains(">\n30\n<") && !shares.contains(">\n0.3\n<"), "{shares}");
    assert!(page.contains("Figure 5: rSum over `sampler.bank_size`"), "titled");
    assert!(page.contains("Full: negatives that are false, over epochs"));
    assert!(page.contains("FNE paper</span>") && !page.contains("NaN"));
}

/// 90 of 100 items are in 1 list, 10 are in 100 lists: (0, log₁₀ 0.9) and (2, −1). A row that is not in the report is
/// not drawn.
#[test]
fn distributions_are_drawn_on_logarithms() {
    use hubness::Direction;
    use hubness::hubs::{Bar, Histogram};

    use super::super::json::{Distribution, RowHubs, Spread};

    let mut input = sample::input(24.3, -5.5, &[1, 2]);
    let before = render(&input);
    assert!(!before.contains("<h2>Hubs</h2>"));
    let bars = [(1, 90), (100, 10)].map(|(count, items)| Bar { count, items });
    let of = |row: &str| DistributionOf {
        row: row.into(),
        histogram: Histogram { items: 100, never: 0, bars: bars.into() },
    };
    let rows = vec![of("Full"), of("w/o FNE"), of("gone")];
    input.report.distribution =
        Some(Distribution { number: 2, direction: Direction::T2i, k: 1, rows });
    let spread = Spread { mean: 9.0, sd: None };
    input.report.hubs =
        vec![RowHubs { row: "Full".into(), hs_sum: spread, paper_hs_sum: None, counts: vec![] }];
    let page = render(&input);
    assert!(page.contains("<h2>Hubs</h2>") && page.contains("Hubs: counts</h3>"));
    let count = |page: &str| page.matches("<figure>").count();
    assert_eq!(count(&page), count(&before) + 1);
    let title = "Figure 2: distribution of N_1, text → image";
    let figure = page.split("<figcaption>").find(|f| f.starts_with(title)).unwrap();
    assert_eq!(figure.matches("<circle").count(), 2 * 2, "{figure}");
    for label in [">\n2\n<", ">\n−1\n<", "log₁₀ N_1", "log₁₀ p(N_1)", "w/o FNE</span>"] {
        assert!(figure.contains(label), "no {label} in {figure}");
    }
}

#[test]
fn data_is_never_markup() {
    let page = page();
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert('caption"));
    let mut input = sample::input(24.3, -5.5, &[1]);
    let evil = "\"><img src=x onerror=alert(1)>".to_owned();
    input.report.target = evil.clone();
    input.report.dataset = evil.clone();
    input.report.notes = vec![format!("`{evil}`")];
    input.report.command = evil.clone();
    input.report.rows[2].name = evil.clone();
    input.figures.similarities[0].row = evil.clone();
    input.figures.similarities[0].groups[0].label = evil.clone();
    assert!(!render(&input).contains("<img src=x"));
}

#[test]
fn the_badge_says_what_the_verdict_says() {
    let badge = |without, cca| {
        let page = render(&sample::input(without, cca, &[1, 2]));
        let badge = page.split("<p class=\"verdict ").nth(1).unwrap().to_owned();
        badge.split("</strong>").next().unwrap().to_owned()
    };
    assert_eq!(badge(24.3, 5.5), "above\"><strong>The claim holds.");
    assert_eq!(badge(1.2, 24.3), "unsure\"><strong>The claim is not decided.");
    assert_eq!(badge(-9.0, 5.5), "below\"><strong>The claim does not hold.");
}

/// Changing one direction's recalls or intervals changes only that direction's figure.
#[test]
fn each_direction_has_its_own_bars() {
    let bars = |report: &Report| {
        let figures = plots::recall(report);
        [1, 2].map(|k| figures[k].svg.clone().into_string())
    };
    let report = sample::report(24.3, -5.5, &[1, 2]);
    let [i2t, t2i] = bars(&report);
    type Change = fn(&mut super::super::json::Measured);
    let changes: [(Change, [bool; 2]); 4] = [
        (|m| m.i2t.r1 += 9.0, [true, false]),
        (|m| m.t2i.r1 += 9.0, [false, true]),
        (|m| m.ci95_recalls.as_mut().unwrap().i2t[2][1] += 9.0, [true, false]),
        (|m| m.ci95_recalls.as_mut().unwrap().t2i[2][1] += 9.0, [false, true]),
    ];
    for (k, (change, want)) in changes.into_iter().enumerate() {
        let mut changed = report.clone();
        change(&mut changed.rows[2].measured);
        let [a, b] = bars(&changed);
        assert_eq!([a != i2t, b != t2i], want, "change {k}");
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = page();
    for word in ["http:", "https:", "<link", "url(", "@import", "<iframe", "<object"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.split("src=\"").skip(1).all(|s| s.starts_with("data:image/")));
    assert!(page.contains("src=\"data:image/"));
}

#[test]
fn tags_are_closed_in_order() {
    let page = page();
    let mut open = Vec::new();
    let body = page.split("</head>").nth(1).unwrap().trim_end().trim_end_matches("</html>");
    for tag in body.split('<').skip(1).map(|t| t.split('>').next().unwrap()) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !tag.starts_with("img ") {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn rows_have_colours_of_their_own() {
    let mut report = sample::report(24.3, -5.5, &[1]);
    let colours =
        |report: &Report| -> Vec<u8> { plots::rows(report).iter().map(|row| row.1).collect() };
    assert_eq!(colours(&report)[2], 0);
    let others = report.rows.len() - 3;
    let other = report.rows.last().unwrap().clone();
    report.rows.extend((others..10).map(|k| Row { name: format!("row {k}"), ..other.clone() }));
    let mut all = colours(&report);
    let page = page();
    assert!(all.iter().all(|k| page.contains(&format!("--s{k}: "))), "{all:?}");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 13, "chance, CCA, the claim's and ten others");
}

#[test]
fn a_bare_report_is_a_page_too() {
    let mut report = sample::report(24.3, -5.5, &[]);
    report.rows.truncate(1);
    report.rows[0].truth = None;
    report.comparisons.clear();
    report.paper_reference = None;
    report.substitution = None;
    let page = render(&ReportInput { report, figures: Figures::default() });
    assert!(page.contains("cannot be judged yet.") && !page.contains("NaN"));
}
