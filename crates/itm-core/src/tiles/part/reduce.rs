//! Makes a part from tiles, and a result from the whole.

use sha2::{Digest, Sha256};

use super::super::kernel::{forced, is_fused};
use super::super::rank_counts::RankCounts;
use super::super::top::{TopK, item_of, key, score_of};
use super::super::{BothSides, Tiles};
use super::cells::{check_grid, sums};
use super::slots::Slots;
use super::{FORMAT, Header, Kernel, Part, PartKind, Side, invalid, unless};
use crate::eval::{Ranks, Standing};
use crate::{Pairs, Result};

/// What a part keeps of its scores. Pairs, and their scores, are always those of the whole.
#[derive(Debug, Clone, Copy)]
pub enum Reduction<'a> {
    /// The k best texts of every image, all if there are fewer: [`Part::top`].
    TopTexts(usize),
    /// The k best images of every text: [`Part::top`].
    TopImages(usize),
    /// The scores of the true pairs, in the order of [`Pairs::list`]: [`Part::pair_scores`].
    PairScores(&'a Pairs),
    /// Counts for the ranks of both directions, once the scores of all true pairs are known: [`Part::ranks`].
    Ranks(&'a Pairs, &'a [f32]),
    /// `log Σ exp(β·s)` of every image or of every text: [`Part::log_sums`]. The part begins and ends at multiples of 4096.
    ExpSums(Side, f64),
    /// Mean and deviation of every image or of every text, likewise: [`Part::moments`].
    Moments(Side),
}

impl Reduction<'_> {
    fn kind(self, whole: (usize, usize)) -> Result<PartKind> {
        let hash_of = |pairs: &Pairs| {
            let (got, want) = ((pairs.images(), pairs.texts()), whole);
            let expected = format!("pairs of {} images and {} texts", want.0, want.1);
            unless(got == want, expected, format_args!("{} and {}", got.0, got.1))?;
            Ok(hash_of_pairs(pairs))
        };
        match self {
            Self::TopTexts(0) | Self::TopImages(0) => invalid("lists of at least 1 item", 0),
            // Every list of a part is k long: k is a number of items, whatever was asked.
            Self::TopTexts(k) => Ok(PartKind::TopTexts { k: k.min(whole.1) }),
            Self::TopImages(k) => Ok(PartKind::TopImages { k: k.min(whole.0) }),
            Self::PairScores(pairs) => {
                let count = pairs.list().0.len();
                Ok(PartKind::PairScores { pairs: hash_of(pairs)?, count })
            }
            Self::ExpSums(of, beta) if beta > 0.0 && beta < 1e200 => {
                Ok(PartKind::ExpSums { of, beta: beta.to_bits() })
            }
            Self::ExpSums(_, beta) => invalid("a β above 0 and below 1e200", beta),
            Self::Moments(of) => Ok(PartKind::Moments { of }),
            Self::Ranks(pairs, scores) => {
                let (pairs, listed) = (hash_of(pairs)?, pairs.list().0.len());
                let fits = scores.len() == listed && !scores.iter().any(|score| score.is_nan());
                let expected = format!("a number for each of {listed} true pairs");
                unless(fits, expected, format_args!("{} scores", scores.len()))?;
                Ok(PartKind::Standings { pairs, scores: hash_of_values(scores) })
            }
        }
    }
}

