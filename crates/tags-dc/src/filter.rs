//! The filter of synthetic sentences (§3.4). It drops sentences that may be true of the image, and repeats.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::siblings::SiblingStatistics;

/// Words that make no sentence false: all tokens of all captions of an image, also of captions that are too long for training.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptionWords(HashSet<u32>);

impl CaptionWords {
    /// The union over the captions of one image, whether training uses them or not.
    pub fn of<'a>(captions: impl IntoIterator<Item = &'a [u32]>) -> Self {
        Self(captions.into_iter().flatten().copied().collect())
    }

    /// Whether a caption of the image has the token, at any position.
    pub fn contains(&self, token: u32) -> bool {
        self.0.contains(&token)
    }
}

/// Which synthetic sentences are no negatives (departures 1 and 2).
#[derive(Debug, Clone, Default)]
pub enum Filter<'a> {
    /// A sentence that equals the positive, a repeat, or a sentence whose changed tokens all occur in captions of the image.
    #[default]
    Paper,
    /// A sentence that equals the positive, or a repeat (`positive_only`): the first phase of the released program.
    PositiveOnly,
    /// As `PositiveOnly`, but nothing is dropped. Instead the score of a repeat loses 2, and the score of a copy of the positive loses 3, so
    /// that a row with a high enough score stays.
    Penalty,
    /// As `Paper`, but a changed token may also be a word that siblings use for the replaced word.
    Siblings(&'a SiblingStatistics),
    /// As `Siblings`, but a changed token must also be a word that the image shows too little evidence for.
    Absent {
        /// Words for the same thing.
        siblings: &'a SiblingStatistics,
        /// The words that are absent from the caption's image: [`EvidenceBounds::absent`](crate::EvidenceBounds::absent).
        absent: HashSet<u32>,
    },
}

/// Which of equal rows stays (departure 3). The choice matters only for the labels of word correction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// The first.
    #[default]
    First,
    /// The last, as in the released program.
    Last,
}

/// What the filter says about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A negative.
    Kept,
    /// Equal to the positive.
    Positive,
    /// Equal to another row, which stays.
    Repeated,
    /// Every change may be true of the image.
    Protected,
}

