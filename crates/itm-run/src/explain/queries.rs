//! Queries of a split, and the unannotated items that a posterior takes for matches: FNE's Figure 6, for any row with a
//! posterior.

use std::cmp::Ordering;

use itm_core::learn::MatchProbability;
use itm_core::scored::Scored;
use itm_core::{Error, Result, ScoreMatrix};

use crate::cli;
use crate::report::{Example, Item, Mark, RankedItem};
use crate::source::Source;
use crate::split::Split;

/// Items shown for a query.
pub(super) const ANSWERS: usize = 5;

/// An item that may match a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// Its number in the split.
    pub(super) item: usize,
    /// Similarity to the query.
    pub(super) similarity: f64,
    /// P(match | similarity).
    pub(super) probability: f64,
}

/// Image queries and caption queries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Queries {
    /// Numbers of images.
    pub(super) images: Vec<usize>,
    /// Numbers of captions.
    pub(super) captions: Vec<usize>,
}

impl Queries {
    /// `count` queries of each kind, spread evenly over a split.
    pub(super) fn spread(source: &Source, split: Split, count: usize) -> Self {
        let pairs = &source.part(split).0.pairs;
        let of = |all: usize| {
            let count = count.min(all);
            (0..count).map(|k| (2 * k + 1) * all / (2 * count)).collect()
        };
        Self { images: of(pairs.images()), captions: of(pairs.texts()) }
    }

    /// The queries that the command line names, or else spread ones.
    ///
    /// # Errors
    /// The first number that the split does not have.
    pub(super) fn of(source: &Source, split: Split, args: &cli::Explain) -> Result<Self> {
        let of = |numbers: &Option<Vec<usize>>| numbers.clone().unwrap_or_default();
        let given = Self { images: of(&args.images), captions: of(&args.captions) };
        let queries = match given == Self::default() {
            true => Self::spread(source, split, args.queries),
            false => given,
        };
        queries.check(source, split)?;
        Ok(queries)
    }

    fn check(&self, source: &Source, split: Split) -> Result<()> {
        let pairs = &source.part(split).0.pairs;
        for (option, numbers, all) in [
            ("--images", &self.images, pairs.images()),
            ("--captions", &self.captions, pairs.texts()),
        ] {
            if let Some(wrong) = numbers.iter().find(|&&n| n >= all) {
                return Err(Error::invalid(option, format!("numbers below {all}"), wrong));
            }
        }
        Ok(())
    }
}

/// The most probable false negatives of each query, most probable first. Scores are probabilities.
pub(super) fn false_negatives(
    row: &str,
    scored: &dyn Scored,
    posterior: &MatchProbability,
    source: &Source,
    (split, queries): (Split, &Queries),
) -> Result<Vec<Example>> {
    let (part, truth) = source.part(split);
    let pairs = &part.pairs;
    let image = |i: usize| Item::Image(source.picture(split, i));
    let caption = |t: usize| Item::Caption(part.captions[t].clone());
    let mark = |i: usize, t: usize| match truth.is_some_and(|truth| truth.contains(i, t)) {
        true => Mark::TrueNotAnnotated,
        false => Mark::Other,
    };
    let example = |query, found: Vec<Candidate>, answer: &dyn Fn(usize) -> (Item, Mark)| Example {
        row: row.into(),
        query,
        answers: found
            .iter()
            .map(|c| {
                let (item, mark) = answer(c.item);
                RankedItem { item, score: c.probability, mark }
            })
            .collect(),
        annotated_rank: None,
    };
    let (n, m) = (scored.images(), scored.texts());
    let of_images = queries.images.iter().map(|&i| {
        let others = |t: usize| pairs.image_of(t) != i;
        let found = most_probable(&scored.block(i..i + 1, 0..m)?, posterior, others);
        Ok(example(image(i), found, &|t| (caption(t), mark(i, t))))
    });
    let of_captions = queries.captions.iter().map(|&t| {
        let others = |i: usize| pairs.image_of(t) != i;
        let found = most_probable(&scored.block(0..n, t..t + 1)?, posterior, others);
        Ok(example(caption(t), found, &|i| (image(i), mark(i, t))))
    });
    of_images.chain(of_captions).collect()
}

