mod options;
mod resume;

use itm_core::audit::Draws;
use itm_core::data::Regions;
use itm_core::learn::{ImageItems, Items, Method, PictureItems, Word, WordPairs};
use itm_core::vision::PictureBatch;
use itm_core::{Pairs, Relevance, WarmupLoss};
use itm_kernels::random;

use super::*;
use crate::config::tests::{tiny, towers};
use crate::config::{Reduction, TextKind};
use crate::{Intra, NegativeAware, Preset, Scan};

pub(super) const DIM: usize = 5;
pub(super) const VOCABULARY: usize = 14;

/// Eight pairs of six images, which have two to four regions. Texts have one to six words; in all texts except one, the first and
/// the last word are marks.
pub(super) struct Data {
    regions: Regions,
    texts: Vec<Vec<u32>>,
    image_of: Vec<usize>,
}

pub(super) fn data() -> Data {
    let counts = vec![3, 4, 2, 4, 3, 2];
    let value = |k: usize| random::unit(11, k as u64) - 0.4;
    let values = (0..counts.iter().sum::<usize>() * DIM).map(value).collect();
    let text = |pair: usize| {
        let words = (0..1 + pair % 4).map(|k| 4 + ((pair * 3 + k * 7) % 10) as u32);
        if pair == 6 { vec![9] } else { [1].into_iter().chain(words).chain([2]).collect() }
    };
    let texts = (0..8).map(text).collect();
    let image_of = vec![0, 0, 1, 2, 3, 4, 5, 5];
    Data { regions: Regions::new(DIM, counts, values).unwrap(), texts, image_of }
}

pub(super) fn naaf(config: &NaafConfig) -> Naaf {
    Naaf::new(config, DIM, VOCABULARY, &Device::flex()).unwrap().with_epochs_of(12)
}

pub(super) fn with_batch<T>(which: &[usize], f: impl FnOnce(&Batch) -> T) -> T {
    let data = data();
    let images: Vec<usize> = which.iter().map(|&p| data.image_of[p]).collect();
    let rows = data.regions.rows(&images).unwrap();
    let texts: Vec<&[u32]> = which.iter().map(|&p| data.texts[p].as_slice()).collect();
    let ids: Vec<i64> = images.iter().map(|&i| i as i64).collect();
    let captions: Vec<i64> = which.iter().map(|&p| p as i64).collect();
    let images = Images::from(&rows);
    f(&Batch { images, texts: &texts, image_ids: &ids, caption_ids: &captions, train: None })
}

pub(super) fn step(naaf: &mut Naaf, which: &[usize], seed: u64) -> Result<Step> {
    with_batch(which, |batch| naaf.step(batch, seed, Observe::Off))
}

/// The eight pairs as a split.
pub(super) fn with_items<T>(f: impl FnOnce(Items) -> T) -> T {
    let Data { regions, texts, image_of } = data();
    let pairs = Pairs::new(6, image_of).unwrap();
    f(Items { images: ImageItems::Regions(&regions), texts: &texts, pairs: &pairs })
}

/// Scores of the eight pairs' images and texts, `[6, 8]`.
pub(super) fn scores(naaf: &Naaf) -> Vec<f32> {
    with_items(|items| naaf.scored(items).unwrap().matrix().unwrap().values().to_vec())
}

pub(super) fn begin(naaf: &mut Naaf, epoch: usize) {
    with_items(|items| naaf.begin_epoch(epoch, items)).unwrap();
}

pub(super) const ALL: [usize; 6] = [0, 2, 3, 4, 5, 6];

fn number(step: &Step, name: &str) -> Option<f64> {
    step.numbers.means().find(|(n, _)| *n == name).map(|(_, value)| value)
}

fn bigru() -> NaafConfig {
    let mut config = tiny();
    config.model.text = TextKind::Bigru;
    config
}

fn global() -> NaafConfig {
    let mut config = tiny();
    config.model.score = Score::Global;
    config
}

fn scan() -> NaafConfig {
    NaafConfig { attention: Attention::Scan(Scan::text_to_image(crate::Pooling::Mean)), ..tiny() }
}

/// Sixty steps over one batch.
#[test]
fn every_score_and_text_lowers_its_loss() {
    for (name, config) in
        [("words", tiny()), ("bigru", bigru()), ("global", global()), ("scan", scan())]
    {
        let mut naaf = naaf(&config);
        begin(&mut naaf, 0);
        let losses: Vec<f64> = (0..60).map(|k| step(&mut naaf, &ALL, k).unwrap().loss).collect();
        assert!(losses[59] < 0.7 * losses[0], "{name}: {} to {}", losses[0], losses[59]);
        assert_eq!(naaf.non_finite(), None);
    }
}

