//! The splits as a method takes them in: transformed features, captions as numbers of words or of word pieces.

use std::path::PathBuf;

use itm_core::Result;
use itm_core::data::{CentredRoots, Dataset, Features, Part};
use itm_core::learn::Word;
use itm_core::text::{Vocabulary, VocabularyOptions, WordPieces, clean_caption, words};
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
}

impl Captions {
    /// With what a target wants around the words; `None` where captions have marks already.
    pub(crate) fn marked(self, marks: Marks) -> Option<Self> {
        match (marks, self) {
            (Marks::Off, captions) => Some(captions),
            (Marks::StartEnd, Self::Words) => Some(Self::MarkedWords),
            (Marks::StartEnd, Self::Pieces(_) | Self::MarkedWords) => None,
        }
    }
}

/// One split.
pub(crate) struct EncodedPart {
    /// Of width 0 where a method sees pictures.
    pub(crate) features: Features,
    pub(crate) words: Vec<Vec<u32>>,
}

/// All splits; vocabulary and mean come from the training split alone.
pub(crate) struct Encoded {
    /// Number of words or word pieces.
    pub(crate) vocabulary: usize,
    parts: Splits<EncodedPart>,
    reader: Reader,
}

impl Encoded {
    /// Encodes all splits.
    ///
    /// # Errors
    /// If the folder of the word pieces holds none, or a caption has none.
    pub(crate) fn new(data: &Dataset, target: &Target, captions: &Captions) -> Result<Self> {
        let reader = Reader::new(data, target, captions)?;
        let centred = (target.features == ImageFeatures::CentredRoots)
            .then(|| CentredRoots::of(&data.train.features));
        let part = |part: &Part| -> Result<EncodedPart> {
            let features = match target.features {
                ImageFeatures::Pictures => Features { dim: 0, values: vec![] },
                ImageFeatures::Given | ImageFeatures::CentredRoots => match &centred {
                    None => part.features.clone(),
                    Some(centred) => centred.apply(&part.features),
                },
            };
            let words = part.captions.par_iter().map(|caption| reader.read(caption));
            Ok(EncodedPart { features, words: words.collect::<Result<_>>()? })
        };
        let parts =
            Splits { train: part(&data.train)?, val: part(&data.val)?, test: part(&data.test)? };
        Ok(Self { vocabulary: reader.size(), parts, reader })
    }

    /// The words of a caption as a method reads it.
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
        }
    }

    /// The part of a split.
    pub(crate) fn part(&self, split: Split) -> &EncodedPart {
        self.parts.of(split)
    }

    /// All parts.
    pub(crate) fn parts(&self) -> [&EncodedPart; 3] {
        self.parts.all()
    }
}

enum Reader {
    Words { vocabulary: Vocabulary, most: usize },
    Pieces(Box<WordPieces>),
    MarkedWords { vocabulary: Vocabulary, most: usize },
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
        })
    }

    fn size(&self) -> usize {
        match self {
            Self::Words { vocabulary, .. } => vocabulary.len(),
            Self::Pieces(pieces) => pieces.vocabulary(),
            Self::MarkedWords { vocabulary, .. } => vocabulary.len() + 2,
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
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use itm_core::scenes::{Scenes, Sizes};

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
        Scenes::generate(0, Sizes { train: 20, val: 3, test: 3, pixels: 32 }).dataset()
    }

    #[test]
    fn marks_stand_around_the_same_words() {
        let (data, target) = (data(), target(ImageFeatures::Given));
        let plain = Encoded::new(&data, &target, &Captions::Words).unwrap();
        let marked = Encoded::new(&data, &target, &Captions::MarkedWords).unwrap();
        assert_eq!(marked.vocabulary, plain.vocabulary + 2);
        let n = plain.vocabulary as u32;
        for (plain, marked) in plain.parts.val.words.iter().zip(&marked.parts.val.words) {
            assert_eq!(*marked, [&[n], plain.as_slice(), &[n + 1]].concat());
        }
    }

    /// HAL's released code has them, the paper does not say; the option changes what every row reads.
    #[test]
    fn a_target_can_ask_for_marks() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let text = fs::read_to_string(configs.join("hal-scenes.toml")).unwrap();
        assert!(text.contains("\nmarks = \"off\""), "{text}");
        let read = |text: String| -> Result<Encoded> {
            let parsed = AnyConfig::parse("toy", "toy.toml".into(), text)?;
            let AnyConfig::Trained(mut config) = parsed else { panic!("it trains") };
            let size = ScenesConfig { seed: 0, train: 8, val: 3, test: 3, pixels: 32 };
            config.target.scenes = Some(size);
            let (config, source) = Source::open(&config, None, &configs)?;
            Ok(crate::run::Bench::new(config, source, Device::flex())?.encoded)
        };
        let off = read(text.clone()).unwrap();
        let on = read(text.replace("\nmarks = \"off\"", "\nmarks = \"start_end\"")).unwrap();
        let marks = [0, 1].map(|k| off.vocabulary as u32 + k);
        assert_eq!(on.vocabulary, off.vocabulary + 2);
        for (on, off) in on.parts.test.words.iter().zip(&off.parts.test.words) {
            assert_eq!(on[1..on.len() - 1], off[..]);
            assert_eq!([on[0], on[on.len() - 1]], marks);
        }
        let line = read(text.replace("\nmarks = \"off\"", "\nmarks = \"both\""));
        assert!(line.err().unwrap().to_string().contains("unknown variant `both`"));
        assert_eq!(Captions::MarkedWords.marked(Marks::StartEnd), None);
        assert_eq!(Captions::Pieces("x".into()).marked(Marks::StartEnd), None);
    }

    /// What a word's numbers are is what the caption's numbers are there.
    #[test]
    fn words_point_at_their_numbers() {
        let (mut data, mut target) = (data(), target(ImageFeatures::Pictures));
        data.test.captions[0] = "A Red ball, on".into();
        target.max_words = 3;
        let of = |captions: &Captions| {
            let encoded = Encoded::new(&data, &target, captions).unwrap();
            let words = encoded.words(&data.test.captions[0]).unwrap();
            (words, encoded.parts.test.words[0].clone())
        };
        let (plain, of_plain) = of(&Captions::Words);
        let (marked, of_marked) = of(&Captions::MarkedWords);
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
        let (pieces, numbers) = of(&Captions::Pieces(folder.path().into()));
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
        let encoded = Encoded::new(&data, &target(ImageFeatures::Pictures), &captions).unwrap();
        assert_eq!(encoded.vocabulary, 5);
        assert_eq!(encoded.parts.test.words[0], [2, 4, 1, 1, 3]);
        assert_eq!((encoded.parts.test.features.dim, encoded.parts.test.features.rows()), (0, 0));
        let none = Captions::Pieces("no/such".into());
        assert!(Encoded::new(&data, &target(ImageFeatures::Given), &none).is_err());
    }
}
