use std::fs;
use std::path::{Path, PathBuf};

use burn::module::Param;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Tensor, TensorData};
use itm_kernels::{AdamOptions, Precision, uniform};

use super::*;
use crate::encoders::hf::tests::{Golden, close};
use crate::encoders::{Bert, DualEncoder, ImagePool, PiecePool, SentenceEncoder, TokenBatch, Vit};
use crate::learn::Images;
use crate::towers::learning::tests::{opened, published, stepped, values, vit_and_bert};
use crate::towers::{LearningParts, TowerDropout, Weights};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

pub(in crate::towers) fn with(
    encoders: Encoders,
    lora: &LoraConfig,
    model: &ModelConfig,
) -> Encoders {
    encoders.with_learning(&LearningParts::Lora(lora.clone()), model, 5).unwrap()
}

/// The blocks of both towers, with the start of their names.
fn blocks(encoders: &mut Encoders) -> Vec<(&'static str, &mut Vec<TransformerBlock>)> {
    let image = match &mut encoders.image {
        ImageEncoder::Features(_) => None,
        ImageEncoder::Vit(encoder) => Some(&mut encoder.vit.blocks),
        ImageEncoder::Clip(encoder) => Some(&mut encoder.tower.vit.blocks),
    };
    let text = match &mut encoders.text {
        TextEncoder::Bert(encoder) => Some(&mut encoder.bert.blocks),
        TextEncoder::Clip(tower) => Some(&mut tower.blocks),
        _ => None,
    };
    let both = [("vision_model", image), ("text_model", text)];
    both.into_iter().filter_map(|(name, blocks)| Some((name, blocks?))).collect()
}

/// Another B in each adapter than 0.
pub(in crate::towers) fn moved(mut encoders: Encoders) -> Encoders {
    let mut seed = 0;
    for (_, blocks) in blocks(&mut encoders) {
        for block in blocks {
            for map in [BlockMap::Query, BlockMap::Out, BlockMap::Up, BlockMap::Down] {
                for change in &mut block.linears_mut()[map.place().0].changes {
                    seed += 1;
                    let b = change.b.val();
                    change.b = Param::from_tensor(uniform(b.dims(), 0.5, seed, &b.device()));
                }
            }
        }
    }
    encoders
}

/// Pixels of two pictures.
fn pixels(size: usize) -> Vec<f32> {
    (0..2 * 3 * size * size).map(|k| (k * 37 % 101) as f32 / 50.0 - 1.0).collect()
}

pub(in crate::towers) fn rows(encoders: &Encoders, captions: &[Vec<u32>]) -> [Vec<f32>; 2] {
    let size = match &encoders.image {
        ImageEncoder::Vit(encoder) => encoder.size,
        ImageEncoder::Clip(encoder) => encoder.size,
        ImageEncoder::Features(_) => unreachable!("both have pictures"),
    };
    let values = pixels(size);
    let images = encoders.image.encode(Images::Pixels { size, values: &values }, TowerDropout::OFF);
    [host(images), host(encoders.texts(captions, TowerDropout::OFF))]
}

pub(in crate::towers) fn every_map() -> Vec<BlockMap> {
    use BlockMap::{Down, Key, Out, Query, Up, Value};
    vec![Value, Query, Key, Out, Up, Down]
}

/// Captions that the encoder of captions can read.
pub(in crate::towers) fn captions(model: &ModelConfig) -> Vec<Vec<u32>> {
    match &model.text {
        TextConfig::Clip(config) => {
            let shape = config.folder().unwrap().1.text;
            match shape.end {
                Some(end) => vec![vec![0, 5, 7, end], vec![0, 4, end]],
                None => (0..2).map(|k| vec![3 + k; shape.positions]).collect(),
            }
        }
        _ => vec![vec![2, 5, 7, 3], vec![2, 4, 3]],
    }
}

