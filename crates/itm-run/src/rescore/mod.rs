//! Corrections for hubs: every trained row under each of them, beside nearest neighbours.
//!
//! | what | where |
//! |---|---|
//! | re-scores each row and seed: a measure, with a section in the report | here, `table` |
//! | one correction over the seeds of a row | `method` |
//! | `summary.json` and `summary.md` of a table of corrections, beside the paper's numbers | `summary`, `orderings`, `markdown` |

mod markdown;
mod method;
mod orderings;
mod summary;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hubness::report::Report;
use hubness::rows;
use hubness::study::{ItemNames, Study, Test, Validation};
use itm_core::data::SplitData;
use itm_core::eval::Fold;
use itm_core::output::write_bytes;
use itm_core::scored::{EmbeddingRows, Scored, Similarity};
use itm_core::{Error, Pairs, Relevance, Result};
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::measures::{BySeed, Measure, Trial};
use crate::paper::Inferences;
use crate::progress;
use crate::report::{self, CCA, Section};
use crate::source::Source;

use self::method::MethodSummary;
use self::summary::{Origin, RowSummary, Summary};

/// Re-scores every row and seed of some data.
#[derive(Debug)]
pub(crate) struct Rescoring {
    study: Study,
    val: Pairs,
    /// The sets that are ranked separately: the test split, or its folds.
    sets: Vec<Set>,
    /// Reports of each seed and fold.
    reports: BySeed<Vec<Report>>,
}

impl Measure for &Rescoring {
    fn look(&self, trial: &Trial) -> Result<()> {
        let Some(trained) = trial.trained else { return Ok(()) };
        let _spinner = progress::spinner(&format!("{}: re-scored", trained.model.name()));
        let val = (trained.validation)()?;
        let reports = self.measure(&trained.folder.join("rescored"), &*val, trial.scores)?;
        self.reports.put(trial, reports);
        Ok(())
    }

    fn section(&self, report: &mut report::Report) -> Result<Section> {
        let rows = report.rows.iter().zip(self.reports.rows(report, |seeds| Some(all(seeds))));
        let of_row = |(row, reports): (&report::Row, Option<Vec<Report>>)| {
            summarise(&row.name, &reports.unwrap_or_default())
        };
        let rescored: Vec<Rescored> = rows.flat_map(of_row).collect();
        let mut section = Section::new("Re-scored for hubs");
        section.tables.push(table::rescored(report, &rescored));
        let numbers = BTreeMap::from([("rescored".to_owned(), rescored)]);
        report.more.extend(section.keys(&numbers)?);
        Ok(section)
    }
}

/// A trained row under one correction for hubs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Rescored {
    /// The row.
    row: String,
    /// The correction, `csls+rgm`; `nns` for none.
    method: String,
    /// Whether the correction saw the other test queries.
    transductive: bool,
    /// Sum of the six recalls, mean over seeds.
    rsum: f64,
    /// The sum of each seed, or of each seed and fold if the test split is evaluated by folds.
    per_seed: Vec<f64>,
    /// rSum minus the rSum of nearest neighbours, mean over seeds; `null` for nearest neighbours themselves.
    difference: Option<f64>,
    /// The smallest interval that holds each seed's 95 % interval of the difference (bootstrap over test images).
    ci95: Option<[f64; 2]>,
    /// The largest of the seeds' p-values (paired randomisation over images, two-sided, Holm's correction over methods).
    largest_p: Option<f64>,
    /// Number of seeds (and folds) with which it is above nearest neighbours at p < 0.05.
    above: u64,
    /// Number of seeds (and folds) with which it is below nearest neighbours at p < 0.05.
    below: u64,
    /// Sum of the skewness of N_1, N_5 and N_10 over both directions.
    skewness: Option<f64>,
    /// λ of RGM with the first seed, chosen on the validation split.
    lambda: Option<String>,
}

/// The test split or a fold of it.
#[derive(Debug)]
struct Set {
    fold: Fold,
    /// For each image the file name and the first caption; for each text the caption.
    names: ItemNames,
    /// The texts that are true of each image, numbered within the fold, if they are known.
    truth: Option<Relevance>,
}

