//! The inputs of a method: the items of each split, and the batches of an epoch.

use itm_core::data::{Features, Split};
use itm_core::learn::{Batch, ImageItems, Images, Items, Rows};
use itm_core::{Error, Pairs, Relevance, Result};

use crate::encoded::Reading;
use crate::pictures::{Pictures, View};
use crate::source::Source;

/// What a method sees of an image.
#[derive(Debug, Clone, Copy, Default)]
pub enum Sees {
    /// The global feature.
    #[default]
    Features,
    /// The features of its regions.
    Regions,
    /// The picture itself.
    Pictures(View),
}

/// The items of all splits, and the true pairs for audits of a training.
pub(crate) struct Inputs<'a> {
    /// Features or regions, in the order of [`Split::ALL`]; features of width 0 where the method sees pictures.
    items: [Items<'a>; 3],
    /// `None` unless the method sees pictures.
    pictures: Option<Pictures>,
    /// True pairs of the training split, if they are known, only for audits.
    pub(crate) truth: Option<&'a Relevance>,
}

impl<'a> Inputs<'a> {
    /// The images of a data set as a method sees them, and the texts; `features` are the transformed features.
    ///
    /// # Errors
    /// If a picture has no file, or if the method sees regions and the data were read without regions.
    pub(crate) fn new(
        source: &'a Source,
        features: &'a [Features; 3],
        reading: &'a Reading,
        sees: Sees,
    ) -> Result<Self> {
        let items = |split: Split| -> Result<Items<'a>> {
            let part = source.part(split).0;
            let images = match (sees, &part.regions) {
                (Sees::Features | Sees::Pictures(_), _) => {
                    ImageItems::Features(&features[split as usize])
                }
                (Sees::Regions, Some(regions)) => ImageItems::Regions(regions),
                (Sees::Regions, None) => {
                    return Err(Error::invalid(&source.title, "regions", "none that were read"));
                }
            };
            Ok(Items { images, texts: reading.texts(split), pairs: &part.pairs })
        };
        let pictures = match sees {
            Sees::Pictures(view) => Some(Pictures::new(source, view)?),
            Sees::Features | Sees::Regions => None,
        };
        let [train, val, test] = Split::ALL.map(items);
        let items = [train?, val?, test?];
        Ok(Self { items, pictures, truth: source.part(Split::Train).1 })
    }

    /// The items of a split.
    pub(crate) fn items(&self, split: Split) -> Items<'_> {
        let mut items: Items<'_> = self.items[split as usize];
        if let Some(pictures) = &self.pictures {
            items.images = ImageItems::Pictures(&pictures.splits[split as usize]);
        }
        items
    }

    /// [`Pictures::crop`]; `None` where the method sees no pictures.
    pub(crate) fn crop(&self) -> Option<f32> {
        self.pictures.as_ref()?.crop()
    }

    /// Begins to prepare the pictures of these steps: captions and seed of each step, in order.
    pub(crate) fn ahead<'s>(&mut self, steps: impl Iterator<Item = (&'s [usize], u64)>) {
        let pairs = self.items[Split::Train as usize].pairs;
        let Some(pictures) = &mut self.pictures else { return };
        pictures.ahead(steps.map(|(captions, seed)| (images_of(pairs, captions), seed)).collect());
    }

    /// What `take` makes of the batch of a step.
    ///
    /// # Errors
    /// If a picture or a region cannot be read.
    pub(crate) fn step<T>(
        &mut self,
        captions: &[usize],
        seed: u64,
        take: impl FnOnce(&Batch) -> T,
    ) -> Result<T> {
        let items = self.items[Split::Train as usize];
        let (rows, numbers) = (Rows::of(&items, captions), images_of(items.pairs, captions));
        Ok(match (&mut self.pictures, items.images) {
            (Some(pictures), _) => {
                let pictures = pictures.step(&numbers, seed)?;
                // Pictures are decoded batch by batch, so a step cannot look into the whole split.
                take(&Batch { train: None, ..rows.with_images(Images::from(&pictures)) })
            }
            (None, ImageItems::Regions(all)) => {
                take(&rows.with_images(Images::from(&all.rows(&numbers)?)))
            }
            (None, _) => take(&rows.batch()),
        })
    }
}

fn images_of(pairs: &Pairs, captions: &[usize]) -> Vec<usize> {
    captions.iter().map(|&c| pairs.image_of(c)).collect()
}

#[cfg(test)]
mod tests {
    use itm_core::data::RegionTransform;

    use super::*;
    use crate::encoded;
    use crate::tests;

    impl<'a> Inputs<'a> {
        /// The same items for all splits, with or without a truth.
        pub(crate) fn of_items(items: Items<'a>, truth: Option<&'a Relevance>) -> Self {
            Self { items: [items; 3], pictures: None, truth }
        }
    }

    /// A step and a split give the regions of the named images, transformed as the target says.
    #[test]
    fn regions_are_those_of_the_images() {
        let (mut config, plain) = tests::small_scenes([7, 2, 3]);
        config.target.regions = Some(itm_core::data::RegionSource::Given);
        config.target.region_transform = RegionTransform::CentredRoots;
        let (config, source) = Source::open(&config, None, &tests::configs()).unwrap();
        let features = encoded::features(&source.dataset, &config.target);
        let reading = Reading::new(&source, &config.target, encoded::Captions::Stems);
        let reading = reading.unwrap();
        let mut inputs = Inputs::new(&source, &features, &reading, Sees::Regions).unwrap();
        let all = source.dataset.train.regions.as_ref().unwrap();
        let width = inputs.step(&[33, 2, 34], 0, |batch| {
            let Images::Regions { width, counts, values } = batch.images else {
                panic!("a batch of regions");
            };
            assert_eq!((width, counts), (scenes::WIDTH, &[12, 12, 12][..]));
            let one = values.len() / 3;
            assert!(values[..one] == values[2 * one..] && values[..one] != values[one..2 * one]);
            assert_eq!(values[..one], all.rows(&[6]).unwrap().values);
            width
        });
        let width = width.unwrap();
        // Centred over the training regions, unlike the given regions.
        let rows = all.rows(&(0..7).collect::<Vec<_>>()).unwrap().values;
        let mean: f32 = rows.iter().step_by(width).sum::<f32>() / (7.0 * 12.0);
        assert!(mean.abs() < 1e-5 && rows.iter().any(|&x| x < 0.0), "{mean}");
        let items = inputs.items(Split::Test);
        assert_eq!(items.images.regions(width).unwrap().len(), 3);

        let features = encoded::features(&plain.dataset, &config.target);
        let line = Inputs::new(&plain, &features, &reading, Sees::Regions).err().unwrap();
        assert_eq!(line.to_string(), "Scenes: expected regions, got none that were read");
    }
}
