//! Pretrained word vectors, such as GloVe's, for the words of a vocabulary.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::{Npy, contents};
use crate::files::{open, read_json};
use crate::text::Vocabulary;
use crate::{Error, Result};

/// Vectors for some words of a [`Vocabulary`]; the other words keep the vectors they have.
///
/// ```
/// use itm_data::data::WordVectors;
/// use itm_data::text::{Vocabulary, VocabularyOptions};
///
/// let vocabulary = Vocabulary::build(["a dog", "a dax"], VocabularyOptions::default());
/// let file = std::env::temp_dir().join(format!("vectors-{}.txt", std::process::id()));
/// std::fs::write(&file, "the 0.1 0.2\ndog 0.3 0.4\na 0.5 0.6\n").unwrap();
/// let vectors = WordVectors::read(&file, &vocabulary)?;
/// assert_eq!(vectors.to_string(), "vectors of width 2 for 2 of 5 entries");
/// # std::fs::remove_file(&file).unwrap();
/// # Ok::<(), itm_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WordVectors {
    /// Values per word.
    pub width: usize,
    /// Number of entries of the vocabulary: words and special entries.
    pub vocabulary: usize,
    /// Numbers of the words that were found, and their vectors.
    pub rows: Vec<(u32, Vec<f32>)>,
}

impl WordVectors {
    /// Reads the vectors of a vocabulary's words from a file. The end of the file name gives the format:
    ///
    /// | end | form |
    /// |---|---|
    /// | `.json` | `{"word": [v1, …, vn], …}` |
    /// | `.npy` | `[V, n]`: a row for each entry of the vocabulary, in its order; rows of special entries are ignored |
    /// | `.safetensors`, with feature `weights` | the same array, as an f32 tensor named `weight` |
    /// | any other | the text of GloVe, word2vec, fastText and MUSE (`.vec`): `word v1 … vn`, one word per line, with spaces or tabs; a first line `words n` is skipped. If a word occurs twice, the first line counts; a word with a space is none of the vocabulary's |
    ///
    /// # Errors
    /// If the file cannot be read or has no vector, a word has another number of values than the first, a value is not
    /// finite, or an array has another number of rows. In a text file, only the first line and the lines of known words
    /// are checked.
    pub fn read(path: impl AsRef<Path>, vocabulary: &Vocabulary) -> Result<Self> {
        let path = path.as_ref();
        let mut found = VectorTable { path, vocabulary, width: None, rows: BTreeMap::new() };
        match path.extension().and_then(|end| end.to_str()) {
            Some("json") => found.json()?,
            Some("npy") => found.npy()?,
            #[cfg(feature = "weights")]
            Some("safetensors") => found.safetensors()?,
            _ => found.text()?,
        }
        let VectorTable { width, rows, .. } = found;
        let Some(width) = width else {
            return Err(Error::invalid(path.display(), "word vectors", "none"));
        };
        let vocabulary = vocabulary.words().len();
        Ok(Self { width, vocabulary, rows: rows.into_iter().collect() })
    }

    /// Refuses vectors that do not fit a table of words, `[vocabulary, width]`.
    ///
    /// # Errors
    /// If the vectors are of another width or vocabulary, a word's number is outside the vocabulary, or a vector has another number of
    /// values or a value that is not finite.
    pub fn check(&self, [vocabulary, width]: [usize; 2]) -> Result<()> {
        let place = "word vectors";
        let of = |n, e| format!("width {e} for a vocabulary of {n}");
        let fits = [self.vocabulary, self.width] == [vocabulary, width];
        Error::unless(fits, place, of(vocabulary, width), of(self.vocabulary, self.width))?;
        for (id, vector) in &self.rows {
            let expected = format_args!("numbers of words below {vocabulary}");
            Error::unless((*id as usize) < vocabulary, place, expected, id)?;
            let (place, got) = (format!("{place}, word {id}"), vector.len());
            Error::unless(got == width, &place, format_args!("{width} values"), got)?;
            Error::unless_finite(vector, |_| place, "finite values")?;
        }
        Ok(())
    }
}

impl fmt::Display for WordVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, vocabulary, rows } = self;
        write!(f, "vectors of width {width} for {} of {vocabulary} entries", rows.len())
    }
}

