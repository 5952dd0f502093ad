//! Pairs and names in every text format.
#![no_main]

use hubness::cli::input::{NameFormat, PairFormat, PairList, parse_names};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for format in [PairFormat::Lines, PairFormat::Csv, PairFormat::Jsonl(Some("f"))] {
        let _ = PairList::parse("x", format, bytes.to_vec().into());
    }
    for format in [NameFormat::Lines, NameFormat::Jsonl(None), NameFormat::Jsonl(Some("f"))] {
        let _ = parse_names("x", format, bytes);
    }
});
