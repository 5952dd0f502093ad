//! The pictures of a folder or of a list, and their rows.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use itm_core::data::{decode_image, is_picture, probe_image, sha256_hex, upright_image};
use itm_core::encoders::Embedder;
use itm_core::files::{entries, read_text};
use itm_core::vision::{Ahead, Prefetch, Transform};
use itm_core::{Error, Result};
use rayon::prelude::*;

use super::rows::{RowFile, RowFiles, Tally};
use crate::cli::{EmbedArgs, Shard};
use crate::progress;

/// The pictures of a folder or of a list.
pub(super) struct PictureList {
    pub(super) folder: PathBuf,
    pub(super) names: Vec<String>,
    /// Pictures of the folder whose names no list could say, with escapes.
    pub(super) unnamed: Vec<String>,
    /// The names of the pictures that are in other shards.
    pub(super) elsewhere: Vec<String>,
    /// SHA-256 over names and lengths of the files.
    pub(super) hash: String,
}

/// The row of each picture by its name: `None` if the picture was left out or is in another shard.
pub(super) type RowOf<'a> = HashMap<&'a str, Option<usize>>;

/// A batch of pictures ready for the model, and the pictures that could not be read.
struct PixelBatch {
    values: Vec<f32>,
    bad: Vec<(usize, Error)>,
    items: usize,
}

impl PictureList {
    pub(super) fn open(path: &Path, shard: Option<Shard>) -> Result<Self> {
        let is_folder = path.is_dir();
        let (all, unnamed) = if is_folder { found(path)? } else { (listed(path)?, vec![]) };
        let folder = if is_folder { path } else { path.parent().unwrap_or(Path::new("")) };
        let part = shard.map_or(0..all.len(), |shard| shard.part(all.len()));
        let expected = format_args!("a part with a picture, of {}", all.len());
        let got = shard.map_or(String::new(), |Shard { number, of }| format!("{number}/{of}"));
        Error::unless(shard.is_none() || !part.is_empty(), "--shard", expected, got)?;
        let elsewhere = [&all[..part.start], &all[part.end..]].concat();
        let names = all[part].to_vec();
        let line = |name: &String| {
            let length = folder.join(name).metadata().map_or(0, |file| file.len());
            format!("{length}  {name}\n")
        };
        let hash = sha256_hex(names.iter().map(line).collect::<String>().as_bytes());
        Ok(Self { folder: folder.to_path_buf(), names, unnamed, elsewhere, hash })
    }

    /// Refuses names that no list could say, or with `--skip-bad` names them.
    pub(super) fn check_names(&self, args: &EmbedArgs) -> Result<()> {
        for name in &self.unnamed {
            let place = self.folder.join(name);
            let expected = "a name of one line in UTF-8";
            let error = Error::invalid(place.display(), expected, "another");
            if !args.skip_bad {
                return Err(error);
            }
            progress::say(format!("left out: {error}"));
        }
        Ok(())
    }

    /// Writes the rows of the pictures to the first of `files`, and the rows of their patches to the second, if there is one.
    pub(super) fn write(
        &self,
        args: &EmbedArgs,
        embedder: &Embedder,
        transform: Transform,
        files: Vec<RowFile>,
    ) -> Result<Tally> {
        if let Some(done) = RowFiles::finished(&files[0].path) {
            return Ok(done);
        }
        let mut rows = RowFiles::open(files)?;
        let count = self.names.len();
        let bar = rows.bar("pictures", count);
        for batch in self.batches(rows.done.items, args, transform) {
            let PixelBatch { values, bad, items } = batch?;
            let mut done = rows.done.clone();
            for (i, error) in bad {
                if !args.skip_bad {
                    return Err(error);
                }
                progress::say(format!("left out: {error}"));
                done.bad.push(i);
            }
            done.items += items;
            let [got, patches] = match values.is_empty() {
                true => Default::default(),
                false => embedder.images(values, transform.size as usize, args.patches),
            };
            done.rows += got.len() / embedder.image_width();
            rows.add(&[&got, &patches], done)?;
            bar.inc(items as u64);
            rows.stop_if_asked("picture", count)?;
        }
        let any = rows.done.rows > 0;
        Error::unless(any, self.folder.display(), "pictures that can be read", "none")?;
        rows.finish()
    }

    /// The pictures from `first` on, decoded ahead by other threads.
    fn batches(
        &self,
        first: usize,
        args: &EmbedArgs,
        transform: Transform,
    ) -> impl Iterator<Item = Result<PixelBatch>> {
        let paths = self.names.iter().map(|name| self.folder.join(name));
        let paths: Arc<Vec<PathBuf>> = Arc::new(paths.collect());
        let (count, batch, upright) = (paths.len(), args.batch, args.upright);
        let jobs = (first..count).step_by(batch).map(move |i| i..(i + batch).min(count));
        let workers = rayon::current_num_threads();
        Prefetch::new(jobs, Ahead { workers, results: workers + 1 }, move |part| {
            let mut batch = PixelBatch { values: vec![], bad: vec![], items: part.len() };
            for i in part {
                let decode = if upright { upright_image } else { decode_image };
                match decode(&paths[i]) {
                    Ok(image) => {
                        let from = batch.values.len();
                        batch.values.resize(from + transform.len(), 0.0);
                        transform.apply(&image, &mut batch.values[from..]);
                    }
                    Err(error) => batch.bad.push((i, error)),
                }
            }
            Ok(batch)
        })
    }

