//! Scores, pairs, ranks, intervals and corrections for hubs.

use hubness::choose::{FoldSplit, Goal, HitTable, cross_fit, joined_hits};
use hubness::hubs::{Counts, Nearest, bootstrap_difference};
use hubness::{
    Affine, AnyCorrection, Candidates, CapacityScale, Correction, CslsForm, Direction, DualBank,
    EmpiricalProximity, GaussianProximity, GreedyOptions, GreedySweep, HeldOutBank,
    InvertedSoftmaxForm, LocalScaling, Nnn, Plain, QueryBank, Setting, Sinkhorn, Stop, Survey,
    TestQueries, TopLists, capacity, csls, csls_form, greedy_matching, inverted_softmax,
    inverted_softmax_form, pass,
};
use itm_core::audit::{Candidates as Audited, NegativeSet};
use itm_core::data::{Bounds, CentredRoots, Features, Regions};
use itm_core::eval::{
    DirectionMetrics, Evaluation, Fold, Protocol, Ranks, Standing, TiePolicy, folds, precisions,
};
use itm_core::scored::{EmbeddingRows, Scored, Similarity, ranks_among, visit};
use itm_core::significance::{
    self, Hits, ImageHits, Interval, Share, bootstrap, ceilings, chance, holm,
    paired_randomisation, resample,
};
use itm_core::start::{LinearMap, Start, StartOptions};
use itm_core::text::Terms;
use itm_core::tiles::{Embeddings, ExpSums, RankCounts, Side, Tile, Tiles, Top};
use itm_core::{Pairs, Relevance, ScoreMatrix};

use crate::HUGE;

fn scores() -> ScoreMatrix {
    ScoreMatrix::from_rows([[0.9, 0.2], [0.3, 0.8]])
}

fn infinite() -> ScoreMatrix {
    ScoreMatrix::from_rows([[f32::INFINITY, 0.2], [0.3, 0.8]])
}

fn wide() -> ScoreMatrix {
    ScoreMatrix::from_rows([[0.9, 0.2, 0.1], [0.3, 0.8, 0.1]])
}

fn empty(images: usize, texts: usize) -> ScoreMatrix {
    ScoreMatrix::new(images, texts, vec![]).unwrap()
}

fn pairs() -> Pairs {
    Pairs::uniform(2, 1)
}

fn relevance() -> Relevance {
    Relevance::new(2, vec![vec![0], vec![1]])
}

fn ones(values: &[f32], dim: usize) -> Embeddings<'_> {
    Embeddings::new("rows", values.len() / dim, dim, values).unwrap()
}

fn tiles() -> Tiles<'static> {
    Tiles::new(ones(&[1.0; 4], 2), ones(&[1.0; 4], 2)).unwrap()
}

fn rows(dim: usize, n: usize, m: usize) -> EmbeddingRows {
    EmbeddingRows { dim, images: vec![1.0; n], texts: vec![1.0; m], similarity: Similarity::Cosine }
}

fn order(dim: usize, n: usize, m: usize) -> EmbeddingRows {
    EmbeddingRows { similarity: Similarity::Order, ..rows(dim, n, m) }
}

fn hits() -> Hits {
    Hits::from_folds(vec![vec![ImageHits { i2t: [1; 3], t2i: [1; 3], captions: 1 }; 30]]).unwrap()
}

fn misses() -> Hits {
    Hits::from_folds(vec![vec![ImageHits { i2t: [0; 3], t2i: [0; 3], captions: 1 }; 30]]).unwrap()
}

fn none() -> AnyCorrection {
    Correction::<Plain>::none(&scores(), Direction::I2t).into_any()
}

fn affine(affine: Affine) -> AnyCorrection {
    AnyCorrection::new(Direction::I2t, Setting::Plain, Box::new(affine))
}

fn lists(k: usize, items: Vec<u32>) -> TopLists {
    let scores = vec![0.5; items.len()];
    TopLists::new(Direction::I2t, k, items, scores)
}

fn start() -> Start {
    let map = || LinearMap { weight: vec![], bias: vec![] };
    Start { image: map(), text: map() }
}

fn options() -> StartOptions {
    StartOptions { ridge_image: 0.1, ridge_text: 0.1, power: 1.0, dims: 2, fill: 0.1 }
}

fn filled() -> HitTable {
    let mut table = HitTable::default();
    table.push("a", 0.0, vec![[1; 3]; 2]).unwrap();
    table
}

fn negatives() -> NegativeSet {
    let [set, _] = NegativeSet::in_batch(
        [&[0, 1], &[0, 1]],
        &[0.9, 0.2, 0.3, 0.8],
        false,
        [vec![1.0; 4], vec![1.0; 4]],
        0.2,
    );
    set
}

const STANDING: Standing = Standing { greater: 0, before: 0, equal: 0, own: 1 };

