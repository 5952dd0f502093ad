//! Laws of the whole grid: every loss over every pair of towers.

mod attention;

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use fne::{Fne, Loss, NegativeChoice};
use hubness::training::{Hal, HalConfig, Objective};
use itm_core::Result;
use itm_core::contrastive::{ContrastiveOptions, Learnt};
use itm_core::encoders::{
    BertShape, DualEncoder, DualFamily, DualLayout, DualShape, ImagePool, PiecePool, TextPool,
    VitForm, VitShape,
};
use itm_core::learn::{Batch, ImageItems, Images, Items, Method, Observe, PictureItems};
use itm_core::start::BagPooling;
use itm_core::towers::{
    Augmentation, BagConfig, BertConfig, ClipImageConfig, ClipTextConfig, FeatureTransform,
    FeaturesConfig, GruConfig, ImageConfig, JointLayer, LearningParts, LoraConfig, ModelConfig,
    Pixels, TextConfig, TrainTruncate, VitConfig, Weights,
};
use itm_core::vision::PictureBatch;
use itm_kernels::Activation;
use itm_run::config::Config;
use itm_run::methods::{self, Captions, Sees};
use safetensors::SafeTensors;

use crate::common::{DIM, Data, PAIRS, VOCABULARY, configs, saved, write};

/// Width of the joint space.
const D: usize = 16;
const SIDE: usize = 8;
const END: u32 = VOCABULARY as u32 - 1;
/// Positions of a caption in SigLIP, which reads padding.
const POSITIONS: usize = 8;

/// A small model with random weights, in the files of CLIP or SigLIP.
fn published(folder: &Path, family: DualFamily) {
    let mut shape = DualShape::clip_base_32();
    (shape.family, shape.joint) = (family, D);
    (shape.image.image, shape.image.patch) = ([SIDE, SIDE], 4);
    (shape.image.width, shape.image.heads, shape.image.layers, shape.image.mlp) = (D, 2, 2, 24);
    (shape.text.width, shape.text.heads, shape.text.layers, shape.text.mlp) = (D, 2, 2, 24);
    (shape.text.vocabulary, shape.text.positions) = (VOCABULARY, POSITIONS);
    shape.text.end = Some(END);
    if family == DualFamily::Siglip {
        (shape.image.form, shape.text.end) = (VitForm::Siglip, None);
        (shape.image.activation, shape.text.activation) =
            (Activation::GeluTanh, Activation::GeluTanh);
    }
    let model = DualEncoder::seeded(&shape, 3, &Device::flex());
    model.save(folder, DualLayout::Transformers).unwrap();
    let side = format!("{{\"height\": {SIDE}, \"width\": {SIDE}}}");
    let pictures = format!("{{\"size\": {side}}}");
    fs::write(folder.join("preprocessor_config.json"), pictures).unwrap();
}

/// A CLIP and a SigLIP in folders.
fn published_folders(folder: &Path) -> [String; 2] {
    [DualFamily::Clip, DualFamily::Siglip].map(|family| {
        let folder = folder.join(format!("{family:?}"));
        published(&folder, family);
        folder.display().to_string()
    })
}

fn image_towers(published: &[String; 2]) -> Vec<(&'static str, ImageConfig)> {
    let shape = VitShape {
        image: [SIDE, SIDE],
        patch: 4,
        width: 8,
        layers: 1,
        heads: 2,
        mlp: 16,
        dropout: 0.0,
        attention_dropout: 0.0,
        ..VitShape::base_16_384()
    };
    let clip = |weights: &String| {
        ImageConfig::Clip(ClipImageConfig {
            weights: weights.clone(),
            augment: Augmentation::Off,
            gradient_checkpointing: false,
        })
    };
    vec![
        (
            "features",
            ImageConfig::Features(FeaturesConfig {
                transform: FeatureTransform::L2,
                residual: None,
            }),
        ),
        (
            "vit",
            ImageConfig::Vit(VitConfig {
                weights: Weights::Random(shape),
                image_size: SIDE,
                pixels: Pixels::Half,
                augment: Augmentation::Off,
                pool: ImagePool::Patches,
                projection: JointLayer::Linear,
                gradient_checkpointing: false,
            }),
        ),
        ("clip", clip(&published[0])),
        ("siglip", clip(&published[1])),
    ]
}

