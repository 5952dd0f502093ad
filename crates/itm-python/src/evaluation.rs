//! Recalls, ranks and their certainty.

use itm_core::eval::{Evaluation, MultiEvaluation, Protocol, Ranks, Standing, TiePolicy};
use itm_core::scored::Scored;
use itm_core::significance::{
    Hits, Interval, Measures, bootstrap_difference, paired_randomisation,
};
use itm_core::{Error, Pairs, Relevance, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Array, Rows, TruePairs, named, raised, run};

/// The standings of one direction.
type StandingsOf = fn(&Ranks) -> &[Standing];

const SIDES: [(&str, StandingsOf); 2] = [("i2t", Ranks::i2t), ("t2i", Ranks::t2i)];

/// A dict of plain numbers, and warnings.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the Python half names them")]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    images: Array<'py>,
    texts: Array<'py>,
    pairs: TruePairs<'py>,
    relevance: Option<TruePairs<'py>>,
    k: Vec<u32>,
    protocol: &str,
    ties: &str,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
    let (images, texts) = (Rows::new("images", &images)?, Rows::new("texts", &texts)?);
    let (protocol, policy) = settings(protocol, ties)?;
    let pairs = pairs.pairs(images.rows)?;
    let relevance = relevance.map(|all| all.pairs(images.rows)).transpose()?;
    let (folds, multi) = run(py, || {
        let fits = protocol == Protocol::Full || relevance.is_none();
        Error::unless(fits, "relevance", "protocol full", protocol)?;
        let tiles = images.tiles(texts)?;
        let scores: &dyn Scored = &tiles;
        let folds = scores.ranks_by(protocol, &pairs)?;
        let judged = relevance.as_ref().or_else(|| pairs.is_judged().then_some(&pairs));
        let multi = judged.map(|pairs| scores.evaluate_multi(&all_true(pairs))).transpose()?;
        Ok((folds, multi))
    })?;
    let (numbers, warnings) = numbers(py, &folds, &k, policy, ties)?;
    if let Some(MultiEvaluation { i2t, t2i }) = multi {
        for (direction, all) in [("i2t", i2t), ("t2i", t2i)] {
            numbers.set_item(format!("{direction}_map_at_r"), all.map_at_r)?;
            numbers.set_item(format!("{direction}_r_precision"), all.r_precision)?;
        }
    }
    Ok((numbers, warnings))
}

/// Recalls, ranks and ties of both directions, and warnings.
pub(crate) fn numbers<'py>(
    py: Python<'py>,
    folds: &[Ranks],
    k: &[u32],
    policy: TiePolicy,
    ties: &str,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
    let numbers = PyDict::new(py);
    let evaluation = Evaluation::new(folds, policy);
    let (mut rsum, mut warnings) = (0.0, Vec::new());
    let measures = [&evaluation.i2t, &evaluation.t2i];
    for ((direction, side), measures) in SIDES.into_iter().zip(measures) {
        for &k in k {
            let recall = recall(folds, side, k, policy);
            rsum += recall;
            numbers.set_item(format!("{direction}_r{k}"), recall)?;
        }
        numbers.set_item(format!("{direction}_median_rank"), measures.median)?;
        numbers.set_item(format!("{direction}_mean_rank"), measures.mean)?;
        let by_order = |query: &&Standing| k.iter().any(|&k| query.decided_at(k));
        let decided = folds.iter().flat_map(side).filter(by_order).count();
        numbers.set_item(format!("{direction}_decided_by_ties"), decided)?;
        if decided > 0 {
            warnings.push(format!(
                "{direction}: {decided} queries hit or miss by the order of equal scores alone (ties = \"{ties}\")"
            ));
        }
    }
    numbers.set_item("rsum", rsum)?;
    numbers.set_item("images", evaluation.images)?;
    numbers.set_item("texts", evaluation.texts)?;
    numbers.set_item("folds", evaluation.folds)?;
    Ok((numbers, warnings))
}

fn settings(protocol: &str, ties: &str) -> PyResult<(Protocol, TiePolicy)> {
    let read = named("protocol", protocol).and_then(|p| Ok((p, named("ties", ties)?)));
    read.map_err(raised)
}

