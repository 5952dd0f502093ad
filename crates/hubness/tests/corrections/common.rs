//! Embeddings and matrices of the tests, and every correction over them.

use std::ops::Range;

use hubness::*;
use itm_core::scored::visit;
use itm_core::tiles::{AnyConsumer, AnyState, Consumer, Embeddings, Side, Tile, Tiles};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Scores in `low..high`, rounded to multiples of 1/1024.
pub(crate) fn random(images: usize, texts: usize, low: f32, high: f32, seed: u64) -> ScoreMatrix {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let value = |_| (rng.random_range(low..high) * 1024.0).round() / 1024.0;
    ScoreMatrix::new(images, texts, (0..images * texts).map(value).collect()).unwrap()
}

pub(crate) fn constant(images: usize, texts: usize, value: f32) -> ScoreMatrix {
    ScoreMatrix::new(images, texts, vec![value; images * texts]).unwrap()
}

/// A copy of the scores with `f` applied to image, text and score.
pub(crate) fn changed(s: &ScoreMatrix, f: impl Fn(usize, usize, f32) -> f32) -> ScoreMatrix {
    let (n, m) = (s.images(), s.texts());
    let value = |(at, &s): (usize, &f32)| f(at / m, at % m, s);
    ScoreMatrix::new(n, m, s.values().iter().enumerate().map(value).collect()).unwrap()
}

/// Corrected scores, a row for each query.
pub(crate) fn corrected(map: &dyn Rescore, d: Direction, s: &ScoreMatrix) -> Vec<Vec<f64>> {
    let s = d.queries(s.clone(), s.transpose());
    let row = |q: usize| (0..s.texts()).map(|j| map.rescore(q, j, s.row(q)[j])).collect();
    (0..s.images()).map(row).collect()
}

/// Items from best to worst; of equal values, the smaller index first.
pub(crate) fn order(u: &[f64]) -> Vec<usize> {
    let mut order: Vec<_> = (0..u.len()).collect();
    order.sort_by(|&a, &b| u[b].partial_cmp(&u[a]).unwrap());
    order
}

pub(crate) fn orders(u: &[Vec<f64>]) -> Vec<Vec<usize>> {
    u.iter().map(|row| order(row)).collect()
}

pub(crate) fn ranking(map: &dyn Rescore, d: Direction, s: &ScoreMatrix) -> Vec<Vec<usize>> {
    orders(&corrected(map, d, s))
}

pub(crate) fn lse(z: impl Iterator<Item = f64>) -> f64 {
    let z: Vec<_> = z.collect();
    let most = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + z.iter().map(|z| (z - most).exp()).sum::<f64>().ln()
}

/// Whether two vectors are equal up to a constant.
pub(crate) fn same_but_for_a_constant(a: &[f64], b: &[f64], within: f64) -> bool {
    let shift = a[0] - b[0];
    a.iter().zip(b).all(|(a, b)| (a - b - shift).abs() <= within)
}

/// The inputs of all corrections of one direction.
#[derive(Clone)]
pub(crate) struct Inputs<S> {
    pub(crate) direction: Direction,
    pub(crate) test: S,
    pub(crate) bank: S,
    pub(crate) item_bank: S,
}

impl Inputs<ScoreMatrix> {
    /// The test restricted to some queries.
    pub(crate) fn some(&self, queries: &[usize]) -> Self {
        let side = self.direction.queries(Side::Images, Side::Texts);
        Self { test: self.test.scores_of(side, queries).unwrap(), ..self.clone() }
    }

    /// Random cosines, the same seed for both directions.
    pub(crate) fn random(direction: Direction, low: f32, high: f32, seed: u64) -> Self {
        let (n, m, b) = (23, 41, 30);
        let make = |images, texts, more| random(images, texts, low, high, seed + more);
        let by = |i2t: (usize, usize), t2i: (usize, usize)| direction.queries(i2t, t2i);
        let ((bi, bt), (gi, gt)) = (by((b, m), (n, b)), by((b, m), (n, b)));
        Self { direction, test: make(n, m, 0), bank: make(bi, bt, 1), item_bank: make(gi, gt, 2) }
    }
}

/// Unit rows with positive coordinates: all cosines are above 0.
pub(crate) fn rows(count: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values: Vec<f32> = (0..count * dim).map(|_| rng.random_range(0.01..1.0)).collect();
    for row in values.chunks_mut(dim) {
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
    }
    values
}

pub(crate) const DIM: usize = 8;

/// Images, texts, bank images, bank texts: rows of [`DIM`] values.
pub(crate) type World = [Vec<f32>; 4];

pub(crate) fn tiled(world: &World, direction: Direction) -> Inputs<Tiles<'_>> {
    let side = |at: usize| {
        let values = &world[at];
        Embeddings::new("rows", values.len() / DIM, DIM, values).unwrap()
    };
    let tiles = |images, texts| Tiles::new(side(images), side(texts)).unwrap();
    let by = |i2t, t2i| direction.queries(i2t, t2i);
    Inputs {
        direction,
        test: tiles(0, 1),
        bank: by(tiles(2, 1), tiles(0, 3)),
        item_bank: by(tiles(3, 1), tiles(0, 2)),
    }
}