/// Two pairs: the loss is Eq. 15 of the four scores before the step, not divided by two. With `mean` it is half of that.
#[test]
fn trap_19_the_loss_is_a_sum_over_the_batch() {
    let mut config = global();
    let before = scores(&naaf(&config));
    let s = |i: usize, c: usize| f64::from(before[i * 8 + c]); // images 1 and 2, captions 2 and 3
    let hinge = |own: f64, other: f64| (0.2 - own + other).max(0.0);
    let want = hinge(s(1, 2), s(1, 3)) + hinge(s(2, 3), s(2, 2)) // images
        + hinge(s(1, 2), s(2, 2)) + hinge(s(2, 3), s(1, 3)); // texts
    assert!(want > 0.05, "{want}: nothing to compare");
    let got = step(&mut naaf(&config), &[2, 3], 0).unwrap().loss;
    assert!((got - want).abs() < 1e-5, "{got} for {want}");
    config.loss.reduction = Reduction::Mean;
    let got = step(&mut naaf(&config), &[2, 3], 0).unwrap().loss;
    assert!((got - want / 2.0).abs() < 1e-5, "{got} for {want} / 2");
}

/// Propagation changes the scores of evaluation, but nothing in a step.
#[test]
fn trap_10_a_step_has_no_intra_propagation() {
    let of = |intra| {
        let naive =
            NegativeAware { intra, intra_scale: 1.0, ..NegativeAware::preset(Preset::Default) };
        let config = NaafConfig { attention: Attention::Naaf(naive), ..tiny() };
        let mut naaf = naaf(&config);
        let losses: Vec<_> = (0..3).map(|k| step(&mut naaf, &ALL, k).unwrap().loss).collect();
        naaf.boundary.t_s = 0.4;
        (losses, scores(&naaf))
    };
    let (with, without) = (of(Intra::ValueAndMask), of(Intra::Off));
    assert_eq!(with.0, without.0);
    assert_ne!(with.1, without.1);
}

/// A boundary above all scores masks every word (trap 4). Texts have one to six words, images two to four regions.
#[test]
fn trap_03_gradients_are_finite_where_nothing_matches() {
    for config in [tiny(), bigru()] {
        for t in [0.0, 0.999] {
            let mut naaf = naaf(&config);
            naaf.boundary.t = t;
            let told = step(&mut naaf, &ALL, 0).unwrap();
            assert!(told.loss.is_finite() && told.grad_norm > 0.0, "{told:?}");
            assert_eq!(naaf.non_finite(), None, "t = {t}");
        }
    }
}

/// Some regions are zeros, and one points away from every word: with φ = ReLU its relevance norm is 0.
#[test]
fn trap_03_regions_of_zeros_and_without_a_match_are_no_nan() {
    let mut config = tiny();
    config.attention = Attention::Naaf(NegativeAware {
        relevance_leak: 0.0,
        ..NegativeAware::preset(Preset::Default)
    });
    let mut naaf = naaf(&config);
    let mut values = vec![0.0; 4 * DIM];
    values[..DIM].fill(-3.0);
    values[2 * DIM..3 * DIM].fill(2.0);
    let batch = Batch {
        images: Images::Regions { width: DIM, counts: &[2, 2], values: &values },
        texts: &[&[3], &[4, 5, 6]],
        image_ids: &[0, 1],
        caption_ids: &[0, 1],
        train: None,
    };
    for seed in 0..3 {
        let told = naaf.step(&batch, seed, Observe::Off).unwrap();
        assert!(told.grad_norm.is_finite());
    }
    assert_eq!(naaf.non_finite(), None);
}

/// A model that ranks its captions right and has no boundary yet. With `per_caption` the next caption sees each change of the
/// boundary, with `per_batch` only the next batch does.
#[test]
fn trap_05_the_boundary_moves_inside_of_a_batch() {
    let trained = trained();
    let of = |schedule, min_words| {
        let mut model = trained.clone();
        model.boundary = Boundary::default();
        let mining = &mut model.config.mining;
        (mining.schedule, mining.min_words) = (schedule, min_words);
        mining.reset_below_min_words = false;
        model.config.loss.margin = 2.0; // every hinge is active
        let first = step(&mut model, &ALL, 0).unwrap();
        assert_eq!(number(&first, "t").unwrap() > 0.0, min_words < 22, "{first:?}");
        first.loss
    };
    let fixed = of(Schedule::PerCaption, 100);
    assert_eq!(of(Schedule::PerBatch, 100), fixed);
    assert_eq!(of(Schedule::PerBatch, 1), fixed);
    assert_ne!(of(Schedule::PerCaption, 1), fixed);
}

