//! Sentence encoders: BERT, a pool and unit rows.

use std::path::Path;

use burn::tensor::{Device, Tensor};
use itm_kernels::{Noise, Precision, normalize_rows};
use serde_json::Value;

use super::{Bert, PiecePool, TokenBatch};
use crate::fields::Fields;
use crate::files::read_json;
use crate::text::WordPieces;
use crate::weights::LoadReport;
use crate::{Error, Result};

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
    /// Word pieces of a sentence at most; the last piece is always `[SEP]`.
    pub most: usize,
}

impl SentenceEncoder {
    /// Reads `modules.json`, the configuration of the pool, BERT and its word pieces. A folder of BERT alone has the mean as
    /// pool, and unit rows.
    ///
    /// # Errors
    /// As [`Bert::open`] and [`WordPieces::open`], and if a module or a pool is another; the error names it.
    pub fn open(folder: impl AsRef<Path>, device: &Device) -> Result<(Self, LoadReport)> {
        let folder = folder.as_ref();
        let (pool, unit) = sentence_pool(folder)?.unwrap_or((PiecePool::Masked, true));
        let (bert, report) = Bert::open(folder, device)?;
        let pieces = WordPieces::open(folder)?;
        let (numbers, rows) = (pieces.vocabulary(), bert.shape.vocabulary);
        let expected = format!("at most {rows} word pieces, as in the model");
        Error::unless(numbers <= rows, folder.display(), expected, numbers)?;
        let settings = folder.join("sentence_bert_config.json");
        let most = match settings.exists() {
            true => Fields::read(&settings)?.count("max_seq_length", bert.shape.positions)?,
            false => bert.shape.positions,
        };
        let most = most.min(bert.shape.positions);
        Ok((Self { bert, pieces, pool, unit, most }, report))
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
        let mut ids = self.pieces.encode(sentence)?;
        let Some(&last) = ids.last() else {
            let expected = "[CLS] and [SEP] around a sentence";
            return Err(Error::invalid("the tokenizer", expected, "no piece"));
        };
        let cut = ids.len() > self.most;
        if cut {
            ids.truncate(self.most);
            ids[self.most - 1] = last;
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

/// The pool of a folder of sentence-transformers, and whether its rows become unit rows, from `modules.json`; `None` for another folder.
///
/// # Errors
/// If the folder has other modules, or pools in another way than by mean, CLS or max.
pub(crate) fn sentence_pool(folder: &Path) -> Result<Option<(PiecePool, bool)>> {
    let modules = folder.join("modules.json");
    if !modules.exists() {
        return Ok(None);
    }
    let list: Vec<Value> = read_json(&modules, "a list of modules in JSON")?;
    let (mut pool, mut unit) = (None, false);
    for (place, module) in list.iter().enumerate() {
        let kind = module["type"].as_str().unwrap_or("none");
        let path = module["path"].as_str().unwrap_or_default();
        match (place, kind.rsplit('.').next().unwrap_or(kind)) {
            (0, "Transformer") if path.is_empty() => {}
            (_, "Pooling") if pool.is_none() && !path.contains(['/', '\\']) && path != ".." => {
                pool = Some(pool_of(&folder.join(path).join("config.json"))?);
            }
            (_, "Normalize") if pool.is_some() => unit = true,
            _ => {
                let expected = "Transformer, Pooling, Normalize in this order";
                return Err(Error::invalid(modules.display(), expected, kind));
            }
        }
    }
    let missing = || Error::invalid(modules.display(), "a module Pooling", "none");
    Ok(Some((pool.ok_or_else(missing)?, unit)))
}

fn pool_of(path: &Path) -> Result<PiecePool> {
    let fields = Fields::read(path)?;
    let (mut chosen, mut found) = (None, vec![]);
    for (name, pool) in [
        ("pooling_mode_mean_tokens", Some(PiecePool::Masked)),
        ("pooling_mode_cls_token", Some(PiecePool::Class)),
        ("pooling_mode_max_tokens", Some(PiecePool::Max)),
        ("pooling_mode_mean_sqrt_len_tokens", None),
        ("pooling_mode_weightedmean_tokens", None),
        ("pooling_mode_lasttoken", None),
    ] {
        if fields.flag(name) {
            found.push(name);
            chosen = pool;
        }
    }
    match chosen.filter(|_| found.len() == 1) {
        Some(pool) => Ok(pool),
        None => fields.refused("pooling_mode", "one of mean, cls and max", found.join(", ")),
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
        let batch = TokenBatch::new(&ids);
        for (pool, want) in [
            (PiecePool::Masked, &golden.rows),
            (PiecePool::Class, &golden.cls),
            (PiecePool::Max, &golden.max),
        ] {
            model.pool = pool;
            let got = host(model.rows(&batch));
            let error =
                got.iter().zip(want.concat()).map(|(g, w)| (g - w).abs()).fold(0.0, f32::max);
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
        assert!(out.ends_with("in this order, got sentence_transformers.models.Pooling"), "{out}");
    }
}
