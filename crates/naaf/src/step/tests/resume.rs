//! A state on disk.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::SafeTensors;

use super::*;

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a state.
fn files(naaf: &Naaf) -> Files {
    let mut files = Files::new();
    naaf.save(&mut |name, contents| {
        files.insert(name.to_owned(), contents.to_vec());
        Ok(())
    })
    .unwrap();
    files
}

fn write(files: &Files, folder: &Path) {
    files.iter().for_each(|(name, contents)| std::fs::write(folder.join(name), contents).unwrap());
}

fn run(naaf: &mut Naaf, steps: std::ops::Range<usize>) -> Vec<u64> {
    steps
        .map(|s| {
            if s % 3 == 0 {
                begin(naaf, s / 3);
            }
            let pairs = if s % 2 == 0 { &[0, 3, 5, 6, 1][..] } else { &[2, 4, 7] };
            step(naaf, pairs, s as u64).unwrap().loss.to_bits()
        })
        .collect()
}

/// Eight steps in three epochs equal five steps, a checkpoint in the middle of an epoch, a fresh model with another seed and three
/// more steps.
#[test]
fn trap_12_resume_equals_an_uninterrupted_run() {
    let mut frozen = bigru();
    frozen.model.freeze_embedding = true;
    for config in [tiny(), bigru(), frozen, scan(), global()] {
        let mut whole = naaf(&config);
        let losses = run(&mut whole, 0..8);
        let folder = tempfile::tempdir().unwrap();
        let mut first = naaf(&config);
        let mut again = run(&mut first, 0..5);
        write(&files(&first), folder.path());
        let mut other = config.clone();
        other.train.seed += 1; // other weights, until the load
        let mut second = Naaf::new(&other, DIM, VOCABULARY, &Device::flex()).unwrap();
        second.load(folder.path()).unwrap();
        assert_eq!(second.boundary(), first.boundary());
        assert_eq!(scores(&second), scores(&first));
        again.extend(run(&mut second, 5..8));
        assert_eq!(again, losses);
        assert!(files(&second) == files(&whole), "moments and boundary too");
    }
}

/// Scores with a boundary that no training gives would be wrong without a word.
#[test]
fn a_checkpoint_with_a_boundary_above_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = naaf(&tiny());
    model.boundary.t_s = 1.5;
    write(&files(&model), folder.path());
    for refused in [Naaf::load, Naaf::start_from] {
        let line = refused(&mut naaf(&tiny()), folder.path()).unwrap_err().to_string();
        assert_eq!(line, "boundary t_s: expected in [0, 1], got 1.5");
    }
}

/// The boundary is state: it has moved, it is in the file of the model, and the error for a file without it names it.
#[test]
fn trap_12_a_checkpoint_without_its_boundary_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = naaf(&tiny());
    run(&mut model, 0..12);
    assert_ne!(model.boundary().matched.count, 0, "{:?}", model.boundary());
    let mut saved = files(&model);
    let contents = &saved["model.safetensors"];
    let (_, head) = SafeTensors::read_metadata(contents).unwrap();
    let tensors = SafeTensors::deserialize(contents).unwrap();
    let without = tensors.tensors().into_iter().filter(|(name, _)| name != "boundary");
    let without = safetensors::serialize(without, head.metadata().clone()).unwrap();
    saved.insert("model.safetensors".into(), without);
    write(&saved, folder.path());
    let mut other = naaf(&tiny());
    let before = scores(&other);
    let line = other.load(folder.path()).unwrap_err().to_string();
    assert!(line.ends_with("model.safetensors: boundary: expected F64 [9], got nothing"), "{line}");
    assert_eq!(scores(&other), before);
}

#[test]
fn a_checkpoint_of_another_model_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write(&files(&naaf(&tiny())), folder.path());
    let refused = |config: &NaafConfig, dim, vocabulary| {
        let mut other = Naaf::new(config, dim, vocabulary, &Device::flex()).unwrap();
        other.load(folder.path()).unwrap_err().to_string()
    };
    let line = refused(&tiny(), DIM, VOCABULARY + 1);
    assert!(line.contains("encoders.text.table: expected F32 [15, 8], got F32 [14, 8]"), "{line}");
    let line = refused(&tiny(), DIM + 1, VOCABULARY);
    assert!(line.contains("encoders.image.linear.weight"), "{line}");
    assert!(refused(&bigru(), DIM, VOCABULARY).contains("encoders.text.words"));
}
