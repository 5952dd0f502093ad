//! The state of a run on disk.

use std::path::Path;

use itm_core::Result;
use itm_core::checkpoint::{Reader, Writer};
use itm_core::learn::SavedState;

use crate::bank::{Bank, BankState};
use crate::statistics::{Moments, Snapshot};
use crate::step::Fne;

/// The method's name in the kind of each file.
const METHOD: &str = "fne";

impl Fne {
    /// Passes everything that the next step depends on to `write`, file by file: the name, then the contents.
    pub(crate) fn write(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let modules = |model: &mut Writer| {
            model.module("online", self.online());
            model.module("momentum", &self.momentum);
        };
        self.learner.save(METHOD, write, modules, |state, updates| {
            let (k, d) = (self.bank.capacity(), self.bank.width());
            let bank = self.bank.state();
            state.f32s("bank.images", &[k, d], &bank.images);
            state.f32s("bank.texts", &[k, d], &bank.texts);
            state.i64s("bank.ids", &bank.ids);
            state.i64s("bank.captions", &bank.captions);
            let seen = self.statistics.snapshot();
            for (name, m) in [("positive", seen.positive), ("negative", seen.negative)] {
                state.i64s(&format!("statistics.{name}.count"), &[m.count as i64]);
                state.f64s(&format!("statistics.{name}"), &[m.sum, m.mean, m.squares]);
            }
            [bank.cursor as i64, updates]
        })
    }

    /// The model that [`write`](Self::write) wrote. On the same backend, its next step equals, bit for bit, the next step of an
    /// uninterrupted run.
    pub(crate) fn read(&self, folder: &Path) -> Result<Self> {
        let saved = SavedState::open(METHOD, folder)?;
        let (model, state) = (&saved.model, &saved.state);
        let [.., cursor, updates] = saved.counts;
        let mut next = self.clone();
        let online = model.module("online", self.online().clone())?;
        next.learner = self.learner.restored(online, &saved, updates)?;
        next.momentum = model.module("momentum", self.momentum.clone())?;

        let (k, d) = (self.bank.capacity(), self.bank.width());
        let cursor = cursor as usize;
        if cursor >= k.max(1) {
            let below = format!("a bank position below {k}");
            return Err(state.refuse("progress", below, cursor));
        }
        let bank = BankState {
            images: state.f32s("bank.images", &[k, d])?,
            texts: state.f32s("bank.texts", &[k, d])?,
            ids: state.i64s("bank.ids", k)?,
            captions: state.i64s("bank.captions", k)?,
            cursor,
        };
        next.bank = Bank::of_state(bank, d, &next.bank.images().device())?;
        next.statistics.restore(statistics(state)?);
        saved.nothing_else()?;
        Ok(next)
    }

    /// A model before its first step with the encoders and the statistics that [`write`](Self::write) wrote.
    pub(crate) fn begun_from(&self, folder: &Path) -> Result<Self> {
        let SavedState { model, state, .. } = SavedState::open(METHOD, folder)?;
        let mut next = self.clone();
        next.learner = self.learner.begun(model.module("online", self.online().clone())?);
        next.momentum = model.module("momentum", self.momentum.clone())?;
        model.nothing_else()?;
        next.statistics.restore(statistics(&state)?);
        Ok(next)
    }
}

fn statistics(state: &Reader) -> Result<Snapshot> {
    let moments = |name: &str| -> Result<Moments> {
        let count = state.i64s(&format!("statistics.{name}.count"), 1)?[0] as u64;
        let f = state.f64s(&format!("statistics.{name}"), 3)?;
        Ok(Moments { count, sum: f[0], mean: f[1], squares: f[2] })
    };
    let seen = Snapshot { positive: moments("positive")?, negative: moments("negative")? };
    seen.check("statistics")?;
    Ok(seen)
}
