//! The only matrix of a file, and a tensor by name.
#![no_main]

use hubness::cli::input::Array;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for part in [None, Some("x")] {
        if let Ok(array) = Array::parse("x", part, bytes.to_vec()) {
            let mut row = vec![0.0; array.dim()];
            (0..array.rows()).for_each(|at| array.row_into(at, &mut row));
        }
    }
});
