#![doc = include_str!("../README.md")]
//!
//! | file          | content                                                          |
//! |---------------|------------------------------------------------------------------|
//! | `world.rs`    | kinds, colours, sizes, patterns, backgrounds, their frequencies  |
//! | `layout.rs`   | relations, and layouts in which every relation is clear          |
//! | `draw.rs`     | facts → pixels                                                   |
//! | `grammar.rs`  | meaning → sentence; `parse.rs` is its inverse                    |
//! | `caption.rs`  | facts → meanings that people would express                       |
//! | `likelihood.rs` | how probable a caption is, given a scene                       |
//! | `truth.rs`    | entailment, all true pairs, grounding of words                   |
//! | `features.rs` | pixels → global and region features                              |
//! | `export.rs`   | the world as an ordinary data set on disk                        |
//! | `sheet.rs`    | a contact sheet for people                                       |

mod caption;
mod draw;
mod export;
mod features;
mod font;
mod grammar;
mod layout;
mod lexicon;
mod likelihood;
mod parse;
mod shapes;
mod sheet;
mod split;
mod truth;
mod world;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use export::export;
pub use features::WIDTH;
pub use grammar::{Claim, Meaning, Phrase, render};
pub use image::RgbImage;
pub use itm_core::data::Bounds;
pub use layout::Relation;
pub use lexicon::words;
pub use parse::{ParsedCaption, Role, analyse, parse};
pub use sheet::sheet;
pub use split::ScenesSplit;
pub use truth::{Grounding, entails, grounding};
pub use world::{Background, Colour, Kind, Object, Pattern, Scene, Size};

use itm_core::data::Dataset;

/// Number of captions per image.
pub const CAPTIONS: usize = 5;

/// Number of images per split, and their resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Training images.
    pub train: usize,
    /// Validation images.
    pub val: usize,
    /// Test images.
    pub test: usize,
    /// Side of an image in pixels, at least 16. Use 96 unless you have a reason.
    pub pixels: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { train: 3000, val: 500, test: 1000, pixels: 96 }
    }
}

/// Which feature represents a whole image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImageFeature {
    /// The descriptor of the whole picture. It separates backgrounds and colours well, but hardly kinds of objects.
    #[default]
    Global,
    /// The mean of the descriptors of its twelve regions, like the average over an object detector's regions.
    MeanOfRegions,
}

/// A caption and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SceneCaption {
    /// One sentence.
    pub text: String,
    /// What the sentence asserts; `parse(text)` returns the same meaning.
    pub meaning: Meaning,
}

/// The three splits of a world.
#[derive(Debug, Clone)]
pub struct Scenes {
    /// The seed of the world.
    pub seed: u64,
    /// Number of images per split, and their resolution.
    pub sizes: Sizes,
    /// The split for training.
    pub train: ScenesSplit,
    /// The split that hyper-parameters and epochs are chosen on.
    pub val: ScenesSplit,
    /// The split for reported results.
    pub test: ScenesSplit,
}

impl Scenes {
    /// The world of a seed. Image `i` of a split depends neither on the sizes (except for its resolution) nor on the
    /// number of threads, because each image has its own random streams.
    ///
    /// ```
    /// use scenes::{Scenes, Sizes, entails, parse};
    ///
    /// let world = Scenes::generate(7, Sizes { train: 20, val: 0, test: 10, pixels: 96 });
    /// let caption = &world.test.captions[17]; // of image 3
    /// let meaning = parse(&caption.text).expect("every caption is a sentence of the grammar");
    /// assert!(entails(&world.test.scenes[3], &meaning));
    /// ```
    ///
    /// # Panics
    /// If images have not 16 to 4,096 pixels per side, or a split has 2³² captions or more.
    pub fn generate(seed: u64, sizes: Sizes) -> Self {
        let Sizes { train, val, test, pixels } = sizes;
        assert!((16..=4096).contains(&pixels), "{pixels} pixels a side, not 16 to 4096");
        let few = [train, val, test].iter().all(|&n| n <= u32::MAX as usize / CAPTIONS);
        assert!(few, "{train}, {val} and {test} images with {CAPTIONS} captions each");
        let split =
            |name, number, images| ScenesSplit::generate(name, number, images, seed, sizes.pixels);
        Self {
            seed,
            sizes,
            train: split("train", 0, sizes.train),
            val: split("val", 1, sizes.val),
            test: split("test", 2, sizes.test),
        }
    }

    /// Its splits in order.
    pub(crate) fn splits(&self) -> [&ScenesSplit; 3] {
        [&self.train, &self.val, &self.test]
    }

