//! Ranks from bands of images: each band is computed, counted and dropped.

use std::ops::Range;

use rayon::prelude::*;

use super::Scored;
use crate::eval::Ranks;
use crate::tiles::{Consumer, RankCounts, Standings, Tile};
use crate::{Error, Pairs, Result};

/// Images whose scores are held at once.
const BAND: usize = 256;
/// Images that one thread counts at a time.
const LANE: usize = 32;

/// Holds the scores of [`BAND`] images and the counts in memory, but never the whole matrix.
pub(super) fn ranks<S: Scored + ?Sized>(scored: &S, pairs: &Pairs) -> Result<Ranks> {
    let (n, m) = (scored.images(), scored.texts());
    if (n, m) != (pairs.images(), pairs.texts()) {
        let expected = format!("{} × {} scores, as the pairs", pairs.images(), pairs.texts());
        return Err(Error::invalid("ranks", expected, format!("{n} × {m}")));
    }
    let texts: Vec<usize> = (0..m).collect();
    let counts = RankCounts::with_scores(pairs, scored.pairs(pairs.image_of_text(), &texts)?);
    let mut total = counts.start(0..n, 0..m);
    for band in pieces(0..n, BAND) {
        let scores = scored.block(band.clone(), 0..m)?;
        let count = |images: Range<usize>| {
            let mut lane = counts.start(images.clone(), 0..m);
            let from = (images.start - band.start) * m;
            counts.tile(&mut lane, &Tile::new(images, 0..m, &scores.values()[from..], m));
            lane
        };
        let lanes: Vec<_> = pieces(band.clone(), LANE).collect();
        let lanes: Vec<_> = lanes.into_par_iter().map(count).collect();
        lanes.into_iter().for_each(|lane| counts.merge(&mut total, lane));
    }
    let Standings { i2t, t2i } = counts.finish(total);
    Ranks::from_counts(pairs.clone(), i2t, t2i)
}

fn pieces(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length).map(move |start| start..(start + length).min(end))
}
