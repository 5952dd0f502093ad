//! A file of rows that a killed command leaves in a state from which the next one goes on.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use itm_core::data::npy_header;
use itm_core::encoders::Embedder;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{progress, stop};

/// Length of every header of `.npy`.
const HEADER: u64 = 128;

/// What is done, after a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Items that were read, from the first on.
    pub(super) items: usize,
    /// Rows that were written: items that could be read.
    pub(super) rows: usize,
    /// Items that could not be read, by number.
    pub(super) bad: Vec<usize>,
    /// Captions that were cut.
    pub(super) cut: usize,
}

/// One file of rows.
pub(super) struct RowFile {
    pub(super) path: PathBuf,
    /// Shape of a row.
    pub(super) shape: Vec<usize>,
}

impl RowFile {
    fn width(&self) -> usize {
        self.shape.iter().product()
    }

    /// The length of the file with some rows.
    fn end(&self, rows: usize) -> u64 {
        HEADER + (rows * self.width() * size_of::<f32>()) as u64
    }
}

/// Files `NAME.npy` with as many rows each while they grow: `NAME.npy.part`, and beside the first `NAME.done.part`, a line of
/// JSON for each batch.
///
/// The rows of a batch are on the disk before its line is. So the last whole line is true after a kill at any moment; rows
/// behind it are cut off.
pub(super) struct RowFiles {
    files: Vec<(RowFile, File)>,
    lines: File,
    pub(super) done: Tally,
}

impl RowFiles {
    /// Begins the files, or goes on with them.
    pub(super) fn open(row_files: Vec<RowFile>) -> Result<Self> {
        let opened = |path: &Path| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(path).map_err(Error::io(path))
        };
        let journal = journal(&row_files[0].path);
        let mut lines = opened(&journal)?;
        let mut text = String::new();
        lines.read_to_string(&mut text).map_err(Error::io(&journal))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let (mut files, mut there) = (vec![], vec![]);
        for of in row_files {
            let file = opened(&data(&of.path))?;
            there.push(file.metadata().map_err(Error::io(&of.path))?.len());
            files.push((of, file));
        }
        let is_there =
            |done: &Tally| files.iter().zip(&there).all(|((of, _), &n)| of.end(done.rows) <= n);
        let known = text[..whole].lines().rev().filter_map(|line| serde_json::from_str(line).ok());
        let done = known.into_iter().find(is_there).unwrap_or_default();
        lines.set_len(whole as u64).map_err(Error::io(&journal))?;
        lines.seek(SeekFrom::End(0)).map_err(Error::io(&journal))?;
        for (of, file) in &mut files {
            let cut = file.set_len(of.end(done.rows)).and_then(|()| file.seek(SeekFrom::End(0)));
            cut.map_err(Error::io(&of.path))?;
        }
        Ok(Self { files, lines, done })
    }

    /// Adds the rows of a batch to each file, and what is done then. Refuses rows that are not finite: a model with damaged weights
    /// gives such rows.
    pub(super) fn add(&mut self, values: &[&[f32]], done: Tally) -> Result<()> {
        for ((of, file), values) in self.files.iter_mut().zip(values) {
            let want = (done.rows - self.done.rows) * of.width();
            assert_eq!(values.len(), want, "values of a batch");
            Embedder::check_rows(of.path.display(), values)?;
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let written = file.write_all(&bytes).and_then(|()| file.sync_data());
            written.map_err(Error::io(&of.path))?;
        }
        let line = serde_json::to_string(&done).expect("numbers") + "\n";
        let written = self.lines.write_all(line.as_bytes());
        written.map_err(Error::io(&journal(&self.files[0].0.path)))?;
        self.done = done;
        Ok(())
    }

    /// A bar of all items, from what is done on.
    pub(super) fn bar(&self, what: &str, items: usize) -> ProgressBar {
        let bar = progress::bar(what, what, items);
        bar.set_position(self.done.items as u64);
        bar.reset_eta();
        bar
    }

    /// An error after a signal, unless everything is done.
    pub(super) fn stop_if_asked(&self, what: &str, items: usize) -> Result<()> {
        let done = self.done.items;
        let goes_on = !stop::is_asked() || done == items;
        let got = format_args!("a signal after {what} {done}; the same command goes on from there");
        Error::unless(goes_on, "itm embed", format_args!("{items} {what}s"), got)
    }

    /// Writes the headers and gives the files their names, the first last.
    pub(super) fn finish(self) -> Result<Tally> {
        for (of, mut file) in self.files.into_iter().rev() {
            let shape = [&[self.done.rows][..], &of.shape].concat();
            let header = npy_header("<f4", &shape);
            file.rewind()
                .and_then(|()| file.write_all(&header))
                .and_then(|()| file.sync_all())
                .and_then(|()| fs::rename(data(&of.path), &of.path))
                .map_err(Error::io(&of.path))?;
        }
        Ok(self.done)
    }

    /// Removes the journal of finished files.
    pub(super) fn forget(first: &Path) -> Result<()> {
        remove(&journal(first))
    }

    /// What was done of files that already have their names.
    pub(super) fn finished(first: &Path) -> Option<Tally> {
        let text = fs::read_to_string(journal(first)).ok()?;
        let last = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        last.filter(|_| first.exists() && !data(first).exists())
    }
}

