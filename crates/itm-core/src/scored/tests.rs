use std::cell::RefCell;

use itm_kernels::random;
use proptest::prelude::*;

use super::*;
use crate::eval::folds;
use crate::tiles::{ExpSums, Maxima};

/// Values in steps of a quarter, so that there are ties.
fn coarse(n: usize, seed: u64) -> Vec<f32> {
    (0..n).map(|k| (random::unit(seed, k as u64) * 4.0).round() / 4.0).collect()
}

fn embeddings([n, m, dim]: [usize; 3], similarity: Similarity, seed: u64) -> EmbeddingRows {
    let (images, texts) = (coarse(n * dim, seed), coarse(m * dim, seed + 1));
    EmbeddingRows { dim, images, texts, similarity }
}

/// Every image has a text; the other texts are spread.
fn scattered(n: usize, m: usize) -> Pairs {
    Pairs::new(n, (0..m).map(|t| if t < n { n - 1 - t } else { t * 37 % n }).collect()).unwrap()
}

/// A model that implements only `block`, and records the calls.
struct Blocks {
    scores: ScoreMatrix,
    asked: RefCell<Vec<[Range<usize>; 2]>>,
}

impl Blocks {
    fn new(scores: ScoreMatrix) -> Self {
        Self { scores, asked: RefCell::default() }
    }
}

impl Scored for Blocks {
    fn images(&self) -> usize {
        self.scores.images()
    }

    fn texts(&self) -> usize {
        self.scores.texts()
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        self.asked.borrow_mut().push([images.clone(), texts.clone()]);
        self.scores.block(images, texts)
    }
}

/// By hand: rows are images, columns are texts.
#[test]
fn golden_two_by_three() {
    let rows = |similarity| EmbeddingRows {
        dim: 2,
        images: vec![1.0, 0.0, 0.6, 0.8],
        texts: vec![0.0, 1.0, 1.0, 0.0, 0.8, 0.6],
        similarity,
    };
    for (similarity, want) in [
        (Similarity::Cosine, [0.0, 1.0, 0.8, 0.8, 0.6, 0.96]),
        // The positive part of text − image: 1, 0 and 0.6 for image 0; 0.2, 0.4 and 0.2 for image 1.
        (Similarity::Order, [-1.0, 0.0, -0.6, -0.2, -0.4, -0.2]),
    ] {
        let scores = rows(similarity).matrix().unwrap();
        assert_eq!((scores.images(), scores.texts()), (2, 3));
        let off = scores
            .values()
            .iter()
            .zip(want)
            .map(|(s, w)| (s - w).abs())
            .max_by(f32::total_cmp)
            .unwrap();
        assert!(off < 1e-6, "{similarity:?}: {scores:?}");
    }
}

#[test]
fn a_value_that_is_not_finite_is_named_by_its_row_among_all() {
    for similarity in [Similarity::Cosine, Similarity::Order] {
        let mut rows = embeddings([5, 4, 3], similarity, 1);
        rows.images[2 * 3 + 1] = f32::NAN;
        let line = rows.block(1..4, 0..1).unwrap_err().to_string();
        assert_eq!(line, "image embeddings, row 2, column 1: expected a finite number, got NaN");
        assert!(rows.block(3..5, 0..4).is_ok(), "a block without it");
        rows.texts[3 * 3] = f32::INFINITY;
        let line = rows.pairs(&[0], &[3]).unwrap_err().to_string();
        assert!(line.contains("row 2, column 1") || line.starts_with("text embeddings, row 3"));
        assert!(rows.ranks(&Pairs::uniform(5, 1)).is_err(), "another number of texts");
    }
    let mut rows = embeddings([2, 2, 3], Similarity::Cosine, 1);
    rows.texts.pop();
    let line = rows.matrix().unwrap_err().to_string();
    assert_eq!(line, "text embeddings: expected 1 × 3 values, got 5");
}

