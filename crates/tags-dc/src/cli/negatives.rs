//! `tags-dc negatives`: captions that are false of their images, as JSON lines for any method and as a page that a person can judge.

mod captions;
mod page;
#[cfg(feature = "burn")]
mod refills;
mod truth;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use itm_core::output::{Existing, NewFolder, write_bytes};
use itm_core::{Error, Result};
use itm_report::command::quoted;
use itm_report::terminal::{self, Palette};
use serde::Serialize;

#[cfg(feature = "burn")]
pub use self::refills::{RunNegatives, TrainedModel};

use self::captions::CaptionSet;
use self::truth::Verdicts;
use crate::benchmark::Contrast;
use crate::edits::{Captions, Counts, Edits, NounTable, Quota, Rules, negatives};
use crate::phrases::parse;
use crate::record::{self, Kind, Record};
use crate::words::distinct;

/// `tags-dc negatives …`
#[derive(Debug, Args)]
pub struct Negatives {
    /// Lines of an image's id, a tab and a caption; `1.jpg#0`, `1.jpg#1`, … are captions of one image, `1.jpg`; `scenes` for the built-in world, whose truth is known.
    #[arg(long, value_name = "FILE")]
    pub captions: PathBuf,
    /// Training captions, in the same form. They teach which nouns may replace a noun: nouns from other captions of the same images
    /// may not. By default the captions themselves.
    #[arg(long, value_name = "FILE")]
    pub train: Option<PathBuf>,
    /// Output folder; a new folder by default.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Kinds of change, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "noun,numeral,relation,order")]
    pub kinds: Vec<Kind>,
    /// Good sentences that are false, or the output of VSE-C's program.
    #[arg(long, value_enum, default_value_t = Rules::Fitting)]
    pub rules: Rules,
    /// Seed of all draws.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Largest number of negatives per caption.
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000))]
    pub per_caption: usize,
    /// Captions that the page shows.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pub shown: usize,
}

/// The contents of `negatives.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Summary {
    captions: String,
    sha256: String,
    images: usize,
    read: usize,
    without_a_variant: usize,
    #[serde(flatten)]
    maker: Maker,
    seed: u64,
    per_caption: usize,
    kinds: BTreeMap<Kind, OfKind>,
    version: &'static str,
    command: String,
}

/// Who made the negatives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Maker {
    /// The name of the rules.
    Rules(String),
    /// A model that filled in words.
    #[cfg(feature = "burn")]
    Model(refills::OfModel),
}

/// Negatives of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct OfKind {
    written: usize,
    /// How many are truly false, if the truth is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<Verdicts>,
}

impl Negatives {
    /// Changes the captions by rules, and writes the negatives into a new or empty folder. `program` is the program and its subcommand
    /// that repeat the command.
    ///
    /// # Errors
    /// If a file cannot be read or written, or has no captions; if the folder is not empty.
    pub fn by_rules(&self, folder: &Path, program: &str, out: &mut impl Write) -> Result<()> {
        let written = new_folder(folder)?;
        let set = match self.is_scenes() {
            true => {
                let expected = "none with `--captions scenes`, which has training captions";
                Error::unless(self.train.is_none(), "--train", expected, "a file")?;
                CaptionSet::scenes(captions::WORLD)
            }
            false => CaptionSet::read(&self.captions, self.train.as_deref())?,
        };
        let parsed = |image: &Captions| image.texts.iter().map(|text| parse(text)).collect();
        let training: Vec<Vec<_>> = set.training.iter().map(parsed).collect();
        let edits = Edits { nouns: NounTable::fit(&training), rules: self.rules };
        let (seed, per_caption) = (self.seed, self.per_caption);
        let wanted = Quota { seed, per_caption, kinds: distinct(self.kinds.clone()) };
        let (records, counts) = negatives(&set.captions, &edits, &wanted);
        let maker = Maker::Rules(name(self.rules));
        let how = (maker, &wanted.kinds[..], self.command(program));
        self.write(written, &set, (&records, &counts), how, out)
    }

    /// The command line of a program that repeats the command.
    fn command(&self, program: &str) -> String {
        let kinds: Vec<_> = self.kinds.iter().map(|&kind| name(kind)).collect();
        let train = self.train.as_ref().map(|path| format!(" --train {}", quoted(path.display())));
        let (train, kinds, rules) = (train.unwrap_or_default(), kinds.join(","), name(self.rules));
        self.command_with(program, &format!("{train} --kinds {kinds} --rules {rules}"))
    }

