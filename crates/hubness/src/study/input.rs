//! The inputs of a study: scores, pairs, names, held-out banks, the truth.

use itm_core::scored::{EmbeddingRows, Scored, Similarity};
use itm_core::tiles::{Embeddings, Tiles};
use itm_core::{Error, Pairs, Relevance, Result, ScoreMatrix};

use crate::report::PerDirection;
use crate::rows::Length;
use crate::words::count;
use crate::{AnyCorrection, Direction, Rescore, pass};

/// The scores of a test set.
#[derive(Clone, Copy)]
pub enum TestScores<'a> {
    /// All scores, for both directions.
    All(&'a dyn Scored),
    /// The scores of runs for at least one direction. Images are the rows in both directions. A pair with −∞ is not in the run: it comes
    /// last, and corrections are fitted on a number 5 % of the run's range below its least score. The range counts as at least a thousandth of the
    /// size of that score, and at least 1e-6.
    Runs(&'a PerDirection<ScoreMatrix>),
}

impl<'a> TestScores<'a> {
    /// Number of images and number of texts.
    pub(crate) fn shape(&self) -> (usize, usize) {
        match *self {
            Self::All(scores) => (scores.images(), scores.texts()),
            Self::Runs(PerDirection { i2t, t2i }) => {
                i2t.as_ref().or(t2i.as_ref()).map_or((0, 0), |run| (run.images(), run.texts()))
            }
        }
    }

    /// The embeddings behind the scores, if the scores are their products.
    pub(crate) fn cosine_rows(&self) -> Option<&'a EmbeddingRows> {
        let Self::All(scores) = *self else { return None };
        cosine_rows(scores)
    }

    /// The directions that have scores: for runs, only the given directions.
    pub(crate) fn directions(&self) -> Vec<Direction> {
        let measured = |direction: &Direction| match self {
            Self::All(_) => true,
            Self::Runs(runs) => runs.get(*direction).is_some(),
        };
        Direction::BOTH.into_iter().filter(measured).collect()
    }

    /// The sets of scores that are measured: one for both directions, or one for each run.
    ///
    /// # Errors
    /// If a run has no finite score, or a score of +∞.
    pub(crate) fn sets(&self) -> Result<Vec<ScoreSet<'a>>> {
        let runs = match *self {
            Self::All(scores) => return Ok(vec![ScoreSet::whole(scores)]),
            Self::Runs(runs) => runs,
        };
        let of = |direction| Some(ScoreSet::of_run(runs.get(direction)?, direction));
        Direction::BOTH.into_iter().filter_map(of).collect()
    }
}

fn cosine_rows(scores: &dyn Scored) -> Option<&EmbeddingRows> {
    scores.rows().filter(|rows| rows.similarity == Similarity::Cosine)
}

/// One set of scores, and the directions that are measured on it.
pub(crate) struct ScoreSet<'a> {
    pub(super) given: &'a dyn Scored,
    /// The scores of a run, where pairs that the run does not hold have a finite number below all other scores.
    pub(super) run: Option<ScoreMatrix>,
    pub(crate) directions: Vec<Direction>,
    /// A score at or below this value means that the run does not hold the pair.
    pub(crate) floor: Option<f32>,
}

impl<'a> ScoreSet<'a> {
    pub(crate) fn whole(scores: &'a dyn Scored) -> Self {
        Self { given: scores, run: None, directions: Direction::BOTH.to_vec(), floor: None }
    }

    fn of_run(run: &'a ScoreMatrix, direction: Direction) -> Result<Self> {
        let held = || run.values().iter().copied().filter(|&s| s > f32::NEG_INFINITY);
        let (least, most) =
            (held().fold(f32::INFINITY, f32::min), held().fold(f32::NEG_INFINITY, f32::max));
        let place = format_args!("run for {direction}");
        Error::unless(least <= most, place, "at least 1 finite score", 0)?;
        Error::unless(most < f32::INFINITY, place, "scores below +∞", most)?;
        let floor = least - 0.05 * (most - least).max(least.abs() * 1e-3).max(1e-6);
        let values = run.values().iter().map(|s| if s.is_finite() { *s } else { floor }).collect();
        let finite = Some(ScoreMatrix::new(run.images(), run.texts(), values)?);
        Ok(Self { given: run, run: finite, directions: vec![direction], floor: Some(floor) })
    }

