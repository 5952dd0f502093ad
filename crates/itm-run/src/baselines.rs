//! What a trained row must be above: ranking at random, and closed-form CCA.

use itm_core::Pairs;
use itm_core::eval::CUTS;
use itm_core::significance::Measures;

/// Expected recalls of a ranking at random, in percent.
///
/// ```text
/// R@K (i2t) = 100 · mean over images of 1 − Π_{j<K} (m − c_i − j) / (m − j)      c_i of m texts are right
/// R@K (t2i) = 100 · min(K, n) / n                                                one of n images is right
/// ```
///
/// ```
/// let chance = itm_run::baselines::chance(&itm_core::Pairs::uniform(100, 5));
/// assert!((chance.t2i[2] - 10.0).abs() < 1e-12);
/// assert!((chance.i2t[0] - 1.0).abs() < 1e-12); // 5 of 500 texts
/// ```
pub fn chance(pairs: &Pairs) -> Measures<f64> {
    let (n, m) = (pairs.images(), pairs.texts());
    let miss = |c: usize, k: usize| {
        let factor = |j: usize| (m.saturating_sub(c + j)) as f64 / (m - j) as f64;
        (0..k.min(m)).map(factor).product::<f64>()
    };
    let i2t = |k: u32| {
        let missed: f64 = (0..n).map(|i| miss(pairs.texts_of(i).len(), k as usize)).sum();
        100.0 * (1.0 - missed / n as f64)
    };
    Measures::of_recalls(CUTS.map(i2t), CUTS.map(|k| 100.0 * (k as usize).min(n) as f64 / n as f64))
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
}
