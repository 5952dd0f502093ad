//! Choosing on some images, counting on the others.

use itm_core::{Error, Result};

use super::{Candidate, FoldSplit, Goal, HitTable};

/// The choice of [`cross_fit`] and its hits.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossFit {
    /// The setting for the images of each fold, chosen on the images of the other folds; `None` for a fold without images.
    pub chosen: Vec<Option<usize>>,
    /// Hits of every image under the setting of its fold, at 1, 5, 10: for [`joined_hits`](super::joined_hits). Under a goal of one K, only
    /// the hits at this K have a meaning.
    pub hits: Vec<[u16; 3]>,
}

/// Cross-fitting over images in two or more folds: the images of each fold get the setting that is best on all other images.
///
/// ```text
/// p(f) = argmax_p  Σ_{i ∉ f} h_i(p)        H = Σ_f Σ_{i ∈ f} h_i(p(f))
/// ```
///
/// | symbol | here             |
/// |--------|------------------|
/// | h_i(p) | hits of image i under setting p, as the goal counts them |
/// | H      | all of `hits` |
///
/// All settings have the same queries, so sums of hits compare like recalls, as whole numbers. Among equal sums, the smallest correction
/// wins, then the setting listed first.
///
/// # Errors
/// If there is no setting, or the split has another number of images.
pub fn cross_fit(table: &HitTable, split: &FoldSplit, goal: Goal) -> Result<CrossFit> {
    table.not_empty()?;
    let (images, got) = (table.candidates[0].hits.len(), split.of_image().len());
    let expected = format_args!("a split of {images} images");
    Error::unless(images == got, "cross-fitting", expected, got)?;
    let sums = fold_sums(table, split, goal);
    let totals: Vec<u64> = sums.iter().map(|folds| folds.iter().sum()).collect();
    let mut chosen = vec![None; split.folds];
    for &fold in split.of_image() {
        chosen[fold].get_or_insert_with(|| best_beside(table, (&totals, &sums), fold));
    }
    let setting_of = |image: usize| chosen[split.of_image()[image]].unwrap_or_default();
    let hits = |image: usize| table.candidates[setting_of(image)].hits[image];
    let hits = (0..images).map(hits).collect();
    Ok(CrossFit { chosen, hits })
}

/// The setting that is best on all images of a validation table; among equal settings, the one listed first.
///
/// For matchings, list the smallest capacity first.
///
/// # Errors
/// If there is no setting.
pub fn choose_on_validation(table: &HitTable, goal: Goal) -> Result<usize> {
    table.not_empty()?;
    let total = |setting: usize| -> u64 {
        table.candidates[setting].hits.iter().map(|at| goal.of(*at)).sum()
    };
    let better = |best: usize, next: usize| if total(next) > total(best) { next } else { best };
    Ok((1..table.candidates.len()).fold(0, better))
}

/// Hits of every setting in every fold: `[settings][folds]`.
fn fold_sums(table: &HitTable, split: &FoldSplit, goal: Goal) -> Vec<Vec<u64>> {
    let of_setting = |setting: &Candidate| {
        let mut sums = vec![0; split.folds];
        for (&at, &fold) in setting.hits.iter().zip(split.of_image()) {
            sums[fold] += goal.of(at);
        }
        sums
    };
    table.candidates.iter().map(of_setting).collect()
}

/// The best setting on all folds except `fold`.
fn best_beside(table: &HitTable, (totals, sums): (&[u64], &[Vec<u64>]), fold: usize) -> usize {
    let beside = |setting: usize| totals[setting] - sums[setting][fold];
    let correction = |setting: usize| table.candidates[setting].correction;
    let better = |best: usize, next: usize| {
        let more = beside(next).cmp(&beside(best));
        let smaller = correction(next) < correction(best);
        if more.is_gt() || more.is_eq() && smaller { next } else { best }
    };
    (1..sums.len()).fold(0, better)
}
