//! Eight pairs that a test trains on: image `i` and its caption share a pattern.

use std::path::{Path, PathBuf};

use fne::{Batch, Device, Fne, FneConfig, ImageConfig, Images, ModelConfig, Observe, StepReport};
use hubness::training::HalConfig;
use itm_core::data::Features;
use itm_run::config::{AnyConfig, Config, Method};
use serde::de::DeserializeOwned;

pub(crate) const PAIRS: usize = 8;
pub(crate) const DIM: usize = 12;
pub(crate) const VOCABULARY: usize = 20;

pub(crate) fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

/// Every row of every target of FNE, by name; with small encoders where they are those of pictures.
pub(crate) fn rows() -> Vec<(String, FneConfig)> {
    let small = |(name, mut row): (String, FneConfig)| {
        if !matches!(row.model.image, ImageConfig::Features(_)) {
            row.model = ModelConfig::new(16, 8);
        }
        (name, row)
    };
    rows_of(Method::Fne).into_iter().map(small).collect()
}

/// Every row of every target of HAL, by name.
#[allow(dead_code)] // not every test crate has a use for it
pub(crate) fn hal_rows() -> Vec<(String, HalConfig)> {
    rows_of(Method::Hal)
}

fn rows_of<C: DeserializeOwned>(method: Method) -> Vec<(String, C)> {
    let mut rows = vec![];
    for name in Config::names(&configs()).unwrap() {
        let AnyConfig::Trained(config) = AnyConfig::load(&configs(), &name).unwrap() else {
            continue;
        };
        if config.target.method != method {
            continue;
        }
        rows.extend(config.rows().map(|row| (format!("{name}, {row}"), config.row(row).unwrap())));
    }
    rows
}

/// A model of a row. It is told that captions match their own image and no other, for rows that leave true pairs out.
pub(crate) fn fne(config: &FneConfig, device: &Device, seed: u64) -> Fne {
    let model = Fne::new(config, DIM, VOCABULARY, device, seed).unwrap();
    model.with_truth(|image, caption| image == caption)
}

/// One non-negative row an image, each with its own large value.
pub(crate) fn features() -> Features {
    let value = |k: usize| if k % DIM == k / DIM { 4.0 } else { ((k * 7) % 5) as f32 / 5.0 };
    Features { dim: DIM, values: (0..PAIRS * DIM).map(value).collect() }
}

/// Captions of one to four words; the first names the image.
pub(crate) fn texts() -> Vec<Vec<u32>> {
    let words = |i: u32| (0..=i % 4).map(|j| if j == 0 { 2 + i } else { 11 + j }).collect();
    (0..PAIRS as u32).map(words).collect()
}

/// One step on all eight pairs.
pub(crate) fn step(model: &mut Fne, seed: u64) -> StepReport {
    let (features, texts) = (features(), texts());
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let ids: Vec<i64> = (0..PAIRS as i64).collect();
    let batch = Batch {
        images: Images::Features(&features.values),
        texts: &texts,
        image_ids: &ids,
        caption_ids: &ids,
    };
    model.step(&batch, seed, Observe::Off).unwrap()
}
