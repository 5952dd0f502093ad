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

/// One file of rows.
pub(super) struct Table {
    pub(super) path: PathBuf,
    /// Shape of a row.
    pub(super) shape: Vec<usize>,
}

impl Table {
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
pub(super) struct Rows {
    tables: Vec<(Table, File)>,
    lines: File,
    pub(super) done: Done,
}

impl Rows {
    /// Begins the files, or goes on with them.
    pub(super) fn open(tables: Vec<Table>) -> Result<Self> {
        let opened = |path: &Path| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(path).map_err(Error::io(path))
        };
        let journal = journal(&tables[0].path);
        let mut lines = opened(&journal)?;
        let mut text = String::new();
        lines.read_to_string(&mut text).map_err(Error::io(&journal))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let (mut files, mut there) = (vec![], vec![]);
        for table in &tables {
            let file = opened(&data(&table.path))?;
            there.push(file.metadata().map_err(Error::io(&table.path))?.len());
            files.push(file);
        }
        let is_there = |done: &Done| tables.iter().zip(&there).all(|(t, &n)| t.end(done.rows) <= n);
        let known = text[..whole].lines().rev().filter_map(|line| serde_json::from_str(line).ok());
        let done = known.into_iter().find(is_there).unwrap_or_default();
        lines.set_len(whole as u64).map_err(Error::io(&journal))?;
        lines.seek(SeekFrom::End(0)).map_err(Error::io(&journal))?;
        for (table, file) in tables.iter().zip(&mut files) {
            let cut = file.set_len(table.end(done.rows)).and_then(|()| file.seek(SeekFrom::End(0)));
            cut.map_err(Error::io(&table.path))?;
        }
        Ok(Self { tables: tables.into_iter().zip(files).collect(), lines, done })
    }

    /// Adds the rows of a batch to each file, and what is done then.
    pub(super) fn add(&mut self, values: &[&[f32]], done: Done) -> Result<()> {
        for ((table, file), values) in self.tables.iter_mut().zip(values) {
            assert_eq!(
                values.len(),
                (done.rows - self.done.rows) * table.width(),
                "values of a batch"
            );
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let written = file.write_all(&bytes).and_then(|()| file.sync_data());
            written.map_err(Error::io(&table.path))?;
        }
        let line = serde_json::to_string(&done).expect("numbers") + "\n";
        let written = self.lines.write_all(line.as_bytes());
        written.map_err(Error::io(&journal(&self.tables[0].0.path)))?;
        self.done = done;
        Ok(())
    }

    /// Writes the headers and gives the files their names, the first last.
    pub(super) fn finish(self) -> Result<Done> {
        for (table, mut file) in self.tables.into_iter().rev() {
            let shape = [&[self.done.rows][..], &table.shape].concat();
            let header = header("<f4", &shape);
            let written = file.seek(SeekFrom::Start(0));
            written
                .and_then(|_| file.write_all(&header))
                .and_then(|()| file.sync_all())
                .and_then(|()| fs::rename(data(&table.path), &table.path))
                .map_err(Error::io(&table.path))?;
        }
        Ok(self.done)
    }

    /// Removes the journal of finished files.
    pub(super) fn forget(first: &Path) -> Result<()> {
        let journal = journal(first);
        match fs::remove_file(&journal) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&journal)(e)),
            _ => Ok(()),
        }
    }

    /// What was done of files that already have their names.
    pub(super) fn finished(first: &Path) -> Option<Done> {
        let text = fs::read_to_string(journal(first)).ok()?;
        let last = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        last.filter(|_| first.exists() && !data(first).exists())
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
        let done = |items, rows| Done { items, rows, ..Done::default() };
        let second = dir.path().join("grid.npy");
        let open = || {
            let table =
                |path: &PathBuf, shape: &[usize]| Table { path: path.clone(), shape: shape.into() };
            Rows::open(vec![table(&path, &[2]), table(&second, &[1, 1])]).unwrap()
        };
        let mut rows = open();
        assert_eq!(rows.done, Done::default());
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
        assert_eq!(Rows::finished(&path), Some(done(3, 2)));
        let npy = itm_core::data::Npy::open(&path).unwrap();
        assert_eq!((npy.shape(), npy.to_vec().unwrap()), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
        let npy = itm_core::data::Npy::open(&second).unwrap();
        assert_eq!((npy.shape(), npy.to_vec().unwrap()), (&[2, 1, 1][..], vec![0.5, 7.0]));
        Rows::forget(&path).unwrap();
        assert_eq!(Rows::finished(&path), None);
    }
}
