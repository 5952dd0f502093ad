//! Towers over published folders, and towers whose projections begin with closed-form CCA.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use itm_kernels::random;

use super::*;
use crate::cca::{Cca, CcaOptions, StartInputs};
use crate::data::{Dataset, Embeddings, Features, SplitData};
use crate::encoders::hf::tests::{Golden, close};
use crate::encoders::{BertShape, ImagePool, PiecePool, VitShape};
use crate::learn::Images;
use crate::start::StartOptions;
use crate::text::Terms;
use crate::{Pairs, host};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip").join(name)
}

fn vit(weights: Weights<VitShape>, pixels: Pixels, image_size: usize) -> VitConfig {
    VitConfig {
        weights,
        image_size,
        pixels,
        augment: Augmentation::Off,
        pool: ImagePool::ClassPatches,
        projection: JointLayer::None,
        gradient_checkpointing: false,
    }
}

fn bert(weights: Weights<BertShape>, max_length: usize) -> BertConfig {
    BertConfig {
        weights,
        max_length,
        train_truncate: TrainTruncate::On,
        pool: PiecePool::Masked,
        projection: JointLayer::None,
        gradient_checkpointing: false,
    }
}

fn pretrained<S>(name: &str) -> Weights<S> {
    Weights::Pretrained(folder(name).display().to_string())
}

fn opened(config: &ModelConfig) -> Result<Encoders> {
    Encoders::open(config, 2, 9, 7, &Device::flex()).map(|(encoders, _)| encoders)
}

/// Rows by `sentence-transformers`, as the tower of the folder makes them. Another pool than the folder's is refused.
#[test]
fn golden_rows_of_a_sentence_tower() {
    #[derive(serde::Deserialize)]
    struct Sentences {
        ids: Vec<Vec<u32>>,
        rows: Vec<Vec<f32>>,
    }
    let text = std::fs::read_to_string(folder("sentence.json")).unwrap();
    let golden: Sentences = serde_json::from_str(&text).unwrap();
    let mut config = ModelConfig::new(golden.rows[0].len(), 1);
    let mut text = bert(pretrained("sentence"), 12);
    config.text = TextConfig::Bert(text.clone());
    let got = host(opened(&config).unwrap().texts(&golden.ids, TowerDropout::OFF));
    close("rows", &got, &golden.rows.concat(), 1.0, 2e-6);

    assert_eq!(text.sentence().unwrap(), Some(true));
    text.max_length = 13;
    config.text = TextConfig::Bert(text.clone());
    let line = opened(&config).unwrap_err().to_string();
    assert!(line.starts_with("model.text.max_length: expected at most 12, where "), "{line}");
    text.max_length = 12;
    text.pool = PiecePool::Class;
    config.text = TextConfig::Bert(text);
    let line = opened(&config).unwrap_err().to_string();
    assert!(line.starts_with("model.text.pool: expected \"masked\", as "), "{line}");
    assert!(line.ends_with(" pools, got \"class\""), "{line}");
}

/// The class row and the mean of the patches of states by `transformers`, each at unit length, divided by √2. The pixels are as the
/// folder says, or refused.
#[test]
fn golden_rows_of_a_dinov2_tower() {
    let golden = Golden::open(&folder("dinov2.safetensors"));
    let ([images, _, size, _], [_, rows, d]) = (shape(&golden, "pixels"), shape(&golden, "states"));
    let mut config = ModelConfig::new(2 * d, 1);
    config.image = ImageConfig::Vit(vit(pretrained("dinov2"), Pixels::Half, size));
    let values = golden.values("pixels");
    let encoders = opened(&config).unwrap();
    let got = host(encoders.image.encode(Images::Pixels { size, values }, TowerDropout::OFF));
    let states: Vec<f64> = golden.values("states").iter().map(|&x| f64::from(x)).collect();
    let mut want = vec![];
    for image in states.chunks(rows * d) {
        let (class, patches) = image.split_at(d);
        let mean: Vec<f64> =
            (0..d).map(|k| patches.iter().skip(k).step_by(d).sum::<f64>()).collect();
        for half in [class, &mean] {
            let norm = half.iter().map(|x| x * x).sum::<f64>().sqrt() * 2f64.sqrt();
            want.extend(half.iter().map(|x| (x / norm) as f32));
        }
    }
    assert_eq!(want.len(), images * 2 * d);
    close("rows", &got, &want, 1.0, 2e-6);

    let random = Weights::Random(VitShape::base_16_384());
    let line = vit(random, Pixels::Folder, 8).transform().unwrap_err().to_string();
    assert!(line.starts_with("model.image.pixels: expected \"clip\" or \"half\""), "{line}");
    let own = tempfile::tempdir().unwrap();
    let settings = r#"{"size": {"height": 8, "width": 8}, "image_mean": [0.4, 0.4, 0.4], "image_std": [0.2, 0.2, 0.2]}"#;
    std::fs::write(own.path().join("preprocessor_config.json"), settings).unwrap();
    let of_own = |size| {
        let weights = Weights::Pretrained(own.path().display().to_string());
        vit(weights, Pixels::Folder, size).transform()
    };
    assert_eq!(of_own(8).unwrap().normalization.mean, [0.4; 3]);
    let line = of_own(7).unwrap_err().to_string();
    assert_eq!(line, "model.image.image_size: expected 8, as the folder says, got 7");
}

