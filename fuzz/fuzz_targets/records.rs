//! Negatives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tags_dc::record;

fuzz_target!(|bytes: &[u8]| {
    let _ = record::parse("x", bytes);
});
