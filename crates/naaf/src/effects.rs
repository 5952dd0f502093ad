//! What each word of a text adds to the score with an image and takes from this score: Eq. 7 to 12, word by word.

use itm_core::Result;
use itm_core::encoders::Places;
use itm_core::learn::{Effect, Word, WordMap, WordMaps, within};
use itm_kernels::cross_attention::parts;

use crate::all_pairs::check_rows;
use crate::attention::{Asks, Attention, Phase};

/// The effect of a word on a score.
///
/// | symbol | here |
/// |---|---|
/// | neg_i, pos_i | `effect.negative`, `effect.positive` |
/// | w_ij | `effect.weights`, one per region |
/// | f_i, or R_i of SCAN | `feature` |
/// | r_i | `relevance` |
/// | s_ij | `products`, one per region |
#[derive(Debug, Clone, PartialEq)]
pub struct WordEffect {
    /// What the word takes and adds, and to which regions it attends.
    pub effect: Effect,
    /// Cosine of the word and its attended context.
    pub feature: f32,
    /// Relevance branch; `None` if the rule has no such branch.
    pub relevance: Option<f32>,
    /// Cosine of the word and each region.
    pub products: Vec<f32>,
}

/// The score of an image and a text in inference, with the effects of its words.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects {
    /// S
    pub score: f32,
    /// One per word. The score is pooled from their sums.
    pub words: Vec<WordEffect>,
}

/// Effects of the words of one text, `[words, width]`, on its score with one image, `[regions, width]`. `None` if regions attend to
/// words, because then no part of the score belongs to one word.
///
/// ```
/// use naaf::{NaafConfig, Preset, effects};
///
/// let regions = [1.0, 0.0, 0.0, 1.0];
/// let words = [0.96, 0.28, -0.6, -0.8]; // the second is like no region
/// let attention = NaafConfig::preset(Preset::Default).attention;
/// let effects = effects(&regions, &words, 2, 0.3, &attention)?.unwrap();
/// let [like, unlike] = [0, 1].map(|i| &effects.words[i].effect);
/// assert_eq!((like.place(), unlike.place()), (Some(0), None));
/// assert!(like.negative == Some(0.0) && unlike.negative < Some(-0.8));
/// # Ok::<(), naaf::Error>(())
/// ```
///
/// # Errors
/// If a side has no row or not a whole number of rows, a value or the boundary is not finite, a row has neither unit length nor only
/// zeros, or an option of the attention is out of range.
pub fn effects(
    regions: &[f32],
    words: &[f32],
    width: usize,
    boundary: f32,
    attention: &Attention,
) -> Result<Option<Effects>> {
    check_rows("region", regions, width)?;
    check_rows("word", words, width)?;
    within("boundary", f64::from(boundary), "finite", f64::is_finite)?;
    attention.check()?;
    if matches!(attention, Attention::Scan(scan) if scan.asks == Asks::Regions) {
        return Ok(None);
    }
    let made = parts(regions, words, width, boundary, &attention.rule(Phase::Inference));
    let n = regions.len() / width;
    let word = |i: usize| {
        let (feature, relevance) = (made.cosine[i], made.relevance.get(i).copied());
        let effect = Effect {
            negative: made.negative.get(i).copied(),
            positive: feature + relevance.unwrap_or(0.0), // Eq. 11
            weights: made.weights[i * n..(i + 1) * n].to_vec(),
        };
        let products = made.products[i * n..(i + 1) * n].to_vec();
        WordEffect { effect, feature, relevance, products }
    };
    Ok(Some(Effects { score: made.score, words: (0..words.len() / width).map(word).collect() }))
}

