//! The English tokeniser of the Penn Treebank as NLTK has it today.

use super::is_space;

/// The words of a caption as NAAF's program finds them: [`treebank_line`] for each sentence.
///
/// A sentence ends after `.`, `?` or `!` and closing quotes, if white space and more text follow. It does not end after
/// the full stop of a single letter, of a token with another full stop inside, or of `mr mrs ms dr st ave vs`.
///
/// # Departures
/// The program splits sentences with a trained model. Fewer than one caption in a thousand have two sentences.
///
/// ```
/// use itm_data::text::treebank;
///
/// assert_eq!(treebank("It isn't one. It's 2."), ["it", "is", "n't", "one", ".", "it", "'s", "2", "."]);
/// ```
pub fn treebank(caption: &str) -> Vec<String> {
    let lower = lower(caption);
    sentences(&lower).into_iter().flat_map(tokens).collect()
}

/// The words of a caption as one sentence, in lower case. Punctuation marks and clitics are separate words.
///
/// The rules and their order are NLTK's `NLTKWordTokenizer`, which rewrites the sentence step by step.
///
/// ```
/// use itm_data::text::treebank_line;
///
/// let line = "\"A man's best-known hat\", (red/blue).";
/// let words = ["``", "a", "man", "'s", "best-known", "hat", "''", ",", "(", "red/blue", ")", "."];
/// assert_eq!(treebank_line(line), words);
/// ```
pub fn treebank_line(caption: &str) -> Vec<String> {
    tokens(&lower(caption))
}

fn lower(caption: &str) -> String {
    caption.trim_matches(is_space).to_lowercase()
}

/// Tokens whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 7] = ["mr", "mrs", "ms", "dr", "st", "ave", "vs"];

/// The sentences of a text without white space at its ends.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = vec![];
    let mut start = 0;
    for (at, sign) in text.char_indices().filter(|&(_, c)| ".?!".contains(c)) {
        let rest = &text[at + 1..];
        let quotes = |c: char| "\"'”’»".contains(c);
        let after = rest.trim_start_matches(quotes);
        let ends = after.starts_with(is_space) && (sign != '.' || is_final(&text[start..at]));
        if ends {
            let end = text.len() - after.len();
            sentences.push(&text[start..end]);
            start = end;
        }
    }
    sentences.push(&text[start..]);
    sentences
}

/// Whether a full stop after this text may end a sentence.
fn is_final(before: &str) -> bool {
    let token = before.rsplit(is_space).next().unwrap_or_default();
    let token = token.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '.');
    let mut chars = token.chars();
    let letter = chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none();
    !letter && !token.contains('.') && !ABBREVIATIONS.contains(&token)
}

