//! Negatives from the training split: some are drawn and scored, and the best are kept (§3.8).

use itm_core::data::Regions;
use itm_core::learn::Items;
use itm_core::scored::Scored;
use itm_core::{Pairs, Result};
use rand::RngExt;

use super::Marks;
use crate::config::{ImageAnchors, RetrievalConfig};
use crate::model::{RegionBatch, Uniter, UniterScores};
use crate::{Purpose, Streams, draw_images, draw_texts, hardest};

/// A true pair, and the items of one kind that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) image: usize,
    pub(super) text: usize,
    pub(super) others: Others,
}

/// Negatives of an anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Others {
    /// The negatives of a text.
    Images(Vec<usize>),
    /// The negatives of an image.
    Texts(Vec<usize>),
}

impl Others {
    fn of(&self) -> &[usize] {
        let (Self::Images(others) | Self::Texts(others)) = self;
        others
    }
}

impl Anchor {
    /// Image and text of each negative pair.
    pub(super) fn negatives(&self) -> impl Iterator<Item = (usize, usize)> {
        self.others.of().iter().map(|&other| match self.others {
            Others::Images(_) => (other, self.text),
            Others::Texts(_) => (self.image, other),
        })
    }
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
        let (pairs, streams) = (train.pairs, Streams { seed, round: 0 });
        let of_text = |(number, &text): (u64, &usize)| {
            let mut rng = streams.of(Purpose::Images, number);
            let images = draw_images(pairs, text, config.sampled, &mut rng)?;
            Ok(Anchor { image: pairs.image_of(text), text, others: Others::Images(images) })
        };
        let of_image = |(number, &text): (u64, &usize)| {
            let mut rng = streams.of(Purpose::Texts, number);
            let (image, text) = match config.image_anchors {
                ImageAnchors::Same => (pairs.image_of(text), text),
                ImageAnchors::Independent => any_pair(pairs, &mut rng),
            };
            let texts = draw_texts(pairs, image, config.sampled, &mut rng)?;
            Ok(Anchor { image, text, others: Others::Texts(texts) })
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
        if self.0.iter().all(|anchor| anchor.others.of().len() <= kept) {
            return Ok(self);
        }
        let drawn = self.0.iter().flat_map(Anchor::negatives);
        let (images, texts): (Vec<_>, Vec<_>) = drawn.unzip();
        let (images, image_rows) = numbered(&images);
        let (texts, text_rows) = numbered(&texts);
        let texts = texts.iter().map(|&text| marks.around(&train.texts[text])).collect();
        let scores = UniterScores::new(model, &[RegionBatch::of(regions, &images)?], texts)?;
        let scores = scores.pairs(&image_rows, &text_rows)?;
        let mut rest = &scores[..];
        for anchor in &mut self.0 {
            let (own, others) = rest.split_at(anchor.others.of().len());
            rest = others;
            let (Others::Images(of) | Others::Texts(of)) = &mut anchor.others;
            *of = hardest(of, own, kept)?;
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

/// The distinct items in ascending order, and for each item its row among them.
pub(super) fn numbered(items: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut distinct = items.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let row = |item: &usize| distinct.binary_search(item).expect("one of them");
    let rows = items.iter().map(row).collect();
    (distinct, rows)
}
