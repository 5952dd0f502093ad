//! The native half of the Python package `itmatch`: arrays in, plain numbers and arrays out.
//!
//! The package's Python half (`python/itmatch`) turns what users have into aligned C-ordered `float32` arrays, names the options
//! and holds the documentation. This half borrows the arrays, lets other Python threads run, and calls `itm-core` and `hubness`.

mod arrays;
mod correction;
mod embed;
mod evaluation;
mod part;
mod report;
mod scan;
mod search;

#[pyo3::pymodule]
mod _itmatch {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::correction::{Correction, PyMethod};
    #[pymodule_export]
    use crate::embed::Embedder;
    #[pymodule_export]
    use crate::evaluation::{evaluate, significance};
    #[pymodule_export]
    use crate::part::{PyPart, part};
    #[pymodule_export]
    use crate::report::{PyReport, report};
    #[pymodule_export]
    use crate::scan::{PyScan, scan};
    #[pymodule_export]
    use crate::search::{matching, search, unit};
}
