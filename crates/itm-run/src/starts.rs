//! The closed form that a row's weights begin with: solved once for all rows and seeds, and kept in the run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use itm_core::cca::StartInputs;
use itm_core::data::sha256_hex;
use itm_core::output::write_bytes;
use itm_core::start::{BagPooling, Start, StartOptions, TextForm};
use itm_core::{Error, Result, files};
use serde_json::Value;

use crate::progress;

/// Which closed form a row begins with.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ClosedForm {
    /// Ridges, power, dimensions, fill.
    pub options: StartOptions,
    /// Width of the joint space.
    pub width: usize,
    /// What the text encoder reads.
    pub form: TextForm,
}

/// Seed of the columns that the closed form leaves free: the same for every seed of a row.
const FILL_SEED: u64 = 0;

impl ClosedForm {
    /// With these options; `None` without any.
    pub(crate) fn of(options: Option<&StartOptions>, width: usize, form: TextForm) -> Option<Self> {
        Some(Self { options: options?.clone(), width, form })
    }

    /// Solves the closed form; `words` has the word of each number, if captions are read as words.
    ///
    /// # Errors
    /// As [`Start::solve`].
    pub(crate) fn solve(&self, inputs: &StartInputs<'_>, words: &[&str]) -> Result<Start> {
        let StartInputs { captions, terms, .. } = *inputs;
        let start = Start::solve(inputs, self.width, FILL_SEED, &self.options)?;
        Ok(match self.form {
            TextForm::Stems(BagPooling::TfIdf | BagPooling::Off) => start,
            TextForm::Stems(BagPooling::Mean) => start.mean_pooled(captions, terms),
            TextForm::Words => start.of_words(captions, terms, words),
        })
    }
}

/// The closed forms of a process, by the hash of their inputs.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    known: Mutex<BTreeMap<String, Arc<Start>>>,
    /// What was cut, a line each.
    notes: Mutex<BTreeSet<String>>,
}

impl Starts {
    /// The closed form that a row needs: from the folder, or else from memory, or else a new one. The folder, if there is one, keeps it.
    ///
    /// `of` names all inputs of the closed form besides `asked`.
    ///
    /// # Errors
    /// If it cannot be solved, read or written, or if the folder has another closed form under its name.
    pub(crate) fn get(
        &self,
        asked: &ClosedForm,
        of: &str,
        folder: Option<&Path>,
        solve: impl FnOnce() -> Result<Start>,
    ) -> Result<Arc<Start>> {
        let text = serde_json::to_string(asked).expect("numbers and names");
        let hash = sha256_hex(format!("{of}\n{text}").as_bytes());
        let mut known = self.known.lock().expect("no panic under this lock");
        let path = folder.map(|folder| folder.join(format!("start-{}.safetensors", &hash[..12])));
        let saved = path.as_ref().filter(|path| path.is_file());
        let start = match (saved, known.get(&hash)) {
            (Some(path), _) => Arc::new(read(path, &hash)?),
            (None, Some(start)) => start.clone(),
            (None, None) => Arc::new(progress::during("CCA as a start", solve)?),
        };
        if let Some(path) = path.filter(|path| !path.is_file()) {
            write_bytes(&path, &start.to_bytes(&hash))?;
        }
        if start.dims() < asked.options.dims {
            let (dims, rank) = (asked.options.dims, start.dims());
            let note =
                format!("model.cca.dims = {dims} is cut to {rank}, the rank of the training pairs");
            self.notes.lock().expect("no panic under this lock").insert(note);
        }
        known.insert(hash, start.clone()); // the folder's counts: the plan may have solved another before the folder was there
        Ok(start)
    }

    /// What was cut so far, a line each.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().expect("no panic under this lock").iter().cloned().collect()
    }
}

