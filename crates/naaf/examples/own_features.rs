//! NAAF's parts over your own features, as plain slices: mine a boundary, score every pair, see the effect of each word on a score.
//! This needs no training and no model.
//!
//! ```text
//! cargo run -p naaf --example own_features --features flex
//! ```
//!
//! Any model that maps regions and words to one space will do. Here each thing of a small world is a direction, and features are noisy.

#![allow(clippy::print_stdout)] // an example shows what it does

use itm_core::scored::Scored;
use itm_kernels::random;
use naaf::{
    Boundary, CrossScores, MiningBatch, MiningConfig, NaafConfig, Preset, Result, effects, mine,
};

/// Width of the space.
const D: usize = 16;
/// The things of the world, one direction each.
const THINGS: [&str; 12] =
    ["dog", "ball", "grass", "man", "hat", "street", "cat", "sofa", "lamp", "boat", "sea", "bird"];
/// Number of images. Image `i` shows the things `3 i` to `3 i + 2`, one per region, and its caption names them.
pub(crate) const N: usize = 4;
/// Regions of an image, and words of a caption.
const ROWS: usize = 3;

/// Features of a thing, of unit length: its direction and some noise.
fn row(thing: usize, seed: u64) -> Vec<f32> {
    let noise = |k: usize| 0.3 * (random::unit(seed, k as u64) - 0.5);
    let mut row: Vec<f32> =
        (0..D).map(|k| if k == thing { 1.0 } else { 0.15 } + noise(k)).collect();
    let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
    row.iter_mut().for_each(|x| *x /= length);
    row
}

/// Features of all images, or of all captions, `[N · ROWS, D]`.
pub(crate) fn side(seed: u64) -> Vec<f32> {
    (0..N * ROWS).flat_map(|thing| row(thing, random::derive(seed, thing as u64))).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The best region of each word of a caption in an image.
pub(crate) fn best(regions: &[f32], words: &[f32], image: usize, caption: usize) -> Vec<f32> {
    let of = |values: &[f32], item: usize| {
        values[item * ROWS * D..][..ROWS * D].chunks(D).map(<[f32]>::to_vec).collect::<Vec<_>>()
    };
    let regions = of(regions, image);
    let best = |word: Vec<f32>| regions.iter().map(|r| dot(r, &word)).fold(f32::MIN, f32::max);
    of(words, caption).into_iter().map(best).collect()
}

/// The boundary between words that an image shows and words that it does not: Eq. 1 to 4, 13 and 14.
pub(crate) fn boundary(regions: &[f32], words: &[f32]) -> Result<Boundary> {
    let config =
        MiningConfig { smoothing: 1.0, min_words: 2, ..MiningConfig::preset(Preset::Default) };
    let captions = MiningBatch { lengths: &[ROWS; N], own: &[0, 1, 2, 3], epoch: 0, seed: 1 };
    // Any score of an image and a caption will do for mining. Here: the mean of the words' best regions.
    let column = |caption, _| {
        let score = |i| best(regions, words, i, caption).iter().sum::<f32>() / ROWS as f32;
        (0..N).map(score).collect()
    };
    let mut boundary = Boundary::default();
    mine(&mut boundary, &config, &captions, column, |i, c, _| best(regions, words, i, c))?;
    Ok(boundary)
}

pub(crate) fn main() -> Result<()> {
    let (regions, words) = (side(1), side(2));
    let boundary = boundary(&regions, &words)?;
    let (matched, other) = (boundary.matched.mean, boundary.mismatched.mean);
    println!("best region of a word: {matched:.2} in its image, {other:.2} elsewhere");
    println!("boundary t = {:.2}\n", boundary.t);

    let (attention, t) = (NaafConfig::preset(Preset::Default).attention, boundary.t as f32);
    let of = |values: &[f32]| (values.to_vec(), [ROWS; N]);
    let ((v, in_image), (u, in_caption)) = (of(&regions), of(&words));
    let scores = CrossScores::new((v, &in_image), (u, &in_caption), D, t, &attention)?.matrix()?;
    println!("scores, a row per image and a column per caption:");
    for image in 0..N {
        let row: Vec<String> = scores.row(image).iter().map(|s| format!("{s:6.2}")).collect();
        println!("  {}", row.join(" "));
    }

    // A caption that is partly true of image 0: the image's first two words, and the boat of image 3.
    let caption = [&words[..2 * D], &words[9 * D..10 * D]].concat();
    let effects = effects(&regions[..ROWS * D], &caption, D, t, &attention)?;
    let effects = effects.expect("words attend to regions");
    println!("\nimage 0 with `dog ball boat`: score {:.2}", effects.score);
    for (word, thing) in effects.words.iter().zip([0, 1, 9]) {
        let (adds, takes) = (word.effect.positive, word.effect.negative.unwrap_or(0.0));
        println!("  {:5} adds {adds:.2}, takes {takes:.2}", THINGS[thing]);
    }
    Ok(())
}