/// Scores depend on t_s, or on t if the config says so.
#[test]
fn the_boundary_of_inference_is_the_configs() {
    let mut config = tiny();
    let at = |config: &NaafConfig, t: f64, t_s: f64| {
        let mut naaf = naaf(config);
        (naaf.boundary.t, naaf.boundary.t_s) = (t, t_s);
        scores(&naaf)
    };
    assert_eq!(at(&config, 0.1, 0.3), at(&config, 0.2, 0.3));
    assert_ne!(at(&config, 0.1, 0.3), at(&config, 0.1, 0.2));
    config.mining.inference_boundary = crate::InferenceBoundary::Training;
    assert_eq!(at(&config, 0.3, 0.1), at(&config, 0.3, 0.2));
    assert_ne!(at(&config, 0.3, 0.1), at(&config, 0.2, 0.1));
}

/// If all six captions are ranked right, their 3 + 5 + 6 + 3 + 4 + 1 words are sampled.
#[test]
fn a_step_tells_what_moved() {
    let first = step(&mut naaf(&tiny()), &ALL, 0).unwrap();
    for name in ["t", "t_s", "words_sampled", "ranked_right", "learning_rate"] {
        assert!(number(&first, name).is_some(), "{name}: {:?}", first.numbers);
    }
    let later = step(&mut trained(), &ALL, 0).unwrap();
    assert_eq!(number(&later, "ranked_right"), Some(1.0), "{later:?}");
    assert_eq!(number(&later, "words_sampled"), Some(22.0), "{later:?}");
    let value = |name| number(&later, name).unwrap_or_else(|| panic!("{name}: {later:?}"));
    assert!(value("matched_mean") > value("mismatched_mean"));
    assert!(value("matched_deviation") > 0.0 && value("mismatched_deviation") > 0.0);
    assert!(value("ln_alpha_star").is_finite());
    assert_eq!(number(&step(&mut naaf(&global()), &ALL, 0).unwrap(), "t"), None);
}

/// A model after a hundred steps over one batch, with all hinges: it ranks every caption right.
fn trained() -> Naaf {
    let mut config = tiny();
    (config.loss.warmup_epochs, config.loss.warmup_loss) = (1, WarmupLoss::Sum);
    let mut model = naaf(&config);
    (0..100).for_each(|k| _ = step(&mut model, &ALL, k).unwrap());
    model
}

/// Each pair has a map, whose score is the pair's score. There is no map if no part of the score belongs to one word.
#[test]
fn words_are_told_as_they_are_scored() {
    let model = trained();
    let scores = scores(&model);
    let pairs = [(0, 1), (5, 2), (3, 6)];
    let maps = |model: &Naaf| {
        with_items(|items| {
            let words = &|_| Ok(vec![]);
            model.word_maps(itm_core::learn::WordPairs { items, pairs: &pairs, words }).unwrap()
        })
    };
    let told = maps(&model).unwrap();
    assert_eq!(told.len(), 3);
    for (map, (image, text)) in told.iter().zip(pairs) {
        let (got, want) = (map.score.unwrap(), scores[image * 8 + text]);
        assert!((got - want).abs() < 1e-5, "{got} for {want}");
        assert_eq!(map.words.len(), data().texts[text].len());
    }
    assert!(maps(&naaf(&global())).is_none());
    let attention = Attention::Scan(Scan::image_to_text(crate::Pooling::Mean));
    assert!(maps(&naaf(&NaafConfig { attention, ..tiny() })).is_none());
}

/// Two pictures of this size.
struct Album(usize);

impl PictureItems for Album {
    fn len(&self) -> usize {
        2
    }

    fn batch(&self) -> usize {
        2
    }

    fn some(&self, images: &[usize]) -> Box<dyn Iterator<Item = Result<PictureBatch>> + '_> {
        let (images, size) = (images.len(), self.0);
        let values = (0..images * 3 * size * size).map(|k| random::unit(3, k as u64)).collect();
        Box::new(std::iter::once(Ok(PictureBatch { images, size, values })))
    }
}

