//! Text in columns of a terminal.

use std::io::IsTerminal;

use unicode_width::UnicodeWidthStr;

use crate::format::{clean, clean_lines};
use crate::table::{Alignment, Cell, Column, Role, Table};

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Only text: pipes and files.
    Plain,
    /// ANSI bold, dim and colours.
    Ansi,
}

impl Palette {
    /// Colours if `stream` is a terminal and the environment does not say `NO_COLOR`.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        if stream.is_terminal() && !refused { Self::Ansi } else { Self::Plain }
    }

    /// The text with an ANSI code such as `1;32`; an empty code gives no colour.
    pub fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Ansi if !code.is_empty() && !text.is_empty() => {
                format!("\x1b[{code}m{text}\x1b[0m")
            }
            _ => text.to_owned(),
        }
    }
}

/// Blanks between columns.
const GAP: usize = 2;

/// The table as lines; the first lines are the heads and a rule. Names and words are cut to `words` columns. Columns
/// that do not fit in `width` are left out by rank.
pub fn table(t: &Table, width: usize, words: usize, palette: Palette) -> Vec<String> {
    let names: Vec<_> = t.lines.iter().map(|line| fit(&clean(&line.0), words)).collect();
    let corner = clean_lines(&t.stub);
    let mut columns: Vec<Column> = t.columns.clone();
    for column in &mut columns {
        column.label = clean_lines(&column.label);
        let width = if column.side == Alignment::Left { words } else { usize::MAX };
        column.cells.iter_mut().for_each(|cell| cell.text = fit(&clean(&cell.text), width));
    }
    let stub = names.iter().chain([&corner]).map(|text| width_of(text)).max().unwrap_or(0);
    while stub + taken(&columns) > width {
        let most = columns.iter().map(|c| c.rank).max().filter(|&rank| rank > 0);
        let Some(most) = most else { break };
        columns.retain(|c| c.rank < most);
    }
    let heads: Vec<_> = columns.iter().map(Column::head).collect();
    let heights = heads.iter().chain([&corner]).map(|head| head.lines().count());
    let height = heights.max().unwrap_or(0);
    let line = |name: &str, code: &str, cell: &dyn Fn(usize) -> (String, &'static str)| {
        let mut line = palette.paint(code, &pad_right(name, stub));
        for (at, column) in columns.iter().enumerate() {
            let (text, code) = cell(at);
            let padded = match column.side {
                Alignment::Left => pad_right(&text, own_width(column)),
                Alignment::Right => pad_left(&text, own_width(column)),
            };
            line += &(" ".repeat(GAP) + &palette.paint(code, &padded));
        }
        line.trim_end().to_owned()
    };
    // Heads stand on the rule: a head with fewer lines begins lower.
    let part = |head: &str, at: usize| {
        let first = height - head.lines().count();
        at.checked_sub(first).and_then(|at| head.lines().nth(at)).unwrap_or_default().to_owned()
    };
    let mut lines: Vec<String> = (0..height)
        .map(|at| line(&part(&corner, at), DIM, &|c| (part(&heads[c], at), DIM)))
        .collect();
    lines.push("─".repeat(stub + taken(&columns)));
    for (i, (name, (_, role))) in names.iter().zip(&t.lines).enumerate() {
        let cell = |c: usize| {
            let Cell { text, best } = &columns[c].cells[i];
            (text.clone(), if *best { BEST } else { code_of(*role) })
        };
        lines.push(line(name, code_of(*role), &cell));
    }
    lines
}

/// The width of columns beside a name, with the blanks in front of each column.
pub fn taken(columns: &[Column]) -> usize {
    columns.iter().map(|column| own_width(column) + GAP).sum()
}

fn own_width(column: &Column) -> usize {
    let cells = column.cells.iter().map(|cell| width_of(&cell.text));
    cells.chain(column.head().lines().map(width_of)).max().unwrap_or(0)
}

const DIM: &str = "2";
const BEST: &str = "1;96";

/// The colour of a line.
fn code_of(role: Role) -> &'static str {
    match role {
        Role::Baseline | Role::Bound => DIM,
        Role::Method => "1",
        Role::Other => "",
    }
}

/// The width of a text without line breaks, in columns of the terminal: wide and combining characters count as they are shown.
pub fn width_of(text: &str) -> usize {
    text.width()
}

