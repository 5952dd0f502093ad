//! The state of a run on disk.

use std::fs;
use std::path::Path;

use burn::tensor::{Tensor, TensorData};
use itm_core::checkpoint::{Reader, Writer};
use itm_core::{Error, Result};

use super::bank::MemoryBank;
use super::step::Hal;

const MODEL: &str = "model.safetensors";
const STATE: &str = "state.safetensors";
const MODEL_KIND: &str = "hal model 1";
const STATE_KIND: &str = "hal state 1";

impl Hal {
    /// Writes all that the next step depends on into an existing folder: `model.safetensors`,
    /// `state.safetensors`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        self.save_with(&mut |name, contents| {
            let path = folder.join(name);
            fs::write(&path, contents).map_err(Error::io(path))
        })
    }

    /// The same files, each by name and contents for the caller to write.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn save_with(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let progress = [self.epoch as i64, self.steps as i64];
        let mut model = Writer::default();
        model.module("encoders", &self.encoders);
        model.i64s("progress", &progress);
        write(MODEL, &model.contents(MODEL_KIND)?)?;
        drop(model); // as large as the file

        let mut state = Writer::default();
        let (n, d) = (self.bank.len(), self.width());
        let counters = [self.optimizer.steps() as i64, n as i64];
        state.i64s("progress", &[progress, counters].concat());
        let [images, texts] = self.bank.embeddings();
        state.f32s("bank.images", &[n, d], &images);
        state.f32s("bank.texts", &[n, d], &texts);
        state.i64s("bank.captions", self.bank.captions());
        state.optimizer(&self.optimizer, &self.encoders);
        write(STATE, &state.contents(STATE_KIND)?)
    }

    /// Takes up what [`save`](Self::save) wrote. The next step is then, bit for bit, the one an
    /// uninterrupted run would make on the same backend.
    ///
    /// # Errors
    /// If a file is missing, cut off, or of another model; `self` stays as it was then.
    pub fn load(&mut self, folder: &Path) -> Result<()> {
        let model = Reader::open(&folder.join(MODEL), MODEL_KIND)?;
        let state = Reader::open(&folder.join(STATE), STATE_KIND)?;
        let mut next = self.clone();
        next.encoders = model.module("encoders", self.encoders.clone())?;

        let (counters, both) = (state.i64s("progress", 4)?, model.i64s("progress", 2)?);
        if counters[..2] != both[..] {
            let of = |c: &[i64]| format!("epoch {}, step {}", c[0], c[1]);
            return Err(state.refuse("progress", of(&both), of(&counters)));
        }
        let natural = |at: usize| {
            let refused = || state.refuse("progress", "counts of at least 0", counters[at]);
            u64::try_from(counters[at]).map_err(|_| refused())
        };
        (next.epoch, next.steps) = (natural(0)? as usize, natural(1)?);
        let (n, d) = (natural(3)? as usize, self.width());
        let device = self.encoders.text.words.val().device().inner();
        let rows = |name: &str| -> Result<Tensor<2>> {
            let values = state.f32s(name, &[n, d])?;
            Ok(Tensor::from_data(TensorData::new(values, [n, d]), &device))
        };
        next.bank = MemoryBank::default();
        if n > 0 {
            let captions = state.i64s("bank.captions", n)?;
            next.bank.push(rows("bank.images")?, rows("bank.texts")?, &captions);
        }
        let options = *self.optimizer.options();
        next.optimizer = state.optimizer(options, &next.encoders, natural(2)?)?;
        *self = next;
        Ok(())
    }
}
