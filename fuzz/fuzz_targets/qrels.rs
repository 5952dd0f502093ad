//! Judgements.
#![no_main]

use hubness::cli::input::Qrels;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Qrels::parse("x", bytes);
});
