//! Finds the folder of a published model: by its path, or by its name in a cache.

#[cfg(feature = "hub")]
mod download;

use std::env;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::WeightFiles;
use super::files::{OPEN_CLIP_CONFIG, open_clip_weights};
use crate::files::{read_json, read_text};
use crate::{Error, Result};

/// The cache of published models, in the layout that Hugging Face's programs share.
///
/// ```text
/// CACHE/models--ORG--NAME/refs/REVISION            one line: the commit
/// CACHE/models--ORG--NAME/snapshots/COMMIT/…       the files
/// CACHE/models--ORG--NAME/.no_exist/COMMIT/…       an empty file for each that the commit lacks
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hub {
    /// The first that is set: `$HF_HUB_CACHE`, `$HF_HOME/hub`, `$XDG_CACHE_HOME/huggingface/hub`; else
    /// `.cache/huggingface/hub` below the home folder.
    cache: PathBuf,
    /// `weights` below the working folder: models that a person has put there by hand.
    beside: PathBuf,
    /// Whether nothing is downloaded: `HF_HUB_OFFLINE` is 1, on, yes or true. A model that the cache lacks is then an error. It is an error in
    /// any build without the feature `hub`, too.
    offline: bool,
}

impl Hub {
    /// The cache and the network mode from the environment.
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var(name).ok(), env::home_dir())
    }

    fn from_variables(get: impl Fn(&str) -> Option<String>, home: Option<PathBuf>) -> Self {
        let set = |name| get(name).filter(|value| !value.trim().is_empty());
        let below = |folder: String| Path::new(&folder).join("hub");
        let cached = || set("XDG_CACHE_HOME").map(|c| Path::new(&c).join("huggingface/hub"));
        let default = || home.unwrap_or_default().join(".cache/huggingface/hub");
        let cache = set("HF_HUB_CACHE").map(PathBuf::from);
        let cache = cache.or_else(|| set("HF_HOME").map(below)).or_else(cached);
        let on = |value: String| ["1", "on", "yes", "true"].contains(&&*value.to_lowercase());
        let offline = set("HF_HUB_OFFLINE").is_some_and(on);
        Self { cache: cache.unwrap_or_else(default), beside: "weights".into(), offline }
    }

    /// The folder of a model. If `model` is a folder, the result is `model`. Otherwise `model` is `org/name@revision`;
    /// without `@` the revision is `main`. The result is the first that exists: for `main` the folder `weights/name`,
    /// then the folder in the cache, then a download, if that is allowed. A download continues where an earlier one
    /// stopped.
    ///
    /// A downloaded file is compared with the length and the SHA-256 that the hub says of it, and removed if it differs. The
    /// name of the folder is the commit that the revision stood for.
    ///
    /// The cache comes before the network: if a branch has moved on since the download, the old commit is used. A copy of another
    /// program or of an older version may lack files that matter here; each start asks the hub for them until it has answered.
    ///
    /// # Errors
    /// If `model` is neither a folder nor such a name, if a download fails, or if the cache lacks the model and no
    /// download is possible: offline, or in a build without the feature `hub`; then also if a copy of BERT may
    /// lack the pool of a sentence encoder.
    pub fn folder(&self, model: &str) -> Result<PathBuf> {
        if Path::new(model).is_dir() {
            return Ok(model.into());
        }
        let name = ModelName::parse(model)?;
        let beside = self.beside.join(name.last());
        if name.revision == "main" && beside.is_dir() {
            return Ok(beside);
        }
        let cached = name.cached(&self.cache);
        if let Some(folder) = &cached
            && SMALL_FILES.iter().all(|file| is_known(folder, file))
        {
            return Ok(folder.clone());
        }
        if !self.offline {
            let commit = cached.as_ref().and_then(|folder| folder.file_name()?.to_str());
            let revision = commit.unwrap_or(&name.revision).to_owned();
            let fetched = fetch(&self.cache, &ModelName { revision, ..name.clone() });
            // A file that differs from the hub's was removed: the line says so.
            if fetched.is_ok() || name.cached(&self.cache).is_none() {
                return fetched;
            }
        }
        if let Some(folder) = cached {
            check_pool(&folder)?;
            return Ok(folder);
        }
        let (beside, cache) = (beside.display(), self.cache.display());
        let expected = format!("its config.json and weights in {beside} or the cache {cache}");
        let place = format!("{}@{}", name.id, name.revision);
        Err(Error::invalid(place, expected, "no whole copy, and offline"))
    }
}