impl Set {
    fn new(source: &Source, fold: Fold) -> Self {
        let test = &source.dataset.test;
        let names = ItemNames {
            images: Some(fold.images.clone().map(|image| image_name(test, image)).collect()),
            texts: Some(fold.texts.iter().map(|&text| one_line(&test.captions[text])).collect()),
        };
        let truth =
            source.truth.as_ref().map(|known| known.test.within(fold.images.clone(), &fold.texts));
        Self { fold, names, truth }
    }
}

fn image_name(part: &SplitData, image: usize) -> String {
    let file = &part.images[image];
    match part.pairs.texts_of(image).first() {
        Some(&text) => one_line(&format!("{file}: {}", part.captions[text])),
        None => file.clone(),
    }
}

/// A caption as a line of a table.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    if words.is_empty() { "(no words)".into() } else { words.join(" ") }
}

impl Rescoring {
    /// For an experiment; `None` if it has no corrections.
    ///
    /// # Errors
    /// If the test split does not fit the protocol.
    pub(crate) fn new(experiment: &Experiment) -> Result<Option<Self>> {
        let Some(study) = &experiment.rescore else { return Ok(None) };
        let source = &experiment.run.source;
        let folds = experiment.protocol.folds(&source.dataset.test.pairs)?;
        Ok(Some(Self::of_folds(study.clone(), source, folds)))
    }

    fn of_folds(study: Study, source: &Source, folds: Vec<Fold>) -> Self {
        let sets = folds.into_iter().map(|fold| Set::new(source, fold)).collect();
        let val = source.dataset.val.pairs.clone();
        Self { study, val, sets, reports: BySeed::default() }
    }

    /// Writes `summary.json` and `summary.md` into the folder of a table of corrections.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn write(
        &self,
        experiment: &Experiment,
        report: &report::Report,
        folder: &Path,
        started: Instant,
    ) -> Result<()> {
        let rsum = |name: &str| Some(report.row(name)?.measured.rsum);
        let rows = experiment.view.rows.iter().zip(&experiment.printed.rows);
        let measured = rows.filter_map(|(name, printed)| {
            let origin = Origin { rsum: Some(rsum(name)?), cca: rsum(CCA) };
            let reports = self.reports.of_row(name, all);
            Some(RowSummary::new(name, printed.clone(), (&reports, self.sets.len()), origin))
        });
        let Experiment { target, printed, run, command, .. } = experiment;
        let summary = Summary {
            target: target.name.clone(),
            paper: printed.paper.clone(),
            table: printed.table,
            dataset: run.source.title.clone(),
            substitution: run.source.substitution.clone(),
            rows: measured.collect(),
            resamples: self.study.resamples,
            config_sha256: run.config.sha256.clone(),
            data_sha256: run.source.dataset.sha256.clone(),
            command: command.clone(),
            seconds: started.elapsed().as_secs_f64(),
        };
        let text = serde_json::to_string_pretty(&summary).expect("names and numbers");
        write_bytes(&folder.join("summary.json"), (text + "\n").as_bytes())?;
        let page = markdown::render(&summary);
        write_bytes(&folder.join("summary.md"), page.as_bytes())?;
        progress::say(&page);
        Ok(())
    }

    /// Measures a model by its scores of the validation split and the test split, fold by fold like its recalls.
    /// Writes a report per fold into the folder, as `report.html` and `report.json`.
    ///
    /// # Errors
    /// If the study refuses its input, or if a file cannot be written.
    pub(crate) fn measure(
        &self,
        folder: &Path,
        val: &dyn Scored,
        test: &dyn Scored,
    ) -> Result<Vec<Report>> {
        let all = Fold::new(&self.val, 0..self.val.images());
        let val = scores_of_fold(val, &all)?;
        let validation = Validation { scores: &*val, pairs: &self.val };
        let folders = folders(folder, self.sets.len());
        let of = self.sets.iter().zip(folders).map(|(set, folder)| {
            let scores = scores_of_fold(test, &set.fold)?;
            let test = Test {
                names: &set.names,
                truth: set.truth.as_ref(),
                ..Test::new(&*scores, &set.fold.pairs)
            };
            let mut report = self.study.run(&test, Some(&validation))?;
            report.data.warnings = scores.rows().map_or_else(Vec::new, warnings);
            write(&folder, &report)?;
            Ok(report)
        });
        of.collect()
    }
}

/// The reports of a row, seed by seed and fold by fold.
fn all(seeds: &[&Vec<Report>]) -> Vec<Report> {
    seeds.iter().copied().flatten().cloned().collect()
}