    /// The names of the pictures that have rows, and of the `bad` ones.
    pub(super) fn parted(&self, bad: &[usize]) -> (Vec<&str>, Vec<&str>) {
        let bad: HashSet<usize> = bad.iter().copied().collect();
        let (left_out, kept): (Vec<_>, Vec<_>) =
            self.names.iter().map(String::as_str).enumerate().partition(|(i, _)| bad.contains(i));
        let names = |items: Vec<(usize, _)>| items.into_iter().map(|(_, name)| name).collect();
        (names(kept), names(left_out))
    }

    /// How many of these pictures have an EXIF rotation.
    pub(super) fn turned(&self, names: &[&str]) -> usize {
        let infos = names.par_iter().map(|name| probe_image(self.folder.join(name)));
        infos.filter(|info| info.as_ref().is_ok_and(|info| info.orientation != 1)).count()
    }

    /// The rows of the pictures, of which these are `kept`.
    pub(super) fn rows<'a>(&'a self, kept: &[&'a str]) -> RowOf<'a> {
        let all = self.names.iter().chain(&self.elsewhere).map(|name| (name.as_str(), None));
        all.chain(kept.iter().enumerate().map(|(row, &name)| (name, Some(row)))).collect()
    }
}

/// The names of a list; refuses a name that occurs twice.
fn listed(file: &Path) -> Result<Vec<String>> {
    let text = read_text(file)?;
    let mut seen = HashSet::new();
    for (i, name) in text.lines().enumerate() {
        let place = format_args!("{} line {}", file.display(), i + 1);
        Error::unless(!name.trim().is_empty(), place, "a file name", "an empty line")?;
        let got = format_args!("a second {name}");
        Error::unless(seen.insert(name), place, "each picture once", got)?;
    }
    Error::unless(!seen.is_empty(), file.display(), "a file name on each line", "an empty file")?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The files of a folder that end like pictures, sorted by name, and the escaped names of files that a line cannot hold.
fn found(folder: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let (mut names, mut unnamed, mut folders) = (Vec::new(), Vec::new(), 0);
    for path in entries(folder)? {
        folders += usize::from(path.is_dir());
        if is_picture(&path) && path.is_file() {
            let name = path.file_name().unwrap_or_default();
            match name.to_str().filter(|name| !name.contains(char::is_control)) {
                Some(name) => names.push(name.to_owned()),
                None => unnamed.push(name.to_string_lossy().escape_debug().to_string()),
            }
        }
    }
    let unread = match folders {
        0 => String::new(),
        n => format!("; folders inside are not read ({n}): a list can name their pictures"),
    };
    let expected = "pictures (.jpg, .jpeg, .png, .webp)";
    let any = !names.is_empty() || !unnamed.is_empty();
    Error::unless(any, folder.display(), expected, format_args!("none{unread}"))?;
    if folders > 0 {
        progress::say(format!("{}: {} pictures{unread}", folder.display(), names.len()));
    }
    Ok((names, unnamed))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Only pictures, in the order of their names; a list has its own order. Each picture stands in one part.
    #[test]
    fn pictures_of_a_folder_and_of_a_list() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["c.png", "a.JPG", "b.webp", "notes.txt"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let of = |path: &Path, shard| {
            let found = PictureList::open(path, shard).unwrap();
            (found.names, found.elsewhere, found.hash)
        };
        let (names, elsewhere, whole) = of(dir.path(), None);
        assert_eq!(
            (names, elsewhere.len()),
            (vec!["a.JPG".into(), "b.webp".into(), "c.png".into()], 0)
        );
        let (names, elsewhere, _) = of(dir.path(), Some(Shard { number: 2, of: 2 }));
        assert_eq!((names.len(), elsewhere), (2, vec!["a.JPG".to_owned()]));
        let line = PictureList::open(dir.path(), Some(Shard { number: 1, of: 4 })).err().unwrap();
        assert_eq!(line.to_string(), "--shard: expected a part with a picture, of 3, got 1/4");
        let list = dir.path().join("list.txt");
        fs::write(&list, "c.png\na.JPG\n").unwrap();
        let (names, _, hash) = of(&list, None);
        assert_eq!(names, ["c.png", "a.JPG"]);
        assert_ne!(hash, whole);
        for (text, want) in [
            ("a.JPG\na.JPG\n", "list.txt line 2: expected each picture once, got a second a.JPG"),
            ("a.JPG\n\n", "list.txt line 2: expected a file name, got an empty line"),
            ("", "list.txt: expected a file name on each line, got an empty file"),
        ] {
            fs::write(&list, text).unwrap();
            let line = PictureList::open(&list, None).err().unwrap().to_string();
            assert!(line.ends_with(want), "{line}");
        }
        let none = tempfile::tempdir().unwrap();
        let line = PictureList::open(none.path(), None).err().unwrap().to_string();
        assert!(line.ends_with("expected pictures (.jpg, .jpeg, .png, .webp), got none"), "{line}");
        fs::create_dir(none.path().join("holiday")).unwrap();
        let line = PictureList::open(none.path(), None).err().unwrap().to_string();
        let want = "got none; folders inside are not read (1): a list can name their pictures";
        assert!(line.ends_with(want), "{line}");
    }
}
