//! A study of hubs, and its report.

use std::path::PathBuf;

use hubness::page;
use hubness::rows::{Length, warnings};
use hubness::study::{Banks, ItemNames, Settings, Study, Test};
use itm_core::scored::{EmbeddingRows, Similarity};
use itm_core::significance::MOST_REPLICATES;
use itm_core::{Error, Result, output};
use itm_report::terminal::Palette;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Array, Rows, TruePairs, json, raised, run};

/// A report: JSON for the Python half, HTML, text.
#[pyclass(name = "Report", frozen)]
pub(crate) struct PyReport(hubness::report::Report);

#[pymethods]
impl PyReport {
    fn json(&self) -> PyResult<String> {
        json(&self.0)
    }

    #[staticmethod]
    fn of_json(text: &str) -> PyResult<Self> {
        let read = serde_json::from_str(text);
        read.map(Self).map_err(|e| PyValueError::new_err(format!("report: {e}")))
    }

    fn html(&self) -> String {
        page::html(&self.0)
    }

    fn write_html(&self, path: PathBuf) -> PyResult<()> {
        output::write_bytes(&path, self.html().as_bytes()).map_err(raised)
    }

    fn text(&self, width: usize) -> String {
        page::terminal(&self.0, width, Palette::Plain)
    }
}

/// Measures every row on these embeddings. `settings` is a JSON object with the fields of [`Settings`].
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the Python half names them")]
pub(crate) fn report<'py>(
    py: Python<'py>,
    images: Array<'py>,
    texts: Array<'py>,
    pairs: TruePairs<'py>,
    pairs_note: Option<String>,
    banks: Option<(Array<'py>, Array<'py>)>,
    names: (Option<Vec<String>>, Option<Vec<String>>),
    methods: Vec<String>,
    settings: &str,
    seed: u64,
    resamples: usize,
) -> PyResult<PyReport> {
    let sides = [Rows::new("images", &images)?, Rows::new("texts", &texts)?];
    let pairs = pairs.pairs(sides[0].rows)?;
    let banks = banks.as_ref().map(|(images, texts)| {
        PyResult::Ok([Rows::new("banks, images", images)?, Rows::new("banks, texts", texts)?])
    });
    let banks = banks.transpose()?;
    let settings: Settings = serde_json::from_str(settings)
        .map_err(|e| PyValueError::new_err(format!("settings: {e}")))?;
    let methods = methods.iter().map(|name| name.trim().parse()).collect::<Result<Vec<_>>>();
    let study =
        Study { methods: methods.map_err(raised)?, settings, seed, resamples, curves: true };
    let names = ItemNames { images: names.0, texts: names.1 };
    run(py, || {
        let expected = format_args!("0 to {MOST_REPLICATES}");
        Error::unless(resamples <= MOST_REPLICATES, "resamples", expected, resamples)?;
        sides[0].tiles(sides[1])?; // the checks
        let [images, texts] = sides.map(|side| side.values.to_vec());
        let rows =
            EmbeddingRows { dim: sides[0].dim, images, texts, similarity: Similarity::Cosine };
        let mut test = Test { names: &names, ..Test::new(&rows, &pairs) };
        if let Some([images, texts]) = banks {
            sides[1].tiles(images)?;
            sides[0].tiles(texts)?;
            let (images, texts) = (Some(images.embeddings()?), Some(texts.embeddings()?));
            test.banks = Banks { images, texts };
        }
        test.length = if sides.iter().all(unit) { Length::Unit } else { Length::Raw };
        let mut report = study.run(&test, None)?;
        let odd = sides.map(|side| warnings(side.name, side.dim, side.values));
        report.data.warnings.extend(odd.concat());
        if let Some(note) = pairs_note {
            report.data.notes.insert(0, note.clone());
            report.data.pairs_note = note;
        }
        Ok(PyReport(report))
    })
}

/// Whether all rows are of unit length, to the precision of half floats, or zero: then products are cosines.
fn unit(side: &Rows<'_>) -> bool {
    let square = |row: &[f32]| row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>();
    side.values.chunks(side.dim).map(square).all(|s| s == 0.0 || (s - 1.0).abs() < 2e-3)
}