/// The longest line of a text file of vectors, in bytes: 300 numbers have a few thousand.
const LONGEST_LINE: u64 = 1 << 20;

struct VectorTable<'a> {
    path: &'a Path,
    vocabulary: &'a Vocabulary,
    width: Option<usize>,
    rows: BTreeMap<u32, Vec<f32>>,
}

impl VectorTable<'_> {
    /// Adds a vector, if its word is known and has no vector yet.
    fn add(&mut self, word: &str, place: &dyn fmt::Display, vector: Vec<f32>) -> Result<()> {
        let width = *self.width.get_or_insert(vector.len());
        let place = || format!("{}, {place}", self.path.display());
        if width == 0 || vector.len() != width {
            return Err(Error::invalid(place(), format!("{} values", width.max(1)), vector.len()));
        }
        Error::unless_finite(&vector, |_| place(), "finite numbers")?;
        if let Some(id) = self.vocabulary.number(word) {
            self.rows.entry(id).or_insert(vector);
        }
        Ok(())
    }

    fn text(&mut self) -> Result<()> {
        let mut file = BufReader::new(open(self.path)?);
        let head = file.fill_buf().map_err(Error::io(self.path))?;
        if head.contains(&0) || head.starts_with(b"\x1f\x8b") {
            let expected = "lines of words and numbers";
            return Err(Error::invalid(self.path.display(), expected, contents(head)));
        }
        let (mut line, mut has_head, mut has_vectors) = (Vec::new(), false, false);
        for number in 1.. {
            line.clear();
            let part = (&mut file).take(LONGEST_LINE + 1).read_until(b'\n', &mut line);
            if part.map_err(Error::io(self.path))? == 0 {
                self.width.take_if(|_| !has_vectors);
                break;
            }
            let fits = line.len() as u64 <= LONGEST_LINE;
            let place = format_args!("{}, line {number}", self.path.display());
            Error::unless(fits, place, format_args!("at most {LONGEST_LINE} bytes"), "more")?;
            // A word that is not UTF-8 is in no vocabulary.
            let line = String::from_utf8_lossy(&line);
            let bare = line.strip_prefix('\u{feff}').filter(|_| number == 1);
            let line = bare.unwrap_or(&line);
            has_head |= number == 1 && self.is_head(line);
            if number > 1 || !has_head {
                has_vectors |= !line.trim().is_empty();
                self.line(number, line)?;
            }
        }
        Ok(())
    }

    /// Whether a line is the head of word2vec's and fastText's files, `words width`; takes the width.
    fn is_head(&mut self, line: &str) -> bool {
        let numbers: Vec<_> = line.split_whitespace().map(str::parse::<usize>).collect();
        let &[Ok(_), Ok(width @ 2..)] = numbers.as_slice() else { return false };
        self.width = Some(width);
        true
    }

    fn line(&mut self, number: usize, line: &str) -> Result<()> {
        let place = format!("line {number}");
        let (word, values) = line.trim_end().split_once([' ', '\t']).unwrap_or((line, ""));
        // The line of an unknown word matters only if no line gave the number of values yet.
        let known = self.vocabulary.number(word).is_some();
        if self.width.is_some() && !known {
            return Ok(());
        }
        // "new york" is not "new".
        let has_spaces = |width: usize| {
            let mut rest = values.split_whitespace();
            rest.clone().count() > width
                && rest.next().is_some_and(|text| text.parse::<f32>().is_err())
        };
        if self.width.is_some_and(has_spaces) {
            return Ok(());
        }
        let parsed = |text: &str| {
            let refused = |_| {
                let place = format!("{}, {place}", self.path.display());
                Error::invalid(place, "a number", format!("\"{text}\""))
            };
            text.parse::<f32>().map_err(refused)
        };
        let vector = values.split_whitespace().map(parsed).collect::<Result<_>>()?;
        self.add(word, &place, vector)
    }

    fn json(&mut self) -> Result<()> {
        let all: BTreeMap<String, Vec<f32>> = read_json(self.path, "words with lists of numbers")?;
        for (word, vector) in all {
            self.add(&word, &format!("word \"{word}\""), vector)?;
        }
        Ok(())
    }

    fn npy(&mut self) -> Result<()> {
        let rows = Npy::open(self.path)?;
        // A row is allocated only after the table has checked the shape: a file without rows can claim any width.
        self.table(rows.shape(), |k| {
            let mut vector = vec![0.0; rows.row_len()];
            rows.row_into(k, &mut vector)?;
            Ok(vector)
        })
    }

    #[cfg(feature = "weights")]
    fn safetensors(&mut self) -> Result<()> {
        let bytes = super::FileBytes::open(self.path)?;
        let wrong = |expected: &str, got: &dyn fmt::Display| {
            Error::invalid(self.path.display(), expected, got)
        };
        let tensors = safetensors::SafeTensors::deserialize(&bytes)
            .map_err(|e| wrong("a safetensors file", &e))?;
        let table = tensors.tensor("weight").map_err(|_| wrong("a tensor `weight`", &"none"))?;
        if table.dtype() != safetensors::Dtype::F32 {
            return Err(wrong("`weight` of F32", &format!("{:?}", table.dtype())));
        }
        let values = table.data().as_chunks::<4>().0;
        let n = table.shape().get(1).copied().unwrap_or(0);
        self.table(table.shape(), |k| {
            Ok(values[k * n..][..n].iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
        })
    }

    /// Adds a table that has one row per entry of the vocabulary.
    fn table(
        &mut self,
        shape: &[usize],
        mut row: impl FnMut(usize) -> Result<Vec<f32>>,
    ) -> Result<()> {
        let words = self.vocabulary.words();
        let fits = shape.len() == 2 && shape[0] == words.len();
        let expected = format_args!("[{}, n], a row for each entry", words.len());
        Error::unless(fits, self.path.display(), expected, format_args!("{shape:?}"))?;
        for (k, word) in words.iter().enumerate() {
            self.add(word, &format!("row {k}"), row(k)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::data::tests::npy;
    use crate::text::VocabularyOptions;

    /// Numbers: `<pad>` 0, `<unk>` 1, a 2, dog 3, dax 4 (by count, then alphabetically).
    fn vocabulary() -> Vocabulary {
        let options = VocabularyOptions { min_count: 1, ..VocabularyOptions::default() };
        let vocabulary = Vocabulary::build(["a dog", "a dog", "a dax"], options);
        assert_eq!(vocabulary.words()[2..], ["a", "dog", "dax"]);
        vocabulary
    }

    fn read(name: &str, bytes: &[u8]) -> Result<WordVectors> {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        WordVectors::read(&path, &vocabulary())
    }

    fn message(name: &str, bytes: &[u8]) -> String {
        let line = read(name, bytes).unwrap_err().to_string();
        line.split_once(name).unwrap().1.to_string()
    }

    /// A line without an end grew until memory was full.
    #[test]
    fn a_line_has_an_end() {
        let line = "dog 1 2\n".to_owned() + &"a ".repeat(1 << 20);
        assert_eq!(
            message("v.txt", line.as_bytes()),
            ", line 2: expected at most 1048576 bytes, got more"
        );
    }

    #[test]
    fn text_and_json_give_the_known_words() {
        let text = "the 9 9\ndog 0.25 -4e-1\n<unk> 7 7\na 1 2\ndog 5 5\n";
        let json = r#"{"dog": [0.25, -0.4], "the": [9, 9], "<pad>": [7, 7], "a": [1, 2]}"#;
        let want = vec![(2, vec![1.0, 2.0]), (3, vec![0.25, -0.4])];
        for (name, bytes) in [("v.txt", text), ("v.json", json), ("v.50d", text)] {
            let got = read(name, bytes.as_bytes()).unwrap();
            assert_eq!(got, WordVectors { width: 2, vocabulary: 5, rows: want.clone() }, "{name}");
            assert_eq!(got.to_string(), "vectors of width 2 for 2 of 5 entries");
        }
    }

    #[test]
    fn files_of_other_programs_are_read() {
        let want = vec![(2, vec![1.0, 2.0]), (3, vec![0.25, -0.4])];
        let head = "4 2\nthe 9 9\ndog 0.25 -4e-1 \na cappella 3 4\na 1 2\n";
        let tabs = "dog\t0.25\t-4e-1\na\t1\t2\n";
        let bytes = b"4 2\n\xff\xfe 9 9\ndog 0.25 -0.4\na 1 2\n";
        let [marked_head, marked] = [head, tabs].map(|text| format!("\u{feff}{text}"));
        for (name, bytes) in [
            ("wiki.vec", head.as_bytes()),
            ("t.txt", tabs.as_bytes()),
            ("b.vec", &bytes[..]),
            ("m.vec", marked_head.as_bytes()),
            ("m.txt", marked.as_bytes()),
        ] {
            assert_eq!(read(name, bytes).unwrap().rows, want, "{name}");
        }
        assert_eq!(message("v.vec", b"4 2\ndog 1 2 3\n"), ", line 2: expected 2 values, got 3");
        let line = message("v.vec", b"\x1f\x8b\x08\x00abc");
        assert!(line.starts_with(": expected lines of words and numbers, got a gzip"), "{line}");
    }

    #[test]
    fn rows_of_an_array_follow_the_vocabulary() {
        let array = |rows: usize| npy(&[rows, 2], (0..rows * 2).map(|k| k as f32));
        let got = read("v.npy", &array(5)).unwrap();
        assert_eq!(got.rows, [(2, vec![4.0, 5.0]), (3, vec![6.0, 7.0]), (4, vec![8.0, 9.0])]);
        assert_eq!(
            message("v.npy", &array(4)),
            ": expected [5, n], a row for each entry, got [4, 2]"
        );
        // No row, so the file is whole; its width alone would be 8 TiB.
        let wide = npy(&[0, 1 << 41], std::iter::empty());
        assert!(message("v.npy", &wide).starts_with(": expected [5, n], a row for each entry"));
    }

    /// A file of one tensor.
    #[cfg(feature = "weights")]
    fn safetensors(name: &str, shape: &[usize], dtype: safetensors::Dtype) -> Vec<u8> {
        let values = (0..shape.iter().product::<usize>()).map(|k| (k as f32).to_le_bytes());
        let values = values.collect::<Vec<_>>().concat();
        let view = safetensors::tensor::TensorView::new(dtype, shape.to_vec(), &values).unwrap();
        safetensors::serialize([(name, view)], None).unwrap()
    }

    #[cfg(feature = "weights")]
    #[test]
    fn rows_of_a_released_table_follow_the_vocabulary() {
        use safetensors::Dtype;
        let name = "v.safetensors";
        let got = read(name, &safetensors("weight", &[5, 2], Dtype::F32)).unwrap();
        assert_eq!(got.rows, [(2, vec![4.0, 5.0]), (3, vec![6.0, 7.0]), (4, vec![8.0, 9.0])]);
        for (bytes, want) in [
            (
                safetensors("weight", &[4, 2], Dtype::F32),
                "expected [5, n], a row for each entry, got [4, 2]",
            ),
            (
                safetensors("weight", &[10], Dtype::F32),
                "expected [5, n], a row for each entry, got [10]",
            ),
            (safetensors("table", &[5, 2], Dtype::F32), "expected a tensor `weight`, got none"),
            (safetensors("weight", &[5, 2], Dtype::I32), "expected `weight` of F32, got I32"),
            (b"nothing".to_vec(), "expected a safetensors file, got "),
        ] {
            let line = message(name, &bytes);
            assert!(line.contains(want), "{line}");
        }
    }

    #[test]
    fn faults_are_named_with_their_place() {
        for (name, text, want) in [
            ("v.txt", "a 1 2\ndog 1\n", ", line 2: expected 2 values, got 1"),
            ("v.txt", "a\n", ", line 1: expected 1 values, got 0"),
            ("v.txt", "a 1 x\n", ", line 1: expected a number, got \"x\""),
            ("v.txt", "a 1 NaN\n", ", line 1: expected finite numbers, got NaN"),
            ("v.txt", "", ": expected word vectors, got none"),
            ("v.vec", "400000 300\n", ": expected word vectors, got none"),
            ("v.vec", "400000 300\n\n", ": expected word vectors, got none"),
            ("v.json", "{}", ": expected word vectors, got none"),
            ("v.json", r#"{"a": [1], "b": []}"#, ", word \"b\": expected 1 values, got 0"),
        ] {
            assert_eq!(message(name, text.as_bytes()), want);
        }
        assert!(message("v.json", b"[1]").starts_with(": expected words with lists of numbers"));
    }
}