impl Filter<'_> {
    /// The verdict on each row. All rows must be as long as `positive`.
    ///
    /// ```text
    /// D(row) = { row_p : row_p ≠ positive_p }
    /// dropped:  D = ∅,  or an equal row stays,  or every token of D ∈ union of the captions
    /// ```
    ///
    /// # Panics
    /// If a row has another length than the positive.
    ///
    /// ```
    /// use tags_dc::{Filter, CaptionWords, Repeat, Verdict};
    ///
    /// let captions: [&[u32]; 2] = [&[1, 2, 3], &[4, 5]];
    /// let rows = [vec![1, 2, 3], vec![1, 9, 3], vec![1, 9, 3], vec![1, 4, 3]];
    /// let verdicts = Filter::Paper.verdicts(&[1, 2, 3], &rows, &CaptionWords::of(captions), Repeat::First);
    /// use Verdict::{Kept, Positive, Protected as True, Repeated};
    /// assert_eq!(verdicts, [Positive, Kept, Repeated, True]);
    /// ```
    pub fn verdicts(
        &self,
        positive: &[u32],
        rows: &[Vec<u32>],
        captions: &CaptionWords,
        repeat: Repeat,
    ) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Kept; rows.len()];
        let mut seen = HashSet::new();
        for k in 0..rows.len() {
            let at = if repeat == Repeat::First { k } else { rows.len() - 1 - k };
            assert_eq!(rows[at].len(), positive.len(), "length of row {at} and of the positive");
            verdicts[at] = if rows[at] == positive {
                Verdict::Positive
            } else if !seen.insert(&rows[at]) {
                Verdict::Repeated
            } else if self.may_be_true(positive, &rows[at], captions) {
                Verdict::Protected
            } else {
                Verdict::Kept
            };
        }
        verdicts
    }

    /// The penalty on the score of a row; `None` if the row is dropped.
    pub(crate) fn penalty(&self, verdict: Verdict) -> Option<f32> {
        match (self, verdict) {
            (_, Verdict::Kept) => Some(0.0),
            (Self::Penalty, Verdict::Repeated) => Some(2.0),
            (Self::Penalty, Verdict::Positive) => Some(3.0),
            _ => None,
        }
    }

    fn may_be_true(&self, positive: &[u32], row: &[u32], captions: &CaptionWords) -> bool {
        let mut changes = positive.iter().zip(row).filter(|(w, x)| w != x);
        match self {
            Self::Paper => changes.all(|(_, &x)| captions.contains(x)),
            Self::PositiveOnly | Self::Penalty => false,
            Self::Siblings(statistics) => {
                changes.all(|(&w, &x)| captions.contains(x) || statistics.excludes(w, x))
            }
            Self::Absent { siblings, absent } => changes.all(|(&w, &x)| {
                captions.contains(x) || siblings.excludes(w, x) || !absent.contains(&x)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvidenceBounds;

    const POSITIVE: [u32; 4] = [1, 2, 3, 4];

    fn captions() -> CaptionWords {
        CaptionWords::of([&POSITIVE[..], &[20, 21], &(30..100).collect::<Vec<_>>()])
    }

    fn of(filter: Filter, rows: &[[u32; 4]]) -> Vec<Verdict> {
        let rows: Vec<Vec<u32>> = rows.iter().map(|row| row.to_vec()).collect();
        filter.verdicts(&POSITIVE, &rows, &captions(), Repeat::First)
    }

    #[test]
    fn one_change_that_no_caption_has_keeps_a_row() {
        use Verdict::{Kept, Protected};
        let rows = [[1, 20, 3, 4], [1, 200, 3, 4], [1, 20, 200, 4], [1, 20, 21, 4]];
        assert_eq!(of(Filter::Paper, &rows), [Protected, Kept, Kept, Protected]);
    }

    // Trap 14
    #[test]
    fn a_token_that_stands_elsewhere_in_another_caption_is_dropped() {
        // 21 is the second token of another caption; here it replaces the first
        assert_eq!(of(Filter::Paper, &[[21, 2, 3, 4]]), [Verdict::Protected]);
        // 4 stands elsewhere in the positive itself
        assert_eq!(of(Filter::Paper, &[[4, 2, 3, 4]]), [Verdict::Protected]);
    }

    // Trap 15
    #[test]
    fn all_captions_count_those_over_sixty_tokens_too() {
        assert_eq!(of(Filter::Paper, &[[99, 2, 3, 4]]), [Verdict::Protected]);
        let anchor_only = CaptionWords::of([&POSITIVE[..]]);
        let rows = [vec![99, 2, 3, 4]];
        let verdicts = Filter::Paper.verdicts(&POSITIVE, &rows, &anchor_only, Repeat::First);
        assert_eq!(verdicts, [Verdict::Kept], "the anchor's caption alone does not protect 99");
    }

    /// Departures 1 and 2.
    #[test]
    fn each_filter_gives_another_result() {
        use Verdict::{Kept, Positive, Protected, Repeated};
        let rows = [POSITIVE, [1, 20, 3, 4], [200, 2, 3, 4], [200, 2, 3, 4]];
        assert_eq!(of(Filter::Paper, &rows), [Positive, Protected, Kept, Repeated]);
        assert_eq!(of(Filter::PositiveOnly, &rows), [Positive, Kept, Kept, Repeated]);
        let verdicts = of(Filter::Penalty, &rows);
        assert_eq!(verdicts, of(Filter::PositiveOnly, &rows));
        let left = |filter: Filter| verdicts.iter().map(|&v| filter.penalty(v)).collect::<Vec<_>>();
        assert_eq!(left(Filter::Penalty), [Some(3.0), Some(0.0), Some(0.0), Some(2.0)]);
        assert_eq!(left(Filter::PositiveOnly), [None, Some(0.0), Some(0.0), None]);
    }

    /// 200 is another word for 2: a row with only that change may be true, though no caption of this image has 200.
    #[test]
    fn a_siblings_word_does_not_make_a_sentence_false() {
        let mut images = vec![vec![vec![2, 3], vec![200, 3]]; 5];
        images.extend(vec![vec![vec![7], vec![7]]; 40]);
        let statistics = SiblingStatistics::fit(&images);
        let rows = [[1, 200, 3, 4], [200, 2, 3, 4], [1, 200, 20, 4], [1, 200, 201, 4]];
        use Verdict::{Kept, Protected};
        assert_eq!(of(Filter::Paper, &rows), [Kept; 4]);
        let wanted = [Protected, Kept, Protected, Kept];
        assert_eq!(of(Filter::Siblings(&statistics), &rows), wanted, "200 for 2 only");
    }

    /// By hand: 200 and 201 are absent, but 200 is another word for 2. The image shows 202.
    #[test]
    fn only_an_absent_word_makes_a_sentence_false() {
        let mut images = vec![vec![vec![2, 3], vec![200, 3]]; 5];
        images.extend(vec![vec![vec![7], vec![7]]; 40]);
        let siblings = SiblingStatistics::fit(&images);
        let told = [vec![200, 201, 202]];
        let bounds = EvidenceBounds::fit(203, &told, 0.1, |_, w| Ok(vec![0.5; w.len()])).unwrap();
        let absent = bounds.absent(&[vec![0.4; 202], vec![0.6]].concat());
        let rows =
            [[1, 201, 3, 4], [1, 202, 3, 4], [1, 200, 3, 4], [200, 2, 3, 4], [1, 202, 201, 4]];
        let filter = Filter::Absent { siblings: &siblings, absent };
        use Verdict::{Kept, Protected};
        assert_eq!(of(filter.clone(), &rows), [Kept, Protected, Protected, Kept, Kept]);
        // Nothing is known of 203, and a caption of the image has 20.
        assert_eq!(of(filter, &[[1, 203, 3, 4], [1, 20, 3, 4]]), [Protected; 2]);
    }

    /// Departure 3.
    #[test]
    fn first_or_last_of_equal_rows_stays() {
        use Verdict::{Kept, Repeated};
        let rows = vec![vec![200, 2, 3, 4]; 3];
        let of = |repeat| Filter::Paper.verdicts(&POSITIVE, &rows, &captions(), repeat);
        assert_eq!(of(Repeat::First), [Kept, Repeated, Repeated]);
        assert_eq!(of(Repeat::Last), [Repeated, Repeated, Kept]);
    }

    #[test]
    #[should_panic(expected = "length of row 0")]
    fn rows_of_another_length_are_a_bug() {
        Filter::Paper.verdicts(&POSITIVE, &[vec![1]], &captions(), Repeat::First);
    }
}
