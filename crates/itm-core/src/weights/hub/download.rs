//! Downloads the files that the cache lacks. An interrupted download continues where it stopped.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};

use super::ModelName;
use crate::{Error, Result};

/// Files of a model other than its weights.
const SMALL: [&str; 4] = ["config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"];

/// Kinds of weights, in order of preference: the file name, and the ending of the files of that kind.
const WEIGHTS: [(&str, &str); 4] = [
    ("model.safetensors", "model.safetensors"),
    ("model.safetensors.index.json", ".safetensors"),
    ("pytorch_model.bin", "pytorch_model.bin"),
    ("pytorch_model.bin.index.json", ".bin"),
];

/// Downloads configuration, vocabulary and one kind of weights, all from one commit.
pub(super) fn fetch(cache: &Path, name: &ModelName) -> Result<PathBuf> {
    let refused = |what: &str, e: &dyn Display| {
        Error::invalid(format!("{}@{}", name.id, name.revision), what, e)
    };
    let failed = |e: ApiError| refused("a download", &e);
    let api = ApiBuilder::from_env().with_cache_dir(cache.into()).with_progress(false).build();
    let api = api.map_err(failed)?;
    let repo = |revision: &str| {
        Repo::with_revision(name.id.clone(), RepoType::Model, revision.to_string())
    };
    let info = api.repo(repo(&name.revision)).info().map_err(failed)?;
    let names: Vec<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
    let pinned = api.repo(repo(&info.sha));
    let mut folder = None;
    for file in wanted(&names) {
        let path = pinned.get(file).map_err(|e| refused(&format!("{file} to arrive"), &e))?;
        folder = path.parent().map(Path::to_path_buf);
    }
    let folder = folder.ok_or_else(|| refused("config.json and weights", &"neither"))?;
    let kept = Cache::new(cache.into()).repo(repo(&name.revision));
    kept.create_ref(&info.sha).map_err(Error::io(cache))?;
    Ok(folder)
}

/// The files to download. The small files come first, so that a folder with weights also has its configuration.
fn wanted<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut files: Vec<&str> = names.iter().copied().filter(|name| SMALL.contains(name)).collect();
    let kind = WEIGHTS.iter().find(|(name, _)| names.contains(name));
    let Some((weights, end)) = kind else { return files };
    let shards = names.iter().copied().filter(|name| name.ends_with(end) && name != weights);
    if weights.ends_with(".json") {
        files.extend(shards.filter(|name| !name.contains('/')));
    }
    files.extend(names.iter().copied().filter(|name| name == weights));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kind_of_weights_and_the_small_files_are_wanted() {
        let small = ["README.md", "config.json", "vocab.txt"];
        let with = |more: &[&'static str]| wanted(&[&small[..], more].concat());
        assert_eq!(with(&[]), ["config.json", "vocab.txt"]);
        assert_eq!(
            with(&["pytorch_model.bin", "onnx/model.safetensors", "model.safetensors"]),
            ["config.json", "vocab.txt", "model.safetensors"]
        );
        assert_eq!(
            with(&["model.safetensors.index.json", "m-1.safetensors", "m-2.safetensors", "p.bin"]),
            [
                "config.json",
                "vocab.txt",
                "m-1.safetensors",
                "m-2.safetensors",
                "model.safetensors.index.json"
            ]
        );
    }
}
