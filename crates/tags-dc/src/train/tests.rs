use burn::module::{ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use itm_core::data::{Bounds, Regions};
use itm_core::encoders::TokenBatch;
use itm_core::learn::{ImageItems, Items, Method, Observe, Rows, Step};
use itm_core::start::StartFrom;
use itm_core::{Pairs, host};
use itm_kernels::{AdamW, DecayRule, Noise, Precision, named};

use super::objective::Losses;
use super::retrieval::{Anchor, Anchors};
use super::*;
use crate::config::{
    CorrectionTargets, FilterKind, ImageAnchors, LossConfig, MaskingConfig, ModelConfig,
    RankingLoss, RetrievalConfig, SyntheticConfig, TrainConfig,
};
use crate::model::RegionBatch;
use crate::phrases::Duplicates;
use crate::{Choice, Repeat};

mod captions;
mod parity;
mod prior;
mod refused;
mod synthetic;

const WORDS: usize = 12;
const WIDTH: usize = 3;

fn config() -> TagsDcConfig {
    TagsDcConfig {
        model: ModelConfig {
            embed_dim: 8,
            heads: 2,
            layers: 1,
            positions: 10,
            hidden_dropout: 0.1,
            initializer_range: 0.02,
            start: StartFrom::Random,
            cca: None,
            prior: None,
            published: None,
        },
        captions: None,
        masking: MaskingConfig {
            by: MaskBy::Words,
            duplicates: Duplicates::Once,
            maskings: 2,
            rate: 0.15,
        },
        synthetic: SyntheticConfig {
            generator: GeneratorKind::Dynamic,
            sampling: Sampling::Training,
            refills: 3,
            temperature: 1.5,
            forbid_special: false,
            filter: FilterKind::Paper,
            repeat: Repeat::First,
            choice: Choice::Best,
            kept: 4,
            share_forward: true,
            released_positive: false,
        },
        retrieval: RetrievalConfig {
            sampled: 3,
            kept: 2,
            image_anchors: ImageAnchors::Independent,
        },
        loss: LossConfig {
            ranking: RankingLoss::Hinge,
            margin: 0.2,
            itm: 1.0,
            mlm: 0.1,
            istm: 0.0,
            wod: 0.0,
            wod_weights: [1.0, 0.11],
            woc: 0.0,
            woc_targets: CorrectionTargets::Masked,
        },
        train: TrainConfig {
            seed: 3,
            epochs: 1,
            updates: None,
            validate_every: None,
            validate_among: None,
            batch: 2,
            micro_batch: 8,
            learning_rate: 1e-2,
            warmup: 0.1,
            weight_decay: 0.01,
            grad_clip: 2.0,
            precision: Precision::F32,
        },
    }
}

/// Five images of one to three regions, with two texts each of one to four words.
struct Split {
    regions: Regions,
    texts: Vec<Vec<u32>>,
    pairs: Pairs,
}

impl Split {
    fn new() -> Self {
        Self::with_first_box(0.0)
    }

    /// The split whose first region has a box that begins at `first`.
    fn with_first_box(first: f32) -> Self {
        let counts = vec![1, 3, 2, 1, 2];
        let rows: usize = counts.iter().sum();
        let values = (0..rows * WIDTH).map(|k| ((k * 7) as f32 * 0.6).sin()).collect();
        let boxes = (0..rows).map(|k| {
            let x1 = if k == 0 { first } else { k as f32 / 20.0 };
            Bounds { x1, y1: 0.1, x2: x1 + 0.4, y2: 0.9 }
        });
        let regions = Regions::new(WIDTH, counts, values).unwrap();
        let text = |t: usize| (0..=t % 4).map(|j| (2 + (t * 3 + j) % 10) as u32).collect();
        Self {
            regions: regions.with_boxes(boxes.collect()).unwrap(),
            texts: (0..10).map(text).collect(),
            pairs: Pairs::uniform(5, 2),
        }
    }

    fn items(&self) -> Items<'_> {
        let images = ImageItems::Regions(&self.regions);
        Items { images, texts: &self.texts, pairs: &self.pairs }
    }
}

fn marks() -> Marks {
    Marks::of_words(WORDS).unwrap()
}

