//! Captions as the word pieces of CLIP and SigLIP.

use std::path::Path;

use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::TextTowerShape;
use super::config::END;
use crate::encoders::TokenBatch;
use crate::files;
use crate::text::{encoded, open_tokenizer, parsed_tokenizer};
use crate::{Error, Result};

/// Captions to the numbers of the word pieces of a [`DualEncoder`](super::DualEncoder).
///
/// ```text
/// CLIP     caption → NFC, one space, lower case → words, signs, digits → byte pairs;       [start] … [end], at most 77
/// SigLIP   caption → lower case, no ASCII punctuation, one space → pieces of SentencePiece; … </s> … to 64
/// SigLIP 2 caption → lower case → byte pairs;                                              … <eos> <pad> … to 64
/// ```
///
/// A longer caption is cut, and the end piece stays. A caption without a word is the special pieces alone. CLIP reads a caption up
/// to the first end piece, also one that is written in it, or to the highest number: [`TextTowerShape::highest`].
///
/// # Departures
/// Captions are read as `transformers` reads them. open_clip first repairs wrong encodings (ftfy) and undoes HTML; that is not
/// here.
#[derive(Debug, Clone)]
pub struct DualPieces {
    tokenizer: Tokenizer,
    vocabulary: usize,
    positions: usize,
    end: u32,
    /// [`TextTowerShape::highest`]
    highest: bool,
    /// The number that fills SigLIP's captions.
    padding: Option<u32>,
    /// SigLIP 1: ASCII punctuation is taken out, and white space is one space.
    plain: bool,
}

impl DualPieces {
    /// Reads a folder's `tokenizer.json`. Without that file, CLIP reads `vocab.json` and `merges.txt`.
    ///
    /// # Errors
    /// If these files are missing or damaged, lack an end piece, or have numbers beyond the tower's vocabulary.
    pub fn open(folder: impl AsRef<Path>, shape: &TextTowerShape) -> Result<Self> {
        let folder = folder.as_ref();
        let (place, mut tokenizer) = tokenizer(folder, shape)?;
        let most = tokenizer.get_vocab(true).values().max().map_or(0, |&most| most as usize + 1);
        let expected = format!("at most {} word pieces, as in the model", shape.vocabulary);
        Error::unless(most <= shape.vocabulary, &place, expected, most)?;
        let refused = |e| Error::invalid(&place, "a tokenizer", e);
        tokenizer.with_truncation(None).map_err(refused)?.with_padding(None);
        let piece = |name: &str| tokenizer.token_to_id(name);
        let missing = |name: &str| Error::invalid(&place, format!("a piece {name}"), "none");
        let TextTowerShape { vocabulary, positions, highest, .. } = *shape;
        let (end, padding, plain) = match shape.end {
            Some(end) => {
                let known = tokenizer.id_to_token(end).is_some();
                Error::unless(known, place, format_args!("the end piece, number {end}"), "none")?;
                (end, None, false)
            }
            None => {
                // SigLIP 2's vocabulary has both: its `</s>` is a tag of HTML.
                let second = piece("<eos>");
                let end = second.or(piece("</s>")).ok_or_else(|| missing("</s> or <eos>"))?;
                let usual = if second.is_some() { "<pad>" } else { "</s>" };
                let name = padding_piece(folder)?.unwrap_or(usual.into());
                let padding = piece(&name).ok_or_else(|| missing(&name))?;
                (end, Some(padding), second.is_none())
            }
        };
        Ok(Self { tokenizer, vocabulary, positions, end, highest, padding, plain })
    }