/// Ranks from blocks compute each score once, the scores of the true pairs a second time, and at most one band at a time.
#[test]
fn ranks_hold_a_band() {
    let (n, m) = (600, 700);
    let scores = ScoreMatrix::new(n, m, coarse(n * m, 3)).unwrap();
    let (model, pairs) = (Blocks::new(scores.clone()), scattered(n, m));
    assert_eq!(model.ranks(&pairs).unwrap(), Ranks::new(&scores, &pairs).unwrap());
    let asked = model.asked.into_inner();
    let size = |[images, texts]: &[Range<usize>; 2]| images.len() * texts.len();
    assert_eq!(asked.iter().map(size).sum::<usize>(), n * m + m);
    assert!(asked.iter().all(|block| size(block) <= 256 * m));

    let (model, lonely) = (Blocks::new(scores), Pairs::new(n, vec![0; m]).unwrap());
    let line = model.ranks(&lonely).unwrap_err().to_string();
    assert_eq!(line, "ranks, image 1: expected at least 1 text, got 0");
    let line = model.ranks(&Pairs::uniform(n, 2)).unwrap_err().to_string();
    assert_eq!(line, "ranks: expected 600 × 1200 scores, as the pairs, got 600 × 700");
}

/// Bands, tiles and the matrix show a consumer the same scores, and give the same bits.
#[test]
fn every_source_shows_the_scores_of_the_matrix() {
    let (n, m) = (300, 530);
    for similarity in [Similarity::Cosine, Similarity::Order] {
        let rows = embeddings([n, m, 3], similarity, 11);
        let matrix = rows.matrix().unwrap();
        let relevance = (0..n).map(|i| (i as u32..m as u32).step_by(97).collect()).collect();
        let relevance = Relevance::new(m, relevance);
        let blocks = Blocks::new(matrix.clone());
        for scored in [&rows as &dyn Scored, &matrix, &blocks] {
            let sums = (Maxima, ExpSums::new(20.0));
            assert_eq!(visit(scored, &sums).unwrap(), matrix.run(&sums).unwrap());
            assert_eq!(
                scored.top(Side::Images, 5).unwrap(),
                matrix.run(&Top::new(Side::Images, 5)).unwrap()
            );
            assert_eq!(
                scored.top(Side::Texts, 5).unwrap(),
                matrix.run(&Top::new(Side::Texts, 5)).unwrap()
            );
            let some = [7, 8, 299, 7];
            let of_images = scored.scores_of(Side::Images, &some).unwrap();
            let of_texts = scored.scores_of(Side::Texts, &some).unwrap();
            for (at, &index) in some.iter().enumerate() {
                assert_eq!(of_images.row(at), matrix.row(index));
                assert!((0..n).all(|i| of_texts.row(i)[at] == matrix.row(i)[index]));
            }
            let want = <dyn Scored>::evaluate_multi(&matrix, &relevance).unwrap();
            assert_eq!(scored.evaluate_multi(&relevance).unwrap(), want);
        }
        let few = blocks.asked.into_inner();
        assert!(few.iter().all(|[images, texts]| images.len().min(texts.len()) <= 256));
    }
}

#[test]
fn an_infinite_score_is_named_by_its_place_among_all() {
    let mut values = vec![0.5; 300 * 3];
    values[290 * 3 + 1] = f32::NEG_INFINITY;
    let matrix = ScoreMatrix::new(300, 3, values).unwrap();
    for scored in [&matrix as &dyn Scored, &Blocks::new(matrix.clone())] {
        let line = visit(scored, &Maxima).unwrap_err().to_string();
        assert_eq!(line, "scores of image 290 and text 1: expected a finite number, got -inf");
    }
    let line = (&matrix as &dyn Scored).evaluate_multi(&Relevance::new(2, vec![vec![0]; 300]));
    let want = "relevance: expected 300 × 2 scores, got 300 × 3";
    assert_eq!(line.unwrap_err().to_string(), want);
}