/// R@k in percent: the mean over queries, averaged over folds.
fn recall(folds: &[Ranks], side: StandingsOf, k: u32, policy: TiePolicy) -> f64 {
    let of_fold = |fold: &Ranks| {
        let queries = || side(fold).iter().filter(|query| query.is_query());
        100.0 * queries().map(|query| query.hit(k, policy)).sum::<f64>() / queries().count() as f64
    };
    folds.iter().map(of_fold).sum::<f64>() / folds.len() as f64
}

fn all_true(pairs: &Pairs) -> Relevance {
    let texts = |image| pairs.texts_of(image).iter().map(|&text| text as u32).collect();
    Relevance::new(pairs.texts(), (0..pairs.images()).map(texts).collect())
}

/// Two systems, each with the embeddings of its runs: recalls, intervals of the differences, p of the rSum.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the Python half names them")]
pub(crate) fn significance<'py>(
    py: Python<'py>,
    a: Vec<(Array<'py>, Array<'py>)>,
    b: Vec<(Array<'py>, Array<'py>)>,
    pairs: TruePairs<'py>,
    protocol: &str,
    ties: &str,
    replicates: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let (protocol, policy) = settings(protocol, ties)?;
    let [a, b] = [runs(&a)?, runs(&b)?];
    let pairs = pairs.pairs(a.first().map_or(0, |run| run[0].rows))?;
    let (recalls, intervals, test) = run(py, || {
        let hits = |runs: &[[Rows<'_>; 2]]| {
            runs.iter().map(|run| hits(run, &pairs, protocol, policy)).collect::<Result<Vec<_>>>()
        };
        let (a, b) = (hits(&a)?, hits(&b)?);
        let intervals = bootstrap_difference(&a, &b, replicates, seed)?;
        let test = paired_randomisation(&a, &b, replicates, seed)?;
        Ok(([mean(&a), mean(&b)], intervals, test))
    })?;
    let [a, b] = recalls.map(values);
    let found = PyDict::new(py);
    let named = |values: [f64; 7]| dict(py, values);
    found.set_item("a", named(a)?)?;
    found.set_item("b", named(b)?)?;
    found.set_item("difference", named(std::array::from_fn(|i| a[i] - b[i]))?)?;
    let ends = values(intervals).map(|Interval { lo, hi }| (lo, hi));
    found.set_item("ci95", dict(py, ends)?)?;
    found.set_item("p", test.p)?;
    found.set_item("exact", test.exact)?;
    found.set_item("differing_images", test.differing)?;
    Ok(found)
}

fn runs<'a>(system: &'a [(Array<'_>, Array<'_>)]) -> PyResult<Vec<[Rows<'a>; 2]>> {
    let run = |(images, texts): &'a (Array<'_>, Array<'_>)| {
        Ok([Rows::new("images", images)?, Rows::new("texts", texts)?])
    };
    system.iter().map(run).collect()
}

fn hits(
    [images, texts]: &[Rows<'_>; 2],
    pairs: &Pairs,
    protocol: Protocol,
    policy: TiePolicy,
) -> Result<Hits> {
    let tiles = images.tiles(*texts)?;
    Hits::new(&(&tiles as &dyn Scored).ranks_by(protocol, pairs)?, policy)
}

/// The mean over the runs of a system.
fn mean(runs: &[Hits]) -> Measures<f64> {
    let all: Vec<_> = runs.iter().map(Hits::recalls).collect();
    let side = |of: fn(&Measures<f64>) -> [f64; 3]| {
        [0, 1, 2].map(|k| all.iter().map(|m| of(m)[k]).sum::<f64>() / all.len() as f64)
    };
    Measures::of_recalls(side(|m| m.i2t), side(|m| m.t2i))
}

/// The names of [`Measures`], in the order of [`values`].
const NAMES: [&str; 7] = ["i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10", "rsum"];

fn values<T>(measures: Measures<T>) -> [T; 7] {
    let ([a, b, c], [d, e, f]) = (measures.i2t, measures.t2i);
    [a, b, c, d, e, f, measures.rsum]
}

fn dict<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    values: [T; 7],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    NAMES.into_iter().zip(values).try_for_each(|(name, value)| dict.set_item(name, value))?;
    Ok(dict)
}
