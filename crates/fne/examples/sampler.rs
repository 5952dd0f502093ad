//! FNE's sampler without any training (Eq. 4–13): a small table of its numbers for one row of scores.
//!
//! ```text
//! cargo run -p fne --example sampler --features flex
//! ```
//!
//! Six texts are candidates for image 0. Text 0 is the image's own text. Text 1 scores as high as a true pair: it was not written for
//! this image, but it may match. The sampler draws such a text less often than a hard negative that surely does not match.

#![allow(clippy::print_stdout)] // an example shows what it does

use std::error::Error;

use fne::{
    CandidatePool, Preset, Reset, SamplerConfig, Statistics, Variance, draw, same_image, weights,
};

/// Scores of image 0 with the six texts.
pub(crate) const SCORES: [f32; 6] = [0.66, 0.68, 0.57, 0.52, 0.48, 0.20];
/// The image that each text was written for.
const IMAGES: [i64; 6] = [0, 1, 2, 3, 4, 5];
/// Number of draws that the table counts.
const DRAWS: usize = 10_000;

/// The sampler's numbers for one text.
#[derive(Debug)]
pub(crate) struct Row {
    /// P(match | s), Eq. 9.
    pub(crate) posterior: f64,
    /// ρ, Eq. 11–13.
    pub(crate) weight: f32,
    /// How often the text is drawn, of [`DRAWS`].
    pub(crate) drawn: usize,
}

/// Scores of pairs in 100 batches of four, as a model in training gives them: row i is image i, column j is text j.
pub(crate) fn seen() -> Result<Statistics, fne::Error> {
    let mut statistics = Statistics::new(Variance::Official, Reset::Epoch);
    statistics.begin_epoch(); // at the start of each epoch
    for batch in 0..100 {
        let score = |k: usize| {
            let (middle, spread) = if k / 4 == k % 4 { (0.62, 0.09) } else { (0.30, 0.09) };
            middle + spread * ((batch * 16 + k) as f32 * 1.7).sin()
        };
        let scores: Vec<f32> = (0..16).map(score).collect();
        statistics.update(&scores, 4)?; // Eq. 4
    }
    Ok(statistics)
}

/// The table's rows.
pub(crate) fn rows(statistics: &Statistics) -> Result<Vec<Row>, Box<dyn Error>> {
    let rule = SamplerConfig::preset(Preset::Default);
    let seen = statistics.snapshot();
    let posterior = seen.posterior(rule.prior, rule.min_count).ok_or("too few pairs")?; // Eq. 5–10

    let excluded = same_image(&[0], &IMAGES)?;
    let pool = CandidatePool { scores: &SCORES, positive: &[SCORES[0]], excluded: &excluded };
    let rho = weights(&pool, &rule, &seen)?; // Eq. 11–13

    let many = rho.repeat(DRAWS); // training draws once per row; the table counts many draws
    let drawn = draw(&many, SCORES.len(), 7)?;
    let row = |(j, &weight): (usize, &f32)| Row {
        posterior: posterior.probability(SCORES[j].into()),
        weight,
        drawn: drawn.iter().filter(|&&column| column == j).count(),
    };
    Ok(rho.iter().enumerate().map(row).collect())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let rule = SamplerConfig::preset(Preset::Default);
    let statistics = seen()?;
    let now = statistics.snapshot();
    let cut = now.positive.mean - rule.margin;
    for (name, class) in [("matched", now.positive), ("mismatched", now.negative)] {
        let (n, mean, deviation) = (class.count, class.mean, class.variance().sqrt());
        println!("{name:>10}: n = {n}, mean {mean:.3}, deviation {deviation:.3}");
    }
    println!("\ntext  score  P(match)  weight  drawn  why");
    for (j, Row { posterior, weight, drawn }) in rows(&statistics)?.into_iter().enumerate() {
        let why = match j {
            0 => "the image's own text".into(),
            _ if f64::from(SCORES[j]) <= cut => format!("too easy: not above {cut:.3}"),
            _ if posterior > rule.lambda => "may be a false negative: Eq. 11".into(),
            _ => "surely a negative: Eq. 12".to_string(),
        };
        println!("{j:4}  {:.2}   {posterior:8.4}  {weight:.4}  {drawn:5}  {why}", SCORES[j]);
    }
    Ok(())
}
