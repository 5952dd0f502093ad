use std::path::{Path, PathBuf};

use burn::tensor::Device;

use super::learning::tests::published;
use super::{Encoders, TowerDropout};
use crate::encoders::hf::tests::{Golden, close};
use crate::host;
use crate::learn::Images;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip").join(name)
}

fn unit(row: &[f64]) -> Vec<f32> {
    let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    row.iter().map(|x| (x / length) as f32).collect()
}

/// From `tests/reference/clip.py`: the states of `transformers`, here with norm and linear map in double precision.
#[test]
fn golden_patches_of_clip() {
    let golden_file = Golden::open(&golden("clip.safetensors"));
    let weights = Golden::open(&golden("clip/model.safetensors"));
    let encoders = Encoders::open(&published("clip", 12), 0, 2, 0, &Device::flex()).unwrap().0;
    let pixels = golden_file.values("pixels");
    let images = Images::Pixels { size: 12, values: pixels };
    let tokens = encoders.image.tokens(images, TowerDropout::OFF);
    let [b, n, e] = tokens.dims();
    let (states, d) = (golden_file.values("image.states"), golden_file.0["image.states"].0[2]);
    assert_eq!((n, e, states.len()), (9, 12, b * (n + 1) * d)); // a class row before the patches
    let of = |name: &str| weights.values(&format!("vision_model.post_layernorm.{name}"));
    let map = weights.values("visual_projection.weight"); // [e, d]
    let got = host(tokens);
    for (k, got) in got.chunks_exact(e).enumerate() {
        let at = (k / n * (n + 1) + 1 + k % n) * d;
        let row: Vec<f64> = states[at..at + d].iter().map(|&x| f64::from(x)).collect();
        let mean = row.iter().sum::<f64>() / d as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
        let normed = (0..d).map(|i| {
            let x = (row[i] - mean) / (variance + 1e-5).sqrt();
            x * f64::from(of("weight")[i]) + f64::from(of("bias")[i])
        });
        let normed: Vec<f64> = normed.collect();
        let line = |o: usize| (0..d).map(|i| normed[i] * f64::from(map[o * d + i])).sum::<f64>();
        let want = unit(&(0..e).map(line).collect::<Vec<_>>());
        let got = unit(&got.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        close(&format!("patch {k}"), &got, &want, 1.0, 5e-6);
    }
}

/// From `tests/reference/clip.py`: the row of the end piece is the caption's; SigLIP's is the last of all, padding or not.
#[test]
fn golden_pieces_of_captions() {
    for (name, d) in [("clip", 12), ("siglip", 24)] {
        let golden = Golden::open(&golden(&format!("{name}.safetensors")));
        let encoders = Encoders::open(&published(name, d), 0, 2, 0, &Device::flex()).unwrap().0;
        let width = golden.0["ids"].0[1];
        let lengths: Vec<usize> = golden.values("lengths").iter().map(|&n| n as usize).collect();
        let rows = golden.values("ids").chunks(width).zip(&lengths);
        let read = |(row, &n): (&[f32], &usize)| {
            let n = if name == "clip" { n } else { width };
            row[..n].iter().map(|&id| id as u32).collect::<Vec<u32>>()
        };
        let captions: Vec<_> = rows.map(read).collect();
        let tokens = encoders.text.tokens(&encoders.text.read(&captions, None), TowerDropout::OFF);
        let [_, l, e] = tokens.dims();
        let tokens = host(tokens);
        let real: Vec<usize> = captions.iter().map(|c| encoders.text.unpadded(c)).collect();
        assert_eq!(real, lengths, "{name}");
        for (k, caption) in captions.iter().enumerate() {
            let last = &tokens[(k * l + caption.len() - 1) * e..][..e];
            let last = unit(&last.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
            close(name, &last, &golden.values("text.unit")[k * e..][..e], 1.0, 2e-6);
        }
    }
}

/// A law: the attention pool of SigLIP over one patch is the pool of a picture whose patches are all alike.
#[test]
fn a_patch_of_siglip_is_a_picture_of_it_alone() {
    let encoders = Encoders::open(&published("siglip", 24), 0, 2, 0, &Device::flex()).unwrap().0;
    let super::ImageEncoder::Clip(encoder) = &encoders.image else { panic!("a SigLIP") };
    let values: Vec<f32> = (0..3 * 12 * 12).map(|k| (k * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let images = Images::Pixels { size: 12, values: &values };
    let got = host(encoders.image.tokens(images, TowerDropout::OFF));
    let data = burn::tensor::TensorData::new(values.clone(), [1, 3, 12, 12]);
    let states = encoder.tower.tokens(burn::tensor::Tensor::from_data(data, &Device::flex()));
    for (k, got) in got.chunks_exact(24).enumerate() {
        let alike = states.clone().narrow(1, k, 1).repeat_dim(1, 5);
        close("patch", got, &host(encoder.tower.rows_of(alike)), 1.0, 1e-5);
    }
}
