//! Run files.
#![no_main]

use hubness::cli::input::Run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(run) = Run::parse("x", bytes) {
        assert_eq!(run.queries.len(), run.lists.len());
        let known =
            |&(doc, score): &(u32, f64)| score.is_finite() && (doc as usize) < run.docs.len();
        assert!(run.lists.iter().flatten().all(known));
    }
});
