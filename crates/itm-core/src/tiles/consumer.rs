//! The trait that reads tiles.

use std::any::Any;
use std::ops::Range;

use super::kernel::ALIGN;
use super::pieces;

/// Reads scores tile by tile and keeps something small.
///
/// The engine cuts the matrix into lanes: rectangles that depend only on the shape of the matrix. One thread walks a
/// lane. It shows the tiles of each image from left to right, and the tiles of each text from top to bottom. Lanes are
/// merged in ascending order, one at a time.
///
/// Tiles begin at multiples of 64 images and texts. A consumer that sums in floating point must cut its sums at these
/// multiples, or its result depends on tile sizes. Integers, maxima and lists under a strict order need no such care.
///
/// ```
/// use std::ops::Range;
/// use itm_core::tiles::{Consumer, Embeddings, Tile, Tiles};
///
/// /// How many scores are positive.
/// struct Positive;
///
/// impl Consumer for Positive {
///     type State = usize;
///     type Output = usize;
///     fn start(&self, _images: Range<usize>, _texts: Range<usize>) -> usize { 0 }
///     fn tile(&self, count: &mut usize, tile: &Tile<'_>) {
///         *count += tile.rows().flat_map(|(_, row)| row).filter(|&&s| s > 0.0).count();
///     }
///     fn merge(&self, total: &mut usize, lane: usize) { *total += lane; }
///     fn finish(&self, total: usize) -> usize { total }
/// }
///
/// let v = Embeddings::new("images", 2, 1, &[1.0, -1.0])?;
/// let w = Embeddings::new("texts", 3, 1, &[1.0, 2.0, 0.0])?;
/// assert_eq!(Tiles::new(v, w)?.run(&Positive), 2);
/// # Ok::<(), itm_core::Error>(())
/// ```
pub trait Consumer<T = f32>: Sync {
    /// What a consumer keeps of a lane, and of the whole matrix.
    type State: Send;
    /// What [`Tiles::run`](super::Tiles::run) returns.
    type Output;

    /// The state before the first tile of these images and texts: a lane, or the whole matrix.
    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State;

    /// Shows a lane, before its first tile, the state of the lanes merged so far; these all come before it. Their number
    /// depends on threads: a hint may save work, but must not change the result.
    fn hint(&self, lane: &mut Self::State, total: &Self::State) {
        let _ = (lane, total);
    }

    /// Takes in one tile of the lane that `state` was started for.
    fn tile(&self, state: &mut Self::State, tile: &Tile<'_, T>);

    /// Adds a finished lane to the whole. Must not wait for other threads.
    fn merge(&self, total: &mut Self::State, lane: Self::State);

    /// The result, once every lane is in.
    fn finish(&self, total: Self::State) -> Self::Output;
}

/// Two consumers in one pass; nest for more.
impl<A: Consumer, B: Consumer> Consumer for (A, B) {
    type State = (A::State, B::State);
    type Output = (A::Output, B::Output);

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        (self.0.start(images.clone(), texts.clone()), self.1.start(images, texts))
    }

    fn hint(&self, lane: &mut Self::State, total: &Self::State) {
        self.0.hint(&mut lane.0, &total.0);
        self.1.hint(&mut lane.1, &total.1);
    }

    fn tile(&self, state: &mut Self::State, tile: &Tile<'_>) {
        self.0.tile(&mut state.0, tile);
        self.1.tile(&mut state.1, tile);
    }

    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        self.0.merge(&mut total.0, lane.0);
        self.1.merge(&mut total.1, lane.1);
    }

    fn finish(&self, total: Self::State) -> Self::Output {
        (self.0.finish(total.0), self.1.finish(total.1))
    }
}