    /// What a report says of pairs that the run does not hold, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        let (run, floor) = self.run.as_ref().zip(self.floor)?;
        let lacks = run.values().iter().filter(|&&score| score <= floor).count();
        let (direction, all) = (self.directions[0], count(run.values().len(), "pair"));
        (lacks > 0).then(|| format!(
            "{direction}: {lacks} of {all} are not in the run; they count as {floor}, below every score, and corrections are fitted on them"
        ))
    }

    pub(crate) fn scores(&self) -> &dyn Scored {
        self.run.as_ref().map_or(self.given, |run| run as &dyn Scored)
    }

    /// The correction of the pairs that a run holds: all other pairs come last, with −∞.
    pub(crate) fn held(&self, correction: AnyCorrection) -> AnyCorrection {
        let Some(floor) = self.floor else { return correction };
        correction.mapped(|inner| Box::new(OfRun { floor, inner }))
    }
}

/// A correction of the pairs that a run holds. All other pairs come last, whatever the correction.
#[derive(Debug)]
struct OfRun {
    floor: f32,
    inner: Box<dyn Rescore>,
}

impl Rescore for OfRun {
    fn rescore(&self, query: usize, item: usize, score: f32) -> f64 {
        if score <= self.floor {
            return f64::NEG_INFINITY;
        }
        self.inner.rescore(query, item, score)
    }

    fn items(&self) -> usize {
        self.inner.items()
    }

    fn queries(&self) -> Option<usize> {
        self.inner.queries()
    }
}

/// The scores on which settings are chosen, and the pairs that are right.
#[derive(Clone, Copy)]
pub struct Validation<'a> {
    /// Images × texts.
    pub scores: &'a dyn Scored,
    /// Which texts belong to which image.
    pub pairs: &'a Pairs,
}

impl Validation<'_> {
    /// # Errors
    /// As [`check`], with the place "validation".
    pub(crate) fn check(&self) -> Result<()> {
        let shape = (self.scores.images(), self.scores.texts());
        check("validation", shape, self.pairs, &Direction::BOTH)
    }
}

/// Checks that scores of a shape and pairs fit together. `name` is the place in an error.
///
/// # Errors
/// If scores and pairs differ in the number of images or texts, an image is a query without a text, nothing in judged pairs is true,
/// or an image has more than 65,535 texts.
fn check(name: &str, shape: (usize, usize), pairs: &Pairs, directions: &[Direction]) -> Result<()> {
    pass::check(name, shape, pairs)?;
    let i2t = directions.contains(&Direction::I2t);
    for image in 0..pairs.images() {
        let place = format_args!("{name}, image {image}");
        let texts = pairs.texts_of(image).len();
        let fits = texts > 0 || !i2t || pairs.is_judged();
        Error::unless(fits, place, "a text for every query image", "none")?;
        let expected = format_args!("at most {} texts per image", u16::MAX);
        Error::unless(texts <= usize::from(u16::MAX), place, expected, texts)?;
    }
    let paired = (0..pairs.texts()).any(|text| !pairs.images_of(text).is_empty());
    Error::unless(paired, name, "at least one true pair", "none")
}

/// What is measured.
#[derive(Clone, Copy)]
pub struct Test<'a> {
    /// The scores of the test set.
    pub scores: TestScores<'a>,
    /// Which texts belong to which image.
    pub pairs: &'a Pairs,
    /// The length of embeddings, where scores are their products ([`Scored::rows`]): only unit rows give cosines.
    pub length: Length,
    /// Names of hubs and victims. The names of images also decide the folds.
    pub names: &'a ItemNames,
    /// Held-out embeddings, for corrections that are fitted on them.
    pub banks: Banks<'a>,
    /// True matches beyond the pairs, which tell deserved hubs from other hubs.
    pub truth: Option<&'a Relevance>,
}

