//! Writes Scenes as an ordinary data set on disk: images, Karpathy JSON, precomputed features and, in its own file, the
//! truth.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use half::f16;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::features::{Regions, global};
use super::{Scenes, ScenesSplit, WIDTH, words};
use itm_core::data::npy_header;
use itm_core::{Error, Result};

/// Writes the world into a folder. Creates the folder if necessary and replaces files of the same names.
///
/// | file                                  | content                                                                     |
/// |---------------------------------------|-----------------------------------------------------------------------------|
/// | `images/<split>_000000.png`           | the pictures                                                                |
/// | `dataset_scenes.json`                 | Karpathy layout: an image is `<filepath>/<filename>`, with `split` and sentences |
/// | `precomp/<split>_ims.npy`             | f32 `[n, d]`, global features                                               |
/// | `precomp/<split>_caps.txt`, `_ids.txt` | five captions per image, in image order; file names                         |
/// | `precomp/<split>_regions.npy`         | f16 `[n, 12, d]`, region features                                           |
/// | `precomp/<split>_boxes.npy`           | f32 `[n, 12, 4]`: x1, y1, x2, y2 from 0 to 1                                |
/// | `truth.json`                          | facts, meanings and all true pairs: for measuring, never for training       |
///
/// # Errors
/// If a folder or file cannot be written.
pub fn export(scenes: &Scenes, folder: impl AsRef<Path>) -> Result<()> {
    let folder = folder.as_ref();
    for sub in ["images", "precomp"] {
        let sub = folder.join(sub);
        fs::create_dir_all(&sub).map_err(Error::io(&sub))?;
    }
    for split in scenes.splits() {
        images(split, folder)?;
        precomputed(split, &folder.join("precomp"))?;
    }
    write(folder.join("dataset_scenes.json"), karpathy(scenes).to_string())?;
    write(folder.join("truth.json"), truth(scenes).to_string())
}

fn images(split: &ScenesSplit, folder: &Path) -> Result<()> {
    (0..split.len())
        .into_par_iter()
        .try_for_each(|i| write(folder.join("images").join(split.file_name(i)), split.png(i)))
}

fn precomputed(split: &ScenesSplit, folder: &Path) -> Result<()> {
    let path = |end: &str| folder.join(format!("{}_{end}", split.name));
    let n = split.len();
    let names: String = (0..n).map(|i| split.file_name(i) + "\n").collect();
    let captions: String = split.captions.iter().map(|c| c.text.clone() + "\n").collect();
    write(path("ids.txt"), names)?;
    write(path("caps.txt"), captions)?;
    let mut whole = Npy::create(path("ims.npy"), "<f4", &[n, WIDTH])?;
    let mut boxes = Npy::create(path("boxes.npy"), "<f4", &[n, Regions::COUNT, 4])?;
    let mut regions = Npy::create(path("regions.npy"), "<f2", &[n, Regions::COUNT, WIDTH])?;
    // In blocks, so that memory does not grow with the split.
    for first in (0..n).step_by(256) {
        let block = first..n.min(first + 256);
        let rows: Vec<_> =
            block.into_par_iter().map(|i| (global(&split.image(i)), split.regions(i))).collect();
        for (row, of_image) in rows {
            whole.write(row.iter().flat_map(|v| v.to_le_bytes()))?;
            let edges = of_image.boxes.iter().flat_map(|b| [b.x1, b.y1, b.x2, b.y2]);
            boxes.write(edges.flat_map(f32::to_le_bytes))?;
            regions
                .write(of_image.features.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()))?;
        }
    }
    [whole, boxes, regions].into_iter().try_for_each(Npy::finish)
}

fn karpathy(scenes: &Scenes) -> Value {
    let mut images = Vec::new();
    let mut sentence = 0;
    for (split, i) in scenes.splits().into_iter().flat_map(|s| (0..s.len()).map(move |i| (s, i))) {
        let image = images.len();
        let mut ids = Vec::new();
        let mut sentences = Vec::new();
        for &t in split.pairs.texts_of(i) {
            let raw = &split.captions[t].text;
            sentences.push(json!({
                "tokens": words(raw), "raw": raw, "imgid": image, "sentid": sentence,
            }));
            ids.push(sentence);
            sentence += 1;
        }
        images.push(json!({
            "filename": split.file_name(i), "filepath": "images", "imgid": image, "split": split.name,
            "sentids": ids, "sentences": sentences,
        }));
    }
    json!({ "dataset": "scenes", "images": images })
}

fn truth(scenes: &Scenes) -> Value {
    let of = |split: &ScenesSplit| {
        let relevance = split.relevance();
        let images: Vec<_> = (0..relevance.texts()).map(|t| relevance.images_of(t)).collect();
        let meanings: Vec<_> = split.captions.iter().map(|c| &c.meaning).collect();
        json!({ "scenes": split.scenes, "meanings": meanings, "true_images_of_caption": images })
    };
    let [train, val, test] = scenes.splits().map(of);
    json!({ "seed": scenes.seed, "sizes": scenes.sizes, "train": train, "val": val, "test": test })
}

fn write(path: PathBuf, contents: impl AsRef<[u8]>) -> Result<()> {
    fs::write(&path, contents).map_err(Error::io(&path))
}

/// A `.npy` file written piece by piece.
struct Npy {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Npy {
    fn create(path: PathBuf, kind: &str, shape: &[usize]) -> Result<Self> {
        let file = BufWriter::new(File::create(&path).map_err(Error::io(&path))?);
        let mut npy = Self { path, file };
        npy.write(npy_header(kind, shape).into_iter())?;
        Ok(npy)
    }

