//! The pieces a page is made of.

use super::super::format::{clean, typeset};
use super::super::model::Report;
use super::super::plots::{Figure, Key, Shape};
use super::super::table::{Column, Side};

/// Text as text, in content and in quoted attributes; without what could turn its line around.
pub(in super::super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(c),
        }
    }
    out
}

/// The same with a true arrow.
pub(super) fn arrow(text: &str) -> String {
    text.replace("->", "→")
}

pub(super) fn section(out: &mut String, title: &str, content: impl FnOnce(&mut String)) {
    *out += &format!("<section>\n<h2>{}</h2>\n", escape(title));
    content(out);
    *out += "</section>\n";
}

/// What is folded away until asked for.
pub(super) fn details(out: &mut String, summary: &str, content: impl FnOnce(&mut String)) {
    *out += &format!("<details>\n<summary>{}</summary>\n", escape(summary));
    content(out);
    *out += "</details>\n";
}

/// A table whose rows are those of the report; its first column names them.
pub(super) fn table(out: &mut String, label: &str, report: &Report, columns: &[Column]) {
    *out += &format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n<thead>\n",
        escape(label)
    );
    if columns.iter().any(|c| !c.group.is_empty()) {
        *out += "<tr>";
        for group in columns.chunk_by(|a, b| a.group == b.group) {
            let (n, name) = (group.len(), escape(&arrow(group[0].group)));
            *out += &if name.is_empty() {
                "<td></td>".repeat(n)
            } else {
                format!("<th colspan=\"{n}\" scope=\"colgroup\" class=\"group\">{name}</th>")
            };
        }
        *out += "</tr>\n";
    }
    *out += "<tr>";
    for (i, column) in columns.iter().enumerate() {
        let class = side(column, i);
        *out += &match column.head.as_str() {
            "" => format!("<td{class}></td>"),
            head => format!("<th scope=\"col\"{class}>{}</th>", escape(head)),
        };
    }
    *out += "</tr>\n</thead>\n<tbody>\n";
    for (r, row) in report.rows.iter().enumerate() {
        let class = if row.method == Report::BASELINE { " class=\"baseline\"" } else { "" };
        *out += &format!("<tr{class}>");
        for (i, column) in columns.iter().enumerate() {
            let cell = &column.cells[r];
            *out += &match (i, cell.best) {
                (0, _) => format!("<th scope=\"row\">{}</th>", escape(&cell.text)),
                (_, true) => format!("<td class=\"best\">{}</td>", text(column, &cell.text)),
                _ => format!("<td{}>{}</td>", side(column, i), text(column, &cell.text)),
            };
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

fn text(column: &Column, text: &str) -> String {
    match (column.side, text) {
        (Side::Left, "T") => "<abbr title=\"transductive\">T</abbr>".into(),
        (Side::Left, "H") => "<abbr title=\"held-out bank\">H</abbr>".into(),
        (Side::Left, _) => text.split('\n').map(escape).collect::<Vec<_>>().join("<br>"),
        // The star hangs, or the digits of marked and unmarked rows would not be in line.
        (Side::Right, _) => match text.strip_suffix('*') {
            Some(number) => format!("{}<span class=\"star\">*</span>", escape(&typeset(number))),
            None => escape(&typeset(text.trim_end())),
        },
    }
}

fn side(column: &Column, index: usize) -> &'static str {
    if column.side == Side::Left && index > 0 { " class=\"words\"" } else { "" }
}

/// Figures side by side where there is room; `class` says how wide they want to be.
pub(super) fn grid(out: &mut String, class: &str, figures: Vec<Figure>) {
    if figures.is_empty() {
        return;
    }
    *out += &format!("<div class=\"grid {class}\">\n");
    for figure in figures {
        *out += &format!("<figure>\n<figcaption>{}", escape(&figure.title));
        if !figure.detail.is_empty() {
            *out += &format!("<span>{}</span>", escape(&typeset(&figure.detail)));
        }
        *out += "</figcaption>\n";
        if !figure.legend.is_empty() {
            *out += "<p class=\"legend\">";
            figure.legend.iter().for_each(|k| key(out, k));
            *out += "</p>\n";
        }
        *out += &format!("{}\n</figure>\n", figure.svg);
    }
    *out += "</div>\n";
}

pub(super) fn key(out: &mut String, key: &Key) {
    let shape = match key.shape {
        Shape::Line(series, dash) => format!(
            "<path d=\"M0 20H112\" style=\"stroke:var(--s{series});stroke-width:12;\
             stroke-dasharray:{dash}\"/>"
        ),
        Shape::Area(series, tint) => format!(
            "<path d=\"M36 0h44v40H36z\" style=\"fill:var(--s{series});fill-opacity:{tint}\"/>"
        ),
    };
    *out += &format!(
        "<span class=\"key\"><svg viewBox=\"0 0 112 40\" aria-hidden=\"true\">{shape}</svg>{}\
         </span> ",
        escape(&key.label)
    );
}
