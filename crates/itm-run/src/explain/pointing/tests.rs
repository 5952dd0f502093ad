use itm_core::ScoreMatrix;
use itm_core::encoders::PatchGrid;
use itm_core::learn::Effect;

use super::*;
use crate::source::Grounded;
use crate::tests;

fn bounds(x1: f32, y1: f32, x2: f32, y2: f32) -> Bounds {
    Bounds { x1, y1, x2, y2 }
}

/// By hand: 2 × 2 patches with centres at 1/4 and 3/4. The first box holds the upper right centre, the second the lower two;
/// together they hold three of four.
#[test]
fn golden_hits_and_chance() {
    let grid = Places::Patches(PatchGrid::new(8, 4));
    let (right, below) = (bounds(0.6, 0.1, 0.9, 0.4), bounds(0.0, 0.7, 1.0, 1.0));
    let mut points = Points::default();
    let map = |values: [f32; 4]| WordMap { word: "a".into(), values: values.into(), effect: None };
    points.add(&map([0.1, 0.9, 0.2, 0.3]), &grid, &[right]); // upper right: a hit, 1/4
    assert_eq!(points, Points { hits: 1, words: 1, idle: 0, chance: 0.25 });
    points.add(&map([0.1, 0.2, 0.9, 0.3]), &grid, &[right]); // lower left: none, 1/4
    points.add(&map([-0.4, -0.5, -0.3, -0.2]), &grid, &[right, below]); // lower right, 3/4
    points.add(&map([0.7, 0.7, 0.7, 0.7]), &grid, &[below]); // all equal: the first, upper left; 2/4
    assert_eq!(points, Points { hits: 2, words: 4, idle: 0, chance: 1.75 });
}

/// By hand: two seeds of two images. One seed hits 1/2 and 3/4, the other 2/2 and 1/4: 7 of 12. Chance and words are of
/// one seed.
#[test]
fn golden_shares_over_seeds() {
    let point = |hits, words, chance| Points { hits, words, chance, idle: 0 };
    let a = [point(1, 2, 0.5), point(3, 4, 1.0)];
    let b = [point(2, 2, 0.5), point(1, 4, 1.0)];
    let pointed = pointed(&[&a, &b]).unwrap();
    assert!((pointed.share - 7.0 / 12.0).abs() < 1e-12, "{pointed:?}");
    assert_eq!((pointed.chance, pointed.words), (0.25, 6));
    // The most extreme resamples hold one seed and one image: 1/2, 3/4, 2/2 or 1/4.
    assert_eq!(pointed.ci95, [0.25, 1.0]);
    assert_eq!(super::pointed(&[&[Points::default(); 3]]), None, "no word with a box");
}

fn source() -> Source {
    tests::small_scenes([2, 1, 12]).1
}

/// Equal scores: the first wrong image is the hardest.
fn scores(source: &Source) -> ScoreMatrix {
    let pairs = &source.part(Split::Test).0.pairs;
    let (n, m) = (pairs.images(), pairs.texts());
    ScoreMatrix::new(n, m, vec![0.0; n * m]).unwrap()
}

const GRID: PatchGrid = PatchGrid { side: 24, patch: 4, size: 96 };

/// Word maps of a method that knows where everything is, or that always points at patch `one`.
fn told(source: &Source, one: Option<usize>, pairs: &[(usize, usize)]) -> Vec<WordMaps> {
    let map = |truth: Grounded| {
        let centre = truth.boxes.first().map(|b| b.centre());
        let far = |k: usize| {
            let ([x, y], (u, v)) = (GRID.centre(k), centre.unwrap_or_default());
            -(x - u).abs() - (y - v).abs()
        };
        let value = |k: usize| one.map_or_else(|| far(k), |one| f32::from(k == one));
        WordMap { word: truth.word, values: (0..GRID.len()).map(value).collect(), effect: None }
    };
    let of = |&(image, text): &(usize, usize)| {
        let words = source.grounded(Split::Test, image, text).into_iter().map(map).collect();
        WordMaps { places: Places::Patches(GRID), score: None, words }
    };
    pairs.iter().map(of).collect()
}

/// A method that points at the centre of the first box always hits. A method that points at one corner rarely hits.
#[test]
fn a_method_that_knows_is_always_right() {
    let source = source();
    let of = |one| {
        let maps = |pairs: &[(usize, usize)]| Ok(Some(told(&source, one, pairs)));
        let seen = measure(&source, &scores(&source), maps).unwrap().unwrap();
        assert_eq!(mismatches(&[&seen]), None, "words without effects");
        summary(&[&seen]).unwrap()
    };
    let (knows, corner) = (of(None), of(Some(0)));
    let others = knows.false_negatives.clone().unwrap();
    assert_eq!([knows.annotated.share, others.share], [1.0, 1.0]);
    assert_eq!(knows.annotated.ci95, [1.0, 1.0]);
    assert!(corner.annotated.share < 0.1, "{corner:?}");
    assert!((0.02..0.4).contains(&knows.annotated.chance), "{knows:?}");
    assert_eq!(knows.annotated.chance, corner.annotated.chance);
    // The number of words with a box in the annotated pairs.
    let pairs = &source.part(Split::Test).0.pairs;
    let boxed = |t: usize| {
        let grounded = source.grounded(Split::Test, pairs.image_of(t), t);
        grounded.iter().filter(|g| !g.boxes.is_empty()).count() as u64
    };
    assert_eq!(knows.annotated.words, (0..60).map(boxed).sum::<u64>());
}

