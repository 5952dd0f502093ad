//! What a bank of ordinary queries says of the pictures: a correction for hubs, first answers, levels.

use hubness::hubs::Counts;
use hubness::{
    Affine, AnyCorrection, Direction, HeldOutBank, Nnn, Setting, csls, export, inverted_softmax,
    pass,
};
use itm_core::tiles::{Embeddings, Tiles};
use itm_core::{Error, Result};

/// The quantile of the ordinary queries' best scores that is the level.
pub(crate) const QUANTILE: f64 = 0.5;
/// The fewest queries of a bank: each half needs some.
pub(crate) const FEWEST: usize = 8;

/// Fits a correction with the parameters of its publication.
type PublishedFit = fn(&HeldOutBank<'_>) -> Result<AnyCorrection>;

/// All choices by their names; among equals the first is taken.
const CHOICES: [(&str, Option<PublishedFit>); 4] = [
    ("none", None),
    ("csls", Some(|bank| Ok(csls(bank, Direction::T2i, 10)?.into_any()))),
    ("nnn", Some(|bank| Ok(Nnn::default().fit(bank, Direction::T2i)?.into_any()))),
    ("is", Some(|bank| Ok(inverted_softmax(bank, Direction::T2i, 30.0)?.into_any()))),
];

/// What each picture loses, in units of the cosine, less the mean over pictures: so that corrected scores stay near cosines.
fn biases(fit: Option<PublishedFit>, bank: &Tiles<'_>) -> Result<Vec<f64>> {
    let Some(fit) = fit else { return Ok(vec![0.0; bank.images()]) };
    let correction = fit(&HeldOutBank(bank))?;
    let centre = export::centre(&correction)?;
    Ok(export::biases(&correction)?.into_iter().map(|bias| bias - centre).collect())
}

/// What is stored of a bank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Levels {
    pub(crate) correction: String,
    /// `b_j`, `[n]`.
    pub(crate) biases: Vec<f64>,
    /// How many queries have a picture first: by cosine, by score. `[n]` each.
    pub(crate) answers: [Vec<u32>; 2],
    /// The level of cosines and of scores.
    pub(crate) levels: [f32; 2],
}

/// The first answers of some queries.
struct First {
    /// How many have each picture first.
    counts: Vec<u32>,
    /// The score of each.
    best: Vec<f64>,
    skewness: f64,
}

impl First {
    fn of(tiles: &Tiles<'_>, biases: &[f64]) -> Result<Self> {
        let map = Box::new(Affine::of_items(1.0, biases.to_vec()));
        let correction = AnyCorrection::new(Direction::T2i, Setting::HeldOut, map);
        let top = pass::top(tiles, &correction, 1)?;
        let best = (0..top.queries()).map(|query| top.scores(query)[0]).collect();
        let counts = Counts::top(tiles.images(), 1, &top);
        Ok(Self { best, skewness: counts.skewness(), counts: counts.values })
    }

    fn and(self, other: Self) -> Self {
        let sum = |(a, b): (&u32, &u32)| a + b;
        Self {
            counts: self.counts.iter().zip(&other.counts).map(sum).collect(),
            best: [self.best, other.best].concat(),
            skewness: 0.5 * (self.skewness + other.skewness),
        }
    }
}

/// Chooses a correction and fits it.
///
/// The bank has two halves. Each correction is fitted on one half, and the skewness of the number of first answers is measured on the
/// other half, and the reverse; the smallest mean is taken. First answers and levels are measured in the same way: a query never
/// has a part in the correction that ranks for it. The correction that is kept is fitted on the whole bank.
pub(crate) fn fit(rows: &[f32], bank: &[f32], width: usize) -> Result<Levels> {
    let (n, m) = (rows.len() / width, bank.len() / width);
    Error::unless(m >= FEWEST, "bank", format_args!("at least {FEWEST} queries"), m)?;
    let pictures = Embeddings::new("pictures", n, width, rows)?;
    // Every second query, so that both halves have queries of each kind.
    let half = |of: usize| -> Vec<f32> {
        bank.chunks_exact(width).skip(of).step_by(2).flatten().copied().collect()
    };
    let halves = [half(0), half(1)];
    let tiles = |values| {
        Tiles::new(pictures, Embeddings::new("bank", <[f32]>::len(values) / width, width, values)?)
    };
    let halves = [tiles(&halves[0])?, tiles(&halves[1])?];
    let crossed = |choice| -> Result<First> {
        let first = First::of(&halves[1], &biases(choice, &halves[0])?)?;
        Ok(first.and(First::of(&halves[0], &biases(choice, &halves[1])?)?))
    };
    let plain = crossed(None)?;
    let (cosines, mut chosen) = (plain.counts.clone(), (CHOICES[0], plain));
    let level = quantile(&mut chosen.1.best.clone());
    for choice in &CHOICES[1..] {
        let got = crossed(choice.1)?;
        if got.skewness < chosen.1.skewness {
            chosen = (*choice, got);
        }
    }
    let ((name, choice), mut first) = chosen;
    Ok(Levels {
        correction: name.into(),
        biases: biases(choice, &tiles(bank)?)?,
        answers: [cosines, first.counts],
        levels: [level, quantile(&mut first.best)],
    })
}

/// The value that [`QUANTILE`] of the values are below.
fn quantile(values: &mut [f64]) -> f32 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * QUANTILE).round() as usize] as f32
}

#[cfg(test)]
mod tests;