impl Effects {
    /// The effects as a report shows them. `words` says which positions of the text belong to which word. A position without a word
    /// is a mark; without any word, every position has a number.
    pub(crate) fn maps(self, places: Places, words: &[Word]) -> WordMaps {
        let name = |i: usize| match words.iter().find(|word| word.pieces.contains(&i)) {
            Some(word) => word.text.clone(),
            None if words.is_empty() => format!("piece {i}"),
            None if i == 0 => "<start>".to_owned(),
            None => "<end>".to_owned(),
        };
        let map = |(i, word): (usize, WordEffect)| WordMap {
            word: name(i),
            values: word.products,
            effect: Some(word.effect),
        };
        WordMaps {
            places,
            score: Some(self.score),
            words: self.words.into_iter().enumerate().map(map).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use itm_core::data::Bounds;
    use itm_core::scored::Scored;
    use itm_kernels::random;

    use super::*;
    use crate::{CrossScores, Intra, NaafConfig, NegativeAware, Pooling, Preset, Scan};

    const D: usize = 7;

    fn unit_rows(n: usize, seed: u64) -> Vec<f32> {
        let mut values: Vec<f32> =
            (0..n * D).map(|k| random::unit(seed, k as u64) - 0.42).collect();
        for row in values.chunks_mut(D) {
            row[0] += 0.35; // alike enough that some products are above the boundary
            let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            row.iter_mut().for_each(|x| *x /= norm);
        }
        values
    }

    fn naaf(change: impl Fn(&mut NegativeAware)) -> Attention {
        let mut naaf = NegativeAware::preset(Preset::Default);
        change(&mut naaf);
        Attention::Naaf(naaf)
    }

    fn scan(pooling: Pooling) -> Attention {
        Attention::Scan(Scan::text_to_image(pooling))
    }

    /// A boundary such that half of the words have a region above it.
    fn half(v: &[f32], u: &[f32]) -> f32 {
        let best = |word: WordEffect| word.products.into_iter().fold(-1.0, f32::max);
        let all = effects(v, u, D, 0.0, &naaf(|_| ())).unwrap().unwrap().words;
        let mut all: Vec<f32> = all.into_iter().map(best).collect();
        all.sort_unstable_by(f32::total_cmp);
        let k = all.len() / 2;
        (all[k - 1] + all[k]) / 2.0
    }

    fn score(v: &[f32], u: &[f32], t: f32, attention: &Attention) -> f32 {
        let (n, m) = (v.len() / D, u.len() / D);
        let scores = CrossScores::new((v.to_vec(), &[n]), (u.to_vec(), &[m]), D, t, attention);
        scores.unwrap().matrix().unwrap().values()[0]
    }

    /// neg, f, r and w of word `i`, by loops as in the equations, in double precision, with contexts of full width.
    fn literal(v: &[f32], u: &[f32], t: f32, i: usize) -> (f64, f64, f64, Vec<f64>) {
        let (n, m) = (v.len() / D, u.len() / D);
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        let [v, u]: [Vec<&[f32]>; 2] = [v, u].map(|rows| rows.chunks(D).collect());
        let (s, t) = (|i: usize, j: usize| dot(u[i], v[j]), f64::from(t));
        let x = |i: usize| (0..n).map(|j| s(i, j)).fold(f64::MIN, f64::max) - t;
        let alike: Vec<f64> = (0..m).map(|l| (5.0 * dot(u[i], u[l])).exp()).collect();
        let mixed = (0..m).map(|l| alike[l] * x(l)).sum::<f64>() / alike.iter().sum::<f64>();
        let negative = if mixed < 0.0 { x(i) } else { 0.0 };
        let above = |j: usize| if s(i, j) > t { (20.0 * (s(i, j) - t)).exp() } else { 0.0 };
        let sum: f64 = (0..n).map(above).sum();
        let w: Vec<f64> = (0..n).map(|j| above(j) / (sum + 1e-8)).collect();
        let context: Vec<f64> =
            (0..D).map(|k| (0..n).map(|j| w[j] * f64::from(v[j][k])).sum()).collect();
        let length = context.iter().map(|c| c * c).sum::<f64>().sqrt();
        let along: f64 = context.iter().zip(u[i]).map(|(c, &u)| c * f64::from(u)).sum();
        let leaky = |i: usize, j: usize| if s(i, j) > 0.0 { s(i, j) } else { 0.1 * s(i, j) };
        let norm = |j: usize| (0..m).map(|l| leaky(l, j).powi(2)).sum::<f64>().sqrt() + 1e-8;
        let e: Vec<f64> = (0..n).map(|j| (20.0 * leaky(i, j) / norm(j)).exp()).collect();
        let relevance = (0..n).map(|j| e[j] * s(i, j)).sum::<f64>() / e.iter().sum::<f64>();
        (negative, along / length.max(1e-8), relevance, w)
    }

    #[test]
    fn effects_are_those_of_a_literal_loop() {
        let (v, u) = (unit_rows(5, 1), unit_rows(6, 2));
        let t = half(&v, &u);
        let effects = effects(&v, &u, D, t, &naaf(|_| ())).unwrap().unwrap();
        let near =
            |got: f32, want: f64| assert!((f64::from(got) - want).abs() < 2e-6, "{got}: {want}");
        for (i, word) in effects.words.iter().enumerate() {
            let (negative, feature, relevance, weights) = literal(&v, &u, t, i);
            near(word.effect.negative.unwrap(), negative);
            near(word.feature, feature);
            near(word.relevance.unwrap(), relevance);
            near(word.effect.positive, feature + relevance);
            word.effect.weights.iter().zip(&weights).for_each(|(&got, &want)| near(got, want));
            let top = (0..5)
                .filter(|&j| weights[j] > 0.0)
                .reduce(|a, b| if weights[b] > weights[a] { b } else { a });
            assert_eq!(word.effect.place(), top, "word {i}");
        }
        let all =
            |of: &dyn Fn(&Effect) -> bool| effects.words.iter().filter(|w| of(&w.effect)).count();
        let (taking, attending) = (all(&|w| w.negative < Some(0.0)), all(&|w| w.place().is_some()));
        assert!(taking > 0 && attending == 3, "{taking}, {attending}");
    }

    /// The score is the mean of what words take and add; SCAN pools what they add.
    #[test]
    fn words_add_up_to_the_score_of_all_pairs() {
        let (v, u) = (unit_rows(36, 3), unit_rows(11, 4));
        let t = half(&v, &u);
        let rows = [
            naaf(|_| ()),
            naaf(|naaf| naaf.negative = false),
            naaf(|naaf| naaf.masks = false),
            naaf(|naaf| naaf.intra = Intra::ValueAndMask),
            NaafConfig::preset(Preset::Paper).attention,
            scan(Pooling::Mean),
        ];
        for attention in &rows {
            let effects = effects(&v, &u, D, t, attention).unwrap().unwrap();
            let word =
                |w: &WordEffect| f64::from(w.effect.negative.unwrap_or(0.0) + w.effect.positive);
            let mean = effects.words.iter().map(word).sum::<f64>() / 11.0;
            let want = f64::from(score(&v, &u, t, attention));
            assert!((mean - want).abs() < 1e-6, "{attention:?}: {mean} for {want}");
            assert!((f64::from(effects.score) - want).abs() < 1e-6, "{attention:?}");
        }
        let none = |attention: &Attention| {
            let word = effects(&v, &u, D, t, attention).unwrap().unwrap().words.remove(0);
            (word.effect.negative.is_none(), word.relevance.is_none())
        };
        assert_eq!((none(&rows[0]), none(&rows[1])), ((false, false), (true, false)));
        assert_eq!(none(&rows[5]), (true, true), "SCAN has only R_j");
        let soft = effects(&v, &u, D, t, &scan(Pooling::LogSumExp)).unwrap().unwrap();
        let sum: f32 = soft.words.iter().map(|w| (6.0 * w.feature).exp()).sum();
        assert!((soft.score - sum.ln() / 6.0).abs() < 1e-5);
        let asked = Attention::Scan(Scan::image_to_text(Pooling::Mean));
        assert_eq!(effects(&v, &u, D, t, &asked).unwrap(), None);
    }

    #[test]
    fn rows_that_are_no_cosines_are_refused() {
        let row = [0.6, 0.8];
        let line = |regions: &[f32], words: &[f32], t| {
            effects(regions, words, 2, t, &naaf(|_| ())).unwrap_err().to_string()
        };
        let rows = "expected rows of 2 values, at least 1, got";
        assert_eq!(line(&[], &row, 0.1), format!("regions: {rows} 0 values"));
        assert_eq!(line(&row, &row[..1], 0.1), format!("words: {rows} 1 values"));
        let place = "region 1: expected a row of unit length";
        assert_eq!(line(&[0.6, 0.8, 3.0, 4.0], &row, 0.1), format!("{place}, got length 5"));
        let number = "word 0, column 1: expected a finite number";
        assert_eq!(line(&row, &[0.6, f32::NAN], 0.1), format!("{number}, got NaN"));
        assert_eq!(line(&row, &row, f32::INFINITY), "boundary: expected finite, got inf");
        let none = [0.0, 0.0]; // a row of zeros has no direction and stays
        assert!(effects(&none, &row, 2, 0.1, &naaf(|_| ())).is_ok());
    }

    #[test]
    fn maps_name_words_and_marks() {
        let made =
            effects(&unit_rows(3, 1), &unit_rows(4, 2), D, 0.4, &naaf(|_| ())).unwrap().unwrap();
        let word = |text: &str, k| Word { text: text.into(), pieces: k..k + 1 };
        let names = |maps: &WordMaps| maps.words.iter().map(|w| w.word.clone()).collect::<Vec<_>>();
        let boxes = [Bounds::around(0.5, 0.5, 0.2, 0.2); 3];
        let maps =
            made.clone().maps(Places::Boxes(boxes.into()), &[word("red", 1), word("ball", 2)]);
        assert_eq!(names(&maps), ["<start>", "red", "ball", "<end>"]);
        assert_eq!((maps.places, maps.score), (Places::Boxes(boxes.into()), Some(made.score)));
        let (got, want) = (&maps.words[2], &made.words[2]);
        assert_eq!((&got.values, got.effect.as_ref()), (&want.products, Some(&want.effect)));
        let unknown = made.clone().maps(Places::Boxes(vec![]), &[]);
        assert_eq!(names(&unknown), ["piece 0", "piece 1", "piece 2", "piece 3"]);
        let maps = made.maps(Places::Boxes(vec![]), &[0, 1, 2, 3].map(|k| word("a", k)));
        assert_eq!((names(&maps), maps.places), (vec!["a".to_owned(); 4], Places::Boxes(vec![])));
    }
}
