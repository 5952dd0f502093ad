//! `.npz` archives, with a scale beside the array. The magic replaces the first bytes of the input.
#![no_main]

use hubness::cli::input::Array;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    let magic = b"PK\x03\x04";
    if bytes.len() >= magic.len() {
        bytes[..magic.len()].copy_from_slice(magic);
    }
    for part in [None, Some("a")] {
        if let Ok(array) = Array::parse("x", part, bytes.clone()) {
            let mut row = vec![0.0; array.dim()];
            (0..array.rows()).for_each(|at| array.row_into(at, &mut row));
        }
    }
});
