//! Scores by blocks.

use itm_core::Pairs;
use itm_core::data::Regions;
use itm_core::eval::Ranks;
use itm_core::scored::Scored;
use itm_kernels::random;

use super::*;
use crate::model::scores::batch_of;
use crate::{Generator, Masking, Scores};

const IMAGES: usize = 9;
const ALL_TEXTS: usize = 21;

fn number(seed: u64, k: usize, below: usize) -> usize {
    (random::unit(seed, k as u64) * below as f32) as usize
}

/// Images of 1 to 5 regions and texts of 2 to 8 pieces.
fn made(model: &Uniter) -> UniterScores {
    let counts: Vec<usize> = (0..IMAGES).map(|k| 1 + number(1, k, 5)).collect();
    let n: usize = counts.iter().sum();
    let values = |seed, width: usize| {
        (0..n * width).map(|k| random::unit(seed, k as u64)).collect::<Vec<f32>>()
    };
    let images = RegionBatch::new(6, counts, values(2, 6), values(3, 7)).unwrap();
    let text = |k| (0..2 + number(4, k, 7)).map(|j| 5 + number(5, 50 * k + j, 45) as u32).collect();
    UniterScores::new(model, [Ok(images)], (0..ALL_TEXTS).map(text).collect()).unwrap()
}

/// The logits of the golden's three pairs, among all pairs of its images and texts.
#[test]
fn golden_scores_of_pairs() {
    let model = open("full.safetensors", &Device::flex().autodiff());
    let texts = TEXTS.map(<[u32]>::to_vec).to_vec();
    let scores = UniterScores::new(&model, [Ok(regions())], texts).unwrap();
    assert_eq!((scores.images(), scores.texts()), (2, 3));
    let matrix = scores.matrix().unwrap();
    let got = [matrix.row(0)[0], matrix.row(1)[1], matrix.row(1)[2]];
    assert!(off(&got, &golden()["logits"]) < 1e-5, "{got:?}");
    assert_eq!(scores.pairs(&[0, 1, 1], &[0, 1, 2]).unwrap(), got);
}

/// The golden's first text beside its image: two masked words, and the match score.
#[test]
fn golden_words_and_scores_beside_an_image() {
    let (g, model) = (golden(), open("full.safetensors", &Device::flex().autodiff()));
    let n = REGIONS[0];
    let (features, boxes) = (g["features"][..n * 6].to_vec(), g["boxes"][..n * 7].to_vec());
    let image = RegionBatch::new(6, vec![n], features, boxes).unwrap();
    let mut beside = Beside::new(&model, &image).unwrap();
    // More sentences than one pass takes.
    let scores = beside.scores(&[TEXTS[0]; 40]).unwrap();
    assert!(off(&scores, &[g["logits"][0]; 40]) < 1e-5, "{scores:?}");
    let mut labels = vec![None; TEXTS[0].len()];
    WORDS.iter().filter(|place| place[0] == 0).for_each(|place| labels[place[1]] = Some(0));
    let masked = Masking { ids: TEXTS[0].to_vec(), labels };
    let logits = beside.logits(&vec![masked; 40]).unwrap();
    assert_eq!(beside.vocabulary(), 50);
    assert!(off(&logits, &g["words"][..2 * 50].repeat(40)) < 1e-5);
    let line = Beside::new(&model, &regions()).unwrap_err().to_string();
    assert_eq!(line, "regions: expected one image, got 2");
}

#[test]
fn blocks_change_no_bit() {
    let scores = made(&open("full.safetensors", &Device::flex()));
    let all = scores.matrix().unwrap();
    for size in [1, 2, 5, 9, 21] {
        for i in (0..IMAGES).step_by(size) {
            for c in (0..ALL_TEXTS).step_by(size) {
                let (images, texts) = (i..(i + size).min(IMAGES), c..(c + size).min(ALL_TEXTS));
                let block = scores.block(images.clone(), texts.clone()).unwrap();
                for (row, image) in images.enumerate() {
                    assert_eq!(block.row(row), &all.row(image)[texts.clone()], "size {size}");
                }
            }
        }
    }
    let (images, texts): (Vec<_>, Vec<_>) =
        (0..40).map(|k| (k * 5 % IMAGES, k * 11 % ALL_TEXTS)).unzip();
    let want: Vec<f32> = images.iter().zip(&texts).map(|(&i, &c)| all.row(i)[c]).collect();
    assert_eq!(scores.pairs(&images, &texts).unwrap(), want);
}