    /// One feature per image, the captions and the annotated pairs: all that a method may see.
    pub fn dataset(&self, feature: ImageFeature) -> Dataset {
        let [train, val, test] = self.splits().map(|split| split.part(feature));
        let mut hash = Sha256::new();
        for part in [&train, &val, &test] {
            part.features.values.iter().for_each(|v| hash.update(v.to_le_bytes()));
            for (t, caption) in part.captions.iter().enumerate() {
                hash.update(format!("{}\t{caption}\n", part.pairs.image_of(t)));
            }
            hash.update(b"\n");
        }
        let sha256 = format!("{:x}", hash.finalize());
        Dataset { name: "scenes".to_owned(), train, val, test, sha256 }
    }

    /// [`dataset`](Self::dataset) with the regions of every image; the hash then covers the regions too.
    pub fn dataset_with_regions(&self, feature: ImageFeature) -> Dataset {
        let mut data = self.dataset(feature);
        let mut hash = Sha256::new_with_prefix(&data.sha256);
        for (part, split) in
            [&mut data.train, &mut data.val, &mut data.test].into_iter().zip(self.splits())
        {
            let regions = split.region_features();
            for image in 0..regions.len() {
                let rows = regions.rows(&[image]).expect("they are in memory");
                rows.values.iter().for_each(|v| hash.update(v.to_le_bytes()));
                let boxes = regions.boxes(image).into_iter().flatten();
                let edges = boxes.flat_map(|b| [b.x1, b.y1, b.x2, b.y2]);
                edges.for_each(|edge| hash.update(edge.to_le_bytes()));
            }
            part.regions = Some(regions);
        }
        data.sha256 = format!("{:x}", hash.finalize());
        data
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::features::{Regions, global};
    use super::*;

    fn world(seed: u64, train: usize, test: usize) -> Scenes {
        Scenes::generate(seed, Sizes { train, val: 3, test, pixels: 96 })
    }

    #[test]
    fn sizes_have_bounds() {
        let line = |(train, pixels)| {
            let sizes = Sizes { train, val: 0, test: 0, pixels };
            let panic = std::panic::catch_unwind(|| Scenes::generate(0, sizes)).err();
            panic.and_then(|panic| panic.downcast_ref::<String>().cloned())
        };
        let images = format!("{}, 0 and 0 images with 5 captions each", usize::MAX);
        let want =
            ["15 pixels a side, not 16 to 4096", "4097 pixels a side, not 16 to 4096", &images];
        let got = [(0, 15), (0, 4097), (usize::MAX, 96)].map(line);
        assert_eq!(got, want.map(|line| Some(line.to_owned())));
    }

    #[test]
    fn an_image_is_the_same_whatever_the_sizes_and_threads() {
        let large = world(3, 40, 30);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
        let small = one.install(|| world(3, 0, 18));
        assert_eq!(large.test.scenes[..18], small.test.scenes);
        assert_eq!(large.test.captions[..90], small.test.captions);
        assert_eq!(large.test.image(17), small.test.image(17));
        let other = world(4, 0, 18);
        assert!(other.test.scenes.iter().zip(&small.test.scenes).all(|(a, b)| a != b));
        assert_ne!(other.test.image(0), small.test.image(0));
    }

    #[test]
    fn splits_share_no_scene() {
        let world = Scenes::generate(1, Sizes { train: 800, val: 300, test: 300, pixels: 96 });
        let all = world.splits().into_iter().flat_map(|s| &s.scenes);
        let distinct: HashSet<String> = all.map(|s| format!("{s:?}")).collect();
        assert_eq!(distinct.len(), 1400);
    }

    #[test]
    fn captions_are_true_parse_back_and_differ() {
        let test = world(9, 0, 400).test;
        assert_eq!((test.captions.len(), test.pairs.texts()), (2000, 2000));
        let mut repeated = 0;
        for (t, caption) in test.captions.iter().enumerate() {
            let scene = &test.scenes[test.pairs.image_of(t)];
            assert!(entails(scene, &caption.meaning), "{}", caption.text);
            assert_eq!(parse(&caption.text).as_ref(), Some(&caption.meaning), "{}", caption.text);
            let words = words(&caption.text).len();
            assert!((2..=24).contains(&words), "{}", caption.text);
            let met = grounding(scene, &caption.text).expect("a sentence");
            assert_eq!(met.len(), words);
            assert!(!met.contains(&Grounding::Mismatched), "a true caption: {}", caption.text);
            let earlier = &test.captions[t - t % CAPTIONS..t];
            repeated += earlier.iter().any(|e| e.meaning == caption.meaning) as usize;
        }
        assert!(repeated <= 4, "{repeated} repeated captions");
    }

    #[test]
    fn the_vocabulary_is_that_of_a_small_world() {
        let world = Scenes::generate(5, Sizes::default());
        let vocabulary = |split: &ScenesSplit| -> HashSet<String> {
            split.captions.iter().flat_map(|c| words(&c.text)).collect()
        };
        let train = vocabulary(&world.train);
        assert!((120..=200).contains(&train.len()), "{} words", train.len());
        let test = vocabulary(&world.test);
        let unseen: Vec<_> = test.difference(&train).collect();
        assert!(unseen.len() <= 2, "the splits share all but the rarest words: {unseen:?}");
    }

    /// The aim of the world: enough false negatives to matter, but not so many that retrieval becomes meaningless.
    #[test]
    fn false_negatives_are_common() {
        let test = Scenes::generate(0, Sizes::default()).test;
        let (truth, texts) = (test.relevance(), test.captions.len());
        let share = (truth.len() - texts) as f64 / (texts * (test.len() - 1)) as f64;
        assert!((0.01..=0.03).contains(&share), "{share}");
        let with_three = (0..texts).filter(|&t| truth.images_of(t).len() >= 3).count();
        assert!(with_three > texts / 2, "{with_three} of {texts}");
    }

    #[test]
    fn features_come_from_pixels_and_tell_scenes_apart() {
        let split = world(6, 0, 12).test;
        let features = split.features(ImageFeature::Global);
        assert_eq!((features.rows(), features.dim), (12, WIDTH));
        assert_eq!(features, split.features(ImageFeature::Global));
        for i in 0..12 {
            assert_eq!(features.row(i), global(&split.image(i)));
            assert!((0..i).all(|j| features.row(i) != features.row(j)));
        }
    }

    /// Facts, captions and boxes do not depend on the resolution; features have one width at every resolution.
    #[test]
    fn other_resolutions_show_the_same_scenes() {
        for pixels in [16, 33, 160] {
            let split = Scenes::generate(6, Sizes { train: 0, val: 0, test: 4, pixels }).test;
            assert_eq!(split.scenes, world(6, 0, 4).test.scenes);
            assert_eq!(split.image(2).dimensions(), (pixels, pixels));
            assert!(split.features(ImageFeature::Global).values.iter().all(|v| v.is_finite()));
            let regions = split.regions(2);
            assert_eq!(regions.boxes[0], split.scenes[2].objects[0].bounds);
            assert_eq!(regions.features.len(), Regions::COUNT * WIDTH);
        }
    }

    /// By definition: the sum over the regions, divided by their number.
    #[test]
    fn the_mean_of_regions_is_over_all_of_them() {
        let split = world(6, 0, 3).test;
        let mean = split.features(ImageFeature::MeanOfRegions);
        assert_eq!((mean.rows(), mean.dim), (3, WIDTH));
        let regions = split.regions(2).features;
        for (k, &mean) in mean.row(2).iter().enumerate() {
            let sum: f32 = (0..Regions::COUNT).map(|r| regions[r * WIDTH + k]).sum();
            assert!((mean - sum / Regions::COUNT as f32).abs() < 1e-5, "value {k}");
        }
    }

    /// Region 0 shows object 0: recolouring a distant object does not change region 0.
    #[test]
    fn regions_come_from_the_pixels_of_their_box() {
        let mut split = world(12, 0, 200).test;
        let apart = |s: &Scene| {
            s.objects.len() == 2
                && Relation::LeftOf.holds(s, 0, 1)
                && !Relation::NextTo.holds(s, 0, 1)
        };
        let i = split.scenes.iter().position(apart).expect("two objects apart");
        let before = split.regions(i).features;
        let other = &mut split.scenes[i].objects[1];
        other.colour = Colour::ALL[(other.colour as usize + 1) % 8];
        let after = split.regions(i).features;
        let colours = 16 * 12;
        assert_eq!(before[..colours], after[..colours]);
        assert_ne!(before[WIDTH..][..colours], after[WIDTH..][..colours]);
    }

    #[test]
    fn the_dataset_holds_no_truth_and_hashes_what_it_holds() {
        let scenes = world(7, 6, 4);
        let data = scenes.dataset(ImageFeature::Global);
        assert_eq!((data.train.features.rows(), data.test.captions.len()), (6, 20));
        assert_eq!(data.test.images[3], "test_000003.png");
        assert_eq!(data.test.captions[19], scenes.test.captions[19].text);
        assert_eq!(data.sha256, world(7, 6, 4).dataset(ImageFeature::Global).sha256);
        assert_eq!(data.sha256.len(), 64);
        assert_ne!(data.sha256, world(8, 6, 4).dataset(ImageFeature::Global).sha256);
        assert_ne!(data.sha256, scenes.dataset(ImageFeature::MeanOfRegions).sha256);
        let beside = scenes.dataset_with_regions(ImageFeature::Global);
        assert_ne!(data.sha256, beside.sha256);
        assert_eq!(data.test.features, beside.test.features);
        let (regions, one) = (beside.test.regions.unwrap(), scenes.test.regions(3));
        assert_eq!(regions.rows(&[3]).unwrap().values, one.features);
        assert_eq!(regions.boxes(3).unwrap(), one.boxes);
    }
}
