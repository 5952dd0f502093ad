//! Tables and text of Markdown.

use crate::table::{Role, Table};

/// The table under a heading, with its note below. The columns are padded, so that a terminal shows them aligned too.
pub fn table(t: &Table) -> String {
    let head = [escape(&t.stub)].into_iter().chain(t.columns.iter().map(|c| escape(&c.head())));
    let line = |(i, (name, _)): (usize, &(String, Role))| {
        let cells = t.columns.iter().map(|c| &c.cells[i]).map(|cell| match cell.best {
            true => format!("**{}**", escape(&cell.text)),
            false => escape(&cell.text),
        });
        [escape(name)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![head.collect::<Vec<_>>()];
    rows.extend(t.lines.iter().enumerate().map(line));
    let width = |k: usize| rows.iter().map(|row| row[k].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=t.columns.len()).map(width).collect();
    let mut out = format!("## {}\n", escape(&t.title));
    for (i, row) in rows.iter().enumerate() {
        let pad = |(k, (cell, &width)): (usize, (&String, &usize))| {
            let blanks = " ".repeat(width - cell.chars().count()); // a width in a format has 16 bits
            if k == 0 { format!("| {cell}{blanks} |") } else { format!(" {blanks}{cell} |") }
        };
        out += "\n";
        out.extend(row.iter().zip(&widths).enumerate().map(pad));
        if i == 0 {
            out += &format!("\n|{}|", "-".repeat(widths[0] + 2));
            out.extend(widths[1..].iter().map(|width| "-".repeat(width + 1) + ":|"));
        }
    }
    out + &format!("\n\n{}\n\n", escape(&t.note))
}

/// The text on one line, with each run of white space as one blank.
pub fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line in which `backquotes` mark code.
pub fn prose(text: &str) -> String {
    let text = line(text);
    let parts: Vec<_> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escape(&text); // an unpaired backquote is only a character
    }
    let code = |(i, part): (usize, &&str)| match i % 2 {
        1 => format!("`{part}`"),
        _ => escape(part),
    };
    parts.iter().enumerate().map(code).collect()
}

/// Escaped text, which makes no markup, no new line and no new table cell.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            // "p < 0.001" and "a & b" open neither a tag nor an entity.
            '<' | '&' if rest.as_str().starts_with(' ') => out.push(c),
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '`' | '~' | '[' | ']' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_by_hand() {
        let mut t = Table::new("a_b", "r|", [("x|y", Role::Other), ("z", Role::Other)]).noted("*");
        t.best("R@1", [Some(1.0), Some(2.0)], crate::format::points).under("image", "i2t ");
        let want = "## a\\_b\n\n| r\\|  | i2t R@1 |\n|------|--------:|\n| x\\|y |     1.0 |\n\
                    | z    | **2.0** |\n\n\\*\n\n";
        assert_eq!(table(&t), want);
        let long = "x".repeat(70_000); // more than a width of `format!` may be
        t.column(long.as_str(), ["1", "2"]);
        assert!(table(&t).contains(&format!("|{}1 |", " ".repeat(long.len()))));
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("a|b <b>*x*</b>\n# y"), "a\\|b &lt;b>\\*x\\*&lt;/b> # y");
        assert_eq!(prose("see `a_b`\n& `c`"), "see `a_b` & `c`");
        assert_eq!(prose("odd ` _ ~~x"), "odd \\` \\_ \\~\\~x");
    }
}
