//! The memory that a training takes, measured in steps that are made before it starts, and whether it fits.

mod dry;
mod memory;

use itm_core::data::Split;
use itm_core::{Error, Result};
use itm_report::format::bytes;

pub(crate) use dry::memory;

use crate::cli;
use crate::source::Source;
use crate::system;
use memory::available;

/// Bytes that a training takes besides the program and its data.
///
/// ```text
/// own  = max(step, kept + scores)
/// peak = resident before + own · trainings at a time
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Captions that a step holds at once.
    pub(crate) captions: usize,
    /// The key of their number.
    pub(crate) key: &'static str,
    /// The most during a step on so many captions, and while a checkpoint is put together.
    pub(crate) step: u64,
    /// What stays after the step: weights, moments, banks.
    pub(crate) kept: u64,
    /// The largest matrix of scores in an evaluation.
    pub(crate) scores: u64,
}

impl Memory {
    /// The memory of `trainings` such trainings at a time, all at their largest moment.
    pub(crate) fn of(&self, trainings: usize) -> u64 {
        self.step.max(self.kept.saturating_add(self.scores)).saturating_mul(trainings as u64)
    }

    /// Refuses a training that does not fit with `trainings` at a time; `place` names its row.
    ///
    /// # Errors
    /// If there is less memory than that. One line has all numbers, and says which key to lower.
    pub(crate) fn check(&self, place: &str, trainings: usize, room: Room) -> Result<()> {
        let (needed, key) = (self.of(trainings), self.key);
        let expected = format!("a training in at most {}", room.left_in_words());
        let (times, fewer) = match trainings {
            1 => (String::new(), ""),
            n => (format!(" for {n} at a time, each"), "fewer --jobs, "),
        };
        let got = format!("{} ({needed} bytes){times}: {self}", bytes(needed));
        let got = format!("{got}; {fewer}a smaller {key} or a smaller model takes less");
        Error::unless(room.fits(needed), format!("memory, {place}"), expected, got)
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { captions, step, kept, scores, .. } = *self;
        let [step, kept, scores] = [step, kept, scores].map(bytes);
        write!(
            f,
            "a step on {captions} captions {step}, weights and moments {kept}, scores {scores}"
        )
    }
}

/// How much memory there is for trainings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes of the program and its data, which are there already; `None` if the system does not report them.
    pub(crate) resident: Option<u64>,
    /// `--memory-limit`, for the whole process.
    pub(crate) given: Option<u64>,
    /// Without `--memory-limit`, the machine's available memory, for what is not resident yet. `None` if the system does not report it, or a device
    /// has memory of its own.
    pub(crate) available: Option<u64>,
}

impl Room {
    /// The room now: what the command line gives, or the memory of the machine if the backend computes there.
    pub(crate) fn of(how: &cli::How) -> Self {
        let of_the_machine = ["cpu", "tch"].contains(&how.backend.as_str());
        let (resident, given) = (system::settled_memory_bytes(), how.memory_limit);
        let unlimited = of_the_machine && given.is_none();
        Self { resident, given, available: if unlimited { available() } else { None } }
    }

    /// Bytes left for trainings; `None` if that is not known.
    fn left(self) -> Option<u64> {
        let resident = self.resident?;
        self.given.map(|limit| limit.saturating_sub(resident)).or(self.available)
    }

    /// Half of what is left for each of `trainings` such trainings at a time; 0 if that is not known.
    pub(crate) fn spare(self, memory: &Memory, trainings: usize) -> u64 {
        let left = self.left().unwrap_or(0).saturating_sub(memory.of(trainings));
        left / 2 / (trainings as u64).max(1)
    }

    /// Whether so many bytes fit; whatever is not known fits.
    pub(crate) fn fits(self, needed: u64) -> bool {
        self.left().is_none_or(|left| needed <= left)
    }

    /// Whether a training is worth measuring: whether the room is known.
    pub(crate) fn is_known(self) -> bool {
        self.left().is_some()
    }

    fn left_in_words(self) -> String {
        let left = self.left().unwrap_or(u64::MAX);
        let of_given = |limit| format!("left of the {limit} bytes given");
        let of = self.given.map_or("available".to_owned(), of_given);
        format!("{} ({left} bytes {of})", bytes(left))
    }
}

impl std::fmt::Display for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let resident = self.resident.map_or("unknown".to_owned(), bytes);
        write!(f, "program and data {resident}, ")?;
        match (self.given, self.available) {
            (Some(n), _) => write!(f, "limit {}", bytes(n)),
            (None, Some(n)) => write!(f, "available {}", bytes(n)),
            (None, None) => f.write_str("available unknown"),
        }
    }
}

