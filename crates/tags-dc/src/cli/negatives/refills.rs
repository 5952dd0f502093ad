//! Negatives whose words a trained model fills in.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use itm_core::learn::Items;
use itm_core::text::Word;
use itm_core::{Error, Result};
use itm_report::command::quoted;
use scenes::Sizes;
use serde::Serialize;

use super::captions::{CaptionSet, SCENES};
use super::{Maker, Negatives, new_folder};
use crate::aligned::Aligned;
use crate::config::TagsDcConfig;
use crate::edits::Counts;
use crate::record::{Kind, Record};
use crate::train::TagsDc;
use crate::{CaptionWords, Filter, Masker, Refill, Tailor};

/// Negatives by rules, or by the model of a finished run, for a program that keeps runs.
#[derive(Debug, Args)]
pub struct RunNegatives {
    /// The captions, and the options of negatives by rules.
    #[command(flatten)]
    pub negatives: Negatives,
    /// A finished run whose model makes the negatives, instead of edits: it masks words of each caption, fills in other words, and
    /// keeps the sentences that match the image best. The captions must be of images that the run knows.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kinds", "rules", "train"])]
    pub run: Option<PathBuf>,
    /// Row of the run; the file's first by default.
    #[arg(long, requires = "run")]
    pub row: Option<String>,
    /// Seed of the row.
    #[arg(long, default_value_t = 0, requires = "run", value_name = "SEED")]
    pub row_seed: u64,
    /// Independent maskings per caption; the row's by default.
    #[arg(long, requires = "run", value_name = "K", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub maskings: Option<u32>,
    /// Refills per masking; the row's by default.
    #[arg(long, requires = "run", value_name = "L", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub refills: Option<u32>,
    /// Temperature of the draws: above 1, the model takes unlikely words more often. The row's by default.
    #[arg(long, requires = "run", value_name = "TAU")]
    pub temperature: Option<f64>,
    /// Only the first images of the captions.
    #[arg(long, requires = "run", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub images: Option<u32>,
    /// Folder of the run's data set.
    #[arg(long, requires = "run", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu", requires = "run")]
    pub backend: String,
}

impl RunNegatives {
    /// The command line of a program that repeats the command with a run.
    fn command(&self, program: &str) -> String {
        let Self { run, row, row_seed, data, backend, .. } = self;
        let Self { maskings, refills, temperature, images, .. } = self;
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let run = quoted(path(run).unwrap_or_default());
        let mut line = format!(" --run {run} --row-seed {row_seed} --backend {backend}");
        for (name, value) in [
            ("row", row.clone()),
            ("maskings", maskings.map(|n| n.to_string())),
            ("refills", refills.map(|n| n.to_string())),
            ("temperature", temperature.map(|tau| tau.to_string())),
            ("images", images.map(|n| n.to_string())),
            ("data", path(data)),
        ] {
            line += &value.map_or(String::new(), |value| format!(" --{name} {}", quoted(value)));
        }
        self.negatives.command_with(program, &line)
    }
}

/// A trained model, and its data.
pub struct TrainedModel<'a> {
    /// Row and seed, for a reader.
    pub name: String,
    /// The hash of its weights, for a reader.
    pub checkpoint_sha256: String,
    /// The model.
    pub method: &'a TagsDc,
    /// The splits that may have an image, in the order of the search: names of the images, and what the model reads of them.
    pub splits: Vec<(&'a [String], Items<'a>)>,
    /// The word or word piece of each number, empty for a number that is neither.
    pub words: &'a [String],
    /// Seed and sizes of the built-in world, if the model was trained on one.
    pub world: Option<(u64, Sizes)>,
    /// A text as numbers.
    pub read: &'a dyn Fn(&str) -> Result<Vec<u32>>,
    /// The words of a text, each with its range of the text's numbers; empty for a text without words.
    pub spell: &'a dyn Fn(&str) -> Result<Vec<Word>>,
}

/// The model that filled in words, and its settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OfModel {
    pub(super) row: String,
    pub(super) checkpoint_sha256: String,
    pub(super) maskings: usize,
    pub(super) refills: usize,
    pub(super) temperature: f64,
    pub(super) images_not_in_the_run: usize,
}

