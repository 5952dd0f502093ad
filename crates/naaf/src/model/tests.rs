use burn::tensor::TensorData;
use itm_core::host;
use itm_core::start::LinearMap;

use super::*;
use crate::config::RegionMapKind;
use crate::config::tests::tiny;

const X: usize = 3;
const VALUES: [f32; 9] = [0.5, -1.0, 0.25, 2.0, 0.0, -0.5, 0.0, 0.0, 0.0];
const COUNTS: [usize; 2] = [2, 1];

fn config(region_map: RegionMapKind, text: TextKind) -> NaafModelConfig {
    NaafModelConfig { region_map, text, embed_dim: 4, ..tiny().model }
}

fn map_of(encoders: &NaafEncoders) -> &RegionMap {
    let RegionEncoder::Map(map) = &encoders.image else { panic!("a map of regions") };
    map
}

fn encoders(config: &NaafModelConfig, device: &Device) -> NaafEncoders {
    NaafEncoders::new(config, X, 7, 5, device).unwrap()
}

fn unit(row: &[f64]) -> Vec<f64> {
    let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    row.iter().map(|x| if norm > 0.0 { x / norm } else { 0.0 }).collect()
}

fn close(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    let error = got
        .iter()
        .zip(want)
        .map(|(g, w)| (f64::from(*g) - w).abs())
        .max_by(f64::total_cmp)
        .unwrap();
    assert!(error < 2e-6, "off by {error:e}: {got:?} for {want:?}");
}

