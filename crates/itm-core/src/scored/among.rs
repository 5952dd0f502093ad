//! A cheap evaluation of a split: each text ranks its image among a few images.

use super::Scored;
use crate::eval::{DirectionMetrics, Standing, TiePolicy};
use crate::{Error, Pairs, Result};

/// How each text ranks its image among `among` images: its own image and the next ones in the list, which wraps around.
/// On ties the image with the smaller index comes first.
///
/// This scores `texts · among` pairs instead of `texts · images`. The images are an arbitrary sample, so a recall is larger
/// than the recall over all images and **not a number of a protocol**: training uses it to compare its checkpoints.
///
/// ```
/// use itm_core::scored::{Scored, ranks_among};
/// use itm_core::{Pairs, ScoreMatrix};
///
/// let scores = ScoreMatrix::from_rows([[0.1, 0.5, 0.9], [0.3, 0.4, 0.8], [0.2, 0.6, 0.7]]);
/// let pairs = Pairs::uniform(3, 1);
/// // Text 0 sees images 0 and 1, text 1 images 1 and 2, text 2 images 2 and 0: each finds its own behind the other.
/// assert_eq!(ranks_among(&scores, &pairs, 2)?.mean, 2.0);
/// assert_eq!(ranks_among(&scores, &pairs, 3)?.mean, 3.0);
/// # Ok::<(), itm_core::Error>(())
/// ```
///
/// # Errors
/// If `among` is 0, there is no text, the pairs are judged, or `scored` and `pairs` differ in shape; also as [`Scored::pairs`].
pub fn ranks_among(scored: &dyn Scored, pairs: &Pairs, among: usize) -> Result<DirectionMetrics> {
    let (n, m) = (scored.images(), scored.texts());
    Error::unless(among > 0 && m > 0, "images and texts to rank among", "at least 1", 0)?;
    let (images, texts) = (pairs.images(), pairs.texts());
    let expected = format!("{images} × {texts}");
    Error::unless((images, texts) == (n, m), "scores", expected, format_args!("{n} × {m}"))?;
    let expected = "one image for each text";
    Error::unless(!pairs.is_judged(), "pairs to rank among", expected, "judged pairs")?;
    let among = among.min(n);
    let seen = |text| (0..among).map(move |k| (pairs.image_of(text) + k) % n);
    let images: Vec<usize> = (0..m).flat_map(seen).collect();
    let texts: Vec<usize> = (0..m).flat_map(|text| std::iter::repeat_n(text, among)).collect();
    let scores = scored.pairs(&images, &texts)?;
    let standing = |(images, scores): (&[usize], &[f32])| {
        let (own, score) = (images[0], scores[0]);
        let others = || images.iter().zip(scores).skip(1);
        let count =
            |of: &dyn Fn(usize, f32) -> bool| others().filter(|(i, s)| of(**i, **s)).count();
        Standing {
            greater: count(&|_, s| s > score) as u32,
            before: count(&|i, s| s == score && i < own) as u32,
            equal: count(&|_, s| s == score) as u32,
            own: 1,
        }
    };
    let standings: Vec<_> = images.chunks(among).zip(scores.chunks(among)).map(standing).collect();
    Ok(DirectionMetrics::new(&standings, TiePolicy::Index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScoreMatrix;
    use crate::eval::Ranks;

    /// By hand. Three images with two texts each; a text sees its own image and the next one, after the last the first.
    #[test]
    fn golden_ranks_among_two() {
        let scores = ScoreMatrix::from_rows([
            [0.9, 0.1, 0.5, 0.0, 0.7, 0.2],
            [0.1, 0.9, 0.5, 0.3, 0.0, 0.0],
            [1.0, 1.0, 0.5, 0.4, 0.7, 0.1],
        ]);
        let pairs = Pairs::uniform(3, 2);
        // Ranks from 1: text 0 of image 0 against 1: 1; text 1: 2; text 2 of image 1 against 2, a tie that 1 wins: 1; text 3: 2;
        // text 4 of image 2 against 0, a tie that 0 wins: 2; text 5: 2.
        let got = ranks_among(&scores, &pairs, 2).unwrap();
        let want = [10.0 / 6.0, 100.0 / 3.0, 100.0];
        let got = [got.mean, got.r1, got.r5];
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?}");
    }

    /// Among all images the ranks equal the ranks of the whole evaluation.
    #[test]
    fn among_all_is_the_whole_evaluation() {
        let value = |k: usize| ((k / 14 * 5 + k % 14 * 3) % 11) as f32;
        let scores = ScoreMatrix::new(7, 14, (0..98).map(value).collect()).unwrap();
        let pairs = Pairs::uniform(7, 2);
        let ranks = Ranks::new(&scores, &pairs).unwrap();
        let whole = DirectionMetrics::new(ranks.t2i(), TiePolicy::Index);
        for among in [7, 8, 400] {
            assert_eq!(ranks_among(&scores, &pairs, among).unwrap(), whole);
        }
        assert!(ranks_among(&scores, &pairs, 3).unwrap().mean < whole.mean);
    }

    #[test]
    fn nothing_to_rank_is_an_error() {
        let scores = ScoreMatrix::from_rows([[0.5, 0.1]]);
        let line = |pairs, among| ranks_among(&scores, &pairs, among).unwrap_err().to_string();
        let want = "images and texts to rank among: expected at least 1, got 0";
        assert_eq!(line(Pairs::uniform(1, 2), 0), want);
        assert_eq!(line(Pairs::uniform(2, 1), 1), "scores: expected 2 × 2, got 1 × 2");
        let want = "pairs to rank among: expected one image for each text, got judged pairs";
        assert_eq!(line(Pairs::judged(1, vec![vec![0], vec![]]).unwrap(), 1), want);
    }
}
