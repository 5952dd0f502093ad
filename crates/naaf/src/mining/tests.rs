use proptest::prelude::*;

use super::*;
use crate::Preset;
use crate::golden::{golden, numbers};

/// Products `[image][caption][word][region]`.
type Products = Vec<Vec<Vec<Vec<f32>>>>;

fn pooled(products: &Products) -> impl Fn(usize, usize, WordPool) -> Vec<f32> {
    |i, c, pool| {
        let of = |row: &Vec<f32>| match pool {
            WordPool::Max => row.iter().copied().fold(f32::MIN, f32::max),
            WordPool::Mean => row.iter().sum::<f32>() / row.len() as f32,
        };
        products[i][c].iter().map(of).collect()
    }
}

/// A score that depends on t: the mean over words of x + min(x, 0), where x is the best product minus t.
fn simple(products: &Products) -> impl FnMut(usize, f32) -> Vec<f32> {
    |c, t| {
        let score = |image: &Vec<Vec<Vec<f32>>>| {
            let x: Vec<f32> = image[c]
                .iter()
                .map(|row| row.iter().copied().fold(f32::MIN, f32::max) - t)
                .collect();
            x.iter().map(|x| x + x.min(0.0)).sum::<f32>() / x.len() as f32
        };
        products.iter().map(score).collect()
    }
}

fn official() -> MiningConfig {
    MiningConfig { form: Form::Stable, ..MiningConfig::preset(Preset::Official) }
}

/// Every caption is ranked right: 0.6 with its own image, 0.1 with other images, and some noise.
fn ranked_right(captions: usize, words: usize) -> Products {
    let value = |i: usize, c: usize, w: usize| {
        let noise = 0.2 * random::unit(3, ((i * captions + c) * 64 + w) as u64);
        vec![if i == c { 0.6 + noise } else { 0.1 + noise }]
    };
    let caption = |i, c| (0..words).map(|w| value(i, c, w)).collect();
    (0..captions).map(|i| (0..captions).map(|c| caption(i, c)).collect()).collect()
}

/// The boundary of each caption.
fn run(boundary: &mut Boundary, config: &MiningConfig, products: &Products, seed: u64) -> Vec<f32> {
    let lengths: Vec<usize> = products[0].iter().map(Vec::len).collect();
    let own: Vec<usize> = (0..lengths.len()).collect();
    let captions = MiningBatch { lengths: &lengths, own: &own, epoch: 20, seed };
    mine(boundary, config, &captions, simple(products), pooled(products)).unwrap().thresholds
}

#[test]
fn a_boundary_that_is_no_cosine_is_refused() {
    let captions = MiningBatch { lengths: &[1], own: &[0], epoch: 0, seed: 1 };
    let mut boundary = Boundary { t: f64::NAN, ..Boundary::default() };
    let mined = mine(&mut boundary, &official(), &captions, |_, _| vec![0.5], |_, _, _| vec![0.5]);
    assert_eq!(mined.unwrap_err().to_string(), "boundary t: expected in [0, 1], got NaN");
}

/// Two batches under each option, from `tests/reference/naaf.py`.
#[test]
fn golden_schedules() {
    let g = &golden()["schedule"];
    let lengths: Vec<usize> = numbers(&g["lengths"]).into_iter().map(|n| n as usize).collect();
    let (n, r) = (lengths.len(), 3);
    let product = |i: usize, c: usize, w: usize, j: usize| {
        let u = random::unit(5, (((i * n + c) * 32 + w) * r + j) as u64);
        match (i, c) {
            (3, 5) => 0.8 + 0.1 * u,
            _ if i == c && j == 1 => 0.42 + 0.2 * u,
            _ => 0.05 + 0.35 * u,
        }
    };
    let row = |i, c, w| (0..r).map(|j| product(i, c, w, j)).collect();
    let text = |i, c| (0..lengths[c]).map(|w| row(i, c, w)).collect();
    let products: Products = (0..n).map(|i| (0..n).map(|c| text(i, c)).collect()).collect();
    let options = [
        ("official", official()),
        ("smoothing_one", MiningConfig { smoothing: 1.0, ..official() }),
        ("hardest", MiningConfig { negative_image: NegativeImage::Hardest, ..official() }),
        ("mean_pool", MiningConfig { negative_word_pool: WordPool::Mean, ..official() }),
        ("alpha_three", MiningConfig { alpha: 3.0, ..official() }),
        ("star", MiningConfig { alpha_star: AlphaStar::FromEpoch(15), ..official() }),
        ("per_batch", MiningConfig { schedule: Schedule::PerBatch, ..official() }),
    ];
    for (name, config) in options {
        let want = &g["runs"][name];
        let mut boundary = Boundary { t: 0.21, t_s: 0.05, ..Boundary::default() };
        let close = |what: &str, got: &[f64], want: &[f64]| {
            assert_eq!(got.len(), want.len());
            let off =
                got.iter().zip(want).map(|(g, w)| (g - w).abs()).max_by(f64::total_cmp).unwrap();
            assert!(off < 2e-6, "{name}, {what}: {got:?} for {want:?}");
        };
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
        close("first", &wide(run(&mut boundary, &config, &products, 0)), &numbers(&want["first"]));
        close("after", &[boundary.t, boundary.t_s], &numbers(&want["after"]));
        close(
            "second",
            &wide(run(&mut boundary, &config, &products, 0)),
            &numbers(&want["second"]),
        );
        close("end", &[boundary.t, boundary.t_s], &numbers(&want["end"]));
    }
}

