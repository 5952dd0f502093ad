//! What a method takes in: the items of each split, and the batches of an epoch.

use itm_core::data::Features;
use itm_core::learn::{Batch, ImageItems, Images, Items, Rows};
use itm_core::vision::PictureBatch;
use itm_core::{Pairs, Relevance, Result};

use crate::encoded::Encoded;
use crate::pictures::{Pictures, View};
use crate::source::Source;
use crate::split::{Split, Splits};

/// The items of all splits, and what a training is audited with.
pub struct Inputs<'a> {
    parts: Splits<Part<'a>>,
    /// If the method sees pictures.
    pictures: Option<Pictures>,
    /// True pairs of the training split, for audits alone.
    truth: Option<&'a Relevance>,
}

/// One split without its pictures.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) features: &'a Features,
    pub(crate) texts: &'a [Vec<u32>],
    pub(crate) pairs: &'a Pairs,
}

impl<'a> Part<'a> {
    fn items<'b>(&self, images: ImageItems<'b>) -> Items<'b>
    where
        'a: 'b,
    {
        Items { images, texts: self.texts, pairs: self.pairs }
    }

    fn rows(&self, captions: &[usize]) -> Rows<'a> {
        Rows::of(&self.items(ImageItems::Features(self.features)), captions)
    }
}

impl<'a> Inputs<'a> {
    /// The inputs of a data set; with a view its pictures instead of its features.
    ///
    /// # Errors
    /// If there is no file for a picture.
    pub(crate) fn new(
        source: &'a Source,
        encoded: &'a Encoded,
        view: Option<View>,
    ) -> Result<Self> {
        let part = |split| -> Result<Part<'a>> {
            let (data, encoded) = (source.part(split).0, encoded.part(split));
            Ok(Part { features: &encoded.features, texts: &encoded.words, pairs: &data.pairs })
        };
        let pictures = view.map(|view| Pictures::new(source, view)).transpose()?;
        Ok(Self { parts: Splits::try_new(part)?, pictures, truth: source.part(Split::Train).1 })
    }

    /// The items of a split.
    pub(crate) fn items(&self, split: Split) -> Items<'_> {
        let part = self.parts.of(split);
        part.items(match &self.pictures {
            Some(pictures) => ImageItems::Pictures(pictures.of(split)),
            None => ImageItems::Features(part.features),
        })
    }

    /// True pairs of the training split, where they are known.
    pub(crate) fn truth(&self) -> Option<&'a Relevance> {
        self.truth
    }

    /// Begins to make ready what these steps will take: captions and seed of each, in order.
    pub(crate) fn ahead<'s>(&mut self, steps: impl Iterator<Item = (&'s [usize], u64)>) {
        let pairs = self.parts.train.pairs;
        let Some(pictures) = &mut self.pictures else { return };
        pictures.ahead(steps.map(|(captions, seed)| (images_of(pairs, captions), seed)).collect());
    }

    /// What a step takes.
    ///
    /// # Errors
    /// If a picture cannot be read.
    pub(crate) fn step(&mut self, captions: &[usize], seed: u64) -> Result<Ready<'a>> {
        let train = self.parts.train;
        let pixels = match &mut self.pictures {
            Some(pictures) => Some(pictures.step(&images_of(train.pairs, captions), seed)?),
            None => None,
        };
        Ok(Ready { rows: train.rows(captions), pixels })
    }
}

fn images_of(pairs: &Pairs, captions: &[usize]) -> Vec<usize> {
    captions.iter().map(|&c| pairs.image_of(c)).collect()
}

/// A batch that owns its images.
pub(crate) struct Ready<'a> {
    rows: Rows<'a>,
    pixels: Option<PictureBatch>,
}

impl Ready<'_> {
    /// As a step takes it.
    pub(crate) fn batch(&self) -> Batch<'_> {
        match &self.pixels {
            Some(pixels) => self.rows.with_images(Images::from(pixels)),
            None => self.rows.batch(),
        }
    }
}

#[cfg(test)]
impl<'a> Inputs<'a> {
    /// The same part for all splits, without a truth or with one.
    pub(crate) fn of_part(part: Part<'a>, truth: Option<&'a Relevance>) -> Self {
        Self { parts: Splits { train: part, val: part, test: part }, pictures: None, truth }
    }
}
