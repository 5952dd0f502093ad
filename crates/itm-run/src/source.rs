//! The source of a target's data: a folder, or the built-in world.

mod evidence;
mod first;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use itm_core::data::{
    Bounds, Dataset, ImageFolder, Judgements, Manifest, RegionSource, Split, SplitData,
    WordVectors, load_pictures, load_precomp, probe_image, sha256_hex, turned_pictures,
};
use itm_core::files::{LARGEST_TEXT, read};
use itm_core::learn::WordMap;
use itm_core::scored::Scored;
use itm_core::vision::PictureSource;
use itm_core::{Error, Relevance, Result, ScoreMatrix};
use rayon::prelude::*;
use scenes::{Grounding, Role, Scenes, ScenesSplit, analyse, entails, grounding, parse, words};

use crate::config::{Config, DatasetName, ImageFeatures, Target, load_options};
use crate::progress;
use evidence::identify;

/// A data set, its truth if known, and its pictures.
pub(crate) struct Source {
    pub(crate) dataset: Dataset,
    pub(crate) truth: Option<Truth>,
    /// Judgements of the test split beyond its pairs.
    pub(crate) judgements: Vec<Judgements>,
    /// If these data replace the target's data: what is missing, and how to get it.
    pub(crate) substitution: Option<String>,
    /// What a reader of a report must know about the data, and the numbers do not show.
    pub(crate) notes: Vec<String>,
    /// The data set's name as a target writes it; `None` for a user's data.
    pub(crate) known: Option<DatasetName>,
    /// The data set's name for a reader.
    pub(crate) title: String,
    /// Number of images of the whole test split, if a target evaluates only the first images.
    pub(crate) first_of: Option<usize>,
    /// The vocabulary file, if the target names one.
    pub(crate) vocabulary: Option<PathBuf>,
    /// The file of ready word vectors, if the target names one; the file may be missing.
    pub(crate) word_vectors: Option<PathBuf>,
    /// The folders of `target.embeddings`.
    pub(crate) embeddings: Vec<PathBuf>,
    pictures: Pictures,
}

/// All true pairs; for measuring only, never for training.
pub(crate) struct Truth {
    pub(crate) train: Relevance,
    pub(crate) test: Relevance,
}

/// A word of a caption in an image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grounded {
    /// The word, in lower case.
    pub(crate) word: String,
    /// Whether it is the name of an object.
    pub(crate) names: bool,
    /// Whether the word is false of the image; `None` for words that say nothing about an image.
    pub(crate) mismatched: Option<bool>,
    /// Boxes of the objects that the word refers to; empty if there is no such object.
    pub(crate) boxes: Vec<Bounds>,
}

/// An encoded image, a thumbnail of about 200 pixels.
#[derive(Clone, Debug)]
pub(crate) struct Thumbnail {
    /// The file's name or the image's number: shown if there are no bytes, and the alternative text.
    pub(crate) name: String,
    /// `image/png` or `image/jpeg`.
    pub(crate) mime: &'static str,
    /// The encoded file; empty if only features are available.
    pub(crate) bytes: Vec<u8>,
}

enum Pictures {
    /// In the order of [`Split::ALL`].
    Scenes(Box<[ScenesSplit; 3]>),
    Files(ImageFolder),
}

impl Source {
    /// Opens the data of a target. If they are missing and the target names a substitute, opens the data of the substitute. Returns
    /// the target that the data belong to.
    pub(crate) fn open(
        asked: &Config,
        data: Option<&Path>,
        configs: &Path,
    ) -> Result<(Config, Self)> {
        let name = asked.target.dataset;
        if name == DatasetName::Scenes {
            if let Some(folder) = data {
                let expected = "no folder: Scenes are generated";
                return Err(Error::invalid("--data", expected, format!("`{}`", folder.display())));
            }
            return Ok((asked.clone(), Self::scenes(asked)?.first(asked)?));
        }
        let folder = data.map_or_else(|| Path::new("data").join(name.folder()), Path::to_path_buf);
        if data.is_some() || folder.is_dir() {
            return Ok((asked.clone(), Self::folder(&asked.target, &folder)?.first(asked)?));
        }
        let (title, at) = (name.title(), folder.display());
        let missing = format!("{title} is not in `{at}`: `cargo xtask data` says how to get it");
        let Some(substitute) = &asked.target.substitute else {
            let expected = format!("the folder of {title} (`--data DIR`)");
            let got = "nothing; `cargo xtask data` says how to get it";
            return Err(Error::invalid(at, expected, got));
        };
        let used = Config::load(configs, substitute)?.with(&asked.set)?;
        let mut source = Self::scenes(&used)?.first(&used)?;
        source.substitution =
            Some(format!("{missing}. Its table runs on Scenes instead, as in {substitute}."));
        Ok((used, source))
    }

