//! One self-contained HTML file: no script, no network, light and dark.
//!
//! The templates of `maud` escape text. The whole page is cleaned of characters that reverse the direction of a line.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figure::Figure;
use crate::format::{clean_lines, unbroken};
use crate::table::{Alignment, Column, Role, Table};

const STYLE: &str = include_str!("page.css");

/// The page, with `content` in its `main`.
pub fn page(title: &str, content: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (content) } }
        }
    };
    clean_lines(&page.into_string()) + "\n"
}

/// The first sentence of a page: the verdict in words, and the reason. `class` is `above`, `unsure` or `below`.
pub fn verdict(class: &str, words: &str, text: &str) -> Markup {
    html! { p class={ "verdict " (class) } { strong { (words) } " " (unbroken(text)) } }
}

/// A part of the page under a heading; empty without content.
pub fn section(title: &str, content: Markup) -> Markup {
    html! { @if !content.0.is_empty() { section { h2 { (title) } (content) } } }
}

/// Content that is hidden until a reader opens it.
pub fn details(summary: &str, content: Markup) -> Markup {
    html! { details { summary { (summary) } (content) } }
}

/// Labels and values side by side; `class` may be empty.
pub fn facts<K: AsRef<str>>(class: &str, facts: impl IntoIterator<Item = (K, String)>) -> Markup {
    let is_hash = |value: &str| value.split(' ').any(|word| word.len() >= 40);
    html! {
        dl class={ "facts " (class) } {
            @for (label, value) in facts {
                div { dt { (label.as_ref()) } dd class=[is_hash(&value).then_some("hash")] { (value) } }
            }
        }
    }
}

/// A term and its meaning, for a `dl.terms`.
pub fn term(term: impl maud::Render, what: impl maud::Render) -> Markup {
    html! { div { dt { (term) } dd { (what) } } }
}

/// The command that makes the page again.
pub fn again(command: &str) -> Markup {
    html! { p { "Again:" } pre { (command) } }
}

/// Text in which `backquotes` mark code.
pub fn prose(text: &str) -> Markup {
    let parts: Vec<_> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return html! { (text) }; // an unpaired backquote is only a character
    }
    html! {
        @for (i, part) in parts.iter().enumerate() {
            @if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Content that scrolls inside a box if it is wider than the page.
pub fn scroll(label: &str, content: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (content) } }
}

/// A table under its title.
pub fn titled(t: &Table) -> Markup {
    html! { h3 { (t.title) } (table(t)) }
}

/// A table and its note.
pub fn table(t: &Table) -> Markup {
    listing(t, "", |i| html! { (t.lines[i].0) }, |_| html! {})
}

/// A table and its note. `name` gives the name of a line, and `below` the row below the line; `class` may be empty.
pub fn listing(
    t: &Table,
    class: &str,
    name: impl Fn(usize) -> Markup,
    below: impl Fn(usize) -> Markup,
) -> Markup {
    let marked = t.columns.iter().flat_map(|c| &c.cells).any(|cell| cell.best);
    let rows = html! {
        table class=[(!class.is_empty()).then_some(class)] {
            thead {
                (groups(&t.columns))
                tr { th scope="col" { (t.stub) } @for c in &t.columns { (head(c)) } }
            }
            tbody { @for i in 0..t.lines.len() { (line(t, i, name(i))) (below(i)) } }
        }
    };
    html! {
        (scroll(&t.title, rows))
        @if !t.note.is_empty() {
            p.note { (t.note) @if marked { " Marked: the best of its column." } }
        }
    }
}

/// The heads that neighbouring columns share; empty if no head is shared.
fn groups(columns: &[Column]) -> Markup {
    html! {
        @if columns.iter().any(|c| !c.group.is_empty()) {
            tr {
                td {}
                @for group in columns.chunk_by(|a, b| a.group == b.group) {
                    @if group[0].group.is_empty() {
                        @for _ in group { td {} }
                    } @else {
                        th.group colspan=(group.len()) scope="colgroup" { (group[0].group) }
                    }
                }
            }
        }
    }
}

fn head(c: &Column) -> Markup {
    html! {
        @if c.label.is_empty() { td {} }
        @else { th scope="col" class=[class(c.side, false)] { (c.label) } }
    }
}

