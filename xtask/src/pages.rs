//! What a page of the documentation tells its reader to do: files to write, commands to type.

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A block with the name of a file after its language: ```` ```text captions.tsv ````.
    File { name: String, text: String },
    /// A line of a block in the language `sh`, as words, without its comment. A line that ends in `\` continues in the next line.
    Command { line: usize, words: Vec<String> },
}

/// All steps of a page, in order. With `run`, a block in `sh` after the comment `<!-- not run: why -->` is left out.
pub(crate) fn steps(page: &str, run: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    let mut above = "";
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            above = if line.trim().is_empty() { above } else { line };
            continue;
        };
        let fence = &info[..info.len() - info.trim_start_matches('`').len()];
        let end = format!("```{fence}");
        let block: Vec<_> = lines.by_ref().take_while(|(_, line)| line.trim_end() != end).collect();
        match info.split_whitespace().collect::<Vec<_>>()[..] {
            ["sh"] if !(run && above.starts_with("<!-- not run: ")) => commands(&block, &mut steps),
            [_, name] => {
                let text = block.iter().map(|(_, line)| format!("{line}\n")).collect();
                steps.push(Step::File { name: name.to_owned(), text });
            }
            _ => (),
        }
        above = "";
    }
    steps
}

fn commands(block: &[(usize, &str)], steps: &mut Vec<Step>) {
    let mut open: Option<(usize, String)> = None;
    for &(number, line) in block {
        let (first, mut text) = open.take().unwrap_or((number + 1, String::new()));
        match line.strip_suffix('\\') {
            Some(start) => {
                text += start;
                open = Some((first, text));
            }
            None => {
                let words = words(&(text + line));
                if !words.is_empty() {
                    steps.push(Step::Command { line: first, words });
                }
            }
        }
    }
}

/// The words of a line: quotes keep spaces, `#` begins a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (_, Some(end)) if c == end => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (' ' | '\t', None) => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let page = "\
# Page
```text list.tsv
a\tb
```
```sh
cargo xtask phrases \"A dog's tail # wags.\" --out 'a b'   # a comment
# nothing

hubness report --images a.npy \\
    --texts b.npy
```
```rust
let sh = 1;
```
<!-- not run: an hour -->

```sh
cargo xtask tidy
```
";
        let command = |line, text: &str| Step::Command {
            line,
            words: text.split('|').map(str::to_owned).collect(),
        };
        let mut want = vec![
            Step::File { name: "list.tsv".into(), text: "a\tb\n".into() },
            command(6, "cargo|xtask|phrases|A dog's tail # wags.|--out|a b"),
            command(9, "hubness|report|--images|a.npy|--texts|b.npy"),
        ];
        assert_eq!(steps(page, true), want);
        want.push(command(18, "cargo|xtask|tidy"));
        assert_eq!(steps(page, false), want);
    }
}
