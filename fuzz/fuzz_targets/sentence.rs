//! A stored sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tags_dc::databases::Text;

fuzz_target!(|bytes: &[u8]| {
    let _ = Text::decode("x", bytes);
});
