//! Corrections fitted on a bank of queries. Queries stand in the rows of every matrix, items in its columns.

use hubness::{
    AnyCorrection, Bank, Direction, DualBank, EmpiricalProximity, GaussianProximity, HeldOut,
    HeldOutBank, LocalScaling, Nnn, QueryBank, Setting, Sinkhorn, TestQueries, Transductive, csls,
    export, inverted_softmax, pass,
};
use itm_core::scored::Scored;
use itm_core::tiles::Tiles;
use itm_core::{Error, Result, interrupt};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};

use crate::arrays::{Array, Rows, named, raised, run};
use crate::search::{FlatLists, QueryLists, arrays, flat};

/// A fitted correction.
#[pyclass(frozen, module = "itmatch._itmatch")]
pub(crate) struct Correction(Fitted);

/// What it has seen, as a type: [`hubness::Knowledge`].
#[derive(Serialize, Deserialize)]
enum Fitted {
    /// On other queries than it will serve.
    HeldOut(hubness::Correction<HeldOut>),
    /// On the queries that it will serve.
    Transductive(hubness::Correction<Transductive>),
}

const I2T: Direction = Direction::I2t;

impl Correction {
    fn any(&self) -> &AnyCorrection {
        match &self.0 {
            Fitted::HeldOut(fitted) => fitted,
            Fitted::Transductive(fitted) => fitted,
        }
    }
}

#[pymethods]
impl Correction {
    fn knowledge(&self) -> &'static str {
        if self.any().setting() == Setting::HeldOut { "held_out" } else { "transductive" }
    }

    /// What each item loses, in units of the score.
    fn biases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, export::biases(self.any()).map_err(raised)?))
    }

    /// Corrected scores of any queries.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        scores: Array<'py>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let scores = Rows::new("scores", &scores)?;
        let values = run(py, || {
            let items = self.any().map().items();
            let expected = format_args!("one column for each of {items} items");
            Error::unless(scores.dim == items, "scores", expected, scores.dim)?;
            scores.embeddings()?; // finite, with row and column
            let rows = each_row(scores.values, scores.rows, |row| self.any().of_query(row))?;
            Ok(rows.concat())
        })?;
        PyArray1::from_vec(py, values).reshape([scores.rows, scores.dim])
    }

    /// The `k` best items of any queries.
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: Array<'py>,
        items: Array<'py>,
        k: usize,
    ) -> PyResult<QueryLists<'py>> {
        let (queries, items) = (Rows::new("queries", &queries)?, Rows::new("items", &items)?);
        let found = run(py, || {
            let tiles = queries.tiles(items)?;
            match self.any().map().queries() {
                None => Ok(flat(&*pass::top(&tiles, self.any(), k)?)),
                Some(_) => query_by_query(&tiles, self.any(), k),
            }
        })?;
        arrays(py, found, [queries.rows, k.min(items.rows)])
    }

    /// Item vectors with one more dimension.
    fn export<'py>(
        &self,
        py: Python<'py>,
        items: Array<'py>,
        centre: Option<f64>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let items = Rows::new("items", &items)?;
        let vectors = run(py, || {
            let centre = centre.map_or_else(|| export::centre(self.any()), Ok)?;
            export::items_around(I2T, items.values, items.dim, self.any(), centre)
        })?;
        PyArray1::from_vec(py, vectors).reshape([items.rows, items.dim + 1])
    }

    #[staticmethod]
    fn of_bytes(bytes: &[u8]) -> PyResult<Self> {
        let read = rmp_serde::from_slice(bytes);
        read.map(Self).map_err(|error| PyValueError::new_err(format!("correction: {error}")))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = rmp_serde::to_vec_named(&self.0);
        let bytes = bytes.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let read = py.get_type::<Self>().getattr("of_bytes")?;
        Ok((read, (PyBytes::new(py, &bytes),)))
    }
}

/// `of` each of `count` rows, in parallel; Ctrl-C ends it.
fn each_row<T: Send>(
    values: &[f32],
    count: usize,
    of: impl Fn(&[f32]) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let width = values.len().checked_div(count).unwrap_or(0);
    let row = |row: u64| of(&values[row as usize * width..][..width]);
    interrupt::each(count as u64, row).into_iter().collect()
}