impl RunNegatives {
    /// Masks words of the captions, lets a model fill in other words, and writes the sentences that match the image best into a new or
    /// empty folder. A caption has no negatives if the parser splits it into other words than the model reads.
    ///
    /// # Errors
    /// If a file cannot be read or written, or has no captions; if the model has none of the images, or a region cannot be read; if the
    /// folder is not empty.
    pub fn by_model(
        &self,
        folder: &Path,
        program: &str,
        model: &TrainedModel,
        out: &mut impl Write,
    ) -> Result<()> {
        let written = new_folder(folder)?;
        let mut set = match (self.negatives.is_scenes(), model.world) {
            (true, Some(world)) => CaptionSet::scenes(world),
            (true, None) => {
                let expected = "a file, because the run has other data";
                return Err(Error::invalid("--captions", expected, SCENES));
            }
            (false, _) => CaptionSet::read(&self.negatives.captions, None)?,
        };
        let images = self.images.map_or(usize::MAX, |n| n as usize);
        set.captions.truncate(images);
        set.names.truncate(images);
        let tailor = self.tailor(model)?;
        let (records, counts, unknown) = self.refilled(&set, &tailor, model)?;
        let maker = Maker::Model(OfModel {
            row: model.name.clone(),
            checkpoint_sha256: model.checkpoint_sha256.clone(),
            maskings: tailor.maskings,
            refills: tailor.refill.draws,
            temperature: tailor.refill.temperature,
            images_not_in_the_run: unknown,
        });
        let how = (maker, &[Kind::Refill][..], self.command(program));
        self.negatives.write(written, &set, (&records, &counts), how, out)
    }

    /// The negatives caption by caption, their counts, and the number of images that the model does not know.
    fn refilled(
        &self,
        set: &CaptionSet,
        tailor: &Tailor,
        trained: &TrainedModel,
    ) -> Result<(Vec<Record>, Counts, usize)> {
        let (method, seed) = (trained.method, self.negatives.seed);
        let places = places(&trained.splits);
        let (mut records, mut counts, mut unknown) = (vec![], Counts::default(), 0);
        for (image, name) in set.captions.iter().zip(&set.names) {
            let Some(&(items, number)) = places.get(&name[..]) else {
                unknown += 1;
                continue;
            };
            let known = items.pairs.texts_of(number).iter().map(|&text| &items.texts[text]);
            // A text without words cannot be read.
            let own: Vec<_> = image.texts.iter().flat_map(|text| (trained.read)(text)).collect();
            let told = CaptionWords::of(known.chain(&own).map(|text| &text[..]));
            let tailor = Tailor { filter: method.filter(items, number)?, ..tailor.clone() };
            let regions = items.images.regions(method.model().shape.features)?;
            let mut model = method.beside(regions, number)?;
            for (k, text) in image.texts.iter().enumerate() {
                let caption = counts.captions as u64;
                counts.captions += 1;
                let Some(read) = Aligned::new(text, trained.spell)? else {
                    counts.without += 1;
                    continue;
                };
                let tokens = method.marks().around(&(trained.read)(text)?);
                let phrases = read.phrases(method.config().masking.duplicates);
                let best = tailor.negatives(&tokens, &phrases, &told, &mut model, seed, caption)?;
                let before = records.len();
                records.extend(best.iter().filter_map(|negative| {
                    let edit = read.edited(&negative.tokens, &tokens, trained.words)?;
                    let score = Some(probability(negative.score));
                    Some(Record { score, ..edit.record(format!("{}#{k}", image.id), seed) })
                }));
                counts.without += usize::from(records.len() == before);
                *counts.records.entry(Kind::Refill).or_default() += records.len() - before;
            }
        }
        let got = format_args!("`{}` and others", set.names[0]);
        let some = unknown != set.captions.len();
        Error::unless(some, &set.name, "an image of the run's data", got)?;
        Ok((records, counts, unknown))
    }

    fn tailor(&self, trained: &TrainedModel) -> Result<Tailor<'static>> {
        let marks = trained.method.marks();
        let no_word =
            |&token: &u32| trained.words.get(token as usize).is_none_or(|word| word.is_empty());
        let TagsDcConfig { masking, synthetic, .. } = trained.method.config();
        let count = |own: Option<u32>, row: usize| own.map_or(row, |n| n as usize);
        Ok(Tailor {
            masker: Masker::new(masking.by, masking.rate, marks.mask(), marks.words())?,
            maskings: count(self.maskings, masking.maskings),
            refill: Refill {
                draws: count(self.refills, synthetic.refills),
                temperature: self.temperature.unwrap_or(synthetic.temperature),
                forbid: (0..marks.tokens as u32).filter(no_word).collect(), // a reader needs a sentence
            },
            filter: Filter::Paper, // of each image: the row's
            choice: synthetic.choice,
            kept: self.negatives.per_caption,
        })
    }
}

/// σ of a logit.
fn probability(logit: f32) -> f32 {
    (1.0 / (1.0 + (-f64::from(logit)).exp())) as f32
}

/// The split and number of each image by name; the first image, if several have the same name.
fn places<'a>(splits: &'a [(&'a [String], Items<'a>)]) -> HashMap<&'a str, (&'a Items<'a>, usize)> {
    let mut places = HashMap::new();
    for (names, items) in splits {
        for (number, name) in names.iter().enumerate() {
            places.entry(&name[..]).or_insert((items, number));
        }
    }
    places
}
