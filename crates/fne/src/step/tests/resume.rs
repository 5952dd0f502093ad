use super::*;

fn noisy(preset: Preset) -> FneConfig {
    let mut config = tiny(preset);
    config.sampler.warmup_epochs = 1;
    config.sampler.min_count = 0; // the posterior is used after the first pair
    config.train.dropout = 0.2;
    config.train.word_dropout = 0.2;
    config.train.weight_decay = 0.01;
    config
}

fn run(fne: &mut Fne, steps: std::ops::Range<u64>) -> Vec<u64> {
    steps
        .map(|s| {
            if s < 2 {
                begin(fne, s as usize);
            }
            // A pair that is alone in its batch is the best of the batch, so it enters the statistics.
            let pairs = if s % 2 == 0 { &[0, 3, 5, 6, 1][..] } else { &[2] };
            let report = step(fne, pairs, 100 + s).unwrap();
            report.loss.to_bits()
        })
        .collect()
}

fn bits(values: Vec<f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

/// Eight steps equal five steps, a checkpoint in the middle of an epoch, a fresh model and three more steps.
#[test]
fn trap_22_resume_equals_an_uninterrupted_run() {
    for preset in [Preset::Default, Preset::Paper] {
        let config = noisy(preset);
        let mut whole = fne(&config);
        let losses = run(&mut whole, 0..8);

        let folder = tempfile::tempdir().unwrap();
        let mut first = fne(&config);
        let mut again = run(&mut first, 0..5);
        save(&first, folder.path());
        assert!(first.statistics().positive.count > 0, "the middle of an epoch");
        drop(first);
        let mut second = fne(&seeded(&config, 8));
        second.load(folder.path()).unwrap();
        again.extend(run(&mut second, 5..8));

        assert_eq!(again, losses);
        assert_eq!(bits(values(second.online())), bits(values(whole.online())));
        assert_eq!(bits(values(second.momentum())), bits(values(whole.momentum())));
        assert_eq!(second.bank().state(), whole.bank().state());
        assert_eq!(second.statistics(), whole.statistics());
        assert_eq!((second.learner.epoch, second.learner.steps()), (1, 8));
        assert!(files(&second) == files(&whole), "moments too");
        assert!(whole.bank().ids()[0] != NEVER);
    }
}

#[test]
fn a_fresh_model_can_be_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let config = noisy(Preset::Default);
    save(&fne(&config), folder.path());
    let mut other = fne(&seeded(&config, 8));
    other.load(folder.path()).unwrap();
    assert_eq!(values(other.online()), values(fne(&config).online()));
}

fn saved() -> (tempfile::TempDir, FneConfig) {
    let (folder, config) = (tempfile::tempdir().unwrap(), noisy(Preset::Default));
    let mut model = fne(&config);
    run(&mut model, 0..3);
    save(&model, folder.path());
    (folder, config)
}

#[test]
fn a_file_cut_off_or_missing_is_named_and_changes_nothing() {
    for name in ["model.safetensors", "state.safetensors"] {
        let (folder, config) = saved();
        let path = folder.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        let mut model = fne(&config);
        let before = values(model.online());
        for length in [0, 5, 100, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let e = model.load(folder.path()).unwrap_err().to_string();
            assert!(e.contains(name) && !e.contains('\n'), "{length} bytes: {e}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(model.load(folder.path()).unwrap_err().to_string().contains(name));
        assert_eq!(values(model.online()), before);
    }
}

#[test]
fn another_model_is_named() {
    let (folder, config) = saved();
    let refused = |change: &dyn Fn(&mut FneConfig), dim, vocabulary| {
        let mut config = config.clone();
        change(&mut config);
        let mut other = Fne::new(&config, dim, vocabulary, &Device::flex()).unwrap();
        other.load(folder.path()).unwrap_err().to_string()
    };
    let e = refused(&|_| (), DIM + 1, 12);
    assert!(e.contains("model.safetensors: online.image.linear.weight"), "{e}");
    assert!(e.contains("F32 [6, 8]") && e.contains("F32 [5, 8]"), "{e}");
    let e = refused(&|_| (), DIM, 13);
    assert!(e.contains("online.text.words"), "{e}");
    let e = refused(&|c| c.sampler.bank_size = 13, DIM, 12);
    assert!(e.contains("state.safetensors: bank.images"), "{e}");
    // Files of different steps do not go together.
    let mut later = fne(&config);
    run(&mut later, 0..4);
    let other = tempfile::tempdir().unwrap();
    save(&later, other.path());
    let name = "state.safetensors";
    std::fs::copy(other.path().join(name), folder.path().join(name)).unwrap();
    let e = refused(&|_| (), DIM, 12);
    assert!(e.contains("progress") && e.contains("step 3") && e.contains("step 4"), "{e}");
    // A model file cannot replace a state file.
    std::fs::copy(folder.path().join("model.safetensors"), folder.path().join(name)).unwrap();
    let e = refused(&|_| (), DIM, 12);
    assert!(e.contains(name) && e.contains("fne model 1"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Random bytes are an error, never a panic.
    #[test]
    fn random_bytes_are_refused(bytes: Vec<u8>, header in 0u64..64) {
        let folder = tempfile::tempdir().unwrap();
        let mut model = fne(&tiny(Preset::Default));
        save(&model, folder.path());
        let with_header = [header.to_le_bytes().to_vec(), bytes.clone()].concat();
        for content in [bytes, with_header] {
            std::fs::write(folder.path().join("state.safetensors"), content).unwrap();
            prop_assert!(model.load(folder.path()).is_err());
        }
    }
}
