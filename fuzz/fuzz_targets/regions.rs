//! Stored regions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tags_dc::databases::ImageValue;

fuzz_target!(|bytes: &[u8]| {
    let _ = ImageValue::decode("x", bytes);
});
