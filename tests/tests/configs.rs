//! Every config in `configs/` is whole: each row reads into its method's configuration, which validates.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::{Path, PathBuf};

use fne::FneConfig;
use itm_run::config::{Config, Method};

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

#[test]
fn every_row_of_every_target_is_valid() {
    let names = Config::names(&configs()).unwrap();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let config = Config::load(&configs(), &name).unwrap();
        for row in config.rows() {
            match config.target.method {
                Method::Fne => config.row::<FneConfig>(row).unwrap().validate().unwrap(),
            }
        }
    }
}

#[test]
fn a_substitute_is_a_target_with_the_same_rows() {
    for name in Config::names(&configs()).unwrap() {
        let config = Config::load(&configs(), &name).unwrap();
        let Some(substitute) = &config.target.substitute else { continue };
        let other = Config::load(&configs(), substitute).unwrap();
        assert!(config.rows().eq(other.rows()), "{name} and {substitute}");
        assert!(
            other.target.scenes.is_some(),
            "{substitute} must run on data that are always there"
        );
    }
}

/// The rows of the FNE targets differ in what their names say and in nothing else.
#[test]
fn fne_rows_differ_in_one_key() {
    for name in ["fne-flickr", "fne-flickr8k", "fne-scenes"] {
        let config = Config::load(&configs(), name).unwrap();
        let row = |name| config.row::<FneConfig>(name).unwrap();
        let full = row("Full");
        let mut without_bank = full.clone();
        without_bank.sampler.bank_size = 0;
        assert_eq!(row("w/o MMM"), without_bank, "{name}");
        for (row_name, negatives) in
            [("w/o FNE", fne::Negatives::Hardest), ("w/o MMM+FNE", fne::Negatives::InBatch)]
        {
            let mut other = full.clone();
            other.sampler.negatives = negatives;
            assert_eq!(row(row_name), other, "{name}");
        }
    }
}
