//! Parts of a pass: the file of one, joined with itself and finished.
#![no_main]

use itm_core::Pairs;
use itm_core::tiles::Part;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(part) = Part::from_bytes("x", bytes) else { return };
    assert!(part.clone().join(part.clone()).is_err());
    if let Ok(top) = part.top() {
        let queries = part.sides().map_or(0, |[queries, _]| queries);
        assert!((0..queries).all(|query| top.items(query).len() == top.k()));
    }
    let (pairs, scores) = (Pairs::uniform(2, 2), part.pair_scores().unwrap_or(vec![0.5; 4]));
    if scores.len() == 4 {
        let _ = part.ranks(&pairs, &scores);
    }
});
