use std::path::Path;

use super::*;

fn run(hal: &mut Hal, steps: std::ops::Range<usize>) -> Vec<u64> {
    steps
        .map(|s| {
            if s % 3 == 0 {
                begin(hal, s / 3);
            }
            let pairs = if s % 2 == 0 { &[0, 3, 5, 6, 1][..] } else { &[2, 4, 7] };
            step(hal, pairs).unwrap().loss.to_bits()
        })
        .collect()
}

fn bits(values: Vec<f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

/// Eight steps over three epochs equal five steps, a checkpoint within an epoch, and three steps of a new model.
#[test]
fn resume_equals_an_uninterrupted_run() {
    for objective in [Objective::Hal, Objective::HalAaaiBank] {
        let mut config = tiny(objective);
        config.bank.mb_rate = 1.0;
        let mut whole = hal(&config);
        let losses = run(&mut whole, 0..8);

        let folder = tempfile::tempdir().unwrap();
        let mut first = hal(&config);
        let mut again = run(&mut first, 0..5);
        save(&first, folder.path());
        let held = first.bank.captions.len();
        assert_eq!(held > 0, objective == Objective::HalAaaiBank, "{held} entries");
        drop(first);
        let mut second = Hal::new(&config, DIM, 12, &Device::flex(), 8).unwrap();
        second.load(folder.path()).unwrap();
        assert_eq!(second.bank.captions.len(), held);
        assert_eq!((second.learner.epoch, second.learner.steps()), (1, 5));
        again.extend(run(&mut second, 5..8));

        assert_eq!(again, losses, "{objective:?}");
        assert_eq!(bits(values(second.encoders())), bits(values(whole.encoders())));
        assert!(files(&second) == files(&whole), "moments too");
        assert_eq!((second.learner.epoch, second.learner.steps()), (2, 8));
        assert_eq!(second.bank.embeddings(), whole.bank.embeddings());
        assert_eq!(second.bank.captions, whole.bank.captions);
    }
}

/// A NaN in the bank would reach every loss of the epoch.
#[test]
fn a_bank_that_is_not_finite_is_refused() {
    let (folder, config) = (tempfile::tempdir().unwrap(), tiny(Objective::HalAaaiBank));
    let mut model = hal(&config);
    let rows = |x: f32| Tensor::<2>::full([1, 8], x, &Device::flex());
    model.bank.push(rows(0.5), rows(f32::NAN), &[3]);
    save(&model, folder.path());
    let e = refused(folder.path(), &config, DIM, 12);
    assert_eq!(e, "bank.texts, row 0: expected finite numbers, got NaN");
}

#[test]
fn a_fresh_model_can_be_saved_and_loaded() {
    let (folder, config) = (tempfile::tempdir().unwrap(), tiny(Objective::Sum));
    save(&hal(&config), folder.path());
    let mut other = Hal::new(&config, DIM, 12, &Device::flex(), 8).unwrap();
    other.load(folder.path()).unwrap();
    assert_eq!(values(other.encoders()), values(hal(&config).encoders()));
}

fn refused(folder: &Path, config: &HalConfig, dim: usize, vocabulary: usize) -> String {
    let mut other = Hal::new(config, dim, vocabulary, &Device::flex(), 7).unwrap();
    let before = values(other.encoders());
    let e = other.load(folder).unwrap_err().to_string();
    assert_eq!(values(other.encoders()), before);
    e
}

#[test]
fn another_model_is_named_and_changes_nothing() {
    let (folder, config) = (tempfile::tempdir().unwrap(), tiny(Objective::HalAaaiBank));
    let mut model = hal(&config);
    run(&mut model, 0..4);
    save(&model, folder.path());
    let e = refused(folder.path(), &config, DIM + 1, 12);
    assert!(e.contains("model.safetensors: encoders.image.linear.weight"), "{e}");
    let e = refused(folder.path(), &config, DIM, 13);
    assert!(e.contains("encoders.text.words"), "{e}");

    let name = "state.safetensors";
    let later = tempfile::tempdir().unwrap();
    run(&mut model, 4..5);
    save(&model, later.path());
    std::fs::copy(later.path().join(name), folder.path().join(name)).unwrap();
    let e = refused(folder.path(), &config, DIM, 12);
    assert!(e.contains("progress") && e.contains("step 4") && e.contains("step 5"), "{e}");
    std::fs::copy(folder.path().join("model.safetensors"), folder.path().join(name)).unwrap();
    let e = refused(folder.path(), &config, DIM, 12);
    assert!(e.contains(name) && e.contains("hal model 1"), "{e}");
    let bytes = std::fs::read(later.path().join(name)).unwrap();
    for length in [0, 5, 100, bytes.len() - 1] {
        std::fs::write(folder.path().join(name), &bytes[..length]).unwrap();
        let e = refused(folder.path(), &config, DIM, 12);
        assert!(e.contains(name) && !e.contains('\n'), "{length} bytes: {e}");
    }
}
