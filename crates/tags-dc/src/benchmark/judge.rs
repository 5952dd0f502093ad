//! Which questions a score answers.

use std::collections::BTreeMap;

use itm_core::significance::{Share, per_image};
use itm_core::{Error, Result};
use serde::Serialize;

use super::{Ask, Benchmark, Category, Question};

/// What is measured of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The true caption beats the false ones.
    Accuracy,
    /// Winoground: each picture prefers its caption.
    Text,
    /// Winoground: each caption prefers its picture.
    Image,
    /// Winoground: both.
    Group,
}

/// One measure of some questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The category; `None` for all questions.
    pub category: Option<Category>,
    /// The subset; `None` for all questions of the category.
    pub subset: Option<String>,
    /// What is measured.
    pub measure: Measure,
    /// Share of questions that are right. The interval resamples images.
    pub right: Share,
    /// The mean share of a score that is drawn at random.
    pub chance: f64,
    /// Questions that are wrong only because of equal scores.
    pub ties: u64,
}

/// A question's answer.
#[derive(Clone, Copy)]
pub(super) struct Grade {
    pub(super) right: bool,
    tie: bool,
    chance: f64,
}

impl Grade {
    /// `margins`: by how much each right score is above its rival; chance is given.
    fn of(margins: &[f64], chance: f64) -> Self {
        let right = margins.iter().all(|&margin| margin > 0.0);
        Self { right, tie: !right && margins.iter().all(|&margin| margin >= 0.0), chance }
    }
}

/// The image of each question, and whether it is right, with ties and the sum of chances.
#[derive(Default)]
struct LineCounts {
    right: Vec<(usize, bool)>,
    ties: u64,
    chance: f64,
}

impl Benchmark {
    /// Judges a score of pictures and captions: a line for all questions, for each category and for each subset.
    ///
    /// # Errors
    /// If there are no questions, or a score is not finite; the error names picture and caption.
    ///
    /// # Panics
    /// If a question has no caption, or names a picture or caption that the benchmark does not have.
    pub fn judge(&self, score: impl Fn(usize, usize) -> f64) -> Result<Vec<Line>> {
        let fits = !self.questions.is_empty();
        Error::unless(fits, "the benchmark", "at least one question", "none")?;
        let finite = |picture: usize, caption: usize| {
            let score = score(picture, caption);
            if score.is_finite() {
                return Ok(score);
            }
            let [picture, caption] = [&self.pictures[picture].name, &self.captions[caption]];
            let place = format!("the score of {picture:?} and {caption:?}");
            Err(Error::invalid(place, "a finite number", score))
        };
        let (images, units) = self.units();
        let mut counts: BTreeMap<_, LineCounts> = BTreeMap::new();
        for (question, image) in self.questions.iter().zip(images) {
            for (measure, mark) in question.marks(finite)? {
                let (category, subset) = (Some(question.category), Some(question.subset.clone()));
                for of in [(None, None), (category, None), (category, subset)] {
                    let counts = counts.entry((of, measure)).or_default();
                    counts.right.push((image, mark.right));
                    counts.ties += u64::from(mark.tie);
                    counts.chance += mark.chance;
                }
            }
        }
        let line = |(((category, subset), measure), counts): (_, LineCounts)| {
            let right = Share::over(&[per_image(units, counts.right)]).expect("a question");
            let chance = counts.chance / right.of as f64;
            Line { category, subset, measure, right, chance, ties: counts.ties }
        };
        Ok(counts.into_iter().map(line).collect())
    }

    /// The image of each question, and the number of images. Parts of one file are one image; both pictures of a pair are one image.
    fn units(&self) -> (Vec<usize>, usize) {
        let mut numbers = BTreeMap::new();
        let of = |question: &Question| {
            let picture = match &question.ask {
                Ask::Caption { picture, .. } => *picture,
                Ask::Pairs { pictures, .. } => pictures[0],
            };
            let next = numbers.len();
            *numbers.entry(&self.pictures[picture].file).or_insert(next)
        };
        let images = self.questions.iter().map(of).collect();
        (images, numbers.len())
    }
}

impl Question {
    pub(super) fn marks(
        &self,
        score: impl Fn(usize, usize) -> Result<f64>,
    ) -> Result<Vec<(Measure, Grade)>> {
        match &self.ask {
            Ask::Caption { picture, captions } => {
                let own = score(*picture, captions[0])?;
                let margin = |&caption: &usize| Ok(own - score(*picture, caption)?);
                let margins: Vec<f64> = captions[1..].iter().map(margin).collect::<Result<_>>()?;
                Ok(vec![(Measure::Accuracy, Grade::of(&margins, 1.0 / captions.len() as f64))])
            }
            Ask::Pairs { pictures: [v0, v1], captions: [w0, w1] } => {
                let [s00, s01, s10, s11] =
                    [score(*v0, *w0)?, score(*v0, *w1)?, score(*v1, *w0)?, score(*v1, *w1)?];
                let (text, image) = ([s00 - s01, s11 - s10], [s00 - s10, s11 - s01]);
                let group = [text, image].concat();
                Ok(vec![
                    (Measure::Text, Grade::of(&text, 0.25)),
                    (Measure::Image, Grade::of(&image, 0.25)),
                    (Measure::Group, Grade::of(&group, 1.0 / 6.0)),
                ])
            }
        }
    }
}