/// An evaluation of a fold computes only that fold, and its scores equal the scores of the whole matrix.
#[test]
fn folds_are_scored_within_themselves() {
    let (n, m) = (5000, 25_000);
    let mut image_of_text: Vec<usize> = (0..m).map(|t| t / 5).collect();
    image_of_text.swap(2, 15_000); // one of the fold's texts is far from the others
    let pairs = Pairs::new(n, image_of_text).unwrap();
    for similarity in [Similarity::Cosine, Similarity::Order] {
        let rows = embeddings([n, m, 2], similarity, 5);
        let scored: &dyn Scored = &rows;
        let fold = &folds(&pairs, 5, 1000).unwrap()[3];
        let cut = scored.fold(fold).unwrap();
        let row = rows.block(3123..3124, 0..m).unwrap();
        let want: Vec<f32> = fold.texts.iter().map(|&t| row.values()[t]).collect();
        assert_eq!(cut.row(123), want, "{similarity:?}");
        let ranks = scored.ranks_by(Protocol::CocoFirst1k, &pairs).unwrap();
        assert_eq!((ranks.len(), ranks[0].i2t().len(), ranks[0].t2i().len()), (1, 1000, 5000));
    }
}

#[test]
fn an_evaluation_is_that_of_the_matrix() {
    let (n, m) = (40, 90);
    let pairs = scattered(n, m);
    for similarity in [Similarity::Cosine, Similarity::Order] {
        let rows = embeddings([n, m, 3], similarity, 8);
        let matrix = rows.matrix().unwrap();
        for policy in [TiePolicy::Index, TiePolicy::Pessimistic] {
            let want = Evaluation::new(&[Ranks::new(&matrix, &pairs).unwrap()], policy);
            for scored in [&rows as &dyn Scored, &matrix, &Blocks::new(matrix.clone())] {
                assert_eq!(scored.evaluate(Protocol::Full, &pairs, policy).unwrap(), want);
            }
        }
    }
    let matrix = embeddings([n, m, 3], Similarity::Cosine, 8).matrix().unwrap();
    let refused = (&matrix as &dyn Scored).ranks_by(Protocol::Flickr1k, &pairs).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "protocol flickr_1k: expected 1000 images (protocol full takes any number), got 40"
    );
}

proptest! {
    /// Blocks of any size, single pairs, folds and ranks have the bits of the whole matrix; ties are frequent.
    #[test]
    fn blocks_change_nothing(
        [n, m, dim] in [1usize..40, 1usize..60, 1usize..20],
        [a, b] in [1usize..30, 1usize..50],
        order: bool,
        seed in 0u64..99,
    ) {
        let similarity = if order { Similarity::Order } else { Similarity::Cosine };
        let (n, m) = (n.min(m), n.max(m));
        let rows = embeddings([n, m, dim], similarity, seed);
        let matrix = rows.matrix().unwrap();
        let pairs = scattered(n, m);
        for scored in [&rows as &dyn Scored, &matrix, &Blocks::new(matrix.clone())] {
            prop_assert_eq!((scored.images(), scored.texts()), (n, m));
            for i in (0..n).step_by(a) {
                for t in (0..m).step_by(b) {
                    let (images, texts) = (i..n.min(i + a), t..m.min(t + b));
                    let block = scored.block(images.clone(), texts.clone()).unwrap();
                    for (row, image) in images.enumerate() {
                        prop_assert_eq!(block.row(row), &matrix.row(image)[texts.clone()]);
                    }
                }
            }
            let (images, texts): (Vec<_>, Vec<_>) = (0..9).map(|k| (k * 7 % n, k * 11 % m)).unzip();
            let own = scored.pairs(&images, &texts).unwrap();
            let want = images.iter().zip(&texts).map(|(&i, &t)| matrix.row(i)[t]);
            prop_assert!(own.into_iter().eq(want));
            prop_assert_eq!(scored.ranks(&pairs).unwrap(), Ranks::new(&matrix, &pairs).unwrap());
            let fold = Fold::new(&pairs, 0..a.min(n));
            let of_image = |i| fold.texts.iter().map(|&t| matrix.row(i)[t]).collect::<Vec<_>>();
            let want: Vec<f32> = fold.images.clone().flat_map(of_image).collect();
            prop_assert_eq!(scored.fold(&fold).unwrap().into_values(), want);
        }
    }
}
