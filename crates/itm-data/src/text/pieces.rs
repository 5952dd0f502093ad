//! Captions as BERT's word pieces.

use std::fmt::Display;
use std::iter;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::{BertNormalizer, Lowercase, Sequence};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{AddedToken, Encoding, Tokenizer};

use super::Word;
use crate::files::{LARGEST_TEXT, caught, not_json, open, read, read_json};
use crate::{Error, Result};

/// Captions to the numbers of BERT's word pieces.
///
/// ```text
/// caption → cleaned, lower-case and without accents (uncased) → words and signs → the longest piece first → [CLS] … [SEP]
/// ```
///
/// FNE cleans the caption before that: [`clean_caption`](super::clean_caption). A word without pieces is one `[UNK]`; a
/// caption without a word is `[CLS] [SEP]`.
#[derive(Debug, Clone)]
pub struct WordPieces {
    tokenizer: Tokenizer,
    vocabulary: usize,
}

/// The pieces that are no words and no parts of words.
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// No published table of embeddings has as many rows.
const HIGHEST_PIECE: u32 = 1 << 24;

/// The fields of `tokenizer_config.json` that matter here.
#[derive(Deserialize)]
#[serde(default)]
struct TokenizerConfig {
    do_lower_case: bool,
    tokenize_chinese_chars: bool,
    strip_accents: Option<bool>,
    tokenizer_class: Option<String>,
}

impl Default for TokenizerConfig {
    fn default() -> Self {
        Self {
            do_lower_case: true,
            tokenize_chinese_chars: true,
            strip_accents: None,
            tokenizer_class: None,
        }
    }
}

impl TokenizerConfig {
    /// Other classes take the normaliser of `tokenizer.json`.
    fn is_bert(&self) -> bool {
        let class = self.tokenizer_class.as_deref();
        matches!(class, None | Some("BertTokenizer" | "BertTokenizerFast"))
    }

    fn normalizer(&self) -> BertNormalizer {
        let Self { do_lower_case, tokenize_chinese_chars, strip_accents, .. } = *self;
        BertNormalizer::new(true, tokenize_chinese_chars, strip_accents, do_lower_case)
    }
}

/// The field of `sentence_bert_config.json` that matters here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SentenceConfig {
    do_lower_case: bool,
}

