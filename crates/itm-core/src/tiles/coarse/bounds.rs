//! How far an integer score can be from the f32 score behind it, and what it decides therefore.

use super::super::kernel::roundings;
use super::super::{Embeddings, Side};
use super::side::{CoarseSide, Lengths};

/// Bounds on `|A B · s − q·r|` for all scores of a text, or of an image.
///
/// ```text
/// A B · v·w − q·r = q·(B w − r) + (A v − q)·B w          with  ‖q‖ ≤ ‖A v‖ + ‖A v − q‖
/// |s − v·w| ≤ γ ‖v‖ ‖w‖ + 2 d · 2⁻¹⁵⁰,   γ = j u / (1 − j u),  u = 2⁻²⁴
/// ```
///
/// | symbol | here | |
/// |---|---|---|
/// | s | the f32 score, as a tile holds it | |
/// | v, w | rows of images and texts, of width d | |
/// | q, r | their integers, with the scales A and B | [`CoarseSide`] |
/// | j | [`roundings`]: the roundings that a term of s passes through | |
///
/// The second line is the error of a sum in f32; its last term is for results below 2⁻¹²⁶, each wrong by 2⁻¹⁵⁰ at most. For one
/// text, the largest lengths bound the rows of all images, and the other way round.
#[derive(Debug)]
pub(in super::super) struct Bounds {
    pub(super) images: CoarseSide,
    pub(super) texts: CoarseSide,
    /// A B.
    scale: f64,
    gamma: f64,
    tiny: f64,
}

/// Covers the roundings of the bound itself, each below 10⁻¹⁵ and no more than a few hundred in a row.
const SLACK: f64 = 1.0 + 1e-9;

/// For each query, the integer scores that leave a comparison with a threshold open: `low ..= high`.
#[derive(Debug)]
pub(super) struct Thresholds {
    /// Below it, the score is smaller than the threshold.
    pub(super) low: Vec<i32>,
    /// Above it, the score is greater than the threshold.
    pub(super) high: Vec<i32>,
}

impl Bounds {
    /// `None` if a side has no scale.
    pub(super) fn new(images: &Embeddings<'_>, texts: &Embeddings<'_>) -> Option<Self> {
        let j = roundings(images.dim()) as f64 * f64::from(f32::EPSILON) / 2.0;
        let (images_side, texts_side) = (CoarseSide::new(images)?, CoarseSide::new(texts)?);
        let scale = f64::from(images_side.scale) * f64::from(texts_side.scale);
        Some(Self {
            images: images_side.with_rounded(images),
            texts: texts_side,
            scale,
            gamma: if j < 0.5 { j / (1.0 - j) } else { return None },
            tiny: 2.0 * images.dim() as f64 * 2f64.powi(-150) * scale,
        })
    }

    /// What integer scores say of one threshold per query. An infinite threshold is beyond every integer score: nothing is open
    /// then.
    pub(super) fn thresholds(&self, queries: Side, thresholds: &[f32]) -> Thresholds {
        let of = |(distance, threshold): (f64, &f32)| {
            let (at, far) = (f64::from(*threshold) * self.scale, distance + 1.0);
            // `as` keeps a number that is out of range at the range's end, which no integer score reaches.
            ((at - far).floor() as i32, (at + far).ceil() as i32)
        };
        let (low, high) = self.distances(queries).zip(thresholds).map(of).unzip();
        Thresholds { low, high }
    }

    /// The slack of each query: integer scores that differ by more stand in the right order. Both scores may be off by the
    /// distance, in opposite directions.
    pub(super) fn slack(&self, queries: Side) -> Vec<i32> {
        let of = |distance: f64| (2.0 * distance + 2.0).ceil() as i32; // a number beyond i32 stays at its end
        self.distances(queries).map(of).collect()
    }

    /// The largest distance of each query.
    fn distances(&self, queries: Side) -> impl Iterator<Item = f64> {
        let [own, other] = queries.of([&self.images, &self.texts], [&self.texts, &self.images]);
        own.rows.iter().map(move |row| match queries {
            Side::Images => self.distance(*row, other.largest),
            Side::Texts => self.distance(other.largest, *row),
        })
    }

    /// Which share of its bound the distance of one pair is.
    #[cfg(test)]
    pub(super) fn of_pair(&self, score: f64, sum: i32, image: usize, text: usize) -> f64 {
        let far = (score * self.scale - f64::from(sum)).abs();
        far / self.distance(self.images.rows[image], self.texts.rows[text])
    }

    /// The largest `|A B · s − q·r|` of an image and a text.
    fn distance(&self, image: Lengths, text: Lengths) -> f64 {
        let rounding = (image.exact + image.error) * text.error + image.error * text.exact;
        (rounding + self.gamma * image.exact * text.exact + self.tiny) * SLACK
    }
}
