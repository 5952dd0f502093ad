//! Whether the maps of words point at what the words name: a number to FNE's Figures 3 and 7, where a truth is known.
//!
//! ```text
//! hit(i, t, j) = [the centre of patch argmax_k m_jk lies in a box that word j of caption t has in image i]
//! share        = Σ hit / words,   chance = Σ (patches with their centre in such a box / patches) / words
//! ```
//!
//! over words that have a box, the first of equal patches being the largest: of the test split's annotated pairs, and of one
//! false negative a caption (the next image after its own of which it is true).
//!
//! # Departures
//! The paper shows pictures and prints no number.

use itm_core::encoders::PatchGrid;
use itm_core::learn::WordMaps;
use itm_core::scenes::Bounds;
use itm_core::significance::{Interval, resample};
use itm_core::{Relevance, Result};
use rayon::prelude::*;

use crate::report::{Pointed, Pointing, largest};
use crate::source::Source;
use crate::split::Split;

/// Pairs asked for at once.
const BLOCK: usize = 500;
/// Replicates of the bootstrap, and the seed of its draws: the same as for the recalls.
const REPLICATES: usize = 10_000;
const SEED: u64 = 0;

/// The words of one image.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Points {
    hits: u32,
    words: u32,
    chance: f64,
}

/// Every test image of a trained row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfImages {
    annotated: Vec<Points>,
    false_negatives: Vec<Points>,
}

impl Points {
    fn add(&mut self, map: &[f32], grid: PatchGrid, boxes: &[Bounds]) {
        let inside = |patch: usize| {
            let [x, y] = grid.centre(patch);
            boxes.iter().any(|b| (b.x1..=b.x2).contains(&x) && (b.y1..=b.y2).contains(&y))
        };
        self.words += 1;
        self.hits += u32::from(inside(largest(map)));
        self.chance += (0..grid.len()).filter(|&k| inside(k)).count() as f64 / grid.len() as f64;
    }
}

/// The next image after its own of which a caption is true, round and round; `None` if there is no other.
pub(crate) fn false_negative(truth: &Relevance, own: usize, text: usize) -> Option<usize> {
    let images = truth.images_of(text).iter().map(|&i| i as usize);
    let others = || images.clone().filter(|&i| i != own);
    others().find(|&i| i > own).or_else(|| others().next())
}

/// Points with every word of the test split that has a box, by the maps of pairs; `None` without patches or a truth.
///
/// # Errors
/// If a picture or a caption cannot be read.
pub(crate) fn measure(
    source: &Source,
    maps: impl Fn(&[(usize, usize)]) -> Result<Option<Vec<WordMaps>>>,
) -> Result<Option<OfImages>> {
    let (part, Some(truth)) = source.part(Split::Test) else { return Ok(None) };
    let own = |t: usize| (part.pairs.image_of(t), t);
    let mut annotated: Vec<_> = (0..part.pairs.texts()).map(own).collect();
    let other = |t: usize| Some((false_negative(truth, part.pairs.image_of(t), t)?, t));
    let mut others: Vec<_> = (0..part.pairs.texts()).filter_map(other).collect();
    let of = |pairs: &mut Vec<(usize, usize)>| -> Result<Option<Vec<Points>>> {
        pairs.sort_unstable(); // each image is encoded once, or twice at the end of a block
        let mut points = vec![Points::default(); part.pairs.images()];
        for block in pairs.chunks(BLOCK) {
            let Some(maps) = maps(block)? else { return Ok(None) };
            for (&(image, text), maps) in block.iter().zip(maps) {
                let grounded = source.grounded(Split::Test, image, text);
                for (map, truth) in maps.words.iter().zip(grounded) {
                    if map.word == truth.word && !truth.boxes.is_empty() {
                        points[image].add(&map.values, maps.grid, &truth.boxes);
                    }
                }
            }
        }
        Ok(Some(points))
    };
    let Some(annotated) = of(&mut annotated)? else { return Ok(None) };
    let false_negatives = of(&mut others)?.unwrap_or_default();
    Ok(Some(OfImages { annotated, false_negatives }))
}

/// Shares over all seeds of a row; `None` where no word has a box.
pub(crate) fn summary(runs: &[&OfImages]) -> Option<Pointing> {
    let of = |points: fn(&OfImages) -> &Vec<Points>| {
        pointed(&runs.iter().map(|run| points(run).as_slice()).collect::<Vec<_>>())
    };
    Some(Pointing {
        annotated: of(|run| &run.annotated)?,
        false_negatives: of(|run| &run.false_negatives),
    })
}

/// Ratios of sums; the interval resamples images and seeds, as the recalls' intervals do.
fn pointed(runs: &[&[Points]]) -> Option<Pointed> {
    let images = runs.first()?.len();
    let once = |group: usize| vec![1; group];
    let all = share(runs, &once(runs.len()), &once(images))?;
    let replicate = |r: u64| {
        let drawn = resample(&[runs.len(), images], SEED, r);
        share(runs, &drawn[0], &drawn[1]) // none if no image with a word was drawn
    };
    let shares = (0..REPLICATES as u64).into_par_iter().filter_map(replicate);
    let Interval { lo, hi } = Interval::percentile(shares.collect());
    let words = runs[0].iter().map(|p| u64::from(p.words)).sum();
    let chance = runs[0].iter().map(|p| p.chance).sum::<f64>() / words as f64;
    Some(Pointed { share: all, chance, ci95: [lo, hi], words })
}

/// Hits over words, runs and images counted as often as they were drawn.
fn share(runs: &[&[Points]], times: &[u32], drawn: &[u32]) -> Option<f64> {
    let (mut hits, mut words) = (0, 0);
    for (run, &times) in runs.iter().zip(times) {
        for (points, &drawn) in run.iter().zip(drawn) {
            let weight = u64::from(times) * u64::from(drawn);
            hits += weight * u64::from(points.hits);
            words += weight * u64::from(points.words);
        }
    }
    (words > 0).then(|| hits as f64 / words as f64)
}

#[cfg(test)]
mod tests;
