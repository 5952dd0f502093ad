//! TAGS-DC for the runner: its inputs, and how its model is built.

mod edited;
mod gaps;
mod generators;
mod made;
mod synthetic;

use std::any::Any;

use itm_core::data::Split;
use itm_core::learn::{Items, Method};
use itm_core::start::TextForm;
use itm_core::text::{self, WordPieces};
use itm_core::{Error, Pairs, Result};
use tags_dc::config::{Published, TagsDcConfig};
use tags_dc::phrases::Duplicates;
use tags_dc::train::{Marks, TagsDc};
use tags_dc::{Aligned, MaskBy};

pub use tags_dc::cli::negatives::RunNegatives as Negatives;
pub(crate) use tags_dc::cli::negatives::TrainedModel;

use self::edited::EditedCaptions;
use self::synthetic::SyntheticSentences;
use super::targets::sections;
use super::{Captions, Cleaning, ClosedForm, Facts, Given, Kind, Recipe, Sees, Sizes, checked};
use crate::config::Config;
use crate::measures::Measure;
use crate::model::Model;
use crate::train::Course;

pub(super) const KIND: Kind = Kind {
    name: "tags-dc",
    about_hubs: false,
    recipe: |config, row| checked(config, row, TagsDcConfig::check),
    preset: |preset| sections(TagsDcConfig::tags(preset)),
    measures,
    judge: made::judged,
};

fn measures(config: &Config) -> Vec<Box<dyn Measure>> {
    let mut all: Vec<Box<dyn Measure>> = vec![Box::new(SyntheticSentences::default())];
    if config.target.edits {
        all.push(Box::new(EditedCaptions::default()));
    }
    all
}

impl Recipe for TagsDcConfig {
    fn facts(&self) -> Result<Facts> {
        let (train, model) = (&self.train, &self.model);
        let mut captions = Captions::Words(text::Marks::Off);
        if let Some(Published { weights, vocabulary }) = &model.published {
            WordPieces::open(vocabulary)?.special()?;
            std::fs::metadata(weights).map_err(Error::io(weights))?;
            captions = Captions::Pieces(vocabulary.clone(), Cleaning::Raw);
        }
        let course = Course {
            epochs: train.epochs,
            updates: train.updates,
            batch: train.batch,
            validate_every: train.validate_every,
            validate_among: train.validate_among,
            ..Course::default()
        };
        Ok(Facts {
            at_once: (train.batch.min(train.micro_batch), "train.micro_batch"),
            precision: Some(train.precision),
            sees: Sees::Regions,
            captions,
            start: ClosedForm::of(model.closed_form(), model.start_width(), TextForm::Words),
            new_heads: self.loss.words(),
            ..Facts::new(course)
        })
    }

    fn build(&self, given: &Given) -> Result<Box<dyn Method + Send>> {
        let Given { seed, sizes, device, train, captions, words, start, .. } = *given;
        let mut config = self.clone();
        config.train.seed = seed;
        let (width, updates) = (sizes.region_width, self.train.all_updates(sizes.captions));
        let model = TagsDc::new(&config, width, marks(self, sizes)?, updates, device)?;
        let mut model = match start {
            Some(start) => model.with_start(start)?,
            None => model,
        };
        model.learn_filter(&train)?;
        let masks = self.loss.mlm > 0.0 || self.loss.synthetic();
        if !masks || self.masking.by == MaskBy::Words {
            return Ok(Box::new(model));
        }
        // If the parser splits a caption into other words than the row does, each word is a phrase.
        let phrases = |caption: &String| -> Result<Vec<Vec<usize>>> {
            let read = Aligned::new(caption, words)?;
            Ok(read.map_or(vec![], |read| read.phrases(Duplicates::Kept)))
        };
        let phrases: Vec<_> = captions.iter().map(phrases).collect::<Result<_>>()?;
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
        None => Marks::of_words(sizes.vocabulary)?,
    })
}

/// The model, if it fills in words.
pub(crate) fn filler(method: &dyn Method) -> Option<&TagsDc> {
    let method: &dyn Any = method;
    method.downcast_ref()
}

/// The match logits by `judge` of the test captions, then of sentences made from them, each with the image of its caption. `model` reads
/// the sentences; `judge` is of the same target.
///
/// # Errors
/// If a sentence cannot be read as the row reads captions, or an item cannot be read.
fn logits<'s>(
    judge: &dyn Method,
    model: &Model,
    sentences: impl Iterator<Item = (usize, &'s str)>,
) -> Result<Vec<f32>> {
    let own = &model.source.dataset.test.pairs;
    let mut texts = model.reading.texts(Split::Test).to_vec();
    let mut image_of = own.image_of_text().to_vec();
    for (text, sentence) in sentences {
        texts.push(model.reading.read(sentence)?);
        image_of.push(own.image_of(text));
    }
    let pairs = Pairs::new(own.images(), image_of.clone())?;
    let items = Items { texts: &texts, pairs: &pairs, ..model.inputs.items(Split::Test) };
    let all: Vec<usize> = (0..texts.len()).collect();
    judge.scored(items)?.pairs(&image_of, &all)
}

/// How probable it is that image and text match.
fn probability(logit: f32) -> f32 {
    (1.0 / (1.0 + (-f64::from(logit)).exp())) as f32
}
