//! Choosing among settings: for each fold of the images on the other folds, or for all images on a validation set.

use itm_core::Result;

use super::data::StudyData;
use super::fit::Fit;
use super::rows::StudyRow;
use crate::choose::{FoldSplit, Goal, HitTable, choose_on_validation, cross_fit};
use crate::{Direction, Pairs};

/// Where the settings that are left open are chosen.
pub(crate) enum Chooser<'a> {
    /// On a validation set, for all images at once.
    Validation(StudyData<'a>),
    /// On the images themselves, for each fold on the other folds.
    Folds(&'a FoldSplit),
}

impl Chooser<'_> {
    /// The chosen fits of a row in a direction, as places in its list: one for each fold, or a single one for all.
    pub(crate) fn choose(
        &self,
        row: &StudyRow,
        data: &StudyData<'_>,
        direction: Direction,
    ) -> Result<Vec<usize>> {
        match self {
            _ if row.fits.len() == 1 => Ok(vec![0]),
            Self::Validation(set) => {
                let table = table_of(set, direction, &row.fits)?;
                Ok(vec![choose_on_validation(&table, Goal::Sum)?])
            }
            Self::Folds(split) => {
                let table = table_of(data, direction, &row.fits)?;
                choose_by_folds(&table, split, (data.pairs, direction), Goal::Sum)
            }
        }
    }
}

/// The choice for each fold of a split over all images.
pub(crate) fn choose_by_folds(
    table: &HitTable,
    split: &FoldSplit,
    (pairs, direction): (&Pairs, Direction),
    goal: Goal,
) -> Result<Vec<usize>> {
    let folds = with_queries(pairs, direction).map(|image| split.of_image()[image]);
    let folds: Vec<_> = folds.collect();
    if folds.iter().all(|fold| *fold == folds[0]) {
        // No other fold to choose on: the weakest correction, as where all recalls are equal.
        let strength = |place: &usize| table.candidates[*place].correction;
        let places = 0..table.candidates.len();
        let weakest = places.min_by(|a, b| strength(a).total_cmp(&strength(b)));
        return Ok(vec![weakest.unwrap_or_default(); split.folds]);
    }
    let fit = cross_fit(table, &FoldSplit::new(split.folds, folds)?, goal)?;
    Ok(fit.chosen.into_iter().map(Option::unwrap_or_default).collect())
}

/// The hits of prepared corrections.
fn table_of(data: &StudyData<'_>, direction: Direction, fits: &[Fit]) -> Result<HitTable> {
    let mut table = HitTable::default();
    for &fit in fits {
        let result = data.get(direction, fit);
        let hits = hits_of_table(&result.answer.hits, data.pairs, direction);
        table.push(fit.label(), result.strength, hits)?;
    }
    Ok(table)
}

/// Hits of the images that have queries.
pub(crate) fn hits_of_table(
    hits: &[[bool; 3]],
    pairs: &Pairs,
    direction: Direction,
) -> Vec<[u16; 3]> {
    let all = by_image(hits, pairs, direction);
    with_queries(pairs, direction).map(|image| all[image]).collect()
}

/// The images that are a query, or whose unit has a text that is one.
fn with_queries(pairs: &Pairs, direction: Direction) -> impl Iterator<Item = usize> {
    let has_queries = move |&image: &usize| {
        direction.queries(!pairs.texts_of(image).is_empty(), pairs.unit(image).next().is_some())
    };
    (0..pairs.images()).filter(has_queries)
}

/// Hits by image: of the image as a query (i2t), or summed over the texts of its unit as queries (t2i).
pub(crate) fn by_image(hits: &[[bool; 3]], pairs: &Pairs, direction: Direction) -> Vec<[u16; 3]> {
    let mut sums = vec![[0; 3]; pairs.images()];
    for (query, hits) in hits.iter().enumerate() {
        if let Some(image) = direction.unit(pairs, query) {
            (0..3).for_each(|cut| sums[image][cut] += u16::from(hits[cut]));
        }
    }
    sums
}