#[test]
fn trap_05_the_boundary_changes_inside_a_batch() {
    let mut boundary = Boundary { t: 0.3, ..Boundary::default() };
    let seen = run(&mut boundary, &official(), &ranked_right(24, 12), 0);
    assert_eq!(seen[0], 0.3, "the first sees what the last batch left");
    assert!(seen[1..17].iter().all(|&t| t == 0.0), "{seen:?}"); // 17 · 12 = 204 words
    assert!(seen[17..].iter().all(|&t| t > 0.2), "{seen:?}");
    assert!(seen.is_sorted_by(|a, b| a == b || *a == 0.3 || a < b), "it rises fast: {seen:?}");
}

/// Scores by hand: caption 0 scores highest with its own image, and lower with image 1 than with image 2.
#[test]
fn trap_06_the_least_similar_image_gives_the_mismatched_words() {
    let scores = [[0.9f32, 0.1, 0.5], [0.2, 0.8, 0.3], [0.4, 0.3, 0.7]]; // [caption][image]
    let sampled = |which| {
        let config = MiningConfig { negative_image: which, ..official() };
        let captions = MiningBatch { lengths: &[2; 3], own: &[0, 1, 2], epoch: 0, seed: 0 };
        let asked = std::cell::RefCell::new(vec![]);
        let words = |i: usize, c: usize, _| {
            asked.borrow_mut().push((i, c));
            vec![0.5; 2]
        };
        let column = |c: usize, _| scores[c].to_vec();
        let told = mine(&mut Boundary::default(), &config, &captions, column, words).unwrap();
        (asked.into_inner(), told.incorrect)
    };
    let (asked, incorrect) = sampled(NegativeImage::LeastSimilar);
    assert_eq!(asked, [(0, 0), (1, 0), (1, 1), (0, 1), (2, 2), (1, 2)]);
    assert_eq!(incorrect, [Some(1), Some(0), Some(1)]);
    let (asked, incorrect) = sampled(NegativeImage::Hardest);
    assert_eq!(asked, [(0, 0), (2, 0), (1, 1), (2, 1), (2, 2), (0, 2)]);
    assert_eq!(incorrect, [Some(2), Some(2), Some(0)]);
}

/// Two captions and four images. Image 1 is no caption's own image: it is the least similar image of caption 0 and the best of caption 1.
/// Two captions of one image name it once.
#[test]
fn images_without_a_caption_compete() {
    let scores = [[0.9f32, 0.1, 0.5, 0.3], [0.2, 0.8, 0.3, 0.7]]; // [caption][image]
    let captions = MiningBatch { lengths: &[2; 2], own: &[0, 3], epoch: 0, seed: 0 };
    let sampled = |which, captions: &MiningBatch, scores: &[[f32; 4]; 2]| {
        let config = MiningConfig { negative_image: which, ..official() };
        let column = |c: usize, _| scores[c].to_vec();
        let words = |_, _, _| vec![0.5; 2];
        mine(&mut Boundary::default(), &config, captions, column, words).unwrap().incorrect
    };
    assert_eq!(sampled(NegativeImage::LeastSimilar, &captions, &scores), [Some(1), None]);
    assert_eq!(sampled(NegativeImage::Hardest, &captions, &scores), [Some(2), None]);
    let of_one = MiningBatch { own: &[2, 2], ..captions };
    let scores = [[0.2, 0.1, 0.9, 0.3], [0.5, 0.5, 0.9, 0.5]];
    assert_eq!(sampled(NegativeImage::LeastSimilar, &of_one, &scores), [Some(1), Some(0)]);
    // A random image is each other image, also one without a caption.
    let mut drawn = [0; 4];
    for seed in 0..60 {
        let captions = MiningBatch { seed, ..of_one };
        let incorrect = sampled(NegativeImage::Random, &captions, &scores);
        incorrect.into_iter().flatten().for_each(|i| drawn[i] += 1);
    }
    assert!(drawn[2] == 0 && [0, 1, 3].iter().all(|&i| drawn[i] > 20), "{drawn:?}");
}

