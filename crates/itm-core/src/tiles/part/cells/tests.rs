use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::Reduction;
use super::*;
use crate::tiles::tests::{tiles, unit};

const DIM: usize = 3;
const N: usize = 2 * CELL + 70;
const M: usize = CELL + 1; // the last cell of a row has one text

/// Rectangles of whole cells: all rows apart, or some together.
fn cut(rng: &mut ChaCha8Rng) -> Vec<[Range<usize>; 2]> {
    let mut spans = |whole: usize| {
        let mut ends: Vec<_> = (0..=cells(whole)).map(|cell| (cell * CELL).min(whole)).collect();
        ends.retain(|&end| end == 0 || end == whole || rng.random());
        ends.windows(2).map(|two| two[0]..two[1]).collect::<Vec<_>>()
    };
    let (rows, columns) = (spans(N), spans(M));
    rows.iter().flat_map(|r| columns.iter().map(|c| [r.clone(), c.clone()])).collect()
}

fn joined(all: &Tiles<'_>, reduction: Reduction<'_>, rng: &mut ChaCha8Rng) -> Part {
    let part = |[rows, columns]: [Range<usize>; 2]| {
        let origin = (rows.start, columns.start);
        all.within(rows, columns).part(reduction, origin, (N, M)).unwrap()
    };
    let mut parts: Vec<_> = cut(rng).into_iter().map(part).collect();
    while parts.len() > 1 {
        parts.shuffle(rng);
        let [a, b] = [parts.pop().unwrap(), parts.pop().unwrap()];
        parts.push(a.join(Part::from_bytes("b.part", &b.to_bytes()).unwrap()).unwrap());
    }
    parts.pop().unwrap()
}

#[test]
fn any_split_of_cells_and_any_tree_are_one_pass() {
    let (v, w) = (unit(N, DIM, 1), unit(M, DIM, 2));
    let all = tiles(&v, &w, DIM);
    let (once, moments) = (all.run(&ExpSums::new(20.0)), all.run(&Moments));
    for of in [Side::Images, Side::Texts] {
        let sums = Reduction::ExpSums(of, 20.0);
        let want = all.part(sums, (0, 0), (N, M)).unwrap();
        let means = all.part(Reduction::Moments(of), (0, 0), (N, M)).unwrap();
        for seed in 0..4 {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            // The state itself: its slots are what a result is made of, in ascending order.
            let (a, b) = (joined(&all, sums, rng), joined(&all, Reduction::Moments(of), rng));
            assert!((&a.images, &a.texts) == (&want.images, &want.texts), "{of:?}, {seed}");
            assert!((&b.images, &b.texts) == (&means.images, &means.texts), "{of:?}, {seed}");
        }
        // The engine's own sums have other lanes: the same numbers, up to rounding.
        let got = want.log_sums().unwrap();
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12 * b.abs().max(1.0);
        assert!(got.iter().zip(of.of(&once.images, &once.texts)).all(near));
        let got = means.moments().unwrap();
        let alike = |(a, b): (&Moment, &Moment)| {
            a.count == b.count
                && (a.mean - b.mean).abs() < 1e-12
                && (a.deviation() - b.deviation()).abs() < 1e-12
        };
        assert!(got.iter().zip(of.of(&moments.images, &moments.texts)).all(alike));
    }
}

/// Within one cell a part is the engine's pass.
#[test]
fn one_cell_has_the_bits_of_the_engine() {
    let (v, w) = (unit(700, DIM, 1), unit(90, DIM, 2));
    let all = tiles(&v, &w, DIM);
    let part = |of| all.part(Reduction::ExpSums(of, 7.0), (0, 0), (700, 90)).unwrap();
    let want = all.run(&ExpSums::new(7.0));
    assert_eq!(part(Side::Images).log_sums().unwrap(), want.images);
    assert_eq!(part(Side::Texts).log_sums().unwrap(), want.texts);
    let means = all.part(Reduction::Moments(Side::Texts), (0, 0), (700, 90)).unwrap();
    assert_eq!(means.moments().unwrap(), all.run(&Moments).texts);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (v, w) = (unit(40, DIM, 1), unit(30, DIM, 2));
    let all = tiles(&v, &w, DIM);
    let line =
        |reduction, origin, whole| all.part(reduction, origin, whole).unwrap_err().to_string();
    let sums = Reduction::ExpSums(Side::Texts, 2.0);
    assert_eq!(
        line(sums, (0, 0), (50, 30)),
        "part: expected images that begin and end at multiples of 4096 or at the end, 50, for sums, got 0 to 40"
    );
    assert!(line(Reduction::Moments(Side::Images), (0, 5), (40, 35)).contains("texts that begin"));
    for beta in [0.0, -1.0, f64::NAN, 1e200] {
        let want = format!("part: expected a β above 0 and below 1e200, got {beta}");
        assert_eq!(line(Reduction::ExpSums(Side::Texts, beta), (0, 0), (40, 30)), want);
    }
    let part = all.part(sums, (0, 0), (40, 30)).unwrap();
    let of_images = all.part(Reduction::ExpSums(Side::Images, 2.0), (0, 0), (40, 30)).unwrap();
    let want = "part: expected log Σ exp(2·s) of every text, got log Σ exp(2·s) of every image";
    assert_eq!(part.clone().join(of_images).unwrap_err().to_string(), want);
    let want = "part: expected means and deviations, got log Σ exp(2·s) of every text";
    assert_eq!(part.moments().unwrap_err().to_string(), want);
    for bits in [f64::NAN.to_bits(), f64::INFINITY.to_bits(), f64::NEG_INFINITY.to_bits()] {
        let mut part = part.clone();
        part.texts.values[3] = bits;
        let want = "part: expected sums that are finite numbers, got another";
        assert_eq!(part.log_sums().unwrap_err().to_string(), want);
    }
}
