//! What `hubness` reads: embeddings or scores of a row and seed; pairs, names and truth of the data.

use std::fs;
use std::path::{Path, PathBuf};

use hubness::training::Similarity;
use itm_core::data::Part;
use itm_core::eval::Fold;
use itm_core::{Error, Pairs, Relevance, Result};
use npyz::{AutoSerialize, WriterBuilder};

use crate::checkpoint::write_atomically;
use crate::method::Embedded;
use crate::rows::scores;
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
    /// Writes them into a folder: of the test split what the fold holds.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write(folder: &Path, source: &Source, fold: &Fold) -> Result<Self> {
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
        pairs(&files.test_pairs, &fold.pairs)?;
        lines(&files.image_names, fold.images.clone().map(|image| image_name(test, image)))?;
        lines(&files.text_names, fold.texts.iter().map(|&text| test.captions[text].clone()))?;
        if let (Some(path), Some(known)) = (&files.truth, &source.truth) {
            truth(path, &known.test, fold)?;
        }
        Ok(files)
    }
}

/// What one model says of both splits: each file with the option of `hubness report` that takes it.
#[derive(Debug)]
pub(super) struct ModelFiles(pub(super) Vec<(&'static str, PathBuf)>);

impl ModelFiles {
    /// Writes them into a folder: embeddings where their similarity is the inner product, which `hubness` computes itself, all
    /// scores where it is another.
    ///
    /// # Errors
    /// If a score is NaN or a file cannot be written.
    pub(super) fn write(folder: &Path, [val, test]: &[Embedded; 2]) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let mut files = Self(Vec::new());
        let mut add = |option, name: &str, shape: [usize; 2], values: &[f32]| {
            let path = folder.join(name);
            npy(&path, &shape, values)?;
            files.0.push((option, path));
            Ok(())
        };
        for (of, test) in [(test, true), (val, false)] {
            let name =
                |file: &str| if test { format!("test_{file}") } else { format!("val_{file}") };
            if of.similarity == Similarity::Cosine {
                let images = if test { "--images" } else { "--val-images" };
                let texts = if test { "--texts" } else { "--val-texts" };
                let shape = |values: &[f32]| [values.len() / of.dim, of.dim];
                add(images, &name("images.npy"), shape(&of.images), &of.images)?;
                add(texts, &name("texts.npy"), shape(&of.texts), &of.texts)?;
            } else {
                let option = if test { "--scores" } else { "--val-scores" };
                let matrix = scores(of)?;
                let shape = [matrix.images(), matrix.texts()];
                add(option, &name("scores.npy"), shape, matrix.values())?;
            }
        }
        Ok(files)
    }
}

/// The embeddings of what a fold holds.
pub(super) fn of_fold(embedded: &Embedded, fold: &Fold) -> Embedded {
    let dim = embedded.dim;
    let images = embedded.images[fold.images.start * dim..fold.images.end * dim].to_vec();
    let texts = fold.texts.iter().flat_map(|&text| &embedded.texts[text * dim..(text + 1) * dim]);
    Embedded { images, texts: texts.copied().collect(), ..*embedded }
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

/// The texts of the fold that are true of each of its images, both counted within it.
fn truth(path: &Path, truth: &Relevance, fold: &Fold) -> Result<()> {
    let within = |text: &u32| fold.texts.binary_search(&(*text as usize)).ok();
    let of_image = |image| truth.texts_of(image).iter().filter_map(within).collect::<Vec<_>>();
    let lists: Vec<_> = fold.images.clone().map(of_image).collect();
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
    use crate::testing;

    #[test]
    fn the_files_hold_what_the_data_hold() {
        let source = testing::small_scenes([8, 4, 12]).1;
        let dir = tempfile::tempdir().unwrap();
        let whole = Fold::new(&source.dataset.test.pairs, 0..12);
        let files = DataFiles::write(dir.path(), &source, &whole).unwrap();
        let images = |path: &Path| Npy::open(path).unwrap().to_indices().unwrap();
        assert_eq!(images(&files.val_pairs), source.dataset.val.pairs.image_of_text());
        assert_eq!(images(&files.test_pairs), source.dataset.test.pairs.image_of_text());
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let test = &source.dataset.test;
        let name = format!("test_000003.png: {}", test.captions[15]);
        assert_eq!(read(&files.image_names).lines().nth(3), Some(&name[..]));
        assert!(read(&files.text_names).lines().eq(&test.captions));
        let lists: Vec<Vec<u32>> = serde_json::from_str(&read(&files.truth.unwrap())).unwrap();
        let truth = &source.truth.as_ref().unwrap().test;
        assert_eq!(lists.len(), 12);
        assert!(lists.iter().enumerate().all(|(image, texts)| texts == truth.texts_of(image)));

        // A fold counts its images and texts from 0, and what is true beyond it is not there.
        let fold = Fold::new(&test.pairs, 4..7);
        let files = DataFiles::write(&dir.path().join("fold"), &source, &fold).unwrap();
        assert_eq!(images(&files.val_pairs), source.dataset.val.pairs.image_of_text());
        assert_eq!(images(&files.test_pairs), fold.pairs.image_of_text());
        assert_eq!(read(&files.image_names).lines().count(), 3);
        assert!(read(&files.image_names).starts_with("test_000004.png"));
        assert!(read(&files.text_names).lines().eq(&test.captions[20..35]));
        let lists: Vec<Vec<usize>> =
            serde_json::from_str(&read(files.truth.as_ref().unwrap())).unwrap();
        for (image, texts) in lists.iter().enumerate() {
            let all = truth.texts_of(image + 4).iter().map(|&text| text as usize);
            let within: Vec<_> =
                all.filter(|text| (20..35).contains(text)).map(|text| text - 20).collect();
            assert_eq!((texts, texts.is_empty()), (&within, false), "image {image}");
        }
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
        let files = ModelFiles::write(dir.path(), &[embedded(0.0), embedded(10.0)]).unwrap();
        let read: Vec<_> = files.0.iter().map(|(option, path)| (*option, first(path))).collect();
        let of = |images: u64, first: f32| (vec![images as usize, 2], first);
        let expected = [
            ("--images", of(1, 10.0)),
            ("--texts", of(2, 12.0)),
            ("--val-images", of(1, 0.0)),
            ("--val-texts", of(2, 2.0)),
        ];
        assert_eq!(read, expected);
    }

    /// Shape and first value.
    fn first(path: &Path) -> (Vec<usize>, f32) {
        let read = Npy::open(path).unwrap();
        (read.shape().to_vec(), read.to_vec().unwrap()[0])
    }

    /// `hubness` would multiply embeddings: those of another similarity go there as their scores.
    #[test]
    fn order_embeddings_become_scores() {
        let dir = tempfile::tempdir().unwrap();
        let of = |image: f32| Embedded {
            dim: 1,
            images: vec![image],
            texts: vec![4.0, 0.5],
            similarity: Similarity::Order,
        };
        let files = ModelFiles::write(dir.path(), &[of(1.0), of(3.0)]).unwrap();
        let read: Vec<_> = files.0.iter().map(|(option, path)| (*option, first(path))).collect();
        // The first text is 1 above the image of the test and 3 above that of the validation split.
        let expected = [("--scores", (vec![1, 2], -1.0)), ("--val-scores", (vec![1, 2], -3.0))];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_fold_has_its_own_rows() {
        let pairs = Pairs::new(3, vec![2, 0, 1, 1]).unwrap();
        let embedded = Embedded {
            dim: 2,
            images: (0..6).map(|x| x as f32).collect(),
            texts: (10..18).map(|x| x as f32).collect(),
            similarity: Similarity::Order,
        };
        let last = of_fold(&embedded, &Fold::new(&pairs, 1..3));
        assert_eq!(last.images, [2.0, 3.0, 4.0, 5.0]);
        assert_eq!(last.texts, [10.0, 11.0, 14.0, 15.0, 16.0, 17.0]);
        assert_eq!((last.dim, last.similarity), (2, Similarity::Order));
    }

    #[test]
    fn a_name_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("names.txt");
        lines(&path, ["two\nlines ", "", "one"].map(String::from).into_iter()).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "two lines\n(no words)\none\n");
    }
}
