//! Attention between the patches and the word pieces of published towers.

use burn::tensor::Device;
use itm_core::towers::{LearningParts, LoraConfig};
use itm_kernels::Precision;
use naaf::{Attention, Naaf, NaafTowers, Pooling, Scan, Score, VectorsFrom};
use safetensors::SafeTensors;

use super::{D, World, image_towers, learns, published_folders, text_towers};
use crate::common::{PAIRS, VOCABULARY, saved};

/// NAAF, SCAN and the cosine of means train the patches and the word pieces of every pair of published towers, as a whole and by adapters, and the
/// same in parts.
#[test]
fn attention_trains_every_pair_of_published_towers() {
    let folder = tempfile::tempdir().unwrap();
    let published = published_folders(folder.path());
    for (image, image_config) in image_towers(&published).into_iter().skip(1) {
        for (text, text_config) in text_towers(&published).split_off(2) {
            let world = World::new(&image_config, text);
            let mut config = naaf::NaafConfig::preset(naaf::Preset::Default);
            (config.model.embed_dim, config.model.word_vectors) = (D, VectorsFrom::Random);
            let (image_config, text) = (image_config.clone(), text_config.clone());
            config.model.towers = Some(NaafTowers { image: image_config, text });
            (config.train.batch, config.loss.margin) = (PAIRS, 2.0);
            let mut attended = config.clone();
            attended.attention = Attention::Scan(Scan::text_to_image(Pooling::Mean));
            let mut global = config.clone();
            global.model.score = Score::Global;
            let mut adapted = config.clone();
            adapted.train.parts =
                LearningParts::Lora(LoraConfig { rank: 2, ..LoraConfig::default() });
            let mut rounded = config.clone();
            rounded.train.precision = Precision::Bf16;
            for (score, config) in [
                ("naaf", &config),
                ("scan", &attended),
                ("global", &global),
                ("adapters", &adapted),
                ("bf16", &rounded),
            ] {
                let name = format!("{image} × {text_config:?}, {score}");
                let model = |config| Naaf::new(config, 0, VOCABULARY, &Device::flex()).unwrap();
                let course = learns(&name, &world, || Box::new(model(config)));
                let mut config = config.clone();
                config.train.micro_batch = Some(3);
                let in_parts = world.train(&mut model(&config), 0..2);
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3 * b.abs().max(1.0);
                let same = in_parts.iter().zip(&course).all(near);
                assert!(same, "{name}: {in_parts:?} in parts, {course:?}");
            }
        }
    }
}

/// The first update of Adam moves a weight by its rate: η · δ² before the only block, η · δ in it, η behind it.
#[test]
fn rates_of_layers_reach_attention() {
    let folder = tempfile::tempdir().unwrap();
    let published = published_folders(folder.path());
    let (image, text) =
        (image_towers(&published)[1].1.clone(), text_towers(&published)[2].1.clone());
    let world = World::new(&image, "bert");
    let mut config = naaf::NaafConfig::preset(naaf::Preset::Default);
    (config.model.embed_dim, config.model.word_vectors) = (D, VectorsFrom::Random);
    config.model.towers = Some(NaafTowers { image, text });
    (config.train.batch, config.train.layer_decay, config.loss.margin) = (PAIRS, Some(0.5), 2.0);
    let mut model = Naaf::new(&config, 0, VOCABULARY, &Device::flex()).unwrap();
    let before = saved(&model);
    world.train(&mut model, 0..1);
    let after = saved(&model);
    let [before, after] = [&before, &after]
        .map(|files| SafeTensors::deserialize(&files["model.safetensors"]).unwrap());
    let mut largest = [0.0f32; 3];
    for (path, tensor) in before.iter().filter(|(path, _)| path.starts_with("encoders")) {
        let values = |bytes: &[u8]| -> Vec<f32> {
            bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
        };
        let (old, new) = (values(tensor.data()), values(after.tensor(path).unwrap().data()));
        let moved = old.iter().zip(&new).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
        let behind = path.contains("projection") || path.contains("vit.norm.");
        let place = if path.contains("blocks.") { 1 } else { 2 * usize::from(behind) };
        largest[place] = largest[place].max(moved);
    }
    let [first, block, behind] = largest.map(|moved| moved / config.train.learning_rate as f32);
    assert!((first - 0.25).abs() < 0.01 && (block - 0.5).abs() < 0.01, "{first}, {block}");
    assert!((behind - 1.0).abs() < 0.01, "{behind}");
}
