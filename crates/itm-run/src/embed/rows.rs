//! A file of rows that a killed command leaves in a state from which the next one goes on.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::npy::header;

/// Length of every header of `.npy`.
const HEADER: u64 = 128;

/// What is done, after a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    /// Items that were read, from the first on.
    pub(super) items: usize,
    /// Rows that were written: items that could be read.
    pub(super) rows: usize,
    /// Items that could not be read, by number.
    pub(super) bad: Vec<usize>,
    /// Captions that were cut.
    pub(super) cut: usize,
}

/// `NAME.npy` while it grows: `NAME.npy.part`, and beside it `NAME.done.part`, a line of JSON for each batch.
///
/// The rows of a batch are on the disk before its line is. So the last whole line is true after a kill at any moment; rows
/// behind it are cut off.
pub(super) struct Rows {
    path: PathBuf,
    rows: File,
    lines: File,
    width: usize,
    pub(super) done: Done,
}

impl Rows {
    /// Begins a file, or goes on with one.
    pub(super) fn open(path: PathBuf, width: usize) -> Result<Self> {
        let [data, journal] = parts(&path);
        let opened = |path: &Path| {
            let file =
                File::options().read(true).write(true).create(true).truncate(false).open(path);
            file.map_err(Error::io(path))
        };
        let (mut rows, mut lines) = (opened(&data)?, opened(&journal)?);
        let mut text = String::new();
        lines.read_to_string(&mut text).map_err(Error::io(&journal))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let written = rows.metadata().map_err(Error::io(&data))?.len();
        let end = |done: &Done| HEADER + (done.rows * width * size_of::<f32>()) as u64;
        let known = text[..whole].lines().rev().filter_map(|line| serde_json::from_str(line).ok());
        let done = known.into_iter().find(|done| end(done) <= written).unwrap_or_default();
        lines.set_len(whole as u64).map_err(Error::io(&journal))?;
        lines.seek(SeekFrom::End(0)).map_err(Error::io(&journal))?;
        rows.set_len(end(&done)).map_err(Error::io(&data))?;
        rows.seek(SeekFrom::End(0)).map_err(Error::io(&data))?;
        Ok(Self { path, rows, lines, width, done })
    }

    /// Adds the rows of a batch, and what is done then.
    pub(super) fn add(&mut self, values: &[f32], done: Done) -> Result<()> {
        assert_eq!(values.len(), (done.rows - self.done.rows) * self.width, "values of a batch");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let [data, journal] = parts(&self.path);
        let written = self.rows.write_all(&bytes).and_then(|()| self.rows.sync_data());
        written.map_err(Error::io(&data))?;
        let line = serde_json::to_string(&done).expect("numbers") + "\n";
        self.lines.write_all(line.as_bytes()).map_err(Error::io(&journal))?;
        self.done = done;
        Ok(())
    }

    /// Writes the header and gives the file its name.
    pub(super) fn finish(mut self) -> Result<Done> {
        let [data, _] = parts(&self.path);
        let header = header("<f4", &[self.done.rows, self.width]);
        let written = self.rows.seek(SeekFrom::Start(0));
        written
            .and_then(|_| self.rows.write_all(&header))
            .and_then(|()| self.rows.sync_all())
            .and_then(|()| fs::rename(&data, &self.path))
            .map_err(Error::io(&self.path))?;
        Ok(self.done)
    }

    /// Removes the journal of a finished file.
    pub(super) fn forget(path: &Path) -> Result<()> {
        let [_, journal] = parts(path);
        match fs::remove_file(&journal) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&journal)(e)),
            _ => Ok(()),
        }
    }

    /// What was done of a file that already has its name.
    pub(super) fn finished(path: &Path) -> Option<Done> {
        let [data, journal] = parts(path);
        let text = fs::read_to_string(journal).ok()?;
        let last = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        last.filter(|_| path.exists() && !data.exists())
    }
}

fn parts(path: &Path) -> [PathBuf; 2] {
    [path.with_added_extension("part"), path.with_extension("done.part")]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kill may leave rows without a line, half a line, or a line whose rows a full disk has lost.
    #[test]
    fn what_a_kill_leaves_is_cut_back_to_whole_batches() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image.npy");
        let done = |items, rows| Done { items, rows, ..Done::default() };
        let mut rows = Rows::open(path.clone(), 2).unwrap();
        assert_eq!(rows.done, Done::default());
        rows.add(&[1.0, 2.0], done(2, 1)).unwrap();
        rows.add(&[3.0, 4.0, 5.0, 6.0], done(4, 3)).unwrap();
        drop(rows);
        let [data, journal] = parts(&path);
        let whole = fs::read(&data).unwrap();
        for (extra, line) in
            [(&[7u8; 5][..], ""), (&[], "{\"items\": 6, \"ro"), (&[1; 8], "{\"items\"")]
        {
            fs::write(&data, [&whole, extra].concat()).unwrap();
            let text = fs::read_to_string(&journal).unwrap();
            fs::write(&journal, text + line).unwrap();
            let rows = Rows::open(path.clone(), 2).unwrap();
            assert_eq!(rows.done, done(4, 3));
            assert_eq!(rows.rows.metadata().unwrap().len(), whole.len() as u64);
        }
        fs::write(&data, &whole[..whole.len() - 4]).unwrap();
        let mut rows = Rows::open(path.clone(), 2).unwrap();
        assert_eq!(rows.done, done(2, 1));
        rows.add(&[3.0, 4.0], done(3, 2)).unwrap();
        assert_eq!(rows.finish().unwrap(), done(3, 2));
        assert_eq!(Rows::finished(&path), Some(done(3, 2)));
        let npy = itm_core::data::Npy::open(&path).unwrap();
        assert_eq!((npy.shape(), npy.to_vec().unwrap()), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
        Rows::forget(&path).unwrap();
        assert_eq!(Rows::finished(&path), None);
    }
}