#[cfg(feature = "hub")]
use self::download::fetch;

/// Without the feature nothing is downloaded.
#[cfg(not(feature = "hub"))]
fn fetch(_: &Path, name: &ModelName) -> Result<PathBuf> {
    let ModelName { id, revision } = name;
    let place = format!("{id}@{revision}, of which there is no copy here");
    Err(Error::Feature { place, feature: "hub" })
}

/// The name of a published model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ModelName {
    /// `org/name`
    id: String,
    /// A branch, a tag or a commit.
    revision: String,
}

impl ModelName {
    fn parse(model: &str) -> Result<Self> {
        let (id, revision) = model.split_once('@').unwrap_or((model, "main"));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // Name and revision become parts of paths, so no part may be empty or lead out of the folder.
        let part = |p: &str| !p.is_empty() && !p.starts_with('.') && p.chars().all(plain);
        if id.split('/').count() == 2 && id.split('/').all(part) && revision.split('/').all(part) {
            return Ok(Self { id: id.into(), revision: revision.into() });
        }
        let place = format!("model \"{model}\"");
        Err(Error::invalid(place, "a folder or org/name@revision", "neither"))
    }

    /// The name without the organisation.
    fn last(&self) -> &str {
        self.id.rsplit('/').next().unwrap_or(&self.id)
    }

    /// The snapshot's folder, if it has configuration and weights.
    fn cached(&self, cache: &Path) -> Option<PathBuf> {
        let model = cache.join(format!("models--{}", self.id.replace('/', "--")));
        let commit = read_text(model.join("refs").join(&self.revision));
        let commit = commit.map_or_else(|_| self.revision.clone(), |line| line.trim().to_string());
        let folder = model.join("snapshots").join(commit);
        let whole = folder.join("config.json").exists() && WeightFiles::present(&folder);
        let of_open_clip =
            folder.join(OPEN_CLIP_CONFIG).exists() && open_clip_weights(&folder).exists();
        (whole || of_open_clip).then_some(folder)
    }
}

/// Files of a model, other than its weights, that a reader may want.
pub const SMALL_FILES: [&str; 12] = [
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "config.json",
    OPEN_CLIP_CONFIG,
    "preprocessor_config.json",
    "processor_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer.json",
    "tokenizer_config.json",
];

/// Whether a snapshot has a file, or the hub has none.
fn is_known(snapshot: &Path, file: &str) -> bool {
    snapshot.join(file).exists() || absent(snapshot).join(file).exists()
}

/// Where the cache has an empty file for each that a snapshot's commit lacks.
fn absent(snapshot: &Path) -> PathBuf {
    snapshot.join("../../.no_exist").join(snapshot.file_name().unwrap_or_default())
}

