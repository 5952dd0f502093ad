//! Sentence encoders: BERT, a pool and unit rows.

use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor};
use itm_kernels::{Noise, Precision, normalize_rows};
use serde_json::Value;

use super::{Bert, PiecePool, TokenBatch};
use crate::files::{check_below, read_json};
use crate::text::WordPieces;
use crate::weights::LoadReport;
use crate::{Error, Result};
use itm_data::Fields;

/// A published folder of sentence-transformers: BERT, a pool and, in most, unit length.
///
/// ```text
/// W = bert(pieces);   r = pool(W);   r ← r / ‖r‖
/// ```
#[derive(Debug)]
pub struct SentenceEncoder {
    bert: Bert,
    pieces: WordPieces,
    /// The pool.
    pub pool: PiecePool,
    /// Whether rows have unit length.
    pub unit: bool,
    /// Stands before each sentence: the prompt of `default_prompt_name`.
    pub prompt: String,
    /// Word pieces of a sentence at most; the last piece is always `[SEP]`.
    pub most: usize,
}

impl SentenceEncoder {
    /// Reads `modules.json`, the configurations of the pool and of prompts, BERT and its word pieces. A folder of BERT alone has
    /// the mean as pool, and unit rows.
    ///
    /// # Errors
    /// As [`Bert::open`] and [`WordPieces::open`], and if a module or a pool is another; the error names it.
    pub fn open(folder: impl AsRef<Path>, device: &Device) -> Result<(Self, LoadReport)> {
        let folder = folder.as_ref();
        let SentenceFolder { transformer, pool, unit, prompt } = SentenceFolder::read(folder)?
            .unwrap_or(SentenceFolder {
                transformer: folder.into(),
                pool: PiecePool::Masked,
                unit: true,
                prompt: String::new(),
            });
        let folder = &transformer;
        let (bert, report) = Bert::open(folder, device)?;
        let pieces = WordPieces::open(folder)?;
        let (numbers, rows) = (pieces.vocabulary(), bert.shape.vocabulary);
        let expected = format!("numbers of word pieces below {rows}, as in the model");
        Error::unless(numbers <= rows, folder.display(), expected, numbers - 1)?;
        let most = SentenceFolder::most(folder, bert.shape.positions)?;
        Ok((Self { bert, pieces, pool, unit, prompt, most }, report))
    }

    /// Sets the precision of the products of all blocks.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.bert = self.bert.with_precision(precision);
        self
    }

    /// The encoder with an adapter in its BERT: [`DualEncoder::with_adapter`](super::DualEncoder::with_adapter).
    ///
    /// # Errors
    /// As [`DualEncoder::with_adapter`](super::DualEncoder::with_adapter).
    pub fn with_adapter(self, folder: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { bert: self.bert.with_adapter(folder)?, ..self })
    }

    /// The numbers of a sentence's word pieces, at most [`most`](Self::most), and whether it was cut.
    ///
    /// # Errors
    /// As [`WordPieces::encode`], and if a sentence has no piece, not even a special one.
    pub fn encode(&self, sentence: &str) -> Result<(Vec<u32>, bool)> {
        let mut ids = self.pieces.encode(&format!("{}{sentence}", self.prompt))?;
        let Some(&last) = ids.last() else {
            let expected = "[CLS] and [SEP] around a sentence";
            return Err(Error::invalid("the tokenizer", expected, "no piece"));
        };
        let most = self.most.max(1);
        let cut = ids.len() > most;
        if cut {
            ids.truncate(most);
            ids[most - 1] = last;
        }
        Ok((ids, cut))
    }

    /// One row per sentence, `[b, d]`.
    ///
    /// # Panics
    /// If a sentence has more pieces than the model has positions.
    pub fn rows(&self, sentences: &TokenBatch) -> Tensor<2> {
        let rows = self.pool.pool(self.bert.forward(sentences, Noise::Off), sentences);
        if self.unit { normalize_rows(rows) } else { rows }
    }

    /// Width d of a row.
    pub(crate) fn width(&self) -> usize {
        self.bert.shape.width
    }
}