#[test]
fn trap_07_nothing_happens_at_exactly_200_words() {
    let start = Boundary { t: 0.3, t_s: 0.2, ..Boundary::default() };
    let run = |captions, words| {
        let mut boundary = start.clone();
        run(&mut boundary, &official(), &ranked_right(captions, words), 0);
        (boundary.t, boundary.t_s)
    };
    assert_eq!(run(19, 10), (0.0, 0.0), "190 words: reset");
    assert_eq!(run(20, 10), (0.0, 0.0), "reset on the way, nothing at 200");
    assert!(run(21, 10).0 > 0.2);
    // Per batch there is no reset on the way: 200 words change neither.
    let per_batch = MiningConfig { schedule: Schedule::PerBatch, ..official() };
    let once = |captions| {
        let mut boundary = start.clone();
        super::tests::run(&mut boundary, &per_batch, &ranked_right(captions, 10), 0);
        (boundary.t, boundary.t_s)
    };
    assert_eq!([once(19), once(20)], [(0.0, 0.0), (0.3, 0.2)]);
    assert!(once(21) != (0.3, 0.2) && once(21).0 > 0.0);
    let kept = MiningConfig { reset_below_min_words: false, ..per_batch.clone() };
    let mut boundary = start.clone();
    super::tests::run(&mut boundary, &kept, &ranked_right(5, 10), 0);
    assert_eq!((boundary.t, boundary.t_s), (0.3, 0.2));
}

/// The boundary is state: serde keeps it to the last bit. A new model scores with a boundary of 0.
#[test]
fn trap_12_the_boundary_is_state() {
    let mut boundary = Boundary::default();
    run(&mut boundary, &official(), &ranked_right(24, 12), 0);
    assert!(boundary.t > 0.1 && boundary.t_s > 0.1 && boundary.matched.count == 288);
    let text = serde_json::to_string(&boundary).unwrap();
    assert_eq!(serde_json::from_str::<Boundary>(&text).unwrap(), boundary);
    assert_eq!(Boundary::default().inference(&official()), 0.0);
}

#[test]
fn trap_21_all_words_sampled_so_far_count() {
    let mut boundary = Boundary::default();
    let products = ranked_right(24, 12);
    run(&mut boundary, &official(), &products, 0);
    let own: Vec<f32> = (0..24).flat_map(|c| pooled(&products)(c, c, WordPool::Max)).collect();
    assert_eq!(boundary.matched, ScoreDistribution::of(&own));
}

#[test]
fn a_caption_ranked_wrongly_is_not_sampled_and_a_tie_goes_to_the_first() {
    let captions = MiningBatch { lengths: &[3, 3], own: &[0, 1], epoch: 0, seed: 0 };
    let sampled = |scores: [[f32; 2]; 2]| {
        let (column, words) = (|c: usize, _| scores[c].to_vec(), |_, _, _| vec![0.5; 3]);
        let sampling =
            mine(&mut Boundary::default(), &official(), &captions, column, words).unwrap();
        sampling.captions().collect::<Vec<_>>()
    };
    assert_eq!(sampled([[0.9, 0.1], [0.8, 0.2]]), [0], "the second is ranked wrongly");
    assert_eq!(sampled([[0.9, 0.1], [0.2, 0.8]]), [0, 1]);
    assert_eq!(sampled([[0.5, 0.5], [0.5, 0.5]]), [0; 0], "all alike: no incorrect image");
}

