//! What `hubness` reads: embeddings of a row and seed; pairs, names and truth of the data.

use std::fs;
use std::path::{Path, PathBuf};

use hubness::training::Similarity;
use itm_core::data::Part;
use itm_core::{Error, Pairs, Relevance, Result};
use npyz::{AutoSerialize, WriterBuilder};

use crate::checkpoint::write_atomically;
use crate::method::Embedded;
use crate::source::Source;

/// Files of the data, the same for every row and seed.
#[derive(Debug)]
pub(super) struct DataFiles {
    /// The image of each text, `[texts]`.
    pub(super) val_pairs: PathBuf,
    pub(super) test_pairs: PathBuf,
    /// File name and first caption of each test image.
    pub(super) image_names: PathBuf,
    /// Captions of the test split.
    pub(super) text_names: PathBuf,
    /// The texts true of each test image, where that is known.
    pub(super) truth: Option<PathBuf>,
}

impl DataFiles {
    /// Writes them into a folder.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write(folder: &Path, source: &Source) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let (val, test) = (&source.dataset.val, &source.dataset.test);
        let files = Self {
            val_pairs: folder.join("val_pairs.npy"),
            test_pairs: folder.join("test_pairs.npy"),
            image_names: folder.join("test_images.txt"),
            text_names: folder.join("test_texts.txt"),
            truth: source.truth.is_some().then(|| folder.join("truth.json")),
        };
        pairs(&files.val_pairs, &val.pairs)?;
        pairs(&files.test_pairs, &test.pairs)?;
        lines(&files.image_names, (0..test.pairs.images()).map(|image| image_name(test, image)))?;
        lines(&files.text_names, test.captions.iter().cloned())?;
        if let (Some(path), Some(known)) = (&files.truth, &source.truth) {
            truth(path, &known.test)?;
        }
        Ok(files)
    }
}

/// Embeddings of both splits by one model.
#[derive(Debug)]
pub(super) struct EmbeddingFiles {
    pub(super) val_images: PathBuf,
    pub(super) val_texts: PathBuf,
    pub(super) test_images: PathBuf,
    pub(super) test_texts: PathBuf,
}

impl EmbeddingFiles {
    /// Writes them into a folder.
    ///
    /// # Errors
    /// If their similarity is no inner product, which is what corrections are computed from, or a file cannot be written.
    pub(super) fn write(folder: &Path, [val, test]: &[Embedded; 2]) -> Result<Self> {
        if let Some(other) = [val, test].into_iter().find(|e| e.similarity != Similarity::Cosine) {
            let expected = "embeddings compared by their inner product";
            let got = format!("{:?}", other.similarity);
            return Err(Error::invalid(folder.display(), expected, got));
        }
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let files = Self {
            val_images: folder.join("val_images.npy"),
            val_texts: folder.join("val_texts.npy"),
            test_images: folder.join("test_images.npy"),
            test_texts: folder.join("test_texts.npy"),
        };
        for (path, values, dim) in [
            (&files.val_images, &val.images, val.dim),
            (&files.val_texts, &val.texts, val.dim),
            (&files.test_images, &test.images, test.dim),
            (&files.test_texts, &test.texts, test.dim),
        ] {
            npy(path, &[values.len() / dim, dim], values)?;
        }
        Ok(files)
    }
}

fn image_name(part: &Part, image: usize) -> String {
    let file = &part.images[image];
    match part.pairs.texts_of(image).first() {
        Some(&text) => format!("{file}: {}", part.captions[text]),
        None => file.clone(),
    }
}

fn pairs(path: &Path, pairs: &Pairs) -> Result<()> {
    let rows: Vec<_> = pairs.image_of_text().iter().map(|&image| image as i64).collect();
    npy(path, &[rows.len()], &rows)
}

fn truth(path: &Path, truth: &Relevance) -> Result<()> {
    let lists: Vec<_> = (0..truth.images()).map(|image| truth.texts_of(image)).collect();
    let text = serde_json::to_string(&lists).expect("numbers alone");
    write_atomically(path, text.as_bytes())
}

