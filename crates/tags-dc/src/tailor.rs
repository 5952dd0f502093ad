//! From a caption to its synthetic negatives: mask, refill, filter, pool.

use itm_core::{Error, Result};

use crate::filter::{CaptionWords, Filter, Repeat};
use crate::masking::{Masker, Masking};
use crate::pool::{Choice, Pick, Scores, scored, survivors};
use crate::random::Purpose;
use crate::refill::{Generator, Refill};

/// How negatives of a caption are made with a model of image and text.
///
/// ```text
/// K maskings of T  →  L refills of each  →  filter  →  top-m of s(I, ·), or another choice
/// ```
///
/// | symbol | here | value of the paper |
/// |---|---|---|
/// | K | `maskings` | 20 |
/// | L | `refill.draws` | 20 |
/// | m | `kept` | 31; 23 for the large model |
///
/// ```
/// use itm_core::Result;
/// use tags_dc::{Choice, Filter, Generator, MaskBy, Masking, Masker, CaptionWords, Refill, Scores, Tailor};
///
/// /// All words are equally likely. Words with larger numbers match better.
/// struct Model;
/// impl Generator for Model {
///     fn vocabulary(&self) -> usize {
///         20
///     }
///     fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>> {
///         Ok(vec![0.0; 20 * rows.iter().map(|row| row.targets().count()).sum::<usize>()])
///     }
/// }
/// impl Scores for Model {
///     fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
///         Ok(rows.iter().map(|row| row.iter().sum::<u32>() as f32).collect())
///     }
/// }
///
/// let caption = [17, 5, 6, 18]; // 17 is [CLS], 18 is [SEP], 19 is [MASK]
/// let tailor = Tailor {
///     masker: Masker::new(MaskBy::Phrases, 0.5, 19, 2..17)?,
///     maskings: 4,
///     refill: Refill { draws: 5, temperature: 1.5, forbid: vec![0, 1, 17, 18, 19] },
///     filter: Filter::Paper,
///     choice: Choice::Best,
///     kept: 3,
/// };
/// let told = CaptionWords::of([&[5, 6][..], &[7]]);
/// let negatives = tailor.negatives(&caption, &[vec![0], vec![1]], &told, &mut Model, 1, 0)?;
/// assert_eq!(negatives.len(), 3);
/// assert!(negatives.is_sorted_by(|a, b| a.score >= b.score));
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tailor<'a> {
    /// Draws targets.
    pub masker: Masker,
    /// The number of independent maskings per caption.
    pub maskings: usize,
    /// Draws new tokens at the targets.
    pub refill: Refill,
    /// Drops the sentences that are no negatives.
    pub filter: Filter<'a>,
    /// Which of the other sentences become negatives.
    pub choice: Choice,
    /// The most negatives per caption.
    pub kept: usize,
}

/// A synthetic sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Negative {
    /// As many tokens as the caption has.
    pub tokens: Vec<u32>,
    /// Whether each token was masked. A masked token may be refilled with the caption's own token.
    pub masked: Vec<bool>,
    /// How well the sentence matches the image, in the numbers of the model's [`Scores`]: for UNITER the match logit, not its sigmoid. The
    /// filter's penalty counts in the order of the negatives alone.
    pub score: f32,
}

impl Negative {
    pub(crate) fn new(tokens: &[u32], from: &Masking, score: f32) -> Self {
        let masked = from.labels.iter().map(Option::is_some).collect();
        Self { tokens: tokens.to_vec(), masked, score }
    }
}