/// Any number of like consumers in one pass, each with its output.
impl<C: Consumer> Consumer for Vec<C> {
    type State = Vec<C::State>;
    type Output = Vec<C::Output>;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
        self.iter().map(|c| c.start(images.clone(), texts.clone())).collect()
    }

    fn hint(&self, lane: &mut Self::State, total: &Self::State) {
        self.iter().zip(lane).zip(total).for_each(|((c, lane), total)| c.hint(lane, total));
    }

    fn tile(&self, state: &mut Self::State, tile: &Tile<'_>) {
        self.iter().zip(state).for_each(|(c, state)| c.tile(state, tile));
    }

    fn merge(&self, total: &mut Self::State, lane: Self::State) {
        self.iter().zip(total).zip(lane).for_each(|((c, total), lane)| c.merge(total, lane));
    }

    fn finish(&self, total: Self::State) -> Self::Output {
        self.iter().zip(total).map(|(c, total)| c.finish(total)).collect()
    }
}

/// A consumer behind a pointer, for sources of scores that are themselves behind a pointer:
/// [`Scored::visit`](crate::scored::Scored::visit).
pub type AnyConsumer<'a> = dyn Consumer<State = AnyState, Output = AnyState> + 'a;

/// The state of an [`AnyConsumer`].
pub type AnyState = Box<dyn Any + Send>;

const OWN: &str = "a consumer gets the states that it started";

/// Makes an [`AnyConsumer`] of every consumer. Its output is the state.
pub(crate) struct Boxed<'a, C: ?Sized>(pub(crate) &'a C);

impl<C: Consumer<State: 'static> + ?Sized> Consumer for Boxed<'_, C> {
    type State = AnyState;
    type Output = AnyState;

    fn start(&self, images: Range<usize>, texts: Range<usize>) -> AnyState {
        Box::new(self.0.start(images, texts))
    }

    fn hint(&self, lane: &mut AnyState, total: &AnyState) {
        self.0.hint(lane.downcast_mut().expect(OWN), total.downcast_ref().expect(OWN));
    }

    fn tile(&self, state: &mut AnyState, tile: &Tile<'_>) {
        self.0.tile(state.downcast_mut().expect(OWN), tile);
    }

    fn merge(&self, total: &mut AnyState, lane: AnyState) {
        self.0.merge(total.downcast_mut().expect(OWN), *lane.downcast().expect(OWN));
    }

    fn finish(&self, total: AnyState) -> AnyState {
        total
    }
}

/// A rectangle of scores.
#[derive(Debug, Clone)]
pub struct Tile<'s, T = f32> {
    images: Range<usize>,
    texts: Range<usize>,
    scores: &'s [T],
    stride: usize,
}

impl<'s, T> Tile<'s, T> {
    /// A tile over scores whose rows begin every `stride` values: for consumers that pass changed scores on.
    ///
    /// # Panics
    /// If a row is longer than `stride`, or `scores` is too short.
    pub fn new(images: Range<usize>, texts: Range<usize>, scores: &'s [T], stride: usize) -> Self {
        let (rows, cols) = (images.len(), texts.len());
        assert!(cols <= stride, "rows of {cols} scores every {stride} values");
        let last = rows.saturating_sub(1).saturating_mul(stride);
        let (need, got) = (last.saturating_add(if rows == 0 { 0 } else { cols }), scores.len());
        assert!(need <= got, "a tile of {rows} × {cols} needs {need} scores, not {got}");
        Self { images, texts, scores, stride }
    }

    /// The images of its rows.
    pub fn images(&self) -> Range<usize> {
        self.images.clone()
    }

    /// The texts of its columns.
    pub fn texts(&self) -> Range<usize> {
        self.texts.clone()
    }