impl Tiles<'_> {
    /// What these scores, which begin at `origin` (image, text) of a `whole` (images, texts), give for a reduction.
    ///
    /// # Errors
    /// If there is no score, the scores go beyond the whole, or pairs and their scores do not fit the whole.
    pub fn part(
        &self,
        reduction: Reduction<'_>,
        origin: (usize, usize),
        whole: (usize, usize),
    ) -> Result<Part> {
        let (fused, kind) = (forced()?.unwrap_or_else(is_fused), reduction.kind(whole)?);
        let range = |first: usize, rows: usize, most: usize| {
            let end = first.checked_add(rows).filter(|&end| end <= most && rows > 0);
            end.map(|end| first..end)
        };
        let (n, m) = (self.images(), self.texts());
        let sides = (range(origin.0, n, whole.0), range(origin.1, m, whole.1));
        let (Some(rows), Some(columns)) = sides else {
            let expected = format!("a part of {} × {} scores", whole.0, whole.1);
            return invalid(expected, format!("{n} × {m} from {}, {}", origin.0, origin.1));
        };
        let fits = u32::try_from(whole.0.max(whole.1)).is_ok();
        let got = format!("{} and {}", whole.0, whole.1);
        unless(fits, "fewer than 2³² images and texts", got)?;
        let both = [whole.0, whole.1];
        let of_images = |values| Slots { first: rows.start, width: kind.widths(both)[0], values };
        let of_texts = |values| Slots { first: columns.start, width: kind.widths(both)[1], values };
        let (images, texts) = match reduction {
            Reduction::TopTexts(k) => {
                let k = k.min(whole.1);
                (of_images(keys(&self.top(Side::Images, k), n, k, origin.1)?), Slots::default())
            }
            Reduction::TopImages(k) => {
                let k = k.min(whole.0);
                (Slots::default(), of_texts(keys(&self.top(Side::Texts, k), m, k, origin.0)?))
            }
            Reduction::PairScores(pairs) => {
                let (images, texts) = pairs.list();
                let first = texts.partition_point(|&text| text < columns.start);
                let end = texts.partition_point(|&text| text < columns.end);
                let inside: Vec<_> = (first..end).filter(|&p| rows.contains(&images[p])).collect();
                let of = |side: &[usize], from: usize| {
                    inside.iter().map(|&p| side[p] - from).collect::<Vec<_>>()
                };
                let scores = self.pair_scores(&of(images, rows.start), &of(&texts, columns.start));
                let mut values = vec![0; end - first];
                for (pair, score) in inside.iter().zip(scores) {
                    values[pair - first] = KNOWN | u64::from(score.to_bits());
                }
                (Slots::default(), Slots { first, width: 1, values })
            }
            Reduction::Ranks(pairs, scores) => {
                let counts = RankCounts::with_scores(pairs, scores).within(&rows, &columns);
                let BothSides { images, texts, .. } = self.counts(&counts);
                (of_images(numbers(&images)), of_texts(numbers(&texts)))
            }
            Reduction::ExpSums(of, _) | Reduction::Moments(of) => {
                check_grid(&rows, whole.0, "images")?;
                check_grid(&columns, whole.1, "texts")?;
                let slots = sums(self, &kind, (&rows, &columns), both)?;
                of.of((slots.clone(), Slots::default()), (Slots::default(), slots))
            }
        };
        let inputs = [("images", &rows, &self.images), ("texts", &columns, &self.texts)];
        let inputs = inputs.map(|(side, range, rows)| {
            let what = format!("{side} {} to {}", range.start, range.end - 1);
            (what, hash_of_values(rows.block(0..rows.rows())))
        });
        let header = Header {
            format: FORMAT,
            kind: kind.clone(),
            whole: both,
            kernel: if fused { Kernel::Fused } else { Kernel::Separate },
            covered: vec![[rows.clone(), columns.clone()]],
            inputs: inputs.into_iter().collect(),
        };
        Ok(Part { header, images, texts })
    }
}

/// Above the bits of a score: the score is known.
const KNOWN: u64 = 1 << 32;

/// The lists of some queries, as keys of items that are counted from `first`; 0 where there are fewer than `k`.
fn keys(top: &TopK, queries: usize, k: usize, first: usize) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    let fits = queries.checked_mul(k).is_some_and(|n| all.try_reserve_exact(n).is_ok());
    unless(fits, "lists that fit the memory", format_args!("{queries} lists of {k} items"))?;
    let of = |query: usize| {
        let items = top.items(query).iter().zip(top.scores(query));
        let keys = items.map(|(&item, &score)| key(score, first + item as usize));
        keys.chain(std::iter::repeat(0)).take(k)
    };
    all.extend((0..queries).flat_map(of));
    Ok(all)
}

/// The counts of each query; `equal` with the true items of that score.
fn numbers(counts: &[Standing]) -> Vec<u64> {
    let of = |s: &Standing| [s.greater, s.before, s.equal].map(u64::from);
    counts.iter().flat_map(of).collect()
}

impl Part {
    /// # Errors
    /// If the part is of another reduction, or of other settings.
    pub fn check_reduction(&self, reduction: Reduction<'_>) -> Result<()> {
        let [n, m] = self.header.whole;
        let kind = reduction.kind((n, m))?;
        if kind == self.header.kind { Ok(()) } else { self.refused(&kind.to_string()) }
    }

    /// The numbers of queries and of items, if the part has lists.
    pub fn sides(&self) -> Option<[usize; 2]> {
        let [n, m] = self.header.whole;
        match self.header.kind {
            PartKind::TopTexts { .. } => Some([n, m]),
            PartKind::TopImages { .. } => Some([m, n]),
            _ => None,
        }
    }

