//! Text in columns of a terminal.

use comfy_table::Table;

/// Columns that a text without line breaks takes.
pub(super) fn width_of(text: &str) -> usize {
    if text.bytes().all(|b| (b' '..0x7f).contains(&b)) {
        return text.len();
    }
    // The table knows wide and combining characters.
    let mut table = Table::new();
    table.add_row([text]);
    table.column_max_content_widths().first().map_or(0, |&w| w.into())
}

/// The text cut to `width` columns, the cut marked.
pub(super) fn fit(text: &str, width: usize) -> String {
    if text.len() <= width || width_of(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let w = width_of(c.encode_utf8(&mut [0; 4]));
        if w > left {
            break;
        }
        left -= w;
        out.push(c);
    }
    while width > 0 && width_of(&out) >= width && out.pop().is_some() {} // joined characters
    out.trim_end().to_owned() + if width > 0 { "…" } else { "" }
}

/// Lines of at most `width` columns, all but the first indented by two.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let mut word = word.to_owned();
        let indent = |lines: &Vec<String>| if lines.is_empty() { "" } else { "  " };
        if line.is_empty() {
            line = indent(&lines).to_owned() + &word;
        } else if width_of(&line) + 1 + width_of(&word) <= width {
            line = line + " " + &word;
        } else {
            lines.push(std::mem::take(&mut line));
            line = indent(&lines).to_owned() + &word;
        }
        while width_of(&line) > width {
            // A word as long as this is a path or a hash: break it where the line ends.
            let mut head = String::new();
            for c in line.chars() {
                head.push(c);
                if width_of(&head) > width {
                    head.pop();
                    break;
                }
            }
            word = line.split_off(head.len());
            lines.push(std::mem::take(&mut line));
            line = indent(&lines).to_owned() + &word;
        }
    }
    lines.extend((!line.is_empty()).then_some(line));
    lines
}

pub(super) fn pad_left(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(width_of(text))) + text
}

pub(super) fn pad_right(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(width_of(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_columns() {
        assert_eq!(["abc", "犬と猫", "é", "█▌", "→"].map(width_of), [3, 6, 1, 2, 1]);
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
}
