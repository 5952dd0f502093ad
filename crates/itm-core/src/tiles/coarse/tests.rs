use super::super::tests::{everywhere, grid, tiles, unit};
use super::super::{Side, Top};
use super::*;
use crate::Pairs;

/// A side, and a side that lies close to it or far from it.
type Sides = (Vec<f32>, Vec<f32>);

/// `m` texts, each near the image `t · n / m`, by noise of this size.
fn near(v: &[f32], n: usize, m: usize, dim: usize, noise: f32) -> Vec<f32> {
    let other = unit(m, dim, 9);
    let value = |t: usize, k: usize| v[t * n / m * dim + k] + noise * other[t * dim + k];
    (0..m).flat_map(|t| (0..dim).map(move |k| (t, k))).map(|(t, k)| value(t, k)).collect()
}

/// Rows that differ in their seventh digit only.
fn collapsed(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let noise = unit(rows, dim, seed);
    (0..rows * dim).map(|at| (at % dim) as f32 * 0.01 + 1e-7 * noise[at]).collect()
}

/// Rows whose lengths differ a thousandfold.
fn stretched(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut values = unit(rows, dim, seed);
    let scale = |row: usize| 10f32.powi((row * 7 % 4) as i32 - 3);
    values
        .chunks_mut(dim)
        .enumerate()
        .for_each(|(i, row)| row.iter_mut().for_each(|v| *v *= scale(i)));
    values
}

fn both(
    tiles: &Tiles<'_>,
    pairs: &Pairs,
) -> (BothSides<Standing>, BothSides<Standing>, CoarseWork) {
    let counts = RankCounts::new(tiles, pairs).unwrap();
    let bounds = Bounds::new(&tiles.images, &tiles.texts).unwrap();
    let (got, decided) = tiles.run_coarse(&bounds, &CoarseCounts::new(&counts, &bounds));
    (got, tiles.run(&counts), decided)
}

/// The same counts, to the last one, whatever the scores look like; the work is the same on every number of threads.
#[test]
fn counts_are_the_counts_of_f32() {
    for (n, m, dim) in [(5, 9, 3), (70, 350, 64), (193, 577, 100), (300, 130, 520), (65, 700, 1030)]
    {
        let v = unit(n, dim, 1);
        let cases: [(&str, Sides); 7] = [
            ("apart", (v.clone(), unit(m, dim, 2))),
            ("near", (v.clone(), near(&v, n, m, dim, 0.5))),
            ("tiny margins", (v.clone(), near(&v, n, m, dim, 1e-6))),
            ("ties", (grid(n * dim, 1, 3), grid(m * dim, 1, 4))),
            ("twins", (near(&v[..dim], 1, n, dim, 0.0), near(&v, n, m, dim, 0.0))),
            ("collapsed", (collapsed(n, dim, 5), collapsed(m, dim, 6))),
            ("stretched", (stretched(n, dim, 7), stretched(m, dim, 8))),
        ];
        let pairs = Pairs::new(n, (0..m).map(|t| t * n / m).collect()).unwrap();
        for (name, (v, w)) in &cases {
            let tiles = tiles(v, w, dim);
            let once = both(&tiles, &pairs).2;
            everywhere(&tiles, |tiles| {
                let (got, want, _) = both(tiles, &pairs);
                assert_eq!(got, want, "{name}: {n} × {m} × {dim}");
            });
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            assert_eq!(pool.install(|| both(&tiles, &pairs).2), once, "{name}");
        }
    }
}

/// The same lists, with the same scores, in the same order; twins are tied, and collapsed rows crowd the lists.
#[test]
fn the_best_items_are_the_best_items_of_f32() {
    for (n, m, dim) in [(5, 9, 3), (70, 350, 64), (300, 130, 520), (65, 1200, 33)] {
        let v = unit(n, dim, 1);
        let cases: [Sides; 5] = [
            (v.clone(), near(&v, n, m, dim, 0.5)),
            (near(&v[..dim], 1, n, dim, 0.0), near(&v, n, m, dim, 0.0)),
            (grid(n * dim, 1, 3), grid(m * dim, 1, 4)),
            (collapsed(n, dim, 5), collapsed(m, dim, 6)),
            (stretched(n, dim, 7), stretched(m, dim, 8)),
        ];
        for (case, (v, w)) in cases.iter().enumerate() {
            let tiles = tiles(v, w, dim);
            let bounds = Bounds::new(&tiles.images, &tiles.texts).unwrap();
            for k in [0, 1, 10, 100] {
                let want = tiles.run(&(Top::new(Side::Images, k), Top::new(Side::Texts, k)));
                everywhere(&tiles, |tiles| {
                    let got = [Side::Images, Side::Texts]
                        .map(|queries| tiles.top_coarse(&bounds, k, queries));
                    assert!(
                        got == [want.0.clone(), want.1.clone()],
                        "case {case}, k = {k}: {n} × {m}"
                    );
                });
            }
        }
    }
}

