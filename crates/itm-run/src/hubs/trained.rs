//! The models that are measured: from the newest finished run of the source target, or from a run that is made now.

use std::path::{Path, PathBuf};

use itm_core::eval::Protocol;
use itm_core::{Error, Result};

use crate::bench::Bench;
use crate::config::{Config, HubsConfig};
use crate::devices::device;
use crate::disk::file_names;
use crate::run::Run;
use crate::run_dir::{Identity, RunDir, paths};
use crate::source::Source;
use crate::{cli, progress, reproduce};

/// The file that a run writes last: in its folder for the target's own table, below for other tables and for figures.
const REPORT: &str = "report.json";

/// The reports of a run. The report of the target's own table comes first.
pub(super) fn reports(run: &Path) -> Vec<PathBuf> {
    let names = file_names(run).unwrap_or_default();
    let shown = |name: &&String| name.starts_with("table-") || name.starts_with("figure-");
    let below = names.iter().filter(shown).map(|name| run.join(name).join(REPORT));
    let all = [run.join(REPORT)].into_iter().chain(below);
    all.filter(|path| path.is_file()).collect()
}

/// The source target, its data, and the identity, rows and seeds that its run must have.
pub(super) struct Wanted {
    asked: Config,
    used: Config,
    pub(super) source: Source,
    pub(super) identity: Identity,
    rows: Vec<String>,
    seeds: u64,
}

impl Wanted {
    /// Opens the data of the source target and checks all that can be checked before training.
    ///
    /// # Errors
    /// If there is no such target or row, if its data are wrong, or if it is evaluated by folds.
    pub(super) fn open(
        hubs: &HubsConfig,
        how: &cli::How,
        configs: &Path,
        rows: Vec<String>,
        seeds: u64,
    ) -> Result<Self> {
        let place = |key: &str| format!("{}, target.{key}", hubs.path.display());
        let asked = Config::load(configs, &hubs.target.source).map_err(|e| match e {
            Error::Invalid { place: at, expected, got } if at == "target" => {
                Error::invalid(place("source"), expected, got)
            }
            other => other,
        })?;
        let known: Vec<_> = asked.rows().collect();
        if let Some(row) = hubs.target.rows.iter().find(|row| !known.contains(&row.as_str())) {
            let expected = format!("rows of {}: {}", asked.name, known.join(", "));
            return Err(Error::invalid(place("rows"), expected, format!("`{row}`")));
        }
        let (used, source) = Source::open(&asked, how.data.as_deref(), configs)?;
        if used.target.protocol == Protocol::Coco1kFolds {
            let expected = "a target that is evaluated in one fold";
            return Err(Error::invalid(place("source"), expected, used.target.protocol.name()));
        }
        let identity = Identity {
            target: asked.name.clone(),
            config_sha256: used.sha256.clone(),
            data_sha256: source.dataset.sha256.clone(),
            backend: how.backend.clone(),
        };
        Ok(Self { asked, used, source, identity, rows, seeds })
    }

    /// Finds a run of the source target. Returns an unfinished run only with `--resume`.
    ///
    /// # Errors
    /// If no finished run serves, an unfinished one does, and `--resume` is missing.
    pub(super) fn look(&self, how: &cli::How) -> Result<Found> {
        let name = &self.asked.name;
        match self.find(paths(name)) {
            Found::Unfinished(path) if !how.resume => {
                let expected = format!(
                    "a finished run (`cargo xtask reproduce {name} --resume` goes on with it)"
                );
                Err(Error::invalid(path.display(), expected, format!("no {REPORT}")))
            }
            found => Ok(found),
        }
    }

    /// The models of the run that was found, or of a run that is made now.
    ///
    /// # Errors
    /// If training fails.
    pub(super) fn models(self, found: Found, how: &cli::How, configs: &Path) -> Result<Run> {
        let path = match found {
            Found::Finished(path) => path,
            Found::Unfinished(path) => {
                self.train(how, configs, Some(path.clone()))?;
                path
            }
            Found::None => {
                let (name, rows) = (&self.asked.name, self.rows.join(", "));
                progress::say(format!("No finished run of {name} with {rows}: one is made first."));
                let trained = self.train(how, configs, None)?;
                trained.expect("only a plan has no folder")
            }
        };
        let dir = RunDir::open(path, self.identity, &self.used.text)?;
        Ok(Run { bench: Bench::new(self.used, self.source, device(&how.backend)?)?, dir })
    }

    /// Says what would be trained, or that nothing would.
    ///
    /// # Errors
    /// If training would not fit.
    pub(super) fn plan(&self, found: Found, how: &cli::How, configs: &Path) -> Result<()> {
        match found {
            Found::Finished(path) => {
                progress::say(format!("Nothing is trained: models of {}", path.display()));
            }
            Found::Unfinished(path) => _ = self.train(how, configs, Some(path))?,
            Found::None => _ = self.train(how, configs, None)?,
        }
        Ok(())
    }