    fn write(&mut self, bytes: impl Iterator<Item = u8>) -> Result<()> {
        let bytes: Vec<u8> = bytes.collect();
        self.file.write_all(&bytes).map_err(Error::io(&self.path))
    }

    fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(Error::io(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ImageFeature, Sizes, parse};
    use super::*;
    use itm_core::data::{LoadOptions, RegionSource, load_precomp};

    #[test]
    fn the_folder_holds_what_the_world_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let world = Scenes::generate(2, Sizes { train: 4, val: 0, test: 3, pixels: 96 });
        export(&world, folder.path()).expect("a folder that can be written");

        let read = |name: &str| fs::read_to_string(at(name)).expect("a file");
        let json: Value = serde_json::from_str(&read("dataset_scenes.json")).expect("JSON");
        let images = json["images"].as_array().expect("images");
        assert_eq!((images.len(), &json["dataset"]), (7, &json!("scenes")));
        assert_eq!(images[5]["split"], "test");
        assert_eq!(images[5]["sentids"], json!([25, 26, 27, 28, 29]));
        assert_eq!(images[5]["sentences"][2]["raw"], json!(world.test.captions[7].text));
        assert_eq!(images[5]["sentences"][2]["imgid"], 5);
        let picture = at("images").join(images[5]["filename"].as_str().expect("a name"));
        let picture = image::load_from_memory(&fs::read(picture).expect("a file")).expect("a PNG");
        assert_eq!(picture.to_rgb8(), world.test.image(1));

        let captions = read("precomp/train_caps.txt");
        assert_eq!(captions.lines().count(), 20);
        assert_eq!(
            parse(captions.lines().nth(7).expect("a line")).as_ref(),
            Some(&world.train.captions[7].meaning)
        );
        assert_eq!(
            read("precomp/test_ids.txt"),
            "test_000000.png\ntest_000001.png\ntest_000002.png\n"
        );

        let truth: Value = serde_json::from_str(&read("truth.json")).expect("JSON");
        let relevance = world.test.relevance();
        assert_eq!(truth["test"]["true_images_of_caption"][4], json!(relevance.images_of(4)));
        assert_eq!(truth["train"]["scenes"].as_array().map(Vec::len), Some(4));
    }

    /// Another `.npy` reader finds the same shapes, types and values.
    #[test]
    fn arrays_have_the_headers_and_values_of_the_world() {
        let folder = tempfile::tempdir().expect("a folder");
        let world = Scenes::generate(2, Sizes { train: 0, val: 2, test: 0, pixels: 96 });
        export(&world, folder.path()).expect("a folder that can be written");
        let open = |name: &str| {
            let bytes = fs::read(folder.path().join("precomp").join(name)).expect("a file");
            let data = npyz::NpyFile::new(&bytes[..]).expect("an array");
            let (shape, kind) = (data.shape().to_vec(), data.dtype().descr());
            let start = bytes.len()
                - shape.iter().product::<u64>() as usize * if kind.contains("f2") { 2 } else { 4 };
            (shape, kind, bytes[start..].to_vec())
        };
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        };
        let (shape, kind, bytes) = open("val_ims.npy");
        assert_eq!((shape, kind.as_str()), (vec![2, WIDTH as u64], "'<f4'"));
        assert_eq!(floats(&bytes), world.val.features(ImageFeature::Global).values);
        let (shape, _, bytes) = open("val_boxes.npy");
        assert_eq!(shape, [2, 12, 4]);
        let first = world.val.scenes[1].objects[0].bounds;
        assert_eq!(floats(&bytes)[48..52], [first.x1, first.y1, first.x2, first.y2]);
        let (shape, kind, bytes) = open("val_regions.npy");
        assert_eq!((shape, kind.as_str()), (vec![2, 12, WIDTH as u64], "'<f2'"));
        let regions = world.val.regions(1).features;
        let last = f16::from_le_bytes([bytes[bytes.len() - 2], bytes[bytes.len() - 1]]);
        assert_eq!(last, f16::from_f32(regions[regions.len() - 1]));
        assert_eq!(open("train_ims.npy").0, [0, WIDTH as u64]);
    }

    /// The ordinary loader reads the same data set back, up to rounding to f16.
    #[test]
    fn what_is_read_back_is_what_the_world_gives() {
        let folder = tempfile::tempdir().expect("a folder");
        let world = Scenes::generate(3, Sizes { train: 3, val: 1, test: 2, pixels: 96 });
        export(&world, folder.path()).expect("a folder that can be written");
        let options = LoadOptions { regions: Some(RegionSource::Given), ..Default::default() };
        let read = load_precomp(folder.path(), &options).expect("a data set").dataset;
        let own = world.dataset_with_regions(ImageFeature::Global);
        for (read, own) in [(read.train, own.train), (read.val, own.val), (read.test, own.test)] {
            assert_eq!(read.features, own.features);
            let (read, own) = (read.regions.expect("regions"), own.regions.expect("regions"));
            assert_eq!((read.len(), read.counts()), (own.len(), own.counts()));
            for image in 0..own.len() {
                assert_eq!(read.boxes(image), own.boxes(image));
                let [read, own] =
                    [&read, &own].map(|regions| regions.rows(&[image]).expect("rows").values);
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= b.abs() / 2048.0 + 6e-8;
                assert!(read.len() == own.len() && read.iter().zip(&own).all(near));
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("taken");
        fs::write(&file, "").expect("a file");
        let world = Scenes::generate(2, Sizes { train: 0, val: 0, test: 0, pixels: 96 });
        let error = export(&world, &file).expect_err("a file is no folder").to_string();
        assert!(error.contains("taken"), "{error}");
    }
}
