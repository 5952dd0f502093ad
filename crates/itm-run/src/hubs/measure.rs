//! One row with one seed: `hubness report`, in this process.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use hubness::cli::args::Cli;
use hubness::cli::commands;
use hubness::cli::report::Report;
use itm_core::{Error, Result};

use super::config::{Capacity, HubSettings, Runs, Stop};
use super::files::{DataFiles, ModelFiles};
use crate::checkpoint::write_atomically;

/// Measures a model; `report.html` and `report.json` go into the folder.
///
/// # Errors
/// What `hubness report` refuses, or if a file cannot be written.
pub(super) fn report(
    settings: &HubSettings,
    data: &DataFiles,
    model: &ModelFiles,
    folder: &Path,
) -> Result<Report> {
    let words = arguments(settings, data, model, folder);
    let cli = Cli::try_parse_from(words).map_err(|error| {
        let message = error.to_string();
        let reason = message.lines().next().unwrap_or_default();
        Error::invalid("hubness report", "arguments that it takes", reason)
    })?;
    let mut json = Vec::new();
    commands::run(cli, &mut json)?;
    let path = folder.join("report.json");
    let report = serde_json::from_slice(&json)
        .map_err(|e| Error::invalid(path.display(), "what `hubness report --json` prints", e))?;
    write_atomically(&path, &json)?;
    Ok(report)
}

fn arguments(
    settings: &HubSettings,
    data: &DataFiles,
    model: &ModelFiles,
    folder: &Path,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["hubness", "report", "--json"].map(OsString::from).into();
    words.extend(model.0.iter().flat_map(|(option, path)| [option.into(), path.into()]));
    let html = folder.join("report.html");
    for (option, path) in [
        ("--pairs", Some(&data.test_pairs)),
        ("--val-pairs", Some(&data.val_pairs)),
        ("--image-names", Some(&data.image_names)),
        ("--text-names", Some(&data.text_names)),
        ("--truth", data.truth.as_ref()),
        ("--html", Some(&html)),
    ] {
        words.extend(path.into_iter().flat_map(|path| [option.into(), path.into()]));
    }
    let capacity = match settings.rgm_capacity {
        Capacity::Balanced => "balanced",
        Capacity::Literal => "literal",
    };
    let stop = match settings.rgm_stop {
        Stop::Exhaustive => "exhaustive",
        Stop::Literal => "literal",
    };
    for (option, value) in [
        ("--method", settings.methods.join(",")),
        ("--csls-k", settings.csls_k.to_string()),
        ("--is-beta", settings.is_beta.to_string()),
        ("--rgm-lambda", settings.rgm_lambda.to_string()),
        ("--rgm-capacity", capacity.into()),
        ("--rgm-stop", stop.into()),
        ("--resamples", settings.resamples.to_string()),
        ("--seed", settings.seed.to_string()),
    ] {
        words.push(format!("{option}={value}").into());
    }
    if settings.rgm_runs == Runs::Single {
        words.push("--rgm-single-run".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::config::tests::{TEXT, parse};
    use super::*;
    use crate::method::Embedded;

    fn files(dir: &Path) -> (DataFiles, ModelFiles) {
        let at = |name: &str| dir.join(name);
        let data = DataFiles {
            val_pairs: at("val_pairs.npy"),
            test_pairs: at("test_pairs.npy"),
            image_names: at("images.txt"),
            text_names: at("texts.txt"),
            truth: Some(at("truth.json")),
        };
        // Twelve directions of a circle; each text a little off its image.
        let side = |off: f32| -> Vec<f32> {
            (0..12).flat_map(|i| [(i as f32 + off).cos(), (i as f32 + off).sin()]).collect()
        };
        let embedded = Embedded {
            dim: 2,
            images: side(0.0),
            texts: side(0.4),
            similarity: hubness::training::Similarity::Cosine,
        };
        let model = ModelFiles::write(dir, &[embedded.clone(), embedded]).unwrap();
        (data, model)
    }

    fn write_data(data: &DataFiles) {
        let rows: Vec<_> = (0..12).collect();
        let json = serde_json::to_string(&rows).unwrap();
        for path in [&data.val_pairs, &data.test_pairs] {
            std::fs::write(path, &json).unwrap();
        }
        let names: String = rows.iter().map(|i| format!("item {i}\n")).collect();
        for path in [&data.image_names, &data.text_names] {
            std::fs::write(path, &names).unwrap();
        }
        let truth: Vec<Vec<u32>> = (0..12).map(|i| vec![i]).collect();
        std::fs::write(data.truth.as_ref().unwrap(), serde_json::to_string(&truth).unwrap())
            .unwrap();
    }

    #[test]
    fn every_setting_reaches_the_report() {
        let dir = tempfile::tempdir().unwrap();
        let (data, model) = files(dir.path());
        let text = TEXT.replace("\"balanced\"", "\"literal\"").replace("\"per_k\"", "\"single\"");
        let settings = parse(&text.replace("is_beta = 30.0", "is_beta = 7.5")).unwrap().settings;
        let words = arguments(&settings, &data, &model, dir.path());
        let words: Vec<_> = words.iter().map(|w| w.to_str().unwrap()).collect();
        for word in [
            "--method=nns,rgm,csls+rgm",
            "--csls-k=10",
            "--is-beta=7.5",
            "--rgm-lambda=auto",
            "--rgm-capacity=literal",
            "--rgm-stop=exhaustive",
            "--resamples=1000",
            "--rgm-single-run",
            "--truth",
        ] {
            assert!(words.contains(&word), "no {word} in {words:?}");
        }
        let val = words.iter().position(|w| *w == "--val-images").unwrap();
        assert!(words[val + 1].ends_with("val_images.npy"), "{}", words[val + 1]);
    }

    #[test]
    fn a_report_is_written_and_read_and_what_it_refuses_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let (data, model) = files(dir.path());
        let settings = parse(TEXT).unwrap().settings;
        let line = report(&settings, &data, &model, dir.path()).unwrap_err().to_string();
        assert!(line.contains("No such file") && line.lines().count() == 1, "{line}");
        write_data(&data);
        let report = report(&settings, &data, &model, dir.path()).unwrap();
        let methods: Vec<_> = report.rows.iter().map(|row| &row.method[..]).collect();
        assert_eq!(methods, ["nns", "rgm", "csls+rgm"]);
        assert!(dir.path().join("report.html").is_file());
        let kept = std::fs::read(dir.path().join("report.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Report>(&kept).unwrap(), report);
    }
}
