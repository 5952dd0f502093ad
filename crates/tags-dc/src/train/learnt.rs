//! What the filter of synthetic sentences learns once from the training split.

use std::sync::Arc;

use itm_core::Result;
use itm_core::data::Regions;
use itm_core::learn::Items;
use itm_core::start::Start;

use super::TagsDc;
use crate::config::FilterKind;
use crate::{AbsentWords, EvidenceBounds, Filter, SiblingStatistics, StartEvidence};

impl TagsDc {
    /// The same model, after its filter has learnt from the training split which words name the same thing, and with how little evidence an
    /// image shows a word, if `filter` is `"siblings"` or `{ absent = … }`. A step learns this too, so that only a loaded model that makes no
    /// step needs this call.
    ///
    /// # Errors
    /// If evidence is asked for, and the images are not regions of the model's width, or a region cannot be read.
    pub fn with_filter_of(mut self, train: &Items) -> Result<Self> {
        self.learn_filter(train)?;
        Ok(self)
    }

    /// The words that an image of a split shows too little evidence for; none if the filter does not ask for evidence.
    ///
    /// # Errors
    /// If the images are not regions of the model's width, or a region cannot be read.
    pub fn absent_words(&self, items: &Items, image: usize) -> Result<AbsentWords> {
        self.learnt.absent(items.images.regions(self.model().shape.features)?, image)
    }

    /// The row's filter for an image with these [absent words](Self::absent_words), for [`Tailor`](crate::Tailor).
    pub fn filter<'a>(&'a self, absent: &'a AbsentWords) -> Filter<'a> {
        self.learnt.filter(self.config.synthetic.filter, absent)
    }

    /// Learns once what the filter needs.
    pub(super) fn learn_filter(&mut self, train: &Items) -> Result<()> {
        let filter = self.config.synthetic.filter;
        if self.config.loss.synthetic() && !self.learnt.is_done(filter) {
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
}

impl Learnt {
    /// Nothing but the evidence of a start.
    pub(super) fn with_start(start: &Start) -> Self {
        Self { evidence: Some(StartEvidence::new(start)), ..Self::default() }
    }

    /// Whether the filter has learnt what it needs.
    pub(super) fn is_done(&self, filter: FilterKind) -> bool {
        match filter {
            FilterKind::Paper | FilterKind::PositiveOnly | FilterKind::Penalty => true,
            FilterKind::Siblings => !self.siblings.is_empty(),
            FilterKind::Absent(_) => self.bounds.len() > 0,
        }
    }

    /// The same, with what the filter needs.
    ///
    /// # Errors
    /// If evidence is asked for, and the images are not regions of this width, or a region cannot be read.
    pub(super) fn of(&self, filter: FilterKind, train: &Items, width: usize) -> Result<Self> {
        let texts = |image| train.pairs.texts_of(image).iter().map(|&t| &train.texts[t]);
        let images = 0..train.pairs.images();
        let captions: Vec<Vec<_>> =
            images.clone().map(|image| texts(image).cloned().collect()).collect();
        let siblings = SiblingStatistics::fit(&captions);
        let mut bounds = EvidenceBounds::default();
        if let (FilterKind::Absent(quantile), Some(evidence)) = (filter, &self.evidence) {
            let told = |image| {
                let mut words: Vec<u32> = texts(image).flatten().copied().collect();
                words.sort_unstable();
                words.dedup();
                words
            };
            let told: Vec<_> = images.map(told).collect();
            let regions = train.images.regions(width)?;
            let of = |image, words: &[u32]| evidence.of(regions, image, words);
            bounds = EvidenceBounds::fit(evidence.words(), &told, quantile, of)?;
        }
        Ok(Self { evidence: self.evidence.clone(), siblings, bounds })
    }

    /// The words that an image of a split shows too little evidence for; none without evidence.
    ///
    /// # Errors
    /// If a region cannot be read.
    pub(super) fn absent(&self, regions: &Regions, image: usize) -> Result<AbsentWords> {
        let Some(evidence) = self.evidence.as_ref().filter(|_| self.bounds.len() > 0) else {
            return Ok(AbsentWords::default());
        };
        let all: Vec<u32> = (0..evidence.words() as u32).collect();
        Ok(self.bounds.absent(&evidence.of(regions, image, &all)?))
    }

    /// The filter of a kind, for an image with these absent words.
    pub(super) fn filter<'a>(&'a self, kind: FilterKind, absent: &'a AbsentWords) -> Filter<'a> {
        let siblings = &self.siblings;
        match kind {
            FilterKind::Paper => Filter::Paper,
            FilterKind::PositiveOnly => Filter::PositiveOnly,
            FilterKind::Penalty => Filter::Penalty,
            FilterKind::Siblings => Filter::Siblings(siblings),
            FilterKind::Absent(_) => Filter::Absent { siblings, absent },
        }
    }
}
