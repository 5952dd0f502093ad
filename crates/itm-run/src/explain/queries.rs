//! Queries and pairs of a split, named or spread, and the unannotated items that a posterior takes for matches: FNE's Figure 6.

use itm_core::data::Split;
use itm_core::learn::MatchProbability;
use itm_core::scored::Scored;
use itm_core::{Error, Result, ScoreMatrix};

use crate::cli;
use crate::report::{Example, Item, Pair, PairKind, RankedItem};
use crate::source::Source;

/// Items shown for a query.
pub(super) const ANSWERS: usize = 5;

/// The best items of a query, best first, each with its score or probability; then the rank of the best annotated item, from 1.
pub(super) type AnswerRanking = (Vec<(usize, f64)>, Option<usize>);

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
    /// The first number that the split does not have; no queries.
    pub(super) fn of(source: &Source, split: Split, args: &cli::Explain) -> Result<Self> {
        Error::unless(args.queries > 0, "--queries", "at least 1", 0)?;
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

/// The pairs that the command names, with what image and text are to each other.
///
/// # Errors
/// If the split has no such image or text, or if the number of texts is neither the number of images nor one.
pub(super) fn pairs(source: &Source, split: Split, args: &cli::Explain) -> Result<Vec<Pair>> {
    let part = source.part(split).0;
    let all = |option: &str, names: &[String], wanted: &[String]| -> Result<Vec<usize>> {
        wanted.iter().map(|wanted| find(option, names, wanted)).collect()
    };
    let images = all("--image", &part.images, &args.image)?;
    let texts = all("--text", &part.captions, &args.text)?;
    let (n, m) = (images.len(), texts.len());
    let expected = format_args!("{n} texts, one for each --image, or one");
    Error::unless(n == m || m == 1, "--text", expected, m)?;
    let pair = |(image, text)| Pair { image, text, kind: kind(source, split, (image, text)) };
    Ok(images.into_iter().zip(texts.into_iter().cycle()).map(pair).collect())
}

/// Searches by name first, because a name may be a number.
fn find(option: &str, names: &[String], wanted: &str) -> Result<usize> {
    let named = names.iter().position(|name| name.trim() == wanted.trim());
    let number = || wanted.parse().ok().filter(|&n: &usize| n < names.len());
    named.or_else(number).ok_or_else(|| {
        let what = if option == "--text" { "caption" } else { "name" };
        let expected = format!("a {what} of the split, or a number below {}", names.len());
        Error::invalid(option, expected, format!("`{wanted}`"))
    })
}

/// The most probable false negatives of each query, most probable first. Scores are probabilities.
pub(super) fn false_negatives(
    row: &str,
    scored: &dyn Scored,
    posterior: &MatchProbability,
    source: &Source,
    asked: (Split, &Queries),
) -> Result<Vec<Example>> {
    let rank = |similarities: &ScoreMatrix, own: &dyn Fn(usize) -> bool| {
        (most_probable(similarities, posterior, |item| !own(item)), None)
    };
    answered(row, scored, source, asked, rank)
}

/// Each query with the items that `rank` chooses by the query's scores; it also gets whether an item is annotated.
///
/// # Errors
/// If a score cannot be computed.
pub(super) fn answered(
    row: &str,
    scored: &dyn Scored,
    source: &Source,
    (split, queries): (Split, &Queries),
    rank: impl Fn(&ScoreMatrix, &dyn Fn(usize) -> bool) -> AnswerRanking,
) -> Result<Vec<Example>> {
    let part = source.part(split).0;
    let pairs = &part.pairs;
    let image = |i: usize| Item::Image(source.picture(split, i));
    let caption = |t: usize| Item::Caption(part.captions[t].clone());
    let mark = |i: usize, t: usize| kind(source, split, (i, t));
    let example =
        |query, (best, annotated_rank): AnswerRanking, of: &dyn Fn(usize) -> (Item, PairKind)| {
            let answer = |(number, score)| {
                let (item, mark) = of(number);
                RankedItem { item, score, mark }
            };
            let answers = best.into_iter().map(answer).collect();
            Example { row: row.into(), query, answers, annotated_rank }
        };
    let (n, m) = (scored.images(), scored.texts());
    let of_images = queries.images.iter().map(|&i| {
        let ranked = rank(&scored.block(i..i + 1, 0..m)?, &|t| pairs.image_of(t) == i);
        Ok(example(image(i), ranked, &|t| (caption(t), mark(i, t))))
    });
    let of_captions = queries.captions.iter().map(|&t| {
        let scores = scored.block(0..n, t..t + 1)?.transpose();
        let ranked = rank(&scores, &|i| pairs.image_of(t) == i);
        Ok(example(caption(t), ranked, &|i| (image(i), mark(i, t))))
    });
    of_images.chain(of_captions).collect()
}

/// What an image and a caption are to each other, by the data set and by the truth.
pub(super) fn kind(source: &Source, split: Split, (image, text): (usize, usize)) -> PairKind {
    let (part, truth) = source.part(split);
    match truth {
        _ if part.pairs.image_of(text) == image => PairKind::Annotated,
        Some(truth) if truth.contains(image, text) => PairKind::FalseNegative,
        _ => PairKind::Asked,
    }
}

/// The items of largest probability, then of largest similarity, then of smallest number, with their probabilities.
fn most_probable(
    similarities: &ScoreMatrix,
    posterior: &MatchProbability,
    keep: impl Fn(usize) -> bool,
) -> Vec<(usize, f64)> {
    let items = similarities.values().iter().map(|&s| f64::from(s)).enumerate();
    let kept = items.filter(|(item, _)| keep(*item));
    let mut all: Vec<_> = kept.map(|(item, s)| (item, s, (posterior.of)(s))).collect();
    all.sort_by(|a, b| b.2.total_cmp(&a.2).then(b.1.total_cmp(&a.1)).then(a.0.cmp(&b.0)));
    all.into_iter().take(ANSWERS).map(|(item, _, probability)| (item, probability)).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

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
        assert_eq!(found, [(2, 0.9), (3, 0.9), (4, 0.1), (0, 0.1)]);
        // The posterior decides: one that falls with the similarity reverses the order.
        let falling = MatchProbability { prior: 0.5, of: Box::new(|s| 1.0 - s) };
        let first = most_probable(&items, &falling, |_| true)[0];
        assert_eq!(first, (0, 1.0));
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
                let is_true = answer.mark == PairKind::FalseNegative;
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

    fn asked(rest: &[&str]) -> Result<Vec<(usize, usize)>> {
        let source = tests::small_scenes([2, 1, 4]).1;
        let line = ["itm", "explain", "naaf", "--run", "out"];
        let cli = cli::Cli::try_parse_from([&line[..], rest].concat()).unwrap();
        let cli::Command::Explain(args) = cli.command else { panic!("explain") };
        let pairs = pairs(&source, Split::Test, &args)?;
        Ok(pairs.iter().map(|pair| (pair.image, pair.text)).collect())
    }

    #[test]
    fn pairs_are_found_by_name_and_by_number() {
        let source = tests::small_scenes([2, 1, 4]).1;
        let caption = source.part(Split::Test).0.captions[9].clone();
        let first = |text: &str| source.part(Split::Test).0.captions.iter().position(|c| c == text);
        let text = first(&caption).unwrap();
        assert!(asked(&[]).unwrap().is_empty());
        assert_eq!(
            asked(&["--image", "test_000002.png", "--text", &caption]).unwrap(),
            [(2, text)]
        );
        let two = ["--image", "1", "--image", "3"];
        assert_eq!(asked(&[&two[..], &["--text", "7"]].concat()).unwrap(), [(1, 7), (3, 7)]);
        let both = asked(&[&two[..], &["--text", "7", "--text", "0"]].concat()).unwrap();
        assert_eq!(both, [(1, 7), (3, 0)]);
        for (rest, part) in [
            (
                &["--image", "4", "--text", "0"][..],
                "--image: expected a name of the split, or a number below 4, got `4`",
            ),
            (
                &["--image", "0", "--text", "A zebra."],
                "--text: expected a caption of the split, or a number below 20",
            ),
            (
                &["--image", "0", "--text", "1", "--text", "2"],
                "--text: expected 1 texts, one for each --image, or one, got 2",
            ),
        ] {
            let line = asked(rest).unwrap_err().to_string();
            assert!(line.contains(part), "{line}");
        }
    }
}
