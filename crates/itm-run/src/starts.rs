//! The closed form that a row's weights begin with: solved once for all rows and seeds, and kept in the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use itm_core::cca::StartInputs;
use itm_core::data::sha256_hex;
use itm_core::start::{Start, StartOptions};
use itm_core::{Error, Result};

use crate::disk::write_atomically;
use crate::progress;

/// Which closed form a row begins with.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StartAsked {
    /// Ridges, power, dimensions, fill.
    pub options: StartOptions,
    /// Width of the joint space.
    pub width: usize,
    /// What the text encoder makes of the stems of a caption.
    pub form: TextForm,
}

/// What the text encoder makes of the stems of a caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum TextForm {
    /// It weighs them by their inverse document frequency.
    TfIdf,
    /// It takes the mean of their vectors.
    Mean,
}

/// Seed of the columns that the closed form leaves: the same for every seed of a row.
const FILL_SEED: u64 = 0;

/// The closed forms of a process, by the hash of data and options.
#[derive(Debug, Default)]
pub(crate) struct Starts(Mutex<BTreeMap<String, Arc<Start>>>);

impl Starts {
    /// The closed form that was asked for: the one at hand, else the folder's, else a new one, which the folder then holds.
    ///
    /// # Errors
    /// If it cannot be solved, read or written, or the folder holds another one under its name.
    pub(crate) fn get(
        &self,
        asked: &StartAsked,
        inputs: &StartInputs<'_>,
        data_sha256: &str,
        folder: &Path,
    ) -> Result<Arc<Start>> {
        let text = serde_json::to_string(asked).expect("numbers and names");
        let hash = sha256_hex(format!("{data_sha256}\n{text}").as_bytes());
        let mut known = self.0.lock().expect("nobody panics with it");
        if let Some(start) = known.get(&hash) {
            return Ok(start.clone());
        }
        let path = folder.join(format!("start-{}.safetensors", &hash[..12]));
        let start = match path.is_file() {
            true => read(&path, &hash)?,
            false => {
                let start = solve(asked, inputs)?;
                write_atomically(&path, &start.to_bytes(&hash))?;
                start
            }
        };
        Ok(known.entry(hash).or_insert(Arc::new(start)).clone())
    }
}

fn read(path: &Path, hash: &str) -> Result<Start> {
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    Start::from_bytes(&path.display().to_string(), &bytes, hash)
}

fn solve(asked: &StartAsked, inputs: &StartInputs<'_>) -> Result<Start> {
    let spinner = progress::spinner("CCA as a start");
    let start = Start::solve(inputs, asked.width, FILL_SEED, &asked.options)?;
    spinner.finish_and_clear();
    Ok(match asked.form {
        TextForm::TfIdf => start,
        TextForm::Mean => start.mean_pooled(inputs.captions, inputs.terms),
    })
}
