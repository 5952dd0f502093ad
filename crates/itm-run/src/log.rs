//! The run's log: one JSON object a line, cut back to the checkpoint when a run is resumed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// Training, averaged over the steps since the line before.
    Train {
        /// Epoch, from 0.
        epoch: usize,
        /// Steps done, over all epochs.
        step: usize,
        /// Mean loss.
        loss: f64,
        /// Mean norm of the gradient before clipping.
        grad_norm: f64,
        /// Share of drawn negatives with a positive hinge.
        active: f64,
    },
    /// Validation at an epoch's end.
    Validation {
        /// Epoch, from 0.
        epoch: usize,
        /// Steps done, over all epochs.
        step: usize,
        /// Sum of the six recalls.
        rsum: f64,
    },
    /// What was drawn, against the truth: sums over the observed steps of an epoch.
    Draws {
        /// Epoch, from 0.
        epoch: usize,
        /// Share of drawn negatives that are true pairs.
        drawn_true: f64,
        /// What drawing uniformly from the same candidates would give.
        uniform_true: f64,
        /// What taking the hardest of the same candidates would give.
        hardest_true: f64,
    },
}

/// An open log.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Log {
    /// Opens the log and cuts it to its first `bytes` bytes: 0 for a new run, the checkpoint's number on resuming.
    ///
    /// # Errors
    /// If the file cannot be opened or is shorter than that.
    pub fn open(path: &Path, bytes: u64) -> Result<Self> {
        let file =
            OpenOptions::new().create(true).append(true).open(path).map_err(Error::io(path))?;
        let length = file.metadata().map_err(Error::io(path))?.len();
        if length < bytes {
            let expected = format!("at least {bytes} bytes, as its checkpoint says");
            return Err(Error::invalid(path.display(), expected, length));
        }
        file.set_len(bytes).map_err(Error::io(path))?;
        Ok(Self { file, path: path.to_path_buf(), bytes })
    }

    /// Appends a line.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn write(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)
            .map_err(|e| Error::invalid(self.path.display(), "finite numbers", e))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(Error::io(&self.path))?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Bytes written so far, made durable: what a checkpoint remembers.
    ///
    /// # Errors
    /// If the system cannot sync the file.
    pub fn sync(&mut self) -> Result<u64> {
        self.file.sync_all().map_err(Error::io(&self.path))?;
        Ok(self.bytes)
    }

    /// Reads a log.
    ///
    /// # Errors
    /// If it cannot be read or a line is none.
    pub fn read(path: &Path) -> Result<Vec<Line>> {
        let text = fs::read_to_string(path).map_err(Error::io(path))?;
        text.lines()
            .enumerate()
            .map(|(n, line)| {
                let place = format!("{} line {}", path.display(), n + 1);
                serde_json::from_str(line)
                    .map_err(|e| Error::invalid(place, "a line of the log", e))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resuming_cuts_what_came_after_the_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let line = |step| Line::Validation { epoch: 0, step, rsum: 100.5 };
        let mut log = Log::open(&path, 0).unwrap();
        log.write(&line(1)).unwrap();
        let bytes = log.sync().unwrap();
        log.write(&line(2)).unwrap();
        let mut log = Log::open(&path, bytes).unwrap();
        log.write(&line(3)).unwrap();
        assert_eq!(Log::read(&path).unwrap(), [line(1), line(3)]);
        assert!(Log::open(&path, 1 << 20).unwrap_err().to_string().contains("log.jsonl"));
    }
}