impl WordPieces {
    /// Reads a folder's `tokenizer.json`, without that file `vocab.txt`. If it exists, `tokenizer_config.json` says whether words
    /// become lower-case (the default), as in `transformers` also where `tokenizer.json` says otherwise. `sentence_bert_config.json`
    /// may ask for lower case before all that.
    ///
    /// # Errors
    /// If both `tokenizer.json` and `vocab.txt` are missing, a file is damaged, `vocab.txt` lacks `[UNK]`, `[CLS]` or
    /// `[SEP]`, `tokenizer.json` lacks `[SEP]`, or a piece has a number above 2²⁴.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let [whole, vocabulary] = ["tokenizer.json", "vocab.txt"].map(|name| folder.join(name));
        let config: Option<TokenizerConfig> = options(folder, "tokenizer_config.json")?;
        let (path, mut tokenizer) = if whole.exists() {
            (whole.clone(), open_tokenizer(&whole)?)
        } else {
            open(&vocabulary)?; // the library opens whatever it gets
            let tokenizer =
                built(&vocabulary, config.as_ref().unwrap_or(&TokenizerConfig::default()))?;
            (vocabulary, tokenizer)
        };
        let refused = |e| Error::invalid(path.display(), "a tokenizer", e);
        if let Some(config) = config.filter(TokenizerConfig::is_bert) {
            tokenizer.with_normalizer(Some(config.normalizer())).map_err(refused)?;
        }
        let sentence: SentenceConfig =
            options(folder, "sentence_bert_config.json")?.unwrap_or_default();
        if sentence.do_lower_case {
            let normalizers = tokenizer.get_normalizer().cloned().into_iter();
            let normalizers = iter::once(Lowercase.into()).chain(normalizers).collect();
            tokenizer.with_normalizer(Some(Sequence::new(normalizers))).map_err(refused)?;
        }
        tokenizer.with_truncation(None).map_err(refused)?.with_padding(None);
        let separator = tokenizer.token_to_id("[SEP]").is_some();
        Error::unless(separator, path.display(), "a piece [SEP]", "none")?;
        let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
        let expected = format_args!("numbers of pieces up to {HIGHEST_PIECE}");
        Error::unless(highest <= HIGHEST_PIECE, path.display(), expected, highest)?;
        let empty = caught(|| tokenizer.encode_fast("", true).map_err(|e| e.to_string()));
        let refused = |e| Error::invalid(path.display(), "a tokenizer", e);
        let empty = empty.flatten().map_err(refused)?;
        if let Some(id) = empty.get_ids().iter().find(|&&id| id > highest) {
            let expected = format_args!("special pieces up to {highest}");
            return Err(Error::invalid(path.display(), expected, id));
        }
        Ok(Self { tokenizer, vocabulary: highest as usize + 1 })
    }

    /// The highest number of a word piece, plus 1: at most the rows of the embedding table.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The numbers of `[PAD] [UNK] [CLS] [SEP] [MASK]`.
    ///
    /// # Errors
    /// If the vocabulary lacks one of these pieces; the error names the first.
    pub fn special(&self) -> Result<[u32; 5]> {
        let mut numbers = [0; 5];
        for (number, name) in numbers.iter_mut().zip(SPECIAL) {
            let missing = || Error::invalid("vocabulary", format!("a piece {name}"), "none");
            *number = self.tokenizer.token_to_id(name).ok_or_else(missing)?;
        }
        Ok(numbers)
    }

    /// The numbers after the last piece in brackets, such as `[MASK]` or `[unused7]`: signs, words and parts of words.
    pub fn words_and_parts(&self) -> Range<u32> {
        let vocabulary = self.tokenizer.get_vocab(true);
        let in_brackets =
            |piece: &str| piece.len() > 2 && piece.starts_with('[') && piece.ends_with(']');
        let special = vocabulary.iter().filter(|(piece, _)| in_brackets(piece));
        let first = special.map(|(_, &number)| number + 1).max().unwrap_or(0);
        first..self.vocabulary() as u32
    }

    /// The piece of each number, with `##` before a part of a word; an empty string outside
    /// [`words_and_parts`](Self::words_and_parts), and where no piece has the number.
    pub fn spelled(&self) -> Vec<String> {
        let words = self.words_and_parts();
        let piece = |number: u32| {
            let piece = words.contains(&number).then(|| self.tokenizer.id_to_token(number));
            piece.flatten().unwrap_or_default()
        };
        (0..words.end).map(piece).collect()
    }

    /// The numbers of a caption's pieces, `[CLS]` first and `[SEP]` last, not padded.
    ///
    /// # Errors
    /// If the folder's tokenizer cannot encode the caption, because it has no piece for an unknown word.
    pub fn encode(&self, caption: &str) -> Result<Vec<u32>> {
        let encoding = encoded(caption, || self.tokenizer.encode_fast(caption, true))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The words of a caption, spelled as in the caption, each with the positions of its pieces in
    /// [`encode`](Self::encode).
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn words(&self, caption: &str) -> Result<Vec<Word>> {
        let encoded = encoded(caption, || self.tokenizer.encode(caption, true))?;
        let mut words: Vec<(u32, Range<usize>, Range<usize>)> = vec![];
        let pieces = encoded.get_word_ids().iter().zip(encoded.get_offsets()).enumerate();
        for (piece, (word, &(start, end))) in pieces {
            let Some(word) = *word else { continue }; // [CLS] and [SEP]
            match words.last_mut().filter(|last| last.0 == word) {
                Some((_, pieces, letters)) => (pieces.end, letters.end) = (piece + 1, end),
                None => words.push((word, piece..piece + 1, start..end)),
            }
        }
        let word = |(_, pieces, letters): (u32, Range<usize>, Range<usize>)| Word {
            text: caption.get(letters).unwrap_or_default().to_owned(),
            pieces,
        };
        Ok(words.into_iter().map(word).collect())
    }
}

