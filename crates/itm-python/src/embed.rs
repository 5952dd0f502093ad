//! Rows of pictures and of sentences by a published folder.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::Device;
use itm_core::data::{decode_bytes, decode_image, image_of_pixels};
use itm_core::vision::Transform;
use itm_core::weights::Hub;
use itm_core::{Error, Result, encoders, interrupt};
use itm_kernels::Precision;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use crate::arrays::{named, raised, run};

type RowArray<'py> = Bound<'py, PyArray2<f32>>;

/// The encoders of a folder. One call at a time computes, with all threads.
#[pyclass(frozen, module = "itmatch._itmatch")]
pub(crate) struct Embedder(Mutex<encoders::Embedder>);

/// A picture, as the Python half hands it over.
#[derive(FromPyObject)]
pub(crate) enum PythonPicture<'py> {
    File(PathBuf),
    Bytes(PyBackedBytes),
    Pixels(PyReadonlyArray3<'py, u8>),
}

/// A picture, as a call without Python's lock sees it.
enum PictureSource<'a> {
    File(&'a PathBuf),
    Bytes(&'a [u8]),
    Pixels([usize; 2], &'a [u8]),
}

#[pymethods]
impl Embedder {
    /// Opens a folder, or a model of the cache by its name.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        model: &str,
        adapter: Option<PathBuf>,
        precision: &str,
    ) -> PyResult<Self> {
        let precision: Precision = named("precision", precision).map_err(raised)?;
        let model = run(py, || {
            let folder = Hub::from_env().folder(model).map_err(for_users)?;
            let device = Device::flex();
            encoders::Embedder::open(&folder, adapter.as_deref(), precision, &device)
                .map_err(for_users)
        })?;
        Ok(Self(Mutex::new(model)))
    }

    /// The tensors of the files that are not read.
    fn unread(&self) -> Vec<String> {
        self.model().report.unexpected.clone()
    }

    fn images<'py>(
        &self,
        py: Python<'py>,
        pictures: Vec<PythonPicture<'py>>,
        batch: usize,
    ) -> PyResult<RowArray<'py>> {
        let sources = pictures.iter().enumerate().map(PictureSource::new);
        let sources = sources.collect::<PyResult<Vec<_>>>()?;
        let (rows, width) = run(py, || {
            let model = self.model();
            let transform = model.transform("pictures")?;
            let (mut rows, mut first) = (vec![], 0);
            for part in sources.chunks(batch) {
                let pixels = prepared(part, first, transform)?;
                let [got, _] = model.images(pixels, transform.size as usize, false);
                rows.extend(got);
                first += part.len();
            }
            encoders::Embedder::check_rows(model.folder.display(), &rows)?;
            Ok((rows, model.image_width()))
        })?;
        PyArray1::from_vec(py, rows).reshape([pictures.len(), width])
    }

    fn texts<'py>(
        &self,
        py: Python<'py>,
        sentences: Vec<PyBackedStr>,
        batch: usize,
    ) -> PyResult<RowArray<'py>> {
        let (rows, width) = run(py, || {
            let model = self.model();
            model.check_captions("sentences")?;
            let (rows, _) = model.captions(&sentences, batch, |_| ())?;
            encoders::Embedder::check_rows(model.folder.display(), &rows)?;
            Ok((rows, model.text_width()))
        })?;
        PyArray1::from_vec(py, rows).reshape([sentences.len(), width])
    }
}

impl Embedder {
    /// A call that was ended leaves nothing behind in the model.
    fn model(&self) -> MutexGuard<'_, encoders::Embedder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> PictureSource<'a> {
    fn new((number, picture): (usize, &'a PythonPicture<'_>)) -> PyResult<Self> {
        Ok(match picture {
            PythonPicture::File(path) => Self::File(path),
            PythonPicture::Bytes(bytes) => Self::Bytes(bytes),
            PythonPicture::Pixels(pixels) => {
                let refused = |error| PyValueError::new_err(format!("{}: {error}", place(number)));
                let values = pixels.as_slice().map_err(refused)?;
                Self::Pixels([pixels.shape()[0], pixels.shape()[1]], values)
            }
        })
    }
}

/// What users of the wheel can do where a feature is off.
fn for_users(error: Error) -> Error {
    match error {
        Error::Feature { place, feature: "hub" } => {
            let expected = "a folder with the model's files (`hf download NAME --local-dir DIR`)";
            Error::invalid("model", expected, place)
        }
        Error::Feature { place, feature: "pytorch" } => {
            Error::invalid(place, "weights as .safetensors", "pickled ones")
        }
        other => other,
    }
}

fn place(number: usize) -> String {
    format!("pictures[{number}]")
}

/// The pixels of some pictures as the model reads them, one after the other. The first that is damaged is the error, whatever the threads.
fn prepared(sources: &[PictureSource<'_>], first: usize, transform: Transform) -> Result<Vec<f32>> {
    let pixels = interrupt::each(sources.len() as u64, |k| {
        let k = k as usize;
        let image = match sources[k] {
            PictureSource::File(path) => decode_image(path),
            PictureSource::Bytes(bytes) => decode_bytes(&place(first + k), bytes),
            PictureSource::Pixels(sides, values) => {
                image_of_pixels(&place(first + k), sides, values)
            }
        }?;
        let mut values = vec![0.0; transform.len()];
        transform.apply(&image, &mut values);
        Ok(values)
    });
    Ok(pixels.into_iter().collect::<Result<Vec<_>>>()?.concat())
}