#[test]
fn scores_pairs_and_ranks() {
    errors! {
        "score matrix: expected 9223372036854775808 × 2 = too": ScoreMatrix::new(HUGE, 2, vec![]),
        "score matrix: expected fewer than 2³² images and texts,": ScoreMatrix::new(HUGE, 0, vec![]),
        "score matrix: expected fewer than 2³² images and texts,": ScoreMatrix::new(0, HUGE, vec![]),
        "score matrix: expected 1 × 2 = 2 values, got 1": ScoreMatrix::new(1, 2, vec![1.0]),
        "score matrix, image 0, text 0: expected a number, got": ScoreMatrix::new(1, 1, vec![f32::NAN]),
        "ensemble: expected at least one score matrix, got none": ScoreMatrix::average(&[]),
        "ensemble, matrix 1: expected 2 × 2 scores, got 2 × 3": ScoreMatrix::average(&[scores(), wide()]),
        "pairs: expected fewer than 2³² images, got": Pairs::new(usize::MAX, vec![]),
        "pairs: expected fewer than 2³² images, got": Pairs::new(1 << 50, vec![0]),
        "pairs, text 0: expected an image below 0, got 0": Pairs::new(0, vec![0]),
        "pairs, text 0: expected an image below 2, got 2": Pairs::judged(2, vec![vec![2]]),
        "pairs: expected fewer than 2³² images, got": Pairs::judged(usize::MAX, vec![vec![]]),
        "v: expected 9223372036854775808 × 2 values, got 0": Embeddings::new("v", HUGE, 2, &[]),
        "v: expected a width of at least 1, got 0": Embeddings::new("v", 0, 0, &[]),
        "v, row 0, column 0: expected a finite number, got NaN": Embeddings::new("v", 1, 1, &[f32::NAN]),
        "texts: expected the images' width 2, got 3": Tiles::new(ones(&[1.0; 2], 2), ones(&[1.0; 3], 3)),
        "images · texts: expected d · max|v| · max|w| below": Tiles::new(ones(&[1e30; 2], 2), ones(&[1e30; 2], 2)),
        "embeddings: expected 3 images and 3 texts, as the": tiles().ranks(&Pairs::uniform(3, 1)),
        "scores of image 0 and text 0: expected a finite number,": infinite().run(&Top::new(Side::Images, 1)),
        "image embeddings: expected a width of at least 1, got 0": rows(0, 1, 1).ranks(&pairs()),
        "image embeddings: expected 1 × 3 values, got 4": rows(3, 4, 4).ranks(&pairs()),
        "image embeddings: expected a width of at least 1, got 0": rows(0, 1, 1).block(0..0, 0..0),
        "image embeddings: expected 1 × 3 values, got 4": order(3, 4, 4).ranks(&pairs()),
        "image embeddings: expected a width of at least 1, got 0": order(0, 4, 4).pairs(&[0], &[0]),
        "image embeddings: expected 1 × 3 values, got 4": visit(&rows(3, 4, 4), &Top::new(Side::Images, 1)),
        "image embeddings: expected a width of at least 1, got 0": visit(&order(0, 4, 4), &Top::new(Side::Images, 1)),
        "image embeddings: expected 1 × 3 values, got 4": rows(3, 4, 4).top(Side::Images, 1),
        "scores of image 0 and text 0: expected a finite number,": infinite().top(Side::Images, 1),
        "ranks: expected 3 × 3 scores, as the pairs, got 2 × 2": Ranks::new(&scores(), &Pairs::uniform(3, 1)),
        "ranks, image 1: expected at least 1 text, got 0": Ranks::new(&scores(), &Pairs::new(2, vec![0, 0]).unwrap()),
        "judged pairs: expected at least 1 true pair, got 0": Ranks::new(&empty(0, 0), &Pairs::judged(0, vec![]).unwrap()),
        "protocol full: expected at least 1 image, got 0": Protocol::Full.folds(&Pairs::uniform(0, 1)),
        "protocol coco_5k: expected 5000 images (protocol full takes any number), got 2": Protocol::Coco5k.folds(&pairs()),
        "folds: expected at least 1 fold of 1 image, got 0 folds": folds(&pairs(), 0, 1),
        "folds: expected images for 9223372036854775808 folds of": folds(&pairs(), HUGE, 2),
        "folds: expected images for 1 folds of 3, got 2 images": folds(&pairs(), 1, 3),
        "relevance: expected 2 × 3 scores, got 2 × 2": <dyn Scored>::evaluate_multi(&scores(), &Relevance::new(3, vec![vec![0], vec![1]])),
        "relevance: expected a query with a true item, got none": <dyn Scored>::evaluate_multi(&scores(), &Relevance::new(2, vec![vec![], vec![]])),
        "images and texts to rank among: expected at least 1,": ranks_among(&scores(), &pairs(), 0),
        "scores: expected 3 × 3, got 2 × 2": ranks_among(&scores(), &Pairs::uniform(3, 1), 1),
        "regions: expected 1 × 0 values, at least 1 wide, got 0": Regions::new(0, vec![1], vec![]),
        "image 0: expected at least 1 region, got 0": Regions::new(1, vec![0], vec![]),
        "regions: expected too many × 1 values, at least 1 wide,": Regions::new(1, vec![HUGE, HUGE], vec![]),
        "regions: expected 2 × 9223372036854775808 values, at": Regions::new(HUGE, vec![2], vec![]),
        "image 0, region 0: expected finite values, got NaN": Regions::new(1, vec![1], vec![f32::NAN]),
        "boxes of regions: expected 2, one per region, got 3": Regions::new(1, vec![2], vec![1.0; 2]).unwrap().with_boxes(vec![Bounds::around(0.5, 0.5, 1.0, 1.0); 3]),
        "model.cca.dims: expected a number from 1, got 0": StartOptions { dims: 0, ..options() }.validate(),
        "model.cca.power: expected a number from 0, got NaN": StartOptions { power: f64::NAN, ..options() }.validate(),
        "model.cca.fill: expected a number from 0, got -1": StartOptions { fill: -1.0, ..options() }.validate(),
        "model.cca.dims: expected at most 1, the width of the": options().fits(1),
        "model.cca.fill: expected a number above 0, for columns": StartOptions { fill: 0.0, ..options() }.fits(3),
    }
    panics! {
        "one image for each text": scores().pairs(&[0], &[0, 1]),
        "9223372036854775808 images with 2 texts each": Pairs::uniform(HUGE, 2),
        "18446744073709551615 images with 0 texts each": Pairs::uniform(usize::MAX, 0),
        "18446744073709551615 images with 1 texts each": Pairs::uniform(usize::MAX, 1),
        "text 0 is true of no image": Pairs::judged(2, vec![vec![]]).unwrap().image_of(0),
        "one image for each text, not judged pairs": Pairs::judged(2, vec![vec![]]).unwrap().image_of_text(),
        "number 2 of 2 images or texts": pairs().texts_of(2),
        "number 18446744073709551615 of 2 images or texts": pairs().texts_of(usize::MAX),
        "number 2 of 2 images or texts": pairs().images_of(2),
        "number 2 of 2 images or texts": pairs().unit_of(2),
        "number 2 of 2 images or texts": pairs().contains(0, 2),
        "image 9 of 2": pairs().contains(9, 0),
        "18446744073709551615 texts, not fewer than 2³²": Relevance::new(usize::MAX, vec![]),
        "1099511627776 texts, not fewer than 2³²": Relevance::new(1 << 40, vec![]),
        "image 0: text 2 of 2": Relevance::new(2, vec![vec![2]]),
        "no image 2 or no text 0": relevance().contains(2, 0),
        "image 2 of 2": relevance().texts_of(2),
        "text 2 of 2": relevance().images_of(2),
        "image 2 of 2": relevance().within(1..3, &[0]),
        "texts of a part: not in ascending order": relevance().within(0..1, &[1, 0]),
        "no image 18446744073709551615 or no text 0": relevance().contains(usize::MAX, 0),
        "no image 0 or no text 4294967296": relevance().contains(0, 1 << 32),
        "image 2 of 2": scores().row(2),
        "image 9223372036854775808 of 2": scores().row(HUGE),
        "image 9223372036854775808 of 2": scores().ranking(HUGE),
        "image 18446744073709551615 of 2": wide().row(usize::MAX),
        "rows 0..3 of 2": tiles().block(0..3, 0..1),
        "rows 9223372036854775808..9223372036854775809 of 2": tiles().block(HUGE..HUGE + 1, 0..1),
        "one image for each text": tiles().pair_scores(&[0], &[0, 1]),
        "rows 2..3 of 2": tiles().pair_scores(&[2], &[0]),
        "rows 9223372036854775808..9223372036854775809 of 2": tiles().pair_scores(&[HUGE], &[0]),
        "rows 2..3 of 2": tiles().scores_of(Side::Images, &[2]),
        "rows 18446744073709551615..18446744073709551615 of 2": tiles().scores_of(Side::Texts, &[usize::MAX]),
        "β = NaN is not a number that scores can be multiplied by": ExpSums::new(f64::NAN),
        "β = inf is not a number that scores can be multiplied by": ExpSums::new(f64::INFINITY),
        "shifts of (1, 2), scores of 0..2 and 0..2": tiles().run(&ExpSums::new(1.0).with_shifts(vec![0.0], vec![0.0; 2])),
        "a shift of NaN cannot be added to an exponent": tiles().run(&ExpSums::new(1.0).with_shifts(vec![f64::NAN; 2], vec![0.0; 2])),
        "one score for each true pair": RankCounts::with_scores(&pairs(), &[1.0]),
        "scores of true pairs, got NaN": RankCounts::with_scores(&pairs(), &[f32::NAN; 2]),
        "a tile of 2 × 2 needs 4 scores, not 3": Tile::<f32>::new(0..2, 0..2, &[1.0; 3], 2),
        "rows of 2 scores every 1 values": Tile::<f32>::new(0..2, 0..2, &[1.0; 4], 1),
        "a tile of 3 × 1 needs 18446744073709551615 scores, not 4": Tile::<f32>::new(0..3, 0..1, &[1.0; 4], HUGE),
        "row 1 of 0..1": Tile::<f32>::new(0..1, 0..1, &[1.0], 1).row(1),
        "row 9223372036854775808 of 0..1": Tile::<f32>::new(0..1, 0..1, &[1.0], 1).row(HUGE),
        "query 2 of 2": scores().top(Side::Images, 1).unwrap().items(2),
        "query 9223372036854775808 of 2": scores().top(Side::Images, 1).unwrap().scores(HUGE),
        "query 9223372036854775808 of 2": scores().top(Side::Images, 2).unwrap().items(HUGE),
        "images 0..3 of 2": scores().block(0..3, 0..1),
        "texts 9223372036854775808..9223372036854775809 of 2": scores().block(0..1, HUGE..HUGE + 1),
        "images 2..3 of 2": scores().scores_of(Side::Images, &[2]),
        "texts 2..3 of 2": scores().scores_of(Side::Texts, &[2]),
        "text 2 of 2": scores().pairs(&[0], &[2]),
        "image 9223372036854775808 of 2": scores().pairs(&[HUGE], &[0]),
        "images 0..3 of 2": order(2, 4, 4).block(0..3, 0..1),
        "images 2..3 of 2": order(2, 4, 4).pairs(&[2], &[0]),
        "images 0..9223372036854775808 of 2": rows(2, 4, 4).block(0..HUGE, 0..1),
        "images 1..3 of 2": Fold::new(&pairs(), 1..3),
        "images 0..1 of 0": <dyn Scored>::fold(&empty(0, 2), &Fold::new(&pairs(), 0..1)),
        "standings of (1, 2) images and texts for pairs of (2, 2)": Ranks::from_counts(pairs(), vec![STANDING; 1], vec![STANDING; 2]),
        "image 0 with 1 texts: Standing { greater: 9, before: 0,": Ranks::from_counts(pairs(), vec![Standing { greater: 9, ..STANDING }; 2], vec![STANDING; 2]),
        "image 0 with 1 texts: Standing { greater: 4294967295,": Ranks::from_counts(pairs(), vec![Standing { greater: u32::MAX, equal: u32::MAX, ..STANDING }; 2], vec![STANDING; 2]),
        "metrics of no query": DirectionMetrics::new(&[], TiePolicy::Index),
        "metrics of no query": DirectionMetrics::new(&[Standing::NONE], TiePolicy::Index),
        "evaluation of no fold": Evaluation::new(&[], TiePolicy::Index),
        "precision of a query without a true item": precisions(&[0], 0, |_| true),
        "image 1 of 1": Regions::new(1, vec![1], vec![1.0]).unwrap().rows(&[1]),
        "image 9223372036854775808 of 1": Regions::new(1, vec![1], vec![1.0]).unwrap().boxes(HUGE),
        "row 2 of 2": Features { dim: 2, values: vec![1.0; 4] }.row(2),
        "row 9223372036854775808 of 2": Features { dim: 2, values: vec![1.0; 4] }.row(HUGE),
        "features of width 3, not 2": CentredRoots::of(&Features { dim: 2, values: vec![1.0; 4] }).apply(&Features { dim: 3, values: vec![1.0; 3] }),
        "row 0 of the features: NaN": CentredRoots::of(&Features { dim: 2, values: vec![f32::NAN; 4] }),
        "a text map of 0 values for 2 terms": start().mean_pooled(&["a dog".into()], &Terms::fit(&["a dog"], 1, 9)),
        "a text map of 0 values for 2 terms": start().of_words(&["a dog".into()], &Terms::fit(&["a dog"], 1, 9), &["dog"]),
        "1 captions, 1 × 1 scores": NegativeSet::in_batch([&[0], &[0, 1]], &[1.0], false, [vec![], vec![]], 0.2),
        "1 captions, 1 × 1 scores": NegativeSet::in_batch([&[0], &[0]], &[], false, [vec![], vec![]], 0.2),
        "one weight per score": NegativeSet { weights: vec![1.0], ..negatives() }.draws(&relevance()),
        "weights, got NaN": NegativeSet { weights: vec![f32::NAN; 4], ..negatives() }.draws(&relevance()),
        "2 anchors and 2 candidates with [4, 4, 0] scores, masks": NegativeSet { positive: vec![], ..negatives() }.hardest(),
        "2 anchors and 2 candidates with [0, 4, 2] scores, masks": NegativeSet { scores: vec![], ..negatives() }.hardest(),
        "2 anchors and 2 candidates with [4, 0, 2] scores, masks": NegativeSet { excluded: vec![], ..negatives() }.hardest(),
        "a log-ratio of score Some(9) of 4": NegativeSet { log_ratios: vec![(9, 0.0)], ..negatives() }.candidates(&relevance()),
        "a log-ratio of NaN": Audited::default().push(f64::NAN, true),
        "a prior above 0 and below 1, got NaN": audited().brier_skill(f64::NAN),
        "a prior above 0 and below 1, got 2": audited().brier_skill(2.0),
        "a threshold from 0 to 1, got -1": audited().detection(0.5, -1.0),
        "a prior above 0 and below 1, got NaN": audited().reliability(f64::NAN),
    }
}