    /// The same, with other options in place of the options of rules.
    fn command_with(&self, program: &str, how: &str) -> String {
        let Self { captions, seed, per_caption, shown, .. } = self;
        format!(
            "{program} --captions {}{how} --seed {seed} --per-caption {per_caption} --shown {shown}",
            quoted(captions.display())
        )
    }

    fn is_scenes(&self) -> bool {
        self.captions == Path::new(captions::SCENES)
    }

    /// Writes the negatives of a set, their summary and their page.
    fn write(
        &self,
        written: NewFolder,
        set: &CaptionSet,
        (records, counts): (&[Record], &Counts),
        (maker, kinds, command): (Maker, &[Kind], String),
        out: &mut impl Write,
    ) -> Result<()> {
        let truth = set.world.as_ref().map(|world| truth::verdicts(&world.test, records));
        let of_kind = |kind: Kind| OfKind {
            written: counts.records.get(&kind).copied().unwrap_or_default(),
            truth: truth.as_ref().and_then(|truth| truth.get(&kind).cloned()),
        };
        let summary = Summary {
            captions: set.name.clone(),
            sha256: set.sha256.clone(),
            images: set.captions.len(),
            read: counts.captions,
            without_a_variant: counts.without,
            maker,
            seed: self.seed,
            per_caption: self.per_caption,
            kinds: kinds.iter().map(|&kind| (kind, of_kind(kind))).collect(),
            version: env!("CARGO_PKG_VERSION"),
            command,
        };
        let (folder, new) = (written.target().to_owned(), written.path());
        write_benchmark(&new, set, records)?;
        record::save(&new.join("negatives.jsonl"), records)?;
        let json = serde_json::to_string_pretty(&summary).expect("names and numbers") + "\n";
        let html = page::page(&summary, set, records, self.shown);
        write_bytes(&new.join("negatives.json"), json.as_bytes())?;
        write_bytes(&new.join("negatives.html"), html.as_bytes())?;
        written.commit()?;
        let palette = Palette::of(&std::io::stdout());
        let mut printed = terminal::table(&page::table(&summary), 80, 24, palette);
        let path = |name: &str| folder.join(name).display().to_string();
        printed.push(format!("{} negatives: {}", records.len(), path("negatives.jsonl")));
        printed.push(format!("Page: {}", path("negatives.html")));
        printed.push(format!("In SugarCrepe's layout: {}", path("sugarcrepe")));
        let printed = printed.join("\n");
        writeln!(out, "{printed}").map_err(Error::io("standard output"))
    }
}

/// A file in SugarCrepe's layout for each kind, in the folder `sugarcrepe`: `tags-dc benchmark` reads it.
fn write_benchmark(folder: &Path, set: &CaptionSet, records: &[Record]) -> Result<()> {
    let folder = folder.join("sugarcrepe");
    std::fs::create_dir(&folder).map_err(Error::io(&folder))?;
    let captions = set.by_id();
    let mut files: BTreeMap<&str, BTreeMap<usize, Contrast>> = BTreeMap::new();
    for record in records {
        let (picture, caption) = captions[&record.caption];
        let [picture, caption, negative] = [picture, caption, &record.text].map(str::to_owned);
        let entries = files.entry(file_of(record.kind)).or_default();
        entries.insert(entries.len(), Contrast { picture, caption, negative });
    }
    files.into_iter().try_for_each(|(file, entries)| {
        let text = serde_json::to_string_pretty(&entries).expect("numbers and texts") + "\n";
        write_bytes(&folder.join(file), text.as_bytes())
    })
}

/// Numbers are attributes, as in the phrases of a caption.
fn file_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Noun => "replace_obj.json",
        Kind::Numeral => "replace_att.json",
        Kind::Relation => "replace_rel.json",
        Kind::Order => "order.json",
        Kind::Refill => "refill.json",
    }
}

fn new_folder(folder: &Path) -> Result<NewFolder> {
    NewFolder::begin(folder, Existing::Nothing("a new or empty folder"))
}

/// The name of a value on the command line.
pub(super) fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value().expect("a value that can be named");
    value.get_name().to_owned()
}

#[cfg(test)]
mod tests;