/// The bytes of the largest matrix of scores that an evaluation holds: two tables of f32, and a third while it is made.
fn scores(source: &Source) -> u64 {
    let parts = [&source.dataset.val, &source.dataset.test];
    let pairs =
        parts.map(|part| (part.pairs.images() as u64).saturating_mul(part.pairs.texts() as u64));
    pairs.into_iter().max().unwrap_or(0).saturating_mul(12)
}

/// Describes the regions of the training images, and the bytes of regions in files; `None` without regions.
pub(crate) fn regions(source: &Source) -> Option<String> {
    let all = Split::ALL.map(|split| source.part(split).0.regions.as_ref());
    let mapped: u64 = all.iter().flatten().map(|regions| regions.mapped_bytes()).sum();
    let mapped = match mapped {
        0 => "in memory".into(),
        n => format!("{} of files that are read on demand, not held", bytes(n)),
    };
    all[0].map(|train| format!("{}, {mapped}", train.describe()))
}

#[cfg(test)]
mod tests {
    use itm_core::data::RegionSource;
    use scenes::{Scenes, export};

    use super::*;
    use crate::config::{Config, ScenesConfig};
    use crate::tests;

    const MEMORY: Memory = Memory {
        captions: 128,
        key: "train.batch",
        step: 300 << 20,
        kept: 100 << 20,
        scores: 20 << 20,
    };

    const UNKNOWN: Room = Room { resident: Some(50 << 20), given: None, available: None };

    const fn available(bytes: u64) -> Room {
        Room { available: Some(bytes), ..UNKNOWN }
    }

    const fn given(bytes: u64) -> Room {
        Room { given: Some(bytes), ..UNKNOWN }
    }

    /// By hand: a step is the largest moment, unless weights and scores are larger; each training has its own.
    #[test]
    fn the_largest_moment_counts() {
        assert_eq!((MEMORY.of(1), MEMORY.of(3)), (300 << 20, 900 << 20));
        assert_eq!(Memory { scores: 201 << 20, ..MEMORY }.of(1), 301 << 20);
        assert_eq!(Memory { kept: u64::MAX, ..MEMORY }.of(2), u64::MAX, "no overflow");
        let spare = |room: Room, trainings| room.spare(&MEMORY, trainings);
        assert_eq!(spare(available(1000 << 20), 2), 100 << 20);
        assert_eq!([spare(available(1000 << 20), 4), spare(UNKNOWN, 1)], [0, 0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        MEMORY.check("row.Full", 1, UNKNOWN).unwrap();
        MEMORY.check("row.Full", 1, available(300 << 20)).unwrap();
        MEMORY.check("row.Full", 1, available((300 << 20) - 1)).unwrap_err();
        MEMORY.check("row.Full", 1, given(350 << 20)).unwrap();
        let unknown = Room { resident: None, ..available(1) };
        MEMORY.check("row.Full", 1, unknown).unwrap();
        let line =
            |trainings, room| MEMORY.check("row.Full", trainings, room).unwrap_err().to_string();
        assert_eq!(
            line(1, given(314_572_800)),
            "memory, row.Full: expected a training in at most 250.00 MiB (262144000 bytes left of the 314572800 bytes given), \
             got 300.00 MiB (314572800 bytes): a step on 128 captions 300.00 MiB, weights and moments 100.00 MiB, scores 20.00 MiB; \
             a smaller train.batch or a smaller model takes less"
        );
        let two = line(2, available(300 << 20));
        assert!(two.contains("(629145600 bytes) for 2 at a time, each: a step"), "{two}");
        assert!(
            two.ends_with("; fewer --jobs, a smaller train.batch or a smaller model takes less")
        );
    }

    /// Regions of Scenes are in memory, and regions of a folder are not. There are 12 images of 12 regions of 704 numbers.
    #[test]
    fn regions_in_files_are_told() {
        let (mut config, plain) = tests::small_scenes([7, 2, 3]);
        config.target.regions = Some(RegionSource::Given);
        let open = |config: &Config, data| Source::open(config, data, &tests::configs()).unwrap();
        let held = open(&config, None).1;
        let folder = tempfile::tempdir().unwrap();
        let sizes = ScenesConfig { train: 7, val: 2, test: 3, pixels: 32, ..Default::default() };
        export(&Scenes::generate(0, sizes.sizes()), folder.path()).unwrap();
        let mut config = Config::load(&tests::configs(), "fne-flickr8k").unwrap();
        config.target.regions = Some(RegionSource::Given);
        let mapped = open(&config, Some(folder.path())).1;
        assert_eq!(regions(&plain), None);
        let begin = "12 regions per image, 704 wide, with boxes, ";
        assert_eq!(regions(&held).unwrap(), format!("{begin}in memory"));
        let line = regions(&mapped).unwrap();
        assert!(
            line.starts_with(begin) && line.ends_with("of files that are read on demand, not held")
        );
        // 12 · 12 · 704 numbers of f16, and three headers.
        assert!(line.contains(" 198.37 KiB ") || line.contains(" 198.38 KiB "), "{line}");
    }
}