    fn scenes(config: &Config) -> Result<Self> {
        let Some(sizes) = config.target.scenes else {
            let expected = "a section [target.scenes]";
            return Err(Error::invalid(config.place("target"), expected, "none"));
        };
        let _spinner = progress::spinner("generating Scenes");
        let scenes = Scenes::generate(sizes.seed, sizes.sizes());
        let mut dataset = match config.target.regions {
            None => scenes.dataset(sizes.features),
            Some(_) => scenes.dataset_with_regions(sizes.features),
        };
        dataset.transform_regions(config.target.region_transform)?;
        let Scenes { train, val, test, .. } = scenes;
        let truth = Truth { train: train.relevance(), test: test.relevance() };
        Ok(Self {
            dataset,
            truth: Some(truth),
            judgements: vec![],
            substitution: None,
            notes: vec![],
            known: Some(DatasetName::Scenes),
            title: DatasetName::Scenes.title().into(),
            first_of: None,
            vocabulary: None,
            word_vectors: None,
            embeddings: vec![],
            pictures: Pictures::Scenes(Box::new([train, val, test])),
        })
    }

    fn folder(target: &Target, folder: &Path) -> Result<Self> {
        let (features, options) = (target.features, load_options(target));
        let mut loaded = match features {
            ImageFeatures::Pictures => load_pictures(folder, options.captions)?,
            _ => load_precomp(folder, &options)?,
        };
        let mut notes = loaded.notes;
        let mut more = Manifest::default();
        let judgements = Judgements::of_folder(folder, &loaded.dataset.test, &mut more)?;
        notes.extend(judgements.iter().map(Judgements::to_string));
        let declared = loaded.declared.as_deref();
        let (known, title, note) = identify(target, &loaded.dataset, declared, folder);
        notes.extend(note);
        let embeddings: Vec<_> = target.embeddings.iter().map(|path| folder.join(path)).collect();
        let patches = target.regions == Some(RegionSource::Patches);
        notes.extend(loaded.dataset.add_embeddings(&embeddings, patches, &mut more)?);
        loaded.dataset.transform_regions(target.region_transform)?;
        if features == ImageFeatures::Pictures && loaded.dataset.train.embeddings.images.dim == 0 {
            notes.push("no features: the closed-form CCA row is left out".into());
        }
        let turned = check_pictures(&loaded.dataset.test, &loaded.images)?;
        if turned > 0 {
            notes.push(format!("test: {}", turned_pictures(turned)));
        }
        let mut source = Self {
            dataset: loaded.dataset,
            truth: None,
            judgements,
            substitution: None,
            notes,
            known,
            title,
            first_of: None,
            vocabulary: target.vocabulary.as_ref().map(|file| folder.join(file)),
            word_vectors: target.word_vectors.as_ref().map(|file| folder.join(file)),
            embeddings,
            pictures: Pictures::Files(loaded.images),
        };
        if !more.files.is_empty() {
            source.add_to_hash(more.combined().as_bytes());
        }
        if let Some(file) = source.vocabulary.clone() {
            source.add_to_hash(&read(&file, LARGEST_TEXT)?);
        }
        Ok(source)
    }

    /// Counts ready word vectors as data: adds the vectors of found words to the hash of the data, and a note that names the file.
    pub(crate) fn add_vectors(&mut self, file: &Path, vectors: &WordVectors) {
        let rows = vectors.rows.iter().flat_map(|(word, row)| {
            word.to_le_bytes().into_iter().chain(row.iter().flat_map(|x| x.to_le_bytes()))
        });
        self.add_to_hash(&rows.collect::<Vec<_>>());
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.notes.push(format!("word vectors of `{name}`: {vectors}"));
    }

    fn add_to_hash(&mut self, bytes: &[u8]) {
        let sha256 = &mut self.dataset.sha256;
        *sha256 = sha256_hex(format!("{sha256}\n{}", sha256_hex(bytes)).as_bytes());
    }

    /// The pictures of a split as a model sees them.
    ///
    /// # Errors
    /// If a picture has no file.
    pub(crate) fn pictures(&self, split: Split) -> Result<Vec<PictureSource>> {
        match &self.pictures {
            Pictures::Scenes(world) => {
                let split = &world[split as usize];
                let drawn = (0..split.len()).into_par_iter().map(|i| split.image(i));
                Ok(drawn.map(|image| PictureSource::Decoded(Arc::new(image))).collect())
            }
            Pictures::Files(folder) => {
                let picture = |name: &String| match folder.image_path(name) {
                    Some(path) => Ok(PictureSource::File(path)),
                    None => Err(Error::invalid(name, "a picture", "no such file")),
                };
                self.part(split).0.images.iter().map(picture).collect()
            }
        }
    }