fn text_towers(published: &[String; 2]) -> Vec<(&'static str, TextConfig)> {
    let shape = BertShape {
        vocabulary: VOCABULARY,
        positions: POSITIONS,
        width: 8,
        layers: 1,
        heads: 2,
        mlp: 16,
        dropout: 0.0,
        attention_dropout: 0.0,
        ..BertShape::base_uncased()
    };
    let clip = |weights: &String| {
        TextConfig::Clip(ClipTextConfig { weights: weights.clone(), gradient_checkpointing: false })
    };
    vec![
        ("gru", TextConfig::Gru(GruConfig { word_dim: 6, pool: TextPool::Mean })),
        ("bag", TextConfig::Bag(BagConfig { pooling: BagPooling::Mean })),
        (
            "bert",
            TextConfig::Bert(BertConfig {
                weights: Weights::Random(shape),
                max_length: POSITIONS,
                train_truncate: TrainTruncate::On,
                pool: PiecePool::Masked,
                projection: JointLayer::Linear,
                gradient_checkpointing: false,
            }),
        ),
        ("clip", clip(&published[0])),
        ("siglip", clip(&published[1])),
    ]
}

const CONTRASTIVE: ContrastiveOptions =
    ContrastiveOptions { temperature: 0.1, bias: -1.0, learn: Learnt::Learned };

/// The model of a loss, of which these parts learn. A step is in parts of so many pairs, on so many devices.
type Build = Box<dyn Fn(&ModelConfig, (usize, usize), &LearningParts) -> Box<dyn Method>>;

/// The replicas of a model on so many devices, which are all one.
fn replicas(devices: usize) -> Vec<Device> {
    vec![Device::flex(); devices - 1]
}

/// Every loss: FNE with and without its bank and its elimination, HAL and its rivals, and the contrastive losses in both.
fn losses() -> Vec<(String, Build)> {
    let mut all: Vec<(String, Build)> = vec![];
    for (name, negatives, bank, loss) in [
        ("fne", NegativeChoice::Fne, 12, Loss::Triplet),
        ("hardest", NegativeChoice::Hardest, 12, Loss::Triplet),
        ("without a bank", NegativeChoice::Fne, 0, Loss::Triplet),
        ("in the batch", NegativeChoice::InBatch, 0, Loss::Triplet),
        ("info_nce", NegativeChoice::InBatch, 0, Loss::InfoNce),
        ("sigmoid", NegativeChoice::InBatch, 0, Loss::Sigmoid),
    ] {
        let build = move |towers: &ModelConfig,
                          (micro_batch, n),
                          parts: &LearningParts|
              -> Box<dyn Method> {
            let mut config = fne::FneConfig::preset(fne::Preset::Default);
            config.model = towers.clone();
            (config.sampler.negatives, config.sampler.bank_size) = (negatives, bank);
            (config.sampler.warmup_epochs, config.sampler.min_count) = (0, 4);
            (config.train.batch, config.train.micro_batch) = (PAIRS, micro_batch);
            (config.train.loss, config.train.contrastive) = (loss, Some(CONTRASTIVE));
            config.train.parts = parts.clone();
            (config.train.dropout, config.train.word_dropout) = (0.0, 0.0);
            let model = Fne::new(&config, DIM, VOCABULARY, &Device::flex()).unwrap();
            Box::new(model.with_replicas(&replicas(n)))
        };
        all.push((format!("fne, {name}"), Box::new(build)));
    }
    use Objective::{Hal as H, HalAaaiBank, HalAaaiLocal, InfoNce, Max, MaxHal, Sigmoid, Sum};
    for objective in [Sum, Max, H, MaxHal, HalAaaiLocal, HalAaaiBank, InfoNce, Sigmoid] {
        let build = move |towers: &ModelConfig,
                          (micro_batch, n),
                          parts: &LearningParts|
              -> Box<dyn Method> {
            let mut config = HalConfig::new(objective);
            config.model.embed_dim = towers.embed_dim;
            (config.model.image, config.model.text) = (towers.image.clone(), towers.text.clone());
            (config.train.batch, config.train.micro_batch) = (PAIRS, Some(micro_batch));
            config.loss.contrastive = Some(CONTRASTIVE);
            config.train.parts = parts.clone();
            config.hubs.neighbours = 2;
            config.aaai.local_ep = -0.9; // scores of random weights pull too
            (config.bank.mb_rate, config.bank.mb_k) = (1.0, 2);
            let model = Hal::new(&config, DIM, VOCABULARY, &Device::flex(), 1).unwrap();
            Box::new(model.with_replicas(&replicas(n)))
        };
        all.push((format!("hal, {objective:?}"), Box::new(build)));
    }
    all
}

/// The eight pairs with pictures, and captions as one text tower reads them.
struct World {
    data: Data,
    pictures: Vec<f32>,
    texts: Vec<Vec<u32>>,
    of_pictures: bool,
}

impl PictureItems for World {
    fn len(&self) -> usize {
        PAIRS
    }

    fn batch(&self) -> usize {
        3
    }

