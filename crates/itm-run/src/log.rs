//! The run's log: one JSON object per line, cut back to the checkpoint when a run is resumed.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use itm_core::files::read_json_lines;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::audit::DetectionAt;
use crate::disk::{Disk, Effect, apply, sync_parent};

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// Training, averaged over the steps since the previous line.
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
        /// Other numbers of the method, by name: means over the steps that gave them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        numbers: BTreeMap<String, f64>,
    },
    /// A validation: at an epoch's end, between two ends, or at step 0 if the start is ready.
    Validation {
        /// Epoch, from 0.
        epoch: usize,
        /// Steps done, over all epochs.
        step: usize,
        /// Sum of the six recalls; with `among`, of the three recalls whose queries are texts.
        rsum: f64,
        /// The number of images among which each text ranked its own image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        among: Option<usize>,
    },
    /// Drawn negatives compared with the truth, over the observed steps of an epoch.
    Draws {
        /// Epoch, from 0.
        epoch: usize,
        /// Share of drawn negatives that are true pairs.
        drawn_true: f64,
        /// The same share for uniform draws from the same candidates.
        uniform_true: f64,
        /// The same share for the hardest of the same candidates.
        hardest_true: f64,
        /// The same share for other ways to draw from the same candidates, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        others_true: BTreeMap<String, f64>,
        /// How well the posterior detects the true pairs among the candidates; empty without a posterior.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        detection: Vec<DetectionAt>,
    },
}

/// An open log.
#[derive(Debug)]
pub struct Log {
    disk: Rc<dyn Disk>,
    path: PathBuf,
    bytes: u64,
}

impl Log {
    /// Opens the log and cuts it to its first `bytes` bytes: 0 for a new run, the number in the checkpoint for a resumed run.
    ///
    /// # Errors
    /// If the file cannot be opened or is shorter than `bytes`.
    pub(crate) fn open(disk: Rc<dyn Disk>, path: &Path, bytes: u64) -> Result<Self> {
        let length = match fs::metadata(path) {
            Ok(found) => found.len(),
            Err(e) if e.kind() == ErrorKind::NotFound && bytes == 0 => {
                apply(&*disk, path, Effect::Create)?;
                sync_parent(&*disk, path)?; // otherwise a checkpoint could outlive its log
                0
            }
            Err(e) => return Err(Error::io(path)(e)),
        };
        let expected = format_args!("at least {bytes} bytes, as its checkpoint says");
        Error::unless(length >= bytes, path.display(), expected, length)?;
        if length > bytes {
            apply(&*disk, path, Effect::Cut(bytes))?;
        }
        Ok(Self { disk, path: path.to_path_buf(), bytes })
    }

    /// Appends a line.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub(crate) fn write(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)
            .map_err(|e| Error::invalid(self.path.display(), "finite numbers", e))?;
        text.push('\n');
        apply(&*self.disk, &self.path, Effect::Append(text.as_bytes()))?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Makes the log durable and returns its length in bytes, which a checkpoint stores.
    ///
    /// # Errors
    /// If the system cannot sync the file.
    pub(crate) fn sync(&mut self) -> Result<u64> {
        apply(&*self.disk, &self.path, Effect::SyncFile)?;
        Ok(self.bytes)
    }

    /// Reads a log.
    ///
    /// # Errors
    /// If the file cannot be read, or has a line that is no line of a log.
    pub fn read(path: &Path) -> Result<Vec<Line>> {
        read_json_lines(path, "a line of the log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SystemDisk;
    use crate::disk::fakes::{Failing, Fails};

    #[test]
    fn resuming_cuts_what_came_after_the_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let line = |step| Line::Validation { epoch: 0, step, rsum: 100.5, among: None };
        let disk: Rc<dyn Disk> = Rc::new(SystemDisk);
        let open = |bytes| Log::open(disk.clone(), &path, bytes);
        let line_of = |open: Result<Log>| open.unwrap_err().to_string();
        assert!(
            line_of(open(5)).contains("log.jsonl: No such file"),
            "a checkpoint without its log"
        );
        assert!(!path.exists());
        let mut log = open(0).unwrap();
        log.write(&line(1)).unwrap();
        let bytes = log.sync().unwrap();
        log.write(&line(2)).unwrap();
        let mut log = open(bytes).unwrap();
        log.write(&line(3)).unwrap();
        assert_eq!(Log::read(&path).unwrap(), [line(1), line(3)]);
        assert!(line_of(open(1 << 20)).contains("log.jsonl: expected at least 1048576 bytes"));
    }

    /// The disk is full in the middle of a line: the write is an error, and resuming cuts the partial line away.
    #[test]
    fn a_line_that_does_not_fit_is_an_error_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let line = Line::Validation { epoch: 0, step: 1, rsum: 100.5, among: None };
        let length = serde_json::to_string(&line).unwrap().len() + 1;
        for room in 0..2 * length {
            let disk = Rc::new(Failing::new(Fails::After(room)));
            let mut log = Log::open(disk, &path, 0).unwrap();
            let written = (0..2).take_while(|_| log.write(&line).is_ok()).count();
            assert_eq!(written, room / length);
            let kept = log.sync().unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), room as u64);
            Log::open(Rc::new(SystemDisk), &path, kept).unwrap();
            assert_eq!(Log::read(&path).unwrap(), vec![line.clone(); written]);
        }
    }
}