fn line(t: &Table, i: usize, name: Markup) -> Markup {
    let role = match t.lines[i].1 {
        Role::Baseline | Role::Bound => Some("baseline"),
        Role::Method => Some("method"),
        Role::Other => None,
    };
    html! {
        tr class=[role] {
            th scope="row" { (name) }
            @for c in &t.columns {
                td class=[class(c.side, c.cells[i].best)] { (text(c.side, &c.cells[i].text)) }
            }
        }
    }
}

fn class(side: Alignment, is_best: bool) -> Option<&'static str> {
    match side {
        _ if is_best => Some("best"),
        Alignment::Left => Some("words"),
        Alignment::Right => None,
    }
}

fn text(side: Alignment, text: &str) -> Markup {
    match side {
        // A single letter is a mark that a note explains.
        Alignment::Left if text.chars().count() == 1 => html! { abbr { (text) } },
        Alignment::Left => html! {
            @for (k, line) in text.split('\n').enumerate() { @if k > 0 { br; } (line) }
        },
        // The star hangs, so that the digits of marked and unmarked lines are below each other.
        Alignment::Right => match text.strip_suffix('*') {
            Some(number) => html! { (number) span.star { "*" } },
            None => html! { (text.trim_end()) },
        },
    }
}

/// Figures side by side if there is room; `class` decides their width.
pub fn grid(class: &str, figures: &[Figure]) -> Markup {
    html! {
        @if !figures.is_empty() {
            div class={ "grid " (class) } {
                @for f in figures {
                    figure {
                        figcaption {
                            (f.title)
                            @if !f.detail.is_empty() { span { (unbroken(&f.detail)) } }
                        }
                        (legend(&f.legend))
                        (f.svg)
                    }
                }
            }
        }
    }
}

/// A line of legend entries; empty without entries.
pub fn legend(keys: &[crate::figure::Key]) -> Markup {
    html! { @if !keys.is_empty() { p.legend { @for key in keys { (key.markup()) " " } } } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::points;

    #[test]
    fn every_special_character_is_escaped() {
        let evil = "<a b=\"c\">&\u{202e}\x1b";
        let want = "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}\u{fffd}";
        let mut t = Table::new(evil, evil, [(evil, Role::Other)]).noted(evil);
        t.column(evil, [evil]);
        t.column(evil, [evil]).words();
        let page = page(evil, html! { (titled(&t)) (facts("", [(evil, evil.to_owned())])) });
        assert!(!page.contains("<a") && !page.contains('\x1b') && !page.contains('\u{202e}'));
        assert!(
            super::page("a\tb", html! {}).contains("<title>a b</title>"),
            "a blank, as in a terminal"
        );
        // Title, heading, label, stub, two heads, name, two cells, note, label and value.
        assert_eq!(page.matches(want).count(), 12, "{page}");
    }

    #[test]
    fn backquotes_are_code() {
        let of = |text| prose(text).into_string();
        assert_eq!(of("a `b<` c"), "a <code>b&lt;</code> c");
        assert_eq!(of("a ` b"), "a ` b");
    }

    #[test]
    fn a_table_by_hand() {
        let mut t = Table::new("T", "row", [("x", Role::Baseline), ("y", Role::Other)]);
        t.column("why", ["two\nlines", ""]).words();
        t.best("R@1", [Some(1.0), Some(2.0)], points).under("i → t", "i2t ");
        t.column("R@5", ["3*", "4 "]).under("i → t", "i2t ");
        let page = table(&t).into_string();
        for part in [
            "<tr><td></td><td></td><th class=\"group\" colspan=\"2\" scope=\"colgroup\">i → t</th></tr>",
            "<tr class=\"baseline\"><th scope=\"row\">x</th><td class=\"words\">two<br>lines</td>\
             <td>1.0</td><td>3<span class=\"star\">*</span></td></tr>",
            "<td class=\"best\">2.0</td><td>4</td>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("Marked"), "a table without a note");
        assert!(table(&t.noted("n.")).into_string().contains("n. Marked: the best of its column."));
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let page = page("t", html! {});
        for needle in ["http:", "https:", "src=", "url(", "@import", "<link", "<script"] {
            assert!(!page.contains(needle), "{needle}");
        }
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    }
}
