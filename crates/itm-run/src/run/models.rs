//! Models before their first step, and what their weights begin with.

use std::borrow::Cow;
use std::sync::Arc;

use itm_core::cca::{Cca, CcaOptions, StartInputs};
use itm_core::data::{Dataset, Embeddings, Features, Split, SplitData, WordVectors};
use itm_core::output::write_bytes;
use itm_core::start::{BagPooling, InputStatistics, Start, TextForm, mean_regions};
use itm_core::text::Terms;
use itm_core::{Error, Result, ScoreMatrix};
use tempfile::TempDir;

use super::Run;
use crate::encoded::{self, Reading};
use crate::inputs::Inputs;
use crate::methods::{ClosedForm, Facts, Given, Sees, Sizes};
use crate::model::Model;
use crate::source::Source;
use crate::starts::check_rows;

impl Run {
    /// A fresh model of a row and seed. The folder, if there is one, keeps the closed form that the model begins with.
    ///
    /// # Errors
    /// If the row needs ready vectors and there are none; as [`Recipe::build`](crate::methods::Recipe::build).
    pub(crate) fn model(&self, row: &str, seed: u64) -> Result<Model<'_>> {
        self.check_vectors(row)?;
        let (facts, reading, source) = (self.facts(row), self.reading(row), &self.source);
        let inputs = Inputs::new(source, &self.features, reading, facts.sees)?;
        let place = format!("row.{row}");
        let start = self.start(facts, reading).map_err(self.config.inside(&place))?;
        let given = Given {
            seed,
            sizes: &Sizes::of(source, reading),
            inputs: &InputStatistics {
                rows: reading.rows(),
                ..InputStatistics::of(&self.features[Split::Train as usize], reading.terms())
            },
            start: start.as_deref(),
            vectors: self.vectors.as_ref(),
            train: inputs.items(Split::Train),
            captions: &source.dataset.train.captions,
            words: &|caption| reading.words(caption),
            truth: inputs.truth.filter(|_| facts.needs_truth),
            device: &self.devices[0],
            replicas: &self.devices[1..],
        };
        let method = self.rows[row].0.build(&given)?;
        let (row, plan) = (row.to_owned(), self.plan(row, seed));
        Ok(Model { row, seed, plan, method, inputs, source, reading })
    }

    /// A folder with untrained weights of the row that a row begins with, if any.
    ///
    /// # Errors
    /// As [`model`](Self::model), or if the folder cannot be written.
    pub(crate) fn weights_before(&self, row: &str) -> Result<Option<TempDir>> {
        let Some(from) = self.config.from(row) else { return Ok(None) };
        let folder = tempfile::tempdir().map_err(Error::io("a temporary folder"))?;
        self.model(from, 0)?.method.save(&mut |name, contents| {
            let path = folder.path().join(name);
            let parent = path.parent().unwrap_or(folder.path());
            std::fs::create_dir_all(parent).map_err(Error::io(parent))?;
            write_bytes(&path, contents)
        })?;
        Ok(Some(folder))
    }

    /// A fresh model that begins with such weights.
    ///
    /// # Errors
    /// As [`model`](Self::model), or if the weights have other shapes than the row's.
    pub(crate) fn model_after(&self, row: &str, weights: Option<TempDir>) -> Result<Model<'_>> {
        let mut model = self.model(row, 0)?;
        let (Some(from), Some(folder)) = (self.config.from(row), weights) else { return Ok(model) };
        model.method.start_from(folder.path()).map_err(|error| {
            let place = self.config.place(&format!("row.{row}, from"));
            let error = error.to_string().replace(&format!("{}/", folder.path().display()), "");
            Error::invalid(place, "a row of the same shape", format!("`{from}`: {error}"))
        })?;
        Ok(model)
    }

    /// The closed-form baseline, fitted to what the rows see, and its scores of the test split. If all rows see regions, it sees the
    /// mean of an image's regions and the stems of its captions. If no row reads words, it reads the given rows of captions alone.
    ///
    /// # Errors
    /// As [`Cca::fit`], or if a region cannot be read.
    pub(crate) fn cca(&self) -> Result<(Cca, ScoreMatrix)> {
        let mut data = Cow::Borrowed(&self.source.dataset);
        if self.sees_only_regions() {
            let Dataset { name, train, val, test, sha256 } = &*data;
            let (name, sha256) = (name.clone(), sha256.clone());
            let [train, val, test] = [of_regions(train)?, of_regions(val)?, of_regions(test)?];
            data = Cow::Owned(Dataset { name, train, val, test, sha256 });
        }
        let mut options = CcaOptions::default();
        if self.reads_only_rows() {
            options.max_terms = 0;
        }
        let cca = Cca::fit(&data, &options)?;
        let scores = cca.scores(&data.test)?;
        Ok((cca, scores))
    }

    /// The closed form that a row begins with, if any.
    fn start(&self, facts: &Facts, reading: &Reading) -> Result<Option<Arc<Start>>> {
        let Facts { start: Some(form), sees, .. } = facts else { return Ok(None) };
        let hashes = format!("{} {}", self.source.dataset.sha256, self.config.sha256);
        let of = format!("{hashes} {sees:?} {:?}", reading.captions);
        let solve = || {
            facts.rows_of.iter().try_for_each(|own| check_rows(own, &self.source.embeddings))?;
            self.solve(form, *sees, reading)
        };
        self.starts.get(form, &of, self.dir.as_ref().map(|dir| dir.path.as_path()), solve).map(Some)
    }

    /// Solves a closed form between the training images as a row sees them and the stems of their captions. The regions of an
    /// image are replaced by their mean.
    pub(super) fn solve(&self, form: &ClosedForm, sees: Sees, reading: &Reading) -> Result<Start> {
        let off = form.form == TextForm::Stems(BagPooling::Off);
        let words = match (form.form, reading.terms(), reading.words_by_number()) {
            (TextForm::Stems(_), Some(_), _) => vec![],
            (TextForm::Stems(_), None, None) if off => vec![],
            (TextForm::Words, _, Some(words)) => words,
            (TextForm::Stems(_) | TextForm::Words, ..) => {
                let expected = "a text encoder of stems or words";
                return Err(Error::invalid("model.start", expected, "another"));
            }
        };
        let data = &self.source.dataset;
        let terms = match reading.terms() {
            Some(terms) => Cow::Borrowed(terms),
            None if off => Cow::Owned(Terms::fit(&[] as &[&str], 1, 0)),
            None => Cow::Owned(encoded::stems(data)?),
        };
        let features = match (sees, &data.train.regions) {
            (Sees::Regions, Some(regions)) => Cow::Owned(mean_regions(regions)?),
            (Sees::Pictures(_), _) => Cow::Borrowed(&data.train.embeddings.images),
            _ => Cow::Borrowed(&self.features[Split::Train as usize]),
        };
        let (captions, pairs) = (&data.train.captions, &data.train.pairs);
        let (none, given) = (Features::default(), &data.train.embeddings.texts);
        let rows = if off || reading.rows().is_some() { given } else { &none };
        for (side, missing) in [("images", features.dim == 0), ("captions", off && rows.dim == 0)] {
            let expected =
                format_args!("rows of {side} in target.embeddings, by the row's own weights");
            Error::unless(!missing, "model.start = \"cca\"", expected, "none")?;
        }
        let inputs = StartInputs { features: &features, captions, pairs, terms: &terms, rows };
        form.solve(&inputs, &words)
    }
}

/// A split with the mean of an image's regions as its only row, as a start of regions reads it.
fn of_regions(part: &SplitData) -> Result<SplitData> {
    let images = part.regions.as_ref().map(mean_regions).transpose()?.unwrap_or_default();
    Ok(SplitData {
        embeddings: Embeddings { images, ..Embeddings::default() },
        images: part.images.clone(),
        captions: part.captions.clone(),
        pairs: part.pairs.clone(),
        ..SplitData::default()
    })
}

/// The ready word vectors for words as `reading` has them, if the target's file exists. The vectors of found words are data: they change the
/// hash, and a note of the report names the file.
pub(super) fn ready_vectors(source: &mut Source, reading: &Reading) -> Result<Option<WordVectors>> {
    let file = source.word_vectors.clone().filter(|file| file.is_file());
    let Some(file) = file else { return Ok(None) };
    let vectors = reading.vectors(&file)?;
    source.add_vectors(&file, &vectors);
    Ok(Some(vectors))
}
