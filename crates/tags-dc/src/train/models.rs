//! The models of a training: the one that matches, and a generator of its own.

use burn::module::Module;
use itm_core::data::Regions;
use itm_core::{Result, host};
use itm_kernels::Noise;

use super::TagsDc;
use super::objective::word_logits;
use super::synthetic::TextMaskings;
use crate::config::GeneratorKind;
use crate::model::{Beside, RegionBatch, Uniter};
use crate::pool::among;

/// Both learn in one optimiser. A model that a loss does not reach has no gradient, and stays as it is.
#[derive(Module, Debug)]
pub(super) struct Models {
    /// Matches images and texts.
    pub(super) matcher: Uniter,
    /// Fills masks, if `synthetic.generator = "own"`.
    pub(super) own: Option<Uniter>,
}

impl TagsDc {
    /// The model.
    pub fn model(&self) -> &Uniter {
        &self.learner.module().matcher
    }

    /// The model that fills masks, if it is not [the model](Self::model) itself.
    pub fn generator(&self) -> Option<&Uniter> {
        self.fixed.as_ref().or(self.learner.module().own.as_ref())
    }

    /// The model beside an image of a split, with its [generator](Self::generator) if that is another model: for [`Tailor`](crate::Tailor).
    ///
    /// # Errors
    /// If the image does not exist, its regions have another width than the model's, or a region cannot be read.
    pub fn beside(&self, regions: &Regions, image: usize) -> Result<Beside> {
        among("image", image, regions.len())?;
        let batch = RegionBatch::of(regions, &[image])?;
        let mut beside = Beside::new(self.model(), &batch)?;
        if let Some(generator) = self.generator() {
            beside.generator = generator.valid();
            beside.seen = self.fixed.as_ref().map(|_| beside.generator.embed_regions(&batch));
        }
        Ok(beside)
    }

    /// Logits of the words at all targets by a model that fills masks, `[targets, tokens]`. A generator of its own has learnt without images,
    /// and sees none.
    ///
    /// # Errors
    /// If a region cannot be read.
    pub(super) fn filled(
        &self,
        model: &Uniter,
        masked: &[TextMaskings],
        regions: &Regions,
        noise: Noise,
    ) -> Result<Vec<f32>> {
        let blind = self.config.synthetic.generator == GeneratorKind::Own;
        Ok(host(word_logits(model, masked, (!blind).then_some(regions), noise)?))
    }

    /// The models before the first step, with these weights of the matcher. Missing heads that the losses need are made from them, heads
    /// that no loss needs are dropped, and a static generator keeps the weights. A generator of its own stays as it is.
    pub(super) fn begun(self, matcher: Uniter) -> Self {
        let synthetic = self.config.loss.synthetic();
        let kept = synthetic && self.config.synthetic.generator == GeneratorKind::Static;
        let matcher = match self.config.loss.words() {
            true => matcher.with_word_heads(),
            false => matcher.without_word_heads(),
        };
        let fixed = kept.then(|| matcher.valid());
        let own = self.learner.module().own.clone();
        Self { learner: self.learner.begun(Models { matcher, own }), fixed, ..self }
    }

    /// The model without the state of its optimiser: it still scores and makes sentences.
    #[must_use]
    pub fn at_rest(&self) -> Self {
        Self { learner: self.learner.begun(self.learner.module().clone()), ..self.clone() }
    }
}
