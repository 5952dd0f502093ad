//! Disks for tests: one without syncs, one that records effects, and one that fails.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};

use super::{Disk, Effect, SystemDisk};

/// The machine's disk without its syncs: each takes milliseconds, and no test in this process can see them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unsynced;

impl Disk for Unsynced {
    fn apply(&self, effect: Effect<'_>) -> io::Result<()> {
        match effect {
            Effect::SyncFile(path) | Effect::SyncFolder(path) => path.metadata().map(drop),
            effect => SystemDisk.apply(effect),
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

    fn line(&self, effect: Effect<'_>) -> String {
        let name = |path: &Path| match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => panic!("{} is not below {}", path.display(), self.root.display()),
        };
        match effect {
            Effect::MakeFolder(path) => format!("make {}", name(path)),
            Effect::Create(path) => format!("create {}", name(path)),
            Effect::Append(path, _) => format!("append {}", name(path)),
            Effect::Cut(path, length) => format!("cut {} to {length}", name(path)),
            Effect::SyncFile(path) => format!("sync {}", name(path)),
            Effect::SyncFolder(path) => format!("sync folder {}", name(path)),
            Effect::Rename(from, to) => format!("rename {} to {}", name(from), name(to)),
            Effect::Remove(path) => format!("remove {}", name(path)),
        }
    }
}

impl Disk for Recorder {
    fn apply(&self, effect: Effect<'_>) -> io::Result<()> {
        self.lines.borrow_mut().push(self.line(effect));
        Unsynced.apply(effect)
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
    fn apply(&self, effect: Effect<'_>) -> io::Result<()> {
        let number = self.effects.replace(self.effects.get() + 1);
        match (self.fails, effect) {
            (Fails::At(k), _) if k == number => self.full(),
            (Fails::After(room), Effect::Append(path, bytes)) => {
                let fits = bytes.len().min(room - self.bytes.get());
                Unsynced.apply(Effect::Append(path, &bytes[..fits]))?;
                self.bytes.set(self.bytes.get() + fits);
                if fits < bytes.len() { self.full() } else { Ok(()) }
            }
            _ => Unsynced.apply(effect),
        }
    }
}
