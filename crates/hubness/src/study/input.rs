//! The inputs of a study: scores, pairs, names, held-out banks, the truth.

use std::borrow::Cow;

use itm_core::tiles::{Consumer, Embeddings, Tiles, TopK};
use itm_core::{Error, Pairs, Relevance, Result, ScoreMatrix};

use crate::rows::Length;
use crate::{Direction, Scores};

/// Where scores come from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Inner products of embeddings. Memory never holds all of them at once.
    Embeddings {
        /// One row per image.
        images: Embeddings<'a>,
        /// One row per text, of the same width.
        texts: Embeddings<'a>,
        /// Whether the products are cosines.
        length: Length,
    },
    /// A matrix of finite scores.
    Matrix(&'a ScoreMatrix),
    /// The scores of runs for at least one direction. Images are the rows in both directions. A pair that a run does not
    /// hold has −∞.
    Runs {
        /// Images are the queries.
        i2t: Option<&'a ScoreMatrix>,
        /// Texts are the queries.
        t2i: Option<&'a ScoreMatrix>,
    },
}

impl<'a> From<&'a ScoreMatrix> for Source<'a> {
    fn from(scores: &'a ScoreMatrix) -> Self {
        Self::Matrix(scores)
    }
}

impl<'a> Source<'a> {
    /// Number of images and number of texts.
    pub(crate) fn shape(&self) -> (usize, usize) {
        let of = |matrix: &ScoreMatrix| (matrix.images(), matrix.texts());
        match *self {
            Self::Embeddings { images, texts, .. } => (images.rows(), texts.rows()),
            Self::Matrix(matrix) => of(matrix),
            Self::Runs { i2t, t2i } => i2t.or(t2i).map_or((0, 0), of),
        }
    }

    /// Width of the embeddings.
    pub(crate) fn dim(&self) -> Option<usize> {
        match self {
            Self::Embeddings { images, .. } => Some(images.dim()),
            _ => None,
        }
    }

    /// The directions that have scores: for runs, only the given directions.
    pub(crate) fn directions(&self) -> Vec<Direction> {
        let asks = |direction: &Direction| match self {
            Self::Runs { i2t, t2i } => direction.queries(i2t, t2i).is_some(),
            _ => true,
        };
        Direction::BOTH.into_iter().filter(asks).collect()
    }

    /// Embeddings and matrices give one set of scores, runs give one set per direction.
    ///
    /// # Errors
    /// If embeddings do not fit together.
    pub(crate) fn parts(&self) -> Result<Vec<Part<'a>>> {
        let whole = |scores| Part { scores, directions: Direction::BOTH.to_vec(), floor: None };
        Ok(match *self {
            Self::Embeddings { images, texts, .. } => {
                vec![whole(Held::Tiles(Tiles::new(images, texts)?))]
            }
            Self::Matrix(matrix) => vec![whole(Held::Matrix(Cow::Borrowed(matrix)))],
            Self::Runs { i2t, t2i } => {
                let one = |(direction, run): (_, Option<_>)| Some(floored(run?, direction));
                let all = [(Direction::I2t, i2t), (Direction::T2i, t2i)].into_iter();
                all.filter_map(one).collect::<Result<_>>()?
            }
        })
    }
}

/// One set of scores, and the directions that are measured on it.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) scores: Held<'a>,
    pub(crate) directions: Vec<Direction>,
    /// A score at or below this value means that the run does not hold the pair.
    pub(crate) floor: Option<f32>,
}

/// A run's scores. Pairs that the run does not hold get a finite number below all other scores.
fn floored<'a>(run: &ScoreMatrix, direction: Direction) -> Result<Part<'a>> {
    let held = || run.values().iter().copied().filter(|s| s.is_finite());
    let (least, most) =
        (held().fold(f32::INFINITY, f32::min), held().fold(f32::NEG_INFINITY, f32::max));
    if least > most {
        return Err(Error::invalid(format!("run for {direction}"), "at least 1 finite score", 0));
    }
    let floor = least - 0.05 * (most - least).max(least.abs() * 1e-3).max(1e-6);
    let values = run.values().iter().map(|s| if s.is_finite() { *s } else { floor }).collect();
    let scores = Held::Matrix(Cow::Owned(ScoreMatrix::new(run.images(), run.texts(), values)?));
    Ok(Part { scores, directions: vec![direction], floor: Some(floor) })
}

