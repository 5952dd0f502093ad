//! Downloads the files that the cache lacks. An interrupted download continues where it stopped.
//!
//! The hub says the length and the ETag of each file: the SHA-256 of a large file, whose bytes come from another host, or the SHA-1 that
//! git gives a small file. Length and SHA-256 are compared; the bytes of a small file come from the host that says its ETag.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::{ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};

use super::ModelName;
use crate::files::sha256_of;
use crate::weights::files::NAMES;
use crate::{Error, Result};

/// Files of a model other than its weights.
const SMALL: [&str; 4] = ["config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"];

/// Downloads configuration, vocabulary and one kind of weights, all from one commit.
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
    let mut folder = None;
    for file in wanted(&names) {
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
        folder = path.parent().map(Path::to_path_buf);
    }
    let folder = folder.ok_or_else(|| refused("config.json and weights", &"neither"))?;
    let kept = Cache::new(cache.into()).repo(repo(&name.revision));
    kept.create_ref(&info.sha).map_err(Error::io(cache))?;
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

/// The files to download. The small files come first, so that a folder with weights also has its configuration.
fn wanted<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut files: Vec<&str> = names.iter().copied().filter(|name| SMALL.contains(name)).collect();
    let Some(weights) = NAMES.iter().find(|name| names.contains(name)) else { return files };
    if weights.ends_with(".json") {
        let end = if weights.contains("safetensors") { ".safetensors" } else { ".bin" };
        let is_shard = |name: &&str| name.ends_with(end) && !name.contains('/');
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

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    const SMALL_ETAG: &str = "89abcdef0123456789abcdef0123456789abcdef";

    /// A hub on this machine with one model; `config` and `weights` are the ETags and the bytes of its two files.
    fn hub(
        commit: &'static str,
        config: (String, &'static str),
        weights: (String, &'static str),
    ) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
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
                let (etag, body) = match &path {
                    path if path.ends_with("config.json") => config.clone(),
                    path if path.ends_with("model.safetensors") => weights.clone(),
                    _ => {
                        let files =
                            r#"[{"rfilename": "config.json"}, {"rfilename": "model.safetensors"}]"#;
                        let body = format!(r#"{{"sha": "{commit}", "siblings": {files}}}"#);
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}", body.len());
                        write!(stream, "{head}\r\nConnection: close\r\n\r\n{body}").unwrap();
                        continue;
                    }
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

    fn download(endpoint: String) -> (TempDir, Result<PathBuf>) {
        let cache = TempDir::new().unwrap();
        let builder = ApiBuilder::new().with_endpoint(endpoint).with_token(None);
        let got = fetch_by(builder, cache.path(), &ModelName::parse("a/b").unwrap());
        (cache, got)
    }

    fn small() -> (String, &'static str) {
        (SMALL_ETAG.into(), "{}")
    }

    #[test]
    fn a_download_has_the_hash_that_the_hub_says() {
        let endpoint = hub(COMMIT, small(), (sha256_hex(b"weights"), "weights"));
        let (cache, got) = download(endpoint);
        let folder = got.unwrap();
        assert!(folder.ends_with(format!("models--a--b/snapshots/{COMMIT}")), "{folder:?}");
        assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), b"weights");
        let main = cache.path().join("models--a--b/refs/main");
        assert_eq!(fs::read_to_string(main).unwrap(), COMMIT);
    }

    #[test]
    fn other_bytes_are_refused_and_removed() {
        let endpoint = hub(COMMIT, small(), (sha256_hex(b"weights"), "strange"));
        let (cache, got) = download(endpoint);
        let (said, strange) = (sha256_hex(b"weights"), sha256_hex(b"strange"));
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
            (hub("../../x", small(), small()), "a commit of 40 hexadecimal digits, got ../../x"),
            (
                hub(COMMIT, ("../../../x".into(), "{}"), small()),
                "a hash of config.json of commit 0123456789abcdef0123456789abcdef01234567, got ../../../x of 0123456789abcdef0123456789abcdef01234567",
            ),
        ] {
            let (cache, got) = download(endpoint);
            assert_eq!(got.unwrap_err().to_string(), format!("a/b@main: expected {want}"));
            assert!(!cache.path().join("models--a--b/snapshots").exists());
        }
    }

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
