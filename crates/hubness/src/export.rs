//! Corrected search on an existing engine: the correction becomes one more dimension.
//!
//! For a fixed query, CSLS, IS, NNN and similar corrections are an inner product minus one number per item:
//!
//! ```text
//! scale · ⟨q, v_j⟩ − b_j  =  scale · ⟨(q, 1), (v_j, −(b_j − b̄) / scale)⟩ + const
//! ```
//!
//! So search an index of the augmented item vectors for the largest inner product with `(q, 1)`: the result is the corrected
//! ranking. FAISS, usearch, Qdrant, Milvus and pgvector do this at any scale. The metric must be the inner product: a cosine
//! would divide by the augmented length. A centre `b̄`, by default the mean bias, is subtracted so that an f32 holds more digits
//! of the rest. It must be the same number for all items of an index: shards of items that are exported apart take the
//! [`centre`] of one of them ([`items_around`]).

use itm_core::{Error, Result};

use crate::{Affine, AnyCorrection, Direction};

/// Item vectors with one more dimension, `[items, dim + 1]`.
///
/// `rows` are the item vectors of `direction` that the correction was fitted with, `[items, dim]`: texts for i2t, images for
/// t2i. [`query`] makes the vector to search with.
///
/// # Errors
/// If the correction was fitted for the other direction or for another number of items, ranks by more than one number per
/// item (mutual proximity, local scaling), treats queries differently (dynamic QB-Norm and DBNorm), or a value is not finite.
///
/// What a correction subtracts from all scores of one query changes no list of that query, and is left out.
///
/// ```
/// use hubness::{Direction, ScoreMatrix, TestQueries, csls, export};
///
/// let (images, texts) = ([1.0, 0.0, 0.6, 0.8], [1.0, 0.0, 0.8, 0.6]); // two of each, width 2
/// let scores = ScoreMatrix::from_rows([[1.0, 0.8], [0.6, 0.96]]);
/// let correction = csls(&TestQueries(&scores), Direction::T2i, 1)?;
/// let items = export::items(Direction::T2i, &images, 2, &correction)?;
/// assert_eq!(items.len(), 2 * 3);
/// let query = export::query(&texts[..2]);
/// let score = |item: usize| -> f32 { (0..3).map(|k| items[item * 3 + k] * query[k]).sum() };
/// // 2 · 1 − 1 against 2 · 0.6 − 0.96, halved and minus their mean bias
/// assert!((score(0) - score(1) - 0.5 * (1.0 - 0.24)).abs() < 1e-6);
/// # Ok::<(), hubness::Error>(())
/// ```
pub fn items(
    direction: Direction,
    rows: &[f32],
    dim: usize,
    correction: &AnyCorrection,
) -> Result<Vec<f32>> {
    items_around(direction, rows, dim, correction, centre(correction)?)
}

/// As [`items`], with biases that are measured from `centre`: for a part of the items of an index.
///
/// # Errors
/// As [`items`].
///
/// ```
/// use hubness::{Direction::I2t, HeldOutBank, ScoreMatrix, csls, export};
///
/// let (first, second) = (ScoreMatrix::from_rows([[0.9, 0.8]]), ScoreMatrix::from_rows([[0.2]])); // shards of three items
/// let [first, second] = [csls(&HeldOutBank(&first), I2t, 1)?, csls(&HeldOutBank(&second), I2t, 1)?];
/// let centre = export::centre(&first)?; // 0.85 / 2
/// let two = export::items_around(I2t, &[1.0, 1.0], 1, &first, centre)?;
/// let third = export::items_around(I2t, &[1.0], 1, &second, centre)?;
/// assert!((two[1] + 0.025).abs() < 1e-6 && (third[1] - 0.325).abs() < 1e-6);
/// # Ok::<(), hubness::Error>(())
/// ```
pub fn items_around(
    direction: Direction,
    rows: &[f32],
    dim: usize,
    correction: &AnyCorrection,
    centre: f64,
) -> Result<Vec<f32>> {
    let expected = format_args!("a correction of direction {direction}");
    let got = format_args!("one of {}", correction.direction());
    Error::unless(direction == correction.direction(), "export", expected, got)?;
    augmented(rows, dim, &biases(correction)?, centre, 0)
}

/// Rows with one more dimension, from their biases. The first of them is the item `first` of the index.
pub(crate) fn augmented(
    rows: &[f32],
    dim: usize,
    biases: &[f64],
    centre: f64,
    first: usize,
) -> Result<Vec<f32>> {
    let fits = dim > 0 && biases.len().checked_mul(dim) == Some(rows.len());
    let expected = format_args!("{} × {dim} values, as many items as were corrected", biases.len());
    Error::unless(fits, "items", expected, rows.len())?;
    let last = |bias: &f64| (centre - bias) as f32;
    let rows = rows.chunks(dim).zip(biases);
    let vectors: Vec<_> =
        rows.flat_map(|(row, bias)| row.iter().copied().chain([last(bias)])).collect();
    let item = |at: usize| first + at / (dim + 1);
    let place = |at| format!("vector of item {}, value {}", item(at), at % (dim + 1));
    Error::unless_finite(&vectors, place, "a finite number")?;
    Ok(vectors)
}

