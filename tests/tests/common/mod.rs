//! Every row of every method at a small size, and eight pairs for training: image `i` and its caption share a pattern.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use itm_core::data::{Bounds, Features, Regions};
use itm_core::learn::{Batch, ImageItems, Images, Items, Method, Observe, Rows, Step, Word};
use itm_core::scored::Scored;
use itm_core::start::{InputStatistics, LinearMap, Start};
use itm_core::{Pairs, Relevance, Result};
use itm_run::config::Config;
use itm_run::methods::{self, Facts, Given, Recipe, Sees, Sizes};

pub(crate) const PAIRS: usize = 8;
pub(crate) const DIM: usize = 12;
pub(crate) const VOCABULARY: usize = 20;
/// Regions per image for a method that sees regions: the image's row of features, and a row that all images share.
const REGIONS: usize = 2;

/// Small values for the keys of `<method>-scenes`. Keys that a method does not have are ignored.
const SMALL: [(&str, &str); 13] = [
    ("dims", "8"),
    ("embed_dim", "16"),
    ("word_dim", "8"),
    ("batch", "8"),
    ("bank_size", "32"),
    ("warmup_epochs", "1"),
    ("min_count", "4"),
    ("min_words", "4"),
    ("mb_rate", "1.0"),
    ("mb_k", "3"),
    ("maskings", "2"),
    ("first_updates", "1"),    // so that the second update is one of the pairs
    ("hidden_dropout", "0.0"), // sixteen values are too few to drop some
];

/// A row of a method.
pub(crate) struct Row {
    /// Target and row.
    pub(crate) name: String,
    config: Config,
    row: String,
    /// Further devices of its steps.
    pub(crate) replicas: Vec<Device>,
}

/// Every row of every method's target on Scenes. Rows that differ in sizes alone have the same keys here: the first of them stands for all.
pub(crate) fn rows() -> Vec<Row> {
    rows_in_parts_of(PAIRS)
}

/// The rows, with so many pairs in each part of a step where a step is in parts.
pub(crate) fn rows_in_parts_of(pairs: usize) -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = vec![];
    for kind in methods::ALL {
        let target = format!("{}-scenes", kind.name);
        let text = Config::load(&configs(), &target).unwrap().text; // with the keys of its preset
        let text = small(&text, pairs);
        let text = match kind.name {
            // The rate of phases that begin with learnt weights: here every row begins at random, as the first phase does.
            "tags-dc" => text.replace("learning_rate = 0.0005\n", "learning_rate = 0.002\n"),
            _ => text,
        };
        fs::write(folder.path().join(format!("{target}.toml")), text).unwrap();
        let config = Config::load(folder.path(), &target).unwrap();
        let mut seen: Vec<toml::Table> = vec![];
        for row in config.rows() {
            let keys = config.row(row).unwrap();
            if seen.contains(&keys) {
                continue;
            }
            seen.push(keys);
            rows.push(Row {
                name: format!("{target}, {row}"),
                config: config.clone(),
                row: row.to_owned(),
                replicas: vec![],
            });
        }
    }
    rows
}