fn write(folder: &Path, report: &Report) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let json = serde_json::to_string_pretty(report).expect("names and numbers") + "\n";
    write_bytes(&folder.join("report.json"), json.as_bytes())?;
    let page = hubness::page::html(report);
    write_bytes(&folder.join("report.html"), page.as_bytes())
}

/// Scores of a fold. If the similarity is the cosine: rows of unit length, whose products are never held as a whole.
/// Otherwise: all scores.
fn scores_of_fold(scored: &dyn Scored, fold: &Fold) -> Result<Box<dyn Scored>> {
    let Some(all) = scored.rows().filter(|rows| rows.similarity == Similarity::Cosine) else {
        return Ok(Box::new(scored.fold(fold)?));
    };
    let dim = all.dim;
    let texts = fold.texts.iter().flat_map(|&text| &all.texts[text * dim..(text + 1) * dim]);
    let texts: Vec<f32> = texts.copied().collect();
    Ok(Box::new(EmbeddingRows {
        dim,
        images: rows::unit(dim, &all.images[fold.images.start * dim..fold.images.end * dim]),
        texts: rows::unit(dim, &texts),
        similarity: Similarity::Cosine,
    }))
}

/// Warnings about the embeddings.
fn warnings(of: &EmbeddingRows) -> Vec<String> {
    let sides = [("images", &of.images), ("texts", &of.texts)];
    sides.into_iter().flat_map(|(name, values)| rows::warnings(name, of.dim, values)).collect()
}

/// The folder itself if there is one fold; otherwise a subfolder per fold.
fn folders(folder: &Path, count: usize) -> impl Iterator<Item = PathBuf> {
    (1..=count).map(move |fold| match count {
        1 => folder.to_path_buf(),
        _ => folder.join(format!("fold-{fold}")),
    })
}