/// Of six pieces, the first three and the last stay. A word whose last pieces were cut ends before the mark.
#[test]
fn a_cut_caption_ends_with_its_mark() {
    let model = naaf(&towers());
    let (texts, pairs) = ([vec![1, 4, 5, 6, 7, 2], vec![1, 4, 2]], Pairs::uniform(2, 1));
    let word = |text: &str, pieces| Word { text: text.into(), pieces };
    let words = |_| Ok(vec![word("a", 1..2), word("b", 2..4), word("c", 4..5)]);
    let (small, large) = (Album(8), Album(12));
    let of = |album| Items { images: ImageItems::Pictures(album), texts: &texts, pairs: &pairs };
    let maps = |album| {
        let items = of(album);
        let asked = WordPairs { items, pairs: &[(0, 0)], words: &words };
        model.word_maps(asked)
    };
    let found = maps(&small).unwrap().unwrap().remove(0).words;
    let names: Vec<_> = found.iter().map(|map| map.word.as_str()).collect();
    assert_eq!(names, ["<start>", "a", "b", "<end>"]);
    let line = "images: expected pictures of 8 px, got 12 px";
    assert_eq!(maps(&large).unwrap_err().to_string(), line);
    assert_eq!(model.scored(of(&large)).err().unwrap().to_string(), line);
}

/// Compares the negatives with the truth. Pair 1 has the image of pair 0, so it is a negative of pair 0 unless it is masked.
#[test]
fn negatives_are_audited() {
    let truth = Relevance::new(8, vec![vec![0, 1], vec![2], vec![3], vec![4], vec![5], vec![6, 7]]);
    let drawn = |mask: bool, warmup: WarmupLoss| {
        let mut config = tiny();
        (config.loss.mask_same_image, config.loss.margin) = (mask, 2.0); // every hinge is active
        (config.loss.warmup_epochs, config.loss.warmup_loss) = (1, warmup);
        let mut naaf = naaf(&config);
        let step = with_batch(&[0, 1, 2], |batch| naaf.step(batch, 0, Observe::Negatives)).unwrap();
        Draws::of(&step.negatives.unwrap(), &truth)
    };
    let masked = drawn(true, WarmupLoss::Sum);
    assert_eq!(
        (masked.anchors, masked.drawn, masked.uniform, masked.hardest),
        (6.0, 0.0, 0.0, 0.0)
    );
    // All hinges: half of the negatives of pairs 0 and 1 are true, and none of pair 2, in both directions.
    let all = drawn(false, WarmupLoss::Sum);
    assert!((all.drawn - 2.0).abs() < 1e-9 && (all.uniform - 2.0).abs() < 1e-9, "{all:?}");
    let hardest = drawn(false, WarmupLoss::Hardest);
    assert_eq!(hardest.drawn, hardest.hardest, "{hardest:?}");
    assert!(step(&mut naaf(&tiny()), &ALL, 0).unwrap().negatives.is_none());
}

#[test]
fn what_is_no_batch_of_regions_is_refused_and_changes_nothing() {
    let mut model = naaf(&tiny());
    let before = scores(&model);
    let texts: [&[u32]; 2] = [&[3], &[4]];
    let mut refused = |images: Images, texts: &[&[u32]]| {
        let batch = Batch { images, texts, image_ids: &[0, 1], caption_ids: &[0, 1], train: None };
        model.step(&batch, 0, Observe::Off).unwrap_err().to_string()
    };
    let values = [0.5; 3 * DIM];
    let line = refused(Images::Features(&values[..2 * DIM]), &texts);
    assert_eq!(line, "images: expected regions of width 5, got features");
    let wide = Images::Regions { width: 3, counts: &[2, 3], values: &values };
    assert_eq!(refused(wide, &texts), "images: expected regions of width 5, got 3");
    let none = Images::Regions { width: DIM, counts: &[3, 0], values: &values };
    let line = refused(none, &texts);
    assert_eq!(line, "image 1 of the batch: expected at least 1 region, got 0");
    let good = Images::Regions { width: DIM, counts: &[1, 2], values: &values };
    assert!(refused(good, &[&[3], &[]]).starts_with("caption 1 of the batch"));
    let mut bad = values;
    bad[DIM] = f32::NAN;
    let line = refused(Images::Regions { width: DIM, counts: &[1, 2], values: &bad }, &texts);
    assert!(line.contains("NaN") && !line.contains('\n'), "{line}");
    let far = Images::Regions { width: DIM, counts: &[1, 2], values: &[3e38; 3 * DIM] };
    let line = refused(far, &texts);
    assert_eq!(line, "scores of caption 0: expected finite numbers, got NaN");
    assert_eq!((scores(&model), model.boundary()), (before, &Boundary::default()));
}
