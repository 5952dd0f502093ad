//! CSLS, Eq. 6: twice the score minus the item's mean nearness to queries.

use itm_core::scored::Scored;
use itm_core::tiles::TopK;
use itm_core::{Error, Result};

use crate::directed::at_least_one;
use crate::{Affine, Bank, BankFit, Correction, Direction, TestQueries, Transductive};

/// Which means CSLS subtracts.
///
/// | form       | u(q, j)                    | changes ranks of NNS | used by              |
/// |------------|----------------------------|----------------------|----------------------|
/// | `Item`     | `2·s(q, j) − r(j)`         | yes                  | the reading of Eq. 6 that works |
/// | `Lample`   | `2·s(q, j) − r(q) − r(j)`  | yes, as `Item`       | Lample et al., ICLR 2018 |
/// | `Printed`  | `2·s(q, j) − r(q)`         | no                   | Eq. 6 as it is printed |
///
/// `Item` and `Lample` rank the items of every query alike. Matchings such as RGM compare scores of different queries, so
/// there the two forms differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CslsForm {
    /// Subtracts the mean of the item.
    #[default]
    Item,
    /// Subtracts both means.
    Lample,
    /// Subtracts the mean of the query.
    Printed,
}

/// Cross-domain similarity local scaling, form [`CslsForm::Item`], on a bank of queries.
///
/// ```text
/// u(q, j) = 2·s(q, j) − r(j)      r(j) = mean of the k largest s(b, j) over the queries b of the bank
/// ```
///
/// | symbol | here   | shape     |
/// |--------|--------|-----------|
/// | s      | scores | `[n, m]`  |
/// | r      | item bias | one value per item |
/// | k      | `k`, 10 in the paper; clipped to the bank | |
///
/// # Errors
/// If `k` is 0, the bank is empty, or a score is infinite.
///
/// # Departures
/// Eq. 6 subtracts the mean of the query in each direction, which cannot change a ranking. Table 4 of the paper shows that
/// the sides are swapped in print. [`csls_form`] has all three readings.
///
/// ```
/// use hubness::{Direction, ScoreMatrix, TestQueries, csls};
///
/// let scores = ScoreMatrix::from_rows([
///     [0.9, 0.3, 0.2], // image 0
///     [0.7, 0.6, 0.1], // image 1: text 0, a hub, outbids its own text 1
///     [0.8, 0.2, 0.7], // image 2: the same
/// ]);
/// let fair = csls(&TestQueries(&scores), Direction::I2t, 2)?.apply(&scores)?;
/// assert_eq!([0, 1, 2].map(|image| scores.ranking(image)[0]), [0, 0, 0]);
/// assert_eq!([0, 1, 2].map(|image| fair.ranking(image)[0]), [0, 1, 2]);
/// # Ok::<(), hubness::Error>(())
/// ```
pub fn csls<B: Bank>(bank: &B, direction: Direction, k: usize) -> BankFit<B> {
    let items = nearness(bank.scores(), direction.reversed(), k)?;
    Ok(Correction::new(direction, Affine::of_items(2.0, items)))
}

/// CSLS of the test queries in any form. The forms that subtract a mean of the query need the test scores themselves.
///
/// # Errors
/// As [`csls`], and if there is no item for a query to be near to.
pub fn csls_form(
    scores: &dyn Scored,
    direction: Direction,
    k: usize,
    form: CslsForm,
) -> Result<Correction<Transductive>> {
    if form == CslsForm::Item {
        return csls(&TestQueries(scores), direction, k);
    }
    let queries = nearness(scores, direction, k)?;
    let items = match form {
        CslsForm::Printed => vec![0.0; direction.items(scores.images(), scores.texts())],
        _ => nearness(scores, direction.reversed(), k)?,
    };
    Ok(Correction::new(direction, Affine { queries, ..Affine::of_items(2.0, items) }))
}