/// Lists under a correction that takes values from all scores of a query.
fn query_by_query(tiles: &Tiles<'_>, correction: &AnyCorrection, k: usize) -> Result<FlatLists> {
    const BATCH: usize = 256;
    let (queries, items) = (tiles.images(), tiles.texts());
    let k = k.min(items);
    let best = |row: &[f32]| {
        let scores = correction.of_query(row)?;
        let mut order: Vec<u32> = (0..items as u32).collect();
        let score = |item: u32| scores[item as usize];
        let better = |a: &u32, b: &u32| score(*b).total_cmp(&score(*a)).then(a.cmp(b));
        if k < items {
            order.select_nth_unstable_by(k, better);
            order.truncate(k);
        }
        order.sort_unstable_by(better);
        let scores: Vec<_> = order.iter().map(|&item| score(item)).collect();
        Ok((order, scores))
    };
    let mut found = FlatLists::default();
    for first in (0..queries).step_by(BATCH) {
        let rows = tiles.block(first..(first + BATCH).min(queries), 0..items);
        for (ids, scores) in each_row(rows.values(), rows.images(), best)? {
            found.0.extend(ids.into_iter().map(i64::from));
            found.1.extend(scores);
        }
    }
    Ok(found)
}

/// A correction with its settings; Python's class of the same name makes it.
#[pyclass(name = "Method", frozen, module = "itmatch._itmatch")]
pub(crate) enum PyMethod {
    Csls { k: usize },
    InvertedSoftmax { beta: f64 },
    Nnn { alpha: f64, k: usize },
    QbNorm { beta: f64, k: usize, dynamic: bool },
    DbNorm { query_beta: f64, item_beta: f64, query_k: usize, item_k: usize, dynamic: bool },
    Sinkhorn { epsilon: f64, iterations: usize, tolerance: f64 },
    LocalScaling { form: String, k: usize },
    MutualProximity { form: String },
}

impl PyMethod {
    /// Fits for queries that come later: what a map holds of single queries is of the bank's. `made` gets iterations and row error.
    fn on<B: Bank>(
        &self,
        bank: &B,
        bank_items: Option<&dyn Scored>,
        made: &mut Option<(usize, f64)>,
    ) -> Result<hubness::Correction<B::Knowledge>> {
        let test = bank.scores();
        match *self {
            Self::Csls { k } => csls(bank, I2T, k),
            Self::InvertedSoftmax { beta } => inverted_softmax(bank, I2T, beta),
            Self::Nnn { alpha, k } => Nnn { alpha, k }.fit(bank, I2T),
            Self::QbNorm { beta, k, dynamic } => {
                QueryBank { beta, k, dynamic }.fit(bank, test, I2T)
            }
            Self::DbNorm { query_beta, item_beta, query_k, item_k, dynamic } => {
                let none = || Error::invalid("bank_items", "held-out items", "none");
                let norm = DualBank { query_beta, item_beta, query_k, item_k, dynamic };
                norm.fit(bank, bank_items.ok_or_else(none)?, test, I2T)
            }
            Self::Sinkhorn { epsilon, iterations, tolerance } => {
                let fit = Sinkhorn { epsilon, iterations, tolerance }.fit(bank, I2T)?;
                *made = Some((fit.iterations, fit.row_error));
                Ok(fit.correction)
            }
            Self::LocalScaling { ref form, k } => {
                LocalScaling { form: named("form", form)?, k }.fit(bank, test, I2T)
            }
            Self::MutualProximity { ref form } => match &form[..] {
                "gaussian" => GaussianProximity.fit(bank, test, I2T),
                "empirical" => EmpiricalProximity::default().fit(bank, test, I2T),
                other => Err(Error::invalid("form", "gaussian or empirical", other)),
            },
        }
    }
}

#[pymethods]
impl PyMethod {
    fn fit(
        &self,
        py: Python<'_>,
        bank: Array<'_>,
        items: Array<'_>,
        bank_items: Option<Array<'_>>,
        transductive: bool,
    ) -> PyResult<(Correction, Option<(usize, f64)>)> {
        let (bank, items) = (Rows::new("bank_queries", &bank)?, Rows::new("items", &items)?);
        let bank_items = bank_items.as_ref().map(|array| Rows::new("bank_items", array));
        let bank_items = bank_items.transpose()?;
        let mut made = None;
        let fitted = run(py, || {
            let scores = bank.tiles(items)?;
            let of_items = bank_items.map(|bank| items.tiles(bank).and(bank.tiles(items)));
            let of_items = of_items.transpose()?;
            let of_items = of_items.as_ref().map(|tiles| tiles as &dyn Scored);
            let made = &mut made;
            match transductive {
                true => self.on(&TestQueries(&scores), of_items, made).map(Fitted::Transductive),
                false => self.on(&HeldOutBank(&scores), of_items, made).map(Fitted::HeldOut),
            }
        });
        Ok((Correction(fitted?), made))
    }
}