/// The text of a target with small numbers, in every section and row, and with parts of so many pairs.
fn small(text: &str, pairs: usize) -> String {
    let mut in_rows = false;
    let line = |line: &str| {
        in_rows |= line.starts_with("[row.");
        let Some((key, _)) = line.split_once('=') else { return format!("{line}\n") };
        let key = key.trim();
        let last = key.rsplit('.').next().unwrap();
        let value = line.split_once('=').and_then(|(_, value)| value.split('#').next());
        let few =
            value.and_then(|value| value.trim().parse().ok()).is_some_and(|n| (1..4).contains(&n));
        if last == "epochs" && few {
            // A law trains for four epochs: with fewer the rate would fall to zero before the end.
            return format!("{key} = 4\n");
        }
        if last == "micro_batch" {
            return format!("{key} = {pairs}\n");
        }
        match SMALL.iter().find(|(name, _)| *name == last) {
            // A row without a bank stays without a bank, and a row with another size keeps another size.
            Some((name, _)) if *name == "bank_size" && line.contains("= 0") => format!("{line}\n"),
            Some((name, _)) if *name == "bank_size" && in_rows => format!("{key} = 16\n"),
            Some((_, value)) => format!("{key} = {value}\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

pub(crate) fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

impl Row {
    /// The row's target: one for each method.
    pub(crate) fn target(&self) -> &str {
        &self.config.name
    }

    /// The row's configuration.
    fn recipe(&self) -> Box<dyn Recipe> {
        methods::recipe(&self.config, &self.row).unwrap()
    }

    /// What is known of the row before there is a model.
    pub(crate) fn facts(&self) -> Facts {
        self.recipe().facts().unwrap()
    }

    /// A model. If it trains with the truth, it gets the truth that captions match only their own image.
    pub(crate) fn model(&self, seed: u64, device: &Device) -> Box<dyn Method> {
        self.model_by(seed, &own(), &Data::new(), device)
    }

    /// Like [`Row::model`], with another truth or for other pairs.
    pub(crate) fn model_by(
        &self,
        seed: u64,
        truth: &Relevance,
        data: &Data,
        device: &Device,
    ) -> Box<dyn Method> {
        let facts = self.facts();
        let inputs = InputStatistics { deviation: 1.3, idf: Some(idf()), rows: None };
        let regions = matches!(facts.sees, Sees::Regions);
        let start = facts.start.map(|form| start(form.width));
        let (sizes, truth, start) = (&sizes(), Some(truth), start.as_ref());
        let captions = data.written();
        let (captions, words) = (&captions[..], &words);
        let train = if regions { OfRegions::items(data.items()) } else { data.items() };
        let (inputs, vectors) = (&inputs, None);
        let replicas = &self.replicas;
        let given = Given {
            seed,
            sizes,
            inputs,
            start,
            vectors,
            train,
            captions,
            words,
            truth,
            device,
            replicas,
        };
        let model = self.recipe().build(&given).unwrap();
        if regions { Box::new(OfRegions(model)) } else { model }
    }
}

/// One step on all eight pairs.
pub(crate) fn step(model: &mut dyn Method, seed: u64, observe: Observe) -> Result<Step> {
    let data = Data::new();
    let all: Vec<usize> = (0..PAIRS).collect();
    model.step(&Rows::of(&data.items(), &all).batch(), seed, observe)
}

/// Sizes of the eight pairs.
pub(crate) fn sizes() -> Sizes {
    let captions = 100 * PAIRS; // a rate that falls over the run falls over a hundred steps per epoch
    Sizes { features: DIM, region_width: DIM, vocabulary: VOCABULARY, captions }
}

/// The idf of the terms.
pub(crate) fn idf() -> Vec<f32> {
    (0..VOCABULARY).map(|term| 1.0 + (term % 3) as f32).collect()
}

/// Maps of a width that a start could have, with varied entries.
pub(crate) fn start(width: usize) -> Start {
    let map = |inputs: usize, shift: usize| {
        let value = |k: usize| ((k * 37 + shift) % 101) as f32 / 101.0 - 0.5;
        let weight = (0..inputs * width).map(value).collect();
        LinearMap { weight, bias: (0..width).map(|k| 0.1 * value(k + 7)).collect() }
    };
    Start { image: map(DIM, 3), text: map(VOCABULARY, 50) }
}

/// The words of a caption: each word is one piece.
fn words(caption: &str) -> Result<Vec<Word>> {
    let words = caption.split(' ').zip(0..);
    Ok(words.map(|(word, k)| Word { text: word.to_owned(), pieces: k..k + 1 }).collect())
}

/// Captions match only their own image.
pub(crate) fn own() -> Relevance {
    Relevance::new(PAIRS, (0..PAIRS as u32).map(|i| vec![i]).collect())
}

/// The eight pairs.
pub(crate) struct Data {
    pub(crate) features: Features,
    pub(crate) texts: Vec<Vec<u32>>,
    pub(crate) pairs: Pairs,
}

impl Data {
    /// One non-negative row per image, each with one large value at its own place. Captions have one to four words, and the
    /// first word names the image.
    pub(crate) fn new() -> Self {
        let value = |k: usize| if k % DIM == k / DIM { 4.0 } else { ((k * 7) % 5) as f32 / 5.0 };
        let words = |i: u32| (0..=i % 4).map(|j| if j == 0 { 2 + i } else { 11 + j }).collect();
        Self {
            features: Features { dim: DIM, values: (0..PAIRS * DIM).map(value).collect() },
            texts: (0..PAIRS as u32).map(words).collect(),
            pairs: Pairs::uniform(PAIRS, 1),
        }
    }

    /// The texts, with a word for each number.
    fn written(&self) -> Vec<String> {
        let spelled = |text: &Vec<u32>| text.iter().map(|n| format!("w{n}")).collect::<Vec<_>>();
        self.texts.iter().map(|text| spelled(text).join(" ")).collect()
    }

    pub(crate) fn items(&self) -> Items<'_> {
        let images = ImageItems::Features(&self.features);
        Items { images, texts: &self.texts, pairs: &self.pairs }
    }
}

/// A method that sees regions; this wrapper makes the regions from features.
struct OfRegions(Box<dyn Method>);

impl OfRegions {
    /// Counts and values of the regions that rows of features become.
    fn regions(features: &[f32]) -> (Vec<usize>, Vec<f32>) {
        let rows = features.chunks_exact(DIM);
        (vec![REGIONS; rows.len()], rows.flat_map(|row| [row, &[1.0; DIM]].concat()).collect())
    }

    fn items(items: Items) -> Items {
        Self::read(items).unwrap()
    }

    fn read(items: Items) -> Result<Items> {
        let ImageItems::Features(features) = items.images else { panic!("only features") };
        let (counts, values) = Self::regions(&features.values);
        let boxes = [0.0, 0.5].map(|x1| Bounds { x1, y1: 0.0, x2: x1 + 0.5, y2: 1.0 });
        let regions = Regions::new(DIM, counts, values)?.with_boxes(boxes.to_vec())?;
        // The regions must live as long as the scores; a test leaks a few hundred bytes.
        Ok(Items { images: ImageItems::Regions(Box::leak(Box::new(regions))), ..items })
    }
}

impl Method for OfRegions {
    fn begin_epoch(&mut self, epoch: usize, train: Items) -> Result<()> {
        self.0.begin_epoch(epoch, Self::items(train))
    }

    fn step(&mut self, batch: &Batch, seed: u64, observe: Observe) -> Result<Step> {
        let (counts, values) = Self::regions(batch.images.values());
        let images = Images::Regions { width: DIM, counts: &counts, values: &values };
        // Regions with a value that is not finite cannot be read. The batch has the same value.
        let train = batch.train.and_then(|items| Self::read(items).ok());
        self.0.step(&Batch { images, train, ..*batch }, seed, observe)
    }

    fn scored<'a>(&'a self, items: Items<'a>) -> Result<Box<dyn Scored + 'a>> {
        self.0.scored(Self::items(items))
    }

    fn non_finite(&self) -> Option<String> {
        self.0.non_finite()
    }

    fn save(&self, write: &mut dyn FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        self.0.save(write)
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        self.0.load(folder)
    }

    fn next_phase(&mut self) -> bool {
        self.0.next_phase()
    }

    fn start_from(&mut self, folder: &Path) -> Result<()> {
        self.0.start_from(folder)
    }
}

/// Everything that a model saves, by file.
pub(crate) fn saved(model: &dyn Method) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let write = &mut |name: &str, contents: &[u8]| {
        files.insert(name.to_owned(), contents.to_vec());
        Ok(())
    };
    model.save(write).unwrap();
    files
}

/// Writes the saved files of a model into a folder.
pub(crate) fn write(files: &BTreeMap<String, Vec<u8>>, folder: &Path) {
    for (name, contents) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
}
