//! The state of a run on disk.

use std::path::Path;

use itm_core::Result;
use itm_core::checkpoint::{Reader, Writer};
use itm_core::learn::SavedState;

use crate::boundary::{Boundary, ScoreDistribution};
use crate::step::Naaf;

/// The method's name in the kind of each file.
const METHOD: &str = "naaf";
/// Stored with the weights, because scores depend on both.
const BOUNDARY: &str = "boundary";

impl Naaf {
    /// Passes everything that the next step depends on to `write`, file by file: the name, then the contents.
    pub(crate) fn write(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let model = |model: &mut Writer| {
            model.module("encoders", self.encoders());
            model.f64s(BOUNDARY, &numbers(&self.boundary));
        };
        self.learner.save(METHOD, write, model, |_, updates| [updates, 0])
    }

    /// The model that [`write`](Self::write) wrote. On the same backend, its next step equals, bit for bit, the next step of an
    /// uninterrupted run.
    pub(crate) fn read(&self, folder: &Path) -> Result<Self> {
        let saved = SavedState::open(METHOD, folder)?;
        let [.., updates, _] = saved.counts;
        let encoders = saved.model.module("encoders", self.encoders().clone())?;
        let boundary = boundary(&saved.model)?;
        let learner = self.learner.restored(encoders, &saved, updates)?;
        saved.nothing_else()?;
        let (config, steps_per_epoch) = (self.config.clone(), self.steps_per_epoch);
        Ok(Self { config, learner, boundary, steps_per_epoch })
    }
}

impl Naaf {
    /// A model before its first step with the encoders and the boundary that [`write`](Self::write) wrote.
    pub(crate) fn begun_from(&self, folder: &Path) -> Result<Self> {
        let SavedState { model, .. } = SavedState::open(METHOD, folder)?;
        let encoders = model.module("encoders", self.encoders().clone())?;
        let boundary = boundary(&model)?;
        model.nothing_else()?;
        let (config, steps_per_epoch) = (self.config.clone(), self.steps_per_epoch);
        Ok(Self { config, learner: self.learner.begun(encoders), boundary, steps_per_epoch })
    }
}

/// t, t_s, the moments of matched and mismatched scores, and ln α*, which is NaN if it does not exist.
fn numbers(boundary: &Boundary) -> [f64; 9] {
    let Boundary { t, t_s, matched, mismatched, ln_alpha_star } = boundary;
    let [of_matched, of_mismatched] =
        [matched, mismatched].map(|m| (m.mean, m.deviation, m.count as f64));
    let (a, b, n) = of_matched;
    let (c, d, m) = of_mismatched;
    [*t, *t_s, a, b, n, c, d, m, ln_alpha_star.unwrap_or(f64::NAN)]
}

fn boundary(model: &Reader) -> Result<Boundary> {
    let [t, t_s, a, b, n, c, d, m, ln_alpha_star] =
        <[f64; 9]>::try_from(model.f64s(BOUNDARY, 9)?).expect("the reader checked the number");
    if let Some(bad) = [t, t_s, a, b, n, c, d, m].into_iter().find(|x| !x.is_finite()) {
        return Err(model.refuse(BOUNDARY, "finite numbers", bad));
    }
    let moments =
        |mean, deviation, count| ScoreDistribution { mean, deviation, count: count as usize };
    let (matched, mismatched) = (moments(a, b, n), moments(c, d, m));
    let ln_alpha_star = (!ln_alpha_star.is_nan()).then_some(ln_alpha_star);
    Ok(Boundary { t, t_s, matched, mismatched, ln_alpha_star })
}
