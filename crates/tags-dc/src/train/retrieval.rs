//! Negatives from the training split: some are drawn and scored, and the best are kept (§3.8).

use itm_core::data::Regions;
use itm_core::learn::Items;
use itm_core::scored::Scored;
use itm_core::{Pairs, Result};
use rand::RngExt;

use super::Marks;
use crate::config::{ImageAnchors, RetrievalConfig};
use crate::model::{RegionBatch, Uniter, UniterScores, numbered};
use crate::{Purpose, draw_images, draw_texts, hardest};

/// A true pair, and image and text of each pair that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) image: usize,
    pub(super) text: usize,
    /// The text with other images, or the image with other texts.
    pub(super) negatives: Vec<(usize, usize)>,
}

/// The anchors of a step: first each caption, then an equal number of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchors(pub(super) Vec<Anchor>);

impl Anchors {
    /// Draws negatives for these captions. A set that is too small is taken whole.
    ///
    /// # Errors
    /// If a caption is not in the split.
    pub(super) fn new(
        captions: &[usize],
        config: &RetrievalConfig,
        train: &Items,
        seed: u64,
    ) -> Result<Self> {
        let pairs = train.pairs;
        let of_text = |(number, &text): (u64, &usize)| {
            let mut rng = Purpose::Images.stream(seed, number);
            let images = draw_images(pairs, text, config.sampled, &mut rng)?;
            let negatives = images.into_iter().map(|image| (image, text)).collect();
            Ok(Anchor { image: pairs.image_of(text), text, negatives })
        };
        let of_image = |(number, &text): (u64, &usize)| {
            let mut rng = Purpose::Texts.stream(seed, number);
            let (image, text) = match config.image_anchors {
                ImageAnchors::Same => (pairs.image_of(text), text),
                ImageAnchors::Independent => any_pair(pairs, &mut rng),
            };
            let texts = draw_texts(pairs, image, config.sampled, &mut rng)?;
            let negatives = texts.into_iter().map(|text| (image, text)).collect();
            Ok(Anchor { image, text, negatives })
        };
        let texts = (0..).zip(captions).map(of_text);
        let anchors: Result<_> = texts.chain((0..).zip(captions).map(of_image)).collect();
        anchors.map(Self)
    }

    /// The anchors of `count` captions from the `first` on, and of the images with the same numbers.
    pub(super) fn some(&self, first: usize, count: usize) -> Self {
        let (texts, images) = self.0.split_at(self.0.len() / 2);
        let range = first..first + count;
        Self([&texts[range.clone()], &images[range]].concat())
    }

    /// The same anchors with only the `kept` best negatives of each anchor. The model scores them without noise and without a gradient. If
    /// all are kept, nothing is scored.
    ///
    /// # Errors
    /// If a region cannot be read, or a score is NaN.
    pub(super) fn with_hardest(
        mut self,
        model: &Uniter,
        marks: Marks,
        train: &Items,
        regions: &Regions,
        kept: usize,
    ) -> Result<Self> {
        if self.0.iter().all(|anchor| anchor.negatives.len() <= kept) {
            return Ok(self);
        }
        let drawn = self.0.iter().flat_map(|anchor| &anchor.negatives);
        let (images, texts): (Vec<_>, Vec<_>) = drawn.copied().unzip();
        let (images, image_rows) = numbered(&images);
        let (texts, text_rows) = numbered(&texts);
        let texts = texts.iter().map(|&text| marks.around(&train.texts[text])).collect();
        let scores = UniterScores::new(model, [RegionBatch::of(regions, &images)], texts)?;
        let scores = scores.pairs(&image_rows, &text_rows)?;
        let mut rest = &scores[..];
        for Anchor { negatives, .. } in &mut self.0 {
            let (own, others) = rest.split_at(negatives.len());
            rest = others;
            *negatives = hardest(negatives, own, kept)?;
        }
        Ok(self)
    }
}

/// An image of the split with one of its texts.
fn any_pair(pairs: &Pairs, rng: &mut impl RngExt) -> (usize, usize) {
    let with_texts = loop {
        let image = rng.random_range(0..pairs.images());
        if !pairs.texts_of(image).is_empty() {
            break image; // the batch has a pair, so some image has a text
        }
    };
    let texts = pairs.texts_of(with_texts);
    (with_texts, texts[rng.random_range(0..texts.len())])
}