/// A query with one more dimension, which multiplies the items' biases: a one.
pub fn query(row: &[f32]) -> Vec<f32> {
    row.iter().copied().chain([1.0]).collect()
}

/// The mean bias of the items.
///
/// # Errors
/// As [`biases`].
pub fn centre(correction: &AnyCorrection) -> Result<f64> {
    let biases = biases(correction)?;
    Ok(biases.iter().sum::<f64>() / biases.len().max(1) as f64)
}

/// The bias that each item loses, in units of the score: the corrected ranking is the ranking of `score − bias`.
///
/// # Errors
/// If the correction ranks by more than one number per item, or treats queries differently.
pub fn biases(correction: &AnyCorrection) -> Result<Vec<f64>> {
    let one = |affine: &&Affine| affine.groups.is_empty() && affine.by_best.is_empty();
    let affine = correction.map().affine().filter(one);
    let Some(affine) = affine else {
        let expected = "a correction with one number per item (CSLS, IS, NNN, Sinkhorn)";
        return Err(Error::invalid("export", expected, "one that depends on query or score"));
    };
    affine.check()?;
    let fine = |item: usize| affine.fine.get(item).copied().unwrap_or(0.0);
    let bias = |(item, bias): (usize, &f64)| (bias + fine(item)) / affine.scale;
    Ok(affine.items[0].iter().enumerate().map(bias).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Affine, Setting};

    fn exported(rows: &[f32], dim: usize, map: Affine) -> Result<Vec<f32>> {
        let correction = AnyCorrection::new(Direction::I2t, Setting::Plain, Box::new(map));
        items(Direction::I2t, rows, dim, &correction)
    }

    #[test]
    fn the_other_direction_is_refused() {
        let map = Affine::of_items(1.0, vec![0.5]);
        let correction = AnyCorrection::new(Direction::I2t, Setting::Plain, Box::new(map));
        let error = items(Direction::T2i, &[1.0], 1, &correction).unwrap_err().to_string();
        assert_eq!(error, "export: expected a correction of direction t2i, got one of i2t");
    }

    #[test]
    fn what_is_no_item_bias_is_refused() {
        let grouped = Affine { groups: vec![0], ..Affine::of_items(1.0, vec![0.5]) };
        let by_best = Affine { by_best: vec![0], ..Affine::of_items(1.0, vec![0.5]) };
        let want = "export: expected a correction with one number per item (CSLS, IS, NNN, \
                    Sinkhorn), got one that depends on query or score";
        for map in [grouped, by_best] {
            assert_eq!(exported(&[1.0], 1, map).unwrap_err().to_string(), want);
        }
        let error =
            exported(&[1.0; 3], 2, Affine::of_items(1.0, vec![0.5])).unwrap_err().to_string();
        assert_eq!(error, "items: expected 1 × 2 values, as many items as were corrected, got 3");
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        let refused =
            |rows: &[f32], map| exported(rows, 2, map).map(|_| ()).unwrap_err().to_string();
        let fine = Affine::of_items(1.0, vec![0.5, 0.25]);
        let line = "vector of item 1, value 0: expected a finite number, got NaN";
        assert_eq!(refused(&[1.0, 0.0, f32::NAN, 0.0], fine), line);
        let huge = Affine::of_items(1e-3, vec![0.0, 1e38]); // its bias overflows f32
        let line = "vector of item 0, value 2: expected a finite number, got inf";
        assert_eq!(refused(&[1.0; 4], huge), line);
        let line = "items of the correction: expected at least one group, got 0";
        assert_eq!(refused(&[1.0; 4], Affine { scale: 1.0, ..Affine::default() }), line);
    }

    /// Worked by hand: biases 0.5 and 1.5 at scale 2 are 0.25 and 0.75, around their mean −0.25 and 0.25.
    #[test]
    fn the_mean_is_taken_out() {
        let got = exported(&[3.0, 4.0], 1, Affine::of_items(2.0, vec![0.5, 1.5])).unwrap();
        assert_eq!(got, [3.0, 0.25, 4.0, -0.25]);
        assert_eq!(query(&[3.0]), [3.0, 1.0]);
    }

    /// Shards around one centre are the rows of the whole; around their own means they were shifted against each other.
    #[test]
    fn shards_around_one_centre_are_the_whole() {
        let of = |biases: &[f64]| Affine::of_items(2.0, biases.to_vec());
        let shard = |rows: &[f32], map| {
            let correction = AnyCorrection::new(Direction::I2t, Setting::Plain, Box::new(map));
            items_around(Direction::I2t, rows, 1, &correction, 0.75).unwrap()
        };
        let whole = exported(&[3.0, 4.0, 5.0], 1, of(&[0.5, 1.5, 2.5])).unwrap(); // mean 1.5 / 2
        let shards = [shard(&[3.0, 4.0], of(&[0.5, 1.5])), shard(&[5.0], of(&[2.5]))].concat();
        assert_eq!(shards, whole);
    }
}
