//! Every option of bank, statistics, weights and optimiser changes the output of a run. Also batches that are hard to train on.

use itm_core::contrastive::{ContrastiveOptions, Learnt};

use super::*;
use crate::{Reset, Variance};

/// Twenty-four steps in three epochs. Some batches have two captions of one image.
fn run(config: &FneConfig) -> (Vec<f64>, Vec<Snapshot>, Vec<f32>) {
    let mut fne = fne(config);
    let (mut losses, mut seen) = (vec![], vec![]);
    for s in 0..24 {
        if s % 8 == 0 {
            begin(&mut fne, s as usize / 8);
        }
        let pairs = [[0, 1, 4, 7], [2, 5, 6, 3], [0, 3, 4, 6]][s as usize % 3];
        let report = step(&mut fne, &pairs, 100 + s).unwrap();
        losses.push(report.loss);
        seen.push(report.statistics);
    }
    (losses, seen, values(fne.online()))
}

/// One epoch of warm-up, then a posterior that is soon in use and has an effect.
fn base() -> FneConfig {
    let mut config = tiny(Preset::Default);
    let sampler = &mut config.sampler;
    (sampler.warmup_epochs, sampler.min_count, sampler.prior) = (1, 1, 0.2);
    (sampler.lambda, sampler.margin) = (0.05, 0.4);
    config
}

#[test]
fn every_option_of_the_memory_changes_the_output() {
    type Change = fn(&mut FneConfig);
    let changes: [(&str, Change); 22] = [
        ("P7 bank_size", |c| c.sampler.bank_size = 10),
        ("P8 enqueue", |c| c.sampler.enqueue = Enqueue::Before),
        ("P9 warmup_epochs", |c| c.sampler.warmup_epochs = 0),
        ("P10 lambda", |c| c.sampler.lambda = 1.0),
        ("P11 tau", |c| c.sampler.tau = 3.0),
        ("P12 margin_cut", |c| c.sampler.margin_cut = false),
        ("P14 min_count", |c| c.sampler.min_count = 200),
        ("P15 mask_same_image_everywhere", |c| c.sampler.mask_same_image_everywhere = true),
        ("P17 variance", |c| c.sampler.variance = Variance::Welford),
        ("P18 reset", |c| c.sampler.reset = Reset::Never),
        ("P19 positive", |c| c.sampler.positive = Positive::Online),
        ("P21 epochs' rates", |c| c.train.milestones = vec![1]),
        ("P21 learning_rate", |c| c.train.learning_rate = 1e-3),
        ("P22 grad_clip", |c| c.train.grad_clip = 1e-3),
        ("Eq. 3 margin", |c| c.sampler.margin = 0.3),
        ("Eq. 10 prior", |c| c.sampler.prior = 0.9),
        ("Eq. 12 alpha", |c| c.sampler.alpha = 20.0),
        ("Eq. 14 momentum", |c| c.sampler.momentum = 0.5),
        ("Table 3 w/o FNE", |c| c.sampler.negatives = NegativeChoice::Hardest),
        ("Table 3 w/o MMM", |c| c.sampler.bank_size = 0),
        ("Table 3 w/o MMM+FNE", |c| c.sampler.negatives = NegativeChoice::InBatch),
        ("warmup_loss", |c| c.sampler.warmup_loss = WarmupLoss::Sum),
    ];
    let whole = run(&base());
    assert_eq!(run(&base()), whole);
    for (name, change) in changes {
        let mut config = base();
        change(&mut config);
        assert!(run(&config) != whole, "{name}");
    }
}

