//! Scores of all images with all texts, tile by tile.

use std::ops::Range;

use itm_core::data::{check_counts, item_of};
use itm_core::scored::Scored;
use itm_core::{Error, Result, ScoreMatrix};
use itm_kernels::cross_attention::{self, ItemRows, Rule};

use crate::attention::{Attention, Phase};

/// Regions and words of a split, and how they are compared: scores by blocks.
///
/// Scores are made of cosines, so every row must have unit length or be all zeros. Rows are stored without padding, so the lengths
/// of neighbours do not matter. A score has the same bits in every block, for any block size and any number of threads.
///
/// ```
/// use itm_core::scored::Scored;
/// use naaf::{CrossScores, NaafConfig, Preset};
///
/// let regions = vec![1.0, 0.0, 0.0, 1.0, 0.6, 0.8]; // image 0 has two, image 1 has one
/// let words = vec![0.8, 0.6, 0.0, 1.0, 1.0, 0.0]; // text 0 has one word, text 1 has two
/// let attention = NaafConfig::preset(Preset::Default).attention;
/// let scores = CrossScores::new((regions, &[2, 1]), (words, &[1, 2]), 2, 0.3, &attention)?;
/// assert_eq!((scores.images(), scores.texts()), (2, 2));
/// assert!(scores.matrix()?.row(0)[1] > scores.matrix()?.row(1)[1]); // both words have their region in image 0
/// # Ok::<(), naaf::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CrossScores {
    images: ItemRows,
    texts: ItemRows,
    boundary: f32,
    rule: Rule,
}

impl CrossScores {
    /// Rows of both sides, `[rows of all items, width]`, each side with the number of rows of each item.
    ///
    /// # Errors
    /// If values and counts do not fit, a count is 0, a value is not finite, or a row has neither unit length nor only zeros: the error
    /// names the item and its row. Also if the boundary is not finite, or an option of the attention is out of range.
    pub fn new(
        (regions, region_counts): (Vec<f32>, &[usize]),
        (words, word_counts): (Vec<f32>, &[usize]),
        width: usize,
        boundary: f32,
        attention: &Attention,
    ) -> Result<Self> {
        Error::unless(boundary.is_finite(), "boundary", "a finite number", boundary)?;
        attention.check()?;
        Ok(Self {
            images: side(["image", "region"], regions, width, region_counts)?,
            texts: side(["text", "word"], words, width, word_counts)?,
            boundary,
            rule: attention.rule(Phase::Inference),
        })
    }
}

/// Rows of one side, checked.
fn side(
    [item, row]: [&str; 2],
    values: Vec<f32>,
    width: usize,
    counts: &[usize],
) -> Result<ItemRows> {
    check_counts(counts, [item, row, &format!("{row}s")], width, values.len())?;
    let named = |at: usize| {
        let (k, of) = item_of(counts, at);
        format!("{item} {k}, {row} {of}")
    };
    unit_rows(&values, width, named)?;
    Ok(ItemRows::new(values, width, counts))
}

/// Refuses rows of one item whose products are not cosines.
pub(crate) fn check_rows(row: &str, values: &[f32], width: usize) -> Result<()> {
    let fits = width > 0 && !values.is_empty() && values.len().is_multiple_of(width);
    let expected = format_args!("rows of {width} values, at least 1");
    Error::unless(fits, format_args!("{row}s"), expected, format_args!("{} values", values.len()))?;
    unit_rows(values, width, |at| format!("{row} {at}"))
}

/// Refuses a row with a NaN, an infinity, or another length than 1 and 0.
fn unit_rows(values: &[f32], width: usize, named: impl Fn(usize) -> String) -> Result<()> {
    /// How far a length may be from 1, because of rounding or encoders in half precision.
    const SLACK: f64 = 0.01;
    let squares = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    let fits = |square: f64| square == 0.0 || (square.sqrt() - 1.0).abs() <= SLACK;
    let mut rows = values.chunks_exact(width).enumerate();
    let Some((at, row)) = rows.find(|(_, row)| !fits(squares(row))) else { return Ok(()) };
    let place = |column| format!("{}, column {column}", named(at));
    Error::unless_finite(row, place, "a finite number")?;
    let got = format!("length {}", squares(row).sqrt() as f32);
    Err(Error::invalid(named(at), "a row of unit length", got))
}

impl Scored for CrossScores {
    fn images(&self) -> usize {
        self.images.items()
    }

    fn texts(&self) -> usize {
        self.texts.items()
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        let (n, m) = (images.len(), texts.len());
        let ranges = [images, texts];
        let scores =
            cross_attention::scores(&self.images, &self.texts, ranges, self.boundary, &self.rule);
        ScoreMatrix::new(n, m, scores)
    }
}

