//! A micro-step of TAGS-DC's second phase at the paper's size. Each row runs in its own process and prints one line of JSON.
//!
//! ```text
//! cargo bench -p tags-dc --features flex --bench tags_step -- --list
//! cargo bench -p tags-dc --features flex --bench tags_step -- tags-micro-step ours --threads 2 --seconds 4
//! ```
//!
//! UNITER-base with random weights, 36 regions of 2,048 numbers, one anchor of each kind: K = L = 20, m = h = 31, Q = 399, all five
//! losses, and clipped Adam. The anchor has 12 words; the other texts have 5 to 19. The filter knows the other captions of the anchor's
//! image. These captions hold [`TOLD`] of all words, so that half of the synthetic sentences pass. A step with another share is an error.
//! `python tests/performance.py` also runs PyTorch's step, which `tests/reference/performance.py` measures in the same way.

#[path = "../../itm-core/benches/process/mod.rs"]
mod process;

use std::process::ExitCode;

use burn::tensor::Device;
use itm_core::Pairs;
use itm_core::data::{Bounds, Regions};
use itm_core::learn::{Batch, ImageItems, Images, Items, Method, Observe};
use itm_core::start::StartFrom;
use itm_kernels::{Precision, random};
use process::Step;
use tags_dc::config::{
    CorrectionTargets, FilterKind, GeneratorKind, ImageAnchors, LossConfig, MaskingConfig,
    ModelConfig, RetrievalConfig, Sampling, SyntheticConfig, TagsDcConfig, TrainConfig,
};
use tags_dc::phrases::Duplicates;
use tags_dc::train::{Marks, TagsDc};
use tags_dc::{Choice, MaskBy, Repeat};

/// The share of all words that occurs in captions of the anchor's image. With this share half of the synthetic sentences pass.
const TOLD: f64 = 0.65;

const ROW: &str = "tags-micro-step";

/// The sizes of a row.
#[derive(Clone, Copy)]
struct Size {
    width: usize,
    heads: usize,
    layers: usize,
    /// Number of word pieces.
    pieces: u32,
    /// The first piece that is a word.
    first_word: u32,
    regions: usize,
    region_width: usize,
    images: usize,
    /// K and L.
    repeats: usize,
    /// Q.
    sampled: usize,
    /// m and h.
    kept: usize,
    /// Words of the anchor.
    words: usize,
}

const PAPER: Size = Size {
    width: 768,
    heads: 12,
    layers: 12,
    pieces: 28_996,
    first_word: 106,
    regions: 36,
    region_width: 2048,
    images: 400,
    repeats: 20,
    sampled: 399,
    kept: 31,
    words: 12,
};

/// For a quick trial, which accepts any share.
const TINY: Size = Size {
    width: 8,
    heads: 2,
    layers: 1,
    pieces: 300,
    first_word: 106,
    regions: 3,
    region_width: 5,
    images: 12,
    repeats: 3,
    sampled: 5,
    kept: 2,
    words: 4,
};

fn main() -> ExitCode {
    let step = |name: &str, variant: &str| match (name, variant) {
        (ROW, "ours") => step_of(PAPER, 0.45..=0.55, Precision::F32),
        (ROW, "ours-bf16") => step_of(PAPER, 0.45..=0.55, Precision::Bf16),
        _ => Err(format!("no row {name} with a variant {variant}")),
    };
    let try_out = || {
        step_of(TINY, 0.0..=1.0, Precision::Bf16)
            .and_then(|mut step| (0..3).try_for_each(|_| step()))
    };
    let bf16 = Precision::Bf16.here() == Precision::Bf16;
    let variants = if bf16 { vec!["ours", "ours-bf16"] } else { vec!["ours"] };
    process::main(&[(ROW.to_owned(), variants)], step, try_out)
}

