//! Recalls from formulas, without a ranking: for random rankings, and for oracles that know every true pair.

use super::Measures;
use crate::eval::CUTS;
use crate::{Pairs, Relevance};

/// Expected recalls of a random ranking, in percent.
///
/// ```text
/// R@K (i2t) = 100 · mean over images of 1 − Π_{j<K} (m − c_i − j) / (m − j)      c_i of m texts are right
/// R@K (t2i) = 100 · min(K, n) / n                                                one of n images is right
///             the same as i2t for judged pairs, which leave out queries without a true item
/// ```
///
/// ```
/// let chance = itm_core::significance::chance(&itm_core::Pairs::uniform(100, 5));
/// assert!((chance.t2i[2] - 10.0).abs() < 1e-12);
/// assert!((chance.i2t[0] - 1.0).abs() < 1e-12); // 5 of 500 texts
/// ```
///
/// # Panics
/// If a direction has no query.
pub fn chance(pairs: &Pairs) -> Measures<f64> {
    let (n, m) = (pairs.images(), pairs.texts());
    let of = |items: usize, truths: &[usize], k: u32| {
        assert!(!truths.is_empty(), "chance of no query");
        let missed = truths.iter().map(|&right| missed(&[(items, right)], k as usize));
        100.0 * (1.0 - missed.sum::<f64>() / truths.len() as f64)
    };
    let mut of_images: Vec<_> = (0..n).map(|i| pairs.texts_of(i).len()).collect();
    let mut of_texts: Vec<_> = (0..m).map(|t| pairs.images_of(t).len()).collect();
    if pairs.is_judged() {
        of_images.retain(|&right| right > 0);
        of_texts.retain(|&right| right > 0);
    }
    let t2i = |k: u32| match pairs.is_judged() {
        true => of(n, &of_texts, k),
        false => {
            assert!(m > 0, "chance of no query");
            100.0 * (k as usize).min(n) as f64 / n as f64
        }
    };
    Measures::of_recalls(CUTS.map(|k| of(m, &of_images, k)), CUTS.map(t2i))
}

/// Expected recalls of an oracle that knows every true pair, but not which pairs are annotated.
///
/// The oracle ranks by groups, the best group first, at random within a group. Untrue items come last.
///
/// ```text
/// ties:     one group of all true items
/// specific: the true texts of an image, grouped by the number of images that a text is true of, fewest first;
///           the true images of a text, as for ties
/// ```
///
/// A model that knows only what is true does not exceed these recalls. A model that also knows what people prefer to
/// write can exceed them.
///
/// Of judged pairs, any true item of a query counts, and images without a true text are left out. Every annotated pair must be true; this is
/// not checked.
///
/// # Panics
/// If `truth` has other images or texts than `pairs`, a text has no image, or there is no image or no text.
pub fn ceilings(pairs: &Pairs, truth: &Relevance) -> [Measures<f64>; 2] {
    let (n, m) = (pairs.images(), pairs.texts());
    assert!(n > 0, "ceilings of no image");
    assert!(m > 0, "ceilings of no text");
    assert_eq!((truth.images(), truth.texts()), (n, m), "images and texts of the truth");
    let has_image = |text: usize| !pairs.images_of(text).is_empty();
    assert!((0..m).all(has_image), "ceilings of a text without an image");
    let images = (0..n).filter(|&i| !pairs.is_judged() || !pairs.texts_of(i).is_empty());
    let images: Vec<_> = images.collect();
    let own = |image: usize, text: u32| usize::from(pairs.contains(image, text as usize));
    let specificity = |text: u32| truth.images_of(text as usize).len();
    let group = |image: usize, texts: &[u32]| {
        (texts.len(), texts.iter().map(|&text| own(image, text)).sum::<usize>())
    };
    // By ties, the texts of an image are a single group; by specificity, a group for each number of images.
    let i2t = |is_specific: bool, k: u32| {
        let of_image = |image: usize| {
            let mut texts = truth.texts_of(image).to_vec();
            texts.sort_by_key(|&text| specificity(text));
            let groups = texts.chunk_by(|&a, &b| !is_specific || specificity(a) == specificity(b));
            let groups: Vec<_> = groups.map(|texts| group(image, texts)).collect();
            1.0 - missed(&groups, k as usize)
        };
        100.0 * images.iter().map(|&image| of_image(image)).sum::<f64>() / images.len() as f64
    };
    let t2i = |k: u32| {
        let own = |text: usize| (truth.images_of(text).len(), pairs.images_of(text).len());
        let found = (0..m).map(|text| 1.0 - missed(&[own(text)], k as usize));
        100.0 * found.sum::<f64>() / m as f64
    };
    [false, true] // ties, then specificity
        .map(|specific| Measures::of_recalls(CUTS.map(|k| i2t(specific, k)), CUTS.map(t2i)))
}