    /// A split and its true pairs, if they are known.
    pub(crate) fn part(&self, split: Split) -> (&SplitData, Option<&Relevance>) {
        let truth = self.truth.as_ref();
        match split {
            Split::Train => (&self.dataset.train, truth.map(|t| &t.train)),
            Split::Val => (&self.dataset.val, None),
            Split::Test => (&self.dataset.test, truth.map(|t| &t.test)),
        }
    }

    /// The probability that each caption of a split was written for each image; `None` except in the built-in world.
    pub(crate) fn odds(&self, split: Split) -> Option<Result<ScoreMatrix>> {
        let Pictures::Scenes(world) = &self.pictures else { return None };
        let pairs = &self.part(split).0.pairs; // fewer than the world's if only the first images are evaluated
        let of_all = world[split as usize].posterior();
        Some(of_all.and_then(|all| all.block(0..pairs.images(), 0..pairs.texts())))
    }

    /// What each word of a caption refers to in an image of the same split, in order; the caption may belong to another image.
    /// Empty if this truth is not known.
    pub(crate) fn grounded(&self, split: Split, image: usize, text: usize) -> Vec<Grounded> {
        let Pictures::Scenes(world) = &self.pictures else { return vec![] };
        let split = &world[split as usize];
        let (scene, caption) = (&split.scenes[image], &split.captions[text].text);
        let (Some(met), Some(parsed)) = (grounding(scene, caption), analyse(caption)) else {
            return vec![];
        };
        let word = |((word, met), role): ((String, Grounding), &Role)| Grounded {
            word,
            names: matches!(role, Role::Kind(_, Some(_))),
            mismatched: (met != Grounding::Functional).then_some(met == Grounding::Mismatched),
            boxes: match met {
                Grounding::Objects(found) => {
                    found.iter().map(|&o| scene.objects[o].bounds).collect()
                }
                Grounding::Functional | Grounding::Mismatched | Grounding::Background => vec![],
            },
        };
        words(caption).into_iter().zip(met).zip(&parsed.roles).map(word).collect()
    }

    /// Whether a sentence is false of an image of the built-in world; `None` if the sentence is not one of that world.
    pub(crate) fn denies(&self, split: Split, image: usize, sentence: &str) -> Option<bool> {
        let Pictures::Scenes(world) = &self.pictures else { return None };
        Some(!entails(&world[split as usize].scenes[image], &parse(sentence)?))
    }

    /// What a word of a caption of the built-in world describes, by the word's number; `None` for function words.
    pub(crate) fn says(&self, caption: &str, word: usize) -> Option<&'static str> {
        match analyse(caption)?.roles.get(word)? {
            Role::Function => None,
            Role::Kind(..) => Some("kind"),
            Role::Colour(..) => Some("colour"),
            Role::Size(..) => Some("size"),
            Role::Pattern(..) => Some("pattern"),
            Role::Count => Some("number"),
            Role::Relation => Some("relation"),
            Role::Place => Some("place"),
        }
    }

    /// [`grounded`](Self::grounded) for the words of a map. Each takes the next equal word of the caption; a word that the caption
    /// does not have, such as a mark, is `None`.
    pub(crate) fn grounded_words(
        &self,
        split: Split,
        (image, text): (usize, usize),
        words: &[WordMap],
    ) -> Vec<Option<Grounded>> {
        let mut all = self.grounded(split, image, text);
        let mut next = |word: &WordMap| {
            let at = all.iter().position(|grounded| grounded.word == word.word)?;
            all.drain(..=at).next_back()
        };
        words.iter().map(&mut next).collect()
    }

    /// An image as a report shows it; without bytes if the file cannot be read.
    pub(crate) fn picture(&self, split: Split, image: usize) -> Thumbnail {
        let name = self.part(split).0.images[image].clone();
        match &self.pictures {
            Pictures::Scenes(world) => {
                Thumbnail { name, mime: "image/png", bytes: world[split as usize].png(image) }
            }
            Pictures::Files(folder) => {
                // Only what is a whole picture comes into a page.
                let found = folder.image_path(&name).and_then(|path| {
                    let info = probe_image(&path).ok()?;
                    Some((info.format.mime(), read(path, LARGEST_TEXT).ok()?))
                });
                let (mime, bytes) = found.unwrap_or(("image/jpeg", vec![]));
                Thumbnail { name, mime, bytes }
            }
        }
    }
}

/// Refuses broken pictures, which would otherwise show only in the report, after hours. Pictures may be missing. Counts the
/// pictures with an EXIF rotation.
fn check_pictures(test: &SplitData, folder: &ImageFolder) -> Result<usize> {
    let pictures: Vec<_> = test.images.iter().filter_map(|name| folder.image_path(name)).collect();
    let probed: Vec<_> = pictures.par_iter().map(probe_image).collect();
    let whole = probed.into_iter().collect::<Result<Vec<_>>>()?; // the first broken one in order
    Ok(whole.iter().filter(|info| info.orientation != 1).count())
}