    /// The best items of every query.
    ///
    /// # Errors
    /// If a score is missing, or the part is of another reduction.
    pub fn top(&self) -> Result<TopK> {
        let [n, m] = self.header.whole;
        let (lists, k, items) = match self.header.kind {
            PartKind::TopTexts { k } => (&self.images, k.min(m), m),
            PartKind::TopImages { k } => (&self.texts, k.min(n), n),
            _ => return self.refused("lists of the best items"),
        };
        self.check_whole()?;
        let is_item =
            |&key: &u64| (item_of(key) as usize) < items && score_of::<f32>(key).is_finite();
        let fits = lists.rows().all(|keys| keys[..k].iter().all(is_item));
        unless(fits, format_args!("lists of {k} items below {items}"), "another item")?;
        let mut top = TopK::new(k);
        lists.rows().for_each(|keys| top.push(&mut keys[..k].to_vec()));
        Ok(top)
    }

    /// The scores of the true pairs, in the order of [`Pairs::list`].
    ///
    /// # Errors
    /// As [`top`](Self::top).
    pub fn pair_scores(&self) -> Result<Vec<f32>> {
        let PartKind::PairScores { count, .. } = self.header.kind else {
            return self.refused("scores of pairs");
        };
        self.check_whole()?;
        let scores = &self.texts.values;
        let is_score = |&s: &u64| s & KNOWN != 0 && f32::from_bits(s as u32).is_finite();
        let all = scores.len() == count && scores.iter().all(is_score);
        unless(all, "the score of every pair", "a part without one")?;
        Ok(scores.iter().map(|&score| f32::from_bits(score as u32)).collect())
    }

    /// Ranks of both directions. `pairs` and `scores` are the ones that the parts were made with.
    ///
    /// # Errors
    /// As [`top`](Self::top), if `pairs` or `scores` are others, or an image has no text.
    pub fn ranks(&self, pairs: &Pairs, scores: &[f32]) -> Result<Ranks> {
        let PartKind::Standings { .. } = self.header.kind else {
            return self.refused("counts for ranks");
        };
        let [n, m] = self.header.whole;
        let same = Reduction::Ranks(pairs, scores).kind((n, m))? == self.header.kind;
        unless(same, "the pairs and scores that it was made with", "others")?;
        self.check_whole()?;
        let RankCounts { images, texts } = RankCounts::with_scores(pairs, scores);
        let i2t = standings("image", &self.images, m, &images.own)?;
        Ranks::from_counts(pairs.clone(), i2t, standings("text", &self.texts, n, &texts.own)?)
    }

    pub(super) fn refused<T>(&self, expected: &str) -> Result<T> {
        invalid(expected, &self.header.kind)
    }
}

/// The standings: `own[q]` of the equal scores of query `q` are true. A state from elsewhere may hold any numbers.
fn standings(what: &str, counts: &Slots, items: usize, own: &[u32]) -> Result<Vec<Standing>> {
    let standing = |(query, (counts, &own)): (usize, (&[u64], &u32))| {
        let [greater, before, equal] = [0, 1, 2].map(|at| counts[at]);
        let others = equal.checked_sub(own.into()).filter(|&others| before <= others);
        let all = others.and_then(|others| greater.checked_add(others)?.checked_add(own.into()));
        match (others, all) {
            (Some(others), Some(all)) if all <= items as u64 => {
                let [greater, before, equal] = [greater, before, others].map(|n| n as u32);
                Ok(Standing { greater, before, equal, own })
            }
            _ => invalid(format!("the score of the true item of {what} {query}"), "another"),
        }
    };
    counts.rows().zip(own).enumerate().map(standing).collect()
}

fn hash_of_values(values: &[f32]) -> String {
    let mut hash = Sha256::new();
    for some in values.chunks(1 << 12) {
        let bytes: Vec<u8> = some.iter().flat_map(|value| value.to_le_bytes()).collect();
        hash.update(bytes);
    }
    format!("{:x}", hash.finalize())
}

fn hash_of_pairs(pairs: &Pairs) -> String {
    let (images, texts) = pairs.list();
    let mut hash = Sha256::new();
    for (&image, text) in images.iter().zip(texts) {
        hash.update((image as u64).to_le_bytes());
        hash.update((text as u64).to_le_bytes());
    }
    format!("{:x}", hash.finalize())
}