/// What `modules.json` and `config_sentence_transformers.json` say of a folder of sentence-transformers.
pub(crate) struct SentenceFolder {
    /// The folder of BERT and its word pieces.
    pub(crate) transformer: PathBuf,
    pub(crate) pool: PiecePool,
    /// Whether rows become unit rows.
    pub(crate) unit: bool,
    pub(crate) prompt: String,
}

impl SentenceFolder {
    /// `None` for another folder.
    ///
    /// # Errors
    /// If the folder has other modules, pools in another way than by mean, CLS or max, or pools without its prompt.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let modules = folder.join("modules.json");
        if !modules.exists() {
            return Ok(None);
        }
        let list: Vec<Value> = read_json(&modules, "a list of modules in JSON")?;
        let prompt = prompt_of(folder)?;
        let (mut transformer, mut pool, mut unit) = (folder.to_path_buf(), None, false);
        for (place, module) in list.iter().enumerate() {
            let kind = module["type"].as_str().unwrap_or("none");
            let path = module["path"].as_str().unwrap_or_default();
            check_below(&format!("{}: path", modules.display()), path)?;
            match (place, kind.rsplit('.').next().unwrap_or(kind)) {
                (0, "Transformer") if path.is_empty() => {}
                (0, "Transformer") => transformer.push(path),
                (_, "Pooling") if pool.is_none() => {
                    pool = Some(pool_of(&folder.join(path).join("config.json"), &prompt)?);
                }
                (_, "Normalize") if pool.is_some() => unit = true,
                _ => {
                    let expected = "Transformer, Pooling, Normalize in this order";
                    return Err(Error::invalid(modules.display(), expected, kind));
                }
            }
        }
        let missing = || Error::invalid(modules.display(), "a module Pooling", "none");
        Ok(Some(Self { transformer, pool: pool.ok_or_else(missing)?, unit, prompt }))
    }

    /// Word pieces of a sentence at most, by the folder of BERT.
    pub(crate) fn most(transformer: &Path, positions: usize) -> Result<usize> {
        let fields = |file: &str| Fields::if_present(&transformer.join(file));
        let own = fields("sentence_bert_config.json")?;
        let most = match own.has("max_seq_length") {
            true => own.count("max_seq_length", positions)?,
            // Many files say 10³⁰ for no bound.
            false => fields("tokenizer_config.json")?.real("model_max_length", f64::MAX)? as usize,
        };
        Ok(most.clamp(1, positions))
    }
}

/// What sentence-transformers puts before each sentence unless it is asked for something else.
fn prompt_of(folder: &Path) -> Result<String> {
    let fields = Fields::if_present(&folder.join("config_sentence_transformers.json"))?;
    let Some(name) = fields.text("default_prompt_name") else { return Ok(String::new()) };
    match fields.object("prompts")?.text(name) {
        Some(prompt) => Ok(prompt.into()),
        None if ["query", "document"].contains(&name) => Ok(String::new()), // known to every folder, and empty
        None => {
            fields.refused("default_prompt_name", "a name of prompts", format_args!("\"{name}\""))
        }
    }
}

fn pool_of(path: &Path, prompt: &str) -> Result<PiecePool> {
    let fields = Fields::read(path)?;
    let fits = prompt.is_empty() || fields.flag("include_prompt", true);
    fields.unless(fits, "include_prompt", "true, as there is a default prompt", false)?;
    let flags = [
        "pooling_mode_mean_tokens",
        "pooling_mode_cls_token",
        "pooling_mode_max_tokens",
        "pooling_mode_mean_sqrt_len_tokens",
        "pooling_mode_weightedmean_tokens",
        "pooling_mode_lasttoken",
    ];
    // Since version 6, one name in place of the flags.
    let found = match fields.text("pooling_mode") {
        Some(mode) => vec![mode],
        None if fields.is_list("pooling_mode") => vec!["a list"],
        None => flags.into_iter().filter(|flag| fields.flag(flag, false)).collect(),
    };
    match found[..] {
        ["mean" | "pooling_mode_mean_tokens"] => Ok(PiecePool::Masked),
        ["cls" | "pooling_mode_cls_token"] => Ok(PiecePool::Class),
        ["max" | "pooling_mode_max_tokens"] => Ok(PiecePool::Max),
        [] => fields.refused("pooling_mode", "one of mean, cls and max", "none of them"),
        _ => fields.refused("pooling_mode", "one of mean, cls and max", found.join(", ")),
    }
}