/// The lines of a row, one per method, from the row's reports of each seed and fold.
fn summarise(row: &str, reports: &[Report]) -> Vec<Rescored> {
    let names = reports.first().map_or(&[][..], |report| &report.rows);
    let line = |first: &hubness::report::ReportRow| {
        let summary = MethodSummary::new(&first.method, &Inferences::default(), reports);
        let same = || reports.iter().flat_map(|r| &r.rows).filter(|r| r.method == first.method);
        let of_seeds = same().filter_map(|r| r.difference.as_ref()?.ci95);
        // The smallest interval that holds every seed's interval.
        let hull = of_seeds.reduce(|[lo, hi], [a, b]| [lo.min(a), hi.max(b)]);
        let known = same().filter_map(|r| r.difference.as_ref()?.p_holm);
        Rescored {
            row: row.into(),
            method: first.method.clone(),
            transductive: first.transductive,
            rsum: summary.rsum,
            per_seed: summary.per_seed,
            difference: summary.difference,
            ci95: hull,
            largest_p: known.reduce(f64::max),
            above: summary.above as u64,
            below: summary.below as u64,
            skewness: summary.hs_sum,
            lambda: summary.lambda,
        }
    };
    names.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use itm_core::eval::{Evaluation, Ranks, TiePolicy, folds};
    use itm_core::scored::{EmbeddingRows, Similarity};

    use super::*;
    use crate::experiment::study;
    use crate::tests;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// With either similarity each fold is ranked separately: nearest neighbours give the recalls of the fold.
    #[test]
    fn folds_are_measured_one_by_one() {
        let source = tests::small_scenes([8, 6, 24]).1;
        let pairs = &source.dataset.test.pairs;
        let two = folds(pairs, 2, 12).unwrap();
        let study =
            Study { resamples: 100, ..study("--rescore", &names(&["csls", "rgm"])).unwrap() };
        let dir = tempfile::tempdir().unwrap();
        let rescoring = Rescoring::of_folds(study, &source, two.clone());
        for similarity in [Similarity::Cosine, Similarity::Order] {
            let of = |images: usize| {
                let angle = |k: usize, off: f32| ((k * k) as f32 * 0.7 + off).sin().abs();
                let side = |n: usize, off: f32| -> Vec<f32> {
                    (0..n).flat_map(|k| [angle(k, off), angle(k + 3, off)]).collect()
                };
                let (images, texts) = (side(images, 0.0), side(5 * images, 0.3));
                let unit = |values: Vec<f32>| -> Vec<f32> {
                    let rows = values.as_chunks::<2>().0.iter();
                    rows.flat_map(|[a, b]| [a, b].map(|x| x / a.hypot(*b))).collect()
                };
                EmbeddingRows { dim: 2, images: unit(images), texts: unit(texts), similarity }
            };
            let (val, test) = (of(6), of(24));
            let folder = dir.path().join(format!("{similarity:?}"));
            let reports = rescoring.measure(&folder, &val, &test).unwrap();
            let all = test.matrix().unwrap();
            let want = two.iter().map(|fold| {
                let own = <dyn Scored>::fold(&all, fold).unwrap();
                let ranks = Ranks::new(&own, &fold.pairs).unwrap();
                Evaluation::new(&[ranks], TiePolicy::Index).rsum
            });
            let want: Vec<_> = want.collect();
            let got: Vec<_> = reports.iter().map(|report| report.rows[0].rsum).collect();
            assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?}, {want:?}");
            assert_ne!(want[0], want[1]);
            assert!(folder.join("fold-2/report.html").is_file());
            let lines = summarise("HAL", &reports);
            assert_eq!(
                lines.iter().map(|l| &l.method[..]).collect::<Vec<_>>(),
                ["nns", "csls", "rgm"]
            );
            assert_eq!(lines[0].per_seed, got);
        }
    }

    #[test]
    fn a_set_holds_what_its_fold_holds() {
        let source = tests::small_scenes([8, 4, 12]).1;
        let test = &source.dataset.test;
        let whole = Set::new(&source, Fold::new(&test.pairs, 0..12));
        let name = format!("test_000003.png: {}", test.captions[15]);
        assert_eq!(whole.names.images.unwrap()[3], name);
        assert_eq!(whole.names.texts.unwrap(), test.captions);
        let truth = &source.truth.as_ref().unwrap().test;
        assert_eq!(whole.truth.as_ref(), Some(truth));

        // A fold numbers its images and texts from 0, and leaves out true pairs beyond the fold.
        let part = Set::new(&source, Fold::new(&test.pairs, 4..7));
        assert!(part.names.images.unwrap()[0].starts_with("test_000004.png"));
        assert_eq!(part.names.texts.unwrap(), test.captions[20..35]);
        let truth_of = part.truth.unwrap();
        for image in 0..3 {
            let all = truth.texts_of(image + 4).iter();
            let within: Vec<u32> =
                all.filter(|text| (20..35).contains(*text)).map(|text| text - 20).collect();
            assert_eq!((truth_of.texts_of(image), within.is_empty()), (&within[..], false));
        }
    }

    #[test]
    fn a_fold_has_its_own_rows() {
        let pairs = Pairs::new(3, vec![2, 0, 1, 1]).unwrap();
        let unit = |k: usize| [0.6, 0.8, 1.0, 0.0, 0.0, -1.0, -0.8, 0.6][k % 8];
        let rows = EmbeddingRows {
            dim: 2,
            images: (0..6).map(unit).collect(),
            texts: (0..8).map(unit).collect(),
            similarity: Similarity::Cosine,
        };
        let fold = Fold::new(&pairs, 1..3);
        let of_fold = scores_of_fold(&rows, &fold).unwrap();
        let EmbeddingRows { images, texts, .. } = of_fold.rows().expect("cosines");
        assert_eq!(*images, rows.images[2..]);
        assert_eq!(*texts, [&rows.texts[..2], &rows.texts[4..]].concat());
        let order = EmbeddingRows { similarity: Similarity::Order, ..rows };
        let of_fold = scores_of_fold(&order, &fold).unwrap();
        assert!(of_fold.rows().is_none());
        let scored: &dyn Scored = &order;
        assert_eq!(of_fold.matrix().unwrap(), scored.fold(&fold).unwrap());
    }

    #[test]
    fn a_name_is_one_line() {
        let lines = ["two\nlines ", "", "one"].map(one_line);
        assert_eq!(lines, ["two lines", "(no words)", "one"]);
    }

    #[test]
    fn one_fold_needs_no_folder_of_its_own() {
        let of = |count| folders(Path::new("a"), count).collect::<Vec<_>>();
        assert_eq!(of(1), [Path::new("a")]);
        assert_eq!(of(2), [Path::new("a/fold-1"), Path::new("a/fold-2")]);
    }
}
