//! The folder that a command writes.

use std::fs;
use std::path::{Path, PathBuf};

use itm_core::files::{check_below, entries, read_json, sha256_of};
use itm_core::output::{Lock, write_bytes};
use itm_core::{Error, Result};
use serde_json::{Value, json};

use super::rows::{RowFiles, remove};
use crate::cli::Shard;

/// The names and ends of the files that a command may write beside the manifest, and the key of the identity that asks for them.
const FILES: [(&str, &str, &str); 6] = [
    ("pictures", "image", "npy"),
    ("pictures", "grid", "npy"),
    ("pictures", "image_ids", "txt"),
    ("captions", "text", "npy"),
    ("captions", "captions", "txt"),
    ("captions", "text_to_image", "npy"),
];

/// The files of a command: `NAME.END`, or `NAME/00002.END` of shard 2.
pub(super) struct Out<'a> {
    pub(super) folder: &'a Path,
    pub(super) shard: Option<Shard>,
}

impl Out<'_> {
    fn path(&self, name: &str, end: &str) -> PathBuf {
        match self.shard {
            Some(shard) => self.folder.join(name).join(format!("{:05}.{end}", shard.number)),
            None => self.folder.join(format!("{name}.{end}")),
        }
    }

    /// The path of a file that will be written: its folder is there.
    pub(super) fn create(&self, name: &str, end: &str) -> Result<PathBuf> {
        let path = self.path(name, end);
        let folder = path.parent().unwrap_or(self.folder);
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        Ok(path)
    }

    /// Refuses the folder while another process writes it.
    pub(super) fn lock(&self) -> Result<Lock> {
        let expected = "a folder that no other process writes";
        Lock::take(&self.create("embed", "lock")?, self.folder, expected)
    }

    /// Whether there is anything left to do. The identity of the work stands in `embed.json.part` until the manifest is written.
    pub(super) fn begun(&self, identity: &Value) -> Result<bool> {
        self.check_parts()?;
        let (manifest, begun) = (self.path("embed", "json"), self.path("embed", "json.part"));
        let (path, whole) = if manifest.exists() { (&manifest, true) } else { (&begun, false) };
        let text = serde_json::to_string_pretty(identity).expect("a value");
        if path.exists() {
            let earlier: Value = read_json(path, "a manifest of this command")?;
            // Read back like the earlier one, so that no number differs by its way through text.
            let identity: serde_json::Map<_, _> = serde_json::from_str(&text).expect("an object");
            // A command without --skip-bad stops at a bad picture, so it leaves out none of its rows so far.
            let fits = |key: &str, value: &Value| {
                earlier[key] == *value || key == "skip_bad" && earlier[key] == false
            };
            if let Some((key, value)) = identity.iter().find(|(key, value)| !fits(key, value)) {
                let place = format!("{}: {key}", path.display());
                let expected = format!("{value}, as this command has it, or another --out");
                return Err(Error::invalid(place, expected, &earlier[key]));
            }
            if whole {
                self.forget()?; // a kill came after the manifest
                return Ok(false);
            }
        } else {
            for (_, name, end) in FILES.iter().filter(|(key, ..)| !identity[key].is_null()) {
                let path = self.path(name, end);
                let expected = "a folder without files of that name, or with a manifest";
                Error::unless(!path.exists(), path.display(), expected, "a file")?;
            }
        }
        write_bytes(&begun, text.as_bytes())?;
        Ok(true)
    }

    /// Refuses a folder with parts of another number of parts: the folder is read as one file, which would have rows twice.
    fn check_parts(&self) -> Result<()> {
        let Some(shard) = self.shard else { return Ok(()) };
        let own = ["json", "json.part"].map(|end| self.path("embed", end));
        for path in entries(&self.folder.join("embed"))?.iter().filter(|path| !own.contains(path)) {
            // Another process may just have finished its part.
            let Ok(other) = read_json::<Value>(path, "a manifest") else { continue };
            let part = other["shard"].as_str().and_then(|part| part.split_once('/'));
            let fits = part.is_none_or(|(_, of)| of == shard.of.to_string());
            let expected = format_args!("one of {} parts, or another --out", shard.of);
            let place = format_args!("{}: shard", path.display());
            Error::unless(fits, place, expected, &other["shard"])?;
        }
        Ok(())
    }

    /// Writes the manifest with the hash of each file, and removes what a killed command would have needed.
    pub(super) fn finish(&self, manifest: &mut Value, files: &[PathBuf]) -> Result<()> {
        for path in files {
            let name = path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy();
            manifest["files"][name.as_ref()] = json!(sha256_of(path)?);
        }
        let text = serde_json::to_string_pretty(manifest).expect("a value") + "\n";
        write_bytes(&self.path("embed", "json"), text.as_bytes())?;
        self.forget()
    }

    /// Removes what a whole folder does not need.
    fn forget(&self) -> Result<()> {
        for name in ["image", "text"] {
            RowFiles::forget(&self.path(name, "npy"))?;
        }
        remove(&self.path("embed", "json.part"))
    }
}

/// SHA-256 of all files of a folder that belong to the model, by name: weights, configurations, word pieces.
pub(crate) fn hashes(folder: &Path) -> Result<Value> {
    let mut files = entries(folder)?;
    let list = folder.join("modules.json");
    let modules = if list.exists() { read_json(&list, "a list of modules")? } else { Value::Null };
    let modules = modules.as_array().into_iter().flatten();
    let paths = modules.filter_map(|module| module["path"].as_str());
    for module in paths.filter(|path| !path.is_empty()) {
        check_below(&format!("{}, path", list.display()), module)?;
        files.extend(entries(&folder.join(module)).unwrap_or_default());
    }
    files.sort();
    let mut hashes = serde_json::Map::new();
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        let ends = [".safetensors", ".bin", ".json", ".txt", ".model"];
        if !path.is_file() || !ends.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        hashes.insert(name, json!(sha256_of(&path)?));
    }
    Ok(hashes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An adapter is read by its own files, so nobody has read this list before.
    #[test]
    fn modules_are_below_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("1_Pooling")).unwrap();
        fs::write(folder.path().join("1_Pooling/config.json"), "{}").unwrap();
        let with = |path: &str| {
            let list = json!([{ "path": path }]).to_string();
            fs::write(folder.path().join("modules.json"), list).unwrap();
            hashes(folder.path())
        };
        let named = with("1_Pooling").unwrap();
        assert!(named["1_Pooling/config.json"].is_string(), "{named}");
        for path in ["/etc", "../other"] {
            let line = with(path).unwrap_err().to_string();
            assert!(line.contains("modules.json, path: expected a path below"), "{line}");
        }
    }
}