impl Tailor<'_> {
    /// The best negatives of a caption, best first. There are none if no synthetic sentence passes the filter.
    ///
    /// `caption` includes `[CLS]` and `[SEP]`; position 0 of a phrase is the token after `[CLS]`. `told` has the words of all captions of the
    /// image. `number` is the caption's number in the whole set: each caption has its own random streams.
    ///
    /// # Errors
    /// If `maskings` or `kept` is 0; also as [`Masker::maskings`], [`Refill::draw`] and [`pool`](crate::pool).
    pub fn negatives<M: Generator + Scores>(
        &self,
        caption: &[u32],
        phrases: &[Vec<usize>],
        told: &CaptionWords,
        model: &mut M,
        seed: u64,
        number: u64,
    ) -> Result<Vec<Negative>> {
        for (field, n) in [("maskings", self.maskings), ("kept", self.kept)] {
            Error::unless(n > 0, format_args!("tailor.{field}"), "at least 1", n)?;
        }
        let mut rng = Purpose::Masks.stream(seed, number);
        let masked = self.masker.maskings(caption, phrases, self.maskings, &mut rng)?;
        let mut rng = Purpose::Refills.stream(seed, number);
        let logits = model.logits(&masked)?;
        let rows = self.refill.draw(&masked, &logits, model.vocabulary(), &mut rng)?;
        let verdicts = self.filter.verdicts(caption, &rows, told, Repeat::First);
        let left = survivors(&verdicts, &self.filter);
        let left = self.choice.drawn(left, self.kept, &mut Purpose::Choice.stream(seed, number));
        let own = (self.choice == Choice::Below).then_some(caption);
        let best = scored(&rows, &left, own, self.kept, model)?;
        let negative = |pick: Pick| {
            Negative::new(&rows[pick.row], &masked[pick.row / self.refill.draws], pick.score)
        };
        Ok(best.into_iter().map(negative).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MaskBy;

    const VOCABULARY: usize = 20;

    /// Draws the same word at every target, and scores a sentence by the sum of its tokens.
    struct Only(u32);

    impl Generator for Only {
        fn vocabulary(&self) -> usize {
            VOCABULARY
        }

        fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>> {
            let targets: usize = rows.iter().map(|row| row.targets().count()).sum();
            let mut one = [f32::NEG_INFINITY; VOCABULARY];
            one[self.0 as usize] = 0.0;
            Ok(one.repeat(targets))
        }
    }

    impl Scores for Only {
        fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
            Ok(rows.iter().map(|row| row.iter().sum::<u32>() as f32).collect())
        }
    }

    fn tailor(kept: usize) -> Tailor<'static> {
        let masker = Masker::new(MaskBy::Phrases, 0.5, 19, 2..17).unwrap();
        let refill = Refill { draws: 2, temperature: 1.5, forbid: vec![] };
        Tailor { masker, maskings: 30, refill, filter: Filter::Paper, choice: Choice::Best, kept }
    }

    /// By hand: word 9 replaces the first, the second or both words of 5 6; 9 is in no caption.
    #[test]
    fn golden_negatives_are_all_changes_best_first() {
        let told = CaptionWords::of([&[5, 6][..]]);
        let of = |kept, word, told: &CaptionWords| {
            let (caption, phrases) = ([17, 5, 6, 18], [vec![0], vec![1]]);
            let tailor = tailor(kept);
            tailor.negatives(&caption, &phrases, told, &mut Only(word), 1, 3).unwrap()
        };
        let tokens =
            |all: Vec<Negative>| -> Vec<Vec<u32>> { all.into_iter().map(|n| n.tokens).collect() };
        let all = [vec![17, 9, 9, 18], vec![17, 9, 6, 18], vec![17, 5, 9, 18]];
        assert_eq!(tokens(of(9, 9, &told)), all);
        assert_eq!(tokens(of(1, 9, &told)), all[..1]);
        // Each negative knows its masked positions: both words, the first, the second.
        let masked: Vec<_> = of(9, 9, &told).into_iter().map(|n| n.masked).collect();
        assert_eq!(masked[0], [false, true, true, false]);
        assert!(masked[1][1] && masked[2][2]);
        // No survivor, because a caption of the image has the word.
        assert_eq!(of(9, 9, &CaptionWords::of([&[5, 6][..], &[9]])), []);
    }

    /// By hand: 9 9, 9 6 and 5 9 score 18, 15 and 14 besides the marks, the caption 5 6 scores 11; 3 3, 3 6 and 5 3 score 6, 9 and 8. A random choice of one gives
    /// each of the three.
    #[test]
    fn golden_choices() {
        let told = CaptionWords::of([&[5, 6][..]]);
        let of = |choice, kept, word, seed| -> Vec<[u32; 2]> {
            let tailor = Tailor { choice, ..tailor(kept) };
            let (caption, phrases) = ([17, 5, 6, 18], [vec![0], vec![1]]);
            let made = tailor.negatives(&caption, &phrases, &told, &mut Only(word), seed, 3);
            made.unwrap().iter().map(|negative| [negative.tokens[1], negative.tokens[2]]).collect()
        };
        assert_eq!(of(Choice::Below, 2, 9, 1), [[0; 2]; 0]);
        assert_eq!(of(Choice::Below, 2, 3, 1), [[3, 6], [5, 3]]);
        assert_eq!(of(Choice::Best, 2, 9, 1), [[9, 9], [9, 6]]);
        assert_eq!(of(Choice::Random, 3, 9, 1), [[9, 9], [9, 6], [5, 9]], "all, best first");
        let mut drawn: Vec<_> = (0..40).flat_map(|seed| of(Choice::Random, 1, 9, seed)).collect();
        assert_eq!(drawn.len(), 40);
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [[5, 9], [9, 6], [9, 9]]);
    }

    #[test]
    fn numbers_of_nothing_are_refused() {
        let told = CaptionWords::default();
        let line = |tailor: Tailor| {
            let of = tailor.negatives(&[17, 5, 18], &[], &told, &mut Only(9), 1, 0);
            of.unwrap_err().to_string()
        };
        let no_refill = Refill { draws: 0, ..tailor(1).refill };
        let want = "expected at least 1, got 0";
        assert_eq!(line(tailor(0)), format!("tailor.kept: {want}"));
        assert_eq!(line(Tailor { maskings: 0, ..tailor(1) }), format!("tailor.maskings: {want}"));
        assert_eq!(
            line(Tailor { refill: no_refill, ..tailor(1) }),
            "refill.draws: expected 1 to 1000000, got 0"
        );
    }
}
