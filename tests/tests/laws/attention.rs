//! Attention between the patches and the word pieces of published towers.

use burn::tensor::Device;
use itm_core::towers::{LearningParts, LoraConfig};
use itm_kernels::Precision;
use naaf::{Attention, Naaf, NaafTowers, Pooling, Scan, Score, VectorsFrom};

use super::{D, World, image_towers, learns, published_folders, text_towers};
use crate::common::{PAIRS, VOCABULARY};

/// NAAF, SCAN and the cosine of means train the patches and the word pieces of every pair of published towers, as a whole and by adapters.
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
                learns(&name, &world, || {
                    Box::new(Naaf::new(config, 0, VOCABULARY, &Device::flex()).unwrap())
                });
            }
        }
    }
}