/// One name a line, whatever white space a caption holds.
fn lines(path: &Path, names: impl Iterator<Item = String>) -> Result<()> {
    let line = |name: String| match name.split_whitespace().collect::<Vec<_>>().join(" ") {
        empty if empty.is_empty() => "(no words)\n".to_owned(),
        name => name + "\n",
    };
    write_atomically(path, names.map(line).collect::<String>().as_bytes())
}

fn npy<T: AutoSerialize + Copy>(path: &Path, shape: &[usize], values: &[T]) -> Result<()> {
    let shape: Vec<_> = shape.iter().map(|&n| n as u64).collect();
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(&shape);
    let mut writer = options.writer(&mut bytes).begin_nd().map_err(Error::io(path))?;
    writer.extend(values.iter().copied()).map_err(Error::io(path))?;
    writer.finish().map_err(Error::io(path))?;
    write_atomically(path, &bytes)
}

#[cfg(test)]
mod tests {
    use itm_core::data::Npy;

    use super::*;
    use crate::config::{Config, ScenesConfig};

    #[test]
    fn the_files_hold_what_the_data_hold() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let mut config = Config::load(&configs, "fne-scenes").unwrap();
        let size = ScenesConfig { seed: 0, train: 8, val: 4, test: 12, pixels: 32 };
        config.target.scenes = Some(size);
        let source = Source::open(&config, None, &configs).unwrap().1;
        let dir = tempfile::tempdir().unwrap();
        let files = DataFiles::write(dir.path(), &source).unwrap();
        let images = |path: &Path| Npy::open(path).unwrap().to_indices().unwrap();
        assert_eq!(images(&files.val_pairs), source.dataset.val.pairs.image_of_text());
        assert_eq!(images(&files.test_pairs), source.dataset.test.pairs.image_of_text());
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let test = &source.dataset.test;
        let name = format!("test_000003.png: {}", test.captions[15]);
        assert_eq!(read(&files.image_names).lines().nth(3), Some(&name[..]));
        assert!(read(&files.text_names).lines().eq(&test.captions));
        let lists: Vec<Vec<u32>> = serde_json::from_str(&read(&files.truth.unwrap())).unwrap();
        let truth = &source.truth.unwrap().test;
        assert_eq!(lists.len(), 12);
        assert!(lists.iter().enumerate().all(|(image, texts)| texts == truth.texts_of(image)));
    }

    #[test]
    fn embeddings_keep_split_side_and_shape() {
        let dir = tempfile::tempdir().unwrap();
        let embedded = |start: f32| Embedded {
            dim: 2,
            images: vec![start, start + 1.0],
            texts: vec![start + 2.0, start + 3.0, start + 4.0, start + 5.0],
            similarity: Similarity::Cosine,
        };
        let files = EmbeddingFiles::write(dir.path(), &[embedded(0.0), embedded(10.0)]).unwrap();
        for (path, shape, first) in [
            (files.val_images, [1, 2], 0.0),
            (files.val_texts, [2, 2], 2.0),
            (files.test_images, [1, 2], 10.0),
            (files.test_texts, [2, 2], 12.0),
        ] {
            let read = Npy::open(&path).unwrap();
            assert_eq!((read.shape(), read.to_vec().unwrap()[0]), (&shape[..], first));
        }
    }

    /// Corrections multiply embeddings: those of the order similarity would be read as something else.
    #[test]
    fn order_embeddings_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let of = |similarity| Embedded { dim: 1, images: vec![1.0], texts: vec![1.0], similarity };
        let both = [of(Similarity::Cosine), of(Similarity::Order)];
        let folder = dir.path().join("embeddings");
        let line = EmbeddingFiles::write(&folder, &both).unwrap_err().to_string();
        assert!(line.contains("inner product, got Order"), "{line}");
        assert!(!folder.exists());
    }

    #[test]
    fn a_name_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("names.txt");
        lines(&path, ["two\nlines ", "", "one"].map(String::from).into_iter()).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "two lines\n(no words)\none\n");
    }
}