/// The longest caption comes first, for any order of the batch. Equal lengths stay in order.
#[test]
fn trap_15_captions_are_visited_by_length_and_answered_in_order() {
    let captions = MiningBatch { lengths: &[2, 5, 3, 5], own: &[0, 1, 2, 3], epoch: 0, seed: 0 };
    let mut visited = vec![];
    let mut boundary = Boundary { t: 0.3, ..Boundary::default() };
    let column = |c, t| {
        visited.push((c, t));
        vec![0.0; 4]
    };
    let sampling = mine(&mut boundary, &official(), &captions, column, |_, _, _| vec![]).unwrap();
    assert_eq!(visited, [(1, 0.3), (3, 0.0), (2, 0.0), (0, 0.0)]);
    assert_eq!(sampling.thresholds, [0.0, 0.3, 0.0, 0.0]);
}

/// Each option leads to another boundary.
#[test]
fn every_option_changes_the_boundary() {
    let mut products = ranked_right(24, 12);
    for (i, image) in products.iter_mut().enumerate() {
        for (c, caption) in image.iter_mut().enumerate() {
            let noise = |k: u64| 0.2 * random::unit(9, (i * 24 + c) as u64 * 100 + k);
            caption.iter_mut().enumerate().for_each(|(w, row)| row.push(0.05 + noise(w as u64)));
        }
    }
    let after = |config: &MiningConfig, boundary: &Boundary| {
        let mut boundary = boundary.clone();
        let seen = run(&mut boundary, config, &products, 5);
        (seen, boundary.t, boundary.t_s)
    };
    let start = Boundary { t: 0.3, t_s: 0.2, ..Boundary::default() };
    let base = after(&official(), &start);
    let variants = [
        ("schedule", MiningConfig { schedule: Schedule::PerBatch, ..official() }),
        ("smoothing", MiningConfig { smoothing: 1.0, ..official() }),
        ("min_words", MiningConfig { min_words: 100, ..official() }),
        ("reset", MiningConfig { reset_below_min_words: false, ..official() }),
        ("hardest", MiningConfig { negative_image: NegativeImage::Hardest, ..official() }),
        ("random", MiningConfig { negative_image: NegativeImage::Random, ..official() }),
        ("pool", MiningConfig { negative_word_pool: WordPool::Mean, ..official() }),
        ("alpha", MiningConfig { alpha: 3.0, ..official() }),
        ("alpha_star", MiningConfig { alpha_star: AlphaStar::FromEpoch(20), ..official() }),
    ];
    for (name, config) in &variants {
        assert!(after(config, &start) != base, "{name}");
    }
    let later = MiningConfig { alpha_star: AlphaStar::FromEpoch(21), ..official() };
    assert_eq!(after(&later, &start), base, "not from epoch 21 on");
    let boundary = Boundary { t: 0.4, t_s: 0.1, ..Boundary::default() };
    let training = MiningConfig { inference_boundary: InferenceBoundary::Training, ..official() };
    assert_eq!([boundary.inference(&official()), boundary.inference(&training)], [0.1, 0.4]);
    let near = |form| MiningConfig { form, smoothing: 1.0, ..official() };
    let (matched, mismatched) = ([0.55f32, 0.65, 0.75], [0.15f32, 0.25, 0.35]);
    let of = |form| {
        let mut boundary = Boundary::default();
        boundary.update(&near(form), 0, &matched, &mismatched);
        boundary.t
    };
    assert!((of(Form::Stable) - of(Form::Official)).abs() > 1e-4, "deviations alike");
}

/// No cosine is above 1: such a boundary becomes 0, or the old one stays. A boundary below 0 becomes 0.
#[test]
fn a_boundary_out_of_range_is_limited() {
    let spread = |mean: f32| [mean - 0.1, mean, mean + 0.1];
    let of = |above_one, matched, mismatched| {
        let mut boundary = Boundary { t: 0.3, t_s: 0.3, ..Boundary::default() };
        let config = MiningConfig { above_one, smoothing: 1.0, ..official() };
        boundary.update(&config, 0, &spread(matched), &spread(mismatched));
        boundary.t
    };
    assert_eq!(of(AboveOne::Zero, 1.5, 0.9), 0.0);
    assert_eq!(of(AboveOne::Keep, 1.5, 0.9), 0.3);
    assert_eq!(of(AboveOne::Keep, 0.1, -0.5), 0.0);
}

