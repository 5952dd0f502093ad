//! Small data for the tests of many modules.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use itm_core::eval::Protocol;
use itm_core::scored::Scored;
use itm_core::{Result, ScoreMatrix};
use itm_report::table::Table;

use crate::config::{Config, ScenesConfig};
use crate::measures::Trial;
use crate::paper::Paper;
use crate::run::Run;
use crate::run_dir::{Identity, RunDir};
use crate::source::Source;

pub(crate) fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

/// A file of printed numbers.
pub(crate) fn paper(name: &str) -> Paper {
    Paper::read(&configs().join(format!("papers/{name}.toml"))).unwrap()
}

/// `fne-scenes` with these numbers of images of the training, validation and test split, of 32 pixels.
pub(crate) fn small_scenes([train, val, test]: [usize; 3]) -> (Config, Source) {
    let mut config = Config::load(&configs(), "fne-scenes").unwrap();
    config.target.scenes =
        Some(ScenesConfig { train, val, test, pixels: 32, ..ScenesConfig::default() });
    Source::open(&config, None, &configs()).unwrap()
}

/// Test scores without a model.
pub(crate) fn trial<'a>(source: &'a Source, scores: &'a dyn Scored) -> Trial<'a> {
    Trial { row: "Full", seed: 0, source, protocol: Protocol::Full, scores, trained: None }
}

/// Scores of 3 for true pairs that nobody annotated, 2 for annotated pairs, and 1 for all others.
pub(crate) fn by_truth(source: &Source) -> ScoreMatrix {
    let (test, truth) = (&source.dataset.test.pairs, &source.truth.as_ref().unwrap().test);
    let score = |k: usize| match (k / test.texts(), k % test.texts()) {
        (i, t) if test.image_of(t) == i => 2.0,
        (i, t) if truth.contains(i, t) => 3.0,
        _ => 1.0,
    };
    let values = (0..test.images() * test.texts()).map(score).collect();
    ScoreMatrix::new(test.images(), test.texts(), values).unwrap()
}

/// The texts of a line of a table.
pub(crate) fn texts<'a>(table: &'a Table, name: &str) -> Vec<&'a str> {
    let line = table.lines.iter().position(|line| line.0 == name).unwrap();
    table.columns.iter().map(|c| c.cells[line].text.as_str()).collect()
}

/// Small values of a target's keys; keys that the target does not have are skipped. Rows have only the first three of them.
const SMALL: [(&str, &str); 19] = [
    ("warmup_epochs", "1"),
    ("batch", "8"),
    ("first_updates", "5"), // so that pairs follow
    ("dims", "8"),
    ("embed_dim", "16"),
    ("word_dim", "8"),
    ("epochs", "3"),
    ("micro_batch", "8"),
    ("bank_size", "64"),
    ("min_count", "10"),
    ("mb_rate", "0.5"),
    ("mb_k", "5"),
    ("checkpoint_steps", "4"),
    ("log_steps", "3"),
    ("observe_steps", "4"),
    ("train", "24"),
    ("val", "6"),
    ("test", "4"),
    ("images", "3"),
];

/// A target on Scenes that trains in a second.
pub(crate) fn small_run(target: &str) -> Run {
    small_run_with(target, &[])
}

/// The same with some text of the file replaced.
pub(crate) fn small_run_with(target: &str, changes: &[(&str, &str)]) -> Run {
    let (config, source) = small_target(target, changes);
    Run::new(config, source, vec![Device::flex()]).unwrap()
}

/// The same with a new folder, or with the folder of a process that was killed.
pub(crate) fn small_run_in(target: &str, changes: &[(&str, &str)], folder: &Path) -> Run {
    in_folder(small_run_with(target, changes), folder)
}

/// The run with a new folder, or with the folder of a process that was killed.
pub(crate) fn in_folder(mut run: Run, folder: &Path) -> Run {
    let identity = Identity {
        target: run.config.name.clone(),
        config_sha256: run.config.sha256.clone(),
        data_sha256: run.source.dataset.sha256.clone(),
        backend: "cpu".into(),
        set: vec![],
    };
    let open = |how: fn(PathBuf, Identity, &str) -> Result<RunDir>| {
        how(folder.to_path_buf(), identity.clone(), &run.config.text)
    };
    run.dir = Some(open(RunDir::create).or_else(|_| open(RunDir::open)).unwrap());
    run
}

/// The config and the source of [`small_run`], with some text of the file replaced.
pub(crate) fn small_target(target: &str, changes: &[(&str, &str)]) -> (Config, Source) {
    let text = Config::load(&configs(), target).unwrap().text;
    let mut in_rows = false;
    let line = |line: &str| {
        in_rows |= line.starts_with("[row.");
        let key = line.split('=').next().unwrap().trim();
        let keys = if in_rows { &SMALL[..3] } else { &SMALL };
        match keys.iter().find(|(name, _)| *name == key) {
            Some((_, value)) => format!("{key} = {value}\n"),
            None => format!("{line}\n"),
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let mut small: String = text.lines().map(line).collect();
    for (from, to) in [("pixels = 96", "pixels = 32")].iter().chain(changes) {
        assert!(small.contains(from), "{from}");
        small = small.replace(from, to);
    }
    std::fs::write(folder.path().join("small.toml"), small).unwrap();
    let config = Config::load(folder.path(), "small").unwrap();
    Source::open(&config, None, folder.path()).unwrap()
}