/// Builds model and data, and returns one step. The step fails if the share of synthetic sentences that pass is outside `survivors`.
fn step_of(
    size: Size,
    survivors: std::ops::RangeInclusive<f64>,
    precision: Precision,
) -> Result<Step, String> {
    let mut config = config(size);
    config.train.precision = precision;
    let say = |error: itm_core::Error| error.to_string();
    let (regions, texts, pairs) = split(size).map_err(say)?;
    let marks = Marks::of_pieces(
        [0, 100, 101, 102, 103],
        size.first_word..size.pieces,
        size.pieces as usize,
    );
    let mut model =
        TagsDc::new(&config, size.region_width, marks, 1000, &Device::flex()).map_err(say)?;
    let first: Vec<f32> = values(size.regions * size.region_width);
    Ok(Box::new(move || {
        let images = ImageItems::Regions(&regions);
        let train = Some(Items { images, texts: &texts, pairs: &pairs });
        let batch = Batch {
            images: Images::Regions {
                width: size.region_width,
                counts: &[size.regions],
                values: &first,
            },
            texts: &[&texts[0]],
            image_ids: &[0],
            caption_ids: &[0],
            train,
        };
        let step = model.step(&batch, 1, Observe::Off).map_err(say)?;
        let kept = step.numbers.means().find(|(name, _)| *name == "synthetic_kept").map(|x| x.1);
        match kept.is_some_and(|kept| survivors.contains(&kept)) {
            true => Ok(()),
            false => Err(format!("expected a surviving share in {survivors:?}, got {kept:?}")),
        }
    }))
}

/// Random values, the same in every call.
fn values(n: usize) -> Vec<f32> {
    (0..n).map(|k| random::unit(1, k as u64)).collect()
}

/// Images with one caption each. The first image has more captions, which together hold [`TOLD`] of all words.
fn split(size: Size) -> itm_core::Result<(Regions, Vec<Vec<u32>>, Pairs)> {
    let Size { images, regions, region_width, .. } = size;
    let features = values(images * regions * region_width);
    let features = Regions::new(region_width, vec![regions; images], features)?;
    let boxes = values(images * regions).into_iter().map(|x| {
        let x1 = x / 2.0;
        Bounds { x1, y1: 0.1, x2: x1 + 0.4, y2: 0.9 }
    });
    let all = size.pieces - size.first_word;
    let word = |k: usize| size.first_word + (k as u32 * 7919) % all; // 7919 is prime: each word once
    let text = |first: usize, n: usize| -> Vec<u32> {
        [101].into_iter().chain((first..first + n).map(word)).chain([102]).collect()
    };
    let mut texts = vec![text(0, size.words)];
    let mut of = vec![0];
    let told = (f64::from(all) * TOLD) as usize;
    for first in (0..told).step_by(size.words) {
        texts.push(text(first, size.words));
        of.push(0);
    }
    for image in 1..images {
        texts.push(text(image * 31, 5 + image * 7 % 15));
        of.push(image);
    }
    Ok((features.with_boxes(boxes.collect())?, texts, Pairs::new(images, of)?))
}

fn config(size: Size) -> TagsDcConfig {
    TagsDcConfig {
        model: ModelConfig {
            embed_dim: size.width,
            heads: size.heads,
            layers: size.layers,
            positions: 512,
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
            maskings: size.repeats,
            rate: 0.15,
        },
        synthetic: SyntheticConfig {
            generator: GeneratorKind::Dynamic,
            sampling: Sampling::Training,
            refills: size.repeats,
            temperature: 1.5,
            forbid_special: false,
            filter: FilterKind::Paper,
            repeat: Repeat::First,
            choice: Choice::Best,
            kept: size.kept,
            share_forward: true,
            released_positive: false,
        },
        retrieval: RetrievalConfig {
            sampled: size.sampled,
            kept: size.kept,
            image_anchors: ImageAnchors::Independent,
        },
        loss: LossConfig {
            ranking: Default::default(),
            margin: 0.2,
            itm: 1.0,
            mlm: 0.1,
            istm: 1e-3,
            wod: 1e-3,
            wod_weights: [1.0, 0.11],
            woc: 1e-3,
            woc_targets: CorrectionTargets::Masked,
        },
        train: TrainConfig {
            seed: 0,
            epochs: 1,
            updates: None,
            validate_every: None,
            validate_among: None,
            batch: 1,
            micro_batch: 1,
            learning_rate: 5e-5,
            warmup: 0.1,
            weight_decay: 0.01,
            grad_clip: 2.0,
            precision: Precision::F32,
        },
    }
}
