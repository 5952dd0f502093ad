//! The state of a run on disk.

use std::fs;
use std::path::Path;

use itm_core::checkpoint::{Reader, Writer};
use itm_core::{Error, Result};

use crate::statistics::Snapshot;
use crate::step::Fne;

const MODEL: &str = "model.safetensors";
const STATE: &str = "state.safetensors";
const MODEL_KIND: &str = "fne model 1";
const STATE_KIND: &str = "fne state 1";

impl Fne {
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
        let mut model = Writer::default();
        model.module("online", &self.online);
        model.module("momentum", &self.momentum);
        model.i64s("progress", &[self.epoch as i64, self.steps as i64]);
        write(MODEL, &model.contents(MODEL_KIND)?)?;
        drop(model); // as large as the file

        let mut state = Writer::default();
        let (k, d) = (self.bank.capacity(), self.bank.width());
        state.f32s("bank.images", &[k, d], &self.bank.images);
        state.f32s("bank.texts", &[k, d], &self.bank.texts);
        state.i64s("bank.ids", &self.bank.ids);
        state.i64s("bank.captions", &self.bank.captions);
        let optimizer = self.optimizer.steps() as i64;
        let counters = [self.epoch as i64, self.steps as i64, self.bank.cursor as i64, optimizer];
        state.i64s("progress", &counters);
        let seen = self.statistics.snapshot();
        for (name, m) in [("positive", seen.positive), ("negative", seen.negative)] {
            state.i64s(&format!("statistics.{name}.count"), &[m.count as i64]);
            state.f64s(&format!("statistics.{name}"), &[m.sum, m.mean, m.squares]);
        }
        state.optimizer(&self.optimizer, &self.online);
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
        next.online = model.module("online", self.online.clone())?;
        next.momentum = model.module("momentum", self.momentum.clone())?;

        let counters = state.i64s("progress", 4)?;
        let both = model.i64s("progress", 2)?;
        if counters[..2] != both[..] {
            let of = |c: &[i64]| format!("epoch {}, step {}", c[0], c[1]);
            return Err(state.refuse("progress", of(&both), of(&counters)));
        }
        let (k, d) = (self.bank.capacity(), self.bank.width());
        let natural = |at: usize| {
            let refused = || state.refuse("progress", "counts of at least 0", counters[at]);
            u64::try_from(counters[at]).map_err(|_| refused())
        };
        (next.epoch, next.steps) = (natural(0)? as usize, natural(1)?);
        next.bank.cursor = natural(2)? as usize;
        if next.bank.cursor >= k.max(1) {
            let below = format!("a bank position below {k}");
            return Err(state.refuse("progress", below, next.bank.cursor));
        }
        next.bank.images = state.f32s("bank.images", &[k, d])?;
        next.bank.texts = state.f32s("bank.texts", &[k, d])?;
        next.bank.ids = state.i64s("bank.ids", k)?;
        next.bank.captions = state.i64s("bank.captions", k)?;
        let moments = |name: &str| -> Result<crate::Moments> {
            let count = state.i64s(&format!("statistics.{name}.count"), 1)?[0] as u64;
            let f = state.f64s(&format!("statistics.{name}"), 3)?;
            Ok(crate::Moments { count, sum: f[0], mean: f[1], squares: f[2] })
        };
        let seen = Snapshot { positive: moments("positive")?, negative: moments("negative")? };
        next.statistics.restore(seen);
        let options = *self.optimizer.options();
        next.optimizer = state.optimizer(options, &next.online, natural(3)?)?;
        *self = next;
        Ok(())
    }
}