    /// The scores of its `row`-th row, one for each of its texts.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'s [T] {
        assert!(row < self.images.len(), "row {row} of {:?}", self.images);
        &self.scores[row * self.stride..row * self.stride + self.texts.len()]
    }

    /// Image and scores of each row.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &'s [T])> {
        self.images.clone().enumerate().map(|(row, image)| (image, self.row(row)))
    }

    /// Its squares of 64 × 64 scores, row by row; smaller at the ends of the axes.
    pub(super) fn squares(&self) -> impl Iterator<Item = Self> {
        pieces(self.images(), ALIGN).flat_map(move |rows| {
            pieces(self.texts(), ALIGN).map(move |columns| {
                let above = (rows.start - self.images.start) * self.stride;
                let scores = &self.scores[above + columns.start - self.texts.start..];
                Self::new(rows.clone(), columns, scores, self.stride)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{everywhere, tiles, unit};
    use super::*;
    use crate::eval::Ranks;
    use crate::tiles::{ExpSums, Maxima, RankCounts, Side, Top};
    use crate::{Pairs, ScoreMatrix};

    #[test]
    fn two_consumers_in_one_pass() {
        let (v, w) = (unit(70, 8, 7), unit(90, 8, 8));
        let tiles = tiles(&v, &w, 8);
        let (largest, (top, sums)) =
            tiles.run(&(Maxima, (Top::new(Side::Images, 3), ExpSums::new(5.0))));
        assert_eq!(largest, tiles.run(&Maxima));
        assert_eq!(top, tiles.run(&Top::new(Side::Images, 3)));
        assert_eq!(sums, tiles.run(&ExpSums::new(5.0)));
        let many = tiles.run(&vec![Top::new(Side::Images, 3), Top::new(Side::Images, 1)]);
        assert_eq!(many, [top, tiles.run(&Top::new(Side::Images, 1))]);
    }

    /// The second pass of a correction: `2·s` minus one number per text, passed on tile by tile.
    struct Corrected<'a, C> {
        less: &'a [f32],
        inner: C,
    }

    impl<C: Consumer> Consumer for Corrected<'_, C> {
        type State = (Vec<f32>, C::State);
        type Output = C::Output;
        fn start(&self, images: Range<usize>, texts: Range<usize>) -> Self::State {
            (Vec::new(), self.inner.start(images, texts))
        }
        fn hint(&self, lane: &mut Self::State, total: &Self::State) {
            self.inner.hint(&mut lane.1, &total.1);
        }
        fn tile(&self, (scores, inner): &mut Self::State, tile: &Tile<'_>) {
            let less = &self.less[tile.texts()];
            let corrected = |(&s, &less): (&f32, &f32)| 2.0 * s - less;
            scores.clear();
            tile.rows().for_each(|(_, row)| scores.extend(row.iter().zip(less).map(corrected)));
            let width = tile.texts().len();
            self.inner.tile(inner, &Tile::new(tile.images(), tile.texts(), scores, width));
        }
        fn merge(&self, total: &mut Self::State, lane: Self::State) {
            self.inner.merge(&mut total.1, lane.1);
        }
        fn finish(&self, total: Self::State) -> Self::Output {
            self.inner.finish(total.1)
        }
    }

    #[test]
    fn a_consumer_may_hand_changed_scores_on() {
        let (n, m, d) = (100, 700, 12);
        let (v, w) = (unit(n, d, 1), unit(m, d, 2));
        let tiles = tiles(&v, &w, d);
        let pairs = Pairs::new(n, (0..m).map(|t| t % n).collect()).unwrap();
        let less = tiles.run(&Maxima).texts;

        let dense = tiles.scores();
        let values = dense.values().iter().enumerate().map(|(at, s)| 2.0 * s - less[at % m]);
        let dense = ScoreMatrix::new(n, m, values.collect()).unwrap();
        let want = Ranks::new(&dense, &pairs).unwrap();

        let texts: Vec<_> = (0..m).collect();
        let own = tiles.pair_scores(pairs.image_of_text(), &texts);
        let own: Vec<_> = own.iter().zip(&less).map(|(s, less)| 2.0 * s - less).collect();
        let second = Corrected { less: &less, inner: RankCounts::with_scores(&pairs, &own) };
        everywhere(&tiles, |tiles| {
            let got = tiles.run(&second);
            assert_eq!(got.images, want.i2t());
            assert_eq!(got.texts, want.t2i());
        });
    }

    #[test]
    #[should_panic(expected = "a tile of 2 × 3 needs 7 scores, not 6")]
    fn a_tile_checks_its_scores() {
        let _ = Tile::new(0..2, 0..3, &[0.0; 6], 4);
    }
}
