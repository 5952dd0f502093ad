use super::super::json::Row;
use super::super::tests::sample;
use super::super::{CCA, CHANCE, first_sections, plots};
use super::*;

fn page() -> String {
    with(&sample::report(24.3, -5.5, &[1, 2, 3]), &sample::sections())
}

fn with(report: &Report, sections: &[Section]) -> String {
    let first = first_sections(report);
    render(report, &first.iter().chain(sections).collect::<Vec<_>>())
}

/// Writes the page of the made-up report to the file that `ITM_PAGE` names, for a person to look at.
#[test]
fn a_page_to_look_at() {
    if let Some(path) = std::env::var_os("ITM_PAGE") {
        std::fs::write(path, page()).unwrap();
    }
}

#[test]
fn all_rows_and_sections_are_there() {
    let page = page();
    for name in [CHANCE, CCA, "Full", "w/o FNE", "w/o MMM", "w/o MMM+FNE"] {
        let cells = page.matches(&format!("<th scope=\"row\">{name}</th>")).count();
        assert!(cells >= 1, "{name}: {cells}");
    }
    let sections = ["Recall on Scenes", "Flickr30K (paper)"];
    for title in sections.into_iter().chain([
        "Most probable false negatives",
        "Words and patches",
        "Words and regions",
        "Retrieved examples",
        "What was run",
    ]) {
        assert!(page.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
    assert_eq!(page.matches("<figure>").count(), 3);
    assert_eq!(page.matches("<article").count(), 12 + 2 + 2 + 1);
    assert!(page.contains("class=\"effects\""));
    assert!(page.contains("The claim holds.") && page.contains("stays below CCA"));
}

/// First the table with the section's title, then figures and pictures, then the other tables; nothing without content.
#[test]
fn a_section_is_laid_out_in_order() {
    use itm_report::table::{Role, Table};

    let table = |title: &str| Table::new(title, "row", [("Full", Role::Other)]);
    let of = |tables, pictures| Section { tables, pictures, ..Section::new("Hubs") };
    let section = of(vec![table("Others"), table("Hubs")], html! { p { "picture" } });
    let page = laid_out(&section).into_string();
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part} in {page}"));
    let order = ["<h2>Hubs</h2>", "<table>", "picture", "<h3>Others</h3>"].map(at);
    assert!(order.is_sorted(), "{page}");
    assert!(!page.contains("<h3>Hubs"));
    assert_eq!(laid_out(&of(vec![], html! {})).into_string(), "");
}

#[test]
fn data_is_never_markup() {
    let page = page();
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert('caption"));
    let mut report = sample::report(24.3, -5.5, &[1]);
    let evil = "\"><img src=x onerror=alert(1)>".to_owned();
    report.target = evil.clone();
    report.dataset = evil.clone();
    report.notes = vec![format!("`{evil}`")];
    report.command = evil.clone();
    report.rows[2].name = evil.clone();
    let section = Section { pictures: html! { p { (evil) } }, ..Section::new(evil.clone()) };
    assert!(!with(&report, &[section]).contains("<img src=x"));
}

#[test]
fn the_badge_says_what_the_verdict_says() {
    let badge = |without, cca| {
        let page = with(&sample::report(without, cca, &[1, 2]), &[]);
        let badge = page.split("<p class=\"verdict ").nth(1).unwrap().to_owned();
        badge.split("</strong>").next().unwrap().to_owned()
    };
    assert_eq!(badge(24.3, 5.5), "above\"><strong>The claim holds.");
    assert_eq!(badge(1.2, 24.3), "unsure\"><strong>The claim is not decided.");
    assert_eq!(badge(-9.0, 5.5), "below\"><strong>The claim does not hold.");
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
        |report: &Report| -> Vec<u8> { plots::coloured(report).iter().map(|row| row.1).collect() };
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
    report.comparisons.clear();
    report.paper_reference = None;
    report.substitution = None;
    let page = with(&report, &[]);
    assert!(page.contains("cannot be judged yet.") && !page.contains("NaN"));
}
