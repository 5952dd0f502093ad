//! Sentences as word pieces.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use indexmap::{IndexMap, IndexSet};
use itm_core::files::read_json;
use itm_core::{Error, Pairs, Result};
use serde::{Deserialize, Deserializer};

use super::environment::Environment;
use super::value;
use crate::CaptionWords;
use crate::phrases::Phrases;

/// The most pieces of a sentence in training. Evaluation and the filter also read longer sentences.
pub const LONGEST_IN_TRAINING: usize = 60;

/// A sentence of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Word pieces, without `[CLS]` and `[SEP]`.
    pub pieces: Vec<u32>,
    /// The image that it describes.
    pub image: String,
    /// The phrases, as positions in `pieces`; `None` in databases without phrases.
    pub phrases: Option<Phrases>,
}

#[derive(Deserialize)]
struct StoredText {
    input_ids: Vec<u32>,
    img_fname: String,
    #[serde(default)]
    tree: Option<value::FromMap<Tree>>,
}

#[derive(Deserialize)]
struct Tree {
    node: Vec<value::FromMap<Phrase>>,
    attribute: Vec<value::FromMap<Phrase>>,
    relation: Vec<value::FromMap<Phrase>>,
}

#[derive(Deserialize)]
struct Phrase {
    ids: Option<Vec<usize>>,
}

impl Text {
    /// Reads a stored value: an LZ4 frame of a MessagePack map. Unknown fields are skipped, and `null` and empty phrases are dropped.
    ///
    /// # Errors
    /// If the value is not such a map, or a phrase's position lies outside the sentence. The error gives `place` as its place.
    pub fn decode(place: &str, value: &[u8]) -> Result<Self> {
        let bytes = value::unpacked(place, value)?;
        let what = "a sentence with `input_ids` and `img_fname`";
        let stored: StoredText = value::message(place, what, &bytes)?;
        let tokens = stored.input_ids.len();
        let ids = |phrases: Vec<value::FromMap<Phrase>>| {
            phrases.into_iter().map(|phrase| phrase.0.ids).collect()
        };
        let outside =
            |at| Error::invalid(place, format!("positions of phrases below {tokens}"), at);
        let phrases = stored.tree.map(|value::FromMap(Tree { node, attribute, relation })| {
            Phrases::within([node, attribute, relation].map(ids), tokens, outside)
        });
        let phrases = phrases.transpose()?;
        Ok(Self { pieces: stored.input_ids, image: stored.img_fname, phrases })
    }
}

/// Tokens that are not words, and the range of the tokens that are words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub struct Meta {
    /// `[CLS]`
    pub cls: u32,
    /// `[SEP]`
    pub sep: u32,
    /// `[MASK]`
    pub mask: u32,
    /// `[UNK]`
    pub unk: u32,
    /// The tokens from which a random token is drawn.
    #[serde(rename = "v_range", deserialize_with = "range")]
    pub words: Range<u32>,
}

/// A range that is written as a list.
fn range<'de, D: Deserializer<'de>>(from: D) -> Result<Range<u32>, D::Error> {
    let [start, end] = <[u32; 2]>::deserialize(from)?;
    Ok(start..end)
}

impl Meta {
    fn read(path: &Path) -> Result<Self> {
        let what = "`CLS`, `SEP`, `MASK`, `UNK` and `v_range`";
        let meta: Self = read_json(path, what)?;
        let place = format_args!("{} v_range", path.display());
        let got = format_args!("{}, {}", meta.words.start, meta.words.end);
        Error::unless(!meta.words.is_empty(), place, "a first token below the last", got)?;
        Ok(meta)
    }

    /// `[CLS]`, the pieces, `[SEP]`.
    pub fn around(&self, pieces: &[u32]) -> Vec<u32> {
        [&[self.cls], pieces, &[self.sep]].concat()
    }

    /// Refuses a model with fewer tokens.
    ///
    /// # Errors
    /// If one of the tokens lies outside a vocabulary of this size.
    pub fn check(&self, vocabulary: usize) -> Result<()> {
        let Self { cls, sep, mask, unk, ref words } = *self;
        let largest = cls.max(sep).max(mask).max(unk).max(words.end - 1);
        let expected = format_args!("tokens of a model with {vocabulary} tokens");
        let got = format_args!("token {largest}");
        Error::unless((largest as usize) < vocabulary, "meta.json", expected, got)
    }
}

/// Sentences of a split: text k describes image `pairs.image_of(k)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// Ids of the sentences, in the order of `id2len.json`.
    pub ids: Vec<String>,
    /// Word pieces of each sentence, without `[CLS]` and `[SEP]`. A sentence without pieces is read as `[CLS] [SEP]`.
    pub pieces: Vec<Vec<u32>>,
    /// Phrases of each sentence.
    pub phrases: Vec<Option<Phrases>>,
    /// Images in the order of their first sentence, without images that have no sentence.
    pub images: Vec<String>,
    /// Which sentence describes which image.
    pub pairs: Pairs,
}

