//! Differences between rows, with intervals and tests.

use itm_core::Result;
use itm_core::significance::{bootstrap_difference, paired_randomisation};

use super::{REPLICATES, RESAMPLING_SEED, RowKind, RowResult, ends};
use crate::report::Comparison;

/// Compares the claimed row, or else the first trained row, with the other trained rows; and every trained row with the
/// baseline.
pub(super) fn comparisons(rows: &[RowResult], claimed: &str) -> Result<Vec<Comparison>> {
    let trained = || rows.iter().filter(|row| row.kind == RowKind::Trained);
    let Some(full) = trained().find(|row| row.name == claimed).or_else(|| trained().next()) else {
        return Ok(vec![]);
    };
    let cca = rows.iter().find(|row| row.kind == RowKind::Baseline);
    let others = trained().filter(|row| row.name != full.name);
    // A row of ensembles has fewer runs than a row of models: their runs cannot be paired.
    let paired = |a: &RowResult, b: &RowResult| a.runs.len() == b.runs.len() || b.runs.len() == 1;
    let of_full = others.clone().map(|other| (full, other)).chain(cca.map(|cca| (full, cca)));
    let of_cca = cca.into_iter().flat_map(|cca| others.clone().map(move |other| (other, cca)));
    of_full
        .chain(of_cca)
        .filter(|(row, minus)| paired(row, minus))
        .map(|(row, minus)| comparison(row, minus))
        .collect()
}

pub(super) fn comparison(row: &RowResult, minus: &RowResult) -> Result<Comparison> {
    let a = row.hits();
    let mut b = minus.hits();
    if b.len() == 1 {
        b = vec![b[0].clone(); a.len()]; // a baseline without seeds is paired with every seed
    }
    let interval = bootstrap_difference(&a, &b, REPLICATES, RESAMPLING_SEED)?.rsum;
    let test = paired_randomisation(&a, &b, REPLICATES, RESAMPLING_SEED)?;
    Ok(Comparison {
        row: row.name.clone(),
        minus: minus.name.clone(),
        rsum: row.rsum() - minus.rsum(),
        ci95: Some(ends(interval)),
        p_value: Some(test.p),
        test: Some("paired randomisation over images, 10,000 draws".into()),
    })
}
