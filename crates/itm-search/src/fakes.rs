//! A folder of small photographs, and a model that sees their mean colour.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use itm_core::Result;
use tempfile::TempDir;

use crate::{Encoder, Index, Model, Patches, Searcher, Sources, Update, ordinary_queries, update};

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
    fn model(&self) -> Model {
        Model {
            name: "colours".into(),
            identity: format!("colours {}", self.version),
            width: WIDTH,
        }
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
#[derive(Clone)]
pub(crate) struct World {
    _dir: std::sync::Arc<TempDir>,
    pub(crate) images: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) bank: Vec<String>,
}

impl World {
    /// One photograph of each colour: `a/red.jpg`, `b/green.jpg`, `a/blue.jpg`, …
    pub(crate) fn new() -> Self {
        let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
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

/// Pictures and sentences that are numbers, each with a made-up row. Every fourth picture leans to what all sentences share: a hub.
pub(crate) struct Numbers;

/// Width of a row of [`Numbers`].
pub(crate) const DIM: usize = 16;

impl Numbers {
    fn row(seed: u64, lean: f64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        };
        let mut row: Vec<f64> = (0..DIM).map(|_| draw()).collect();
        row[0] += lean;
        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        row.iter().map(|x| (x / length) as f32).collect()
    }

    /// The row of picture `number`.
    pub(crate) fn picture(number: u64) -> Vec<f32> {
        Self::row(number + 1, if number.is_multiple_of(4) { 3.0 } else { 0.0 })
    }

    /// The row of a sentence: of its hash.
    pub(crate) fn text(text: &str) -> Vec<f32> {
        let hash = text.bytes().fold(7u64, |hash, b| hash.wrapping_mul(1_000_003) ^ u64::from(b));
        Self::row(hash, 2.0)
    }

    /// A picture that is a number.
    pub(crate) fn png(number: u8) -> Vec<u8> {
        let mut file = Cursor::new(vec![]);
        RgbImage::from_pixel(4, 4, Rgb([number, 0, 0]))
            .write_to(&mut file, ImageFormat::Png)
            .unwrap();
        file.into_inner()
    }
}

impl Encoder for Numbers {
    fn model(&self) -> Model {
        Model { name: "numbers".into(), identity: "numbers".into(), width: DIM }
    }

    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        Ok(texts.iter().flat_map(|text| Self::text(text)).collect())
    }

    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
        let number = |picture: &DynamicImage| u64::from(picture.to_rgb8().get_pixel(0, 0)[0]);
        Ok(pictures.iter().flat_map(|picture| Self::picture(number(picture))).collect())
    }
}
