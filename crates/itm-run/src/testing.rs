//! Small data for the tests of many modules.

use std::path::{Path, PathBuf};

use crate::config::{Config, ScenesConfig};
use crate::source::Source;

pub(crate) fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

/// `fne-scenes` with so many images of the training, validation and test split, of 32 pixels.
pub(crate) fn small_scenes([train, val, test]: [usize; 3]) -> (Config, Source) {
    let mut config = Config::load(&configs(), "fne-scenes").unwrap();
    config.target.scenes = Some(ScenesConfig { seed: 0, train, val, test, pixels: 32 });
    Source::open(&config, None, &configs()).unwrap()
}
