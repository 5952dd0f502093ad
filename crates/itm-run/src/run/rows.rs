//! The rows of a run: how their models are built, and what is known before.

use itm_core::learn::precision_of;
use itm_core::{Error, Result};
use itm_kernels::Precision;

use super::Run;
use crate::config::{Config, ImageFeatures};
use crate::encoded::{Captions, Reading};
use crate::methods::{self, Facts, Recipe, Sees};
use crate::source::Source;
use crate::train::Plan;

/// Reads a row, and refuses it if its configuration is wrong or does not fit the data.
pub(super) fn read(
    config: &Config,
    row: &str,
    source: &Source,
) -> Result<(Box<dyn Recipe>, Facts)> {
    let place = format!("row.{row}");
    let recipe = methods::recipe(config, row)?;
    let facts = recipe.facts().map_err(config.inside(&place))?;
    check(config, &facts, source).map_err(config.inside(&place))?;
    let marks = config.target.marks;
    let captions = facts.captions.marked(marks).ok_or_else(|| {
        let expected =
            "off: the text encoder of this row has marks of its own, or no order of words";
        Error::invalid(config.place("target.marks"), expected, format!("{marks:?}"))
    })?;
    Ok((recipe, Facts { captions, ..facts }))
}

fn check(config: &Config, facts: &Facts, source: &Source) -> Result<()> {
    let features = config.target.features;
    let pictures = matches!(facts.sees, Sees::Pictures(_));
    let seen = if pictures { "\"pictures\"" } else { "features" };
    let wanted = format_args!("{seen}, which the row's image encoder sees");
    let fits = pictures == (features == ImageFeatures::Pictures);
    Error::unless(fits, "target.features", wanted, format_args!("{features:?}"))?;
    let wanted = "\"given\" or \"grid\": the row's image encoder sees regions";
    let fits = !matches!(facts.sees, Sees::Regions) || source.dataset.train.regions.is_some();
    Error::unless(fits, "target.regions", wanted, "none")
}

/// The captions as a row with these facts reads them.
pub(super) fn reading<'r>(readings: &'r [Reading], facts: &Facts) -> &'r Reading {
    let found = readings.iter().find(|reading| reading.captions == facts.captions);
    found.expect("every row has a reading")
}

impl Run {
    /// What is known of a row of the target.
    pub(crate) fn facts(&self, row: &str) -> &Facts {
        &self.rows[row].1
    }

    /// Whether no row of the target sees anything of an image but its regions.
    pub(super) fn sees_only_regions(&self) -> bool {
        self.rows.values().all(|(_, facts)| matches!(facts.sees, Sees::Regions))
    }

    /// Whether captions have given rows, and every row of the target reads those or word pieces.
    pub(super) fn reads_only_rows(&self) -> bool {
        let pieces =
            |captions: &Captions| matches!(captions, Captions::Pieces(..) | Captions::Rows);
        self.source.dataset.train.embeddings.texts.dim > 0
            && self.rows.values().all(|(_, facts)| pieces(&facts.captions))
    }

    /// How long a row trains, with one seed.
    pub(crate) fn plan(&self, row: &str, seed: u64) -> Plan {
        let (facts, target) = (self.facts(row), &self.config.target);
        let good = facts.published || facts.start.is_some() || self.config.from(row).is_some();
        Plan {
            course: facts.course,
            ready: good && !facts.new_heads,
            captions: self.source.dataset.train.pairs.texts(),
            seed,
            checkpoint_steps: target.checkpoint_steps,
            log_steps: target.log_steps,
            observe_steps: if self.source.truth.is_some() { target.observe_steps } else { 0 },
        }
    }

    /// The captions as a row reads them.
    pub(crate) fn reading(&self, row: &str) -> &Reading {
        reading(&self.readings, self.facts(row))
    }

    /// Whether the products of a row's blocks are configured as bf16.
    pub(crate) fn is_bf16(&self, row: &str) -> bool {
        self.facts(row).precision == Some(Precision::Bf16)
    }

    /// Refuses a row that the data or the device do not support.
    ///
    /// # Errors
    /// If the training split has no batch of the row; if its precision is bf16 and the device is not the processor; if there are more devices than parts of its step; if it trains with the truth and there is none; as
    /// [`check_vectors`](Self::check_vectors).
    pub(crate) fn check_row(&self, row: &str) -> Result<()> {
        let Facts { precision, needs_truth, most_devices, .. } = self.facts(row);
        let place = format!("row.{row}");
        self.plan(row, 0).check().map_err(self.config.inside(&place))?;
        precision_of("train.precision", precision.unwrap_or_default(), &self.devices[0])
            .map_err(self.config.inside(&place))?;
        let devices = self.devices.len();
        let expected = match most_devices {
            1 => "1 device, because a step of this row is on one".into(),
            n => format!("at most {n} devices, one for each part of a step"),
        };
        let at = self.config.place(&format!("{place}, --backend"));
        Error::unless(devices <= *most_devices, at, expected, devices)?;
        let Source { title, truth, .. } = &self.source;
        let expected =
            format_args!("a complete truth of {title}, because this row excludes all true pairs");
        let fits = !needs_truth || truth.is_some();
        Error::unless(fits, self.config.place(&place), expected, "none")?;
        self.check_vectors(row)
    }

    /// Refuses a row whose words begin with ready vectors if there are none.
    ///
    /// # Errors
    /// If the row needs them and the target names no file, or the data folder has no such file.
    pub(super) fn check_vectors(&self, row: &str) -> Result<()> {
        let file = self.config.target.word_vectors.as_ref().map(|file| file.display());
        let expected = match file {
            Some(file) => format!("word vectors in the file `{file}` of the data folder"),
            None => "a file of word vectors, named by target.word_vectors".to_owned(),
        };
        let fits = self.vectors.is_some() || !self.facts(row).needs_vectors;
        Error::unless(fits, self.config.place(&format!("row.{row}")), expected, "none")
    }
}
