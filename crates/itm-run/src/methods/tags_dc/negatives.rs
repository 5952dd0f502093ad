//! `itm negatives`: captions that are false of their images, as JSON lines for any method and as a page that a person can judge.

mod page;
mod refilled;
mod truth;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use itm_core::data::sha256_hex;
use itm_core::scenes::{Scenes, Sizes};
use itm_core::{Error, Result};
use itm_report::terminal::{self, Palette};
use serde::Serialize;
use tags_dc::edits::{Captions, Counts, Edits, NounTable, Rules, Wanted, each, read_captions};
use tags_dc::phrases::parse;
use tags_dc::record::{Kind, Record, Writer};

pub(crate) use self::refilled::{Trained, TrainedPart};

use self::truth::Judged;
use crate::cli;
use crate::disk::write_atomically;
use crate::progress;
use crate::run_dir::new_path;
use crate::scenes::refuse_files;

/// The name of the built-in world in `--captions`.
const SCENES: &str = "scenes";
/// The world of the targets on Scenes; a run has a world of its own.
const WORLD: (u64, Sizes) = (0, Sizes { train: 3000, val: 500, test: 1000, pixels: 96 });

/// Captions, and what else is known about them.
struct Given {
    /// The captions to write negatives for.
    captions: Vec<Captions>,
    /// The name of each image in a data set.
    names: Vec<String>,
    /// Captions that teach which noun may replace which.
    training: Vec<Captions>,
    /// The name of the captions, for a reader.
    name: String,
    sha256: String,
    /// The built-in world, which knows what is true.
    world: Option<Scenes>,
}

/// The contents of `negatives.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Summary {
    captions: String,
    sha256: String,
    images: usize,
    read: usize,
    without_a_variant: usize,
    /// The rules, if rules made the negatives.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<String>,
    /// The model, if a model filled in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<OfModel>,
    seed: u64,
    per_caption: usize,
    kinds: BTreeMap<Kind, OfKind>,
    version: &'static str,
    command: String,
}

/// The model that filled in words, and its settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OfModel {
    row: String,
    checkpoint_sha256: String,
    maskings: u32,
    refills: u32,
    temperature: f64,
    images_not_in_the_run: usize,
}

/// Negatives of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct OfKind {
    written: usize,
    /// How many are truly false, if the truth is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<Judged>,
}

/// Writes the negatives and returns their folder. A trained model fills in words; without a model, rules change the captions.
///
/// # Errors
/// If a file cannot be read or written, or has no captions; if the model cannot fill in words or has none of the images; if the folder
/// is not empty.
pub(crate) fn negatives(args: &cli::Negatives, trained: Option<&Trained>) -> Result<PathBuf> {
    let folder = args.out.clone().unwrap_or_else(|| new_path("negatives"));
    refuse_files(&folder)?;
    let given = Given::open(args, trained)?;
    let made = match trained {
        Some(trained) => Made::by_model(&given, args, trained)?,
        None => Made::by_rules(&given, args)?,
    };
    let summary = summary(&given, args, &made);
    let records = &made.records;
    fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    let lines = folder.join("negatives.jsonl");
    let mut bytes = vec![];
    let mut writer = Writer::new(&mut bytes, &lines);
    records.iter().try_for_each(|record| writer.write(record))?;
    write_atomically(&lines, &bytes)?;
    let json = serde_json::to_string_pretty(&summary).expect("names and numbers") + "\n";
    write_atomically(&folder.join("negatives.json"), json.as_bytes())?;
    let path = folder.join("negatives.html");
    let html = page::page(&summary, &given.captions, records, args.shown);
    write_atomically(&path, html.as_bytes())?;
    let table = page::table(&summary);
    let lines_of = terminal::table(&table, 80, 24, Palette::of(&std::io::stdout()));
    lines_of.iter().for_each(progress::say);
    progress::say(format!("{} negatives: {}", records.len(), lines.display()));
    progress::say(format!("Page: {}", path.display()));
    Ok(folder)
}

/// Records, and what the summary says about them.
struct Made {
    records: Vec<Record>,
    counts: Counts,
    kinds: Vec<Kind>,
    rules: Option<String>,
    model: Option<OfModel>,
}

impl Made {
    fn by_rules(given: &Given, args: &cli::Negatives) -> Result<Self> {
        let rules = match args.rules {
            cli::EditRules::Fitting => Rules::Fitting,
            cli::EditRules::VseC => Rules::VseC,
        };
        let parsed = |image: &Captions| image.texts.iter().map(|text| parse(text)).collect();
        let training: Vec<Vec<_>> = given.training.iter().map(parsed).collect();
        let edits = Edits { nouns: NounTable::fit(&training), rules };
        let kinds = kinds(args);
        let (seed, per_caption) = (args.seed, args.per_caption);
        let wanted = Wanted { seed, per_caption, kinds: kinds.clone() };
        let mut records = vec![];
        let counts = each(&given.captions, &edits, &wanted, |record| {
            records.push(record);
            Ok(())
        })?;
        Ok(Self { records, counts, kinds, rules: Some(args.rules.name().to_owned()), model: None })
    }