/// Refuses rows that other weights than the folder's have made. `embed.json` says which weights have made rows; beside rows without that file
/// nothing is refused.
pub(crate) fn check_rows(own: &Path, rows: &[PathBuf]) -> Result<()> {
    let manifests = rows.iter().map(|folder| folder.join("embed.json"));
    if rows.is_empty() || !manifests.clone().all(|path| path.is_file()) {
        return Ok(());
    }
    let is_weights =
        |path: &&PathBuf| path.extension().is_some_and(|end| end == "safetensors" || end == "bin");
    let own_files = files::entries(own)?;
    let weights: Vec<_> = own_files.iter().filter(is_weights).collect();
    let hashes: Vec<_> = weights.iter().map(files::sha256_of).collect::<Result<_>>()?;
    for path in manifests {
        let of: Value = files::read_json(path, "a manifest of `itm embed`")?;
        let hash_of =
            |path: &PathBuf| of["model"]["sha256"][&*path.file_name()?.to_string_lossy()].as_str();
        let same = weights.iter().zip(&hashes).all(|(path, hash)| hash_of(path) == Some(hash));
        if same && !weights.is_empty() {
            return Ok(());
        }
    }
    let expected = format!("rows in target.embeddings by the weights of {}", own.display());
    Err(Error::invalid("model.start = \"cca\"", expected, "rows by other weights"))
}

fn read(path: &Path, hash: &str) -> Result<Start> {
    let bytes = files::read(path, u64::MAX)?;
    Start::from_bytes(&path.display().to_string(), &bytes, hash)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use itm_core::start::LinearMap;

    use super::*;

    /// Rows of other weights would begin below chance, without a word.
    #[test]
    fn rows_of_other_weights_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (own, rows) = (folder.path().join("own"), folder.path().join("rows"));
        for folder in [&own, &rows] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(own.join("model.safetensors"), "a").unwrap();
        let check = |rows: &[PathBuf]| check_rows(&own, rows).map_err(|error| error.to_string());
        let given = [rows.clone()];
        assert_eq!([check(&[]), check(&given)], [Ok(()), Ok(())]);
        let by = |weights: &str| {
            let hash = sha256_hex(weights.as_bytes());
            let manifest =
                format!(r#"{{"model": {{"sha256": {{"model.safetensors": "{hash}"}}}}}}"#);
            std::fs::write(rows.join("embed.json"), manifest).unwrap();
        };
        by("a");
        assert_eq!(check(&given), Ok(()));
        by("b");
        let line = check(&given).unwrap_err();
        assert!(line.starts_with(
            "model.start = \"cca\": expected rows in target.embeddings by the weights of"
        ));
        assert!(line.ends_with("got rows by other weights"), "{line}");
        assert_eq!(check(&[rows, own.clone()]), Ok(()), "nobody knows whose rows these are");
    }

    /// A process that resumes a run reads the closed form from the folder; other data need a new closed form.
    #[test]
    fn a_start_is_solved_once_for_all_rows_and_processes() {
        let folder = tempfile::tempdir().unwrap();
        let options =
            StartOptions { ridge_image: 1.0, ridge_text: 1.0, power: 1.0, dims: 1, fill: 0.0 };
        let asked = ClosedForm { options, width: 1, form: TextForm::Words };
        let map = LinearMap { weight: vec![1.0, 2.0], bias: vec![3.0] };
        let (start, solved) = (Start { image: map.clone(), text: map }, Cell::new(0));
        let get = |starts: &Starts, asked: &ClosedForm, of: &str| {
            let solve = || {
                solved.set(solved.get() + 1);
                Ok(start.clone())
            };
            assert_eq!(*starts.get(asked, of, Some(folder.path()), solve).unwrap(), start);
            solved.get()
        };
        let (first, second) = (Starts::default(), Starts::default());
        assert_eq!([get(&first, &asked, "a"), get(&first, &asked, "a")], [1, 1]);
        assert_eq!(get(&second, &asked, "a"), 1, "the folder has it");
        assert_eq!(get(&second, &asked, "b"), 2);
        let other = ClosedForm { form: TextForm::Stems(BagPooling::Mean), ..asked.clone() };
        assert_eq!(get(&second, &other, "b"), 3);
        let third = Starts::default();
        let map = LinearMap { weight: vec![2.0, 1.0], bias: vec![3.0] };
        let new = Start { image: map.clone(), text: map };
        assert_eq!(*third.get(&asked, "a", None, || Ok(new.clone())).unwrap(), new);
        assert_eq!(
            get(&third, &asked, "a"),
            3,
            "the folder's counts, also after a plan solved its own"
        );
        assert_eq!(*third.get(&asked, "a", None, || unreachable!()).unwrap(), start);
    }
}