fn audited() -> Audited {
    let mut audited = Audited::default();
    audited.push(0.1, true);
    audited.push(-0.1, false);
    audited
}

#[test]
fn significance_of_differences() {
    errors! {
        "hits: expected at least 1 image with a text in each of": Hits::new(&[], TiePolicy::Index),
        "hits: expected at least 1 image with a text in each of": Hits::from_folds(vec![]),
        "hits: expected at least 1 image with a text in each of": Hits::from_folds(vec![vec![]]),
        "hits of fold 0, image 0: expected 0 or 1 image hits, no": Hits::from_folds(vec![vec![ImageHits { i2t: [2; 3], t2i: [0; 3], captions: 1 }]]),
        "runs: expected at least 1, got 0": bootstrap(&[], 10, 0),
        "bootstrap: expected 1 to 1000000 replicates, got 0": bootstrap(&[hits()], 0, 0),
        "bootstrap: expected 1 to 1000000 replicates, got": bootstrap(&[hits()], usize::MAX, 0),
        "bootstrap: expected 1 to 1000000 replicates, got": bootstrap(&[hits()], 1 << 40, 0),
        "two systems: expected 1 runs each, got 0": significance::bootstrap_difference(&[hits()], &[], 10, 0),
        "bootstrap: expected 1 to 1000000 replicates, got": significance::bootstrap_difference(&[hits()], &[misses()], usize::MAX, 0),
        "runs: expected at least 1, got 0": paired_randomisation(&[], &[], 10, 0),
        "paired randomisation: expected 1 to 1000000 replicates,": paired_randomisation(&[hits()], &[hits()], 0, 0),
        "paired randomisation: expected 1 to 1000000 replicates,": paired_randomisation(&[hits()], &[misses()], usize::MAX, 0),
        "paired randomisation: expected 1 to 1000000 replicates,": paired_randomisation(&[hits()], &[misses()], 1 << 50, 0),
        "bootstrap of hubs: expected at least 1 run, got 0": bootstrap_difference(&[], &[], &[], |_| 0.0, 10, 0),
        "bootstrap of hubs: expected 1 to 1000000 replicates,": bootstrap_difference(&[nearest()], &[nearest()], &[], |_| 0.0, usize::MAX, 0),
    }
    panics! {
        "an interval of at least 1 value": Interval::percentile(vec![]),
        "an interval of finite numbers, got NaN": Interval::percentile(vec![f64::NAN]),
        "an interval of finite numbers, got inf": Interval::percentile(vec![f64::INFINITY, f64::NEG_INFINITY]),
        "a group of 9223372036854775808 members, not fewer than": resample(&[HUGE], 0, 0),
        "a group of 18446744073709551615 members, not fewer than": resample(&[usize::MAX], 0, 0),
        "p-values within 0 and 1, got [NaN]": holm(&[f64::NAN]),
        "p-values within 0 and 1, got [2.0]": holm(&[2.0]),
        "chance of no query": chance(&Pairs::uniform(0, 1)),
        "chance of no query": chance(&Pairs::judged(1, vec![vec![]]).unwrap()),
        "images and texts of the truth": ceilings(&pairs(), &Relevance::new(2, vec![vec![0]])),
        "ceilings of no image": ceilings(&Pairs::uniform(0, 1), &Relevance::new(0, vec![])),
        "ceilings of no text": ceilings(&Pairs::uniform(3, 0), &Relevance::new(0, vec![vec![]; 3])),
        "runs of the same images": Share::over(&[vec![[1, 1]], vec![]]),
        "counts below 2³², got Some(18446744073709551615)": Share::over(&[vec![[u64::MAX, u64::MAX]; 2]]),
        "an interval of at least 1 value": significance::interval(0, [1, 1], |_, _| Some(1.0)),
        "18446744073709551615 replicates, not 1 to 1000000": significance::interval(usize::MAX, [1, 1], |_, _| Some(1.0)),
        "an interval of at least 1 value": significance::interval(10, [1, 1], |_, _| None),
        "an interval of finite numbers, got NaN": significance::interval(10, [1, 1], |_, _| Some(f64::NAN)),
        "a group of 9223372036854775808 members, not fewer than": significance::interval(10, [HUGE, 1], |_, _| Some(1.0)),
    }
}

