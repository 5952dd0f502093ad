//! What a training loop calls: [`Method`] for [`Naaf`].

use std::path::Path;

use burn::module::Module;
use itm_core::checkpoint::{CheckpointReader, CheckpointWriter};
use itm_core::learn::{
    Batch, Items, Method, Observe, SavedState, Step, WordMaps, WordPairs, first_non_finite,
};
use itm_core::scored::{EmbeddingRows, Scored, Similarity};
use itm_core::{Error, Result};

use crate::all_pairs::CrossScores;
use crate::boundary::{Boundary, ScoreDistribution};
use crate::config::Score;
use crate::rows;
use crate::step::Naaf;

/// The method's name in the kind of each file.
const METHOD: &str = "naaf";
/// Stored with the weights, because scores depend on both.
const BOUNDARY: &str = "boundary";

impl Method for Naaf {
    /// # Errors
    /// If the images are of another kind or width than the encoder's.
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        self.check_items(train.images)?;
        self.learner.epoch = epoch;
        Ok(())
    }

    /// One update of the encoders and of the boundary. The boundary moves by the scores before the update.
    ///
    /// # Errors
    /// If the parts of the batch do not have one row per pair; if the images are of another kind or width than the encoder's, or an image has no
    /// region; if a value of a region, a score, the loss or the norm of its gradients is not finite; if a caption has no word, or a
    /// word's number is outside the vocabulary. A step that fails changes nothing.
    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        self.step_by(batch, seed, observe)
    }

    /// Uses the boundary of inference, and intra-text propagation if the config has it.
    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        self.check_items(items.images)?;
        let texts = &*self.cut(items.texts);
        self.encoders().check_texts(texts)?;
        let (model, config, dim) =
            (self.encoders().valid(), &self.config, self.config.model.embed_dim);
        if config.model.score == Score::Global {
            let (images, texts) =
                (rows::of_images(&model, items.images)?, rows::of_texts(&model, texts));
            let similarity = Similarity::Cosine;
            return Ok(Box::new(EmbeddingRows { dim, images, texts, similarity }));
        }
        let (regions, counts) = rows::of_regions(&model, items.images, None)?;
        let (words, lengths) = rows::of_words(&model, texts, dim);
        let boundary = self.boundary.inference(&config.mining) as f32;
        let (images, texts) = ((regions, &counts[..]), (words, &lengths[..]));
        Ok(Box::new(CrossScores::new(images, texts, dim, boundary, &config.attention)?))
    }

    fn non_finite(&self) -> Option<String> {
        first_non_finite("encoders", self.encoders())
    }

    /// Beside its state: with LoRA also the [files of PEFT](itm_core::towers::LearningParts::save).
    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        if let (Some(towers), Some(pair)) = (self.encoders().towers(), self.config.model.pair()) {
            self.config.train.parts.save(&towers, &pair, write)?;
        }
        let model = |model: &mut CheckpointWriter| {
            model.module("encoders", self.encoders());
            model.values(BOUNDARY, &[9], &numbers(&self.boundary));
        };
        self.learner.save(METHOD, write, model, |_, updates| [updates, 0])
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let saved = SavedState::open(METHOD, folder)?;
        let [.., updates, _] = saved.counts;
        let encoders = saved.model.module("encoders", self.encoders().clone())?;
        let boundary = boundary(&saved.model)?;
        let learner = self.learner.restored(encoders, &saved, updates)?;
        saved.nothing_else()?;
        (self.learner, self.boundary) = (learner, boundary);
        self.keep_states(0);
        Ok(())
    }

    /// Takes over the boundary too, because scores depend on it.
    fn start_from(&mut self, folder: &Path) -> Result<()> {
        let SavedState { model, .. } = SavedState::open(METHOD, folder)?;
        let encoders = model.module("encoders", self.encoders().clone())?;
        let boundary = boundary(&model)?;
        model.nothing_else()?;
        (self.learner, self.boundary) = (self.learner.begun(encoders), boundary);
        self.keep_states(0);
        Ok(())
    }

    fn keep_states(&self, bytes: u64) {
        if let Some(towers) = self.encoders().towers() {
            towers.keep_states(bytes);
        }
    }

    fn export(&self, folder: &Path) -> Result<()> {
        let (towers, pair) = (self.encoders().towers(), self.config.model.pair());
        let Some((towers, pair)) = towers.zip(pair) else {
            return Err(Error::invalid("towers", "both of one published CLIP or SigLIP", "none"));
        };
        towers.save(&pair, folder)
    }

    /// # Panics
    /// If a pair names an image or a text that does not exist.
    fn word_maps(&self, pairs: WordPairs) -> Result<Option<Vec<WordMaps>>> {
        self.maps(pairs)
    }
}

/// t, t_s, the moments of matched and mismatched scores, and ln α*, which is NaN if it does not exist.
fn numbers(boundary: &Boundary) -> [f64; 9] {
    let Boundary { t, t_s, matched: a, mismatched: b, ln_alpha_star } = boundary;
    let (n, m) = (a.count as f64, b.count as f64);
    let ln_alpha_star = ln_alpha_star.unwrap_or(f64::NAN);
    [*t, *t_s, a.mean, a.deviation, n, b.mean, b.deviation, m, ln_alpha_star]
}

fn boundary(model: &CheckpointReader) -> Result<Boundary> {
    let [t, t_s, a, b, n, c, d, m, ln_alpha_star] =
        <[f64; 9]>::try_from(model.values::<f64>(BOUNDARY, &[9])?)
            .expect("the reader checked the number");
    if let Some(bad) = [a, b, n, c, d, m].into_iter().find(|x| !x.is_finite()) {
        return Err(model.refuse(BOUNDARY, "finite numbers", bad));
    }
    let moments =
        |mean, deviation, count| ScoreDistribution { mean, deviation, count: count as usize };
    let (matched, mismatched) = (moments(a, b, n), moments(c, d, m));
    let ln_alpha_star = (!ln_alpha_star.is_nan()).then_some(ln_alpha_star);
    let boundary = Boundary { t, t_s, matched, mismatched, ln_alpha_star };
    boundary.check()?;
    Ok(boundary)
}