/// Scores of either kind: tiles of embeddings, or a matrix.
#[derive(Debug)]
pub(crate) enum Held<'a> {
    Tiles(Tiles<'a>),
    Matrix(Cow<'a, ScoreMatrix>),
}

macro_rules! of_either {
    ($held:expr, $scores:ident => $value:expr) => {
        match $held {
            Held::Tiles($scores) => $value,
            Held::Matrix($scores) => $value,
        }
    };
}

impl Scores for Held<'_> {
    fn images(&self) -> usize {
        of_either!(self, scores => scores.images())
    }

    fn texts(&self) -> usize {
        of_either!(self, scores => scores.texts())
    }

    fn run<C: Consumer + ?Sized>(&self, consumer: &C) -> C::Output {
        of_either!(self, scores => scores.run(consumer))
    }

    fn nearest(&self, direction: Direction, k: usize) -> TopK {
        of_either!(self, scores => scores.nearest(direction, k))
    }

    fn pair_scores(&self, images: &[usize], texts: &[usize]) -> Vec<f32> {
        of_either!(self, scores => scores.pair_scores(images, texts))
    }

    fn rows(&self, direction: Direction, queries: &[usize]) -> Vec<f32> {
        of_either!(self, scores => scores.rows(direction, queries))
    }

    fn check_finite(&self) -> Result<()> {
        of_either!(self, scores => scores.check_finite())
    }
}

/// Scores, and the pairs that are right.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Images × texts.
    pub scores: Source<'a>,
    /// Which texts belong to which image.
    pub pairs: &'a Pairs,
}

impl<'a> Judged<'a> {
    /// Scores and pairs.
    pub fn new(scores: impl Into<Source<'a>>, pairs: &'a Pairs) -> Self {
        Self { scores: scores.into(), pairs }
    }

    /// The scores on which settings are chosen.
    ///
    /// # Errors
    /// If the scores come from runs, or do not fit the pairs.
    pub(crate) fn for_choosing(&self) -> Result<Part<'a>> {
        let place = "validation";
        self.check(place)?;
        match (self.scores, self.scores.parts()?.pop()) {
            (Source::Embeddings { .. } | Source::Matrix(_), Some(whole)) => Ok(whole),
            _ => Err(Error::invalid(place, "embeddings or a matrix", "runs")),
        }
    }

    /// Checks that scores and pairs fit together. `name` is the place in an error.
    ///
    /// # Errors
    /// If scores and pairs differ in the number of images or texts, a score of a matrix is not finite, an image is a query
    /// without a text, or an image has more than 65,535 texts.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let (pairs, directions) = (self.pairs, self.scores.directions());
        if directions.is_empty() {
            return Err(Error::invalid(name, "a run of at least one direction", "none"));
        }
        let shapes = match self.scores {
            Source::Runs { i2t: Some(i2t), t2i: Some(t2i) } => {
                vec![Source::Matrix(i2t).shape(), Source::Matrix(t2i).shape()]
            }
            one => vec![one.shape()],
        };
        for (images, texts) in shapes {
            same(name, (images, texts), pairs)?;
        }
        if let Source::Matrix(matrix) = self.scores
            && let Some(at) = matrix.values().iter().position(|score| !score.is_finite())
        {
            let place =
                format!("{name}, image {}, text {}", at / matrix.texts(), at % matrix.texts());
            return Err(Error::invalid(place, "a finite score", matrix.values()[at]));
        }
        let i2t = directions.contains(&Direction::I2t);
        for image in 0..pairs.images() {
            let place = || format!("{name}, image {image}");
            let texts = pairs.texts_of(image).len();
            if texts == 0 && i2t {
                let expected = "a text for every query image";
                return Err(Error::invalid(place(), expected, "none"));
            }
            if texts > usize::from(u16::MAX) {
                let expected = format!("at most {} texts per image", u16::MAX);
                return Err(Error::invalid(place(), expected, texts));
            }
        }
        Ok(())
    }
}