/// By hand: the first region has an IoU of ½ with the box, exactly; the second of ⅚; the third is the box.
#[test]
fn golden_regions() {
    let places =
        [bounds(0.0, 0.0, 0.5, 0.5), bounds(0.0, 0.0, 0.5, 0.3), bounds(0.0, 0.0, 0.5, 0.25)];
    let (places, found) = (Places::Boxes(places.into()), bounds(0.0, 0.0, 0.5, 0.25));
    let mut points = Points::default();
    let mut add = |weights: [f32; 3], b: Bounds| {
        // The closest region is not the one that is attended to.
        let effect = Effect { negative: None, positive: 0.0, weights: weights.into() };
        let values = vec![0.0, 0.0, 0.9];
        points.add(&WordMap { word: "a".into(), values, effect: Some(effect) }, &places, &[b]);
        points
    };
    assert_eq!(add([1.0, 0.0, 0.0], found), Points { hits: 1, words: 1, idle: 0, chance: 1.0 });
    let far = bounds(0.5, 0.5, 1.0, 1.0);
    assert_eq!(add([0.2, 0.8, 0.0], far), Points { hits: 1, words: 2, idle: 0, chance: 1.0 });
    assert_eq!(add([0.0; 3], found), Points { hits: 1, words: 3, idle: 1, chance: 2.0 });
    let low = bounds(0.0, 0.0, 0.5, 0.55); // IoU 10/11, 6/11 and 5/11
    let two = add([0.0, 0.0, 1.0], low);
    assert_eq!((two.hits, two.words), (1, 4));
    assert!((two.chance - 2.0 - 2.0 / 3.0).abs() < 1e-6, "{two:?}");
}

/// A method whose words see regions: the boxes of the truth and the whole picture.
fn effects(source: &Source, knows: bool, pairs: &[(usize, usize)]) -> Vec<WordMaps> {
    let whole = bounds(0.0, 0.0, 1.0, 1.0);
    let of = |&(image, text): &(usize, usize)| {
        let grounded = source.grounded(Split::Test, image, text);
        let boxes: Vec<Bounds> = grounded.iter().flat_map(|g| g.boxes.clone()).collect();
        let places: Vec<Bounds> = [whole].into_iter().chain(boxes).collect();
        let word = |g: Grounded| {
            let at = g.boxes.first().and_then(|b| places.iter().rposition(|p| p == b));
            let mut weights = vec![0.0; places.len()];
            if g.mismatched == Some(false) || !knows {
                weights[at.filter(|_| knows).unwrap_or(0)] = 1.0;
            }
            let lost = if g.mismatched == Some(true) && knows { -0.5 } else { 0.0 };
            let effect = Effect { negative: Some(lost), positive: 1.0, weights };
            WordMap { word: g.word, values: vec![0.1; places.len()], effect: Some(effect) }
        };
        let words = grounded.into_iter().map(word).collect();
        WordMaps { places: Places::Boxes(places), score: Some(0.0), words }
    };
    pairs.iter().map(of).collect()
}

/// The method that knows lowers the score only for mismatched words and attends to what words name. The blind method
/// is at chance. All words have equal best regions: their AUC is 0.5.
#[test]
fn a_method_that_knows_tells_words_apart() {
    let source = source();
    let of = |knows| {
        let maps = |pairs: &[(usize, usize)]| Ok(Some(effects(&source, knows, pairs)));
        measure(&source, &scores(&source), maps).unwrap().unwrap()
    };
    let (knows, blind) = (of(true), of(false));
    let two = mismatches(&[&knows, &blind]).unwrap();
    let one = mismatches(&[&knows]).unwrap();
    assert_eq!(one.own.mismatched, 0, "a caption is true of its own image");
    assert_eq!((&one.own.by_negative_effect, one.own.matched_losing), (&None, Some(0.0)));
    for (wrong, both) in [(&one.hardest, &two.hardest), (&one.random, &two.random)] {
        assert!(wrong.mismatched > 20 && wrong.matched > 20, "{wrong:?}");
        let area = |auc: &Option<mismatch::Auc>| auc.as_ref().unwrap().value;
        assert_eq!((area(&wrong.by_negative_effect), area(&wrong.by_best_region)), (1.0, 0.5));
        assert_eq!((wrong.mismatched_losing, wrong.matched_losing), (Some(1.0), Some(0.0)));
        assert_eq!((area(&both.by_negative_effect), both.mismatched_losing), (0.75, Some(0.5)));
        assert_eq!(both.mismatched, 2 * wrong.mismatched);
        let [lo, hi] = both.by_negative_effect.as_ref().unwrap().ci95;
        assert_eq!([lo, hi], [0.5, 1.0], "of either seed");
    }
    let grounded = summary(&[&knows]).unwrap();
    assert_eq!((grounded.annotated.share, grounded.annotated.idle), (1.0, 0.0));
    let lost = summary(&[&blind]).unwrap().annotated;
    assert!(lost.share < 0.1 && lost.chance == grounded.annotated.chance, "{lost:?}");
}
