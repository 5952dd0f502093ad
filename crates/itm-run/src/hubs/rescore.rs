//! `--rescore`: every trained row of a target under corrections for hubs, beside nearest neighbours.

use std::path::PathBuf;

use hubness::cli::methods::Method;
use hubness::cli::report::Report;
use itm_core::eval::Protocol;
use itm_core::{Error, Result};

use super::config::{Capacity, HubSettings, Runs, Setting, Stop};
use super::files::{DataFiles, EmbeddingFiles};
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
/// If a name is unknown or comes twice, or the test split is evaluated by folds.
pub(crate) fn settings(names: &[String], protocol: Protocol) -> Result<HubSettings> {
    let place = "--rescore";
    if matches!(protocol, Protocol::Coco1kFolds | Protocol::CocoFirst1k) {
        let expected = "a test split that is evaluated as a whole: re-scoring is of one matrix";
        return Err(Error::invalid(place, expected, protocol.name()));
    }
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
    data: DataFiles,
    run: RunDir,
}

impl Rescoring {
    /// Writes the files of the data.
    ///
    /// # Errors
    /// If one cannot be written.
    pub(crate) fn open(settings: HubSettings, source: &Source, run: &RunDir) -> Result<Self> {
        let data = DataFiles::write(&run.path().join("data"), source)?;
        Ok(Self { settings, data, run: run.clone() })
    }

    /// Measures a row and seed by its embeddings of the validation and the test split; `report.html` and `report.json` lie in
    /// [`folder`](Self::folder).
    ///
    /// # Errors
    /// What `hubness report` refuses, or if a file cannot be written.
    pub(crate) fn measure(&self, row: &str, seed: u64, of: &[Embedded; 2]) -> Result<Report> {
        let folder = self.folder(row, seed);
        let embeddings = EmbeddingFiles::write(&folder, of)?;
        measure::report(&self.settings, &self.data, &embeddings, &folder)
    }

    fn folder(&self, row: &str, seed: u64) -> PathBuf {
        self.run.folder(row, seed).join("rescored")
    }
}

/// The lines of a row, one a method, from its reports of each seed.
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
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn nearest_neighbours_come_first_and_once() {
        let got = settings(&names(&["csls", "nns", "is+rgm"]), Protocol::Full).unwrap();
        assert_eq!(got.methods, ["nns", "csls", "is+rgm"]);
        assert_eq!((got.csls_k, got.rgm_lambda), (Setting::Number(10.0), Setting::Auto));
        let line =
            |list: &[&str], protocol| settings(&names(list), protocol).unwrap_err().to_string();
        assert!(line(&["cslz"], Protocol::Full).contains("--rescore: expected names of"));
        assert!(line(&["is", "is"], Protocol::Full).contains("`is` twice"));
        assert!(line(&["is"], Protocol::Coco1kFolds).contains("evaluated as a whole"));
    }
}
