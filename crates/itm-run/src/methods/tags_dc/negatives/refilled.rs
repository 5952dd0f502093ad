//! Negatives whose words a trained model fills in.

use std::any::Any;
use std::collections::HashMap;

use itm_core::learn::{Items, Method};
use itm_core::scenes::Sizes;
use itm_core::text::Word;
use itm_core::{Error, Result};
use tags_dc::edits::Counts;
use tags_dc::model::{Beside, RegionBatch};
use tags_dc::phrases::Duplicates;
use tags_dc::record::{Kind, Record};
use tags_dc::train::TagsDc;
use tags_dc::{Filter, MaskBy, Masker, Protected, Refill, Streams, Tailor};

use super::Given;
use crate::cli;
use crate::methods::tags_dc::aligned::Aligned;

/// A trained model of a run, and its data.
pub(crate) struct Trained<'a> {
    /// Row and seed.
    pub(crate) name: String,
    pub(crate) checkpoint_sha256: String,
    pub(crate) method: &'a dyn Method,
    /// The splits that may have an image, in the order of the search.
    pub(crate) parts: [TrainedPart<'a>; 3],
    /// The word or word piece of each number, empty for a number that is neither.
    pub(crate) words: &'a [String],
    /// Seed and sizes of the built-in world, if the run has one.
    pub(crate) world: Option<(u64, Sizes)>,
    /// A text as numbers.
    pub(crate) read: &'a dyn Fn(&str) -> Result<Vec<u32>>,
    /// The words of a text, each with its range of the text's numbers; empty for a text without words.
    pub(crate) spell: &'a dyn Fn(&str) -> Result<Vec<Word>>,
}

/// A split.
pub(crate) struct TrainedPart<'a> {
    /// Names of the images.
    pub(crate) images: &'a [String],
    pub(crate) items: Items<'a>,
}

/// The outcome for all captions.
pub(super) struct Refilled {
    pub(super) counts: Counts,
    /// Images that the run does not have.
    pub(super) unknown_images: usize,
}

/// Passes the negatives of each caption to `take`, caption by caption. A caption has no negatives if the parser splits it into other
/// words than the row does.
///
/// # Errors
/// If the model is of another method, the run has none of the images, or a region cannot be read.
pub(super) fn each(
    given: &Given,
    args: &cli::Negatives,
    trained: &Trained,
    mut take: impl FnMut(Record),
) -> Result<Refilled> {
    let method: &dyn Any = trained.method;
    let Some(method) = method.downcast_ref::<TagsDc>() else {
        let expected = "a run whose model fills in words";
        return Err(Error::invalid("--run", expected, &trained.name));
    };
    let tailor = tailor(args, trained, method)?;
    let places = places(&trained.parts);
    let mut refilled = Refilled { counts: Counts::default(), unknown_images: 0 };
    let counts = &mut refilled.counts;
    for (image, name) in given.captions.iter().zip(&given.names) {
        let Some(&(part, number)) = places.get(&name[..]) else {
            refilled.unknown_images += 1;
            continue;
        };
        let items = &trained.parts[part].items;
        let told = items.pairs.texts_of(number).iter().map(|&text| &items.texts[text][..]);
        let told = Protected::of(told);
        let regions = items.images.regions(method.model().shape.features)?;
        let mut model = Beside::new(method.model(), &RegionBatch::of(regions, &[number])?)?;
        for (k, text) in image.texts.iter().enumerate() {
            let caption = counts.captions as u64;
            counts.captions += 1;
            let spelled = (trained.spell)(text)?;
            let Some(read) = Aligned::new(text, &spelled, trained.spell)? else {
                counts.without += 1;
                continue;
            };
            let streams = Streams { seed: args.seed, round: 0 };
            let tokens = method.marks().around(&(trained.read)(text)?);
            let phrases = read.phrases(Duplicates::Once);
            let best = tailor.negatives(&tokens, &phrases, &told, &mut model, streams, caption)?;
            let written = best.iter().filter_map(|negative| {
                let edit = read.edited(&negative.tokens, &tokens, trained.words)?;
                Some(Record {
                    caption: format!("{}#{k}", image.id),
                    seed: args.seed,
                    kind: Kind::Refill,
                    positions: edit.positions,
                    old: edit.old,
                    new: edit.new,
                    text: edit.text,
                    score: Some(probability(negative.score)),
                })
            });
            let written: Vec<Record> = written.collect();
            counts.without += usize::from(written.is_empty());
            *counts.records.entry(Kind::Refill).or_default() += written.len();
            written.into_iter().for_each(&mut take);
        }
    }
    if refilled.unknown_images == given.captions.len() {
        let expected = "an image of the run's data";
        return Err(Error::invalid(
            &given.name,
            expected,
            format!("`{}` and others", given.names[0]),
        ));
    }
    Ok(refilled)
}

/// σ of a logit.
fn probability(logit: f32) -> f32 {
    (1.0 / (1.0 + (-f64::from(logit)).exp())) as f32
}

fn tailor(args: &cli::Negatives, trained: &Trained, method: &TagsDc) -> Result<Tailor<'static>> {
    let marks = method.marks();
    let no_word =
        |&token: &u32| trained.words.get(token as usize).is_none_or(|word| word.is_empty());
    let all = marks.tokens() as u32;
    let cli::RefillArgs { maskings, refills, temperature, .. } = args.model;
    Ok(Tailor {
        masker: Masker::new(MaskBy::Phrases, 0.15, marks.mask(), marks.words())?,
        maskings: maskings as usize,
        refill: Refill {
            draws: refills as usize,
            temperature,
            forbid: (0..all).filter(no_word).collect(), // a reader needs a sentence
        },
        filter: Filter::Paper,
        kept: args.per_caption,
    })
}

/// The split and number of each image by name; the first image, if several have the same name.
fn places<'a>(parts: &'a [TrainedPart<'a>]) -> HashMap<&'a str, (usize, usize)> {
    let mut places = HashMap::new();
    for (part, of) in parts.iter().enumerate() {
        for (number, name) in of.images.iter().enumerate() {
            places.entry(&name[..]).or_insert((part, number));
        }
    }
    places
}
