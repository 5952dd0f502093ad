//! The example's model of word counts makes negatives that read back.

#[path = "../examples/own_negatives.rs"]
#[allow(dead_code, reason = "`main` is not called")]
mod example;

use std::collections::HashSet;

use tags_dc::record::{self, Kind};

#[test]
fn word_counts_make_negatives() {
    let lines = || {
        let mut lines = vec![];
        example::write(&mut lines).unwrap();
        lines
    };
    assert_eq!(lines(), lines(), "the same seed gives the same lines");
    let records = record::parse("lines", &lines()[..]).unwrap();
    let captions: HashSet<_> = records.iter().map(|record| record.caption.as_str()).collect();
    assert_eq!(captions, HashSet::from(["0#0", "0#1", "1#0", "1#1", "2#0", "2#1"]));
    for record in &records {
        assert_eq!(record.kind, Kind::Refill);
        assert!(!record.positions.is_empty() && record.text.ends_with('.'), "{record:?}");
    }
    // The words of the captions of image 0. Every negative has another word.
    let told = ["a", "brown", "dog", "jumps", "over", "log", "leaps", "fallen", "tree"];
    let of_first = records.iter().filter(|record| record.caption.starts_with("0#"));
    for record in of_first {
        assert!(
            record.new.iter().any(|word| !told.contains(&&word.to_lowercase()[..])),
            "{record:?}"
        );
    }
    let scores: Vec<_> = records.iter().filter(|r| r.caption == "0#0").map(|r| r.score).collect();
    assert!(scores.len() == 3 && scores.is_sorted_by(|a, b| a >= b), "the best first: {scores:?}");
}