/// The text cut to `width` columns, with a mark at the cut.
pub fn fit(text: &str, width: usize) -> String {
    if text.len() <= width || width_of(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    head(text, width - 1).trim_end().to_owned() + "…"
}

/// The longest beginning that takes at most `width` columns.
fn head(text: &str, width: usize) -> &str {
    let mut end = 0;
    let mut left = width;
    for (at, c) in text.char_indices() {
        let Some(rest) = left.checked_sub(width_of(&text[at..at + c.len_utf8()])) else { break };
        (end, left) = (at + c.len_utf8(), rest);
    }
    // Joined characters may take more columns than the single characters.
    while width_of(&text[..end]) > width {
        end = text[..end].char_indices().next_back().map_or(0, |(at, _)| at);
    }
    &text[..end]
}

/// Lines of at most `width` columns; less than 4 count as 4. All lines except the first are indented by two.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(4); // the indent and a wide character
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        if line.trim().is_empty() {
            line += word;
        } else if width_of(&line) + 1 + width_of(word) <= width {
            line = line + " " + word;
        } else {
            lines.push(std::mem::replace(&mut line, "  ".to_owned() + word));
        }
        while width_of(&line) > width {
            // A word as long as this is a path or a hash: break it where the line ends.
            let rest = line.split_off(head(&line, width).len());
            lines.push(std::mem::replace(&mut line, "  ".to_owned() + &rest));
        }
    }
    lines.extend((!line.is_empty()).then_some(line));
    lines
}

/// The text with blanks in front, at least `width` columns.
pub fn pad_left(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(width_of(text))) + text
}

/// The text with blanks behind, at least `width` columns.
pub fn pad_right(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(width_of(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_columns() {
        assert_eq!(["abc", "犬と猫", "é", "█▌", "→"].map(width_of), [3, 6, 1, 2, 1]);
    }

    /// The indent alone filled such a line, and the loop did not end.
    #[test]
    fn no_width_is_too_small() {
        assert_eq!(wrap("abcdef 犬", 0), wrap("abcdef 犬", 4));
    }

    #[test]
    fn cuts_are_marked_and_fit() {
        assert_eq!(fit("a dog on grass", 8), "a dog o…");
        assert_eq!(fit("a dog on grass", 7), "a dog…");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("犬と猫と鳥", 6), "犬と…");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn lines_wrap_at_words_and_break_what_is_too_long() {
        assert_eq!(wrap("one two three", 8), ["one two", "  three"]);
        assert_eq!(wrap("abcdefghij kl", 6), ["abcdef", "  ghij", "  kl"]);
        assert!(wrap("", 6).is_empty());
    }

    #[test]
    fn a_file_is_not_coloured() {
        assert_eq!(Palette::of(&tempfile::tempfile().unwrap()), Palette::Plain);
    }

    fn example() -> Table {
        let lines = [("a long name", Role::Baseline), ("b", Role::Method)];
        let mut table = Table::new("", "row", lines);
        table.column("note", ["some words", "x"]).words().ranked(9);
        table.numbers("R@1", [Some(1.0), None], crate::format::points).under("i2t", "i2t\n");
        table.numbers("R@5", [Some(12.0); 2], crate::format::points).under("i2t", "").ranked(2);
        table
    }

    #[test]
    fn columns_of_high_rank_go_first() {
        let at = |width, words| table(&example(), width, words, Palette::Plain);
        let whole = [
            "                         i2t",
            "row          note        R@1   R@5",
            "──────────────────────────────────",
            "a long name  some words  1.0  12.0",
            "b            x             –  12.0",
        ];
        assert_eq!(at(34, 20), whole);
        assert_eq!(at(33, 20)[3..], ["a long name  1.0  12.0", "b              –  12.0"]);
        assert_eq!(at(20, 20)[3..], ["a long name  1.0", "b              –"]);
        assert_eq!(at(1, 6)[3..], ["a lon…  1.0", "b         –"], "rank 0 stays");
        let mut alone = example();
        alone.columns.truncate(1);
        assert_eq!(table(&alone, 99, 20, Palette::Plain)[0], "row          note");
    }

    #[test]
    fn nothing_in_a_table_moves_the_cursor() {
        let mut harmful = Table::new("", "r\x1b[2J", [("a\x1b[2J", Role::Other)]);
        harmful.column("h\x1b[2J\nead", ["1\x1b[2J"]);
        harmful.column("words", ["w\x1b[2J"]).words();
        let lines = table(&harmful, 99, 20, Palette::Plain);
        assert_eq!(lines[3], "a\u{fffd}[2J  1\u{fffd}[2J  w\u{fffd}[2J");
        assert!(!lines.concat().contains(|c: char| c.is_control()), "{lines:?}");
    }

    #[test]
    fn colour_adds_only_colour() {
        let ansi = table(&example(), 99, 20, Palette::Ansi).join("\n");
        let parts = ansi.split('\x1b').enumerate();
        let stripped: String =
            parts.map(|(i, p)| if i == 0 { p } else { p.split_once('m').unwrap().1 }).collect();
        let trimmed =
            |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(trimmed(&stripped), table(&example(), 99, 20, Palette::Plain));
        assert!(ansi.contains("\x1b[1m") && ansi.contains("\x1b[2m"));
    }
}