/// A bank shorter than the batch keeps the batch's last pairs. Only these are in the bank for a later batch; with `before` they
/// are the pool.
#[test]
fn a_bank_shorter_than_the_batch_holds_its_last_pairs() {
    for (enqueue, candidates) in [(Enqueue::After, 4 + 3), (Enqueue::Before, 3)] {
        let mut config = base();
        (config.sampler.warmup_epochs, config.sampler.bank_size) = (0, 3);
        config.sampler.enqueue = enqueue;
        let mut fne = fne(&config);
        for seed in 0..3 {
            let report = step(&mut fne, &EVEN, seed).unwrap();
            let seen = report.negatives.unwrap()[0].clone();
            assert_eq!(seen.candidates.len(), candidates, "{enqueue:?}");
            assert!(report.loss.is_finite());
        }
        let mut ids = fne.bank().ids().to_vec();
        ids.rotate_left(fne.bank().cursor);
        assert_eq!(ids, [1, 2, 3]);
    }
}

/// A batch of one image has negatives only in the bank. Without a bank there is nothing to learn: loss and gradient are 0, and
/// no weight changes.
#[test]
fn a_batch_of_one_image_has_its_negatives_in_the_bank_alone() {
    let one = [0, 1, 0, 1];
    let mut config = base();
    config.sampler.warmup_epochs = 0;
    let report = step(&mut fne(&config), &one, 1).unwrap();
    let seen = report.negatives.unwrap();
    for o in &seen {
        assert!(chosen(o).iter().all(|&j| j >= 4), "{:?}", chosen(o));
    }
    config.sampler.bank_size = 0;
    let mut alone = fne(&config);
    let before = values(alone.online());
    let report = step(&mut alone, &one, 1).unwrap();
    assert_eq!((report.loss, report.grad_norm, report.active), (0.0, 0.0, 0.0));
    assert_eq!(values(alone.online()), before);
}

/// If the truth equals the annotation, nothing changes. If more pairs are true, none of them is chosen as a negative, with a bank
/// or without one.
#[test]
fn true_pairs_are_no_negatives_where_the_truth_is_left_out() {
    // Image 1 also matches captions 4 and 6, image 2 also 0; captions 2k and 2k + 1 are image k's own.
    let more = [(1, 4), (1, 6), (2, 0)];
    for (bank_size, negatives) in [
        (16, NegativeChoice::Fne),
        (16, NegativeChoice::Hardest),
        (16, NegativeChoice::Uniform),
        (0, NegativeChoice::Fne),
    ] {
        let mut config = base();
        (config.sampler.warmup_epochs, config.sampler.bank_size) = (0, bank_size);
        config.sampler.negatives = negatives;
        let plain = fne(&config);
        config.sampler.exclude = Exclude::Truth;
        let annotated = |image: i64, caption: i64| image == caption / 2;
        let all = move |i, c| annotated(i, c) || more.contains(&(i, c));
        let told = |holds: &dyn Fn(i64, i64) -> bool| {
            let texts = |i: i64| (0..8u32).filter(|&c| holds(i, c.into())).collect();
            fne(&config).with_truth(Relevance::new(8, (0..4).map(texts).collect()))
        };
        let mut same = told(&annotated);
        let (mut plain, mut known) = (plain, told(&all));
        let (mut differs, mut drawn) = (false, 0);
        for s in 0..24 {
            let pairs = [[0, 2, 4, 6], [2, 5, 6, 0], [0, 3, 4, 6]][s as usize % 3];
            let [a, b, c] =
                [&mut plain, &mut same, &mut known].map(|m| step(m, &pairs, s).unwrap());
            assert_eq!(a.loss, b.loss, "{negatives:?}: only the annotation");
            differs |= a.loss != c.loss;
            let seen = c.negatives.unwrap();
            for (o, image_first) in seen.iter().zip([true, false]) {
                for (anchor, j) in o.anchors.iter().zip(chosen(o)) {
                    let Some(drawn_pair) = o.candidates[j] else { continue };
                    let (image, caption) = match image_first {
                        true => (anchor.image, drawn_pair.caption),
                        false => (drawn_pair.image, anchor.caption),
                    };
                    assert!(!all(image, caption), "{negatives:?}: {image} and {caption}");
                    drawn += 1;
                }
            }
        }
        assert!(differs && drawn > 100, "{negatives:?}: {drawn}");
    }
}

