//! Downloads the files that the cache lacks. An interrupted download continues where it stopped.
//!
//! The hub says the length and the ETag of each file: the SHA-256 of a large file, whose bytes come from another host, or the SHA-1 that
//! git gives a small file. Length and SHA-256 are compared; the bytes of a small file come from the host that says its ETag.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};

use super::{ModelName, SMALL_FILES, absent};
use crate::files::sha256_of;
use crate::weights::files::{NAMES, OPEN_CLIP, is_of_open_clip};
use crate::{Error, Result};

/// Downloads configurations, vocabulary and one kind of weights, all from one commit.
pub(super) fn fetch(cache: &Path, name: &ModelName) -> Result<PathBuf> {
    fetch_by(ApiBuilder::from_env(), cache, name)
}

fn fetch_by(hub: ApiBuilder, cache: &Path, name: &ModelName) -> Result<PathBuf> {
    let refused = |what: &str, e: &dyn Display| {
        Error::invalid(format!("{}@{}", name.id, name.revision), what, e)
    };
    let failed = |e: ApiError| refused("a download", &e);
    let api = hub.with_cache_dir(cache.into()).with_progress(false).build();
    let api = api.map_err(failed)?;
    let repo = |revision: &str| {
        Repo::with_revision(name.id.clone(), RepoType::Model, revision.to_string())
    };
    let info = api.repo(repo(&name.revision)).info().map_err(failed)?;
    let names: Vec<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
    // Commits and ETags become parts of paths in the cache.
    if !hexadecimal(&info.sha, &[40]) {
        return Err(refused("a commit of 40 hexadecimal digits", &info.sha));
    }
    let pinned = api.repo(repo(&info.sha));
    let kept = |revision: &str| Cache::new(cache.into()).repo(repo(revision));
    let refer = |revision: &str| kept(revision).create_ref(&info.sha).map_err(Error::io(cache));
    // So that `get` finds what another program has downloaded.
    refer(&info.sha)?;
    let arrive = |file: &str| {
        let said = api.metadata(&pinned.url(file));
        let said = said.map_err(|e| refused(&format!("{file} to be there"), &e))?;
        if said.commit_hash() != info.sha || !hexadecimal(said.etag(), &[40, 64]) {
            let got = format!("{} of {}", said.etag(), said.commit_hash());
            return Err(refused(&format!("a hash of {file} of commit {}", info.sha), &got));
        }
        let path = pinned.get(file).map_err(|e| refused(&format!("{file} to arrive"), &e))?;
        compare(&path, said.size() as u64, said.etag()).map_err(|(expected, got)| {
            remove(&path);
            let place = format!("{}@{}, {file}", name.id, name.revision);
            Error::invalid(place, expected, format!("{got}; the file was removed"))
        })?;
        Ok(())
    };
    // The small files come first, so that a folder with weights also has its configuration.
    small_of(&names).into_iter().try_for_each(arrive)?;
    let folder = kept(&info.sha).pointer_path(&info.sha);
    let mut kinds = match is_of_open_clip(&folder) {
        true => OPEN_CLIP.to_vec(), // `model.safetensors` is timm's there
        false => [&NAMES[..], &OPEN_CLIP].concat(),
    };
    // Weights that another program has downloaded come first.
    kinds.sort_by_key(|name| !folder.join(name).exists());
    weights(&names, &kinds).into_iter().try_for_each(arrive)?;
    if !folder.exists() {
        return Err(refused("config.json and weights", &"neither"));
    }
    let marks = absent(&folder);
    fs::create_dir_all(&marks).map_err(Error::io(&marks))?;
    for file in SMALL_FILES.iter().filter(|file| !names.contains(file)) {
        fs::write(marks.join(file), "").map_err(Error::io(&marks))?;
    }
    refer(&name.revision)?;
    Ok(folder)
}

fn hexadecimal(text: &str, lengths: &[usize]) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Compares a file with what the hub says of it; what was expected and what is there, if they differ.
fn compare(path: &Path, size: u64, etag: &str) -> std::result::Result<(), (String, String)> {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if bytes != size {
        return Err((format!("{size} bytes"), bytes.to_string()));
    }
    let sha256 = match etag.len() {
        64 => sha256_of(path).unwrap_or_else(|error| error.to_string()),
        _ => return Ok(()),
    };
    let same = sha256.eq_ignore_ascii_case(etag);
    if same { Ok(()) } else { Err((format!("SHA-256 {etag}"), sha256)) }
}

/// Removes a file of a snapshot and what its link leads to, so that the next start downloads it again.
fn remove(path: &Path) {
    if let Ok(blob) = fs::canonicalize(path) {
        _ = fs::remove_file(blob);
    }
    _ = fs::remove_file(path);
}

