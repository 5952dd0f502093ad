//! Disks for tests: one without syncs, one that records effects, and one that fails.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, Effect, SystemDisk};

/// The machine's disk without its syncs: each takes milliseconds, and no test in this process can see them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unsynced;

impl Disk for Unsynced {
    fn apply(&self, path: &Path, effect: Effect<'_>) -> io::Result<()> {
        match effect {
            Effect::SyncFile | Effect::SyncFolder => path.metadata().map(drop),
            effect => SystemDisk.apply(path, effect),
        }
    }
}

/// Applies every effect and records it as one line, with paths below `root`.
#[derive(Debug)]
pub(crate) struct Recorder {
    root: PathBuf,
    lines: RefCell<Vec<String>>,
}

impl Recorder {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), lines: RefCell::default() }
    }

    /// The effects so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    /// The effects so far; the recorder forgets them.
    pub(crate) fn take(&self) -> Vec<String> {
        self.lines.take()
    }

    fn line(&self, path: &Path, effect: Effect<'_>) -> String {
        let below = |path: &Path| match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => panic!("{} is not below {}", path.display(), self.root.display()),
        };
        let name = below(path);
        match effect {
            Effect::MakeFolder => format!("make {name}"),
            Effect::Create => format!("create {name}"),
            Effect::Append(_) => format!("append {name}"),
            Effect::Cut(length) => format!("cut {name} to {length}"),
            Effect::SyncFile => format!("sync {name}"),
            Effect::SyncFolder => format!("sync folder {name}"),
            Effect::Rename(to) => format!("rename {name} to {}", below(to)),
            Effect::Remove => format!("remove {name}"),
        }
    }
}

impl Disk for Recorder {
    fn apply(&self, path: &Path, effect: Effect<'_>) -> io::Result<()> {
        self.lines.borrow_mut().push(self.line(path, effect));
        Unsynced.apply(path, effect)
    }
}

/// When a disk fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fails {
    /// At this effect, counted from 0, and at no other.
    At(usize),
    /// After this number of bytes: what fits is written, then the disk is full.
    After(usize),
}

/// A disk that fails.
#[derive(Debug)]
pub(crate) struct Failing {
    fails: Fails,
    effects: Cell<usize>,
    bytes: Cell<usize>,
    failures: Cell<usize>,
}

impl Failing {
    pub(crate) fn new(fails: Fails) -> Self {
        Self { fails, effects: Cell::new(0), bytes: Cell::new(0), failures: Cell::new(0) }
    }

    /// How often it has failed.
    pub(crate) fn failures(&self) -> usize {
        self.failures.get()
    }

    fn full(&self) -> io::Result<()> {
        self.failures.set(self.failures.get() + 1);
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }
}

impl Disk for Failing {
    fn apply(&self, path: &Path, effect: Effect<'_>) -> io::Result<()> {
        let number = self.effects.replace(self.effects.get() + 1);
        match (self.fails, effect) {
            (Fails::At(k), _) if k == number => self.full(),
            (Fails::After(room), Effect::Append(bytes)) => {
                let fits = bytes.len().min(room - self.bytes.get());
                Unsynced.apply(path, Effect::Append(&bytes[..fits]))?;
                self.bytes.set(self.bytes.get() + fits);
                if fits < bytes.len() { self.full() } else { Ok(()) }
            }
            _ => Unsynced.apply(path, effect),
        }
    }
}