/// Where all pairs are true, the warm-up has no negative. An id that the truth does not know is refused.
#[test]
fn true_pairs_are_no_negatives_in_the_warm_up() {
    for warmup in [WarmupLoss::Hardest, WarmupLoss::Sum] {
        let mut config = base();
        (config.sampler.exclude, config.sampler.warmup_loss) = (Exclude::Truth, warmup);
        config.sampler.margin = 2.0; // every hinge is active
        let of = |texts, row: Vec<u32>| {
            let mut model = fne(&config).with_truth(Relevance::new(texts, vec![row; 4]));
            step(&mut model, &EVEN, 1)
        };
        let report = of(8, (0..8).collect()).unwrap();
        assert_eq!((report.loss, report.active), (0.0, 0.0), "{warmup:?}");
        let masked = |o: &NegativeSet| o.excluded.iter().all(|&mask| mask);
        assert!(report.negatives.is_none_or(|sets| sets.iter().all(masked)));
        assert!(of(8, vec![]).unwrap().loss > 1.0, "own pairs alone are masked");
        let line = of(6, vec![]).unwrap_err().to_string();
        let want = "batch row 3: expected ids that the truth knows, got image 3, caption 6";
        assert_eq!(line, want);
    }
}

/// By hand: texts as anchors have a mask of their own. Image 0 also matches caption 2, of image 1; image 1 does not match caption 0.
#[test]
fn each_direction_of_the_warm_up_has_its_own_mask() {
    let mut config = base();
    config.sampler.exclude = Exclude::Truth;
    let truth = Relevance::new(8, vec![vec![0, 2], vec![], vec![], vec![]]);
    let mut model = fne(&config).with_truth(truth);
    let [i2t, t2i] = step(&mut model, &[0, 2], 1).unwrap().negatives.unwrap();
    assert_eq!(
        (i2t.excluded, t2i.excluded),
        (vec![true, true, false, true], vec![true, false, true, true])
    );
}

#[test]
fn the_truth_must_be_told_before_it_is_left_out() {
    let mut config = base();
    config.sampler.exclude = Exclude::Truth;
    let line = step(&mut fne(&config), &EVEN, 1).unwrap_err().to_string();
    assert_eq!(line, "sampler.exclude: expected the truth of the training pairs, got none");
    let changes: [fn(&mut FneConfig); 2] = [
        |c| c.sampler.negatives = NegativeChoice::InBatch,
        |c| {
            let (temperature, bias, learn) = (0.1, 0.0, Learnt::Fixed);
            c.train.contrastive = Some(ContrastiveOptions { temperature, bias, learn });
            c.train.loss = crate::Loss::InfoNce;
        },
    ];
    for change in changes {
        let mut config = config.clone();
        change(&mut config);
        let line = config.validate().unwrap_err().to_string();
        assert!(line.starts_with("sampler.exclude: expected \"same_image\" with"), "{line}");
    }
}

/// If the statistics never exceed `min_count`, every negative stays easy, and no option of the posterior has an effect.
#[test]
fn statistics_that_stay_small_leave_the_posterior_out() {
    let mut config = base();
    config.sampler.min_count = 200;
    let (losses, seen, weights) = run(&config);
    assert!(seen.iter().all(|s| s.positive.count <= 200));
    assert!(seen.iter().any(|s| s.positive.count > 1));
    let changes: [fn(&mut FneConfig); 3] =
        [|c| c.sampler.prior = 0.9, |c| c.sampler.lambda = 0.0, |c| c.sampler.tau = 9.0];
    for change in changes {
        let mut other = config.clone();
        change(&mut other);
        assert!(run(&other) == (losses.clone(), seen.clone(), weights.clone()));
    }
}