/// A text database: a folder `<name>.db`.
///
/// ```no_run
/// use tags_dc::databases::{LONGEST_IN_TRAINING, TextDatabase};
///
/// let database = TextDatabase::open("itm_flickr30k_train.db")?;
/// let train = database.read(Some(LONGEST_IN_TRAINING))?;
/// let told = database.protected(&train.images[0])?; // every caption of the image, long ones too
/// assert!(train.pieces[0].iter().all(|&piece| told.contains(piece)));
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug)]
pub struct TextDatabase {
    values: Environment,
    folder: PathBuf,
    meta: Meta,
    lengths: IndexMap<String, usize>,
    images: HashMap<String, String>,
    texts: HashMap<String, Vec<String>>,
}

impl TextDatabase {
    /// Opens the folder and reads its JSON files.
    ///
    /// # Errors
    /// If a file is missing or has another form, a sentence has no image, or the two lists of images and sentences contradict each other.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let file = |name: &str| folder.join(name);
        let meta = Meta::read(&file("meta.json"))?;
        let lengths = read_json(file("id2len.json"), "lengths by sentence")?;
        let images = read_json(file("txt2img.json"), "images by sentence")?;
        let texts = read_json(file("img2txts.json"), "sentences by image")?;
        let values = Environment::open(folder)?;
        let new = Self { values, folder: folder.to_path_buf(), meta, lengths, images, texts };
        new.check()?;
        Ok(new)
    }

    fn check(&self) -> Result<()> {
        let place = |file: &str| self.folder.join(file).display().to_string();
        let listed: HashSet<[&String; 2]> = self
            .texts
            .iter()
            .flat_map(|(image, ids)| ids.iter().map(move |id| [image, id]))
            .collect();
        for id in self.lengths.keys() {
            let Some(image) = self.images.get(id) else {
                let expected = format!("the image of sentence `{id}`");
                return Err(Error::invalid(place("txt2img.json"), expected, "none"));
            };
            if !listed.contains(&[image, id]) {
                let expected = format!("sentence `{id}` under image `{image}`, as in txt2img.json");
                return Err(Error::invalid(place("img2txts.json"), expected, "none"));
            }
        }
        Ok(())
    }

    /// Tokens that are not words.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// A sentence.
    ///
    /// # Errors
    /// If there is no such sentence, its value cannot be read, or the JSON files contradict it.
    pub fn text(&self, id: &str) -> Result<Text> {
        let text = self.values.value(id, Text::decode)?;
        let refused = |what: &str, wanted: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
            let place = format!("{} `{id}`", self.folder.display());
            Err(Error::invalid(place, format!("{what} {wanted}, as in the JSON files"), got))
        };
        match (self.lengths.get(id), self.images.get(id)) {
            (Some(&n), _) if n != text.pieces.len() => refused("pieces:", &n, &text.pieces.len()),
            (_, Some(image)) if *image != text.image => refused("image", image, &text.image),
            _ => Ok(text),
        }
    }

    /// All sentences of at most `longest` pieces, in the order of `id2len.json`.
    ///
    /// # Errors
    /// As [`text`](Self::text), and if no sentence is left.
    pub fn read(&self, longest: Option<usize>) -> Result<Texts> {
        let mut images: IndexSet<String> = IndexSet::new();
        let (mut ids, mut pieces, mut phrases, mut of) = (vec![], vec![], vec![], vec![]);
        for (id, &length) in &self.lengths {
            if longest.is_some_and(|most| length > most) {
                continue;
            }
            let text = self.text(id)?;
            of.push(images.insert_full(text.image).0);
            ids.push(id.clone());
            pieces.push(text.pieces);
            phrases.push(text.phrases);
        }
        let longest = longest.map_or(String::new(), |n| format!(" of at most {n} pieces"));
        let expected = format_args!("a sentence{longest}");
        Error::unless(!ids.is_empty(), self.folder.display(), expected, "none")?;
        let pairs = Pairs::new(images.len(), of)?;
        Ok(Texts { ids, pieces, phrases, images: images.into_iter().collect(), pairs })
    }

    /// The protected words of an image: the pieces of all its sentences, however long they are.
    ///
    /// # Errors
    /// If the image has no sentence here, or a sentence cannot be read.
    pub fn protected(&self, image: &str) -> Result<CaptionWords> {
        let Some(ids) = self.texts.get(image) else {
            let place = self.folder.join("img2txts.json");
            return Err(Error::invalid(place.display(), format!("image `{image}`"), "none"));
        };
        let pieces = ids.iter().map(|id| Ok(self.text(id)?.pieces));
        let pieces: Vec<Vec<u32>> = pieces.collect::<Result<_>>()?;
        Ok(CaptionWords::of(pieces.iter().map(Vec::as_slice)))
    }
}
