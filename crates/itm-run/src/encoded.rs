//! The splits as a method takes them in: transformed features, captions as numbers of words, word pieces or stems.

use std::path::PathBuf;

use itm_core::cca::CcaOptions;
use itm_core::data::{CentredRoots, Dataset, Features, Part};
use itm_core::learn::Word;
use itm_core::text::{Terms, Vocabulary, VocabularyOptions, WordPieces, clean_caption, words};
use itm_core::{Error, Result};
use rayon::prelude::*;

use crate::config::{ImageFeatures, Marks, Target};
use crate::split::{Split, Splits};

/// How a method reads captions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captions {
    /// As words of the training captions.
    Words,
    /// As the word pieces of a BERT whose vocabulary lies in this folder; none is cut off here.
    Pieces(PathBuf),
    /// As words of the training captions between a first and a last mark: of a target that asks for marks, and for a BERT
    /// of random weights, which has no vocabulary of its own.
    MarkedWords,
    /// As the set of its stems that the training captions have: for a bag of words. A caption may have none.
    Stems,
}

impl Captions {
    /// With what a target wants around the words; `None` where captions have marks already, or no order.
    pub(crate) fn marked(self, marks: Marks) -> Option<Self> {
        match (marks, self) {
            (Marks::Off, captions) => Some(captions),
            (Marks::StartEnd, Self::Words) => Some(Self::MarkedWords),
            (Marks::StartEnd, Self::Pieces(_) | Self::MarkedWords | Self::Stems) => None,
        }
    }
}

/// The features of all splits as a method takes them in: a mean is of the training split alone.
///
/// Features are of width 0 where a method sees pictures.
pub(crate) fn features(data: &Dataset, target: &Target) -> Splits<Features> {
    let parts = Splits { train: &data.train, val: &data.val, test: &data.test };
    let train = &data.train.features;
    let centred = match target.features {
        ImageFeatures::Pictures => return parts.map(|_| Features { dim: 0, values: vec![] }),
        ImageFeatures::Given => return parts.map(|part| part.features.clone()),
        ImageFeatures::CentredRoots => CentredRoots::of(train),
        ImageFeatures::CentredRootsFree => CentredRoots::of_free_length(train),
    };
    parts.map(|part| centred.apply(&part.features))
}

/// The captions of all splits as numbers, in one of the ways; a vocabulary is of the training split alone.
pub(crate) struct Reading {
    /// The way.
    pub(crate) captions: Captions,
    /// Number of words, word pieces or stems.
    pub(crate) vocabulary: usize,
    texts: Splits<Vec<Vec<u32>>>,
    reader: Reader,
}

impl Reading {
    /// Reads all splits.
    ///
    /// # Errors
    /// If the folder of the word pieces holds none, a caption has none, or no stem of the training captions is frequent enough.
    pub(crate) fn new(data: &Dataset, target: &Target, captions: Captions) -> Result<Self> {
        let reader = Reader::new(data, target, &captions)?;
        let read = |part: &Part| -> Result<Vec<Vec<u32>>> {
            part.captions.par_iter().map(|caption| reader.read(caption)).collect()
        };
        let texts =
            Splits { train: read(&data.train)?, val: read(&data.val)?, test: read(&data.test)? };
        Ok(Self { captions, vocabulary: reader.size(), texts, reader })
    }

    /// The texts of a split.
    pub(crate) fn texts(&self, split: Split) -> &[Vec<u32>] {
        self.texts.of(split)
    }

    /// How many numbers all texts are.
    pub(crate) fn numbers(&self) -> usize {
        self.texts.all().into_iter().flatten().map(Vec::len).sum()
    }

    /// The stems, of captions that are read as these.
    pub(crate) fn terms(&self) -> Option<&Terms> {
        if let Reader::Stems(terms) = &self.reader { Some(terms) } else { None }
    }

    /// The word of each number, nothing for what is no word; `None` where captions are not read as words.
    pub(crate) fn words_by_number(&self) -> Option<Vec<&str>> {
        match &self.reader {
            Reader::Words { vocabulary, .. } => Some(vocabulary.spelled().collect()),
            Reader::MarkedWords { vocabulary, .. } => {
                Some(vocabulary.spelled().chain(["", ""]).collect())
            }
            Reader::Pieces(_) | Reader::Stems(_) => None,
        }
    }

    /// The words of a caption as a method reads it; none where a caption is a set of stems.
    ///
    /// # Errors
    /// If it has no word pieces.
    pub(crate) fn words(&self, caption: &str) -> Result<Vec<Word>> {
        let from = |first: usize, most: usize| {
            let words = words(caption).into_iter().take(most).enumerate();
            words.map(|(k, text)| Word { text, pieces: first + k..first + k + 1 }).collect()
        };
        match &self.reader {
            Reader::Words { most, .. } => Ok(from(0, *most)),
            Reader::MarkedWords { most, .. } => Ok(from(1, *most)),
            Reader::Pieces(pieces) => {
                let words = pieces.words(&clean_caption(caption))?.into_iter();
                Ok(words.map(|w| Word { text: w.text, pieces: w.pieces }).collect())
            }
            Reader::Stems(_) => Ok(vec![]),
        }
    }
}