    /// Number of word pieces of the tower: every number is below it.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The numbers of a caption's pieces, and whether the caption was cut. CLIP has at most as many as the tower has positions,
    /// SigLIP just as many.
    ///
    /// # Errors
    /// If the folder's tokenizer cannot encode the caption.
    pub fn encode(&self, caption: &str) -> Result<(Vec<u32>, bool)> {
        let cleaned = match (self.padding, self.plain) {
            (None, _) => caption.to_owned(),
            (_, false) => caption.to_lowercase(),
            (_, true) => {
                let plain: String = caption.chars().filter(|c| !c.is_ascii_punctuation()).collect();
                plain.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
            }
        };
        let encoding = encoded(caption, || self.tokenizer.encode_fast(cleaned, true))?;
        let mut ids = encoding.get_ids().to_vec();
        if ids.last() != Some(&self.end) {
            ids.push(self.end);
        }
        let cut = ids.len() > self.positions;
        if cut {
            ids.truncate(self.positions);
            ids[self.positions - 1] = self.end;
        }
        match self.padding {
            Some(padding) => ids.resize(self.positions, padding),
            None => {
                let most = ids.iter().copied().max().filter(|_| self.highest);
                let last = most.unwrap_or(self.end);
                let behind = ids.iter().position(|&id| id == last).map_or(ids.len(), |k| k + 1);
                ids.truncate(behind);
            }
        }
        Ok((ids, cut))
    }

    /// The pieces of some captions as the tower reads them.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    ///
    /// # Panics
    /// If there is no caption.
    pub fn batch<C: AsRef<str>>(&self, captions: &[C]) -> Result<TokenBatch> {
        let row = |caption: &C| Ok(self.encode(caption.as_ref())?.0);
        let rows = captions.iter().map(row).collect::<Result<Vec<_>>>()?;
        Ok(TokenBatch::new(&rows))
    }
}

/// The tokenizer of a folder, and its place for messages.
fn tokenizer(folder: &Path, shape: &TextTowerShape) -> Result<(String, Tokenizer)> {
    let [whole, vocabulary, merges] =
        ["tokenizer.json", "vocab.json", "merges.txt"].map(|name| folder.join(name));
    if whole.exists() {
        return Ok((whole.display().to_string(), open_tokenizer(&whole)?));
    }
    let expected = match folder.join("spiece.model").exists() {
        true => "tokenizer.json, as published folders of SigLIP have it beside spiece.model",
        false => "tokenizer.json, or vocab.json with merges.txt",
    };
    Error::unless(vocabulary.exists(), folder.display(), expected, "none of them")?;
    let place = vocabulary.display().to_string();
    let clip = shape.end.is_some();
    Error::unless(clip, folder.display(), "tokenizer.json of a SigLIP", "vocab.json")?;
    let pieces: Value = files::read_json(&vocabulary, "numbers of word pieces in JSON")?;
    let lines = files::read_text(&merges)?;
    let lines = lines.lines().filter(|line| !line.starts_with("#version") && !line.is_empty());
    let merges: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
    let special = |name: &str| {
        let number = pieces.get(name).and_then(Value::as_u64);
        number.ok_or_else(|| Error::invalid(&place, format!("a piece {name}"), "none"))
    };
    let (start, end) = (special(START)?, special(END)?);
    let added = |id: u64, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    // As `transformers` builds it from the same files.
    let whole = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [added(start, START), added(end, END)],
        "normalizer": { "type": "Sequence", "normalizers": [
            { "type": "NFC" },
            { "type": "Replace", "pattern": { "Regex": "\\s+" }, "content": " " },
            { "type": "Lowercase" },
        ] },
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": WORDS }, "behavior": "Removed", "invert": true },
            { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        ] },
        "post_processor": { "type": "RobertaProcessing", "sep": [END, end], "cls": [START, start],
                            "trim_offsets": false, "add_prefix_space": false },
        "decoder": null,
        "model": { "type": "BPE", "dropout": null, "unk_token": END, "continuing_subword_prefix": "",
                   "end_of_word_suffix": "</w>", "fuse_unk": false, "byte_fallback": false,
                   "vocab": pieces, "merges": merges },
    });
    let tokenizer = parsed_tokenizer(&place, whole.to_string().as_bytes())?;
    Ok((place, tokenizer))
}

const START: &str = "<|startoftext|>";
/// Special pieces, endings, letters, digits, signs.
const WORDS: &str =
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+";

