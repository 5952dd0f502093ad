//! Synthetic sentences of a step's captions: refilled, filtered, scored, the best kept (§3.3 to §3.5).

use itm_core::data::Regions;
use itm_core::learn::{Items, Numbers};
use itm_core::scored::Scored;
use itm_core::{Error, Result};

use super::{Pool, TagsDc};
use crate::model::{RegionBatch, Uniter, UniterScores, numbered};
use crate::pool::{Survivor, picks, survivors};
use crate::{CaptionWords, Choice, Masking, Negative, Pick, Purpose, Refill, Verdict};

/// A caption's maskings, beside its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextMaskings {
    /// The caption's number in its step, which its random stream depends on.
    pub(super) number: u64,
    pub(super) image: usize,
    pub(super) text: usize,
    pub(super) rows: Vec<Masking>,
}

impl TextMaskings {
    /// The number of targets of all its maskings.
    pub(super) fn targets(&self) -> usize {
        self.rows.iter().map(|masked| masked.targets().count()).sum()
    }
}

impl TagsDc {
    /// The pool of each caption, by the scores of a model without noise, and the shares of sentences that differ from the caption and from
    /// each other, and that survive. `logits` are the logits of all targets, `[targets, tokens]`. `data` ends with the words of each
    /// image's captions, if the split has not all of them.
    ///
    /// # Errors
    /// If no token can be drawn at a target, a region cannot be read, or a score is NaN.
    pub(super) fn pools(
        &self,
        captions: &[TextMaskings],
        mut logits: &[f32],
        model: &Uniter,
        data: (&Items, &Regions, Option<&[CaptionWords]>),
        seed: u64,
    ) -> Result<(Vec<Pool>, Numbers)> {
        let (config, regions) = (&self.config.synthetic, data.1);
        let mut made = vec![];
        for caption in captions {
            let (own, rest) = logits.split_at(caption.targets() * self.marks.tokens);
            logits = rest;
            made.push(self.made(caption, own, data, seed)?);
        }
        let below = config.choice == Choice::Below;
        let pairs = captions.iter().zip(&made).flat_map(|(caption, made)| {
            let own = (below && !made.left.is_empty()).then_some(&made.positive);
            let rows = made.left.iter().map(|survivor| &made.rows[survivor.row]).chain(own);
            rows.map(|row| (caption.image, row.clone()))
        });
        let (images, texts): (Vec<usize>, Vec<Vec<u32>>) = pairs.unzip();
        let mut scores = vec![];
        if !texts.is_empty() {
            let (images, rows) = numbered(&images);
            let all: Vec<usize> = (0..texts.len()).collect();
            let images = [RegionBatch::of(regions, &images)];
            scores = UniterScores::new(model, images, texts)?.pairs(&rows, &all)?;
        }
        let mut scores = &scores[..];
        let mut pools = vec![];
        for (caption, made) in captions.iter().zip(&made) {
            let more = usize::from(below && !made.left.is_empty()); // the caption's own score
            let (own, rest) = scores.split_at(made.left.len() + more);
            scores = rest;
            let best = picks(&made.left, own, config.kept)?;
            let negative = |pick: Pick| {
                let from = &caption.rows[pick.row / config.refills];
                Negative::new(&made.rows[pick.row], from, pick.score)
            };
            pools.push(Pool {
                image: caption.image,
                positive: made.positive.clone(),
                negatives: best.into_iter().map(negative).collect(),
            });
        }
        Ok((pools, shares(&made)))
    }

    /// The sentences of a caption, and which of them are negatives.
    fn made(
        &self,
        caption: &TextMaskings,
        logits: &[f32],
        (train, regions, told): (&Items, &Regions, Option<&[CaptionWords]>),
        seed: u64,
    ) -> Result<Made> {
        let config = &self.config.synthetic;
        let forbid = if config.forbid_special { self.marks.special.to_vec() } else { vec![] };
        let refill = Refill { draws: config.refills, temperature: config.temperature, forbid };
        let mut rng = Purpose::Refills.stream(seed, caption.number);
        let rows = refill.draw(&caption.rows, logits, self.marks.tokens, &mut rng);
        let text = caption.text;
        let rows = rows.map_err(Error::inside(format!("caption {text}")))?;
        let positive = self.marks.around(&train.texts[text]);
        let of_split = || {
            let texts = train.pairs.texts_of(caption.image);
            CaptionWords::of(texts.iter().map(|&text| &train.texts[text][..]))
        };
        let told = told.map_or_else(of_split, |all| all[caption.image].clone());
        let filter = self.learnt.filter(config.filter, regions, caption.image)?;
        let verdicts = filter.verdicts(&positive, &rows, &told, config.repeat);
        let is_copy = |v: &&Verdict| matches!(v, Verdict::Repeated | Verdict::Positive);
        let repeated = verdicts.iter().filter(is_copy).count();
        let left = survivors(&verdicts, &filter);
        let kept = left.len();
        let mut rng = Purpose::Choice.stream(seed, caption.number);
        let left = config.choice.drawn(left, config.kept, &mut rng);
        Ok(Made { left, kept, repeated, rows, positive })
    }
}

/// Synthetic sentences of a caption.
struct Made {
    positive: Vec<u32>,
    rows: Vec<Vec<u32>>,
    /// The number of rows that equal another row or the caption.
    repeated: usize,
    /// The number of rows that pass the filter.
    kept: usize,
    /// The rows among them that get a score.
    left: Vec<Survivor>,
}

fn shares(made: &[Made]) -> Numbers {
    let sum = |of: fn(&Made) -> usize| made.iter().map(of).sum::<usize>() as f64;
    let all = sum(|made| made.rows.len());
    Numbers::from([
        ("synthetic_distinct", 1.0 - sum(|made| made.repeated) / all),
        ("synthetic_kept", sum(|made| made.kept) / all),
    ])
}