/// What a folder's tokenizer makes of a caption.
///
/// # Errors
/// If it refuses the caption, or stops at it.
pub fn encoded(
    caption: &str,
    encode: impl FnOnce() -> tokenizers::Result<Encoding>,
) -> Result<Encoding> {
    let encoding = caught(|| encode().map_err(|e| e.to_string())).flatten();
    encoding.map_err(|e| Error::invalid(format!("caption \"{caption}\""), "word pieces", e))
}

/// The tokenizer of a `tokenizer.json`.
///
/// # Errors
/// If the file cannot be read, or is no tokenizer.
pub fn open_tokenizer(path: &Path) -> Result<Tokenizer> {
    parsed(&path.display(), &read(path, LARGEST_TEXT)?)
}

/// The tokenizer of the bytes of such a file.
///
/// # Errors
/// If it is none; some damaged files make the library panic, which is an error here.
pub fn parsed(place: &dyn Display, bytes: &[u8]) -> Result<Tokenizer> {
    let found = caught(|| Tokenizer::from_bytes(bytes).map_err(|e| not_json(bytes, &e)));
    found.flatten().map_err(|got| Error::invalid(place, "a tokenizer", got))
}

/// A configuration of the folder, if the file exists.
fn options<C: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<C>> {
    let path = folder.join(name);
    path.exists().then(|| read_json(&path, "a tokenizer's configuration")).transpose()
}

