use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::slice;

use itm_core::Error;

use super::*;
use crate::disk::fakes::Unsynced;
use crate::tests;

/// A model with irregular scores. It records the blocks that it scores, and fails after `lasts` blocks.
struct Counted {
    images: usize,
    texts: usize,
    asked: RefCell<Vec<Range<usize>>>,
    /// Blocks that are scored before the model fails.
    lasts: usize,
}

impl Counted {
    fn new(images: usize, texts: usize) -> Self {
        Self { images, texts, asked: RefCell::default(), lasts: usize::MAX }
    }
}

impl Scored for Counted {
    fn images(&self) -> usize {
        self.images
    }

    fn texts(&self) -> usize {
        self.texts
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        if self.asked.borrow().len() == self.lasts {
            return Err(Error::invalid("the model", "power", "none"));
        }
        self.asked.borrow_mut().push(texts.clone());
        let score = |i: usize, t: usize| ((i * 31 + t * 17) as f32 * 0.37).sin();
        let cells = images.clone().flat_map(|i| texts.clone().map(move |t| score(i, t)));
        ScoreMatrix::new(images.len(), texts.len(), cells.collect())
    }
}

fn store(folder: &Path, shape: [usize; 2]) -> Store {
    let identity = Identity {
        row: "TAGS".into(),
        seed: 1,
        split: "test".into(),
        checkpoint: "a".repeat(64),
        config: "b".repeat(64),
        data: "c".repeat(64),
        backend: "cpu".into(),
        shape,
    };
    Store { folder: folder.join("scores/test"), disk: Rc::new(Unsynced), identity }
}

fn matrix(store: &Store, scored: &dyn Scored) -> Result<ScoreMatrix> {
    store.matrix(scored, |line| panic!("{line}"), |_| {})
}

/// 3,000 images: shards of 8 texts.
const SHAPE: [usize; 2] = [20, 3_000];

fn counted() -> Counted {
    Counted::new(SHAPE[1], SHAPE[0])
}

#[test]
fn a_pair_is_scored_once() {
    let dir = tempfile::tempdir().unwrap();
    let (store, scored) = (store(dir.path(), SHAPE), counted());
    let first = matrix(&store, &scored).unwrap();
    assert_eq!(*scored.asked.borrow(), [0..8, 8..16, 16..20]);
    assert_eq!(first, counted().matrix().unwrap());
    assert_eq!(matrix(&store, &scored).unwrap(), first);
    assert_eq!(scored.asked.borrow().len(), 3);
}

#[test]
fn what_was_scored_before_a_failure_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), SHAPE);
    let broken = Counted { lasts: 2, ..counted() };
    assert!(matrix(&store, &broken).is_err());
    let scored = counted();
    assert_eq!(matrix(&store, &scored).unwrap(), counted().matrix().unwrap());
    assert_eq!(*scored.asked.borrow(), slice::from_ref(&(16..20)));
}

#[test]
fn scores_of_something_else_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    matrix(&store(dir.path(), SHAPE), &counted()).unwrap();
    let refused = |change: fn(&mut Identity), key: &str| {
        let mut other = store(dir.path(), SHAPE);
        change(&mut other.identity);
        let [texts, images] = other.identity.shape;
        let line = matrix(&other, &Counted::new(images, texts)).unwrap_err().to_string();
        assert!(line.contains(&format!("texts-000000.safetensors, {key}: expected")), "{line}");
    };
    refused(|i| i.checkpoint = "d".repeat(64), "checkpoint");
    refused(|i| i.config = "d".repeat(64), "config");
    refused(|i| i.data = "d".repeat(64), "data");
    refused(|i| i.shape = [25, 3_000], "shape");
    refused(|i| i.shape = [3_000, 20], "shape"); // Trap 26: images and texts exchanged
}

/// A shard that is cut off, empty or changed in one bit is scored again. A shard under another shard's name is refused.
#[test]
fn damage_is_told_and_scored_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), SHAPE);
    let whole = matrix(&store, &counted()).unwrap();
    let path = store.folder.join("texts-000008.safetensors");
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for bad in [&good[..good.len() / 2], &[], &flipped] {
        fs::write(&path, bad).unwrap();
        let (scored, mut lines) = (counted(), vec![]);
        let got = store.matrix(&scored, |line| lines.push(line.to_owned()), |_| {}).unwrap();
        assert_eq!((&got, &scored.asked.borrow()[..]), (&whole, slice::from_ref(&(8..16))));
        assert!(lines.len() == 1 && lines[0].contains("texts-000008.safetensors"), "{lines:?}");
        assert_eq!(fs::read(&path).unwrap(), good);
    }
    fs::copy(store.folder.join("texts-000000.safetensors"), &path).unwrap();
    let line = matrix(&store, &counted()).unwrap_err().to_string();
    assert!(line.contains("texts: expected [8,16], got [0,8]"), "{line}");
}

#[test]
fn shards_cover_all_texts_once() {
    for (texts, images) in [(500, 100), (1, 1), (25_000, 5_000), (7, 0), (0, 3)] {
        let all: Vec<usize> = ranges(texts, images).flatten().collect();
        assert_eq!(all, (0..texts).collect::<Vec<_>>());
    }
}

/// A row that scores pair by pair has a store.
#[test]
fn the_scores_of_a_trained_row_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let run = tests::small_run_in("tags-dc-scenes", &[], &folder.path().join("all"));
    let row = run.config.rows().next().unwrap().to_owned();
    let (model, _) = run.train(&row, 0, |_| {}).unwrap();
    let scores = run.scores(&model, Split::Test).unwrap().matrix().unwrap();
    assert_eq!((scores.images(), scores.texts()), (3, 15));
    assert_eq!(run.scores(&model, Split::Test).unwrap().matrix().unwrap(), scores);
    assert!(run.dir().folder(&row, 0).join("scores/test/texts-000000.safetensors").is_file());
}
