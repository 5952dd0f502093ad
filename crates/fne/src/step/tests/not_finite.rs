//! Steps that are refused because a value is not finite. Encoders, momentum encoders, bank, statistics, moments and counts keep
//! their bits.

use super::*;
use itm_core::towers::ImageEncoder;

/// The error of a step of two pairs. All features of the first image are `feature`.
fn refused(fne: &mut Fne, feature: f32) -> String {
    let features = [[feature; DIM], [1.0; DIM]].concat();
    let batch = Batch {
        images: Images::Features(&features),
        texts: &[&[2], &[3]],
        image_ids: &[70, 71],
        caption_ids: &[70, 71],
        train: None,
    };
    fne.step(&batch, 1, Observe::Off).unwrap_err().to_string()
}

/// Losses of three more steps, and the files after them.
fn after(mut fne: Fne) -> (Vec<u64>, Vec<(String, Vec<u8>)>) {
    let pairs = [[0, 3, 5, 6], [1, 2, 4, 7], [0, 3, 5, 6]];
    let losses = (0..3).map(|s| step(&mut fne, &pairs[s], 40 + s as u64).unwrap().loss.to_bits());
    (losses.collect(), files(&fne))
}

/// Models after two steps: enqueue after and before the loss, a bank shorter than the batch, no bank, and the warm-up.
fn trained() -> Vec<(&'static str, Fne)> {
    let with = |preset, bank_size, warmup_epochs| {
        let mut config = tiny(preset);
        (config.sampler.bank_size, config.sampler.warmup_epochs) = (bank_size, warmup_epochs);
        (config.sampler.min_count, config.sampler.momentum) = (0, 0.9);
        let mut fne = fne(&config);
        (0..2).for_each(|seed| _ = step(&mut fne, &EVEN, seed).unwrap());
        fne
    };
    vec![
        ("after", with(Preset::Default, 12, 0)),
        ("before", with(Preset::Paper, 12, 0)),
        ("short", with(Preset::Paper, 1, 0)),
        ("no bank", with(Preset::Default, 0, 0)),
        ("warm-up", with(Preset::Default, 12, 1)),
    ]
}

#[test]
fn a_feature_that_is_not_finite_changes_nothing_at_all() {
    for (name, mut fne) in trained() {
        let before = files(&fne);
        for bad in [f32::NAN, f32::INFINITY] {
            let line = refused(&mut fne, bad);
            assert_eq!(line, format!("image 0 of the batch: expected finite values, got {bad}"));
            assert!(files(&fne) == before, "{name}");
        }
    }
}

/// Changes the image map of both encoders. The optimiser starts again.
fn with_map(fne: &mut Fne, change: impl Fn(&mut itm_kernels::Linear)) {
    let mut online = fne.online().clone();
    let ImageEncoder::Features(image) = &mut online.image else { panic!("features") };
    change(&mut image.linear);
    fne.momentum = online.clone().valid();
    fne.learner = learner(online, &fne.config);
}

/// Features and weights are finite, but so large that their product is not. Both steps are refused and leave no trace.
#[test]
fn a_loss_that_is_not_finite_leaves_the_next_step_as_it_was() {
    for (name, mut fne) in trained() {
        with_map(&mut fne, |linear| {
            let large = |w: Tensor<2>| {
                let device = w.device();
                Tensor::from_data((w.inner() * 1e20).into_data(), &device).require_grad()
            };
            linear.weight = linear.weight.clone().map(large);
        });
        let (untouched, before) = (fne.clone(), files(&fne));
        for _ in 0..2 {
            let line = refused(&mut fne, f32::MAX);
            let what = if name == "warm-up" { "loss" } else { "scores" };
            assert!(line.starts_with("epoch 0, step 0: expected"), "{name}: {line}");
            assert!(line.contains(&format!("finite {what}, got NaN")), "{name}: {line}");
            assert!(files(&fne) == before, "{name}");
        }
        let folder = tempfile::tempdir().unwrap();
        save(&fne, folder.path());
        let mut loaded = super::fne(&fne.config);
        loaded.load(folder.path()).unwrap();
        let want = after(untouched);
        assert!(after(fne) == want, "{name}");
        assert!(after(loaded) == want, "{name}: from its files");
    }
}

/// The loss is finite, but its gradient is not: the rows have length 1e-9 before normalisation, and the features are 1e34.
#[test]
fn gradients_that_are_not_finite_leave_the_next_step_as_it_was() {
    for (name, mut fne) in trained() {
        with_map(&mut fne, |linear| {
            linear.weight = linear.weight.clone().map(|w| w.zeros_like().require_grad());
            let tiny = |b: Tensor<1>| (b.zeros_like() + 3e-10).require_grad();
            linear.bias = linear.bias.clone().map(tiny);
        });
        let (untouched, before) = (fne.clone(), files(&fne));
        let line = refused(&mut fne, 1e34);
        assert!(line.starts_with("epoch 0, step 0: expected gradients of a finite norm"), "{line}");
        assert!(files(&fne) == before, "{name}");
        assert!(after(fne) == after(untouched), "{name}");
    }
}
