//! `--rescore`: every trained row of a target under corrections for hubs, beside nearest neighbours.

use std::path::{Path, PathBuf};

use hubness::cli::methods::Method;
use hubness::cli::report::Report;
use itm_core::eval::{Fold, Protocol};
use itm_core::{Error, Result};

use super::config::{Capacity, HubSettings, Runs, Setting, Stop};
use super::files::{DataFiles, ModelFiles, of_fold};
use super::measure;
use super::summary::MethodSummary;
use crate::method::Embedded;
use crate::report::Rescored;
use crate::run_dir::RunDir;
use crate::source::Source;

/// Draws of intervals and tests.
const RESAMPLES: usize = 10_000;

/// The settings of the paper's recipe for the methods that a command line names; nearest neighbours come first.
///
/// # Errors
/// If a name is unknown or comes twice.
pub(crate) fn settings(names: &[String]) -> Result<HubSettings> {
    let place = "--rescore";
    let mut methods = vec![Report::BASELINE.to_owned()];
    for name in names {
        if name.parse::<Method>().is_err() {
            let expected = "names of `hubness report --method`: csls, is, rgm, csls+rgm, …";
            return Err(Error::invalid(place, expected, format!("`{name}`")));
        }
        if names.iter().filter(|other| *other == name).count() > 1 {
            return Err(Error::invalid(place, "each name once", format!("`{name}` twice")));
        }
        if !methods.contains(name) {
            methods.push(name.clone());
        }
    }
    Ok(HubSettings {
        methods,
        csls_k: Setting::Number(10.0),
        is_beta: Setting::Number(30.0),
        rgm_lambda: Setting::Auto,
        rgm_capacity: Capacity::Balanced,
        rgm_stop: Stop::Exhaustive,
        rgm_runs: Runs::PerK,
        resamples: RESAMPLES,
        seed: 0,
    })
}

/// What every row and seed is re-scored with.
#[derive(Debug)]
pub(crate) struct Rescoring {
    settings: HubSettings,
    /// What is ranked within itself: the test split, or its folds.
    folds: Vec<(Fold, DataFiles)>,
}

impl Rescoring {
    /// Writes the files of the data into a folder `data` of the run.
    ///
    /// # Errors
    /// If the test split is not the protocol's, or a file cannot be written.
    pub(crate) fn open(
        settings: HubSettings,
        source: &Source,
        protocol: Protocol,
        run: &RunDir,
    ) -> Result<Self> {
        let folds = protocol.folds(&source.dataset.test.pairs)?;
        Self::of_folds(settings, source, folds, &run.path().join("data"))
    }

    fn of_folds(
        settings: HubSettings,
        source: &Source,
        folds: Vec<Fold>,
        folder: &Path,
    ) -> Result<Self> {
        let folders = folders(folder, folds.len());
        let written = folds.into_iter().zip(folders).map(|(fold, folder)| {
            let files = DataFiles::write(&folder, source, &fold)?;
            Ok((fold, files))
        });
        Ok(Self { settings, folds: written.collect::<Result<_>>()? })
    }

    /// Measures a model by its embeddings of the validation and the test split, fold by fold as its recalls are: a report each,
    /// which the folder gets as `report.html` and `report.json`.
    ///
    /// # Errors
    /// What `hubness report` refuses, or if a file cannot be written.
    pub(crate) fn measure(
        &self,
        folder: &Path,
        [val, test]: &[Embedded; 2],
    ) -> Result<Vec<Report>> {
        let folders = folders(folder, self.folds.len());
        let of = self.folds.iter().zip(folders).map(|((fold, data), folder)| {
            let model = ModelFiles::write(&folder, &[val.clone(), of_fold(test, fold)])?;
            measure::report(&self.settings, data, &model, &folder)
        });
        of.collect()
    }
}

/// One folder for the whole, one within it for each of several.
fn folders(folder: &Path, count: usize) -> impl Iterator<Item = PathBuf> {
    (1..=count).map(move |fold| match count {
        1 => folder.to_path_buf(),
        _ => folder.join(format!("fold-{fold}")),
    })
}

/// The lines of a row, one a method, from its reports of each seed and fold.
pub(crate) fn summarise(row: &str, reports: &[Report]) -> Vec<Rescored> {
    let names = reports.first().map_or(&[][..], |report| &report.rows);
    let line = |first: &hubness::cli::report::Row| {
        let summary = MethodSummary::new(&first.method, "", reports);
        let same = || reports.iter().flat_map(|r| &r.rows).filter(|r| r.method == first.method);
        let of_seeds = same().filter_map(|r| r.difference.as_ref()?.ci95);
        // The smallest interval that holds every seed's.
        let hull = of_seeds.reduce(|[lo, hi], [a, b]| [lo.min(a), hi.max(b)]);
        let known = same().filter_map(|r| r.difference.as_ref()?.p_holm);
        Rescored {
            row: row.into(),
            method: first.method.clone(),
            transductive: first.seen.0 == hubness::Setting::Transductive,
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
    use hubness::training::Similarity;
    use itm_core::eval::{Evaluation, Ranks, TiePolicy, folds};

    use super::*;
    use crate::rows::scores;
    use crate::testing;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn nearest_neighbours_come_first_and_once() {
        let got = settings(&names(&["csls", "nns", "is+rgm"])).unwrap();
        assert_eq!(got.methods, ["nns", "csls", "is+rgm"]);
        assert_eq!((got.csls_k, got.rgm_lambda), (Setting::Number(10.0), Setting::Auto));
        let line = |list: &[&str]| settings(&names(list)).unwrap_err().to_string();
        assert!(line(&["cslz"]).contains("--rescore: expected names of"));
        assert!(line(&["is", "is"]).contains("`is` twice"));
    }

    /// Each fold is ranked within itself, whatever the similarity: nearest neighbours are the recalls of the fold.
    #[test]
    fn folds_are_measured_one_by_one() {
        let source = testing::small_scenes([8, 6, 24]).1;
        let pairs = &source.dataset.test.pairs;
        let two = folds(pairs, 2, 12).unwrap();
        let settings =
            HubSettings { resamples: 100, ..settings(&names(&["csls", "rgm"])).unwrap() };
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let rescoring = Rescoring::of_folds(settings, &source, two.clone(), &data).unwrap();
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
                Embedded { dim: 2, images: unit(images), texts: unit(texts), similarity }
            };
            let both = [of(6), of(24)];
            let folder = dir.path().join(format!("{similarity:?}"));
            let reports = rescoring.measure(&folder, &both).unwrap();
            let all = scores(&both[1]).unwrap();
            let want = two.iter().map(|fold| {
                let ranks = Ranks::new(&fold.scores(&all), &fold.pairs).unwrap();
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
    fn one_fold_needs_no_folder_of_its_own() {
        let of = |count| folders(Path::new("a"), count).collect::<Vec<_>>();
        assert_eq!(of(1), [Path::new("a")]);
        assert_eq!(of(2), [Path::new("a/fold-1"), Path::new("a/fold-2")]);
    }
}