impl<'a> Test<'a> {
    /// Scores and pairs. The rows of embeddings count as unit rows.
    pub fn new(scores: &'a dyn Scored, pairs: &'a Pairs) -> Self {
        static NOBODY: ItemNames = ItemNames { images: None, texts: None };
        let (scores, length, banks) = (TestScores::All(scores), Length::Unit, Banks::default());
        Self { scores, pairs, length, names: &NOBODY, banks, truth: None }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let (pairs, directions) = (self.pairs, self.scores.directions());
        let expected = "a run of at least one direction";
        Error::unless(!directions.is_empty(), "scores", expected, "none")?;
        if let TestScores::Runs(PerDirection { i2t: Some(_), t2i: Some(t2i) }) = self.scores {
            pass::check("scores", (t2i.images(), t2i.texts()), pairs)?;
        }
        check("scores", self.scores.shape(), pairs, &directions)?;
        for (place, names, count) in [
            ("names of images", &self.names.images, pairs.images()),
            ("names of texts", &self.names.texts, pairs.texts()),
        ] {
            let got = names.as_ref().map_or(count, Vec::len);
            Error::unless(got == count, place, count, got)?;
        }
        let of_truth = |t: &Relevance| pass::check("truth", (t.images(), t.texts()), pairs);
        self.truth.map_or(Ok(()), of_truth)?;
        self.banks.check()
    }
}

/// Names of images and texts, if they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemNames {
    /// One per image.
    pub images: Option<Vec<String>>,
    /// One per text.
    pub texts: Option<Vec<String>>,
}

impl ItemNames {
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

    /// Scores with the test items of `direction`; images are the rows. The bank of the queries of direction `side` takes the
    /// place of the queries.
    pub(crate) fn scores(
        &self,
        side: Direction,
        test: &'a dyn Scored,
        direction: Direction,
    ) -> Result<Tiles<'a>> {
        let Some(rows) = cosine_rows(test) else {
            return Err(Error::invalid("a bank", "embeddings to compare it with", "scores"));
        };
        let name = side.queries("bank_images", "bank_texts");
        let bank = side.queries(self.images, self.texts);
        let bank = bank.ok_or_else(|| Error::invalid(name, "held-out embeddings", "none"))?;
        let view = |name: &str, values: &'a [f32]| {
            Embeddings::new(name, values.len().checked_div(rows.dim).unwrap_or(0), rows.dim, values)
        };
        match direction {
            Direction::I2t => Tiles::new(bank, view("texts", &rows.texts)?),
            Direction::T2i => Tiles::new(view("images", &rows.images)?, bank),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_finite_scores_is_named() {
        for (row, want) in [
            ([f32::NEG_INFINITY; 2], "at least 1 finite score, got 0"),
            ([f32::INFINITY, 0.5], "scores below +∞, got inf"),
        ] {
            let run = ScoreMatrix::from_rows([row; 2]);
            let line = ScoreSet::of_run(&run, Direction::I2t).err().unwrap().to_string();
            assert_eq!(line, format!("run for i2t: expected {want}"));
        }
    }

    /// 5 % of the range 2; of a thousandth of the score 4; of 1e-6.
    #[test]
    fn what_a_run_lacks_is_below_its_least_score() {
        for (scores, want) in [([1.0, 3.0], 0.9), ([4.0, 4.0], 3.9998), ([0.0, 0.0], -5e-8)] {
            let run = ScoreMatrix::from_rows([[scores[0], scores[1], f32::NEG_INFINITY]]);
            let set = ScoreSet::of_run(&run, Direction::I2t).unwrap();
            let floor = set.floor.unwrap();
            assert!((floor - want).abs() <= f32::EPSILON * want.abs(), "{floor}");
        }
    }
}