enum Reader {
    Words { vocabulary: Vocabulary, most: usize },
    Pieces(Box<WordPieces>),
    MarkedWords { vocabulary: Vocabulary, most: usize },
    Stems(Terms),
}

impl Reader {
    fn new(data: &Dataset, target: &Target, captions: &Captions) -> Result<Self> {
        let words = || {
            let options =
                VocabularyOptions { min_count: target.min_word_count, ..Default::default() };
            Vocabulary::build(&data.train.captions, options)
        };
        let most = target.max_words;
        Ok(match captions {
            Captions::Words => Self::Words { vocabulary: words(), most },
            Captions::Pieces(folder) => Self::Pieces(Box::new(WordPieces::open(folder)?)),
            Captions::MarkedWords => Self::MarkedWords { vocabulary: words(), most },
            Captions::Stems => Self::Stems(stems(data)?),
        })
    }

    fn size(&self) -> usize {
        match self {
            Self::Words { vocabulary, .. } => vocabulary.len(),
            Self::Pieces(pieces) => pieces.vocabulary(),
            Self::MarkedWords { vocabulary, .. } => vocabulary.len() + 2,
            Self::Stems(terms) => terms.len(),
        }
    }

    fn read(&self, caption: &str) -> Result<Vec<u32>> {
        match self {
            Self::Words { vocabulary, most } => Ok(vocabulary.encode(caption, *most)),
            Self::Pieces(pieces) => pieces.encode(&clean_caption(caption)),
            Self::MarkedWords { vocabulary, most } => {
                let first = vocabulary.len() as u32;
                let words = vocabulary.encode(caption, *most);
                Ok(std::iter::once(first).chain(words).chain([first + 1]).collect())
            }
            Self::Stems(terms) => Ok(terms.numbers(caption)),
        }
    }
}

