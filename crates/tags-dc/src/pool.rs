//! The pool of negatives (Eq. 6), and the retrieved negatives of §3.8.

use std::cmp::Ordering;

use itm_core::{Error, Pairs, Result};
use rand::RngExt;
use rand::seq::index;
use serde::{Deserialize, Serialize};

use crate::filter::{Filter, Verdict};

/// How well sentences match one image.
pub trait Scores {
    /// One score per sentence. A higher score is a better match. Only the order counts, so a logit serves as well as its sigmoid; UNITER gives
    /// logits. But [`Filter::Penalty`] subtracts 2 or 3 from a score, and so differs between logits and sigmoids.
    ///
    /// # Errors
    /// The errors of the model.
    fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>>;
}

/// Which of the sentences that pass the filter become negatives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The best m by their scores, Eq. 6. A good model gives its best scores to sentences that are true.
    #[default]
    Best,
    /// Any m, drawn without replacement.
    Random,
    /// The best m of those that score below their caption.
    Below,
}

impl Choice {
    /// The survivors that are worth a score.
    pub(crate) fn drawn(
        self,
        survivors: Vec<Survivor>,
        m: usize,
        rng: &mut impl RngExt,
    ) -> Vec<Survivor> {
        if self != Self::Random || survivors.len() <= m {
            return survivors;
        }
        let mut kept = index::sample(rng, survivors.len(), m).into_vec();
        kept.sort_unstable();
        kept.into_iter().map(|at| survivors[at]).collect()
    }
}

/// A row that stays, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pick {
    /// The row's number among all rows.
    pub row: usize,
    /// The model's score, in the numbers of [`Scores`]. The filter's penalty counts in the order alone.
    pub score: f32,
}

/// The best `m` of the rows that the filter leaves, best first.
///
/// ```text
/// T⁻ = top-m of s(I, ·) over the survivors
/// ```
///
/// Equal scores keep the order of the rows. If fewer than `m` rows survive, all of them are kept. If no row survives, the pool is empty and
/// the model is not called. Only survivors are scored: filtering before scoring changes no result and saves forward passes.
///
/// # Errors
/// The errors of the model; also if a score is NaN, or the model gives another number of scores than there are survivors.
///
/// # Panics
/// If there is not one verdict per row.
///
/// ```
/// use tags_dc::{Filter, Scores, Verdict, pool};
///
/// struct FirstToken;
/// impl Scores for FirstToken {
///     fn scores(&mut self, rows: &[&[u32]]) -> itm_core::Result<Vec<f32>> {
///         Ok(rows.iter().map(|row| row[0] as f32).collect())
///     }
/// }
/// let rows = [vec![3], vec![9], vec![5], vec![5]];
/// let verdicts = [Verdict::Kept, Verdict::Protected, Verdict::Kept, Verdict::Kept];
/// let best = pool(&rows, &verdicts, Filter::Paper, 2, &mut FirstToken)?;
/// assert_eq!([best[0].row, best[1].row], [2, 3]);
/// # Ok::<(), itm_core::Error>(())
/// ```
pub fn pool(
    rows: &[Vec<u32>],
    verdicts: &[Verdict],
    filter: Filter,
    m: usize,
    model: &mut impl Scores,
) -> Result<Vec<Pick>> {
    assert_eq!(rows.len(), verdicts.len(), "rows and verdicts");
    scored(rows, &survivors(verdicts, &filter), None, m, model)
}

/// The best `m` of the survivors, best first, by a model; with `caption` only of the survivors that score below it.
pub(crate) fn scored(
    rows: &[Vec<u32>],
    left: &[Survivor],
    caption: Option<&[u32]>,
    m: usize,
    model: &mut impl Scores,
) -> Result<Vec<Pick>> {
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let texts = left.iter().map(|survivor| &rows[survivor.row][..]).chain(caption);
    let texts: Vec<&[u32]> = texts.collect();
    let scores = model.scores(&texts)?;
    let expected = format_args!("{} of them", texts.len());
    Error::unless(scores.len() == texts.len(), "scores", expected, scores.len())?;
    picks(left, &scores, m)
}

/// A row that the filter leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Survivor {
    pub(crate) row: usize,
    /// The penalty on the row's score.
    penalty: f32,
}

