//! Choosing among settings: for each fold of the images on the other folds, or for all images on a validation set.

use std::cell::OnceCell;

use itm_core::Result;

use super::answer::by_image;
use super::set::Set;
use super::spec::Spec;
use crate::choose::{Goal, HitTable, Split, choose_on_validation, cross_fit};
use crate::{Direction, Pairs};

/// Who chooses the open settings.
pub(crate) enum Chooser<'a> {
    /// A validation set, for all images at once.
    Validation(Box<Set<'a>>),
    /// The images themselves, each half for the other.
    Halves(&'a Halves),
}

impl Chooser<'_> {
    /// The split behind `choices` answers or picks; none if a single one serves all images.
    pub(crate) fn split(&self, choices: usize) -> Result<Option<&Split>> {
        match self {
            Self::Halves(halves) if choices > 1 => halves.split().map(Some),
            _ => Ok(None),
        }
    }
}

/// Two halves of the images by their names. They are made on first use, because a single image can be measured but not
/// halved.
pub(crate) struct Halves {
    images: Vec<String>,
    seed: u64,
    split: OnceCell<Split>,
}

impl Halves {
    pub(crate) fn new(images: Vec<String>, seed: u64) -> Self {
        Self { images, seed, split: OnceCell::new() }
    }

    /// # Errors
    /// If there are fewer than two different names.
    pub(crate) fn split(&self) -> Result<&Split> {
        if let Some(split) = self.split.get() {
            return Ok(split);
        }
        let split = Split::hashed(&self.images, 2, self.seed)?;
        Ok(self.split.get_or_init(|| split))
    }
}

/// Picks of one direction: one for each fold, or a single one that serves all.
pub(crate) type Picks = Vec<usize>;

/// An empty table over the images that have texts.
pub(crate) fn table(pairs: &Pairs, direction: Direction) -> Result<HitTable> {
    let queries =
        active(pairs).map(|image| direction.queries(1, pairs.texts_of(image).len() as u16));
    HitTable::new(direction, queries.collect())
}

/// Hits of the images that have texts.
pub(crate) fn active_hits(
    hits: &[[bool; 3]],
    pairs: &Pairs,
    direction: Direction,
) -> Vec<[u16; 3]> {
    let all = by_image(hits, pairs, direction);
    active(pairs).map(|image| all[image]).collect()
}

fn active(pairs: &Pairs) -> impl Iterator<Item = usize> {
    (0..pairs.images()).filter(|&image| !pairs.texts_of(image).is_empty())
}

/// Picks for each fold of a split over all images.
pub(crate) fn by_folds(
    table: &HitTable,
    split: &Split,
    pairs: &Pairs,
    goal: Goal,
) -> Result<Picks> {
    let of_active = active(pairs).map(|image| split.of_image()[image]).collect();
    let fit = cross_fit(table, &Split::new(split.folds(), of_active)?, goal)?;
    Ok(fit.chosen.into_iter().map(Option::unwrap_or_default).collect())
}

/// The one pick of a validation table.
pub(crate) fn on_validation(table: &HitTable, goal: Goal) -> Result<Picks> {
    Ok(vec![choose_on_validation(table, goal)?])
}

/// The hits of prepared corrections.
pub(crate) fn spec_table(set: &Set<'_>, direction: Direction, specs: &[Spec]) -> Result<HitTable> {
    let mut table = table(set.pairs, direction)?;
    for &spec in specs {
        let fitted = set.get(direction, spec);
        let hits = active_hits(&fitted.answer.hits, set.pairs, direction);
        table.push(spec.label(), fitted.strength, hits)?;
    }
    Ok(table)
}