fn shape<const N: usize>(golden: &Golden, name: &str) -> [usize; N] {
    golden.0[name].0.clone().try_into().unwrap()
}

/// Before the first step, towers whose projections are the closed form of their own rows score as [`Cca`] does.
#[test]
fn towers_begin_as_the_closed_form_of_their_rows() {
    let image = VitShape {
        image: [8, 8],
        patch: 4,
        width: 4,
        layers: 2,
        heads: 2,
        mlp: 6,
        ..VitShape::base_16_384()
    };
    let text = BertShape {
        vocabulary: 9,
        positions: 5,
        width: 4,
        layers: 2,
        heads: 2,
        mlp: 6,
        ..BertShape::base_uncased()
    };
    let image = vit(Weights::Random(image), Pixels::Half, 8);
    let image = VitConfig { pool: ImagePool::Patches, ..image }; // no pool of unit rows
    let text = bert(Weights::Random(text), 5);
    let (n, side) = (14, 3 * 8 * 8);
    let pixels: Vec<f32> = (0..n * side).map(|k| random::unit(3, k as u64)).collect();
    let ids: Vec<u32> =
        (0..2 * n * 3).map(|k| 3 + (random::unit(4, k as u64) * 6.0) as u32).collect();
    let captions: Vec<Vec<u32>> = ids.chunks(3).map(|words| [&[1], words, &[2]].concat()).collect();
    let images = Images::Pixels { size: 8, values: &pixels };

    // Rows at unit length, without a map.
    let alone = ModelConfig { image: ImageConfig::Vit(image.clone()), ..ModelConfig::new(4, 1) };
    let of_images = host(opened(&alone).unwrap().image.encode(images, TowerDropout::OFF));
    let alone = ModelConfig { text: TextConfig::Bert(text.clone()), ..ModelConfig::new(4, 1) };
    let of_texts = host(opened(&alone).unwrap().texts(&captions, TowerDropout::OFF));
    let embeddings = Embeddings {
        images: Features { dim: 4, values: of_images },
        texts: Features { dim: 4, values: of_texts },
    };
    let part = SplitData {
        embeddings,
        images: (0..n).map(|i| i.to_string()).collect(),
        captions: vec!["a".into(); 2 * n],
        pairs: Pairs::uniform(n, 2),
        ..SplitData::default()
    };
    let [train, val, test] = [(); 3].map(|()| part.clone());
    let data = Dataset { name: "rows".into(), train, val, test, sha256: String::new() };
    let grid = CcaOptions {
        max_terms: 0,
        ridge_image: vec![0.1],
        ridge_text: vec![0.2],
        power: vec![0.5],
        dims: vec![3],
        ..CcaOptions::default()
    };
    let want = Cca::fit(&data, &grid).unwrap().scores(&part).unwrap();

    let options =
        StartOptions { ridge_image: 0.1, ridge_text: 0.2, power: 0.5, dims: 3, fill: 0.0 };
    let inputs = StartInputs {
        features: &part.embeddings.images,
        captions: &part.captions,
        pairs: &part.pairs,
        terms: &Terms::fit(&[] as &[&str], 1, 0),
        rows: &part.embeddings.texts,
    };
    let start = Start::solve(&inputs, 3, 0, &options).unwrap();
    let projection = JointLayer::Linear;
    let config = ModelConfig {
        start: StartFrom::Cca,
        cca: Some(options),
        image: ImageConfig::Vit(VitConfig { projection, ..image }),
        text: TextConfig::Bert(BertConfig { projection, ..text.clone() }),
        ..ModelConfig::new(3, 1)
    };
    let towers = opened(&config).unwrap().with_start(&start).unwrap();
    let [v, w] = [
        host(towers.image.encode(images, TowerDropout::OFF)),
        host(towers.texts(&captions, TowerDropout::OFF)),
    ];
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let got: Vec<f32> = v.chunks(3).flat_map(|v| w.chunks(3).map(move |w| dot(v, w))).collect();
    close("scores", &got, want.values(), 1.0, 1e-4);

    let config = ModelConfig { text: TextConfig::Bert(text), ..config };
    let line = opened(&config).unwrap_err().to_string();
    let want = "model.start: expected \"cca\" with text.kind = \"bag\", or \"bert\" with projection = \"linear\"";
    assert!(line.starts_with(want), "{line}");
}