    fn some<'a>(&'a self, which: &[usize]) -> Box<dyn Iterator<Item = Result<PictureBatch>> + 'a> {
        let batches: Vec<_> = which.chunks(3).map(|part| Ok(self.batch_of(part))).collect();
        Box::new(batches.into_iter())
    }
}

impl World {
    fn new(image: &ImageConfig, text: &str) -> Self {
        let data = Data::new();
        let value = |k: usize| ((k * 37 + k / 192 * 11) % 101) as f32 / 50.0 - 1.0;
        let read = |words: &Vec<u32>| match text {
            "clip" => [words.as_slice(), &[END]].concat(),
            "siglip" => {
                let mut words = words.clone();
                words.resize(POSITIONS, 1);
                words
            }
            _ => words.clone(),
        };
        Self {
            pictures: (0..PAIRS * 3 * SIDE * SIDE).map(value).collect(),
            texts: data.texts.iter().map(read).collect(),
            of_pictures: !matches!(image, ImageConfig::Features(_)),
            data,
        }
    }

    fn batch_of(&self, which: &[usize]) -> PictureBatch {
        let each = 3 * SIDE * SIDE;
        let values = which.iter().flat_map(|&i| self.pictures[i * each..][..each].to_vec());
        PictureBatch { images: which.len(), size: SIDE, values: values.collect() }
    }

    fn items(&self) -> Items<'_> {
        let images = match self.of_pictures {
            true => ImageItems::Pictures(self),
            false => ImageItems::Features(&self.data.features),
        };
        Items { images, texts: &self.texts, pairs: &self.data.pairs }
    }

    /// Two epochs of one step.
    fn train(&self, model: &mut dyn Method, epochs: std::ops::Range<usize>) -> Vec<f64> {
        let pictures = self.batch_of(&(0..PAIRS).collect::<Vec<_>>());
        let images = match self.of_pictures {
            true => Images::from(&pictures),
            false => Images::Features(&self.data.features.values),
        };
        let texts: Vec<&[u32]> = self.texts.iter().map(Vec::as_slice).collect();
        let ids: Vec<i64> = (0..PAIRS as i64).collect();
        let batch =
            Batch { images, texts: &texts, image_ids: &ids, caption_ids: &ids, train: None };
        let step = |epoch| {
            model.begin_epoch(epoch, self.items()).unwrap();
            let step = model.step(&batch, epoch as u64, Observe::Negatives).unwrap();
            assert!(step.grad_norm.is_finite() && step.grad_norm > 0.0, "{step:?}");
            step.loss
        };
        epochs.map(step).collect()
    }

    fn scores(&self, model: &dyn Method) -> Vec<f32> {
        model.scored(self.items()).unwrap().matrix().unwrap().values().to_vec()
    }
}

/// Two finite steps that change the scores; a model that is saved and loaded has the same scores and goes on to the same bits. Returns the
/// losses of the steps.
fn learns(name: &str, world: &World, build: impl Fn() -> Box<dyn Method>) -> Vec<f64> {
    let mut whole = build();
    let before = world.scores(&*whole);
    let mut course = world.train(&mut *whole, 0..1);
    let folder = tempfile::tempdir().unwrap();
    write(&saved(&*whole), folder.path());
    let mut second = build();
    second.load(folder.path()).unwrap();
    assert!(world.scores(&*second) == world.scores(&*whole), "{name}: loaded");
    course.extend(world.train(&mut *whole, 1..2));
    world.train(&mut *second, 1..2);
    assert!(saved(&*second) == saved(&*whole), "{name}: resumed");
    assert!(course.iter().all(|loss| loss.is_finite()), "{name}: {course:?}");
    assert_ne!(world.scores(&*whole), before, "{name}: nothing was learnt");
    course
}

/// Every loss trains every pair of towers: two finite steps that change the scores; a model that is saved and loaded has the same scores and
/// goes on to the same bits. In parts, which each tower makes once with each loss, the steps are the same, and have the same bits if the parts
/// are on several devices.
#[test]
fn every_loss_trains_every_pair_of_towers() {
    let folder = tempfile::tempdir().unwrap();
    let published = published_folders(folder.path());
    let losses = losses();
    let image_towers = image_towers(&published);
    for (k, (text, text_config)) in text_towers(&published).into_iter().enumerate() {
        for (i, (image, image_config)) in image_towers.iter().enumerate() {
            let world = World::new(image_config, text);
            let (image_config, text_config) = (image_config.clone(), text_config.clone());
            let towers =
                ModelConfig { image: image_config, text: text_config, ..ModelConfig::new(D, 1) };
            for (loss, build) in &losses {
                let name = format!("{image} × {text}, {loss}");
                let build = |parts: (usize, usize)| build(&towers, parts, &LearningParts::All);
                let course = learns(&name, &world, || build((PAIRS, 1)));
                if i != k % image_towers.len() {
                    continue;
                }
                // Four parts: a sum of two has the same bits in both orders.
                let mut parts = build((2, 1));
                let in_parts = world.train(&mut *parts, 0..2);
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3 * b.abs().max(1.0);
                let same = in_parts.iter().zip(&course).all(near);
                assert!(same, "{name}: {in_parts:?} in parts, {course:?}");
                let mut shared = build((2, 3));
                world.train(&mut *shared, 0..2);
                assert!(saved(&*shared) == saved(&*parts), "{name}: on three devices");
            }
        }
    }
}