fn wide(values: Vec<f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

/// `unit(W r + b)` in double precision, with one factor for the matrix if there is a gain.
#[test]
fn regions_are_the_equation() {
    for kind in [RegionMapKind::Xavier, RegionMapKind::WeightNorm] {
        let mut made = encoders(&config(kind, TextKind::Words), &Device::flex());
        let mut factor = 1.0;
        if let Some(gain) = &map_of(&made).gain {
            let weight = wide(host(map_of(&made).linear.weight.val()));
            let norm = weight.iter().map(|w| w * w).sum::<f64>().sqrt();
            close(&host(gain.val()), &[norm]); // the initial gain changes nothing
            let gain = burn::module::Param::from_tensor(gain.val() * 3.0);
            let image = RegionMap { gain: Some(gain), ..map_of(&made).clone() };
            made.image = RegionEncoder::Map(image);
            factor = 3.0;
        }
        let weight = wide(host(map_of(&made).linear.weight.val()));
        let bias = wide(host(map_of(&made).linear.bias.val()));
        let got = made.regions(
            Images::Regions { width: X, counts: &COUNTS, values: &VALUES },
            InputDropout::OFF,
        );
        let mut want = vec![];
        for row in VALUES.chunks(X) {
            let of = |k: usize| {
                let sum: f64 = (0..X).map(|i| f64::from(row[i]) * weight[i * 4 + k]).sum();
                factor * sum + bias[k]
            };
            want.extend(unit(&(0..4).map(of).collect::<Vec<_>>()));
        }
        assert_eq!(got.rows.dims(), [2, 2, 4]);
        close(&host(got.rows)[..12], &want);
    }
}

/// Random weights are within their bounds. Only Xavier has a bias of 0.
#[test]
fn random_maps_are_in_their_bounds() {
    let most = |kind| {
        let map = RegionMap::new(kind, [600, 50], 3, &Device::flex());
        let largest = |x: Vec<f32>| x.into_iter().map(f32::abs).max_by(f32::total_cmp).unwrap();
        [largest(host(map.linear.weight.val())), largest(host(map.linear.bias.val()))]
    };
    let bounds = |kind, [weight, bias]: [f64; 2]| {
        let [w, b] = most(kind).map(f64::from);
        assert!(w <= weight && w > 0.99 * weight && b <= bias && b >= 0.9 * bias, "{w} {b}");
    };
    bounds(RegionMapKind::Xavier, [(6f64 / 650.0).sqrt(), 0.0]);
    bounds(RegionMapKind::WeightNorm, [(1f64 / 600.0).sqrt(); 2]);
}

/// `unit(e_i + mean_l e_l)` in double precision; other captions and padding change no row.
#[test]
fn trap_15_words_get_the_mean_of_their_caption() {
    let device = Device::flex();
    let mut made = encoders(&config(RegionMapKind::Xavier, TextKind::Words), &device);
    let WordEncoder::Words(words) = &mut made.text else { panic!() };
    let bias = [0.1f32, -0.05, 0.02, 0.0];
    let tensor = Tensor::from_data(TensorData::new(bias.to_vec(), [4]), &device);
    words.bias = burn::module::Param::from_tensor(tensor);
    let table = wide(host(words.table.val()));
    let captions: [&[u32]; 3] = [&[2, 5], &[6], &[1, 3, 3, 4]];
    let got = made.words(&captions, InputDropout::OFF);
    assert_eq!((got.rows.dims(), &got.counts[..]), ([3, 4, 4], &[2, 1, 4][..]));
    let got = host(got.rows);
    for (c, caption) in captions.iter().enumerate() {
        let e = |id: u32| -> Vec<f64> {
            (0..4).map(|k| table[id as usize * 4 + k] + f64::from(bias[k])).collect()
        };
        let mean =
            |k: usize| caption.iter().map(|&id| e(id)[k]).sum::<f64>() / caption.len() as f64;
        for (j, &id) in caption.iter().enumerate() {
            let row: Vec<f64> = (0..4).map(|k| e(id)[k] + mean(k)).collect();
            close(&got[(c * 4 + j) * 4..][..4], &unit(&row));
        }
        let alone = host(made.words(&[caption], InputDropout::OFF).rows);
        close(&alone[..caption.len() * 4], &wide(got[c * 16..][..caption.len() * 4].to_vec()));
    }
}

/// All regions of one image lose the same features; another image loses other features. Evaluation loses none.
#[test]
fn an_image_has_one_mask() {
    let made = encoders(&config(RegionMapKind::Xavier, TextKind::Words), &Device::flex());
    let row: Vec<f32> = (0..X).map(|k| 1.0 + k as f32).collect();
    let values = row.repeat(60);
    let counts = [3usize; 20];
    let rows = |dropout| {
        host(
            made.regions(Images::Regions { width: X, counts: &counts, values: &values }, dropout)
                .rows,
        )
    };
    let on = rows(InputDropout { share: 0.4, noise: Noise::Seeded(9) });
    let mut kinds = std::collections::BTreeSet::new();
    for image in on.chunks(12) {
        assert!(image[..4] == image[4..8] && image[..4] == image[8..]);
        kinds.insert(image[..4].iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    }
    assert!(kinds.len() > 3, "{} kinds of masks", kinds.len());
    assert_eq!(on, rows(InputDropout { share: 0.4, noise: Noise::Seeded(9) }));
    let off = rows(InputDropout::OFF);
    assert!(off.chunks(4).all(|row| row == &off[..4]) && off != on);
}

/// Frozen vectors get no gradient; the weights of the recurrent unit do.
#[test]
fn frozen_vectors_stay() {
    let device = Device::flex().autodiff();
    for freeze in [false, true] {
        let mut config = config(RegionMapKind::Xavier, TextKind::Bigru);
        config.freeze_embedding = freeze;
        let made = encoders(&config, &device);
        let WordEncoder::BiGru(text) = &made.text else { panic!() };
        let loss = made.words(&[&[2u32, 5][..], &[1]], InputDropout::OFF).rows.sum();
        let grads = loss.backward();
        assert_eq!(text.words.words.val().grad(&grads).is_none(), freeze);
        assert!(text.words.gru.ahead.w_ih.val().grad(&grads).is_some());
    }
}

/// Given vectors become the vectors of their words. A table of words refuses them.
#[test]
fn ready_vectors_are_of_a_recurrent_unit() {
    let vectors = WordVectors { width: 6, vocabulary: 7, rows: vec![(2, vec![1.0; 6])] };
    let of = |text| {
        encoders(&config(RegionMapKind::Xavier, text), &Device::flex()).with_vectors(&vectors)
    };
    let WordEncoder::BiGru(text) = of(TextKind::Bigru).unwrap().text else { panic!() };
    assert_eq!(host(text.words.words.val())[12..18], [1.0; 6]);
    let line = of(TextKind::Words).unwrap_err().to_string();
    assert_eq!(line, "word vectors: expected a recurrent unit, got another encoder");
}

/// Counts say where an image's regions end: no region may be lost or taken by another image.
#[test]
fn values_and_counts_of_regions_must_fit() {
    let made = encoders(&config(RegionMapKind::Xavier, TextKind::Words), &Device::flex());
    let refused = |counts: &[usize], values: &[f32], line: &str| {
        for dropout in [InputDropout::OFF, InputDropout { share: 0.5, noise: Noise::Seeded(1) }] {
            let batch = Images::Regions { width: X, counts, values };
            let regions = std::panic::AssertUnwindSafe(|| made.regions(batch, dropout));
            let panic = std::panic::catch_unwind(regions).unwrap_err();
            let got = panic.downcast::<String>().map_or_else(|_| String::new(), |line| *line);
            assert!(got.contains(line), "{counts:?}: {got}");
        }
    };
    let fit = "regions of width 3, as many as the counts say";
    refused(&[1, 1], &VALUES, fit); // a region too many
    refused(&[2, 2], &VALUES, fit); // a region too few
    refused(&COUNTS, &VALUES[..8], fit); // half a region
    let none = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        made.regions(
            Images::Regions { width: X, counts: &[3, 0], values: &VALUES },
            InputDropout::OFF,
        )
    }));
    assert!(none.is_err(), "an image without a region");
}

