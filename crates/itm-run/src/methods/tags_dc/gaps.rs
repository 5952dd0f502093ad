//! How far the scores of negatives are from the scores of captions: after training (Figure 1), and over it (Figure 3).

use itm_core::{Error, Result};
use itm_report::figure::{self, Figure, courses};
use itm_report::format::decimals;
use itm_report::plot::{Ink, Point};
use itm_report::table::Table;
use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::made::Made;
use super::{filler, probability};
use crate::measures::course::{numbers, over_seeds};
use crate::measures::{Trained, Trial};
use crate::report::{Report, Row, coloured, mean, of_rows};

/// Scores of captions, and of the hardest of the negatives of a batch, of the split, and of the model's sentences.
const KINDS: [&str; 4] = ["captions", "batch", "data set", "generated"];
/// Bins of the figure.
const BINS: usize = 20;
/// Seed of the draws of batches.
const SEED: u64 = 0;

/// Probabilities of a match of each kind, and the course of the gap.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Gaps {
    /// In the order of [`KINDS`].
    scores: [Vec<f32>; 4],
    /// `(epochs done, mean of s(I, T⁻) − s(I, T))`, a line per seed.
    course: Vec<Vec<Point>>,
}

impl Gaps {
    /// The gaps of a model that made these sentences.
    ///
    /// # Errors
    /// If the scores cannot be read.
    pub(super) fn of(trial: &Trial, trained: &Trained, made: &[Made]) -> Result<Self> {
        let Some(method) = filler(&*trained.model.method) else {
            return Err(Error::invalid(trial.row, "a model that fills in words", "another"));
        };
        let pairs = &trial.source.dataset.test.pairs;
        let matrix = trial.scores.matrix()?;
        let image_of = |text: usize| pairs.image_of(text);
        let batch = method.config().train.batch;
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut scores = [const { Vec::new() }; 4];
        for text in 0..pairs.texts() {
            let row = matrix.row(image_of(text));
            let others: Vec<usize> =
                (0..pairs.texts()).filter(|&t| image_of(t) != image_of(text)).collect();
            scores[0].push(probability(row[text]));
            scores[1].extend(hardest_of_batch(row, &others, batch, &mut rng));
            scores[2].extend(hardest(row, others.iter().copied()));
            let own = made.iter().filter(|made| made.text == text);
            scores[3].extend(own.map(|made| made.sentence.score).reduce(f32::max));
        }
        let course = numbers(trained.log, trained.model.plan.epoch_steps());
        let course = course.get("istm_gap").cloned().unwrap_or_default();
        Ok(Self { scores, course: vec![course] })
    }

    /// All seeds together.
    pub(super) fn over(seeds: &[&Self]) -> Self {
        let mut all = Self::default();
        for seed in seeds {
            all.scores.iter_mut().zip(&seed.scores).for_each(|(all, own)| all.extend(own));
            all.course.extend(seed.course.iter().cloned());
        }
        all
    }

    /// The mean score of each kind; `None` without any.
    fn means(&self) -> [Option<f64>; 4] {
        [0, 1, 2, 3].map(|kind| mean(self.scores[kind].iter().map(|&score| f64::from(score))))
    }
}

/// The hardest of `batch − 1` other captions.
fn hardest_of_batch(
    row: &[f32],
    others: &[usize],
    batch: usize,
    rng: &mut impl RngExt,
) -> Option<f32> {
    let drawn = sample(rng, others.len(), (batch - 1).min(others.len()));
    hardest(row, drawn.iter().map(|k| others[k]))
}

fn hardest(row: &[f32], texts: impl Iterator<Item = usize>) -> Option<f32> {
    texts.map(|text| row[text]).reduce(f32::max).map(probability)
}

/// Mean scores of every row that makes sentences.
pub(super) fn table(report: &Report, rows: &[Option<Gaps>]) -> Table {
    let mut t = of_rows(report, "Scores of captions and negatives (Figure 1)").noted(
        "Mean probability of a match by the row's model: of the test captions, of the hardest other caption of a batch as long as a training \
         batch, of the hardest other caption of the split, and of the best sentence that the model makes.",
    );
    for (kind, name) in KINDS.into_iter().enumerate() {
        let means = rows.iter().map(|row| row.as_ref()?.means()[kind]);
        t.numbers(name, means, |mean| decimals(mean, 3));
    }
    t
}

