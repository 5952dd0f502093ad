//! A correction for a service: fitted once on held-out queries, saved, loaded, and applied to one query at a time.
//!
//! ```text
//! cargo run -p hubness --example service
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use std::error::Error;
use std::fs;

use hubness::{Correction, Direction, HeldOut, HeldOutBank, QueryBank, ScoreMatrix};

/// Scores of held-out captions with four images; image 0 is near to all of them.
fn bank() -> ScoreMatrix {
    let captions =
        [[0.8, 0.3, 0.2, 0.1], [0.7, 0.2, 0.3, 0.2], [0.9, 0.4, 0.1, 0.3], [0.8, 0.1, 0.2, 0.7]];
    ScoreMatrix::from_rows(captions).transpose() // images are rows
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // Fitting: once, where the bank is. QB-Norm looks at a query's best item, so the fit also needs the scores of some queries.
    let bank = bank();
    let fit = QueryBank { beta: 20.0, ..QueryBank::default() };
    let correction = fit.fit(&HeldOutBank(&bank), &bank, Direction::T2i)?;
    let file = std::env::temp_dir().join(format!("hubness-service-{}.json", std::process::id()));
    fs::write(&file, serde_json::to_vec(&correction)?)?;

    // Serving: elsewhere, later. The type says that the correction has seen held-out queries and no others.
    let correction: Correction<HeldOut> = serde_json::from_slice(&fs::read(&file)?)?;
    let query = [0.62, 0.60, 0.2, 0.1]; // a caption of image 1; the hub, image 0, scores higher
    let scores = correction.of_query(&query)?;
    let best = |scores: &[f64]| {
        (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0)
    };
    let raw = best(&query.map(f64::from));
    println!("nearest image {raw}; corrected {}", best(&scores));
    assert_eq!((raw, best(&scores)), (0, 1));
    fs::remove_file(&file)?;
    Ok(())
}
