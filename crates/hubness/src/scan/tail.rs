//! The tail of natural scores.

/// An exponential tail above the 95th percentile.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    ascending: Vec<f64>,
    from: f64,  // u
    above: f64, // t
    width: f64, // β; 0: no tail
}

impl Tail {
    pub(super) fn new(scores: &[f64]) -> Self {
        let mut ascending = scores.to_vec();
        ascending.sort_unstable_by(f64::total_cmp);
        let at = (ascending.len() * 95).div_ceil(100).max(1) - 1;
        let from = ascending.get(at).copied().unwrap_or(0.0);
        let above = ascending.partition_point(|&score| score <= from);
        let mut excess: Vec<f64> = ascending[above..].iter().map(|score| score - from).collect();
        // With u = 0 the tail is the items of one answer, and two answers would look impossible.
        let width = if from > 0.0 { width(&mut excess) } else { 0.0 };
        Self { from, above: excess.len() as f64, width, ascending }
    }

    /// Whether there is a tail: of at least 20 items more than one in twenty has a score above 0, and not the same.
    pub(super) fn is_known(&self) -> bool {
        self.width > 0.0
    }

    /// How many natural items have this score or more.
    pub(super) fn expected(&self, score: f64) -> f64 {
        if score <= self.from || self.width == 0.0 {
            let below = self.ascending.partition_point(|&other| other < score);
            return (self.ascending.len() - below).max(1) as f64;
        }
        self.above * (-(score - self.from) / self.width).exp()
    }

    /// The score that this many natural items reach; infinite without a tail.
    pub(super) fn score(&self, expected: f64) -> f64 {
        if self.width == 0.0 {
            return f64::INFINITY;
        }
        let score = self.from + self.width * (self.above / expected).ln();
        score.max(self.from.next_up()) // a score of u is below the tail
    }
}

/// β from the middle and from the end of the tail: with few counts, the middle alone is too narrow.
fn width(excess: &mut [f64]) -> f64 {
    if excess.is_empty() {
        return 0.0;
    }
    let middle = median(excess) / 2f64.ln();
    let (t, rank) = (excess.len(), excess.len() * 9 / 10);
    let end = rank.checked_sub(1).map(|at| excess[at] / (t as f64 / (t - rank) as f64).ln());
    end.unwrap_or(0.0).max(middle)
}

/// The median; the mean of the two in the middle, if there are two.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[half - 1], values[half])
    } else {
        values[half]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of 40 scores two are above 1, by 2 and 4; the median excess 3 is where one of two is left. The end, 2 / ln 2, is less.
    #[test]
    fn golden_tail() {
        let mut scores = vec![1.0; 40];
        (scores[3], scores[30]) = (3.0, 5.0);
        let tail = Tail::new(&scores);
        for (score, want) in [(4.0, 1.0), (7.0, 0.5), (10.0, 0.25), (1.0, 40.0), (0.0, 40.0)] {
            assert!((tail.expected(score) - want).abs() < 1e-12, "{score}");
        }
        assert!((tail.score(0.25) - 10.0).abs() < 1e-12);
        for all in [tail.above, 5.0] {
            let score = tail.score(all);
            assert!(score > 1.0 && score < 1.0 + 1e-12, "the tail, or more than it has: {score}");
        }
    }

    /// Ten above 1: median excess 1, but the ninth is 7, which is where one of ten is left: β = 7 / ln 10. The tenth does not count.
    #[test]
    fn golden_long_tail() {
        let mut scores = vec![1.0; 190];
        scores.extend([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 8.0, 900.0]);
        let tail = Tail::new(&scores);
        assert!(
            (tail.expected(8.0) - 1.0).abs() < 1e-12 && (tail.expected(15.0) - 0.1).abs() < 1e-12
        );
    }

    /// Of a hundred items five have one answer and one has two: that is no tail, so scores are counted.
    #[test]
    fn few_answers_are_no_tail() {
        let mut scores = vec![0.0; 94];
        scores.extend([0.1, 0.1, 0.1, 0.1, 0.1, 2.0]);
        scores.extend(vec![0.0; 100]);
        let tail = Tail::new(&scores);
        assert!(!tail.is_known());
        assert_eq!((tail.expected(2.0), tail.score(0.1)), (1.0, f64::INFINITY));
    }

    #[test]
    fn without_a_tail_nothing_is_an_alarm() {
        let tail = Tail::new(&[1.0; 30]);
        let few: Vec<_> = (0..19).map(f64::from).collect();
        assert!(!tail.is_known() && !Tail::new(&few).is_known(), "a gate would admit anything");
        assert_eq!(
            (tail.score(0.1), tail.expected(1.0), tail.expected(9.0)),
            (f64::INFINITY, 30.0, 1.0)
        );
        assert_eq!(Tail::new(&[]).score(0.1), f64::INFINITY);
    }
}
