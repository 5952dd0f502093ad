//! Published files and our own files, both with the tensor names of UNITER's files.

use std::path::Path;

use burn::tensor::Device;
use itm_core::weights::{LoadReport, TensorNames, Unknown, WeightFiles, load, save_file};
use itm_core::{Error, Result, host};
use itm_kernels::Linear;

use super::{Uniter, UniterShape, WordHead, heads};

const NAMES: TensorNames = TensorNames {
    prefixes: &["uniter.", "bert.", ""],
    parameters: &[
        ("bert.words", "embeddings.word_embeddings.weight"),
        ("bert.positions", "embeddings.position_embeddings.weight"),
        ("bert.kinds", "embeddings.token_type_embeddings.weight"),
    ],
    more: &[],
    layers: &[
        ("bert.norm", &["embeddings.LayerNorm"]),
        ("attention.qkv", &["attention.self.query", "attention.self.key", "attention.self.value"]),
        ("attention.out", &["attention.output.dense"]),
        ("norm_1", &["attention.output.LayerNorm"]),
        ("up", &["intermediate.dense"]),
        ("down", &["output.dense"]),
        ("norm_2", &["output.LayerNorm"]),
        ("regions.features", &["img_embeddings.img_linear"]),
        ("regions.feature_norm", &["img_embeddings.img_layer_norm"]),
        ("regions.boxes", &["img_embeddings.pos_linear"]),
        ("regions.box_norm", &["img_embeddings.pos_layer_norm"]),
        ("regions.norm", &["img_embeddings.LayerNorm"]),
        ("pooler", &["pooler.dense"]),
    ],
    heads: &[
        ("pair", "itm_output"),
        ("rank", "rank_output"),
        ("discrimination", "disc_output"),
        ("cls", "cls.predictions"),
        ("cls.dense", "cls.predictions.transform.dense"),
        ("cls.norm", "cls.predictions.transform.LayerNorm"),
        ("correction", "correction_output.predictions"),
        ("correction.dense", "correction_output.predictions.transform.dense"),
        ("correction.norm", "correction_output.predictions.transform.LayerNorm"),
    ],
    blocks: &[("bert.blocks.", "encoder.layer.")],
    transposed: &[],
    unused: &[
        "img_embeddings.mask_embedding.weight",
        "embeddings.position_ids",
        CLS_DECODER,
        CORRECTION_DECODER,
        "feat_regress.",
        "region_classifier.",
    ],
    optional: &[],
    unknown: Unknown::Refused,
    asked_by: "a UNITER of this shape",
};

const RANK: &str = "rank_output.";
const DISCRIMINATION: &str = "disc_output.";
const CORRECTION: &str = "correction_output.";
/// Second copies of the word table.
const CLS_DECODER: &str = "cls.predictions.decoder.weight";
const CORRECTION_DECODER: &str = "correction_output.predictions.decoder.weight";

impl Uniter {
    /// Loads one `.safetensors` or PyTorch file, or a folder with one, and reports what became of its tensors.
    ///
    /// A head that the file has is read and stays as it is. If the file lacks `rank_output`, the head begins as row 1 of
    /// `itm_output`, the class of a match. If the file lacks the heads of phase 2, the model has none until
    /// [`with_word_heads`](Self::with_word_heads) makes them.
    ///
    /// # Errors
    /// If the file cannot be read; if tensors are missing, misshaped or unknown (the error names all of them); or if a decoder
    /// is not the word embedding table.
    pub fn open(
        path: impl AsRef<Path>,
        shape: &UniterShape,
        device: &Device,
    ) -> Result<(Self, LoadReport)> {
        shape.check()?;
        let files = WeightFiles::open(path)?;
        let has = |head: &str| files.names().any(|name| name.starts_with(head));
        let names = TensorNames { optional: if has(RANK) { &[] } else { &[RANK] }, ..NAMES };
        let mut model = Self::unset(shape, device);
        model.discrimination =
            has(DISCRIMINATION).then(|| Linear::seeded(shape.text.width, 2, 0, device));
        model.correction = has(CORRECTION).then(|| WordHead::new(&shape.text, device));
        let (model, mut report) = load(model, &files, &names, &|_| None)?;
        model.check_decoders(&files)?;
        let lacked = [DISCRIMINATION, CORRECTION].into_iter().filter(|&head| !has(head));
        report.absent.extend(lacked.map(|head| format!("{head}*")));
        if has(RANK) {
            return Ok((model, report));
        }
        Ok((Self { rank: heads::output(&model.pair, 1), ..model }, report))
    }

    /// Writes one `.safetensors` file that [`open`](Self::open) reads, with all heads that the model has, also `itm_output`.
    ///
    /// # Errors
    /// If the model has a prior, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let expected = "a UNITER without a prior, which these files cannot hold";
        Error::unless(self.prior.is_none(), path.as_ref().display(), expected, "a prior")?;
        save_file(self, path.as_ref(), &NAMES, &|_| None)
    }

    /// Refuses a file whose decoder differs from the word table, because it would be read as another model.
    fn check_decoders(&self, files: &WeightFiles) -> Result<()> {
        let decoders = [CLS_DECODER, CORRECTION_DECODER].into_iter();
        let found: Vec<_> = decoders.filter(|name| files.shape(name).is_some()).collect();
        if found.is_empty() {
            return Ok(());
        }
        let words = host(self.bert.words.val().inner());
        for name in found {
            let place = format_args!("{}: {name}", files.place());
            let expected = "a copy of the word embedding";
            Error::unless(files.f32s(name)? == words, place, expected, "another table")?;
        }
        Ok(())
    }
}