#[cfg(test)]
mod tests {
    use itm_core::Pairs;
    use itm_core::eval::Ranks;
    use itm_kernels::random;

    use super::*;
    use crate::{NaafConfig, Preset};

    const D: usize = 9;

    fn rows(counts: &[usize], seed: u64) -> Vec<f32> {
        let n = counts.iter().sum::<usize>() * D;
        let mut rows: Vec<f32> = (0..n).map(|k| random::unit(seed, k as u64) - 0.4).collect();
        for row in rows.chunks_mut(D) {
            let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            row.iter_mut().for_each(|x| *x /= length);
        }
        rows
    }

    fn counts(n: usize, most: usize, seed: u64) -> Vec<usize> {
        (0..n).map(|k| 1 + (random::unit(seed, k as u64) * most as f32) as usize).collect()
    }

    fn made(n: usize, m: usize) -> CrossScores {
        let (regions, words) = (counts(n, 40, 1), counts(m, 25, 2));
        let attention = NaafConfig::preset(Preset::Default).attention;
        CrossScores::new(
            (rows(&regions, 3), &regions),
            (rows(&words, 4), &words),
            D,
            0.1,
            &attention,
        )
        .unwrap()
    }

    #[test]
    fn trap_22_blocks_change_no_bit() {
        let scores = made(23, 57);
        let all = scores.matrix().unwrap();
        for size in [1, 2, 7, 23, 57] {
            for i in (0..23).step_by(size) {
                for c in (0..57).step_by(size) {
                    let (images, texts) = (i..(i + size).min(23), c..(c + size).min(57));
                    let block = scores.block(images.clone(), texts.clone()).unwrap();
                    for (row, image) in images.enumerate() {
                        assert_eq!(block.row(row), &all.row(image)[texts.clone()]);
                    }
                }
            }
        }
        let (images, texts): (Vec<_>, Vec<_>) = (0..40).map(|k| (k * 5 % 23, k * 11 % 57)).unzip();
        let want: Vec<f32> = images.iter().zip(&texts).map(|(&i, &c)| all.row(i)[c]).collect();
        assert_eq!(scores.pairs(&images, &texts).unwrap(), want);
    }

    #[test]
    fn threads_change_no_bit_and_ranks_are_those_of_the_matrix() {
        let scores = made(23, 57);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| scores.matrix().unwrap())
        };
        assert_eq!(with(1), with(3));
        let pairs = Pairs::new(23, (0..57).map(|c| c % 23).collect()).unwrap();
        let want = Ranks::new(&scores.matrix().unwrap(), &pairs).unwrap();
        assert_eq!(scores.ranks(&pairs).unwrap(), want);
    }

    #[test]
    fn trap_16_one_word_and_one_region_are_enough() {
        let attention = NaafConfig::preset(Preset::Default).attention;
        let one =
            CrossScores::new((vec![0.6, 0.8], &[1]), (vec![0.6, 0.8], &[1]), 2, 0.0, &attention);
        // f = 1, relevance = s = 1, nothing negative.
        assert!((one.unwrap().matrix().unwrap().values()[0] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn bad_input_is_named() {
        let attention = NaafConfig::preset(Preset::Default).attention;
        let refused = |regions: (Vec<f32>, &[usize]), words: (Vec<f32>, &[usize]), boundary| {
            CrossScores::new(regions, words, 2, boundary, &attention).unwrap_err().to_string()
        };
        let good = || ([0.6, 0.8].repeat(3), &[2usize, 1][..]);
        let nan = (vec![0.0, 0.0, 0.0, 0.0, f32::NAN, 0.0], &[1usize, 2][..]);
        let line = refused(good(), nan, 0.1);
        assert_eq!(line, "text 1, word 1, column 0: expected a finite number, got NaN");
        let line = refused((vec![0.5; 5], &[2, 1]), good(), 0.1);
        assert_eq!(line, "regions: expected 3 × 2 values, at least 1 wide, got 5");
        let line = refused(good(), (vec![0.5; 6], &[3, 0]), 0.1);
        assert_eq!(line, "text 1: expected at least 1 word, got 0");
        let line = refused(good(), (vec![0.5; 6], &[2, 1]), 0.1);
        assert_eq!(line, "text 0, word 0: expected a row of unit length, got length 0.70710677");
        assert_eq!(
            refused(good(), good(), f32::NAN),
            "boundary: expected a finite number, got NaN"
        );
    }
}
