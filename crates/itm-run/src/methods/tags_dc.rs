//! TAGS-DC for the runner: its inputs, and how its model is built.

mod edited;
mod negatives;
mod sentences;

use itm_core::learn::Method;
use itm_core::start::TextForm;
use itm_core::text::{self, WordPieces};
use itm_core::{Error, Result};
use itm_kernels::Precision;
use tags_dc::config::{Published, TagsDcConfig, TrainConfig};
use tags_dc::phrases::Duplicates;
use tags_dc::train::{Marks, TagsDc};
use tags_dc::{Aligned, MaskBy, Preset};

pub(crate) use edited::{Reader, edited};
pub use negatives::Negatives;
pub(crate) use negatives::filler;
pub(crate) use sentences::{Caption, Sentence, judged, sentences};
pub(crate) use tags_dc::cli::negatives::{ModelSplit, TrainedModel};

use super::targets::sections;
use super::{Captions, Cleaning, Given, Kind, Recipe, Sees, Sizes, StartAsked, start_of};
use crate::train::{Course, LastBatch, Validation};

pub(super) const KIND: Kind = Kind {
    name: "tags-dc",
    about_hubs: false,
    recipe: |config, row| Ok(Box::new(config.row::<TagsDcConfig>(row)?)),
    preset: |name| sections(name, Preset::tags),
};

impl Recipe for TagsDcConfig {
    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn course(&self) -> Course {
        let TrainConfig { epochs, updates, batch, validate_every, validate_among, .. } = self.train;
        let validation = Validation { every: validate_every, among: validate_among };
        let start = start_of(self.start());
        Course { epochs, updates, batch, last: LastBatch::Kept, start, validation }
    }

    fn at_once(&self) -> (usize, &'static str) {
        (self.train.batch.min(self.train.micro_batch), "train.micro_batch")
    }

    fn set_seed(&mut self, seed: u64) {
        self.train.seed = seed;
    }

    fn precision(&self) -> Option<Precision> {
        Some(self.train.precision)
    }

    fn sees(&self) -> Sees {
        Sees::Regions
    }

    fn captions(&self) -> Result<Captions> {
        Ok(match &self.model.published {
            Some(published) => Captions::Pieces(published.vocabulary.clone(), Cleaning::Raw),
            None => Captions::Words(text::Marks::Off),
        })
    }

    fn find_weights(&self) -> Result<()> {
        let Some(Published { weights, vocabulary }) = &self.model.published else { return Ok(()) };
        WordPieces::open(vocabulary)?.special()?;
        std::fs::metadata(weights).map(|_| ()).map_err(Error::io(weights))
    }

    fn start(&self) -> Option<StartAsked> {
        let options = self.model.closed_form()?.clone();
        Some(StartAsked { options, width: self.model.embed_dim, form: TextForm::Words })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method>> {
        let Given { sizes, device, train, written, start, .. } = *given;
        let updates = self.train.all_updates(sizes.captions);
        let model = TagsDc::of(self, sizes.region_width, marks(self, sizes)?, updates, device)?;
        let model = model.with_siblings_of(&train);
        let model = match start.filter(|_| self.model.closed_form().is_some()) {
            Some(start) => model.with_start(start)?,
            None => model,
        };
        let masks = self.loss.mlm > 0.0 || self.loss.synthetic();
        if !masks || self.masking.by == MaskBy::Words {
            return Ok(Box::new(model));
        }
        // If the parser splits a caption into other words than the row does, each word is a phrase.
        let phrases = |caption: &String| -> Result<Vec<Vec<usize>>> {
            let read = Aligned::new(caption, &(written.words)(caption)?, written.words)?;
            Ok(read.map_or(vec![], |read| read.phrases(Duplicates::Kept)))
        };
        let phrases: Vec<_> = written.captions.iter().map(phrases).collect::<Result<_>>()?;
        Ok(Box::new(model.with_phrases(phrases)))
    }
}

/// The tokens that a row reads.
///
/// # Errors
/// If the folder of a published vocabulary cannot be read or lacks a mark.
fn marks(config: &TagsDcConfig, sizes: &Sizes) -> Result<Marks> {
    Ok(match &config.model.published {
        Some(Published { vocabulary, .. }) => {
            let pieces = WordPieces::open(vocabulary)?;
            Marks::of_pieces(pieces.special()?, pieces.words_and_parts(), pieces.vocabulary())
        }
        None => Marks::of_words(sizes.vocabulary as u32),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use itm_core::start::StartFrom;

    use super::*;
    use crate::config::Config;

    pub(super) fn config() -> TagsDcConfig {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let config = Config::load(&configs, "tags-dc-scenes").unwrap();
        let row = config.rows().next().unwrap().to_owned();
        let mut config = config.row::<TagsDcConfig>(&row).unwrap();
        config.model.cca = None; // too wide for small models
        config.model.start = StartFrom::Random;
        config
    }
}
