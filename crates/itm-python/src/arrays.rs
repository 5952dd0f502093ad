//! Arguments: arrays, pairs and named settings. And the call itself, without Python's lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use itm_core::interrupt::{self, Interrupted};
use itm_core::tiles::{Embeddings, Tiles};
use itm_core::{Error, Pairs, Result};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::de::value::{Error as Unknown, StrDeserializer};
use serde::{Deserialize, Serialize};

/// Rows of an array, borrowed for reading.
pub(crate) type Array<'py> = PyReadonlyArray2<'py, f32>;

/// The values of an array, as a call without Python's lock sees them.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) name: &'static str,
    pub(crate) rows: usize,
    pub(crate) dim: usize,
    pub(crate) values: &'a [f32],
}

impl<'a> Rows<'a> {
    pub(crate) fn new(name: &'static str, array: &'a Array<'_>) -> PyResult<Self> {
        let refused = |error| PyValueError::new_err(format!("{name}: {error}"));
        let values = array.as_slice().map_err(refused)?;
        Ok(Self { name, rows: array.shape()[0], dim: array.shape()[1], values })
    }

    pub(crate) fn embeddings(self) -> Result<Embeddings<'a>> {
        Embeddings::new(self.name, self.rows, self.dim, self.values)
    }

    /// The products with the rows of `other`.
    pub(crate) fn tiles(self, other: Self) -> Result<Tiles<'a>> {
        let expected = format_args!("the width of {}, {}", self.name, self.dim);
        Error::unless(self.dim == other.dim, other.name, expected, other.dim)?;
        Tiles::new(self.embeddings()?, other.embeddings()?)
    }
}

/// True pairs: the image of each text, or all images that each text is true of.
#[derive(FromPyObject)]
pub(crate) enum TruePairs<'py> {
    Images(PyReadonlyArray1<'py, i64>),
    Judged(Vec<Vec<usize>>),
}

impl TruePairs<'_> {
    pub(crate) fn pairs(&self, images: usize) -> PyResult<Pairs> {
        let rows = match self {
            Self::Judged(lists) => return Pairs::judged(images, lists.clone()).map_err(raised),
            Self::Images(rows) => rows.as_array(),
        };
        let image_of_text =
            rows.iter().map(|&image| usize::try_from(image)).collect::<Result<_, _>>();
        let negative = |_| Error::invalid("pairs", "images counted from 0", "a negative number");
        let image_of_text = image_of_text.map_err(negative).map_err(raised)?;
        Pairs::new(images, image_of_text).map_err(raised)
    }
}

/// A setting by its name in reports.
pub(crate) fn named<'de, T: Deserialize<'de>>(place: &str, word: &'de str) -> Result<T> {
    let read = T::deserialize(StrDeserializer::<Unknown>::new(word));
    read.map_err(|error| Error::invalid(place, "a name that is known", error))
}

/// JSON for the Python half.
pub(crate) fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// One line of Python for one line of ours.
pub(crate) fn raised(error: Error) -> PyErr {
    let line = error.to_string();
    let Error::Io { path, source } = error else { return PyValueError::new_err(line) };
    let Some(code) = source.raw_os_error() else { return PyOSError::new_err(line) };
    let of_system = source.to_string();
    let what = of_system.split(" (os error").next().unwrap_or(&of_system);
    // Python takes a subclass by the number; on Windows the last is its number.
    let call = (code, what, path.as_os_str(), code);
    Python::attach(|py| {
        py.get_type::<PyOSError>().call1(call).map_or_else(|e| e, PyErr::from_value)
    })
}

/// The process whose threads work: the children of a fork have none.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Between two looks at Python's signals.
const LOOK: Duration = Duration::from_millis(100);

/// Runs `work` on a thread of its own, so that this one sees Ctrl-C and ends the work.
///
/// # Errors
/// What Python's handler of the signal raised.
fn watched<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<std::thread::Result<T>> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, ended) = channel();
            scope.spawn(move || {
                _ = done.send(catch_unwind(AssertUnwindSafe(work))); // the other end waits
            });
            loop {
                match ended.recv_timeout(LOOK) {
                    Ok(result) => return Ok(result),
                    Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends"),
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if let Err(signal) = Python::attach(|py| py.check_signals()) {
                    interrupt::set(true);
                    _ = ended.recv(); // it ends within a tile or a replicate
                    interrupt::set(false);
                    return Err(signal);
                }
            }
        })
    })
}

/// Calls `work` while other threads of Python run.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let this = std::process::id();
    match OWNER.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => _ = itm_core::threads::cap(),
        Err(owner) if owner != this => {
            let line = "itmatch: expected a new process (multiprocessing's `spawn`), got a fork of one that has called itmatch";
            return Err(PyRuntimeError::new_err(line));
        }
        Err(_) => {}
    }
    match watched(py, work)? {
        Ok(result) => result.map_err(raised),
        Err(payload) if payload.is::<Interrupted>() => {
            let line = "itmatch: expected to end, got Ctrl-C in another thread";
            Err(PyRuntimeError::new_err(line))
        }
        Err(payload) => {
            let line = payload.downcast_ref::<String>();
            if let Some(line) = line.filter(|line| line.ends_with("do not fit into memory")) {
                return Err(PyMemoryError::new_err(line.clone()));
            }
            let line = "itmatch: expected arrays that do not change during the call, got others (or a bug: see the line above)";
            Err(PyRuntimeError::new_err(line))
        }
    }
}
