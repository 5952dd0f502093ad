//! The published files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use itm_core::files::{entries, read_json, read_text};
use itm_core::{Error, Result};
use serde::Deserialize;

use super::orders::orders;
use super::{Ask, Benchmark, Builder, Category, Contrast};
use crate::phrases::parse;
use crate::random::Purpose;

/// The layout of a benchmark's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// SugarCrepe: `add_att.json`, `add_obj.json`, `replace_att.json`, …, and what `negatives` writes. The end of the name is the category.
    Sugarcrepe,
    /// ARO's VG-Relation and VG-Attribution: `visual_genome_relation.json`, `visual_genome_attribution.json`.
    Aro,
    /// ARO's COCO-Order and Flickr30k-Order: the captions they are drawn from, `coco_karpathy_test.json`, `flickr30k_test.json`.
    Order,
    /// VALSE: `existence.json`, `plurals.json`, `counting-hard.json`, …
    Valse,
    /// Winoground: `examples.jsonl`.
    Winoground,
}

/// An entry of ARO's files on Visual Genome.
#[derive(Deserialize)]
struct AroEntry {
    image_path: String,
    bbox_x: i64,
    bbox_y: i64,
    bbox_w: i64,
    bbox_h: i64,
    true_caption: String,
    false_caption: String,
    relation_name: Option<String>,
    attributes: Option<Vec<String>>,
}

/// An entry of the captions that the order sets are drawn from.
#[derive(Deserialize)]
struct CaptionEntry {
    image: String,
    caption: Vec<String>,
}

/// An entry of VALSE.
#[derive(Deserialize)]
struct ValseEntry {
    image_file: String,
    caption: String,
    foil: String,
    mturk: Votes,
}

/// How many of three annotators chose the caption alone.
#[derive(Deserialize)]
struct Votes {
    caption: u32,
}

/// An example of Winoground.
#[derive(Deserialize)]
struct Example {
    image_0: String,
    image_1: String,
    caption_0: String,
    caption_1: String,
    collapsed_tag: String,
}

impl Benchmark {
    /// Reads the files of a benchmark; of a folder, its `.json` files. `seed` draws the orders of [`Format::Order`].
    ///
    /// # Errors
    /// If a file cannot be read, has another layout or no question, its name has no category, or a caption is blank, too long, or the same as its
    /// negative; if a folder has no such file.
    pub fn read(format: Format, files: &[PathBuf], seed: u64) -> Result<Self> {
        let mut builder = Builder::default();
        let files = files.iter().map(|path| listed(path)).collect::<Result<Vec<_>>>()?.concat();
        for file in &files {
            let before = builder.benchmark.questions.len();
            match format {
                Format::Sugarcrepe => builder.sugarcrepe(file)?,
                Format::Aro => builder.aro(file)?,
                Format::Order => builder.order(file, seed)?,
                Format::Valse => builder.valse(file)?,
                Format::Winoground => builder.winoground(file)?,
            }
            let fits = builder.benchmark.questions.len() > before;
            Error::unless(fits, file.display(), "at least one question", "none")?;
        }
        Ok(builder.benchmark)
    }
}

impl Builder {
    fn sugarcrepe(&mut self, file: &Path) -> Result<()> {
        let stem = stem(file);
        let category = match stem.rsplit('_').next() {
            Some("obj" | "ent") => Category::Object,
            Some("att") => Category::Attribute,
            Some("rel") => Category::Relation,
            Some("order") => Category::Order,
            Some("refill") => Category::Other,
            _ => {
                let expected =
                    "a name that ends in obj, att, rel, order or refill, such as add_obj.json";
                return Err(Error::invalid(file.display(), expected, stem));
            }
        };
        let entries: BTreeMap<String, Contrast> = read_json(file, "SugarCrepe's entries")?;
        for (key, entry) in entries {
            let place = format!("{}, entry {key}", file.display());
            let Contrast { picture, caption, negative } = entry;
            self.two(&place, (&picture, None), [&caption, &negative], (category, &stem))?;
        }
        Ok(())
    }