fn same(name: &str, (images, texts): (usize, usize), pairs: &Pairs) -> Result<()> {
    if (images, texts) == (pairs.images(), pairs.texts()) {
        return Ok(());
    }
    let expected = format!("{} images and {} texts, as the pairs", pairs.images(), pairs.texts());
    Err(Error::invalid(name, expected, format!("{images} and {texts}")))
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Test<'a> {
    /// Scores and pairs.
    pub set: Judged<'a>,
    /// Names of hubs and victims. The names of images also decide the folds.
    pub names: &'a Names,
    /// Held-out embeddings, for corrections that are fitted on them.
    pub banks: Banks<'a>,
    /// True matches beyond the pairs, which tell deserved hubs from other hubs.
    pub truth: Option<&'a Relevance>,
}

impl<'a> Test<'a> {
    /// Only scores and pairs.
    pub fn new(scores: impl Into<Source<'a>>, pairs: &'a Pairs) -> Self {
        static NOBODY: Names = Names { images: None, texts: None };
        let set = Judged::new(scores, pairs);
        Self { set, names: &NOBODY, banks: Banks::default(), truth: None }
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.set.check("scores")?;
        let pairs = self.set.pairs;
        for (place, names, count) in [
            ("names of images", &self.names.images, pairs.images()),
            ("names of texts", &self.names.texts, pairs.texts()),
        ] {
            if let Some(names) = names.as_ref().filter(|names| names.len() != count) {
                return Err(Error::invalid(place, count, names.len()));
            }
        }
        self.truth.map_or(Ok(()), |truth| same("truth", (truth.images(), truth.texts()), pairs))?;
        self.banks.check()
    }
}

/// Names of images and texts, if they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// One per image.
    pub images: Option<Vec<String>>,
    /// One per text.
    pub texts: Option<Vec<String>>,
}

impl Names {
    /// The name of an image; its number if it has none.
    pub fn image(&self, image: usize) -> String {
        self.images.as_ref().map_or_else(|| image.to_string(), |names| names[image].clone())
    }

    /// The name of a text; its number if it has none.
    pub fn text(&self, text: usize) -> String {
        self.texts.as_ref().map_or_else(|| text.to_string(), |names| names[text].clone())
    }
}

/// Held-out embeddings of both sides or of neither, of the same width as the test embeddings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Banks<'a> {
    /// Images: queries for the test texts.
    pub images: Option<Embeddings<'a>>,
    /// Texts: queries for the test images.
    pub texts: Option<Embeddings<'a>>,
}

impl<'a> Banks<'a> {
    /// Whether a direction has a bank of queries.
    pub(crate) fn has(&self, direction: Direction) -> bool {
        direction.queries(self.images, self.texts).is_some()
    }

    /// Checks that both sides have a bank, or neither: a row of a study has both directions.
    fn check(&self) -> Result<()> {
        let missing = match (self.images, self.texts) {
            (Some(_), None) => "bank_texts",
            (None, Some(_)) => "bank_images",
            _ => return Ok(()),
        };
        let expected = "banks of both sides: every row has both directions";
        Err(Error::invalid(missing, expected, "none"))
    }

    /// Scores of bank queries with test items; images are the rows.
    pub(crate) fn queries(&self, test: &Source<'a>, direction: Direction) -> Result<Tiles<'a>> {
        self.of(direction, test, direction)
    }

    /// Scores of bank items with test items; the bank takes the place of the queries.
    pub(crate) fn items(&self, test: &Source<'a>, direction: Direction) -> Result<Tiles<'a>> {
        self.of(direction.reversed(), test, direction)
    }

    /// Scores of `direction`. The bank of the queries of direction `side` takes the place of the queries.
    fn of(&self, side: Direction, test: &Source<'a>, direction: Direction) -> Result<Tiles<'a>> {
        let Source::Embeddings { images, texts, .. } = *test else {
            return Err(Error::invalid("a bank", "embeddings to compare it with", "scores"));
        };
        let name = side.queries("bank_images", "bank_texts");
        let bank = side.queries(self.images, self.texts);
        let bank = bank.ok_or_else(|| Error::invalid(name, "held-out embeddings", "none"))?;
        match direction {
            Direction::I2t => Tiles::new(bank, texts),
            Direction::T2i => Tiles::new(images, bank),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_finite_score_is_named() {
        let run = ScoreMatrix::from_rows([[f32::NEG_INFINITY; 2]; 2]);
        let line = floored(&run, Direction::I2t).unwrap_err().to_string();
        assert_eq!(line, "run for i2t: expected at least 1 finite score, got 0");
    }
}