/// The items of largest probability, then of largest similarity, then of smallest number.
fn most_probable(
    similarities: &ScoreMatrix,
    posterior: &MatchProbability,
    keep: impl Fn(usize) -> bool,
) -> Vec<Candidate> {
    let items = similarities.values().iter().map(|&s| f64::from(s)).enumerate();
    let candidate = |(item, similarity): (usize, f64)| Candidate {
        item,
        similarity,
        probability: (posterior.of)(similarity),
    };
    let mut all: Vec<_> = items.filter(|(item, _)| keep(*item)).map(candidate).collect();
    let order = |a: &Candidate, b: &Candidate| -> Ordering {
        b.probability
            .total_cmp(&a.probability)
            .then(b.similarity.total_cmp(&a.similarity))
            .then(a.item.cmp(&b.item))
    };
    all.sort_by(order);
    all.truncate(ANSWERS);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    fn step(cut: f64) -> MatchProbability {
        MatchProbability { prior: 0.5, of: Box::new(move |s| if s > cut { 0.9 } else { 0.1 }) }
    }

    /// By hand: similarities 0, 1, 0.75, 0.75, 0.6; the second is masked; above 0.7 all have 0.9.
    #[test]
    fn by_probability_then_similarity_then_number() {
        let items = ScoreMatrix::from_rows([[0.0, 1.0, 0.75, 0.75, 0.6]]);
        let found = most_probable(&items, &step(0.7), |item| item != 1);
        let seen: Vec<_> = found.iter().map(|c| (c.item, c.probability)).collect();
        assert_eq!(seen, [(2, 0.9), (3, 0.9), (4, 0.1), (0, 0.1)]);
        // The posterior decides: one that falls with the similarity reverses the order.
        let falling = MatchProbability { prior: 0.5, of: Box::new(|s| 1.0 - s) };
        let first = most_probable(&items, &falling, |_| true)[0];
        assert_eq!((first.item, first.similarity), (0, 0.0));
    }

    #[test]
    fn annotated_items_are_no_answers_and_true_ones_are_marked() {
        let source = tests::small_scenes([8, 4, 12]).1;
        // All scores are equal, so all items are equally probable, and the smallest numbers come first.
        let scores = ScoreMatrix::new(12, 60, vec![1.0; 12 * 60]).unwrap();
        let queries = Queries { images: vec![0, 3], captions: vec![7] };
        let found =
            false_negatives("Full", &scores, &step(0.5), &source, (Split::Test, &queries)).unwrap();
        assert_eq!(found.len(), 3);
        let truth = &source.truth.as_ref().unwrap().test;
        let test = &source.dataset.test;
        for (example, first) in [(&found[0], 5), (&found[1], 0)] {
            assert!(matches!(example.query, Item::Image(_)) && example.answers.len() == 5);
            for (k, answer) in example.answers.iter().enumerate() {
                let text = Item::Caption(test.captions[first + k].clone());
                let Item::Caption(got) = &answer.item else { panic!("captions") };
                assert!(matches!(&text, Item::Caption(want) if want == got), "{got}");
                assert_eq!(answer.score, 0.9);
                let image = if first == 5 { 0 } else { 3 };
                let is_true = answer.mark == Mark::TrueNotAnnotated;
                assert_eq!(is_true, truth.contains(image, first + k));
            }
        }
        // Caption 7 belongs to image 1, so its answers are images 0, 2, 3, 4, 5.
        let names = found[2].answers.iter().map(|a| match &a.item {
            Item::Image(picture) => picture.name.clone(),
            Item::Caption(_) => panic!("images"),
        });
        let want = [0, 2, 3, 4, 5].map(|i| format!("test_{i:06}.png"));
        assert_eq!(names.collect::<Vec<_>>(), want);
        let spread = Queries::spread(&source, Split::Train, 2);
        assert_eq!(spread, Queries { images: vec![2, 6], captions: vec![10, 30] });
        let wrong = Queries { images: vec![12], captions: vec![] };
        let line = wrong.check(&source, Split::Test).unwrap_err().to_string();
        assert_eq!(line, "--images: expected numbers below 12, got 12");
    }
}