fn model(config: &TagsDcConfig) -> TagsDc {
    TagsDc::new(config, WIDTH, marks(), 100, &Device::flex()).unwrap()
}

fn step(
    model: &mut TagsDc,
    split: &Split,
    captions: &[usize],
    seed: u64,
) -> itm_core::Result<Step> {
    let regions = split
        .regions
        .rows(&captions.iter().map(|&c| split.pairs.image_of(c)).collect::<Vec<_>>())?;
    let rows = Rows::of(&split.items(), captions);
    model.step(&rows.with_images((&regions).into()), seed, Observe::Off)
}

/// The logit of a single pair, without padding, other rows or noise.
fn alone(model: &TagsDc, split: &Split, image: usize, text: usize) -> f64 {
    let regions = RegionBatch::of(&split.regions, &[image]).unwrap();
    let regions = model.model().embed_regions(&regions);
    let text = model.marks().around(&split.texts[text]);
    let joint = model.model().join(&TokenBatch::new(&[text]), &regions, &[0], Noise::Off);
    f64::from(host(model.model().match_logits(&joint).inner())[0])
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Eq. 5 over scores of single pairs: the batch, its padding and its order change nothing. Traps 3 and 4.
#[test]
fn retrieved_pairs_are_compared_by_their_own_probabilities() {
    let (split, model) = (Split::new(), model(&config()));
    let anchors = [
        Anchor { image: 0, text: 1, negatives: vec![(1, 1), (4, 1)] },
        Anchor { image: 2, text: 4, negatives: vec![(3, 4)] },
        Anchor { image: 1, text: 3, negatives: vec![(1, 0), (1, 6), (1, 9)] },
        Anchor { image: 3, text: 7, negatives: vec![(3, 2)] },
    ];
    let score = |image, text| sigmoid(alone(&model, &split, image, text));
    let mean = |anchor: &Anchor| {
        let own = score(anchor.image, anchor.text);
        let hinges = anchor.negatives.iter().map(|&(i, t)| (0.2 - own + score(i, t)).max(0.0));
        let hinges: Vec<f64> = hinges.collect();
        hinges.iter().sum::<f64>() / hinges.len() as f64
    };
    let want = anchors.iter().map(mean).sum::<f64>() / 2.0;
    let (mut losses, items) = (Losses::default(), split.items());
    let data = (&split.regions, model.marks(), &items);
    let anchors = Anchors(anchors.to_vec());
    losses.retrieved(model.model(), &anchors, data, &config().loss, Noise::Off).unwrap();
    let got = f64::from(host(losses.value.unwrap().inner())[0]);
    assert!((got - want).abs() < 1e-6, "{got}, by hand {want}");
}

/// Eq. 1 of two anchors of two lengths is the mean of their single losses: padding is no target, and an anchor with more targets has no more
/// weight. Trap 5.
#[test]
fn masked_words_are_averaged_within_their_anchor_first() {
    let mut often = config();
    often.masking.rate = 0.9;
    let (split, model) = (Split::new(), model(&often));
    let masked = model.maskings(&split.items(), &[3, 4], (0, 2), 9).unwrap();
    assert_ne!(masked[0].targets(), masked[1].targets(), "or a flat mean would be the same");
    let loss = |anchors: &[TextMaskings]| {
        let mut losses = Losses::default();
        losses.masked(model.model(), anchors, Some(&split.regions), 1.0, Noise::Off).unwrap();
        f64::from(host(losses.value.unwrap().inner())[0])
    };
    // Random weights know nothing: each target costs about ln of the number of tokens, however many targets there are.
    let of_one = (model.marks().tokens as f64).ln();
    assert!((loss(&masked[..1]) - of_one).abs() < 0.1, "{} and {of_one}", loss(&masked[..1]));
    let want = (loss(&masked[..1]) + loss(&masked[1..])) / 2.0;
    assert!((loss(&masked) - want).abs() < 1e-6, "{} and {want}", loss(&masked));
}

/// The best of the drawn negatives stay, and no negative belongs to its anchor's image. Trap 20.
#[test]
fn the_hardest_of_those_drawn_learn() {
    let (split, model) = (Split::new(), model(&config()));
    let items = split.items();
    for (seed, image_anchors) in
        [(1, ImageAnchors::Independent), (2, ImageAnchors::Same), (3, ImageAnchors::Same)]
    {
        let retrieval = RetrievalConfig { sampled: 3, kept: 1, image_anchors };
        let drawn = Anchors::new(&[0, 5, 9], &retrieval, &items, seed).unwrap();
        let kept = drawn.clone();
        let kept = kept.with_hardest(model.model(), model.marks(), &items, &split.regions, 1);
        for (drawn, kept) in drawn.0.iter().zip(kept.unwrap().0) {
            assert_eq!(split.pairs.image_of(drawn.text), drawn.image);
            assert_eq!(drawn.negatives.len(), 3);
            let false_pair = |&(i, t): &(usize, usize)| split.pairs.image_of(t) != i;
            assert!(drawn.negatives.iter().all(false_pair));
            let score = |&(i, t): &(usize, usize)| alone(&model, &split, i, t);
            let best = drawn.negatives.iter().max_by(|a, b| score(a).total_cmp(&score(b))).unwrap();
            assert_eq!(kept.negatives, [*best]);
        }
        let captions = drawn.0[3..].iter().map(|anchor| anchor.text).collect::<Vec<_>>();
        assert_eq!(captions == [0, 5, 9], image_anchors == ImageAnchors::Same);
    }
}

/// Trap 13: scoring negatives does not turn noise on or off for later passes; scores are the same every time.
#[test]
fn scores_are_without_noise_before_and_after_a_step() {
    let (split, mut model) = (Split::new(), model(&config()));
    let scores = |model: &TagsDc| model.scored(split.items()).unwrap().matrix().unwrap();
    assert_eq!(scores(&model), scores(&model));
    let first = step(&mut model.clone(), &split, &[0, 4], 5).unwrap();
    assert_eq!(step(&mut model, &split, &[0, 4], 5).unwrap(), first);
    assert_eq!(scores(&model), scores(&model));
    let mut quiet = config();
    quiet.model.hidden_dropout = 0.0;
    let without = step(&mut super::tests::model(&quiet), &split, &[0, 4], 5).unwrap();
    assert_ne!(without.loss, first.loss, "a step has noise");
}

/// Each option gives another model after a step.
#[test]
fn options_change_the_step() {
    let split = Split::new();
    let scores = |config: &TagsDcConfig| {
        let mut model = model(config);
        let losses = [0, 1].map(|seed| step(&mut model, &split, &[0, 4], seed).unwrap().loss);
        (losses, model.scored(split.items()).unwrap().matrix().unwrap())
    };
    let default = scores(&config());
    assert_eq!(scores(&config()), default);
    let changes: [fn(&mut TagsDcConfig); 14] = [
        |c| c.retrieval.image_anchors = ImageAnchors::Same,
        |c| c.retrieval.sampled = 2,
        |c| c.retrieval.kept = 1,
        |c| c.masking.maskings = 1,
        |c| c.masking.rate = 0.9,
        |c| c.loss.margin = 0.5,
        |c| c.loss.ranking = RankingLoss::CrossEntropy,
        |c| c.loss.mlm = 0.0,
        |c| c.loss.itm = 0.0,
        |c| c.train.warmup = 0.5,
        |c| c.train.weight_decay = 0.5,
        |c| c.train.grad_clip = 0.01,
        |c| c.model.hidden_dropout = 0.3,
        |c| c.model.initializer_range = 0.1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut config = config();
        change(&mut config);
        assert_ne!(scores(&config), default, "change {number}");
    }
}

/// In bf16, losses and scores are near f32's. Where the processor has bf16, they differ from f32's.
#[test]
fn bf16_is_near_f32() {
    let run = |precision| {
        let (mut config, split) = (config(), Split::new());
        config.train.precision = precision;
        let mut model = model(&config);
        assert!(model.model().bert.blocks.iter().all(|block| block.up.precision == precision));
        let losses = [0, 1].map(|seed| step(&mut model, &split, &[0, 4], seed).unwrap().loss);
        let scores = model.scored(split.items()).unwrap().matrix().unwrap();
        (losses, (0..5).flat_map(|row| scores.row(row).to_vec()).collect::<Vec<_>>())
    };
    let (plain, rounded) = (run(Precision::F32), run(Precision::Bf16));
    let loss =
        plain.0.iter().zip(rounded.0).map(|(a, b)| (a - b).abs()).max_by(f64::total_cmp).unwrap();
    let score =
        plain.1.iter().zip(&rounded.1).map(|(a, b)| (a - b).abs()).max_by(f32::total_cmp).unwrap();
    assert!(loss < 0.05 && score < 0.05, "{loss}, {score}");
    assert_eq!(plain != rounded, Precision::Bf16.here() == Precision::Bf16);
}

/// Trap 18, by the published names: with zero gradients, the weights that decay shrink by 1 − η · 0.01, and all others stay. A prior is CCA's.
#[test]
fn decay_goes_by_the_published_names() {
    #[derive(Default)]
    struct Values {
        largest: Vec<f32>,
        zeros: GradientsParams,
    }
    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val().inner();
            let largest = host(value.clone()).iter().fold(0.0f32, |a, x| a.max(x.abs()));
            self.largest.push(largest);
            self.zeros.register(param.id, value.zeros_like());
        }
    }
    let values = |model: &Uniter| {
        let mut values = Values::default();
        model.visit(&mut values);
        values
    };
    let (_, start) = prior::with_prior();
    let model = model(&config()).model().clone().with_word_heads().with_prior(&start).unwrap();
    // No weight is 0 at first, because a 0 cannot shrink.
    let model = {
        struct Add;
        impl ModuleMapper for Add {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                param.map(|value| (value + 1.0).detach().require_grad())
            }
        }
        model.map(&mut Add)
    };
    let before = values(&model);
    let (model, _) = AdamW::new(config().train.optimizer()).step(model, before.zeros, 1.0);
    let (names, after) = (named(&model), values(&model).largest);
    assert_eq!((names.len(), after.len()), (before.largest.len(), before.largest.len()));
    for (((name, _), before), after) in names.iter().zip(&before.largest).zip(&after) {
        // The released program exempts `bias` and `LayerNorm.weight`; `img_layer_norm.weight` and `pos_layer_norm.weight` are neither.
        let of_norm = name.contains("norm");
        let (factor, shift) = (name.ends_with("gamma"), name.ends_with("beta"));
        let of_a_region = name.contains("feature_norm") || name.contains("box_norm");
        let prior = name.starts_with("prior.");
        let free = name.ends_with("bias") || shift || (factor && !of_a_region) || prior;
        assert!(!of_norm || factor || shift, "{name}");
        let want = if free { *before } else { 0.99 * before };
        assert!((after - want).abs() < 1e-6 * before, "{name}: {before}, then {after}");
    }
    let DecayRule::Unless(free) = config().train.optimizer().decayed else { panic!("names") };
    assert!(free.iter().all(|name| !name.starts_with('.') && !name.ends_with('.')), "{free:?}");
    let decayed = |part: &str| names.iter().any(|(name, _)| name.contains(part));
    assert!(
        ["feature_norm.gamma", "box_norm.gamma", "norm_2.gamma", "cls.bias"]
            .iter()
            .all(|&part| decayed(part))
    );
}

/// Trap 19, by hand: in 20 updates the rate rises over the first two, then falls to 1e-8.
#[test]
fn golden_rates() {
    let rate = |n| config().train.rate(n, 20);
    for (n, want) in [(1, 5e-3), (2, 1e-2), (11, 5e-3), (19, 1e-2 / 18.0), (20, 1e-8), (30, 1e-8)] {
        assert!((rate(n) - want).abs() < 1e-15, "update {n}: {}", rate(n));
    }
}

/// A set smaller than Q is taken whole. A single image has no negatives, so that its pairs have only the loss of the words.
#[test]
fn small_sets_train() {
    let mut split = Split::new();
    let mut large = config();
    large.retrieval = RetrievalConfig { sampled: 100, kept: 50, ..large.retrieval };
    assert!(step(&mut model(&large), &split, &[0, 9], 1).unwrap().loss > 0.0);
    split.pairs = Pairs::uniform(1, 2);
    split.texts.truncate(2);
    let mut model = model(&config());
    let step = step(&mut model, &split, &[0, 1], 1).unwrap();
    assert!(step.loss.is_finite() && step.active == 0.0);
}