#[cfg(test)]
#[cfg(feature = "pieces")]
mod tests {
    use std::fs;

    use serde::Deserialize;
    use tempfile::TempDir;

    use super::*;
    use crate::host;

    /// From `tests/reference/clip.py`, with sentence-transformers' rows.
    #[derive(Deserialize)]
    struct Golden {
        sentences: Vec<String>,
        ids: Vec<Vec<u32>>,
        rows: Vec<Vec<f32>>,
        #[serde(rename = "cls.rows")]
        cls: Vec<Vec<f32>>,
        #[serde(rename = "max.rows")]
        max: Vec<Vec<f32>>,
    }

    fn golden() -> Golden {
        serde_json::from_str(include_str!("../../tests/golden/clip/sentence.json")).unwrap()
    }

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip/sentence")
    }

    #[test]
    fn golden_sentences_under_every_pool() {
        let (golden, device) = (golden(), Device::flex());
        let (mut model, report) = SentenceEncoder::open(folder(), &device).unwrap();
        assert!(report.unexpected.is_empty());
        assert_eq!((model.pool, model.unit, model.most), (PiecePool::Masked, true, 12));
        let encoded = golden.sentences.iter().map(|sentence| model.encode(sentence).unwrap());
        let (ids, cut): (Vec<_>, Vec<_>) = encoded.unzip();
        assert_eq!(ids, golden.ids);
        assert_eq!(cut, [false, false, false, false, true]);
        for most in [0, 1] {
            model.most = most;
            assert_eq!(model.encode("A dog").unwrap(), (vec![3], true), "[SEP] alone");
        }
        let batch = TokenBatch::new(&ids);
        for (pool, want) in [
            (PiecePool::Masked, &golden.rows),
            (PiecePool::Class, &golden.cls),
            (PiecePool::Max, &golden.max),
        ] {
            model.pool = pool;
            let got = host(model.rows(&batch));
            let error = got
                .iter()
                .zip(want.concat())
                .map(|(g, w)| (g - w).abs())
                .max_by(f32::total_cmp)
                .unwrap();
            assert!(error < 2e-6, "{pool:?} is off by {error:e}");
        }
    }

    #[test]
    fn other_modules_are_named() {
        let own = TempDir::new().unwrap();
        let line = |modules: &str, pool: &str| {
            fs::write(own.path().join("modules.json"), modules).unwrap();
            fs::create_dir_all(own.path().join("1_Pooling")).unwrap();
            fs::write(own.path().join("1_Pooling/config.json"), pool).unwrap();
            let error = SentenceEncoder::open(own.path(), &Device::flex()).unwrap_err().to_string();
            error.replace(&*own.path().display().to_string(), "FOLDER")
        };
        let module = |kind: &str, path: &str| {
            format!(r#"{{"type": "sentence_transformers.models.{kind}", "path": "{path}"}}"#)
        };
        let list = |modules: &[String]| format!("[{}]", modules.join(","));
        let plain = [module("Transformer", ""), module("Pooling", "1_Pooling")];
        assert_eq!(
            line(
                &list(&[plain.as_slice(), &[module("Dense", "2_Dense")]].concat()),
                "{\"pooling_mode_cls_token\": true}"
            ),
            "FOLDER/modules.json: expected Transformer, Pooling, Normalize in this order, got \
             sentence_transformers.models.Dense"
        );
        assert_eq!(
            line(&list(&[module("CLIPModel", "")]), ""),
            "FOLDER/modules.json: expected Transformer, Pooling, Normalize in this order, got \
             sentence_transformers.models.CLIPModel"
        );
        assert_eq!(
            line(&list(&plain), "{\"pooling_mode_lasttoken\": true}"),
            "FOLDER/1_Pooling/config.json: pooling_mode: expected one of mean, cls and max, got \
             pooling_mode_lasttoken"
        );
        assert_eq!(line("[]", ""), "FOLDER/modules.json: expected a module Pooling, got none");
        let out = line(&list(&[plain[0].clone(), module("Pooling", "../x")]), "");
        assert!(out.starts_with("FOLDER/modules.json: path: expected a path below"), "{out}");
        for (pool, got) in [
            ("{\"pooling_mode\": \"lasttoken\"}", "lasttoken"),
            ("{\"pooling_mode\": [\"mean\"]}", "a list"),
            ("{}", "none of them"),
        ] {
            let want = format!("pooling_mode: expected one of mean, cls and max, got {got}");
            assert!(line(&list(&plain), pool).ends_with(&want));
        }
        let prompts = |name: &str| {
            let text =
                format!(r#"{{"prompts": {{"q": "the "}}, "default_prompt_name": "{name}"}}"#);
            fs::write(own.path().join("config_sentence_transformers.json"), text).unwrap();
        };
        prompts("r");
        let unknown = line(&list(&plain), "{\"pooling_mode\": \"mean\"}");
        assert!(
            unknown.ends_with("default_prompt_name: expected a name of prompts, got \"r\""),
            "{unknown}"
        );
        prompts("q");
        assert_eq!(
            line(&list(&plain), "{\"pooling_mode\": \"mean\", \"include_prompt\": false}"),
            "FOLDER/1_Pooling/config.json: include_prompt: expected true, as there is a default \
             prompt, got false"
        );
    }

    /// By hand from the pieces and the rules of sentence-transformers 6: the sentence is cut where the tokenizer says if nothing else is
    /// said, a prompt stands before it, and lower case comes before a tokenizer with case.
    #[test]
    fn settings_of_sentences_are_read() {
        let own = TempDir::new().unwrap();
        let write = |name: &str, text: &str| fs::write(own.path().join(name), text).unwrap();
        for name in ["1_Pooling", "0_Transformer"] {
            fs::create_dir(own.path().join(name)).unwrap();
        }
        for name in ["config.json", "model.safetensors", "tokenizer.json"] {
            fs::copy(folder().join(name), own.path().join("0_Transformer").join(name)).unwrap();
        }
        let modules = fs::read_to_string(folder().join("modules.json")).unwrap();
        write(
            "modules.json",
            &modules.replacen("\"path\": \"\"", "\"path\": \"0_Transformer\"", 1),
        );
        let version_6 =
            r#"{"embedding_dimension": 16, "pooling_mode": "cls", "include_prompt": true}"#;
        write("1_Pooling/config.json", version_6);
        let open = || SentenceEncoder::open(own.path(), &Device::flex()).unwrap().0;
        assert_eq!((open().pool, open().most), (PiecePool::Class, 16));
        for (settings, tokenizer, most) in [
            ("{}", r#"{"model_max_length": 7}"#, 7),
            (r#"{"max_seq_length": null}"#, r#"{"model_max_length": 7}"#, 7),
            (r#"{"max_seq_length": 9}"#, r#"{"model_max_length": 7}"#, 9),
            ("{}", r#"{"model_max_length": 1000000000000000019884624838656}"#, 16),
        ] {
            write("0_Transformer/sentence_bert_config.json", settings);
            write("0_Transformer/tokenizer_config.json", tokenizer);
            assert_eq!(open().most, most, "{settings}, {tokenizer}");
        }
        let ids = |sentence: &str| open().encode(sentence).unwrap().0;
        assert_eq!(ids("A dog"), [2, 5, 6, 3]);
        write("0_Transformer/tokenizer_config.json", r#"{"do_lower_case": false}"#);
        assert_eq!(ids("A dog"), [2, 1, 6, 3]);
        write("0_Transformer/sentence_bert_config.json", r#"{"do_lower_case": true}"#);
        assert_eq!(ids("A dog"), [2, 5, 6, 3]);
        let prompts = r#"{"prompts": {"query": "The man "}, "default_prompt_name": "query"}"#;
        write("config_sentence_transformers.json", prompts);
        assert_eq!(ids("A dog"), [2, 8, 9, 5, 6, 3]);
    }
}