/// Refuses a BERT that may belong to a sentence encoder whose pool is not here: without it, rows would be others. BERTs of other
/// kinds name a head in their configuration.
fn check_pool(snapshot: &Path) -> Result<()> {
    let config: Value =
        read_json(snapshot.join("config.json"), "a JSON object").unwrap_or_default();
    let bare = config["architectures"][0] == "BertModel";
    let fits = !bare || is_known(snapshot, "modules.json");
    let expected = "modules.json, or one start online, which finds out whether there is a pool";
    Error::unless(fits, snapshot.display(), expected, "neither")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn put(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_name_is_looked_up_in_the_cache() {
        let cache = TempDir::new().unwrap();
        let hub = Hub { cache: cache.path().into(), beside: "none".into(), offline: true };
        let model = cache.path().join("models--some-org--a.model");
        let snapshot = model.join("snapshots/0a1b2c");
        let lacks = |spec: &str, name: &str| {
            let message = hub.folder(spec).unwrap_err().to_string();
            let cache = cache.path().display();
            let expected =
                format!("its config.json and weights in none/a.model or the cache {cache}");
            let want = format!("{name}: expected {expected}, got no whole copy, and offline");
            assert_eq!(message, want);
        };
        lacks("some-org/a.model", "some-org/a.model@main");
        put(model.join("refs/main"), "0a1b2c\n");
        put(model.join("refs/refs/pr/1"), "0a1b2c");
        put(snapshot.join("config.json"), "{}");
        lacks("some-org/a.model", "some-org/a.model@main"); // no weights yet
        put(snapshot.join("model.safetensors"), "");
        for spec in ["", "@main", "@0a1b2c", "@refs/pr/1"] {
            assert_eq!(hub.folder(&format!("some-org/a.model{spec}")).unwrap(), snapshot);
        }
        lacks("some-org/a.model@v2", "some-org/a.model@v2");
        lacks("other/a.model", "other/a.model@main");
        let itself = snapshot.display().to_string();
        assert_eq!(hub.folder(&itself).unwrap(), snapshot);
    }

    /// A folder in `weights` is the model of that name, unless the caller names another revision.
    #[test]
    fn a_folder_beside_comes_before_the_cache() {
        let folder = TempDir::new().unwrap();
        let (beside, cache) = (folder.path().join("weights"), folder.path().join("cache"));
        put(beside.join("a.model/config.json"), "{}");
        let hub = Hub { cache, beside: beside.clone(), offline: true };
        assert_eq!(hub.folder("org/a.model").unwrap(), beside.join("a.model"));
        assert_eq!(hub.folder("org/a.model@main").unwrap(), beside.join("a.model"));
        hub.folder("org/a.model@v2").unwrap_err();
        hub.folder("org/b.model").unwrap_err();
    }

    #[cfg(not(feature = "hub"))]
    #[test]
    fn a_build_that_cannot_fetch_says_so() {
        let cache = TempDir::new().unwrap();
        let hub = Hub { cache: cache.path().into(), beside: "none".into(), offline: false };
        let want = "a/b@main, of which there is no copy here: expected a build with the feature `hub`, got one without";
        assert_eq!(hub.folder("a/b").unwrap_err().to_string(), want);
    }

    #[test]
    fn what_is_neither_folder_nor_name_is_refused() {
        let hub = Hub { cache: "cache".into(), beside: "none".into(), offline: true };
        for model in ["a", "a/b/c", "../b", "a/..", "a/b@", "a/b@../x", "/no/such", "a b/c", ""] {
            let want =
                format!("model \"{model}\": expected a folder or org/name@revision, got neither");
            assert_eq!(hub.folder(model).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn the_environment_names_cache_and_mode() {
        let hub = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|v| v.0 == name).map(|v| v.1.to_string());
            Hub::from_variables(find, Some("/of/me".into()))
        };
        let cache =
            |path: &str, offline| Hub { cache: path.into(), beside: "weights".into(), offline };
        let allowed = |path| cache(path, false);
        assert_eq!(hub(&[]), allowed("/of/me/.cache/huggingface/hub"));
        assert_eq!(hub(&[("XDG_CACHE_HOME", "/x")]), allowed("/x/huggingface/hub"));
        assert_eq!(hub(&[("HF_HOME", "/hf"), ("XDG_CACHE_HOME", "/x")]), allowed("/hf/hub"));
        assert_eq!(hub(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/c")]), allowed("/c"));
        for (value, offline) in
            [("1", true), ("ON", true), ("True", true), ("0", false), ("", false)]
        {
            let got = hub(&[("HF_HUB_CACHE", "/c"), ("HF_HUB_OFFLINE", value)]);
            assert_eq!(got, cache("/c", offline), "{value}");
        }
    }
}