/// From `tests/reference/clip.py`: PEFT in double precision, with its adapter in the maps of the captions.
#[test]
fn golden_gradients_of_both_matrices() {
    let (plain, want) = (golden("clip/clip.safetensors"), golden("clip/lora.safetensors"));
    let (plain, want) = (Golden::open(&plain), Golden::open(&want));
    let matrices = Golden::open(&golden("clip/lora/adapter_model.safetensors"));
    let (config, device) = (published("clip", 12), Device::flex().autodiff());
    let lora = LoraConfig { rank: 2, alpha: 4, ..LoraConfig::default() };
    let mut encoders = with(opened(&config), &lora, &config);
    let name = |tower: &str, i: usize, k: usize, kind: &str| {
        format!(
            "base_model.model.{tower}.encoder.layers.{i}.self_attn.{}_proj.lora_{kind}.weight",
            ["q", "v"][k]
        )
    };
    let (_, text) = blocks(&mut encoders).pop().unwrap();
    for (i, block) in text.iter_mut().enumerate() {
        for (k, change) in block.attention.qkv.changes.iter_mut().enumerate() {
            let of =
                |kind| matrices.tensor::<2>(&name("text_model", i, k, kind), &device).transpose();
            change.a = Param::from_tensor(of("A"));
            change.b = Param::from_tensor(of("B"));
        }
    }
    let lengths = plain.values("lengths");
    let ids = plain.values("ids").chunks(plain.0["ids"].0[1]).zip(lengths);
    let texts: Vec<Vec<u32>> =
        ids.map(|(row, &n)| row[..n as usize].iter().map(|&id| id as u32).collect()).collect();
    let texts = encoders.texts(&texts, TowerDropout::OFF);
    close("text.unit", &host(texts.clone()), want.values("text.unit"), 1.0, 2e-6);
    let images = Images::Pixels { size: 12, values: plain.values("pixels") };
    let images = encoders.image.encode(images, TowerDropout::OFF);
    let logits = images.matmul(texts.transpose()) * 2f64.exp(); // θ of the folder
    let own = |logits: Tensor<2>| {
        let diagonal = Tensor::<2>::eye(3, &device);
        (log_softmax(logits, 1) * diagonal).sum() / -6.0
    };
    let loss = own(logits.clone()) + own(logits.transpose());
    close("loss", &host(loss.clone()), want.values("loss"), 1.0, 1e-5);
    let grads = loss.backward();
    let mut compared = 0;
    let (_, text) = blocks(&mut encoders).pop().unwrap();
    for (i, block) in text.iter().enumerate() {
        assert!(block.attention.qkv.weight.val().grad(&grads).is_none(), "frozen");
        for (k, change) in block.attention.qkv.changes.iter().enumerate() {
            for (kind, value) in [("A", &change.a), ("B", &change.b)] {
                let name = format!("d.{}", name("text_model", i, k, kind));
                let got = host(value.val().grad(&grads).unwrap().transpose());
                let scale = want.values(&name).iter().fold(0.0f32, |most, x| most.max(x.abs()));
                close(&name, &got, want.values(&name), scale, 1e-5);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, want.0.keys().filter(|name| name.starts_with("d.")).count());
}

/// Laws, for every kind of tower and every map: rows begin as those of the published model, to the bit; a step moves adapters and what
/// the configuration adds behind the blocks, and nothing else.
#[test]
fn a_row_begins_as_published_and_only_adapters_learn() {
    for (name, config) in [
        ("clip", published("clip", 12)),
        ("siglip", published("siglip", 24)),
        ("bert", vit_and_bert()),
    ] {
        let (texts, plain) = (captions(&config), opened(&config));
        let lora = LoraConfig { rank: 3, alpha: 6, maps: every_map() };
        let adapted = with(plain.clone(), &lora, &config);
        assert_eq!(rows(&adapted, &texts), rows(&plain, &texts), "{name}");
        let before = values(&adapted);
        let after = values(&stepped(adapted.clone(), AdamOptions::default(), None, 1.0));
        let (mut learnt, mut frozen) = (0, 0);
        for ((path, before), (_, after)) in before.iter().zip(&after) {
            let behind = name == "bert" && path.contains("projection");
            let learns = path.contains(".changes.") || behind || path.contains("contrast");
            assert_eq!(before != after, learns, "{name}: {path}");
            (learnt, frozen) = (learnt + usize::from(learns), frozen + usize::from(!learns));
        }
        let blocks = if name == "bert" { 5 } else { 4 };
        assert!(learnt >= 2 * 6 * blocks && frozen > 20, "{name}: {learnt} learn, {frozen} do not");
        assert_ne!(rows(&moved(adapted), &texts), rows(&plain, &texts), "{name}");
    }
}

/// The files of trained adapters in a folder.
fn write(encoders: &Encoders, lora: &LoraConfig, model: &ModelConfig) -> tempfile::TempDir {
    let own = tempfile::tempdir().unwrap();
    for (name, contents) in lora.files(encoders, model).unwrap() {
        let path = own.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    own
}

/// A folder of PEFT's gives the rows of the training: CLIP and SigLIP as one model.
#[test]
fn files_of_two_towers_of_one_model_give_their_rows() {
    let device = Device::flex();
    for (name, d) in [("clip", 12), ("siglip", 24)] {
        let config = published(name, d);
        let lora = LoraConfig { rank: 3, alpha: 5, maps: every_map() };
        let encoders = moved(with(opened(&config), &lora, &config));
        let own = write(&encoders, &lora, &config);
        let model = DualEncoder::open(golden("clip").join(name), &device).unwrap().0;
        let model = model.with_adapter(own.path().join("adapter")).unwrap();
        let (texts, values) = (captions(&config), pixels(12));
        let pixels = TensorData::new(values, [2, 3, 12, 12]);
        let images = host(model.images(Tensor::from_data(pixels, &device)));
        let captions = host(model.texts(&TokenBatch::new(&texts)));
        let [want, want_texts] = rows(&encoders, &texts);
        close(name, &images, &want, 1.0, 1e-5);
        close(name, &captions, &want_texts, 1.0, 1e-5);
    }
}

fn separate(image: &str, text: &str, size: usize, d: usize) -> ModelConfig {
    let mut config = vit_and_bert();
    let (ImageConfig::Vit(vit), TextConfig::Bert(bert)) = (&mut config.image, &mut config.text)
    else {
        unreachable!()
    };
    vit.weights = Weights::Pretrained(golden(image).display().to_string());
    bert.weights = Weights::Pretrained(golden(text).display().to_string());
    (vit.image_size, vit.pool, bert.pool) = (size, ImagePool::Class, PiecePool::Masked);
    config.embed_dim = d;
    config
}

/// The same for a ViT, a DINOv2, a BERT and a sentence encoder, each with a folder of its own.
#[test]
fn files_of_single_towers_give_their_rows() {
    let device = Device::flex();
    let few = vec![BlockMap::Up, BlockMap::Value, BlockMap::Key];
    for (image, text, size, maps) in
        [("hf/vit", "hf/bert", 32, every_map()), ("clip/dinov2", "clip/sentence", 12, few)]
    {
        let config = separate(image, text, size, 7);
        let lora = LoraConfig { rank: 2, alpha: 6, maps };
        let mut encoders = moved(with(opened(&config), &lora, &config));
        let own = write(&encoders, &lora, &config);
        // Rows before the linear map of the configuration.
        let (ImageEncoder::Vit(vit), TextEncoder::Bert(bert)) =
            (&mut encoders.image, &mut encoders.text)
        else {
            unreachable!()
        };
        (vit.projection, bert.projection) = (None, None);
        let texts = captions(&config);
        let [want, want_texts] = rows(&encoders, &texts);

        let folder = own.path().join("adapter_image");
        let vit = Vit::adapted(golden(image), Some(&folder), &device).unwrap().0;
        let values = TensorData::new(pixels(size), [2, 3, size, size]);
        let got = vit.class_row(Tensor::from_data(values, &device));
        close(image, &host(itm_kernels::normalize_rows(got)), &want, 1.0, 1e-5);
        let folder = own.path().join("adapter_text");
        let got = match text {
            "hf/bert" => {
                let bert = Bert::open(golden(text), &device).unwrap().0;
                let bert = bert.with_adapter(&folder).unwrap();
                let batch = TokenBatch::new(&texts);
                let states = bert.forward(&batch, itm_kernels::Noise::Off);
                itm_kernels::normalize_rows(PiecePool::Masked.pool(states, &batch))
            }
            _ => {
                let model = SentenceEncoder::open(golden(text), &device).unwrap().0;
                itm_kernels::normalize_rows(
                    model.with_adapter(&folder).unwrap().rows(&TokenBatch::new(&texts)),
                )
            }
        };
        close(text, &host(got), &want_texts, 1.0, 1e-5);
    }
}

#[test]
fn adapters_that_cannot_be_are_refused() {
    let line = |config: &ModelConfig, lora: LoraConfig| {
        let parts = LearningParts::Lora(lora);
        let checked = config.check_training(&parts, None, Precision::F32);
        let made = checked.and_then(|()| opened(config).with_learning(&parts, config, 1));
        made.map(drop).unwrap_err().to_string()
    };
    let (clip, lora) = (published("clip", 12), LoraConfig::default());
    for (lora, want) in [
        (LoraConfig { rank: 0, ..lora.clone() }, "rank: expected at least 1, got 0"),
        (LoraConfig { alpha: 0, ..lora.clone() }, "alpha: expected at least 1, got 0"),
        (
            LoraConfig { rank: 17, ..lora.clone() }, // the image tower is 24 wide, the text tower 16
            "rank: expected at most 16, the narrower side of query, got 17",
        ),
        (
            LoraConfig { maps: vec![], ..lora.clone() },
            "maps: expected some maps of a block, each once, got none",
        ),
        (
            LoraConfig { maps: vec![BlockMap::Up, BlockMap::Up], ..lora.clone() },
            "maps: expected some maps of a block, each once, got \"up\" twice",
        ),
    ] {
        let parts = LearningParts::Lora(lora.clone());
        let unchecked = opened(&clip).with_learning(&parts, &clip, 1).unwrap_err().to_string();
        assert_eq!(unchecked, format!("train.parts.lora.{want}"));
        assert_eq!(line(&clip, lora), unchecked);
    }
    let dinov2 = separate("clip/dinov2", "clip/sentence", 12, 7);
    assert_eq!(
        line(&dinov2, LoraConfig { maps: vec![BlockMap::Query, BlockMap::Out], ..lora.clone() }),
        "train.parts.lora.maps: expected query, key, value or up: DINOv2 scales what the other maps give, got out"
    );
    let rows = ModelConfig::new(8, 6);
    assert!(
        line(&rows, lora)
            .starts_with("train.parts: expected \"all\", because neither encoder has blocks")
    );
    let unknown = serde_json::from_str::<LearningParts>(r#"{"lora": {"maps": ["gate"]}}"#);
    let unknown = unknown.unwrap_err().to_string();
    assert!(
        unknown.starts_with("unknown variant `gate`, expected one of `query`, `key`"),
        "{unknown}"
    );
    let default = serde_json::from_str::<LearningParts>(r#"{"lora": {}}"#).unwrap();
    assert_eq!(default, LearningParts::Lora(LoraConfig::default()));
}

/// By hand: an adapter in the map before a layer scale λ of DINOv2 changes the loaded map by (α/r) A B diag λ.
#[test]
fn an_adapter_is_merged_before_a_layer_scale() {
    let (folder, device) = (golden("clip/dinov2"), Device::flex());
    let own = tempfile::tempdir().unwrap();
    let [a, b]: [Vec<f32>; 2] = [0.25, 0.5].map(|by| (0..24).map(|k| by * k as f32).collect());
    let mut file = CheckpointWriter::default();
    let names = adapter::matrices("encoder.layer.1.attention.output.dense.weight");
    file.values(&names[0], &[1, 24], &a);
    file.values(&names[1], &[24, 1], &b);
    fs::write(own.path().join(adapter::MATRICES), file.contents("pt").unwrap()).unwrap();
    let config = r#"{"peft_type": "LORA", "r": 1, "lora_alpha": 3}"#;
    fs::write(own.path().join(adapter::CONFIG), config).unwrap();
    let out = |adapter| {
        let model = Vit::adapted(&folder, adapter, &device).unwrap().0;
        host(model.blocks[1].attention.out.weight.val()) // [in, out]
    };
    let scales = Golden::open(&folder.join("model.safetensors"));
    let scale = scales.values("encoder.layer.1.layer_scale1.lambda1");
    let (plain, got) = (out(None), out(Some(own.path())));
    for (at, (got, plain)) in got.iter().zip(plain).enumerate() {
        let (i, o) = (at / 24, at % 24);
        let want = plain + 3.0 * a[i] * b[o] * scale[o];
        assert!((got - want).abs() <= 1e-5 * want.abs().max(1.0), "{i}, {o}: {got}, want {want}");
    }
}