/// Figure 1 for each row that makes sentences, and Figure 3 for all.
pub(super) fn figures(report: &Report, rows: &[Option<Gaps>]) -> Vec<Figure> {
    let found =
        || coloured(report).into_iter().zip(rows).filter_map(|(r, gaps)| Some((r, gaps.as_ref()?)));
    let scores = found().filter_map(|((row, _), gaps)| {
        let line = |(kind, name): (usize, &str)| {
            figure::Course::new(name, Ink::dashed(kind as u8), bins(&gaps.scores[kind]))
        };
        let lines: Vec<_> = KINDS.into_iter().enumerate().map(line).collect();
        let title =
            format!("{}: scores of captions and their hardest negatives (Figure 1)", row.name);
        courses(title, ["probability of a match", "share"], &lines, &[])
    });
    let line = |((row, series), gaps): ((&Row, u8), &Gaps)| {
        over_seeds(&row.name, Ink::dashed(series), gaps.course.clone())
    };
    let lines: Vec<_> = found().map(line).collect();
    let title =
        "Score of the model's sentences minus score of the caption, over training (Figure 3)";
    let course = courses(title, ["epochs", "mean difference"], &lines, &[]);
    scores.chain(course).collect()
}

/// The share of the scores in each bin of `[0, 1]`, at the middle of the bin.
fn bins(scores: &[f32]) -> Vec<Point> {
    let mut counts = [0usize; BINS];
    scores.iter().for_each(|&s| counts[((s * BINS as f32) as usize).min(BINS - 1)] += 1);
    let point = |(k, count): (usize, usize)| {
        ((k as f64 + 0.5) / BINS as f64, count as f64 / scores.len().max(1) as f64)
    };
    counts.into_iter().enumerate().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;
    use crate::tests::texts;

    /// By hand: 20 bins of 0.05; 1.0 is in the last one.
    #[test]
    fn golden_bins() {
        let shares = bins(&[0.0, 0.049, 0.05, 1.0]);
        assert_eq!((shares[0], shares[1].1, shares[19]), ((0.025, 0.5), 0.25, (0.975, 0.25)));
        assert_eq!(shares.iter().map(|share| share.1).sum::<f64>(), 1.0);
    }

    /// A batch of all is the whole split; a batch of two has one other caption.
    #[test]
    fn batches_are_part_of_the_split() {
        let (row, others) = ([9.0, 0.0, 2.0, -1.0], [1, 2, 3]);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let all = hardest(&row, others.into_iter());
        assert_eq!(all, Some(probability(2.0)));
        assert_eq!(hardest_of_batch(&row, &others, 100, &mut rng), all);
        let mut seen: Vec<f32> =
            (0..50).filter_map(|_| hardest_of_batch(&row, &others, 2, &mut rng)).collect();
        seen.sort_by(f32::total_cmp);
        seen.dedup();
        assert_eq!(seen, [-1.0, 0.0, 2.0].map(probability));
    }

    #[test]
    fn rows_that_make_sentences_have_scores_and_a_course() {
        let report = sample::report(24.3, -5.5, &[1]);
        let mut rows = vec![None; report.rows.len()];
        let none = table(&report, &rows).filled();
        assert!(none.lines.is_empty() && figures(&report, &rows).is_empty());
        let seed = |gap: f64| Gaps {
            scores: [vec![0.9, 0.7], vec![0.1], vec![0.25], vec![]],
            course: vec![vec![(0.5, gap), (1.0, 2.0 * gap)]],
        };
        rows[2] = Some(Gaps::over(&[&seed(-0.2), &seed(-0.4)]));
        assert_eq!(texts(&table(&report, &rows), "Full"), ["0.800", "0.100", "0.250", "–"]);
        let figures = figures(&report, &rows);
        assert_eq!(figures.len(), 2);
        let svg = figures[1].svg.clone().into_string();
        let lines = svg.split('<').filter(|e| e.starts_with("polyline") && e.contains("--s0"));
        assert_eq!(lines.count(), 3, "a line per seed and their mean");
    }
}