/// Probability that no right item is among the first k. Groups (items, right items) come in order, each shuffled.
fn missed(groups: &[(usize, usize)], k: usize) -> f64 {
    let (mut left, mut missed) = (k, 1.0);
    for &(items, right) in groups {
        let drawn = left.min(items);
        for j in 0..drawn {
            missed *= items.saturating_sub(right + j) as f64 / (items - j) as f64;
        }
        left -= drawn;
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2 of 4 texts are right; one draw misses with 2/4, two with 2/4 · 1/3.
    #[test]
    fn golden_two_images() {
        let chance = chance(&Pairs::uniform(2, 2));
        assert!((chance.i2t[0] - 50.0).abs() < 1e-12);
        assert_eq!(chance.i2t[1], 100.0); // all four are drawn
        assert_eq!(chance.t2i, [50.0, 100.0, 100.0]);
        let three = super::chance(&Pairs::new(3, vec![0, 1, 2, 0, 1, 2, 0]).unwrap());
        let want = 100.0 * (3.0 / 7.0 + 2.0 / 7.0 + 2.0 / 7.0) / 3.0;
        assert!((three.i2t[0] - want).abs() < 1e-12);
    }

    /// By hand. Image 0 has texts 0 and 1, image 1 has text 2; text 1 is true of both images. Image 0: texts 0 and 1 are
    /// true, and both are its own. Image 1: texts 1 and 2 are true; the more specific one, text 2, is its own. Text 1 has
    /// two true images.
    #[test]
    fn golden_oracles() {
        let pairs = Pairs::new(2, vec![0, 0, 1]).unwrap();
        let truth = Relevance::new(3, vec![vec![0, 1], vec![1, 2]]);
        let [ties, specific] = ceilings(&pairs, &truth);
        assert_eq!((ties.i2t[0], specific.i2t[0]), (75.0, 100.0));
        assert!((ties.t2i[0] - 100.0 * 2.5 / 3.0).abs() < 1e-12);
        assert_eq!(specific.t2i, ties.t2i);
        assert_eq!((ties.i2t[1], ties.t2i[1]), (100.0, 100.0));
    }

    /// By hand: the one text is true of both images, so any answer is right; a third image without a text does not count.
    #[test]
    fn golden_oracle_of_judged_pairs() {
        let pairs = Pairs::judged(3, vec![vec![0, 1]]).unwrap();
        let truth = Relevance::new(1, vec![vec![0], vec![0], vec![]]);
        for oracle in ceilings(&pairs, &truth) {
            assert_eq!((oracle.i2t[0], oracle.t2i[0]), (100.0, 100.0));
        }
    }

    #[test]
    #[should_panic(expected = "images and texts of the truth")]
    fn an_oracle_knows_the_same_texts() {
        ceilings(&Pairs::uniform(2, 1), &Relevance::new(3, vec![vec![0], vec![1]]));
    }

    #[test]
    #[should_panic(expected = "chance of no query")]
    fn without_texts_there_is_no_chance() {
        chance(&Pairs::uniform(3, 0));
    }

    /// A group of three with one right, then two with one right: P(miss in 4) = 0 · …; in 2, 2/3 · 1/2; in 1, 2/3.
    #[test]
    fn groups_are_drawn_one_after_the_other() {
        let groups = [(3, 1), (2, 1)];
        assert!((missed(&groups, 1) - 2.0 / 3.0).abs() < 1e-12);
        assert!((missed(&groups, 2) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(missed(&groups, 4), 0.0);
        assert!((missed(&[(1, 0), (2, 1)], 2) - 0.5).abs() < 1e-12);
    }
}