/// Parameters that do not learn keep their bits, over a save and a load too, and the others move.
#[test]
fn only_the_chosen_parts_learn() {
    let folder = tempfile::tempdir().unwrap();
    let published = published_folders(folder.path());
    // The towers of the same kind: ViT beside BERT, CLIP, SigLIP. CLIP's and SigLIP's have two blocks, the others one.
    let pairs = image_towers(&published).into_iter().skip(1);
    for ((kind, image), (text, text_config)) in pairs.zip(text_towers(&published).split_off(2)) {
        let world = World::new(&image, text);
        let towers = ModelConfig { image, text: text_config, ..ModelConfig::new(D, 1) };
        for (loss, build) in losses() {
            let lora = LoraConfig { rank: 2, ..LoraConfig::default() };
            let lora = LearningParts::Lora(lora);
            for parts in [&LearningParts::Heads, &LearningParts::Last(1), &lora] {
                let name = format!("{kind}, {loss}, {parts:?}");
                let mut model = build(&towers, (3, 1), parts);
                let before = saved(&*model);
                world.train(&mut *model, 0..1);
                let folder = tempfile::tempdir().unwrap();
                write(&saved(&*model), folder.path());
                let mut second = build(&towers, (3, 2), parts);
                second.load(folder.path()).unwrap();
                world.train(&mut *second, 1..2);
                let after = saved(&*second);
                world.train(&mut *model, 1..2);
                assert!(after == saved(&*model), "{name}: resumed");
                let [before, after] = [&before, &after]
                    .map(|files| SafeTensors::deserialize(&files["model.safetensors"]).unwrap());
                let last = if kind == "vit" { "blocks.0." } else { "blocks.1." };
                let (mut moved, mut learn) = (0, 0);
                for (path, tensor) in before.iter().filter(|(path, _)| !path.contains("momentum")) {
                    let head = (path.contains("projection") || path.contains("pool."))
                        && (*parts != lora || kind == "vit");
                    let norm = path.contains("vit.norm.") || path.contains("text.norm.");
                    let behind = path.contains(last) || norm;
                    let learns = head
                        || path.contains("contrast")
                        || path.contains(".changes.")
                        || (*parts == LearningParts::Last(1) && behind);
                    let same = after.tensor(path).unwrap().data() == tensor.data();
                    assert!(learns || same || path == "progress", "{name}: {path} has moved");
                    (moved, learn) =
                        (moved + usize::from(learns && !same), learn + usize::from(learns));
                }
                // The bias of keys has no gradient, and not every loss needs a temperature.
                assert!(moved * 3 >= learn * 2, "{name}: {moved} of {learn} have moved");
            }
        }
    }
}

/// The targets of CLIP ask for its pictures and its word pieces, and begin with weights that are evaluated as they are.
#[test]
fn targets_of_clip_read_what_clip_reads() {
    let folder = tempfile::tempdir().unwrap();
    published(folder.path(), DualFamily::Clip);
    for name in ["fne-flickr-clip", "hal-flickr-clip", "naaf-flickr-clip"] {
        let text = Config::load(&configs(), name).unwrap().text;
        let weights = folder.path().display().to_string();
        let text = text.replace("openai/clip-vit-base-patch32", &weights);
        let text = text.replace("embed_dim = 512", &format!("embed_dim = {D}"));
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, text).unwrap();
        let config = Config::load(folder.path(), name).unwrap();
        for row in config.rows() {
            let recipe = methods::recipe(&config, row).unwrap();
            let facts = recipe.facts().unwrap();
            let Sees::Pictures(view) = facts.sees else { panic!("{name}, {row}: {facts:?}") };
            assert_eq!((view.transform.size as usize, view.augment), (SIDE, None));
            assert_eq!(facts.captions, Captions::DualPieces(folder.path().into()));
            assert!(facts.published && facts.most_pieces == Some(POSITIONS), "{name}, {row}");
            assert!(facts.precision.is_some() && facts.at_once.0 <= 32, "{name}, {row}");
        }
        assert_eq!(
            methods::recipe(&config, "zero shot").unwrap().facts().unwrap().course.epochs,
            0
        );
    }
}