#[test]
fn values_out_of_range_are_named() {
    let refused = |config: MiningConfig| config.check().unwrap_err().to_string();
    let line = refused(MiningConfig { smoothing: 0.0, ..official() });
    assert_eq!(line, "mining.smoothing: expected in (0, 1], got 0");
    assert!(refused(MiningConfig { alpha: f64::NAN, ..official() }).contains("mining.alpha"));
    assert!(refused(MiningConfig { min_words: 0, ..official() }).contains("mining.min_words"));
    assert!(official().check().is_ok());
}

proptest! {
    /// For all scores, t and t_s stay finite and in [0, 1].
    #[test]
    fn boundaries_stay_where_cosines_are(values in proptest::collection::vec(-1.0f32..1.0, 24 * 24), batch: bool, seed in 0u64..9) {
        let text = |i: usize, c: usize| (0..12).map(|w| vec![values[(i * 24 + c + 7 * w) % (24 * 24)]]).collect();
        let products: Products = (0..24).map(|i| (0..24).map(|c| text(i, c)).collect()).collect();
        for form in [Form::Stable, Form::Official] {
            let schedule = if batch { Schedule::PerBatch } else { Schedule::PerCaption };
            let config = MiningConfig { schedule, form, negative_image: NegativeImage::Random, ..official() };
            let mut boundary = Boundary::default();
            for _ in 0..2 {
                let seen = run(&mut boundary, &config, &products, seed);
                prop_assert!(seen.iter().all(|t| (0.0..=1.0).contains(t)));
                prop_assert!((0.0..=1.0).contains(&boundary.t) && (0.0..=1.0).contains(&boundary.t_s));
            }
        }
    }
}

/// The error names what cannot be sampled, and the boundary does not change.
#[test]
fn mining_that_is_refused_leaves_the_boundary_as_it_was() {
    let good = MiningConfig { min_words: 1, ..official() };
    let refused = |config: &MiningConfig, own: &[usize], scores: [f32; 2], words: [f32; 2]| {
        let mut boundary = Boundary { t: 0.3, ..Boundary::default() };
        let captions = MiningBatch { lengths: &[2, 2], own, epoch: 0, seed: 0 };
        // Caption 0 moves the boundary before caption 1 is refused.
        let column = |c: usize, _| if c == 0 { vec![0.9, 0.1] } else { scores.to_vec() };
        let of = |i: usize, c: usize, _| {
            if c == 1 && i == 1 { words.to_vec() } else { vec![0.2, 0.5 + i as f32] }
        };
        let line = mine(&mut boundary, config, &captions, column, of).unwrap_err().to_string();
        assert_eq!(boundary, Boundary { t: 0.3, ..Boundary::default() });
        line
    };
    let (scores, words) = ([0.1, 0.9], [0.5, 0.6]);
    let config = MiningConfig { alpha: 0.0, ..good.clone() };
    assert!(refused(&config, &[0, 1], scores, words).starts_with("mining.alpha: expected"));
    let line = refused(&good, &[0], scores, words);
    assert_eq!(line, "own images of the captions: expected 2, one per caption, got 1");
    let line = refused(&good, &[0, 2], scores, words);
    assert_eq!(line, "scores of caption 0: expected at least 3, one per image, got 2");
    let line = refused(&good, &[0, 1], [0.1, f32::NAN], words);
    assert_eq!(line, "scores of caption 1: expected finite numbers, got NaN");
    let line = refused(&good, &[0, 1], scores, [0.5, f32::INFINITY]);
    assert_eq!(line, "words of caption 1 with image 1: expected finite numbers, got inf");
    let mut boundary = Boundary::default();
    let captions = MiningBatch { lengths: &[2, 2], own: &[0, 1], epoch: 0, seed: 0 };
    let column = |c: usize, _| if c == 0 { vec![0.9, 0.1] } else { vec![0.1, 0.9] };
    let line = mine(&mut boundary, &good, &captions, column, |_, _, _| vec![0.5]).unwrap_err();
    assert_eq!(line.to_string(), "words of caption 0 with image 0: expected 2 numbers, got 1");
    let column = |c: usize, _| if c == 0 { vec![0.9, 0.1] } else { vec![0.1, 0.9, 0.2] };
    let line = mine(&mut boundary, &good, &captions, column, |_, _, _| vec![0.5; 2]).unwrap_err();
    assert_eq!(line.to_string(), "scores of caption 1: expected 2, one per image, got 3");
}