    fn aro(&mut self, file: &Path) -> Result<()> {
        let entries: Vec<AroEntry> = read_json(file, "ARO's entries")?;
        for (k, entry) in entries.into_iter().enumerate() {
            let place = format!("{}, entry {k}", file.display());
            let (category, subset) = match (entry.relation_name, entry.attributes) {
                (Some(relation), None) => (Category::Relation, relation),
                (None, Some(pair)) if pair.len() == 2 => (Category::Attribute, pair.join("_")),
                _ => {
                    let expected = "either relation_name or two attributes";
                    return Err(Error::invalid(place, expected, "neither or both"));
                }
            };
            let AroEntry { bbox_x, bbox_y, bbox_w, bbox_h, .. } = entry;
            let got = format_args!("{bbox_w} × {bbox_h}");
            Error::unless(bbox_w > 0 && bbox_h > 0, &place, "a box with pixels", got)?;
            let part = Some([bbox_x, bbox_y, bbox_w, bbox_h]);
            let captions = [&entry.true_caption[..], &entry.false_caption];
            self.two(&place, (&entry.image_path, part), captions, (category, &subset))?;
        }
        Ok(())
    }

    fn order(&mut self, file: &Path, seed: u64) -> Result<()> {
        let entries: Vec<CaptionEntry> = read_json(file, "images with captions")?;
        let (subset, mut number) = (stem(file), 0);
        for (k, entry) in entries.iter().enumerate() {
            let place = format!("{}, entry {k}", file.display());
            let picture = self.picture(&place, &entry.image, None)?;
            for caption in &entry.caption {
                let mut rng = Purpose::Edits.stream(seed, number);
                number += 1;
                let all = orders(&parse(caption), &mut rng);
                if all.len() == 1 {
                    self.benchmark.left_out += 1;
                    continue;
                }
                let number_of = |text: &String| self.caption(&place, text);
                let captions = all.iter().map(number_of).collect::<Result<_>>()?;
                self.ask(Category::Order, &subset, Ask::Caption { picture, captions });
            }
        }
        Ok(())
    }

    fn valse(&mut self, file: &Path) -> Result<()> {
        let stem = stem(file);
        let category = match stem.split(['-', '_']).next() {
            Some("existence" | "foil") => Category::Object,
            Some("plurals" | "counting") => Category::Attribute,
            Some("relation" | "relations" | "action" | "actions" | "actant") => Category::Relation,
            Some("coreference") => Category::Other,
            _ => {
                let expected = "a name of VALSE's, such as existence.json or counting-hard.json";
                return Err(Error::invalid(file.display(), expected, stem));
            }
        };
        let entries: BTreeMap<String, ValseEntry> = read_json(file, "VALSE's entries")?;
        for (key, entry) in entries {
            if entry.mturk.caption < 2 {
                self.benchmark.left_out += 1;
                continue;
            }
            let place = format!("{}, entry {key}", file.display());
            let captions = [&entry.caption[..], &entry.foil];
            self.two(&place, (&entry.image_file, None), captions, (category, &stem))?;
        }
        Ok(())
    }

    fn winoground(&mut self, file: &Path) -> Result<()> {
        let text = read_text(file)?;
        for (k, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("{} line {}", file.display(), k + 1);
            let example: Example = serde_json::from_str(line)
                .map_err(|e| Error::invalid(&place, "an example of Winoground", e))?;
            let Example { image_0, image_1, caption_0, caption_1, collapsed_tag } = example;
            let pictures =
                [self.picture(&place, &image_0, None)?, self.picture(&place, &image_1, None)?];
            let captions = [self.caption(&place, &caption_0)?, self.caption(&place, &caption_1)?];
            let fits = pictures[0] != pictures[1] && captions[0] != captions[1];
            Error::unless(fits, place, "two pictures and two captions", "the same twice")?;
            self.ask(Category::Order, &collapsed_tag, Ask::Pairs { pictures, captions });
        }
        Ok(())
    }

    /// A question with a true and a false caption.
    fn two(
        &mut self,
        place: &str,
        (file, part): (&str, Option<[i64; 4]>),
        captions: [&str; 2],
        (category, subset): (Category, &str),
    ) -> Result<()> {
        let picture = self.picture(place, file, part)?;
        let captions = [self.caption(place, captions[0])?, self.caption(place, captions[1])?];
        Error::unless(captions[0] != captions[1], place, "a false caption", "the true one")?;
        self.ask(category, subset, Ask::Caption { picture, captions: captions.to_vec() });
        Ok(())
    }
}

/// The `.json` files of a folder, or the file itself.
fn listed(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = entries(path)?;
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    Error::unless(!files.is_empty(), path.display(), "a .json file", "none")?;
    Ok(files)
}

/// The file's name without its ending.
fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
