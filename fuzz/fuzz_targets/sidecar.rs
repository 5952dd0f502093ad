//! Phrases of captions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tags_dc::phrases::sidecar;

fuzz_target!(|bytes: &[u8]| {
    let _ = sidecar::parse("x", bytes, &[("c", 3)]);
});