/// The padding that `tokenizer_config.json` names.
fn padding_piece(folder: &Path) -> Result<Option<String>> {
    let path = folder.join("tokenizer_config.json");
    if !path.exists() {
        return Ok(None);
    }
    let config: Value = files::read_json(&path, "a tokenizer's configuration")?;
    let piece = &config["pad_token"];
    Ok(piece.as_str().or(piece["content"].as_str()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde::Deserialize;
    use tempfile::TempDir;

    use super::*;
    use crate::encoders::DualShape;

    /// From `tests/reference/clip.py`: the tokenizers of `transformers`.
    #[derive(Deserialize)]
    struct Golden {
        captions: Vec<String>,
        transformers: Vec<Vec<u32>>,
        transformers_16: Vec<Vec<u32>>,
        siglip_8: Vec<Vec<u32>>,
    }

    fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip").join(name)
    }

    fn golden() -> Golden {
        serde_json::from_slice(&fs::read(folder("pieces.json")).unwrap()).unwrap()
    }

    fn shape(name: &str) -> TextTowerShape {
        DualShape::read(folder(name)).unwrap().text
    }

    #[test]
    fn golden_captions() {
        let golden = golden();
        let files = TempDir::new().unwrap(); // without tokenizer.json
        for name in ["vocab.json", "merges.txt"] {
            fs::copy(folder("clip").join(name), files.path().join(name)).unwrap();
        }
        let wide = TextTowerShape { positions: 400, ..shape("clip") };
        for (name, folder, shape, whole) in [
            ("77", folder("clip"), &wide, &golden.transformers),
            ("16", folder("clip"), &shape("clip"), &golden.transformers_16),
            ("vocab.json", files.path().into(), &wide, &golden.transformers),
            ("siglip", folder("siglip"), &shape("siglip"), &golden.siglip_8),
        ] {
            let pieces = DualPieces::open(folder, shape).unwrap();
            for (caption, want) in golden.captions.iter().zip(whole) {
                let (got, _) = pieces.encode(caption).unwrap();
                // CLIP reads a caption up to the first end piece, also a written one.
                let end = want.iter().position(|&id| Some(id) == shape.end);
                let want = &want[..end.map_or(want.len(), |end| end + 1)];
                // CLIP's captions of the golden end at 77 pieces.
                let most = if name == "77" || name == "vocab.json" { 77 } else { shape.positions };
                let got = if got.len() > most { &got[..most - 1] } else { &got[..] };
                assert_eq!(got, &want[..got.len().min(want.len())], "{name}: {caption:?}");
                assert!(got.len() + 1 >= want.len().min(most), "{name}: {caption:?}");
            }
        }
    }

    /// By hand: the special pieces alone, and a caption of 200 words.
    #[test]
    fn short_and_long_captions_end_well() {
        let (clip, siglip) = (shape("clip"), shape("siglip"));
        let pieces = DualPieces::open(folder("clip"), &clip).unwrap();
        assert_eq!(pieces.encode("").unwrap(), (vec![552, 553], false));
        let long = "dog ".repeat(200);
        let (ids, cut) = pieces.encode(&long).unwrap();
        assert_eq!((ids.len(), ids[0], ids[15], cut), (16, 552, 553, true));
        let batch = pieces.batch(&["a dog", ""]).unwrap();
        assert_eq!(batch.lengths, [pieces.encode("a dog").unwrap().0.len(), 2]);
        assert!(clip.check(&batch).is_ok());
        let pieces = DualPieces::open(folder("siglip"), &siglip).unwrap();
        assert_eq!(pieces.encode(" !? ").unwrap(), (vec![1; 8], false));
        assert_eq!(pieces.encode(&long).unwrap().0[7], 1);
        assert_eq!(pieces.encode("A dog.").unwrap(), pieces.encode("a  dog").unwrap());
        assert!(siglip.check(&pieces.batch(&["a dog"]).unwrap()).is_ok());
    }

    fn whole(name: &str) -> Value {
        serde_json::from_slice(&fs::read(folder(name).join("tokenizer.json")).unwrap()).unwrap()
    }

    /// By hand from the pieces: SigLIP 2 keeps punctuation and blanks, ends with another piece and pads with a third. As in its own
    /// vocabulary, `</s>` is a piece too.
    #[test]
    fn the_configuration_names_the_padding() {
        let own = TempDir::new().unwrap();
        let mut wide = shape("siglip");
        let text = whole("siglip").to_string().replace("</s>", "<eos>");
        let mut own_whole: Value = serde_json::from_str(&text).unwrap();
        own_whole["normalizer"] = Value::Null;
        own_whole["model"]["vocab"].as_array_mut().unwrap().push(json!(["</s>", -99.0]));
        fs::write(own.path().join("tokenizer.json"), own_whole.to_string()).unwrap();
        wide.vocabulary += 1;
        let second = DualPieces::open(own.path(), &wide).unwrap();
        assert_eq!((second.end, second.padding, second.plain), (1, Some(0), false));
        for (caption, want) in [
            ("", [1, 0, 0, 0, 0, 0, 0, 0]),
            ("A dog.", [3, 4, 2, 1, 0, 0, 0, 0]),
            ("a  dog", [3, 19, 4, 1, 0, 0, 0, 0]),
            ("a dog the a dog the a dog", [3, 4, 5, 3, 4, 5, 3, 1]),
        ] {
            assert_eq!(second.encode(caption).unwrap().0, want, "{caption:?}");
        }
        fs::write(
            own.path().join("tokenizer_config.json"),
            r#"{"pad_token": {"content": "<unk>"}}"#,
        )
        .unwrap();
        let other = DualPieces::open(own.path(), &wide).unwrap();
        assert_eq!(other.padding, Some(2));
    }

    /// By hand from the rules of `CLIPTextModel`: `eos_token_id` 2 takes the first of the highest numbers, another the first end piece.
    #[test]
    fn words_are_added_behind_the_end_piece() {
        let own = TempDir::new().unwrap();
        let added = |id: u32, content: &str| {
            json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": false })
        };
        let mut whole = whole("clip");
        let words = whole["added_tokens"].as_array_mut().unwrap();
        words.extend([added(554, "zyzzyva"), added(555, "quokka")]);
        fs::write(own.path().join("tokenizer.json"), whole.to_string()).unwrap();
        let config = fs::read(folder("clip").join("config.json")).unwrap();
        let mut config: Value = serde_json::from_slice(&config).unwrap();
        config["text_config"]["vocab_size"] = json!(600); // and padding
        let mut last = |end: u32, caption: &str| {
            config["text_config"]["eos_token_id"] = json!(end);
            fs::write(own.path().join("config.json"), config.to_string()).unwrap();
            let shape = DualShape::read(own.path()).unwrap().text;
            assert_eq!((shape.end, shape.highest), (Some(553), end == 2));
            let pieces = DualPieces::open(own.path(), &shape).unwrap();
            assert!(shape.check(&pieces.batch(&[caption]).unwrap()).is_ok());
            let (ids, cut) = pieces.encode(caption).unwrap();
            (ids.len(), ids[ids.len() - 1], cut)
        };
        let dog = golden().transformers[0].len();
        for end in [2, 553] {
            assert_eq!(last(end, "A dog runs."), (dog, 553, false));
        }
        assert_eq!(last(553, "zyzzyva quokka zyzzyva quokka"), (6, 553, false));
        assert_eq!(last(2, "zyzzyva quokka zyzzyva quokka"), (3, 555, false));
        assert_eq!(last(553, "zyzzyva <|endoftext|> quokka"), (3, 553, false));
        assert_eq!(last(2, "zyzzyva <|endoftext|> quokka"), (4, 555, false));
    }

    #[test]
    fn faulty_folders_are_named() {
        let own = TempDir::new().unwrap();
        let line = |shape: &TextTowerShape| {
            let line = DualPieces::open(&own, shape).unwrap_err().to_string();
            line.replace(&*own.path().display().to_string(), "FOLDER")
        };
        let clip = shape("clip");
        assert_eq!(
            line(&clip),
            "FOLDER: expected tokenizer.json, or vocab.json with merges.txt, got none of them"
        );
        fs::write(own.path().join("spiece.model"), "").unwrap();
        assert!(line(&clip).contains("beside spiece.model"));
        fs::write(own.path().join("vocab.json"), r#"{"a": 0}"#).unwrap();
        fs::write(own.path().join("merges.txt"), "#version: 0.2\n").unwrap();
        assert_eq!(line(&clip), "FOLDER/vocab.json: expected a piece <|startoftext|>, got none");
        fs::copy(folder("clip").join("tokenizer.json"), own.path().join("tokenizer.json")).unwrap();
        let small = TextTowerShape { vocabulary: 500, end: Some(499), ..clip };
        assert_eq!(
            line(&small),
            "FOLDER/tokenizer.json: expected at most 500 word pieces, as in the model, got 554"
        );
    }
}
