//! Arrays and row numbers in `.npy` files. The magic replaces the first bytes of the input.
#![no_main]

use hubness::cli::input::{Array, PairFormat, PairList};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    let magic = b"\x93NUMPY";
    if bytes.len() >= magic.len() {
        bytes[..magic.len()].copy_from_slice(magic);
    }
    if let Ok(array) = Array::parse("x", None, bytes.clone()) {
        let mut row = vec![0.0; array.dim()];
        (0..array.rows()).for_each(|at| array.row_into(at, &mut row));
    }
    let _ = PairList::parse("x", PairFormat::Lines, bytes.into());
});