/// The stems of the closed-form baseline.
///
/// # Errors
/// If no stem of the training captions is frequent enough.
pub(crate) fn stems(data: &Dataset) -> Result<Terms> {
    let CcaOptions { min_captions, max_terms, .. } = CcaOptions::default();
    let terms = Terms::fit(&data.train.captions, min_captions, max_terms);
    if terms.is_empty() {
        let place = format!("{}, training captions", data.name);
        let expected = format!("a word that stands in {min_captions} of them");
        return Err(Error::invalid(place, expected, "none"));
    }
    Ok(terms)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use itm_core::scenes::{ImageFeature, Scenes, Sizes};

    use burn::tensor::Device;

    use super::*;
    use crate::config::{AnyConfig, Config, ScenesConfig};
    use crate::source::Source;

    fn target(features: ImageFeatures) -> Target {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let target = Config::load(&configs, "fne-scenes").unwrap().target;
        Target { features, ..target }
    }

    fn data() -> Dataset {
        Scenes::generate(0, Sizes { train: 20, val: 3, test: 3, pixels: 32 })
            .dataset(ImageFeature::Global)
    }

    #[test]
    fn marks_stand_around_the_same_words() {
        let (data, target) = (data(), target(ImageFeatures::Given));
        let plain = Reading::new(&data, &target, Captions::Words).unwrap();
        let marked = Reading::new(&data, &target, Captions::MarkedWords).unwrap();
        assert_eq!(marked.vocabulary, plain.vocabulary + 2);
        let words = plain.words_by_number().unwrap();
        assert_eq!(marked.words_by_number().unwrap(), [&words[..], &["", ""]].concat());
        assert_eq!((words[..2].concat(), words.len()), (String::new(), plain.vocabulary));
        let n = plain.vocabulary as u32;
        for (plain, marked) in plain.texts.val.iter().zip(&marked.texts.val) {
            assert_eq!(*marked, [&[n], plain.as_slice(), &[n + 1]].concat());
        }
    }

    /// HAL's released code has them, the paper does not say; the option changes what every row reads.
    #[test]
    fn a_target_can_ask_for_marks() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let text = fs::read_to_string(configs.join("hal-scenes.toml")).unwrap();
        let of_words = |text: &str| {
            let random = text.replace("\nstart = \"cca\"", "\nstart = \"random\"");
            random.replace("\ntext = \"bag\"", "\ntext = \"gru\"")
        };
        assert!(text.contains("\nmarks = \"off\""), "{text}");
        let read = |text: String| -> Result<Reading> {
            let parsed = AnyConfig::parse("toy", "toy.toml".into(), text)?;
            let AnyConfig::Trained(mut config) = parsed else { panic!("it trains") };
            let size =
                ScenesConfig { train: 8, val: 3, test: 3, pixels: 32, ..ScenesConfig::default() };
            config.target.scenes = Some(size);
            let (config, source) = Source::open(&config, None, &configs)?;
            Ok(crate::run::Bench::new(config, source, Device::flex())?.readings.remove(0))
        };
        let marked = |text: &str, marks: &str| {
            text.replace("\nmarks = \"off\"", &format!("\nmarks = \"{marks}\""))
        };
        let words = of_words(&text);
        let on = read(marked(&words, "start_end")).unwrap();
        let off = read(words).unwrap();
        let marks = [0, 1].map(|k| off.vocabulary as u32 + k);
        assert_eq!(on.vocabulary, off.vocabulary + 2);
        for (on, off) in on.texts.test.iter().zip(&off.texts.test) {
            assert_eq!(on[1..on.len() - 1], off[..]);
            assert_eq!([on[0], on[on.len() - 1]], marks);
        }
        for (wrong, part) in
            [("both", "unknown variant `both`"), ("start_end", "no order of words")]
        {
            let line = read(marked(&text, wrong)).err().unwrap().to_string();
            assert!(line.contains(part), "{line}");
        }
        assert_eq!(Captions::MarkedWords.marked(Marks::StartEnd), None);
        for without in [Captions::Pieces("x".into()), Captions::Stems] {
            assert_eq!(without.marked(Marks::StartEnd), None);
        }
    }

    /// What a word's numbers are is what the caption's numbers are there.
    #[test]
    fn words_point_at_their_numbers() {
        let (mut data, mut target) = (data(), target(ImageFeatures::Pictures));
        data.test.captions[0] = "A Red ball, on".into();
        target.max_words = 3;
        let of = |captions: Captions| {
            let reading = Reading::new(&data, &target, captions).unwrap();
            let words = reading.words(&data.test.captions[0]).unwrap();
            (words, reading.texts.test[0].clone())
        };
        let (plain, of_plain) = of(Captions::Words);
        let (marked, of_marked) = of(Captions::MarkedWords);
        let texts: Vec<_> = plain.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(texts, ["a", "red", "ball"]);
        for (plain, marked) in plain.iter().zip(&marked) {
            assert_eq!(plain.text, marked.text);
            assert_eq!(of_plain[plain.pieces.clone()], of_marked[marked.pieces.clone()]);
        }
        assert_eq!((plain.len(), marked.len(), marked[2].pieces.clone()), (3, 3, 3..4));
        let folder = tempfile::tempdir().unwrap();
        let lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nred\nba\n##ll\n";
        fs::write(folder.path().join("vocab.txt"), lines).unwrap();
        let (pieces, numbers) = of(Captions::Pieces(folder.path().into()));
        assert_eq!(numbers, [2, 1, 4, 5, 6, 1, 3]); // all four words: `max_words` is of words of a vocabulary
        let ball = Word { text: "ball".into(), pieces: 3..5 };
        assert_eq!((pieces.len(), &pieces[2]), (4, &ball));
    }

    /// By hand: `a` is piece 4, every other word the unknown piece 1; cleaning takes the full stop away.
    #[test]
    fn pieces_are_those_of_the_folder_and_features_stay_away() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").unwrap();
        let mut data = data();
        data.test.captions[0] = "A x-ray.".into();
        let captions = Captions::Pieces(folder.path().into());
        let target = target(ImageFeatures::Pictures);
        let reading = Reading::new(&data, &target, captions).unwrap();
        assert_eq!(reading.vocabulary, 5);
        assert_eq!(reading.texts.test[0], [2, 4, 1, 1, 3]);
        let features = features(&data, &target).test;
        assert_eq!((features.dim, features.rows()), (0, 0));
        let none = Captions::Pieces("no/such".into());
        assert!(Reading::new(&data, &target, none).is_err());
    }

    /// By hand: `dog` and `run` stand in two captions of training, `cat` in one, `bird` in none.
    #[test]
    fn stems_are_a_set_and_of_training_alone() {
        let mut data = data();
        let texts = ["Dogs run", "a running dog", "the cat"].map(String::from);
        data.train.captions = texts.into();
        data.test.captions[..3]
            .clone_from_slice(&["Run, dog, run!", "A bird", "cat"].map(String::from));
        let target = target(ImageFeatures::Given);
        let reading = Reading::new(&data, &target, Captions::Stems).unwrap();
        assert_eq!((reading.vocabulary, reading.terms().unwrap().len()), (2, 2));
        assert_eq!(reading.texts(Split::Test)[..3], [vec![0, 1], vec![], vec![]]);
        assert!(reading.words("A dog").unwrap().is_empty());
        data.train.captions = vec!["a".into(), "b".into()];
        let line = Reading::new(&data, &target, Captions::Stems).err().unwrap().to_string();
        assert_eq!(
            line,
            "scenes, training captions: expected a word that stands in 2 of them, got none"
        );
    }
}