/// The rows that a filter leaves, in ascending order.
pub(crate) fn survivors(verdicts: &[Verdict], filter: &Filter) -> Vec<Survivor> {
    let of = |row| filter.penalty(verdicts[row]).map(|penalty| Survivor { row, penalty });
    (0..verdicts.len()).filter_map(of).collect()
}

/// The `m` best survivors by their scores, best first. If there is one score more, it is the caption's, and only lower scores stay.
///
/// # Errors
/// If a score is NaN.
pub(crate) fn picks(survivors: &[Survivor], scores: &[f32], m: usize) -> Result<Vec<Pick>> {
    let lowered: Vec<f32> = scores.iter().zip(survivors).map(|(s, of)| s - of.penalty).collect();
    let caption = scores.get(survivors.len());
    let is_number = caption.is_none_or(|score| !score.is_nan());
    Error::unless(is_number, "score of the caption", "a number", "NaN")?;
    let best = top(&lowered, lowered.len())?;
    let below = |&at: &usize| caption.is_none_or(|&caption| lowered[at] < caption);
    let pick = |at: usize| Pick { row: survivors[at].row, score: scores[at] };
    Ok(best.into_iter().filter(below).take(m).map(pick).collect())
}

/// Places of the `m` highest scores, the highest first. Equal scores keep their order. All places if there are fewer scores.
///
/// # Errors
/// If a score is NaN.
fn top(scores: &[f32], m: usize) -> Result<Vec<usize>> {
    if let Some(at) = scores.iter().position(|score| score.is_nan()) {
        return Err(Error::invalid(format!("score {at}"), "a number", "NaN"));
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // 0 and −0 are equal
    let better = |a: usize, b: usize| scores[b].partial_cmp(&scores[a]).unwrap_or(Ordering::Equal);
    order.sort_by(|&a, &b| better(a, b).then(a.cmp(&b)));
    order.truncate(m);
    Ok(order)
}

/// The `h` drawn items with the highest scores, best first; all items if there are fewer (§3.8).
///
/// `drawn` are numbers of images or of texts, as [`draw_images`] or [`draw_texts`] gives them. `scores` has the score of each item with the
/// anchor: a logit or its sigmoid, because only the order counts. Equal scores keep the order of `drawn`.
///
/// # Errors
/// If there is not one score per item, or a score is NaN.
///
/// ```
/// use tags_dc::{Pairs, Purpose, draw_texts, hardest};
///
/// let pairs = Pairs::new(3, vec![0, 0, 1, 2, 2])?; // texts 0 and 1 describe image 0
/// let mut rng = Purpose::Texts.stream(1, 0);
/// let drawn = draw_texts(&pairs, 0, 399, &mut rng)?; // there are only three others
/// assert_eq!(drawn, [2, 3, 4]);
/// let scores = [0.2, 0.9, 0.7]; // of image 0 with each of these
/// assert_eq!(hardest(&drawn, &scores, 2)?, [3, 4]);
/// # Ok::<(), tags_dc::Error>(())
/// ```
pub fn hardest<T: Copy>(drawn: &[T], scores: &[f32], h: usize) -> Result<Vec<T>> {
    let expected = format_args!("{}, one per item", drawn.len());
    Error::unless(scores.len() == drawn.len(), "scores", expected, scores.len())?;
    Ok(top(scores, h)?.into_iter().map(|at| drawn[at]).collect())
}

/// Draws `count` texts (Q) that do not describe the image, without replacement; all of them if there are fewer.
///
/// # Departures
/// Departure 16: the texts come from the whole data set; the released program draws only from the worker's share.
///
/// # Errors
/// If the image is not among the pairs.
pub fn draw_texts(
    pairs: &Pairs,
    image: usize,
    count: usize,
    rng: &mut impl RngExt,
) -> Result<Vec<usize>> {
    among("image", image, pairs.images())?;
    Ok(draw_without(pairs.texts(), pairs.texts_of(image), count, rng))
}

/// Draws `count` images (Q) other than the text's image, without replacement; all of them if there are fewer.
///
/// # Errors
/// If the text is not among the pairs.
pub fn draw_images(
    pairs: &Pairs,
    text: usize,
    count: usize,
    rng: &mut impl RngExt,
) -> Result<Vec<usize>> {
    among("text", text, pairs.texts())?;
    Ok(draw_without(pairs.images(), pairs.images_of(text), count, rng))
}

pub(crate) fn among(what: &str, number: usize, n: usize) -> Result<()> {
    Error::unless(number < n, what, format_args!("a number below {n}"), number)
}

/// Draws `count` numbers of `0..n` that are not in `left_out`, whose numbers ascend.
fn draw_without(n: usize, left_out: &[usize], count: usize, rng: &mut impl RngExt) -> Vec<usize> {
    let others = n - left_out.len();
    if others <= count {
        return (0..n).filter(|at| left_out.binary_search(at).is_err()).collect();
    }
    let numbered = |k: usize| {
        // the k-th number that is not left out
        left_out.iter().fold(k, |at, &out| if out <= at { at + 1 } else { at })
    };
    index::sample(rng, others, count).into_iter().map(numbered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;
    use crate::filter::{CaptionWords, Repeat};

    /// Scores a row by its first token, and counts the rows.
    struct First {
        asked: usize,
        scores: fn(u32) -> f32,
    }

    impl Scores for First {
        fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
            self.asked += rows.len();
            Ok(rows.iter().map(|row| (self.scores)(row[0])).collect())
        }
    }

    fn best(first: &[u32], verdicts: &[Verdict], filter: Filter, m: usize) -> (Vec<usize>, usize) {
        let rows: Vec<Vec<u32>> = first.iter().map(|&token| vec![token]).collect();
        let mut model = First { asked: 0, scores: |token| token as f32 };
        let picks = pool(&rows, verdicts, filter, m, &mut model).unwrap();
        (picks.into_iter().map(|pick| pick.row).collect(), model.asked)
    }

    use Verdict::{Kept, Positive, Protected as True, Repeated};

    #[test]
    fn best_first_and_of_equals_the_smaller_row() {
        assert_eq!(best(&[5, 7, 5, 7, 1], &[Kept; 5], Filter::Paper, 3), (vec![1, 3, 0], 5));
    }

    #[test]
    fn only_survivors_are_scored_and_numbered_as_rows() {
        let verdicts = [Positive, Kept, True, Repeated, Kept];
        assert_eq!(best(&[9, 1, 8, 7, 2], &verdicts, Filter::Paper, 5), (vec![4, 1], 2));
    }

    // Trap 16
    #[test]
    fn fewer_survivors_than_m_are_all_kept_and_none_is_an_empty_pool() {
        assert_eq!(best(&[3, 4], &[Kept, Kept], Filter::Paper, 31), (vec![1, 0], 2));
        assert_eq!(best(&[3, 4], &[Positive, True], Filter::Paper, 31), (vec![], 0));
        assert_eq!(best(&[], &[], Filter::Paper, 31), (vec![], 0));
    }

    /// Departure 2: an unbounded score survives its penalty of 3.
    #[test]
    fn a_penalty_removes_nothing() {
        let verdicts = [Positive, Kept, Repeated];
        assert_eq!(best(&[9, 5, 7], &verdicts, Filter::Penalty, 3).0, [0, 1, 2], "6, 5, 5");
        assert_eq!(best(&[9, 5, 7], &verdicts, Filter::PositiveOnly, 3).0, [1]);
        let mut model = First { asked: 0, scores: |token| token as f32 };
        let rows = [vec![9], vec![5], vec![7]];
        let picks = pool(&rows, &verdicts, Filter::Penalty, 3, &mut model).unwrap();
        let scores: Vec<f32> = picks.iter().map(|pick| pick.score).collect();
        assert_eq!(scores, [9.0, 5.0, 7.0], "the model's own");
    }

    /// From refilled rows to the pool, by hand: positive 1 2; 7 is protected; 8 9 comes twice.
    #[test]
    fn filter_and_pool_of_a_worked_case() {
        let rows: Vec<Vec<u32>> =
            [[1, 2], [7, 2], [8, 9], [8, 9], [5, 2], [7, 9]].map(Vec::from).to_vec();
        let captions: [&[u32]; 2] = [&[1, 2], &[7]];
        let protected = CaptionWords::of(captions);
        let verdicts = Filter::Paper.verdicts(&[1, 2], &rows, &protected, Repeat::First);
        let mut model = First { asked: 0, scores: |token| -(token as f32) };
        let picks = pool(&rows, &verdicts, Filter::Paper, 2, &mut model).unwrap();
        assert_eq!(picks, [Pick { row: 4, score: -5.0 }, Pick { row: 5, score: -7.0 }]);
        assert_eq!(model.asked, 3, "rows 2, 4 and 5");
    }

    #[test]
    fn bad_scores_are_refused() {
        assert_eq!(top(&[-0.0, 0.0, 1.0], 3).unwrap(), [2, 0, 1], "0 and −0 are equal");
        assert_eq!(
            top(&[0.0, f32::NAN], 1).unwrap_err().to_string(),
            "score 1: expected a number, got NaN"
        );
        let below = picks(&survivors(&[Kept], &Filter::Paper), &[0.0, f32::NAN], 1).unwrap_err();
        assert_eq!(below.to_string(), "score of the caption: expected a number, got NaN");
        struct Short;
        impl Scores for Short {
            fn scores(&mut self, _: &[&[u32]]) -> Result<Vec<f32>> {
                Ok(vec![0.0])
            }
        }
        let rows = [vec![1], vec![2]];
        assert!(pool(&rows, &[Kept, Kept], Filter::Paper, 1, &mut Short).is_err());
    }

    // Trap 20
    #[test]
    fn no_caption_of_the_image_is_ever_drawn() {
        let pairs = Pairs::new(3, vec![0, 1, 0, 2, 1, 0, 2]).unwrap();
        let mut drawn = [0; 7];
        for number in 0..3000 {
            let mut rng = Purpose::Texts.stream(0, number);
            let texts = draw_texts(&pairs, 0, 2, &mut rng).unwrap();
            assert_eq!(texts.len(), 2);
            assert_ne!(texts[0], texts[1], "without replacement");
            texts.iter().for_each(|&text| drawn[text] += 1);
        }
        assert_eq!([drawn[0], drawn[2], drawn[5]], [0; 3], "texts of image 0");
        for text in [1, 3, 4, 6] {
            // 1,500 expected, standard deviation 27
            assert!((1360..1640).contains(&drawn[text]), "text {text}: {}", drawn[text]);
        }
    }

    #[test]
    fn a_set_smaller_than_q_is_taken_whole() {
        let pairs = Pairs::new(3, vec![0, 1, 0, 2]).unwrap();
        let mut rng = Purpose::Images.stream(0, 0);
        assert_eq!(draw_texts(&pairs, 0, 399, &mut rng).unwrap(), [1, 3]);
        assert_eq!(draw_images(&pairs, 1, 399, &mut rng).unwrap(), [0, 2]);
        assert_eq!(draw_images(&pairs, 1, 2, &mut rng).unwrap(), [0, 2]);
        assert_ne!(draw_images(&pairs, 1, 1, &mut rng).unwrap(), [1]);
        let alone = Pairs::uniform(1, 5);
        assert!(draw_texts(&alone, 0, 9, &mut rng).unwrap().is_empty());
    }

    #[test]
    fn an_anchor_that_is_not_there_is_refused() {
        let pairs = Pairs::new(3, vec![0, 1, 0, 2]).unwrap();
        let mut rng = Purpose::Images.stream(0, 0);
        let line = |drawn: Result<Vec<usize>>| drawn.unwrap_err().to_string();
        let image = line(draw_texts(&pairs, 3, 1, &mut rng));
        assert_eq!(image, "image: expected a number below 3, got 3");
        let text = line(draw_images(&pairs, 4, 1, &mut rng));
        assert_eq!(text, "text: expected a number below 4, got 4");
    }

    #[test]
    fn the_hardest_are_items_and_not_places() {
        assert_eq!(hardest(&[7, 3, 5], &[0.1, 0.4, 0.4], 2).unwrap(), [3, 5]);
        assert_eq!(hardest(&[7], &[f32::NEG_INFINITY], 9).unwrap(), [7]);
        let line = |scores: &[f32]| hardest(&[7, 3], scores, 1).unwrap_err().to_string();
        assert_eq!(line(&[0.1]), "scores: expected 2, one per item, got 1");
        assert_eq!(line(&[0.1, f32::NAN]), "score 1: expected a number, got NaN");
    }
}
