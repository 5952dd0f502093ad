//! Every config in `configs/` is whole: each row reads into its method's configuration, which validates.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::{Path, PathBuf};

use fne::FneConfig;
use hubness::training::HalConfig;
use itm_run::config::{AnyConfig, Config, Method};
use itm_run::paper::inferences;

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

/// Every target that trains.
fn trained() -> Vec<Config> {
    let load = |name: &String| match AnyConfig::load(&configs(), name).unwrap() {
        AnyConfig::Trained(config) => Some(*config),
        AnyConfig::Hubs(_) => None,
    };
    Config::names(&configs()).unwrap().iter().filter_map(load).collect()
}

#[test]
fn every_row_of_every_target_is_valid() {
    let names = Config::names(&configs()).unwrap();
    assert!(names.len() >= 3, "{names:?}");
    for config in trained() {
        for row in config.rows() {
            match config.target.method {
                Method::Fne => config.row::<FneConfig>(row).unwrap().validate().unwrap(),
                Method::Hal => config.row::<HalConfig>(row).unwrap().validate().unwrap(),
            }
        }
    }
}

#[test]
fn a_substitute_is_a_target_with_the_same_rows() {
    for config in trained() {
        let name = &config.name;
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

/// The targets that train nothing name rows that another one trains, and the paper's inferences in the paper's order.
#[test]
fn hubs_are_measured_of_rows_that_are_trained() {
    for name in ["hubness-flickr8k", "hubness-scenes"] {
        let AnyConfig::Hubs(hubs) = AnyConfig::load(&configs(), name).unwrap() else {
            panic!("{name} trains");
        };
        let source = Config::load(&configs(), &hubs.target.source).unwrap();
        let known: Vec<_> = source.rows().collect();
        assert!(hubs.target.rows.iter().all(|row| known.contains(&&row[..])), "{name}");
        let printed = inferences().iter().take(7).map(|r| r.inference.to_lowercase());
        assert!(printed.eq(hubs.settings.methods.iter().cloned()), "{name}");
        assert!(Config::load(&configs(), name).is_err(), "{name} is no target that trains");
    }
}