fn built(vocabulary: &Path, options: &TokenizerConfig) -> Result<Tokenizer> {
    let refused = |e| Error::invalid(vocabulary.display(), "a word piece per line", e);
    let model = WordPiece::from_file(&vocabulary.display().to_string());
    let model = model.unk_token("[UNK]".into()).build().map_err(refused)?;
    let mut tokenizer = Tokenizer::new(model);
    let special = |name: &str| {
        let missing = || Error::invalid(vocabulary.display(), format!("a piece {name}"), "none");
        Ok((name.to_string(), tokenizer.token_to_id(name).ok_or_else(missing)?))
    };
    let [_, start, end] = [special("[UNK]")?, special("[CLS]")?, special("[SEP]")?];
    tokenizer.with_normalizer(Some(options.normalizer())).map_err(refused)?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_post_processor(Some(BertProcessing::new(end, start)));
    // A special piece that is written in a caption gets its own number, as in `transformers`.
    let specials = SPECIAL.into_iter().filter(|name| tokenizer.token_to_id(name).is_some());
    let specials: Vec<_> = specials.map(|name| AddedToken::from(name, true)).collect();
    tokenizer.add_special_tokens(specials).map_err(refused)?;
    Ok(tokenizer)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::text::{CLEANED_WORDS, clean_caption};

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../itm-core/tests/golden/hf/pieces")
    }

    #[derive(Deserialize)]
    struct Golden {
        captions: Vec<String>,
        uncased: Vec<Vec<u32>>,
        cased: Vec<Vec<u32>>,
    }

    fn golden() -> Golden {
        serde_json::from_slice(&fs::read(folder().join("pieces.json")).unwrap()).unwrap()
    }

    fn cased(config: &str) -> WordPieces {
        let own = TempDir::new().unwrap();
        fs::copy(folder().join("vocab.txt"), own.path().join("vocab.txt")).unwrap();
        fs::write(own.path().join("tokenizer_config.json"), config).unwrap();
        WordPieces::open(&own).unwrap()
    }

    /// From `BertTokenizer` (`tests/reference/transformers_fixtures.py`, which tests it against the plain algorithm).
    #[test]
    fn golden_captions() {
        let golden = golden();
        let kept = cased(r#"{"do_lower_case": false, "model_max_length": 512}"#);
        for (name, pieces, whole) in [
            ("uncased", WordPieces::open(folder()).unwrap(), &golden.uncased),
            ("cased", kept, &golden.cased),
            ("tokenizer.json", WordPieces::open(folder().join("cased")).unwrap(), &golden.cased),
        ] {
            for (caption, whole) in golden.captions.iter().zip(whole) {
                assert_eq!(&pieces.encode(caption).unwrap(), whole, "{name}: {caption:?}");
            }
        }
        assert_ne!(golden.cased, golden.uncased);
    }

    /// `transformers` asks `tokenizer.json` about lower case only for classes that are not BERT's.
    #[test]
    fn the_configuration_wins_over_the_normalizer() {
        let (golden, own) = (golden(), TempDir::new().unwrap());
        let whole = folder().join("cased/tokenizer.json");
        fs::copy(whole, own.path().join("tokenizer.json")).unwrap();
        for (config, want) in [
            (r#"{"do_lower_case": true}"#, &golden.uncased),
            (r#"{"tokenizer_class": "BertTokenizerFast"}"#, &golden.uncased),
            (r#"{"tokenizer_class": "BertTokenizer", "do_lower_case": false}"#, &golden.cased),
            (r#"{"tokenizer_class": "TokenizersBackend"}"#, &golden.cased),
        ] {
            fs::write(own.path().join("tokenizer_config.json"), config).unwrap();
            let pieces = WordPieces::open(&own).unwrap();
            let got: Vec<_> = golden.captions.iter().map(|c| pieces.encode(c).unwrap()).collect();
            assert_eq!(&got, want, "{config}");
        }
    }

    /// By hand: accents stay if the configuration says so, and then `café` is a separate word.
    #[test]
    fn the_configuration_chooses() {
        let lines = fs::read_to_string(folder().join("vocab.txt")).unwrap();
        let number = |word: &str| lines.lines().position(|line| line == word).unwrap() as u32;
        let ids = |pieces: &WordPieces| pieces.encode("Café").unwrap()[1];
        assert_eq!(ids(&cased("{}")), number("cafe"));
        assert_eq!(ids(&cased(r#"{"strip_accents": false}"#)), number("café"));
        assert_eq!(cased("{}").vocabulary(), lines.lines().count());
    }

    /// A vocabulary with a gap asks for a table that reaches to its highest number; a number may not be any size.
    #[test]
    fn the_highest_number_counts() {
        let own = TempDir::new().unwrap();
        let path = own.path().join("tokenizer.json");
        let written = |last: u64| {
            let vocabulary = format!(r#"{{"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "dog": {last}}}"#);
            let model =
                format!(r#"{{"type": "WordLevel", "unk_token": "[UNK]", "vocab": {vocabulary}}}"#);
            fs::write(
                &path,
                format!(r#"{{"version": "1.0", "added_tokens": [], "model": {model}}}"#),
            )
            .unwrap();
            WordPieces::open(&own)
        };
        let pieces = written(7).unwrap();
        assert_eq!((pieces.vocabulary(), pieces.words_and_parts()), (8, 3..8));
        assert_eq!(pieces.spelled()[7], "dog");
        let line = written(u64::from(u32::MAX)).unwrap_err().to_string();
        assert!(
            line.ends_with("expected numbers of pieces up to 16777216, got 4294967295"),
            "{line}"
        );
    }

    /// FNE: an empty caption gives `[CLS] [SEP]`; cleaning comes first.
    #[test]
    fn captions_are_cleaned_first() {
        let pieces = WordPieces::open(folder()).unwrap();
        let of = |caption: &str| pieces.encode(&clean_caption(caption, CLEANED_WORDS)).unwrap();
        assert_eq!(of(" . "), [2, 3]);
        assert_eq!(of("A dog, runs!"), of("a dog runs"));
    }

    /// By hand from the vocabulary, which has `run`, `##ning` and `##s`, but not `running`.
    #[test]
    fn words_know_their_pieces() {
        let pieces = WordPieces::open(folder()).unwrap();
        let caption = "The Running dogs";
        let words = pieces.words(caption).unwrap();
        let seen: Vec<_> = words.iter().map(|w| (w.text.as_str(), w.pieces.clone())).collect();
        assert_eq!(seen, [("The", 1..2), ("Running", 2..4), ("dogs", 4..6)]);
        let whole = pieces.encode(caption).unwrap();
        assert_eq!(whole.len(), 7); // and [CLS], [SEP]
        let lines = fs::read_to_string(folder().join("vocab.txt")).unwrap();
        let number = |word: &str| lines.lines().position(|line| line == word).unwrap() as u32;
        assert_eq!(whole[2..4], ["run", "##ning"].map(number));
        assert_eq!(pieces.words("").unwrap(), []);
        // The pieces by their numbers: a piece in brackets is not a word.
        let spelled = pieces.spelled();
        let word = |line: &str| if line.starts_with('[') { String::new() } else { line.to_owned() };
        assert_eq!(spelled, lines.lines().map(word).collect::<Vec<_>>());
    }

    /// By hand: as in BERT's own vocabularies, unused pieces are between the special ones.
    #[test]
    fn special_pieces_stand_before_words_and_parts() {
        let own = TempDir::new().unwrap();
        let open = |lines: &str| {
            fs::write(own.path().join("vocab.txt"), lines).unwrap();
            WordPieces::open(&own).unwrap()
        };
        let pieces =
            open("[PAD]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused2]\n[\n]\na\n##b\n");
        assert_eq!(pieces.special().unwrap(), [0, 2, 3, 4, 5]);
        assert_eq!(pieces.words_and_parts(), 7..11);
        let line = open("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").special().unwrap_err().to_string();
        assert_eq!(line, "vocabulary: expected a piece [MASK], got none");
    }

    #[test]
    fn faulty_folders_are_named() {
        let own = TempDir::new().unwrap();
        let message = || {
            let line = WordPieces::open(&own).unwrap_err().to_string();
            line.replace(&*own.path().display().to_string(), "FOLDER")
        };
        assert!(message().starts_with("FOLDER/vocab.txt: No such file"));
        fs::write(own.path().join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n").unwrap();
        assert_eq!(message(), "FOLDER/vocab.txt: expected a piece [SEP], got none");
        fs::write(own.path().join("tokenizer_config.json"), "{").unwrap();
        assert!(message().starts_with("FOLDER/tokenizer_config.json: expected a tokenizer's"));
        fs::remove_file(own.path().join("tokenizer_config.json")).unwrap();
        fs::write(own.path().join("tokenizer.json"), "{}").unwrap();
        assert!(message().starts_with("FOLDER/tokenizer.json: expected a tokenizer, got "));
    }

    /// The library unwraps what it has read of a decoder.
    #[test]
    fn a_panic_of_the_library_is_one_line() {
        let own = TempDir::new().unwrap();
        let whole = built(&folder().join("vocab.txt"), &TokenizerConfig::default()).unwrap();
        let json = whole.to_string(false).unwrap().replace("\"decoder\":null", "\"decoder\":-1e");
        fs::write(own.path().join("tokenizer.json"), json).unwrap();
        let line = WordPieces::open(own.path()).unwrap_err().to_string();
        let want = "tokenizer.json: expected a tokenizer, got one that stops its reader (";
        assert!(line.contains(want) && line.lines().count() == 1, "{line}");
    }

    /// The library reads such a file, and stops at the first caption, or gives a number that no table has.
    #[test]
    fn special_pieces_of_a_template_are_those_of_the_vocabulary() {
        let own = TempDir::new().unwrap();
        let whole = built(&folder().join("vocab.txt"), &TokenizerConfig::default()).unwrap();
        let mut json: serde_json::Value =
            serde_json::from_str(&whole.to_string(false).unwrap()).unwrap();
        let mut line = |special: serde_json::Value| {
            let single = serde_json::json!([{ "SpecialToken": { "id": "[CLS]", "type_id": 0 } }]);
            json["post_processor"] = serde_json::json!({
                "type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": special
            });
            fs::write(own.path().join("tokenizer.json"), json.to_string()).unwrap();
            WordPieces::open(own.path()).unwrap_err().to_string()
        };
        let missing = line(serde_json::json!({}));
        assert!(missing.contains("expected a tokenizer, got one that stops"), "{missing}");
        let class = serde_json::json!({ "id": "[CLS]", "ids": [99_999_999], "tokens": ["[CLS]"] });
        let beyond = line(serde_json::json!({ "[CLS]": class }));
        assert!(beyond.contains("expected special pieces up to"), "{beyond}");
    }
}
