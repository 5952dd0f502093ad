//! The scan for planted hubs.

use hubness::scan::{Budget, Scan};
use itm_core::{Error, Result};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{Array, Rows, json, run};

/// A scan: JSON for the Python half.
#[pyclass(name = "Scan", frozen, module = "itmatch._itmatch")]
pub(crate) struct PyScan(Scan);

/// Scans items over a bank of queries.
#[pyfunction]
pub(crate) fn scan(
    py: Python<'_>,
    queries: Array<'_>,
    items: Array<'_>,
    k: usize,
) -> PyResult<PyScan> {
    let (queries, items) = (Rows::new("queries", &queries)?, Rows::new("items", &items)?);
    run(py, || {
        queries.tiles(items)?; // the checks, with Python's names
        Scan::new(queries.embeddings()?, items.embeddings()?, k)
    })
    .map(PyScan)
}

fn budget(false_alarms: f64, alerts: Option<usize>) -> Budget {
    alerts.map_or(Budget::FalseAlarms(false_alarms), Budget::Items)
}

#[pymethods]
impl PyScan {
    fn summary(&self) -> PyResult<String> {
        json(&self.0.summary())
    }

    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.0.counts())
    }

    fn alerts(&self, py: Python<'_>, false_alarms: f64, alerts: Option<usize>) -> PyResult<String> {
        json(&run(py, || self.0.alerts(budget(false_alarms, alerts)))?)
    }

    /// Verdicts on new items, and each as a sentence.
    fn admit(
        &self,
        py: Python<'_>,
        queries: Array<'_>,
        new: Array<'_>,
        false_alarms: f64,
        alerts: Option<usize>,
    ) -> PyResult<(String, Vec<String>)> {
        let (queries, new) = (Rows::new("queries", &queries)?, Rows::new("items", &new)?);
        let judged = run(py, || -> Result<_> {
            let expected = format_args!("the queries' width {}", queries.dim);
            Error::unless(queries.dim == new.dim, new.name, expected, new.dim)?;
            self.0.admit(queries.embeddings()?, new.embeddings()?, budget(false_alarms, alerts))
        })?;
        let lines = judged.iter().map(|admission| self.0.sentence(admission)).collect();
        Ok((json(&judged)?, lines))
    }
}
