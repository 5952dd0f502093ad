//! Relaxed greedy matching (Algorithm 1 of the paper) over your own embeddings, without the matrix of all scores.
//!
//! ```text
//! cargo run -p hubness --example rgm
//! ```

#![allow(clippy::print_stdout)] // an example shows what it does

use hubness::{
    Candidates, Correction, Direction, Embeddings, GreedyOptions, Pairs, Result, Tiles,
    greedy_matching, pass,
};

/// Number of images, captions per image, and width.
const SIZES: [usize; 3] = [40, 5, 8];

/// Unit rows: a caption is its image plus noise. Every embedding leans towards one corner, so that some images become hubs.
fn embeddings() -> [Vec<f32>; 2] {
    let [n, captions, d] = SIZES;
    let noise = |k: usize| ((k * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5;
    let unit = |row: Vec<f32>| {
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.into_iter().map(move |x| x / length)
    };
    let image = |i: usize| (0..d).map(move |x| noise(i * d + x) + 0.2).collect::<Vec<_>>();
    let text = |t: usize| {
        let own = image(t / captions).into_iter().enumerate();
        own.map(|(x, value)| value + 0.9 * noise(90_001 + t * d + x)).collect()
    };
    let images = (0..n).flat_map(|i| unit(image(i))).collect();
    [images, (0..n * captions).flat_map(|t| unit(text(t))).collect()]
}

pub(crate) fn main() -> Result<()> {
    let ([n, captions, d], [images, texts]) = (SIZES, embeddings());
    let tiles = Tiles::new(
        Embeddings::new("images", n, d, &images)?,
        Embeddings::new("texts", n * captions, d, &texts)?,
    )?;
    let pairs = Pairs::uniform(n, captions);
    let plain = Correction::none(&tiles, Direction::T2i); // or any correction: RGM matches the corrected scores

    let lists = pass::top(&tiles, &plain, 1)?;
    let candidates = Candidates::new(&tiles, &plain, 1)?;
    let first = |items: &dyn Fn(usize) -> Option<u32>| {
        let right = |&t: &usize| items(t) == Some(pairs.image_of(t) as u32);
        100.0 * (0..n * captions).filter(right).count() as f64 / (n * captions) as f64
    };
    println!("nearest neighbours   R@1 {:5.1} %", first(&|t| lists.items(t).first().copied()));
    for lambda in [1.0, 1.5, 2.0, f64::INFINITY] {
        // An image may answer at most λ times its share of the captions.
        let found = greedy_matching(&candidates, &GreedyOptions::new(1, lambda))?;
        let most = found.counts().into_iter().max().unwrap_or(0);
        let recall = first(&|t| found.items(t).first().copied());
        println!(
            "RGM, λ = {lambda:<4}        R@1 {recall:5.1} %, no image answers more than {most} captions"
        );
    }
    Ok(())
}