/// The files to download other than weights, with the configurations of the modules of sentence-transformers: `1_Pooling/config.json`.
fn small_of<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let folder = |name: &str| !name.is_empty() && name.chars().all(plain);
    let of_module = |name: &str| name.strip_suffix("/config.json").is_some_and(folder);
    names.iter().copied().filter(|name| SMALL_FILES.contains(name) || of_module(name)).collect()
}

/// The first kind of weights that is there, with its shards.
fn weights<'a>(names: &[&'a str], kinds: &[&str]) -> Vec<&'a str> {
    let mut files: Vec<&str> = vec![];
    let Some(weights) = kinds.iter().find(|name| names.contains(name)) else { return files };
    if weights.ends_with(".json") {
        let end = if weights.contains("safetensors") { ".safetensors" } else { ".bin" };
        let is_shard = |name: &&str| name.ends_with(end) && !name.contains(['/', '\\', ':']);
        files.extend(names.iter().copied().filter(is_shard));
    }
    files.extend(names.iter().copied().filter(|name| name == weights));
    files
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use tempfile::TempDir;

    use super::*;
    use crate::files::sha256_hex;
    use crate::weights::Hub;
    use crate::weights::hub::is_known;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// A file of a hub: name, ETag, bytes.
    type HubFile = (&'static str, String, &'static str);

    /// A hub on this machine with one model.
    fn hub(commit: &'static str, files: Vec<HubFile>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let named = |(name, ..): &HubFile| format!(r#"{{"rfilename": "{name}"}}"#);
        let list = files.iter().map(named).collect::<Vec<_>>().join(", ");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let first = lines.next().unwrap().unwrap();
                let path = first.split(' ').nth(1).unwrap().to_owned();
                let head: Vec<String> =
                    lines.map(Result::unwrap).take_while(|l| !l.is_empty()).collect();
                let range = head.iter().find_map(|line| {
                    line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned)
                });
                let asked =
                    files.iter().find(|(name, ..)| path.ends_with(&format!("{COMMIT}/{name}")));
                let Some((_, etag, body)) = asked else {
                    let body = format!(r#"{{"sha": "{commit}", "siblings": [{list}]}}"#);
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}", body.len());
                    write!(stream, "{head}\r\nConnection: close\r\n\r\n{body}").unwrap();
                    continue;
                };
                let (from, to) =
                    range.as_deref().and_then(|r| r.split_once('-')).unwrap_or(("0", ""));
                let from: usize = from.parse().unwrap();
                let to = to.parse::<usize>().map_or(body.len(), |to| (to + 1).min(body.len()));
                let part = &body[from..to];
                write!(
                    stream,
                    "HTTP/1.1 206 Partial Content\r\nETag: \"{etag}\"\r\nX-Repo-Commit: {COMMIT}\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{part}",
                    to.max(1) - 1,
                    body.len(),
                    part.len()
                )
                .unwrap();
            }
        });
        format!("http://{address}")
    }

    fn download_to(cache: &Path, endpoint: String) -> Result<PathBuf> {
        let builder = ApiBuilder::new().with_endpoint(endpoint).with_token(None);
        fetch_by(builder, cache, &ModelName::parse("a/b").unwrap())
    }

    fn download(endpoint: String) -> (TempDir, Result<PathBuf>) {
        let cache = TempDir::new().unwrap();
        let got = download_to(cache.path(), endpoint);
        (cache, got)
    }

    fn small(name: &'static str, body: &'static str) -> HubFile {
        (name, sha256_hex(body.as_bytes())[..40].into(), body)
    }

    fn large(name: &'static str, body: &'static str) -> HubFile {
        (name, sha256_hex(body.as_bytes()), body)
    }

    #[test]
    fn a_download_has_the_hash_that_the_hub_says() {
        let files = vec![small("config.json", "{}"), large("model.safetensors", "weights")];
        let (cache, got) = download(hub(COMMIT, files));
        let folder = got.unwrap();
        assert!(folder.ends_with(format!("models--a--b/snapshots/{COMMIT}")), "{folder:?}");
        assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), b"weights");
        let main = cache.path().join("models--a--b/refs/main");
        assert_eq!(fs::read_to_string(main).unwrap(), COMMIT);
    }

    #[test]
    fn other_bytes_are_refused_and_removed() {
        let (said, strange) = (sha256_hex(b"weights"), sha256_hex(b"strange"));
        let weights = ("model.safetensors", said.clone(), "strange");
        let (cache, got) = download(hub(COMMIT, vec![small("config.json", "{}"), weights]));
        let want = format!(
            "a/b@main, model.safetensors: expected SHA-256 {said}, got {strange}; the file was removed"
        );
        assert_eq!(got.unwrap_err().to_string(), want);
        let model = cache.path().join("models--a--b");
        assert!(!model.join("blobs").join(&said).exists() && !model.join("refs/main").exists());
        assert!(!model.join(format!("snapshots/{COMMIT}/model.safetensors")).exists());
    }

    /// Commit and ETag are parts of paths in the cache.
    #[test]
    fn what_a_hub_says_leads_nowhere() {
        for (endpoint, want) in [
            (
                hub("../../x", vec![small("config.json", "{}")]),
                "a commit of 40 hexadecimal digits, got ../../x",
            ),
            (
                hub(COMMIT, vec![("config.json", "../../../x".into(), "{}")]),
                "a hash of config.json of commit 0123456789abcdef0123456789abcdef01234567, got ../../../x of 0123456789abcdef0123456789abcdef01234567",
            ),
            (
                hub(COMMIT, vec![small("../config.json", "{}")]),
                "config.json and weights, got neither",
            ),
        ] {
            let (cache, got) = download(endpoint);
            assert_eq!(got.unwrap_err().to_string(), format!("a/b@main: expected {want}"));
            assert!(!cache.path().join("models--a--b/snapshots").exists());
        }
    }

    /// What a sentence model needs beside weights, and the names that its hub lacks. A copy without them is completed.
    #[test]
    fn a_half_copy_is_completed() {
        let files = || {
            vec![
                small("1_Pooling/config.json", "{\"pool\": 1}"),
                small("config.json", "{\"architectures\": [\"BertModel\"]}"),
                small("modules.json", "[]"),
                large("model.safetensors", "weights"),
            ]
        };
        let (cache, got) = download(hub(COMMIT, files()));
        let folder = got.unwrap();
        let known = || SMALL_FILES.iter().all(|file| is_known(&folder, file));
        assert!(known() && folder.join("modules.json").exists());
        assert!(!is_known(&folder, "1_Pooling/other.json") && !folder.join("vocab.txt").exists());
        assert_eq!(fs::read(folder.join("1_Pooling/config.json")).unwrap(), b"{\"pool\": 1}");
        // As an older version left it.
        let offline = Hub { cache: cache.path().into(), beside: "none".into(), offline: true };
        fs::remove_dir_all(folder.join("../../.no_exist")).unwrap();
        fs::remove_file(folder.join("modules.json")).unwrap();
        fs::remove_dir_all(folder.join("1_Pooling")).unwrap();
        let line = offline.folder("a/b").unwrap_err().to_string();
        let want = "expected modules.json, or one start online, which finds out whether there is a pool, got neither";
        assert!(line.ends_with(want), "{line}");
        download_to(cache.path(), hub(COMMIT, files())).unwrap();
        assert!(known() && folder.join("1_Pooling/config.json").exists());
        assert_eq!(offline.folder("a/b").unwrap(), folder);
    }

    /// timm's `config.json` names no architecture of transformers; its weights are in another layout.
    #[test]
    fn open_clip_has_its_own_weights() {
        let files = || {
            vec![
                small("config.json", "{\"architecture\": \"vit\"}"),
                small("open_clip_config.json", "{}"),
                large("model.safetensors", "of timm"),
                large("open_clip_pytorch_model.bin", "of open_clip"),
            ]
        };
        let (cache, got) = download(hub(COMMIT, files()));
        let folder = got.unwrap();
        assert_eq!(fs::read(folder.join("open_clip_pytorch_model.bin")).unwrap(), b"of open_clip");
        assert!(!folder.join("model.safetensors").exists());
        // As timm leaves a copy.
        fs::remove_file(folder.join("open_clip_pytorch_model.bin")).unwrap();
        fs::write(folder.join("model.safetensors"), "of timm").unwrap();
        download_to(cache.path(), hub(COMMIT, files())).unwrap();
        assert!(folder.join("open_clip_pytorch_model.bin").exists());
        fs::remove_file(folder.join("config.json")).unwrap();
        let offline = Hub { cache: cache.path().into(), beside: "none".into(), offline: true };
        assert_eq!(offline.folder("a/b").unwrap(), folder);
    }

    #[test]
    fn one_kind_of_weights_and_the_small_files_are_wanted() {
        let files = [
            "README.md",
            "config.json",
            "vocab.txt",
            "1_Pooling/config.json",
            "/config.json",
            "../config.json",
        ];
        assert_eq!(small_of(&files), ["config.json", "vocab.txt", "1_Pooling/config.json"]);
        let of = |names: &[&'static str]| weights(names, &NAMES);
        assert!(of(&files).is_empty());
        assert_eq!(
            of(&["pytorch_model.bin", "onnx/model.safetensors", "model.safetensors"]),
            ["model.safetensors"]
        );
        assert_eq!(
            of(&["model.safetensors.index.json", "m-1.safetensors", "m-2.safetensors", "p.bin"]),
            ["m-1.safetensors", "m-2.safetensors", "model.safetensors.index.json"]
        );
    }
}
