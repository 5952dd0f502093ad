//! Words and their numbers.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Tokens;
use crate::files::read_json;
use crate::{Error, Result};

/// The marks around the words of a caption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Marks {
    /// Nothing.
    #[default]
    Off,
    /// `<start>` and `<end>`.
    StartEnd,
}

/// What a [`Vocabulary`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VocabularyOptions {
    /// A built vocabulary does not know rarer words.
    pub min_count: u64,
    /// How words are found.
    pub tokens: Tokens,
    /// The marks around a caption.
    pub marks: Marks,
}

impl Default for VocabularyOptions {
    fn default() -> Self {
        Self { min_count: 1, tokens: Tokens::default(), marks: Marks::default() }
    }
}

const PAD: &str = "<pad>";
const UNK: &str = "<unk>";
const MARKS: [&str; 2] = ["<start>", "<end>"];

/// Whether an entry is not a word. No tokeniser gives such an entry: each separates `<` from the text after it.
fn is_special(entry: &str) -> bool {
    [PAD, UNK].iter().chain(&MARKS).any(|special| *special == entry)
}

/// Words with their numbers, from the training captions or from a file.
///
/// Only the captions determine the order of a built vocabulary. `<pad>` and `<unk>` come first, then the words, most
/// frequent first and alphabetically on ties, then `<start>` and `<end>` if there are marks.
///
/// ```
/// use itm_data::text::{Marks, Vocabulary, VocabularyOptions};
///
/// let train = ["A dog runs.", "A cat and a dog.", "a bird"];
/// let options = VocabularyOptions { min_count: 2, ..Default::default() };
/// let vocabulary = Vocabulary::build(train, options);
/// assert_eq!(vocabulary.words(), ["<pad>", "<unk>", "a", "dog"]);
/// assert_eq!(vocabulary.encode("A dog sleeps", 30), [2, 3, 1]);
/// let marked = Vocabulary::build(train, VocabularyOptions { marks: Marks::StartEnd, ..options });
/// assert_eq!(marked.encode("A dog sleeps", 30), [4, 2, 3, 1, 5]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    options: VocabularyOptions,
    words: Vec<String>,
    index: HashMap<String, u32>,
    unk: u32,
    marks: Option<[u32; 2]>,
}

/// The fields of a released vocabulary that matter here.
#[derive(Deserialize)]
struct VocabularyFile {
    word2idx: HashMap<String, u64>,
    #[serde(default)]
    char_level: bool,
}

impl Vocabulary {
    /// Counts the words of the **training** captions. Never pass captions of a validation or test split.
    pub fn build<S: AsRef<str>>(
        captions: impl IntoIterator<Item = S>,
        options: VocabularyOptions,
    ) -> Self {
        let mut counted: HashMap<String, u64> = HashMap::new();
        let words = captions.into_iter().flat_map(|caption| options.tokens.of(caption.as_ref()));
        words.for_each(|word| *counted.entry(word).or_default() += 1);
        let mut counted: Vec<_> =
            counted.into_iter().filter(|(_, n)| *n >= options.min_count).collect();
        counted.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        let marks = if options.marks == Marks::Off { &[][..] } else { &MARKS };
        let special = |names: &[&str]| names.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let words = counted.into_iter().map(|(word, _)| word).collect();
        Self::of(options, [special(&[PAD, UNK]), words, special(marks)].concat())
    }

    /// Reads the JSON of a released program: `word2idx`, an object with the number of each word. Special entries are found
    /// by name, so `<start>` may have any number.
    ///
    /// # Errors
    /// If the file has another layout, a number is missing or occurs twice, one of `<pad>`, `<start>`, `<end>` and `<unk>`
    /// is missing, or `<pad>` is not 0.
    pub fn read(path: &Path, options: VocabularyOptions) -> Result<Self> {
        let wrong = |expected: &str, got: String| Error::invalid(path.display(), expected, got);
        let released: VocabularyFile = read_json(path, "a vocabulary with `word2idx`")?;
        if released.char_level {
            return Err(wrong("a vocabulary of words", "`char_level` is true".into()));
        }
        let mut numbered: Vec<_> = released.word2idx.into_iter().map(|(w, n)| (n, w)).collect();
        numbered.sort();
        if let Some((k, (n, word))) = (0..).zip(&numbered).find(|(k, (n, _))| k != n) {
            let expected = format!("each number from 0 on once, so {k} next");
            return Err(wrong(&expected, format!("{n} of \"{word}\"")));
        }
        let words: Vec<_> = numbered.into_iter().map(|(_, word)| word).collect();
        let missing = |name: &&&str| !words.iter().any(|word| word == **name);
        if let Some(name) = [PAD, UNK].iter().chain(&MARKS).find(missing) {
            return Err(wrong(&format!("an entry {name}"), "none".into()));
        }
        if words[0] != PAD {
            return Err(wrong(&format!("{PAD} with the number 0"), format!("\"{}\"", words[0])));
        }
        Ok(Self::of(options, words))
    }

    /// # Panics
    /// If `<unk>`, or a mark that the options need, is not among the words.
    fn of(options: VocabularyOptions, words: Vec<String>) -> Self {
        let index: HashMap<_, _> = words.iter().cloned().zip(0..).collect();
        let marked = options.marks == Marks::StartEnd;
        let marks = marked.then(|| MARKS.map(|name| index[name]));
        Self { unk: index[UNK], options, words, index, marks }
    }

    /// The number of a word; `None` for unknown words and special entries.
    pub(crate) fn number(&self, word: &str) -> Option<u32> {
        self.index.get(word).copied().filter(|_| !is_special(word))
    }

    /// The options of this vocabulary.
    pub fn options(&self) -> VocabularyOptions {
        self.options
    }

    /// All entries, by number.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The word of each number; an empty string for special entries.
    pub fn spelled(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| if is_special(word) { "" } else { word.as_str() })
    }

    /// Number of entries, including special ones: the rows of an embedding table.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are only special entries.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| is_special(word))
    }

    /// The numbers of the first `most` words of a caption, between the marks if there are marks; not padded.
    ///
    /// A caption without a word gives the two marks, or one `<unk>` without marks. So no sequence is empty, except for
    /// `most` = 0 without marks.
    pub fn encode(&self, caption: &str, most: usize) -> Vec<u32> {
        let words = self.options.tokens.of(caption);
        let known = |word: &String| self.index.get(word).copied().unwrap_or(self.unk);
        let ids = words.iter().take(most).map(known);
        match self.marks {
            Some([start, end]) => [start].into_iter().chain(ids).chain([end]).collect(),
            None if words.is_empty() => vec![self.unk],
            None => ids.collect(),
        }
    }

    /// How many words of the vocabulary occur in none of these captions: a vocabulary from a file may have such words.
    pub fn unseen<S: AsRef<str>>(&self, captions: impl IntoIterator<Item = S>) -> usize {
        let of = |caption: S| self.options.tokens.of(caption.as_ref());
        let seen: HashSet<_> = captions.into_iter().flat_map(of).collect();
        let unseen = |word: &&String| !is_special(word) && !seen.contains(*word);
        self.words.iter().filter(unseen).count()
    }
}

#[cfg(test)]
mod tests;