    fn train(
        &self,
        how: &cli::How,
        configs: &Path,
        resumed: Option<PathBuf>,
    ) -> Result<Option<PathBuf>> {
        let what = cli::What {
            rows: Some(self.rows.clone()),
            seeds: Some(self.seeds),
            ..cli::What::default()
        };
        let how = cli::How { resume: resumed.is_some(), out: resumed, ..how.clone() };
        reproduce::reproduce(self.asked.clone(), &what, &how, configs)
    }

    /// The first finished run that serves, else the first unfinished one. Says why a run does not serve.
    fn find(&self, paths: Vec<PathBuf>) -> Found {
        let mut unfinished = None;
        for path in paths {
            match self.serves(&path) {
                Ok(()) if !reports(&path).is_empty() => return Found::Finished(path),
                Ok(()) => unfinished = unfinished.or(Some(path)),
                Err(why) => progress::say(format!("Passed over: {why}")),
            }
        }
        unfinished.map_or(Found::None, Found::Unfinished)
    }

    /// Checks that a run has the same configuration, data and backend, and that a finished run has every row and seed.
    fn serves(&self, path: &Path) -> Result<()> {
        let run = RunDir::open(path.to_path_buf(), self.identity.clone(), &self.used.text)?;
        if reports(path).is_empty() {
            return Ok(());
        }
        for row in &self.rows {
            if let Some(seed) = (0..self.seeds).find(|&seed| !run.folder(row, seed).is_dir()) {
                let expected = format!("a model of {row}, seed {seed}");
                return Err(Error::invalid(path.display(), expected, "none"));
            }
        }
        Ok(())
    }
}

/// The run of the source target that was found, if any.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    Finished(PathBuf),
    Unfinished(PathBuf),
    None,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::ScenesConfig;

    fn wanted() -> Wanted {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let mut asked = Config::load(&configs, "fne-scenes").unwrap();
        let size =
            ScenesConfig { train: 110, val: 4, test: 12, pixels: 32, ..ScenesConfig::default() };
        asked.target.scenes = Some(size);
        let (used, source) = Source::open(&asked, None, &configs).unwrap();
        let identity = Identity {
            target: asked.name.clone(),
            config_sha256: used.sha256.clone(),
            data_sha256: source.dataset.sha256.clone(),
            backend: "cpu".into(),
        };
        let rows = vec!["Full".into(), "w/o MMM".into()];
        Wanted { asked, used, source, identity, rows, seeds: 2 }
    }

    #[test]
    fn only_a_finished_run_of_the_same_with_every_row_and_seed_serves() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = wanted();
        let path = |name: &str| dir.path().join(name);
        let make =
            |name: &str, identity: Identity, rows: &[(&str, u64)], finished: Option<&str>| {
                let run = RunDir::create(path(name), identity, &wanted.used.text).unwrap();
                rows.iter().for_each(|(row, seed)| _ = run.row(row, *seed).unwrap());
                finished.iter().for_each(|file| fs::write(path(name).join(file), "{}").unwrap());
            };
        let all = [("Full", 0), ("Full", 1), ("w/o MMM", 0), ("w/o MMM", 1)];
        let same = || wanted.identity.clone();
        make("good", same(), &all, Some(REPORT));
        make("short", same(), &all[..3], Some(REPORT));
        make("running", same(), &all, None);
        make("figure", same(), &all, None);
        fs::create_dir(path("figure").join("figure-2")).unwrap();
        fs::write(path("figure").join("figure-2").join(REPORT), "{}").unwrap();
        make("begun", same(), &[], None);
        let other = Identity { config_sha256: "0".repeat(64), ..same() };
        make("other", other, &all, Some(REPORT));
        fs::create_dir(path("damaged")).unwrap();
        fs::write(path("damaged").join("run.json"), "{").unwrap();

        let find = |names: &[&str]| wanted.find(names.iter().map(|n| path(n)).collect());
        assert_eq!(find(&[]), Found::None);
        assert_eq!(find(&["damaged", "other", "short"]), Found::None);
        assert_eq!(find(&["other", "begun", "running"]), Found::Unfinished(path("begun")));
        assert_eq!(find(&["running", "short", "good"]), Found::Finished(path("good")));
        assert_eq!(find(&["short", "figure"]), Found::Finished(path("figure")));
        let why = |name: &str| wanted.serves(&path(name)).unwrap_err().to_string();
        for (name, part) in
            [("other", "config_sha256"), ("short", "w/o MMM, seed 1"), ("damaged", "run.json")]
        {
            assert!(why(name).contains(part) && why(name).lines().count() == 1, "{}", why(name));
        }
    }

    #[test]
    fn a_row_that_is_not_trained_to_its_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = wanted();
        let dir = RunDir::create(dir.path().join("run"), wanted.identity, "").unwrap();
        let bench = Bench::new(wanted.used, wanted.source, device("cpu").unwrap()).unwrap();
        let line = Run { bench, dir }.trained("Full", 0).err().unwrap().to_string();
        assert!(line.contains("full/seed-0: expected a trained row, got nothing"), "{line}");
    }
}
