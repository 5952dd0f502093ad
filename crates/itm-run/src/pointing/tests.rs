use itm_core::learn::WordMap;

use super::*;
use crate::source::Grounded;
use crate::testing;

fn bounds(x1: f32, y1: f32, x2: f32, y2: f32) -> Bounds {
    Bounds { x1, y1, x2, y2 }
}

/// By hand: 2 × 2 patches with centres at 1/4 and 3/4. The first box holds the upper right centre, the second the lower two;
/// between them three of four.
#[test]
fn golden_hits_and_chance() {
    let grid = PatchGrid::new(8, 4);
    let (right, below) = (bounds(0.6, 0.1, 0.9, 0.4), bounds(0.0, 0.7, 1.0, 1.0));
    let mut points = Points::default();
    points.add(&[0.1, 0.9, 0.2, 0.3], grid, &[right]); // upper right: a hit, 1/4
    assert_eq!(points, Points { hits: 1, words: 1, chance: 0.25 });
    points.add(&[0.1, 0.2, 0.9, 0.3], grid, &[right]); // lower left: none, 1/4
    points.add(&[-0.4, -0.5, -0.3, -0.2], grid, &[right, below]); // lower right, 3/4
    points.add(&[0.7, 0.7, 0.7, 0.7], grid, &[below]); // all equal: the first, upper left; 2/4
    assert_eq!(points, Points { hits: 2, words: 4, chance: 1.75 });
}

/// By hand: caption 0 is true of images 0, 2 and 3, caption 1 of 1 alone.
#[test]
fn the_next_true_image_is_the_false_negative() {
    let truth = Relevance::new(2, vec![vec![0], vec![1], vec![0], vec![0]]);
    let of = |own, text| false_negative(&truth, own, text);
    assert_eq!([of(0, 0), of(2, 0), of(3, 0), of(1, 1)], [Some(2), Some(3), Some(0), None]);
}

/// By hand: two seeds of two images with 1/2 and 3/4 hits, and 2/2 and 1/4: 7 of 12. Chance and words are of one seed.
#[test]
fn golden_shares_over_seeds() {
    let point = |hits, words, chance| Points { hits, words, chance };
    let a = [point(1, 2, 0.5), point(3, 4, 1.0)];
    let b = [point(2, 2, 0.5), point(1, 4, 1.0)];
    let pointed = pointed(&[&a, &b]).unwrap();
    assert!((pointed.share - 7.0 / 12.0).abs() < 1e-12, "{pointed:?}");
    assert_eq!((pointed.chance, pointed.words), (0.25, 6));
    // Only one seed and image at a time: 1/2, 3/4, 2/2, 1/4 are the ends.
    assert_eq!(pointed.ci95, [0.25, 1.0]);
    assert_eq!(super::pointed(&[&[Points::default(); 3]]), None, "no word with a box");
}

fn source() -> Source {
    testing::small_scenes([2, 1, 12]).1
}

const GRID: PatchGrid = PatchGrid { side: 24, patch: 4, size: 96 };

/// Maps of one who knows where everything is, or always points at one patch.
fn told(source: &Source, one: Option<usize>, pairs: &[(usize, usize)]) -> Vec<WordMaps> {
    let map = |truth: Grounded| {
        let centre = truth.boxes.first().map(|b| b.centre());
        let far = |k: usize| {
            let ([x, y], (u, v)) = (GRID.centre(k), centre.unwrap_or_default());
            -(x - u).abs() - (y - v).abs()
        };
        let value = |k: usize| one.map_or_else(|| far(k), |one| f32::from(k == one));
        WordMap { word: truth.word, values: (0..GRID.len()).map(value).collect() }
    };
    let of = |&(image, text): &(usize, usize)| {
        let words = source.grounded(Split::Test, image, text).into_iter().map(map).collect();
        WordMaps { grid: GRID, words }
    };
    pairs.iter().map(of).collect()
}

/// Who points at the centre of the first box hits always; who points at one corner about never.
#[test]
fn a_method_that_knows_is_always_right() {
    let source = source();
    let of = |one| {
        let maps = |pairs: &[(usize, usize)]| Ok(Some(told(&source, one, pairs)));
        summary(&[&measure(&source, maps).unwrap().unwrap()]).unwrap()
    };
    let (knows, corner) = (of(None), of(Some(0)));
    let others = knows.false_negatives.clone().unwrap();
    assert_eq!([knows.annotated.share, others.share], [1.0, 1.0]);
    assert_eq!(knows.annotated.ci95, [1.0, 1.0]);
    assert!(corner.annotated.share < 0.1, "{corner:?}");
    assert!((0.02..0.4).contains(&knows.annotated.chance), "{knows:?}");
    assert_eq!(knows.annotated.chance, corner.annotated.chance);
    // As many words as have boxes in the annotated pairs.
    let pairs = &source.part(Split::Test).0.pairs;
    let boxed = |t: usize| {
        let grounded = source.grounded(Split::Test, pairs.image_of(t), t);
        grounded.iter().filter(|g| !g.boxes.is_empty()).count() as u64
    };
    assert_eq!(knows.annotated.words, (0..60).map(boxed).sum::<u64>());
}
