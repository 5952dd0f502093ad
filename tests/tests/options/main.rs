//! `docs/options.md`, the list of all options: the values of the papers, of the released programs, and here. The page is made from the
//! presets' values and from the configurations' JSON schemas, and it must agree with them.

#![allow(clippy::unwrap_used)] // helpers of tests

mod keys;
mod page;
mod silent;

use std::path::Path;

use fne::FneConfig;
use hubness::study::Settings;
use hubness::training::{HalConfig, Objective};
use itm_core::Preset;
use naaf::NaafConfig;
use page::{Columns, Part};
use serde::Serialize;
use tags_dc::config::TagsDcConfig;

/// If this variable is set, the test writes the page instead of comparing it: `cargo xtask options`.
const WRITE: &str = "ITM_WRITE_OPTIONS";

fn of<T: Serialize>(presets: [T; 3]) -> [serde_json::Value; 3] {
    presets.map(|preset| serde_json::to_value(preset).unwrap())
}

/// The names of a preset's keys in the order of its type.
fn order(preset: impl Serialize) -> Vec<String> {
    fn add(section: &toml::Table, above: &str, names: &mut Vec<String>) {
        for (key, value) in section {
            match value {
                toml::Value::Table(inner) => add(inner, &format!("{above}{key}."), names),
                _ => names.push(format!("{above}{key}")),
            }
        }
    }
    let mut names = vec![];
    add(&toml::Table::try_from(preset).unwrap(), "", &mut names);
    names
}

/// The preset of the column `here`.
const HERE: Preset = Preset::Default;

/// Every configuration: its type, its presets in the order paper, program, here, and the keys on which each source is silent.
fn parts() -> Vec<Part> {
    let part = |title, about, schema, order, values, silent| Part {
        title,
        about,
        schema,
        order,
        columns: Columns { values, silent },
        then: vec![],
    };

    let about = "False negative elimination. In Rust `fne::FneConfig::preset`, in a file the sections below.";
    let values = of(Preset::ALL.map(FneConfig::preset));
    let fne = part("fne", about, "fne", order(FneConfig::preset(HERE)), values, silent::FNE);

    let about = "Negative-aware attention. In Rust `naaf::NaafConfig::preset`, in a file the sections below.";
    let values = of(Preset::ALL.map(NaafConfig::preset));
    let naaf = part("naaf", about, "naaf", order(NaafConfig::preset(HERE)), values, silent::NAAF);

    let about = "Tailored negative sentences, UNITER-base on Flickr30K, phase 1: the row `TAGS`. In Rust `tags_dc::config::TagsDcConfig::tags`, in a file the sections below.";
    let values = of(Preset::ALL.map(TagsDcConfig::tags));
    let order_of_tags = order(TagsDcConfig::tags(HERE));
    let mut tags = part("tags-dc", about, "tags-dc", order_of_tags, values, silent::TAGS_DC);
    let about = "Phase 2, the row `TAGS-DC`, begins with the weights of phase 1 and changes:";
    tags.then.push((about, of(Preset::ALL.map(TagsDcConfig::tags_dc))));

    let about = "Numbers of the corrections. In Rust `hubness::study::Settings::preset`, on the command line the options of `hubness report` and `hubness rescore`: `--csls-k`, `--is-beta`, …";
    let hubs = part(
        "hubness: corrections",
        about,
        "corrections",
        order(Settings::preset(HERE)),
        of(Preset::ALL.map(Settings::preset)),
        silent::HUBNESS,
    );
    let about = "Training against hubs, on Flickr30K. In Rust `hubness::training::HalConfig::preset`, in a file the sections below.";
    let objectives = [Objective::Hal, Objective::HalAaaiLocal, Objective::Hal];
    let trained = |objectives: [Objective; 3]| {
        let [paper, official, default] = objectives;
        of([
            HalConfig::preset(Preset::Paper, paper),
            HalConfig::preset(Preset::Official, official),
            HalConfig::preset(Preset::Default, default),
        ])
    };
    let title = "hubness: training";
    let mut hal = part(
        title,
        about,
        "hal",
        order(HalConfig::preset(HERE, Objective::Hal)),
        trained(objectives),
        silent::HUBNESS,
    );
    let about = "With the objectives MAX and MAX + HAL (`max`, `max_hal`). A file's preset has the objective `sum`, so a row with one of these names the rate and `decay_every` too:";
    hal.then.push((about, trained([Objective::Max, Objective::HalAaaiLocal, Objective::Max])));

    vec![fne, hubs, hal, naaf, tags]
}

#[test]
fn the_page_is_what_the_code_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = page::page(&parts());
    let path = root.join("docs/options.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let mut lines = there.lines().zip(page.lines()).enumerate();
    let place = match lines.find(|(_, (there, made))| there != made) {
        Some((k, (there, made))) => {
            format!("line {}: there is `{there}`, expected `{made}`", k + 1)
        }
        None => format!("{} bytes, expected {}", there.len(), page.len()),
    };
    assert!(
        there == page,
        "docs/options.md is not what the code says; `cargo xtask options` writes it anew. {place}"
    );
}

/// Each key that a source leaves open exists, and the page has every value of a preset: no key of a configuration is forgotten.
#[test]
fn silence_and_values_are_about_keys() {
    let parts = parts();
    let all: Vec<_> = parts.iter().map(Part::keys).collect();
    for (part, keys) in parts.iter().zip(&all) {
        let names: Vec<_> = keys.iter().map(keys::Key::name).collect();
        for value in &part.columns.values {
            for (at, _) in page::leaves(value) {
                // A value may have parts: `alpha_star = { from_epoch = 15 }`.
                let known = |name: &String| at == *name || at.starts_with(&format!("{name}."));
                assert!(names.iter().any(known), "{}: no key {at} in its type", part.title);
            }
        }
        // The two parts of `hubness` share one list of silent keys.
        let shared = || {
            let same = |other: &&Part| other.columns.silent == part.columns.silent;
            parts.iter().zip(&all).filter(move |(other, _)| same(other))
        };
        for key in part.columns.silent.iter().flat_map(|keys| keys.iter()) {
            let known = shared().any(|(_, keys)| keys.iter().any(|known| known.name() == *key));
            assert!(known, "{}: no key {key}", part.title);
        }
    }
}
