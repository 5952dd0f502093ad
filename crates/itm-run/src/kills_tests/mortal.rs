//! A disk and a method that die at named points.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use itm_core::Result;
use itm_core::learn::{Batch, Items, Method, Observe, Step};
use itm_core::scored::Scored;

use crate::disk::fakes::Unsynced;
use crate::disk::{Disk, Effect, SystemDisk};

/// The points that a process passed, and the point at which the process ends.
#[derive(Debug)]
pub(super) struct Life {
    end: Option<(String, usize)>,
    passed: RefCell<BTreeMap<String, usize>>,
    phase: Cell<usize>,
    /// File with one line per phase and step whose checkpoint was durable.
    saved: PathBuf,
}

impl Life {
    /// `end` is `name:count`.
    pub(super) fn new(end: Option<String>, saved: PathBuf) -> Rc<Self> {
        let end = end.map(|end| {
            let (name, count) = end.rsplit_once(':').unwrap();
            (name.to_owned(), count.parse().unwrap())
        });
        Rc::new(Self { end, passed: RefCell::default(), phase: Cell::default(), saved })
    }

    /// Begins this phase.
    pub(super) fn begin(&self, phase: usize) {
        self.phase.set(phase);
    }

    /// Passes a point, or dies there at once, with nothing flushed or dropped.
    pub(super) fn point(&self, name: &str) {
        let mut passed = self.passed.borrow_mut();
        let count = passed.entry(name.to_owned()).or_default();
        *count += 1;
        if self.end.as_ref().is_some_and(|(end, n)| end == name && n == count) {
            std::process::abort();
        }
    }

    /// Writes the passed points, each with its count.
    pub(super) fn write_trace(&self, path: &Path) {
        let passed = self.passed.borrow();
        let lines: String = passed.iter().map(|(name, n)| format!("{name}:{n}\n")).collect();
        fs::write(path, lines).unwrap();
    }

    fn saved(&self, step: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.saved).unwrap();
        file.write_all(format!("{} {step}\n", self.phase.get()).as_bytes()).unwrap();
    }
}

/// The machine's disk, with a point before and after every effect, and one halfway through a write or the removal of a folder.
#[derive(Debug)]
pub(super) struct MortalDisk {
    life: Rc<Life>,
    renamed: RefCell<Option<String>>,
}

impl MortalDisk {
    pub(super) fn new(life: Rc<Life>) -> Rc<Self> {
        Rc::new(Self { life, renamed: RefCell::default() })
    }

    /// The name of a path in a point: `model.safetensors`, `new checkpoint`, `checkpoint`, `checkpoints`, …
    fn kind(path: &Path) -> String {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match name.strip_prefix("step-") {
            Some(step) if step.ends_with(".tmp") => "new checkpoint".into(),
            Some(_) => "checkpoint".into(),
            None if ["checkpoints", "log.jsonl"].contains(&&*name) || name.contains('.') => {
                name.into()
            }
            None => "run".into(),
        }
    }
}

impl Disk for MortalDisk {
    fn apply(&self, path: &Path, effect: Effect<'_>) -> io::Result<()> {
        let what = match effect {
            Effect::MakeFolder => "make",
            Effect::Create => "create",
            Effect::Append(_) => "write",
            Effect::Cut(_) => "cut",
            Effect::SyncFile | Effect::SyncFolder => "sync",
            Effect::Rename(_) => "rename",
            Effect::Remove => "remove",
        };
        let name = format!("{what} {}", Self::kind(path));
        self.life.point(&format!("{name}: before"));
        match effect {
            Effect::Append(bytes) => {
                let (first, second) = bytes.split_at(bytes.len() / 2);
                SystemDisk.apply(path, Effect::Append(first))?;
                self.life.point(&format!("{name}: half"));
                SystemDisk.apply(path, Effect::Append(second))?;
            }
            Effect::Remove if path.is_dir() => {
                let mut files: Vec<_> = fs::read_dir(path)?.flatten().map(|e| e.path()).collect();
                files.sort();
                files.truncate(files.len().div_ceil(2));
                files.iter().try_for_each(fs::remove_file)?;
                self.life.point(&format!("{name}: half"));
                SystemDisk.apply(path, effect)?;
            }
            // What a killed process has written stays without a sync: only a machine that stops loses it.
            effect => Unsynced.apply(path, effect)?,
        }
        if let Effect::Rename(to) = effect {
            *self.renamed.borrow_mut() = to.to_string_lossy().rsplit_once('-').map(|p| p.1.into());
        }
        if let (Effect::SyncFolder, Some(step)) = (effect, self.renamed.take()) {
            self.life.saved(&step);
        }
        self.life.point(&format!("{name}: after"));
        Ok(())
    }
}

/// A method with a point before and after each of its parts.
pub(super) struct MortalMethod {
    method: Box<dyn Method>,
    life: Rc<Life>,
}

impl MortalMethod {
    pub(super) fn new(method: Box<dyn Method>, life: Rc<Life>) -> Self {
        Self { method, life }
    }

    /// The method without the points.
    pub(super) fn alive(&self) -> &dyn Method {
        &*self.method
    }
}

impl Method for MortalMethod {
    fn non_finite(&self) -> Option<String> {
        self.method.non_finite()
    }

    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        self.life.point("epoch: before");
        self.method.begin_epoch(epoch, train)?;
        self.life.point("epoch: after");
        Ok(())
    }

    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        self.life.point("step: before");
        let step = self.method.step(batch, seed, observe)?;
        self.life.point("step: made, not counted");
        Ok(step)
    }

    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        self.life.point("validation: before");
        let scored = self.method.scored(items)?;
        self.life.point("validation: after");
        Ok(scored)
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        self.life.point("save: before");
        self.method.save(write)?;
        self.life.point("save: after");
        Ok(())
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        self.life.point("load: before");
        self.method.load(folder)?;
        self.life.point("load: after");
        Ok(())
    }

    fn start_from(&mut self, folder: &Path) -> Result<()> {
        self.method.start_from(folder)
    }
}