    fn by_model(given: &Given, args: &cli::Negatives, trained: &Trained) -> Result<Self> {
        let mut records = vec![];
        let refilled = refilled::each(given, args, trained, |record| records.push(record))?;
        let cli::RefillArgs { maskings, refills, temperature, .. } = args.model;
        let model = OfModel {
            row: trained.name.clone(),
            checkpoint_sha256: trained.checkpoint_sha256.clone(),
            maskings,
            refills,
            temperature,
            images_not_in_the_run: refilled.unknown_images,
        };
        let (counts, kinds) = (refilled.counts, vec![Kind::Refill]);
        Ok(Self { records, counts, kinds, rules: None, model: Some(model) })
    }
}

/// The kinds that the command names, each once.
fn kinds(args: &cli::Negatives) -> Vec<Kind> {
    let of = |kind: &cli::EditKind| match kind {
        cli::EditKind::Noun => Kind::Noun,
        cli::EditKind::Numeral => Kind::Numeral,
        cli::EditKind::Relation => Kind::Relation,
        cli::EditKind::Order => Kind::Order,
    };
    let mut kinds: Vec<Kind> = args.kinds.iter().map(of).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

impl Given {
    fn open(args: &cli::Negatives, trained: Option<&Trained>) -> Result<Self> {
        let mut given = Self::read(args, trained)?;
        let images = args.model.images.map_or(usize::MAX, |n| n as usize);
        given.captions.truncate(images);
        given.names.truncate(images);
        Ok(given)
    }

    fn read(args: &cli::Negatives, trained: Option<&Trained>) -> Result<Self> {
        if args.captions == Path::new(SCENES) {
            let world = trained.map_or(Some(WORLD), |trained| trained.world);
            let Some(world) = world else {
                let expected = "a file, because the run has other data";
                return Err(Error::invalid("--captions", expected, SCENES));
            };
            return Ok(Self::scenes(world));
        }
        let bytes = fs::read(&args.captions).map_err(Error::io(&args.captions))?;
        let captions = read_file(&args.captions)?;
        let training = match &args.train {
            Some(path) => read_file(path)?,
            None => captions.clone(),
        };
        let names = captions.iter().map(|image| image.id.clone()).collect();
        Ok(Self {
            captions,
            names,
            training,
            name: args.captions.display().to_string(),
            sha256: sha256_hex(&bytes),
            world: None,
        })
    }

    fn scenes((seed, sizes): (u64, Sizes)) -> Self {
        let world = Scenes::generate(seed, sizes);
        let of = |split: &itm_core::scenes::Split| -> Vec<Captions> {
            let text = |&t: &usize| split.captions[t].text.clone();
            let image = |i: usize| Captions {
                id: i.to_string(),
                texts: split.pairs.texts_of(i).iter().map(text).collect(),
            };
            (0..split.len()).map(image).collect()
        };
        let (captions, training) = (of(&world.test), of(&world.train));
        let texts: Vec<&str> =
            captions.iter().flat_map(|image| &image.texts).map(String::as_str).collect();
        let sha256 = sha256_hex(texts.join("\n").as_bytes());
        let name = "Scenes, test split".to_owned();
        let names = (0..world.test.len()).map(|i| world.test.file_name(i)).collect();
        Self { captions, names, training, name, sha256, world: Some(world) }
    }
}

/// The captions of a file, at least one.
fn read_file(path: &Path) -> Result<Vec<Captions>> {
    let captions = read_captions(path)?;
    if captions.is_empty() {
        let expected = "lines of an image's id, a tab and a caption";
        return Err(Error::invalid(path.display(), expected, "none"));
    }
    Ok(captions)
}

fn summary(given: &Given, args: &cli::Negatives, made: &Made) -> Summary {
    let Made { records, counts, kinds, rules, model } = made;
    let judged = given.world.as_ref().map(|world| truth::judge(&world.test, records));
    let of_kind = |kind: Kind| OfKind {
        written: counts.records.get(&kind).copied().unwrap_or_default(),
        truth: judged.as_ref().and_then(|judged| judged.get(&kind).cloned()),
    };
    Summary {
        captions: given.name.clone(),
        sha256: given.sha256.clone(),
        images: given.captions.len(),
        read: counts.captions,
        without_a_variant: counts.without,
        rules: rules.clone(),
        model: model.clone(),
        seed: args.seed,
        per_caption: args.per_caption,
        kinds: kinds.iter().map(|&kind| (kind, of_kind(kind))).collect(),
        version: env!("CARGO_PKG_VERSION"),
        command: args.command(),
    }
}

#[cfg(test)]
mod tests;