/// Removes a file, if there is one.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path)(e)),
        _ => Ok(()),
    }
}

fn data(path: &Path) -> PathBuf {
    path.with_added_extension("part")
}

fn journal(first: &Path) -> PathBuf {
    first.with_extension("done.part")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kill may leave rows without a line, half a line, or a line whose rows a full disk has lost.
    #[test]
    fn what_a_kill_leaves_is_cut_back_to_whole_batches() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image.npy");
        let done = |items, rows| Tally { items, rows, ..Tally::default() };
        let second = dir.path().join("grid.npy");
        let open = || {
            let file = |path: &PathBuf, shape: &[usize]| {
                let (path, shape) = (path.clone(), shape.into());
                RowFile { path, shape }
            };
            RowFiles::open(vec![file(&path, &[2]), file(&second, &[1, 1])]).unwrap()
        };
        let mut rows = open();
        assert_eq!(rows.done, Tally::default());
        rows.add(&[&[1.0, 2.0], &[0.5]], done(2, 1)).unwrap();
        rows.add(&[&[3.0, 4.0, 5.0, 6.0], &[1.5, 2.5]], done(4, 3)).unwrap();
        drop(rows);
        let (data, journal) = (data(&path), journal(&path));
        let whole = fs::read(&data).unwrap();
        for (extra, line) in
            [(&[7u8; 5][..], ""), (&[], "{\"items\": 6, \"ro"), (&[1; 8], "{\"items\"")]
        {
            fs::write(&data, [&whole, extra].concat()).unwrap();
            let text = fs::read_to_string(&journal).unwrap();
            fs::write(&journal, text + line).unwrap();
            assert_eq!(open().done, done(4, 3));
            assert_eq!(data.metadata().unwrap().len(), whole.len() as u64);
        }
        fs::write(&data, &whole[..whole.len() - 4]).unwrap();
        let mut rows = open();
        assert_eq!(rows.done, done(2, 1));
        rows.add(&[&[3.0, 4.0], &[7.0]], done(3, 2)).unwrap();
        assert_eq!(rows.finish().unwrap(), done(3, 2));
        assert_eq!(RowFiles::finished(&path), Some(done(3, 2)));
        let npy = itm_core::data::Npy::open(&path).unwrap();
        assert_eq!((npy.shape(), npy.to_vec().unwrap()), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
        let npy = itm_core::data::Npy::open(&second).unwrap();
        assert_eq!((npy.shape(), npy.to_vec().unwrap()), (&[2, 1, 1][..], vec![0.5, 7.0]));
        RowFiles::forget(&path).unwrap();
        assert_eq!(RowFiles::finished(&path), None);
    }
}