/// The map of a start becomes the map of the regions, with a gain or without.
#[test]
fn a_given_map_is_the_map() {
    let map = LinearMap {
        weight: (0..12).map(|k| (k as f32 - 5.0) / 7.0).collect(),
        bias: vec![0.1, 0.2, -0.3, 0.0],
    };
    let rows = |kind| {
        let image = RegionMap::new(kind, [X, 4], 3, &Device::flex()).with_map(&map).unwrap();
        host(normalize_rows(image.mapped(VALUES.to_vec())))
    };
    let (plain, gained) = (rows(RegionMapKind::Xavier), rows(RegionMapKind::WeightNorm));
    close(&gained, &wide(plain.clone()));
    let of = |k: usize| {
        let sum: f64 =
            (0..X).map(|i| f64::from(VALUES[i]) * f64::from(map.weight[i * 4 + k])).sum();
        sum + f64::from(map.bias[k])
    };
    close(&plain[..4], &unit(&(0..4).map(of).collect::<Vec<_>>()));
}

/// Means are taken before normalisation, so a long row weighs more: the map of the mean region, and `unit(mean of T[w])`.
#[test]
fn means_are_of_rows_before_they_get_unit_length() {
    let device = Device::flex();
    let made = encoders(&config(RegionMapKind::Xavier, TextKind::Words), &device);
    let batch = Images::Regions { width: X, counts: &COUNTS, values: &VALUES };
    let got = host(made.mapped(batch, InputDropout::OFF).means());
    let mapped = wide(host(map_of(&made).mapped(VALUES.to_vec())));
    let d = mapped.len() / (VALUES.len() / X);
    let mut at = 0;
    for (image, &count) in COUNTS.iter().enumerate() {
        let mean = |k: usize| (at..at + count).map(|row| mapped[row * d + k]).sum::<f64>();
        close(&got[image * d..][..d], &unit(&(0..d).map(mean).collect::<Vec<_>>()));
        at += count;
    }
    let WordEncoder::Words(table) = &made.text else { panic!("a table") };
    let vectors = wide(host(table.table.val()));
    let got = host(made.sums(&[&[2u32, 5, 2][..], &[1]], InputDropout::OFF).means());
    let mean = |k: usize| 2.0 * vectors[2 * d + k] + vectors[5 * d + k]; // the bias is 0 here
    close(&got[..d], &unit(&(0..d).map(mean).collect::<Vec<_>>()));
}

#[test]
#[should_panic(expected = "caption 1, word 0: 7 of 7 words")]
fn a_word_outside_the_vocabulary_is_named() {
    let made = encoders(&config(RegionMapKind::Xavier, TextKind::Words), &Device::flex());
    made.words(&[&[5u32][..], &[7]], InputDropout::OFF);
}
