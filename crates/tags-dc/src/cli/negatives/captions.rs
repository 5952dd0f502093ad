//! The captions that negatives are made of.

use std::collections::HashMap;
use std::path::Path;

use itm_core::data::sha256_hex;
use itm_core::files::sha256_of;
use itm_core::{Error, Result};
use scenes::{Scenes, ScenesSplit, Sizes};

use crate::edits::{Captions, read_captions};

/// The name of the built-in world in `--captions`.
pub(super) const SCENES: &str = "scenes";
/// The world of the targets on Scenes; a run has a world of its own.
pub(super) const WORLD: (u64, Sizes) = (0, Sizes { train: 3000, val: 500, test: 1000, pixels: 96 });

/// Captions, and what else is known about them.
pub(super) struct CaptionSet {
    /// The captions to write negatives for.
    pub(super) captions: Vec<Captions>,
    /// The name of each image in a data set.
    pub(super) names: Vec<String>,
    /// Captions that teach which noun may replace which.
    pub(super) training: Vec<Captions>,
    /// The name of the captions, for a reader.
    pub(super) name: String,
    pub(super) sha256: String,
    /// The built-in world, which knows what is true.
    pub(super) world: Option<Scenes>,
}

impl CaptionSet {
    /// The captions of a file; without training captions they teach themselves.
    ///
    /// # Errors
    /// If a file cannot be read, or has no captions.
    pub(super) fn read(path: &Path, train: Option<&Path>) -> Result<Self> {
        let captions = read_file(path)?;
        let training = train.map_or_else(|| Ok(captions.clone()), read_file)?;
        Ok(Self {
            names: captions.iter().map(|image| image.id.clone()).collect(),
            captions,
            training,
            name: path.display().to_string(),
            sha256: sha256_of(path)?,
            world: None,
        })
    }

    /// The test captions of a world.
    pub(super) fn scenes((seed, sizes): (u64, Sizes)) -> Self {
        let world = Scenes::generate(seed, sizes);
        let of = |split: &ScenesSplit| -> Vec<Captions> {
            let text = |&t: &usize| split.captions[t].text.clone();
            let image = |i: usize| Captions {
                id: i.to_string(),
                texts: split.pairs.texts_of(i).iter().map(text).collect(),
            };
            (0..split.len()).map(image).collect()
        };
        let (captions, training) = (of(&world.test), of(&world.train));
        let texts: Vec<&str> =
            captions.iter().flat_map(|image| &image.texts).map(String::as_str).collect();
        Self {
            names: (0..world.test.len()).map(|i| world.test.file_name(i)).collect(),
            sha256: sha256_hex(texts.join("\n").as_bytes()),
            captions,
            training,
            name: "Scenes, test split".to_owned(),
            world: Some(world),
        }
    }

    /// The name of the image, and the text, of each caption's id.
    pub(super) fn by_id(&self) -> HashMap<String, (&str, &str)> {
        let mut all = HashMap::new();
        for (image, name) in self.captions.iter().zip(&self.names) {
            for (k, text) in image.texts.iter().enumerate() {
                all.insert(format!("{}#{k}", image.id), (&name[..], &text[..]));
            }
        }
        all
    }
}

/// The captions of a file, at least one.
fn read_file(path: &Path) -> Result<Vec<Captions>> {
    let captions = read_captions(path)?;
    let expected = "lines of an image's id, a tab and a caption";
    Error::unless(!captions.is_empty(), path.display(), expected, "none")?;
    Ok(captions)
}