/// The words of a sentence in lower case.
fn tokens(sentence: &str) -> Vec<String> {
    let text = punctuation(&opening_quotes(sentence));
    let text = rewrite(&text, |_, rest| padded(rest, 1, |c| "[](){}<>".contains(c)));
    let text = closing_quotes(&text.replace("--", " -- "));
    let text = contractions(clitics(&text));
    text.split(is_space).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A replacement: the number of characters replaced, and the new text.
type Rewrite = Option<(usize, String)>;

/// Applies a rule from left to right. The rule sees the original text before a position and after it.
fn rewrite(text: &str, rule: impl Fn(&[char], &[char]) -> Rewrite) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (String::with_capacity(text.len() + 8), 0);
    while at < chars.len() {
        match rule(&chars[..at], &chars[at..]) {
            Some((taken, instead)) => {
                out.push_str(&instead);
                at += taken;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out
}

/// Puts spaces around the first such characters of `rest`, at most `most` of them.
fn padded(rest: &[char], most: usize, is: impl Fn(char) -> bool) -> Rewrite {
    let run: String = rest.iter().take(most).take_while(|&&c| is(c)).collect();
    let taken = run.chars().count();
    (taken > 0).then(|| (taken, format!(" {run} ")))
}

fn is_word(c: Option<&char>) -> bool {
    c.is_some_and(|&c| c.is_alphanumeric() || c == '_')
}

/// The text after `start`, if `text` begins with `start`.
fn behind<'a>(text: &'a [char], start: &str) -> Option<&'a [char]> {
    let n = start.chars().count();
    let same = text.len() >= n && text.iter().zip(start.chars()).all(|(a, b)| *a == b);
    same.then(|| &text[n..])
}

fn opening_quotes(sentence: &str) -> String {
    let text = rewrite(sentence, |_, rest| {
        padded(rest, 1, |c| "«“‘„".contains(c)).or_else(|| padded(rest, rest.len(), |c| c == '`'))
    });
    let text = match text.strip_prefix('"') {
        Some(rest) => format!("``{rest}"),
        None => text,
    };
    let text = rewrite(&text.replace("``", " `` "), |_, rest| {
        let opens = rest.first().filter(|c| " ([{<".contains(**c))?;
        let quote = ["\"", "''"].iter().find(|quote| behind(&rest[1..], quote).is_some())?;
        Some((1 + quote.len(), format!("{opens} `` ")))
    });
    rewrite(&text, |before, rest| {
        let after = behind(rest, "'")?;
        let clitics = ["re", "ve", "ll", "m", "t", "s", "d", "n"];
        let is_clitic = |clitic: &&str| behind(after, clitic).is_some_and(|a| !is_word(a.first()));
        let parted = !is_word(before.last()) && is_word(after.first());
        (parted && !clitics.iter().any(is_clitic)).then(|| (1, "' ".into()))
    })
}

fn punctuation(text: &str) -> String {
    let text = rewrite(&last_full_stop(text), |_, rest| {
        let (&[sign, next], true) = (rest.first_chunk()?, ":,".contains(rest[0])) else {
            return None;
        };
        // The rule consumes the next character too: in `,,` before a word the second comma stays where it is, as in NLTK.
        (!next.is_ascii_digit()).then(|| (2, format!(" {sign} {next}")))
    });
    let text = match text.strip_suffix([':', ',']) {
        Some(rest) => format!("{rest} {} ", &text[rest.len()..]),
        None => text,
    };
    let text = rewrite(&text, |_, rest| {
        let dots = padded(rest, rest.len(), |c| c == '.').filter(|(taken, _)| *taken > 1);
        let sign = |c: char| ";@#$%&?!".contains(c) || ('\u{2012}'..='\u{2015}').contains(&c);
        dots.or_else(|| padded(rest, 1, sign))
    });
    let text = rewrite(&text, |_, rest| {
        let &[c, '\'', ' '] = rest.first_chunk()? else { return None };
        (c != '\'').then(|| (3, format!("{c} ' ")))
    });
    rewrite(&text, |_, rest| padded(rest, 1, |c| c == '*'))
}

/// Splits off the full stop that ends the sentence, before any closing brackets and quotes.
fn last_full_stop(text: &str) -> String {
    let whole = text.trim_end_matches(is_space);
    let head = whole.trim_end_matches(|c| "])}>\"'»”’ ".contains(c));
    match head.strip_suffix('.') {
        Some(before) if !before.is_empty() && !before.ends_with('.') => {
            format!("{before} . {} ", &whole[head.len()..])
        }
        _ => text.to_owned(),
    }
}

/// Also leaves a space at both ends, and no white space except single spaces.
fn closing_quotes(text: &str) -> String {
    let text = rewrite(text, |_, rest| padded(rest, 1, |c| "»”’".contains(c)));
    let text = text.replace("''", " '' ").replace('"', " '' ");
    let words: Vec<_> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

fn clitics(text: &str) -> String {
    let split = |text: &str, clitics: &[&str]| {
        rewrite(text, |_, rest| {
            let first = rest.first().filter(|c| !"' ".contains(**c))?;
            let is_next = |clitic: &&&str| {
                behind(&rest[1..], clitic).is_some_and(|after| after.first() == Some(&' '))
            };
            let clitic = clitics.iter().find(is_next)?;
            Some((2 + clitic.chars().count(), format!("{first} {clitic} ")))
        })
    };
    let text = split(text, &["'s", "'m", "'d", "'"]);
    split(&text, &["'ll", "'re", "'ve", "n't"])
}

/// Splits contractions in two. (`'tis` is not among them: its apostrophe is an opening quote.)
fn contractions(text: String) -> String {
    let two = [
        ("can", "not"),
        ("d", "'ye"),
        ("gim", "me"),
        ("gon", "na"),
        ("got", "ta"),
        ("lem", "me"),
        ("more", "'n"),
        ("wan", "na"),
    ];
    two.into_iter().fold(text, |text, (first, second)| {
        rewrite(&text, |before, rest| {
            let after = behind(behind(rest, first)?, second)?.first();
            let ends = if first == "wan" { after == Some(&' ') } else { !is_word(after) };
            let whole = !is_word(before.last()) && ends;
            whole.then(|| (first.len() + second.len(), format!(" {first} {second} ")))
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Golden {
        text: String,
        tokens: Vec<String>,
    }

    /// From NLTK 3.10 (`tests/reference/treebank.py`): sentences, and strings of the characters that the rules handle.
    #[test]
    fn golden_nltk() {
        let golden = include_str!("../../tests/golden/treebank.json");
        let golden: Vec<Golden> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 400);
        for Golden { text, tokens } in golden {
            assert_eq!(treebank_line(&text), tokens, "{text:?}");
        }
    }

    /// By hand from the rules.
    #[test]
    fn signs_are_words() {
        for (line, want) in [
            ("", ""),
            ("  \t", ""),
            (".", "."),
            ("A dog.", "a dog ."),
            ("a dog .", "a dog ."),
            ("he said (\"go.\")", "he said ( `` go . '' )"),
            ("wait... what", "wait ... what"),
            ("at 3:30, 1,000 men", "at 3:30 , 1,000 men"),
            ("50% & #1; a@b $5 a*b", "50 % & # 1 ; a @ b $ 5 a * b"),
            ("isn't i'll we've it's dogs' o'clock", "is n't i 'll we 've it 's dogs ' o'clock"),
            ("'big' 'n roll 'tis", "' big ' 'n roll ' tis"),
            ("cannot gonna wanna gimme", "can not gon na wan na gim me"),
            ("cannots uncannot wannabe", "cannots uncannot wannabe"),
            ("t-shirt a/b c--d", "t-shirt a/b c -- d"),
            ("“a” ‘b’ «c»", "“ a ” ‘ b ’ « c »"),
            ("a — b–c", "a — b – c"),
            ("u.s. army", "u.s. army"),
        ] {
            assert_eq!(treebank_line(line).join(" "), want, "{line:?}");
        }
    }

    /// By hand: where a sentence ends, its full stop is a word; elsewhere it stays with its word.
    #[test]
    fn sentences_end_where_more_text_follows() {
        for (caption, want) in [
            ("A man. A dog.", "a man . a dog ."),
            ("a man . a dog", "a man . a dog"),
            ("really? yes! \"no.\" ok", "really ? yes ! `` no . '' ok"),
            ("mr. x and dr. no vs. st. john", "mr. x and dr. no vs. st. john"),
            ("a man w. hat", "a man w. hat"),
            ("(j. smith) the u.s. army", "( j. smith ) the u.s. army"),
            ("no... yes", "no ... yes"),
            ("3. item", "3 . item"),
            ("one.two three", "one.two three"),
        ] {
            assert_eq!(treebank(caption).join(" "), want, "{caption:?}");
        }
        assert_eq!(treebank_line("A man. A dog."), ["a", "man.", "a", "dog", "."]);
    }

    proptest! {
        #[test]
        fn words_have_no_space_and_lose_no_letter(caption in any::<String>()) {
            let words = treebank(&caption);
            prop_assert!(words.iter().all(|w| !w.is_empty() && !w.contains(is_space)));
            let letters = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            prop_assert_eq!(letters(&words.concat()), letters(&lower(&caption)));
        }
    }
}