impl<S> Inputs<S> {
    pub(crate) fn map<T>(&self, f: impl Fn(&S) -> T) -> Inputs<T> {
        Inputs {
            direction: self.direction,
            test: f(&self.test),
            bank: f(&self.bank),
            item_bank: f(&self.item_bank),
        }
    }
}

/// Every correction on every source that it supports.
pub(crate) fn all<S: Scored>(x: &Inputs<S>) -> Vec<(&'static str, AnyCorrection)> {
    fits(x).into_iter().map(|(name, fit)| (name, fit.unwrap())).collect()
}

/// The fits of [`all`], each with its error if it failed.
pub(crate) fn fits<S: Scored>(x: &Inputs<S>) -> Vec<(&'static str, Result<AnyCorrection>)> {
    let (d, test) = (x.direction, &x.test);
    let (queries, held_out) = (TestQueries(test), HeldOutBank(&x.bank));
    let qb = QueryBank::default();
    let dual = DualBank { query_beta: 20.0, item_beta: 10.0, ..DualBank::default() };
    let dis = DualBank { dynamic: true, ..dual };
    let sinkhorn = Sinkhorn { epsilon: 0.05, iterations: 5, ..Sinkhorn::default() };
    let local = LocalScaling { k: 5, ..LocalScaling::default() };
    let nicdm = LocalScaling { k: 5, ..LocalScaling::nicdm() };
    let empirical = EmpiricalProximity::default();
    let items = &x.item_bank;
    vec![
        ("NNN", Nnn::default().fit(&queries, d).map(Correction::into_any)),
        ("NNN, bank", Nnn { k: 4, ..Nnn::default() }.fit(&held_out, d).map(Correction::into_any)),
        ("QB-Norm", qb.fit(&held_out, test, d).map(Correction::into_any)),
        ("QB-Norm, test", qb.fit(&queries, test, d).map(Correction::into_any)),
        ("Dual-IS", dual.fit(&held_out, items, test, d).map(Correction::into_any)),
        ("Dual-DIS", dis.fit(&held_out, items, test, d).map(Correction::into_any)),
        ("Sinkhorn", sinkhorn.fit(&queries, d).map(|b| b.correction.into_any())),
        ("Sinkhorn, bank", sinkhorn.fit(&held_out, d).map(|b| b.correction.into_any())),
        ("Gaussian", GaussianProximity.fit(&queries, test, d).map(Correction::into_any)),
        ("Gaussian, bank", GaussianProximity.fit(&held_out, test, d).map(Correction::into_any)),
        ("empirical", empirical.fit(&queries, test, d).map(Correction::into_any)),
        ("empirical, bank", empirical.fit(&held_out, test, d).map(Correction::into_any)),
        ("local scaling", local.fit(&queries, test, d).map(Correction::into_any)),
        ("local scaling, bank", local.fit(&held_out, test, d).map(Correction::into_any)),
        ("NICDM", nicdm.fit(&queries, test, d).map(Correction::into_any)),
        ("NICDM, bank", nicdm.fit(&held_out, test, d).map(Correction::into_any)),
    ]
}

/// Scores with `value` wherever `at` holds. Only a consumer sees `value`.
pub(crate) struct Masked<'a> {
    pub(crate) scores: &'a ScoreMatrix,
    pub(crate) value: f32,
    pub(crate) at: fn(usize, usize) -> bool,
}

impl Scored for Masked<'_> {
    fn images(&self) -> usize {
        self.scores.images()
    }

    fn texts(&self) -> usize {
        self.scores.texts()
    }

    fn block(&self, _images: Range<usize>, _texts: Range<usize>) -> Result<ScoreMatrix> {
        panic!("no tested correction asks for single pairs or rows")
    }

    fn visit(&self, consumer: &AnyConsumer) -> Result<AnyState> {
        visit(self.scores, &Masking { mask: self, consumer })
    }
}

struct Masking<'a, 'm> {
    mask: &'a Masked<'m>,
    consumer: &'a AnyConsumer<'a>,
}

impl Consumer for Masking<'_, '_> {
    type State = AnyState;
    type Output = AnyState;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> AnyState {
        self.consumer.start(images, texts)
    }

    fn tile(&self, state: &mut AnyState, tile: &Tile<'_>) {
        let (texts, mask) = (tile.texts(), self.mask);
        let masked = |(i, row): (usize, &[f32])| {
            let one = |(j, &s): (usize, &f32)| if (mask.at)(i, j) { mask.value } else { s };
            texts.clone().zip(row).map(one).collect::<Vec<_>>()
        };
        let scores: Vec<f32> = tile.rows().flat_map(masked).collect();
        self.consumer.tile(state, &Tile::new(tile.images(), texts.clone(), &scores, texts.len()));
    }

    fn merge(&self, total: &mut AnyState, lane: AnyState) {
        self.consumer.merge(total, lane);
    }

    fn finish(&self, total: AnyState) -> AnyState {
        self.consumer.finish(total)
    }
}
