//! `.npy` files as NumPy writes them.

use itm_core::data::npy_header;

/// A whole small array.
pub(crate) fn array(kind: &str, shape: &[usize], bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    npy_header(kind, shape).into_iter().chain(bytes).collect()
}
