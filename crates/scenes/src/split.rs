//! A split of the world: its facts and captions, and the pictures, features and truth made from them.

use image::RgbImage;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::features::{self, Regions, WIDTH};
use super::world::Scene;
use super::{CAPTIONS, ImageFeature, SceneCaption, caption, draw, layout, truth};
use itm_core::data::{self, Features, SplitData};
use itm_core::{Pairs, Relevance};

/// One split: facts and captions; images are drawn on demand.
#[derive(Debug, Clone)]
pub struct ScenesSplit {
    /// `train`, `val` or `test`.
    pub name: &'static str,
    /// The facts of each image.
    pub scenes: Vec<Scene>,
    /// Five per image, in image order.
    pub captions: Vec<SceneCaption>,
    /// The annotated pairs: five captions per image.
    pub pairs: Pairs,
    seed: u64,
    number: u64,
    pixels: u32,
}

/// The purpose of a stream of random numbers: drawing more numbers for one purpose never changes another.
#[derive(Clone, Copy)]
enum Purpose {
    Layout,
    Captions,
    Pixels,
}

impl ScenesSplit {
    pub(super) fn generate(
        name: &'static str,
        number: u64,
        images: usize,
        seed: u64,
        pixels: u32,
    ) -> Self {
        let of_image = |i: usize| {
            let scene = layout::scene(&mut stream(seed, number, i, Purpose::Layout));
            let mut rng = stream(seed, number, i, Purpose::Captions);
            let captions = caption::captions(&mut rng, &scene, CAPTIONS);
            (scene, captions)
        };
        let (scenes, captions): (Vec<_>, Vec<_>) =
            (0..images).into_par_iter().map(of_image).collect::<Vec<_>>().into_iter().unzip();
        let captions = captions.into_iter().flatten().collect();
        let pairs = Pairs::uniform(images, CAPTIONS);
        Self { name, scenes, captions, pairs, seed, number, pixels }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.scenes.len()
    }

    /// Whether it has no image.
    pub fn is_empty(&self) -> bool {
        self.scenes.is_empty()
    }

    /// Draws image `i`; every call gives the same image.
    ///
    /// # Panics
    /// If there is no image `i`.
    pub fn image(&self, i: usize) -> RgbImage {
        let rng = &mut stream(self.seed, self.number, i, Purpose::Pixels);
        draw::draw(&self.scenes[i], self.pixels, rng)
    }

    /// Image `i` as a PNG file.
    ///
    /// # Panics
    /// If there is no image `i`.
    pub fn png(&self, i: usize) -> Vec<u8> {
        draw::png(&self.image(i))
    }

    /// File name of image `i`.
    pub fn file_name(&self, i: usize) -> String {
        format!("{}_{i:06}.png", self.name)
    }

    /// All true pairs, annotated or not.
    pub fn relevance(&self) -> Relevance {
        truth::relevance(&self.scenes, &self.captions)
    }

    /// One feature per image, of width [`WIDTH`].
    pub(crate) fn features(&self, feature: ImageFeature) -> Features {
        let rows = (0..self.len()).into_par_iter().map(|i| match feature {
            ImageFeature::Global => features::global(&self.image(i)),
            ImageFeature::MeanOfRegions => self.regions(i).mean(),
        });
        Features { dim: WIDTH, values: rows.collect::<Vec<_>>().concat() }
    }

    /// The `Regions::COUNT` regions of image `i`. Region `k` is object `k` of the scene, numbered as in
    /// [`Grounding::Objects`](super::Grounding::Objects). After the objects come the whole picture, the centre and a
    /// grid.
    ///
    /// # Panics
    /// If there is no image `i`.
    pub(crate) fn regions(&self, i: usize) -> Regions {
        let boxes: Vec<_> = self.scenes[i].objects.iter().map(|o| o.bounds).collect();
        features::regions(&self.image(i), &boxes)
    }

    /// The regions of every image, with their boxes.
    pub(crate) fn region_features(&self) -> data::Regions {
        let of_image = (0..self.len()).into_par_iter().map(|i| self.regions(i));
        let all: Vec<_> = of_image.collect();
        let boxes = all.iter().flat_map(|of| &of.boxes).copied().collect();
        let values = all.into_iter().flat_map(|of| of.features).collect();
        let regions = data::Regions::new(WIDTH, vec![Regions::COUNT; self.len()], values);
        regions.and_then(|regions| regions.with_boxes(boxes)).expect("finite, and a box per region")
    }

    /// What a method may see of this split.
    pub(crate) fn part(&self, feature: ImageFeature) -> SplitData {
        SplitData {
            features: self.features(feature),
            images: (0..self.len()).map(|i| self.file_name(i)).collect(),
            captions: self.captions.iter().map(|c| c.text.clone()).collect(),
            pairs: self.pairs.clone(),
            ..SplitData::default()
        }
    }
}

/// The random numbers of one image for one purpose.
fn stream(seed: u64, split: u64, image: usize, purpose: Purpose) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(split << 56 | (purpose as u64) << 48 | image as u64);
    rng
}
