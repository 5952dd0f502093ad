use super::super::tests::sample::{self, EVIL, report};
use super::*;

/// Writes the made-up report as a page to the path in `HUBNESS_PAGE`, for a look.
#[test]
fn a_page_to_look_at() {
    if let Some(path) = std::env::var_os("HUBNESS_PAGE") {
        std::fs::write(path, render(&report())).unwrap();
    }
}

#[test]
fn all_rows_and_sections_are_there() {
    let page = render(&report());
    for row in &report().rows {
        let name = methods::title(&row.method);
        // Recalls, ranks, and hub measures at three lengths in two directions.
        assert_eq!(page.matches(&format!("<th scope=\"row\">{name}</th>")).count(), 8, "{name}");
    }
    let sections = [
        "Recall before and after",
        "How often items turn up",
        "R@10 against λ",
        "The worst hubs",
        "How to read this page",
        "What was run",
        "How to cite",
    ];
    for title in sections {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
    // rSum, recalls, seven panels at three lengths in two directions, curves.
    assert_eq!(page.matches("<figure>").count(), 1 + 2 + 7 * 3 * 2 + 2);
    assert_eq!(page.matches("<figure>").count(), page.matches("role=\"img\" aria-label=").count());
}

#[test]
fn what_was_run_can_be_run_again() {
    let page = render(&report());
    let data = ["images.npy", "sha256 aaaa", "10,000 of images", "178.34 MiB", "--method auto"];
    for text in data {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("Warning:</strong> 2 image rows are equal"));
    assert!(page.contains("Word translation without parallel data") && page.contains("ICBK 2018"));
}

#[test]
fn the_leak_is_explained_where_it_occurs() {
    assert!(render(&report()).contains("<dt>T: transductive</dt>"));
    let mut blind = report();
    blind.rows.retain(|r| r.method == "nns" || r.method == "nnn");
    let page = render(&blind);
    assert!(!page.contains("T: transductive") && page.contains("H: held-out bank"));
}

#[test]
fn data_is_never_markup() {
    let page = render(&report());
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert('hub')"));
    assert!(!page.contains("<b>number") && page.contains("&lt;b&gt;number"));
    let mut report = report();
    let evil = || EVIL.to_owned();
    report.version = evil();
    report.data.pairs_note = evil();
    report.data.files[0] = crate::report::File { name: evil(), sha256: evil() };
    report.data.notes = vec![evil()];
    report.data.warnings = vec![evil()];
    let settings = &mut report.settings;
    (settings.unit, settings.tie_policy, settings.hub_rule) = (evil(), evil(), evil());
    settings.command = Some(evil());
    report.rows[1].method = evil();
    let params = report.rows[1].params.i2t.as_mut().unwrap();
    params.insert(evil(), crate::report::Param::Word(evil()));
    report.curves[0].label = evil();
    for side in [&mut report.hubs.sides.i2t, &mut report.hubs.sides.t2i].into_iter().flatten() {
        side.histograms[3].method = evil();
        side.worst[0].after.insert(evil(), 3);
    }
    let page = render(&report);
    assert!(!page.contains("<script") && !page.contains('\u{202e}') && !page.contains('\x1b'));
}

#[test]
fn the_page_needs_nothing_else() {
    let page = render(&report());
    for needle in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(needle), "{needle}");
    }
}

#[test]
fn one_direction_is_enough() {
    for (direction, absent) in [(Direction::I2t, "text → image"), (Direction::T2i, "image → text")]
    {
        let page = render(&sample::one_direction(direction));
        assert!(!page.contains(absent) && page.contains("rSum sums three recalls"));
    }
    assert!(!render(&report()).contains("rSum sums three recalls"));
}

#[test]
fn what_is_no_number_is_a_dash() {
    let text = |page: &str| -> String {
        let style = page.split("</style>").nth(1).unwrap();
        let parts = style.split('<').filter_map(|p| p.split_once('>'));
        parts.map(|(_, text)| text.to_owned() + " ").collect()
    };
    let page = text(&render(&sample::poisoned()));
    assert!(!sample::says_no_number(&page), "{page}");
    assert!(!page.contains("NaN"));
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let page = render(&sample::empty());
    assert!(page.contains("No verdict") && page.ends_with("</html>\n"));
    assert!(!page.contains("R@10 against λ"));
}

#[test]
fn every_tag_is_closed() {
    for report in [report(), sample::one_direction(Direction::T2i), sample::empty()] {
        let page = render(&report);
        for tag in [
            "table", "thead", "tbody", "tr", "td", "th", "div", "section", "details", "dl",
            "figure", "ul", "li", "span", "q", "bdi", "p", "svg",
        ] {
            let open = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}

/// Every row of a hub table has one cell per column head.
#[test]
fn hub_tables_are_rectangular() {
    let page = render(&report());
    for table in page.split("<table").skip(1).map(|t| t.split("</table>").next().unwrap()) {
        let head = table.split("</thead>").next().unwrap().rsplit("<tr>").next().unwrap();
        let cells = |row: &str| row.matches("<td").count() + row.matches("<th").count();
        for row in table.split("<tbody>").nth(1).unwrap().split("</tr>") {
            if row.contains("scope=\"row\"") {
                assert_eq!(cells(row), cells(head), "{row}");
            }
        }
    }
}