/// By hand: base with 612 positions takes 612 · (4 · 768 + 3072 + 12 · 612) · 4 = 33,018,624 bytes a pair, and 256 MiB hold 8 of them. The
/// published limits of texts and regions leave 16 pairs.
#[test]
fn golden_pairs_of_a_batch() {
    let (base, large) = (UniterShape::base(), UniterShape::large());
    for (shape, width, want) in [
        (&base, 612, 8),
        (&base, 164, 16),
        (&large, 164, 16),
        (&large, 40_000, 1),
        (&shape(), 8, 16),
    ] {
        assert_eq!(batch_of(shape, width), want, "{width} positions");
    }
}

#[test]
fn scores_are_those_of_each_pair_alone() {
    let model = open("full.safetensors", &Device::flex());
    let scores = made(&model);
    let all = scores.matrix().unwrap();
    for (image, text) in [(0, 0), (3, 17), (8, 20)] {
        let rows = scores.regions_of(image);
        let own = scores.rows[rows.start * 16..rows.end * 16].to_vec();
        let rows = Tensor::from_data(TensorData::new(own, [rows.len(), 16]), &Device::flex());
        let counts = vec![rows.dims()[0]];
        let texts = TokenBatch::new(&[&scores.texts[text]]);
        let joint =
            model.join(&texts, &EmbeddedRegions { rows, counts, prior: None }, &[0], Noise::Off);
        let alone = host(model.match_logits(&joint));
        assert!(off(&[all.row(image)[text]], &alone) < 1e-5, "{image}, {text}");
    }
}

#[test]
fn ranks_are_those_of_the_matrix_and_dropout_is_off() {
    let scores = made(&open("full.safetensors", &Device::flex().autodiff()));
    let pairs = Pairs::new(IMAGES, (0..ALL_TEXTS).map(|c| c % IMAGES).collect()).unwrap();
    let want = Ranks::new(&scores.matrix().unwrap(), &pairs).unwrap();
    assert_eq!(scores.ranks(&pairs).unwrap(), want);
}

#[test]
fn bad_input_is_named() {
    let model = open("full.safetensors", &Device::flex());
    let refused = |images: &[RegionBatch], texts: &[&[u32]]| {
        let texts = texts.iter().map(|text| text.to_vec()).collect();
        UniterScores::new(&model, images.iter().cloned().map(Ok), texts).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&[], &[&[2, 3], &[]]),
        "text 1: expected 1 to 9 tokens, [CLS] and [SEP] included, got 0"
    );
    assert_eq!(
        refused(&[], &[&[2; 10]]),
        "text 0: expected 1 to 9 tokens, [CLS] and [SEP] included, got 10"
    );
    assert_eq!(refused(&[], &[&[2, 50, 3]]), "text 0: expected tokens below 50, got 50");
    let wide = RegionBatch::new(7, vec![1], vec![0.0; 7], vec![0.0; 7]).unwrap();
    assert_eq!(refused(&[wide], &[&[2]]), "features of regions: expected 6 wide, got 7");
    let without = Regions::new(6, vec![1], vec![0.0; 6]).unwrap();
    let line = UniterScores::of_split(&model, &without, vec![]).unwrap_err().to_string();
    assert!(line.contains("a box for each region"), "{line}");
    let mut broken = model.clone();
    broken.rank.bias = broken.rank.bias.map(|b| b * f32::NAN);
    let scores = UniterScores::new(&broken, [Ok(regions())], vec![vec![2, 3]]).unwrap();
    let line = scores.matrix().unwrap_err().to_string();
    assert_eq!(line, "score of image 0 with text 0: expected a number, got NaN");
}
