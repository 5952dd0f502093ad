//! Bands of images: each band is computed, read and dropped.

use std::ops::Range;

use rayon::prelude::*;

use super::Scored;
use crate::eval::{CUTS, Contribution, MultiEvaluation, Ranks, check_pairs, measure, summarise};
use crate::tiles::{
    AnyConsumer, AnyState, BothSides, Consumer, RankCounts, Tile, best_items, pieces,
};
use crate::{Error, Pairs, Relevance, Result, ScoreMatrix, interrupt};

/// Images or texts whose scores are held at once.
const BAND: usize = 256;
/// Images and texts of a tile. Consumers cut their sums at multiples of 64.
const TILE: [usize; 2] = [64, 256];

/// Shows every score to a consumer, and holds the scores of [`BAND`] images in memory, but never the whole matrix.
///
/// # Errors
/// As [`Scored::block`], and as `check`, which is given each band and its first image.
fn read<S: Scored + ?Sized, C: Consumer + ?Sized>(
    scored: &S,
    consumer: &C,
    check: impl Fn(&ScoreMatrix, usize) -> Result<()>,
) -> Result<C::State> {
    let (n, m) = (scored.images(), scored.texts());
    let mut total = consumer.start(0..n, 0..m);
    for band in pieces(0..n, BAND) {
        interrupt::check();
        let scores = scored.block(band.clone(), 0..m)?;
        check(&scores, band.start)?;
        let begin = |images: Range<usize>| {
            let mut lane = consumer.start(images.clone(), 0..m);
            consumer.hint(&mut lane, &total);
            (images, lane)
        };
        let take = |(images, mut lane): (Range<usize>, C::State)| {
            for texts in pieces(0..m, TILE[1]) {
                let from = (images.start - band.start) * m + texts.start;
                let tile = Tile::new(images.clone(), texts, &scores.values()[from..], m);
                consumer.tile(&mut lane, &tile);
            }
            lane
        };
        let lanes: Vec<_> = pieces(band.clone(), TILE[0]).map(begin).collect();
        let lanes: Vec<_> = lanes.into_par_iter().map(take).collect();
        lanes.into_iter().for_each(|lane| consumer.merge(&mut total, lane));
    }
    Ok(total)
}

pub(super) fn visit_any<S: Scored + ?Sized>(
    scored: &S,
    consumer: &AnyConsumer,
) -> Result<AnyState> {
    read(scored, consumer, ScoreMatrix::check_finite)
}

pub(super) fn ranks<S: Scored + ?Sized>(scored: &S, pairs: &Pairs) -> Result<Ranks> {
    check_pairs((scored.images(), scored.texts()), pairs)?;
    let (images, texts) = pairs.list();
    let counts = RankCounts::with_scores(pairs, &scored.pairs(images, &texts)?);
    // Infinite scores have ranks, too.
    let total = read(scored, &counts, |_, _| Ok(()))?;
    let BothSides { images, texts, .. } = counts.finish(total);
    Ranks::from_counts(pairs.clone(), images, texts)
}

/// Bands of images, then bands of texts: every score is computed twice.
pub(super) fn evaluate_multi(
    scored: &dyn Scored,
    relevance: &Relevance,
) -> Result<MultiEvaluation> {
    let (n, m) = (scored.images(), scored.texts());
    let (images, texts) = (relevance.images(), relevance.texts());
    let expected = format!("{images} × {texts} scores");
    Error::unless((n, m) == (images, texts), "relevance", expected, format_args!("{n} × {m}"))?;
    let (mut i2t, mut t2i) = (Vec::with_capacity(n), Vec::with_capacity(m));
    for band in pieces(0..n, BAND) {
        interrupt::check();
        let scores = scored.block(band.clone(), 0..m)?;
        i2t.extend(queries(&scores, |row| relevance.texts_of(band.start + row)));
    }
    for band in pieces(0..m, BAND) {
        interrupt::check();
        let scores = scored.block(0..n, band.clone())?.transpose();
        t2i.extend(queries(&scores, |row| relevance.images_of(band.start + row)));
    }
    Ok(MultiEvaluation { i2t: summarise(&i2t)?, t2i: summarise(&t2i)? })
}

/// The rows of some scores as queries. Best items are needed to depth `max(R, 10)`.
fn queries<'a>(
    rows: &ScoreMatrix,
    truth: impl Fn(usize) -> &'a [u32] + Sync,
) -> Vec<Option<Contribution>> {
    let query = |row: usize| {
        let relevant = truth(row);
        let depth = relevant.len().max(CUTS[CUTS.len() - 1] as usize);
        (!relevant.is_empty()).then(|| measure(&best_items(rows.row(row), depth), relevant))
    };
    (0..rows.images()).into_par_iter().map(query).collect()
}
