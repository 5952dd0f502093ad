//! The example's numbers, computed again from the equations: the moments, the boundary by bisection, the effect of each word.

#[path = "../examples/own_features.rs"]
mod example;

use example::{N, best, boundary, side};
use naaf::{MiningConfig, NaafConfig, Preset, effects};

/// The density of a normal distribution.
fn density(x: f64, mean: f64, deviation: f64) -> f64 {
    (-((x - mean) / deviation).powi(2) / 2.0).exp() / deviation
}

#[test]
fn the_parts_alone_are_the_equations() {
    example::main().unwrap();
    let (regions, words) = (side(1), side(2));
    let made = boundary(&regions, &words).unwrap();

    // Eq. 13 and 14 by hand: each caption's words in its own image, and in the image that is least like the caption.
    let mean =
        |values: &[f32]| values.iter().map(|&x| f64::from(x)).sum::<f64>() / values.len() as f64;
    let deviation = |values: &[f32]| {
        let m = mean(values);
        let squares = values.iter().map(|&x| (f64::from(x) - m).powi(2)).sum::<f64>();
        (squares / (values.len() - 1) as f64).sqrt()
    };
    let (mut matched, mut mismatched) = (vec![], vec![]);
    for caption in 0..N {
        let score = |i: usize| mean(&best(&regions, &words, i, caption));
        let least = (0..N).min_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap();
        matched.extend(best(&regions, &words, caption, caption));
        mismatched.extend(best(&regions, &words, least, caption));
    }
    let ((mp, sp), (mn, sn)) =
        ((mean(&matched), deviation(&matched)), (mean(&mismatched), deviation(&mismatched)));
    assert!((made.matched.mean - mp).abs() < 1e-9 && (made.mismatched.deviation - sn).abs() < 1e-9);

    // Eq. 4 by bisection: f⁺(t) = α f⁻(t) between the two means.
    let alpha = MiningConfig::preset(Preset::Default).alpha;
    let (mut low, mut high) = (mn, mp);
    for _ in 0..100 {
        let t = (low + high) / 2.0;
        if density(t, mp, sp) > alpha * density(t, mn, sn) { high = t } else { low = t }
    }
    assert!((made.t - low).abs() < 1e-9, "{} for {low}", made.t);

    // The boat is not in image 0: it takes from the score and adds little.
    let d = regions.len() / (3 * N);
    let caption = [&words[..2 * d], &words[9 * d..10 * d]].concat();
    let attention = NaafConfig::preset(Preset::Default).attention;
    let found = effects(&regions[..3 * d], &caption, d, made.t as f32, &attention);
    let [dog, ball, boat] = &found.unwrap().unwrap().words[..] else { panic!("three words") };
    let takes = |word: &naaf::WordEffect| word.effect.negative.unwrap();
    assert_eq!((takes(dog), takes(ball)), (0.0, 0.0));
    let most = boat.products.iter().copied().fold(f32::MIN, f32::max);
    assert!((takes(boat) - (most - made.t as f32)).abs() < 1e-6 && takes(boat) < 0.0); // Eq. 7
    assert!(boat.effect.positive < dog.effect.positive);
}