fn nearest() -> Nearest {
    Nearest::new(&scores(), &Protocol::Full.folds(&pairs()).unwrap()).unwrap()
}

#[test]
fn corrections() {
    errors! {
        "k: expected at least 1 neighbour, got 0": csls(&TestQueries(&scores()), Direction::I2t, 0),
        "scores: expected at least 1 query in the bank, got 0": csls(&TestQueries(&empty(0, 2)), Direction::I2t, 1),
        "scores of image 0 and text 0: expected a finite number,": csls(&TestQueries(&infinite()), Direction::I2t, 1),
        "k: expected at least 1 neighbour, got 0": csls_form(&scores(), Direction::I2t, 0, CslsForm::Lample),
        "scores: expected at least 1 query in the bank, got 0": csls_form(&empty(0, 0), Direction::I2t, 1, CslsForm::Printed),
        "β: expected a number above 0 and below 1e200, got 0": inverted_softmax(&TestQueries(&scores()), Direction::I2t, 0.0),
        "β: expected a number above 0 and below 1e200, got NaN": inverted_softmax(&TestQueries(&scores()), Direction::I2t, f64::NAN),
        "β: expected a number above 0 and below 1e200, got inf": inverted_softmax(&TestQueries(&scores()), Direction::I2t, f64::INFINITY),
        "β: expected a number above 0 and below 1e200, got": inverted_softmax(&TestQueries(&scores()), Direction::I2t, 1e300),
        "inverted softmax: expected a bank of at least 2": inverted_softmax(&TestQueries(&empty(0, 2)), Direction::I2t, 1.0),
        "scores of image 0 and text 0: expected a finite number,": inverted_softmax(&TestQueries(&infinite()), Direction::I2t, 1.0),
        "β: expected a number above 0 and below 1e200, got -1": inverted_softmax_form(&scores(), Direction::I2t, -1.0, InvertedSoftmaxForm::Exclusive),
        "inverted softmax: expected a bank of at least 2": inverted_softmax_form(&empty(1, 0), Direction::T2i, 1.0, InvertedSoftmaxForm::Exclusive),
        "ε of Sinkhorn: expected a number above 0 and below": Sinkhorn { epsilon: 0.0, ..Sinkhorn::default() }.fit(&TestQueries(&scores()), Direction::I2t),
        "ε of Sinkhorn: expected a number above 0 and below": Sinkhorn { epsilon: f64::NAN, ..Sinkhorn::default() }.fit(&TestQueries(&scores()), Direction::I2t),
        "1/ε of Sinkhorn: expected a number above 0 and below": Sinkhorn { epsilon: 1e-300, ..Sinkhorn::default() }.fit(&TestQueries(&scores()), Direction::I2t),
        "tolerance of Sinkhorn: expected a number, 0 or more,": Sinkhorn { tolerance: f64::NAN, ..Sinkhorn::default() }.fit(&TestQueries(&scores()), Direction::I2t),
        "iterations of Sinkhorn: expected at most 1000000, got": Sinkhorn { iterations: usize::MAX, tolerance: 0.0, ..Sinkhorn::default() }.fit(&TestQueries(&wide()), Direction::I2t),
        "bank: expected at least one query, got none": Sinkhorn::default().fit(&TestQueries(&empty(0, 0)), Direction::I2t),
        "scores of image 0 and text 0: expected a finite number,": Sinkhorn::default().fit(&TestQueries(&infinite()), Direction::I2t),
        "k of NNN: expected at least 1 neighbour, got 0": Nnn { alpha: 0.75, k: 0 }.fit(&HeldOutBank(&scores()), Direction::I2t),
        "α of NNN: expected a finite number, 0 or more, got NaN": Nnn { alpha: f64::NAN, k: 1 }.fit(&HeldOutBank(&scores()), Direction::I2t),
        "α of NNN: expected a finite number, 0 or more, got -1": Nnn { alpha: -1.0, k: 1 }.fit(&HeldOutBank(&scores()), Direction::I2t),
        "scores of image 0 and text 0: expected a finite number,": Nnn { alpha: 1.0, k: 1 }.fit(&HeldOutBank(&infinite()), Direction::I2t),
        "β of QB-Norm: expected a number above 0 and below": QueryBank { beta: f64::NAN, ..QueryBank::default() }.fit(&HeldOutBank(&scores()), &scores(), Direction::I2t),
        "k of QB-Norm: expected at least 1 neighbour, got 0": QueryBank { k: 0, ..QueryBank::default() }.fit(&HeldOutBank(&scores()), &scores(), Direction::I2t),
        "bank: expected the 3 test items, got 2": QueryBank::default().fit(&HeldOutBank(&scores()), &wide(), Direction::I2t),
        "scores of image 0 and text 0: expected a finite number,": QueryBank::default().fit(&HeldOutBank(&scores()), &infinite(), Direction::I2t),
        "β₁ of DBNorm: expected a number from 0, below 1e200, got": DualBank { query_beta: f64::NAN, ..DualBank::default() }.fit(&HeldOutBank(&scores()), &scores(), &scores(), Direction::I2t),
        "k of DBNorm's item bank: expected at least 1 neighbour,": DualBank { item_k: 0, ..DualBank::default() }.fit(&HeldOutBank(&scores()), &scores(), &scores(), Direction::I2t),
        "item bank: expected the 2 test items, got 3": DualBank::default().fit(&HeldOutBank(&scores()), &wide(), &scores(), Direction::I2t),
        "test: expected at least one query, got none": DualBank::default().fit(&HeldOutBank(&scores()), &scores(), &empty(0, 2), Direction::I2t),
        "k of local scaling: expected at least 1 neighbour, got 0": LocalScaling { k: 0, ..LocalScaling::nicdm() }.fit(&HeldOutBank(&scores()), &scores(), Direction::I2t),
        "scores of image 0 and text 0: expected a finite number,": LocalScaling::nicdm().fit(&HeldOutBank(&infinite()), &scores(), Direction::I2t),
        "scores of image 0 and text 0: expected a finite number,": EmpiricalProximity::default().fit(&HeldOutBank(&infinite()), &scores(), Direction::I2t),
        "bank: expected at least one query, got none": EmpiricalProximity::default().fit(&HeldOutBank(&empty(0, 2)), &scores(), Direction::I2t),
        "bank: expected the 3 test items, got 2": EmpiricalProximity::default().fit(&HeldOutBank(&scores()), &wide(), Direction::I2t),
        "scores of image 0 and text 0: expected a finite number,": GaussianProximity.fit(&HeldOutBank(&infinite()), &scores(), Direction::I2t),
        "bank: expected the 3 test items, got 2": GaussianProximity.fit(&HeldOutBank(&scores()), &wide(), Direction::I2t),
        "bank: expected at least one item, got none": GaussianProximity.fit(&HeldOutBank(&empty(2, 0)), &empty(2, 0), Direction::I2t),
        "β: expected a number above 0 and below 1e200, got NaN": Survey::fit(&scores(), 1, &[f64::NAN]).map(drop),
        "scores of image 0 and text 0: expected a finite number,": Survey::fit(&infinite(), 1, &[]).map(drop),
        "k: expected 1 to 1 neighbours, as many as were kept,": Survey::fit(&scores(), 1, &[]).unwrap().csls(Direction::I2t, 0),
        "k: expected 1 to 1 neighbours, as many as were kept,": Survey::fit(&scores(), 1, &[]).unwrap().csls(Direction::I2t, 2),
        "β: expected one of [1.0], got NaN": Survey::fit(&scores(), 1, &[1.0]).unwrap().inverted_softmax(Direction::I2t, f64::NAN),
        "items of direction i2t: expected the 2 that the": none().apply(&wide()),
        "scores of a query: expected one for each of 2 items,": none().of_query(&[1.0]),
        "score of a query with item 0: expected a finite number,": none().of_query(&[f32::NAN, 1.0]),
        "scale of the correction: expected a number above 0, got": affine(Affine::of_items(f64::NAN, vec![0.0; 2])).apply(&scores()),
        "scale of the correction: expected a number above 0, got": affine(Affine::of_items(0.0, vec![0.0; 2])).apply(&scores()),
        "items of the correction, value 0: expected a finite": affine(Affine::of_items(1.0, vec![f64::NAN; 2])).apply(&scores()),
        "items of the correction: expected at least one group,": affine(Affine { items: vec![], ..Affine::of_items(1.0, vec![]) }).check(&scores()),
        "groups of the correction: expected numbers below 1, got": affine(Affine { groups: vec![9; 2], ..Affine::of_items(1.0, vec![0.0; 2]) }).apply(&scores()),
        "queries of direction i2t: expected the 3 whose values": affine(Affine { queries: vec![0.0; 3], ..Affine::of_items(1.0, vec![0.0; 2]) }).apply(&scores()),
        "corrected score of image 0 and text 0: expected a": affine(Affine::of_items(1e300, vec![0.0; 2])).apply(&scores()),
        "export: expected a correction of direction t2i, got one": hubness::export::items(Direction::T2i, &[1.0; 4], 2, &none()),
        "items: expected 2 × 0 values, as many items as were": hubness::export::items(Direction::I2t, &[1.0; 4], 0, &none()),
        "items: expected 2 × 9223372036854775808 values, as many": hubness::export::items(Direction::I2t, &[1.0; 4], HUGE, &none()),
        "vector of item 0, value 0: expected a finite number,": hubness::export::items(Direction::I2t, &[f32::NAN; 4], 2, &none()),
        "scores: expected 3 images and 3 texts, as the pairs,": pass::ranks(&scores(), &Pairs::uniform(3, 1), &none(), &none()),
        "correction: expected one of direction t2i, got one of": pass::ranks(&scores(), &pairs(), &none(), &none()),
        "items of direction i2t: expected the 2 that the": pass::top(&wide(), &none(), 1),
        "scores of image 0 and text 0: expected a finite number,": pass::top(&infinite(), &none(), 1),
        "items of direction i2t: expected the 2 that the": Candidates::new(&wide(), &none(), 1).map(drop),
        "capacity of greedy matching: expected λ of at least 0,": capacity(f64::NAN, 1, 1, 1, CapacityScale::Balanced),
        "capacity of greedy matching: expected λ of at least 0,": capacity(-1.0, 1, 1, 1, CapacityScale::Balanced),
        "k: expected at most 1000000000 items, got": matching(HUGE, 1.0),
        "capacity of greedy matching: expected λ of at least 0,": matching(1, f64::NAN),
        "capacity of greedy matching: expected λ of at least 0,": matching(1, -1.0),
        "k: expected at most 1000000000 items, got": sweep(HUGE),
        "folds of a split: expected at most 65536, got": FoldSplit::new(HUGE, vec![0, 1]),
        "split, image 0: expected a fold below 0, got 0": FoldSplit::new(0, vec![0]),
        "cross-fitting: expected 2 to 65536 folds, got 18446": FoldSplit::hashed(&["a", "b"], usize::MAX, 0),
        "cross-fitting: expected 2 to 65536 folds, got 0": FoldSplit::hashed(&["a", "b"], 0, 0),
        "cross-fitting: expected at least 2 different image": FoldSplit::hashed(&["a", "a"], 2, 0),
        "hits of a: expected a size of the correction of 0 or": filled().push("a", f64::NAN, vec![[0; 3]; 2]),
        "hits of a: expected 2 images, got 0": filled().push("a", 0.0, vec![]),
        "hit table: expected at least 1 setting, got 0": cross_fit(&HitTable::default(), &FoldSplit::new(2, vec![0, 1]).unwrap(), Goal::Sum),
        "cross-fitting: expected a split of 2 images, got 3": cross_fit(&filled(), &FoldSplit::new(2, vec![0, 1, 1]).unwrap(), Goal::Sum),
        "hits of t2i: expected 1 images, got 0": joined_hits(&[[0; 3]], &[], &[1]),
        "folds: expected at least 1 fold, got 0": Nearest::new(&scores(), &[]),
    }
    panics! {
        "capacities go down, not from 1 to 9223372036854775808": lowered(HUGE),
        "lists of 0": TopLists::new(Direction::I2t, 0, vec![1], vec![1.0]),
        "lists of 2": TopLists::new(Direction::I2t, 2, vec![1], vec![1.0]),
        "one score for each item": TopLists::new(Direction::I2t, 1, vec![1], vec![]),
        "scores of lists, got NaN": TopLists::new(Direction::I2t, 1, vec![1], vec![f64::NAN]),
        "query 2 of 2": lists(1, vec![0, 1]).items(2),
        "query 9223372036854775808 of 1": lists(2, vec![0, 1]).items(HUGE),
        "query 9223372036854775808 of 1": lists(2, vec![0, 1]).scores(HUGE),
        "list of query 0: item 1 of 1": Counts::new(1, 1, [&[1][..]]),
        "9223372036854775808 items, not at most 2³²": Counts::new(HUGE, 1, [&[1][..]]),
        "the first 2 of 2 items, got lists of 1": Counts::top(2, 2, &lists(1, vec![0, 1])),
        "an aversion of 0 or more, got NaN": counts().atkinson(f64::NAN),
        "an aversion of 0 or more, got -1": counts().atkinson(-1.0),
        "10 nearest are kept, got 11": nearest().counts(Direction::I2t, 11),
        "10 nearest are kept, got 18446744073709551615": nearest().counts(Direction::I2t, usize::MAX),
        "0 values in rows of 0": hubness::rows::unit(0, &[]),
        "1 values in rows of 2": hubness::rows::unit(2, &[1.0]),
        "row 0, column 0: inf has no unit length": hubness::rows::unit(1, &[f32::INFINITY]),
        "1 values in rows of 0": hubness::rows::warnings("v", 0, &[1.0]),
        "1 values in rows of 2": hubness::rows::warnings("v", 2, &[1.0]),
        "row 0, column 0: NaN has no unit length": hubness::rows::warnings("v", 1, &[f32::NAN]),

    }
}

fn counts() -> Counts {
    Counts::new(2, 1, [&[0][..], &[1]])
}

fn matching(k: usize, lambda: f64) -> hubness::Result<()> {
    let (scores, none) = (wide(), Correction::<Plain>::none(&wide(), Direction::I2t).into_any());
    let candidates = Candidates::new(&scores, &none, 2)?;
    greedy_matching(&candidates, &GreedyOptions::new(k, lambda)).map(drop)
}

fn sweep(k: usize) -> hubness::Result<()> {
    let (scores, none) = (wide(), Correction::<Plain>::none(&wide(), Direction::I2t).into_any());
    let candidates = Candidates::new(&scores, &none, 2)?;
    GreedySweep::new(&candidates, k).map(drop)
}

fn lowered(capacity: usize) -> hubness::Result<()> {
    let (scores, none) = (wide(), Correction::<Plain>::none(&wide(), Direction::I2t).into_any());
    let candidates = Candidates::new(&scores, &none, 2)?;
    let mut sweep = GreedySweep::new(&candidates, 2)?;
    sweep.lower(1)?;
    sweep.lower(capacity)?;
    let _ = sweep.matching(Stop::default());
    Ok(())
}