/// Few candidates stand beside the best items where scores differ; where they do not, a sample says so at once.
#[test]
fn crowded_lists_are_noticed() {
    let (n, m, dim) = (400, 2000, 128);
    let v = unit(n, dim, 1);
    let w = near(&v, n, m, dim, 2.0);
    let apart = tiles(&v, &w, dim);
    let bounds = Bounds::new(&apart.images, &apart.texts).unwrap();
    for queries in [Side::Images, Side::Texts] {
        assert!(!apart.is_crowded(10, queries));
        let lists = apart.candidates(&bounds, 10, queries);
        let kept: usize = lists.iter().flatten().map(Vec::len).sum();
        assert!(lists.iter().all(Option::is_some) && kept < 11 * lists.len(), "{kept} items");
    }
    let (v, w) = (collapsed(n, dim, 5), collapsed(m, dim, 6));
    let close = tiles(&v, &w, dim);
    assert!(close.is_crowded(10, Side::Images) && close.is_crowded(10, Side::Texts));
    assert_eq!(close.top(Side::Images, 10), close.run(&Top::new(Side::Images, 10)));
    for k in [0, 10, 200, 3000] {
        assert_eq!(apart.top(Side::Images, k), apart.run(&Top::new(Side::Images, k)), "k = {k}");
        assert_eq!(apart.top(Side::Texts, k), apart.run(&Top::new(Side::Texts, k)), "k = {k}");
    }
}

/// Most scores are decided by the integers where scores differ; where they do not, the coarse product is given up.
#[test]
fn the_work_follows_the_scores() {
    let (n, m, dim) = (400, 2000, 512);
    let v = unit(n, dim, 1);
    let pairs = Pairs::new(n, (0..m).map(|t| t * n / m).collect()).unwrap();
    let w = near(&v, n, m, dim, 2.0);
    let decided = both(&tiles(&v, &w, dim), &pairs).2;
    assert_eq!(decided.whole, 0);
    assert!((2_000..16_000).contains(&decided.again), "{decided:?}"); // each true pair, and at most 2 %
    let (v, w) = (collapsed(n, dim, 5), collapsed(m, dim, 6));
    let decided = both(&tiles(&v, &w, dim), &pairs).2;
    assert_eq!((decided.again, decided.whole), (0, 800_000));
}

/// `|A B · s − q·r|` of each pair within its bound. Values halfway between two integers are the worst: with them, the bound of the
/// integers alone is used up by two thirds.
#[test]
fn no_score_is_farther_than_its_bound() {
    for dim in [64, 513] {
        let n = 40;
        let half = |seed| {
            let mut values = vec![0.0; n * dim];
            // The first row sets the scale to 1: 32,000 long. All others lie between integers.
            values[0] = 32_000.0;
            let noise = grid(n * dim, 40, seed);
            values[dim..].iter_mut().zip(&noise).for_each(|(v, k)| *v = k.abs() + 0.499);
            values
        };
        let mut most = 0.0f64;
        for (v, w) in [
            (half(1), half(2)),
            (unit(n, dim, 3), unit(n, dim, 4)),
            (stretched(n, dim, 5), collapsed(n, dim, 6)),
        ] {
            let tiles = tiles(&v, &w, dim);
            let bounds = Bounds::new(&tiles.images, &tiles.texts).unwrap();
            let (mut rows, mut columns, mut sums) =
                (PackedRows::default(), PackedColumns::default(), Vec::new());
            rows.fill(&v, dim, bounds.images.scale);
            columns.fill(&w, dim, bounds.texts.scale);
            int16::product(&rows, 0..n, &columns, &mut sums);
            let scores = tiles.scores();
            for i in 0..n {
                for j in 0..n {
                    let far = bounds.of_pair(
                        f64::from(scores.row(i)[j]),
                        sums[i * columns.width() + j],
                        i,
                        j,
                    );
                    assert!(far <= 1.0, "{far} of the bound at {i}, {j}, {dim} wide");
                    most = most.max(far);
                }
            }
        }
        assert!(most > 0.6, "{most} of the bound is used at most");
    }
}

/// Without a scale there is no coarse product, and the ranks come from f32.
#[test]
fn zeros_and_extremes_have_no_bounds() {
    for value in [0.0, 1e-37, 3e-42] {
        let (v, w) = (vec![value; 20 * 64], unit(20, 64, 1));
        assert!(
            Bounds::new(&tiles(&v, &w, 64).images, &tiles(&v, &w, 64).texts).is_none(),
            "{value}"
        );
    }
    let (n, dim) = (1100, 64);
    let (v, w) = (vec![0.0; n * dim], unit(n, dim, 1));
    let tiles = tiles(&v, &w, dim);
    let counts = RankCounts::new(&tiles, &Pairs::uniform(n, 1)).unwrap();
    assert!(tiles.bounds().is_none());
    assert_eq!(tiles.counts(&counts), tiles.run(&counts));
}
