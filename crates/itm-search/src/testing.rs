//! A folder of small photographs, and a model that sees their mean colour.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use itm_core::Result;
use tempfile::TempDir;

use crate::{Encoder, Index, Patches, Searcher, Sources, Update, ordinary_queries, update};

/// Colours that both towers of [`Colours`] know.
pub(crate) const NAMED: [(&str, [u8; 3]); 6] = [
    ("red", [220, 30, 30]),
    ("green", [30, 200, 40]),
    ("blue", [30, 40, 210]),
    ("yellow", [220, 210, 30]),
    ("white", [250, 250, 250]),
    ("black", [12, 12, 12]),
];

/// The mean colour of a picture, around grey; the mean of the colours that a sentence names, and a little of its length otherwise.
#[derive(Default)]
pub(crate) struct Colours {
    pub(crate) seen: AtomicUsize,
    pub(crate) version: u32,
}

/// Width of a row.
pub(crate) const WIDTH: usize = 4;

fn row(colour: [f64; 3]) -> Vec<f32> {
    let row = [colour[0] - 128.0, colour[1] - 128.0, colour[2] - 128.0, 40.0];
    let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    row.iter().map(|x| (x / length) as f32).collect()
}

fn mean(image: &RgbImage) -> [f64; 3] {
    let sum = |c: usize| image.pixels().map(|pixel| f64::from(pixel[c])).sum::<f64>();
    [0, 1, 2].map(|c| sum(c) / (image.width() * image.height()) as f64)
}

impl Encoder for Colours {
    fn name(&self) -> String {
        "colours".into()
    }

    fn identity(&self) -> String {
        format!("colours {}", self.version)
    }

    fn width(&self) -> usize {
        WIDTH
    }

    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        let one = |text: &&str| {
            let named = NAMED.iter().find(|(name, _)| text.contains(name));
            let spread = |k: usize| ((text.len() * 37 + k * 91) % 256) as f64;
            row(named.map_or([0, 1, 2].map(spread), |(_, colour)| colour.map(f64::from)))
        };
        Ok(texts.iter().flat_map(one).collect())
    }

    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
        self.seen.fetch_add(pictures.len(), Relaxed);
        Ok(pictures.iter().flat_map(|picture| row(mean(&picture.to_rgb8()))).collect())
    }

    fn patches(&self, picture: &DynamicImage) -> Result<Option<Patches>> {
        let (width, height) = (picture.width() / 2, picture.height() / 2);
        let patch =
            |k: u32| picture.crop_imm(k % 2 * width, k / 2 * height, width, height).to_rgb8();
        let rows = (0..4).flat_map(|k| row(mean(&patch(k)))).collect();
        Ok(Some(Patches { grid: [2, 2], rows }))
    }
}

/// A photograph of one colour.
pub(crate) fn jpeg(colour: [u8; 3], size: [u32; 2]) -> Vec<u8> {
    let mut file = Cursor::new(vec![]);
    let image = RgbImage::from_pixel(size[0], size[1], Rgb(colour));
    image.write_to(&mut file, ImageFormat::Jpeg).unwrap();
    file.into_inner()
}

/// Photographs and their index.
pub(crate) struct World {
    _dir: TempDir,
    pub(crate) images: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) bank: Vec<String>,
}

impl World {
    /// One photograph of each colour: `a/red.jpg`, `b/green.jpg`, `a/blue.jpg`, …
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [images, out] = ["photographs", "out"].map(|name| dir.path().join(name));
        let bank = ordinary_queries().into_iter().take(300).collect();
        let world = Self { _dir: dir, images, out, bank };
        for (k, (name, colour)) in NAMED.iter().enumerate() {
            let folder = ["a", "b"][k % 2];
            world.write(&format!("{folder}/{name}.jpg"), &jpeg(*colour, [40, 30]));
        }
        world
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.images.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn update(&self, encoder: &dyn Encoder) -> Result<Update> {
        self.update_until(encoder, &|| false)
    }

    pub(crate) fn update_until(
        &self,
        encoder: &dyn Encoder,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Update> {
        let Self { images, out, bank, .. } = self;
        let about = &serde_json::Value::Null;
        update(&Sources { images, out, about, bank, progress: &|_, _| (), stop }, encoder)
    }

    pub(crate) fn index(&self) -> Index {
        Index::open(&self.out).unwrap()
    }

    pub(crate) fn searcher(&self) -> Searcher {
        Searcher::new(self.index(), Box::new(Colours::default())).unwrap()
    }
}
