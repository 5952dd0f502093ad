//! A finished run on Scenes as the encoder of a search.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use image::DynamicImage;
use itm_core::data::{Features, Split, decode_image, is_picture, sha256_hex};
use itm_core::files::entries;
use itm_core::learn::{ImageItems, Items, Method};
use itm_core::output::write_bytes;
use itm_core::scored::{EmbeddingRows, Scored, Similarity};
use itm_core::{Error, Pairs, Result};
use itm_search::{self as search, Encoder};

use crate::config::Config;
use crate::model::Model;
use crate::run::Run;

/// Sentences of the bank.
const BANK: usize = 5000;

/// The first row of a run's configuration, unless it has a row `Full`.
pub(super) fn row(folder: &Path, configs: &Path) -> Result<String> {
    let named = |config: &Config| config.named_row(config.rows().find(|row| *row == "Full"));
    Ok(Run::open(folder, (None, "cpu"), configs, named)?.1)
}

/// The towers of a run.
pub(super) struct RunEncoder {
    run: Run,
    row: String,
    method: Mutex<Box<dyn Method + Send>>,
    about: search::Model,
    /// Row and name of each picture of the test split, by the SHA-256 of its pixels.
    rows: HashMap<String, Vec<f32>>,
    pictures: Vec<(String, Vec<u8>)>,
    /// Features of the picture beside which new sentences are embedded.
    beside: Features,
    /// Captions of the training split: what is ordinary in this world.
    pub(super) bank: Vec<String>,
}

impl RunEncoder {
    pub(super) fn open(folder: &Path, row: &str, backend: &str, configs: &Path) -> Result<Self> {
        let (run, ()) = Run::open(folder, (None, backend), configs, |_| Ok(()))?;
        let Model { method, inputs, .. } = run.trained(row, 0)?;
        let items = inputs.items(Split::Test);
        let embedded = embedded(&*method.scored(items)?, row)?;
        let names = &run.source.part(Split::Test).0.images;
        let picture = |i: usize| (names[i].clone(), run.source.picture(Split::Test, i).bytes);
        let pictures: Vec<_> = (0..names.len()).map(picture).collect();
        let drawn =
            run.source.truth.is_some() && pictures.iter().all(|(_, bytes)| !bytes.is_empty());
        Error::unless(drawn, "--run", "a run on Scenes", &run.source.title)?;
        let ImageItems::Features(all) = items.images else {
            return Err(Error::invalid("--run", "a row that sees features", row));
        };
        let beside = Features { dim: all.dim, values: all.row(0).to_vec() };
        let mut bank: Vec<String> = run.source.part(Split::Train).0.captions.clone();
        bank.sort();
        bank.dedup();
        let step = bank.len().div_ceil(BANK).max(1);
        let bank = bank.into_iter().step_by(step).collect();
        let mut rows = HashMap::new();
        for ((name, bytes), row) in pictures.iter().zip(embedded.images.chunks_exact(embedded.dim))
        {
            let image = itm_core::data::upright_bytes(name, bytes)?;
            rows.insert(sha256_hex(image.as_raw()), row.to_vec());
        }
        let (name, identity) =
            (format!("{row} of {}", folder.display()), run.hash_of_chosen(row, 0)?);
        let about = search::Model { name, identity, width: embedded.dim };
        let (row, method) = (row.to_owned(), Mutex::new(method));
        Ok(Self { run, row, method, about, rows, pictures, beside, bank })
    }

    /// Writes the pictures, except those that are there. Another run may have more pictures, of which this run has no rows.
    pub(super) fn draw(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let own: HashSet<&str> = self.pictures.iter().map(|(name, _)| &**name).collect();
        for path in entries(folder)?.iter().filter(|path| is_picture(path)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let fits = name.starts_with('.') || own.contains(&*name);
            let expected = "pictures of this run alone, or another --out";
            Error::unless(fits, path.display(), expected, "a picture that it has not")?;
        }
        for (name, bytes) in &self.pictures {
            let path = folder.join(name);
            let is_there =
                decode_image(&path).is_ok_and(|i| self.rows.contains_key(&sha256_hex(i.as_raw())));
            if !is_there {
                write_bytes(&path, bytes)?;
            }
        }
        Ok(())
    }
}

impl Encoder for RunEncoder {
    fn model(&self) -> search::Model {
        self.about.clone()
    }

    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        let reading = self.run.reading(&self.row);
        let numbers = texts.iter().map(|text| reading.read(text)).collect::<Result<Vec<_>>>()?;
        if let Some((text, _)) = texts.iter().zip(&numbers).find(|(_, numbers)| numbers.is_empty())
        {
            let expected = "a word that a caption of the training has";
            return Err(Error::invalid(format!("\"{text}\""), expected, "none"));
        }
        let pairs = Pairs::new(1, vec![0; texts.len()])?;
        let images = ImageItems::Features(&self.beside);
        let items = Items { images, texts: &numbers, pairs: &pairs };
        let method = self.method.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(embedded(&*method.scored(items)?, &self.row)?.texts)
    }

    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
        let row = |picture: &DynamicImage| {
            self.rows.get(&sha256_hex(picture.to_rgb8().as_raw())).ok_or_else(|| {
                let expected = "a picture of the run's test split: the run sees features, and has none of new pictures";
                Error::invalid("picture", expected, "another")
            })
        };
        let rows = pictures.iter().map(row).collect::<Result<Vec<_>>>()?;
        Ok(rows.into_iter().flatten().copied().collect())
    }
}

/// The rows behind scores that are cosines.
fn embedded(scored: &dyn Scored, row: &str) -> Result<EmbeddingRows> {
    match scored.rows() {
        Some(rows) if rows.similarity == Similarity::Cosine => Ok(rows.clone()),
        _ => Err(Error::invalid("--run", "a row whose scores are cosines of embeddings", row)),
    }
}