/// The mean of the `k` largest scores of each query of a direction (of each item, in the other one), summed in f64.
///
/// # Errors
/// If `k` is 0, or there is nothing to be near to.
fn nearness(scores: &dyn Scored, direction: Direction, k: usize) -> Result<Vec<f64>> {
    at_least_one("k", k)?;
    let bank = direction.items(scores.images(), scores.texts());
    check_bank(bank)?;
    Ok(means(&direction.nearest(scores, k)?, k))
}

pub(crate) fn check_bank(queries: usize) -> Result<()> {
    Error::unless(queries > 0, "scores", "at least 1 query in the bank", queries)
}

/// Means of the first `k` scores of every list.
pub(crate) fn means(top: &TopK, k: usize) -> Vec<f64> {
    let k = k.min(top.k());
    let mean = |list| top.scores(list)[..k].iter().copied().map(f64::from).sum::<f64>() / k as f64;
    (0..top.queries()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScoreMatrix;

    fn corrected(scores: &ScoreMatrix, direction: Direction, form: CslsForm) -> Vec<f32> {
        csls_form(scores, direction, 2, form).unwrap().apply(scores).unwrap().into_values()
    }

    /// Worked by hand, k = 2. Means of the two largest: columns 0.8125 and 0.4375; rows 0.5, 0.625 and 0.5.
    #[test]
    fn golden_three_forms() {
        let s = ScoreMatrix::from_rows([[0.75, 0.25], [0.875, 0.375], [0.5, 0.5]]);
        let (c, r) = ([0.8125, 0.4375], [0.5, 0.625, 0.5]);
        for (form, column, row) in [
            (CslsForm::Item, 1.0, 0.0),
            (CslsForm::Lample, 1.0, 1.0),
            (CslsForm::Printed, 0.0, 1.0),
        ] {
            let want = |i: usize, t: usize| 2.0 * s.row(i)[t] - column * c[t] - row * r[i];
            let want: Vec<_> = (0..6).map(|at| want(at / 2, at % 2)).collect();
            assert_eq!(corrected(&s, Direction::I2t, form), want, "{form:?}");
            // t2i: the roles of rows and columns change.
            let want = |i: usize, t: usize| 2.0 * s.row(i)[t] - column * r[i] - row * c[t];
            let want: Vec<_> = (0..6).map(|at| want(at / 2, at % 2)).collect();
            assert_eq!(corrected(&s, Direction::T2i, form), want, "{form:?}");
        }
    }

    /// Trap "CSLS on the query side": the printed form ranks as NNS, the others do not.
    #[test]
    fn trap_csls_on_the_query_side() {
        let s = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
        let rankings = |form| {
            let fair = csls_form(&s, Direction::I2t, 2, form).unwrap().apply(&s).unwrap();
            [0, 1, 2].map(|image| fair.ranking(image))
        };
        let plain = [0, 1, 2].map(|image| s.ranking(image));
        assert_eq!(rankings(CslsForm::Printed), plain);
        assert_ne!(rankings(CslsForm::Item), plain);
        assert_eq!(rankings(CslsForm::Item), rankings(CslsForm::Lample));
    }

    #[test]
    fn k_is_clipped_and_never_zero() {
        let s = ScoreMatrix::from_rows([[0.5, 0.25], [0.25, 0.0]]);
        let all = csls(&TestQueries(&s), Direction::I2t, 2).unwrap().apply(&s).unwrap();
        let more = csls(&TestQueries(&s), Direction::I2t, 1000).unwrap().apply(&s).unwrap();
        let one = csls(&TestQueries(&s), Direction::I2t, 1).unwrap().apply(&s).unwrap();
        assert_eq!(all, more);
        assert_ne!(all, one);
        let error = csls(&TestQueries(&s), Direction::I2t, 0).unwrap_err().to_string();
        assert_eq!(error, "k: expected at least 1 neighbour, got 0");
    }
}
