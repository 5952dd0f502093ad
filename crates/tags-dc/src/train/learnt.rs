//! What the filter of synthetic sentences knows of the training split: what it learns there once, and captions that the split lacks.

use std::collections::HashSet;
use std::sync::Arc;

use itm_core::data::Regions;
use itm_core::learn::Items;
use itm_core::start::Start;
use itm_core::{Error, Result};

use super::TagsDc;
use super::evidence::StartEvidence;
use crate::config::FilterKind;
use crate::pool::among;
use crate::words::distinct;
use crate::{CaptionWords, EvidenceBounds, Filter, SiblingStatistics};

impl TagsDc {
    /// The same model with the words of all captions of each training image. Training needs them if the split lacks captions, for example
    /// long ones: their words make no sentence false either. Without them the filter reads the captions of the split.
    ///
    /// ```no_run
    /// # #[cfg(all(feature = "flex", feature = "lmdb"))] {
    /// # use burn::tensor::Device;
    /// use tags_dc::databases::{LONGEST_IN_TRAINING, TextDatabase};
    /// # use tags_dc::{CaptionWords, Preset, config::TagsDcConfig, train::{Marks, TagsDc}};
    ///
    /// let database = TextDatabase::open("itm_flickr30k_train.db")?;
    /// let train = database.read(Some(LONGEST_IN_TRAINING))?;
    /// let words = train.images.iter().map(|image| database.protected(image));
    /// let words: Vec<CaptionWords> = words.collect::<Result<_, _>>()?;
    /// # let model = TagsDc::new(&TagsDcConfig::tags(Preset::Paper), 2048, Marks::of_words(10)?, 5000, &Device::flex())?;
    /// let model = model.with_caption_words(words);
    /// # }
    /// # Ok::<(), itm_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_caption_words(self, words: Vec<CaptionWords>) -> Self {
        Self { caption_words: Some(Arc::new(words)), ..self }
    }

    /// The row's filter for an image of a split, for [`Tailor`](crate::Tailor).
    ///
    /// # Errors
    /// If the images are not regions of the model's width, the image does not exist, or a region cannot be read.
    pub fn filter(&self, items: &Items, image: usize) -> Result<Filter<'_>> {
        let regions = items.images.regions(self.model().shape.features)?;
        among("image", image, regions.len())?;
        self.learnt.filter(self.config.synthetic.filter, regions, image)
    }

    /// The words of all captions of each image of the training split, if they were given.
    pub(super) fn caption_words_of(&self, train: &Items) -> Result<Option<&[CaptionWords]>> {
        let (images, words) = (train.pairs.images(), self.caption_words.as_deref());
        let sets = words.map_or(images, Vec::len);
        let expected = format_args!("one set for each of {images} training images");
        Error::unless(sets == images, "caption words", expected, sets)?;
        Ok(words.map(Vec::as_slice))
    }

    /// Learns once from the training split which words name the same thing, and with how little evidence an image shows a word, if `filter` is
    /// `"siblings"` or `{ absent = … }`. A step with synthetic sentences does this too, so that only a loaded model that makes no such step
    /// needs this call.
    ///
    /// # Errors
    /// If evidence is asked for, and the model has no [start](Self::with_start), the images are not regions of the model's width, or a region
    /// cannot be read.
    pub fn learn_filter(&mut self, train: &Items) -> Result<()> {
        let filter = self.config.synthetic.filter;
        let learns = matches!(filter, FilterKind::Siblings | FilterKind::Absent(_));
        if learns && !self.learnt.done {
            self.learnt = Arc::new(self.learnt.of(filter, train, self.model().shape.features)?);
        }
        Ok(())
    }
}

/// Statistics of the training split, and the evidence of images.
#[derive(Debug, Clone, Default)]
pub(super) struct Learnt {
    /// Of the start, if the weights begin with it.
    evidence: Option<StartEvidence>,
    siblings: SiblingStatistics,
    bounds: EvidenceBounds,
    /// Whether the filter has learnt: it may have found nothing.
    pub(super) done: bool,
}

impl Learnt {
    /// Nothing but the evidence of a start.
    pub(super) fn with_start(start: &Start) -> Self {
        Self { evidence: Some(StartEvidence::new(start)), ..Self::default() }
    }

    /// The same, with what the filter needs.
    ///
    /// # Errors
    /// If evidence is asked for, and there is no start, the images are not regions of this width, or a region cannot be read.
    fn of(&self, filter: FilterKind, train: &Items, width: usize) -> Result<Self> {
        let texts = |image| train.pairs.texts_of(image).iter().map(|&t| &train.texts[t]);
        let images = 0..train.pairs.images();
        let captions: Vec<Vec<_>> =
            images.clone().map(|image| texts(image).cloned().collect()).collect();
        let siblings = SiblingStatistics::fit(&captions);
        let mut bounds = EvidenceBounds::default();
        if let FilterKind::Absent(quantile) = filter {
            let expected = "the maps of a start (`with_start`), for the evidence";
            let missing = || Error::invalid("synthetic.filter.absent", expected, "none");
            let evidence = self.evidence.as_ref().ok_or_else(missing)?;
            let told = |image| distinct(texts(image).flatten().copied().collect());
            let told: Vec<_> = images.map(told).collect();
            let regions = train.images.regions(width)?;
            let of = |image, words: &[u32]| evidence.of(regions, image, words);
            bounds = EvidenceBounds::fit(evidence.words(), &told, quantile, of)?;
        }
        Ok(Self { evidence: self.evidence.clone(), siblings, bounds, done: true })
    }

    /// The filter of a kind, for an image of a split. Without evidence no word is absent.
    ///
    /// # Errors
    /// If a region cannot be read.
    pub(super) fn filter(
        &self,
        kind: FilterKind,
        regions: &Regions,
        image: usize,
    ) -> Result<Filter<'_>> {
        let siblings = &self.siblings;
        Ok(match kind {
            FilterKind::Paper => Filter::Paper,
            FilterKind::PositiveOnly => Filter::PositiveOnly,
            FilterKind::Penalty => Filter::Penalty,
            FilterKind::Siblings => Filter::Siblings(siblings),
            FilterKind::Absent(_) => {
                let mut absent = HashSet::new();
                if let Some(evidence) = &self.evidence {
                    let all: Vec<u32> = (0..evidence.words() as u32).collect();
                    absent = self.bounds.absent(&evidence.of(regions, image, &all)?);
                }
                Filter::Absent { siblings, absent }
            }
        })
    }
}
