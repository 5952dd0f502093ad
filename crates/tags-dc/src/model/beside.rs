//! A model beside one image: words for masked captions, and match scores of sentences.

use burn::module::Module;
use itm_core::encoders::TokenBatch;
use itm_core::{Error, Result, host};
use itm_kernels::Noise;

use super::{EmbeddedRegions, RegionBatch, Uniter};
use crate::{Generator, Masking, Scores};

/// Sentences per pass.
const ROWS: usize = 32;

/// A UNITER that looks at one image, for [`Tailor`](crate::Tailor). It has no dropout and no gradient.
///
/// The regions are embedded once. Scores are the match logits, not their sigmoids: they rank as the probabilities do but do not saturate.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::Device;
/// use tags_dc::Scores;
/// use tags_dc::model::{Beside, RegionBatch, Uniter, UniterShape};
///
/// let shape = UniterShape { features: 2, ..UniterShape::of_width(8, 2, 1, 30) };
/// let model = Uniter::seeded(&shape, 1, &Device::flex());
/// let image = RegionBatch::new(2, vec![1], vec![0.5, 0.1], vec![0.5; 7])?;
/// let mut beside = Beside::new(&model, &image)?;
/// assert_eq!(beside.scores(&[&[2, 7, 3], &[2, 9, 3]])?.len(), 2);
/// # }
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Beside {
    model: Uniter,
    regions: EmbeddedRegions,
    /// The model that fills masks.
    pub(crate) generator: Uniter,
    /// The regions as the generator embeds them; none if it has learnt without images.
    pub(crate) seen: Option<EmbeddedRegions>,
}

impl Beside {
    /// # Errors
    /// If there is not one image, or its regions have another width than the model's.
    pub fn new(model: &Uniter, image: &RegionBatch) -> Result<Self> {
        Error::unless(image.counts.len() == 1, "regions", "one image", image.counts.len())?;
        model.shape.check_regions(image)?;
        let model = model.valid();
        let regions = model.embed_regions(image);
        Ok(Self { generator: model.clone(), seen: Some(regions.clone()), model, regions })
    }
}

impl Generator for Beside {
    fn vocabulary(&self) -> usize {
        self.model.shape.text.vocabulary
    }

    fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>> {
        let (model, rows) = (&self.generator, rows.iter().collect::<Vec<_>>());
        let texts: Vec<&[u32]> = rows.iter().map(|row| &row.ids[..]).collect();
        model.shape.check_texts(&texts, |k| format!("row {k}"))?;
        let logits = |some: &[&Masking]| {
            let images = vec![0; some.len()];
            let beside = self.seen.as_ref().map(|regions| (regions, &images[..]));
            host(model.target_logits(some, beside, Noise::Off))
        };
        Ok(rows.chunks(ROWS).flat_map(logits).collect())
    }
}

impl Scores for Beside {
    fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
        self.model.shape.check_texts(rows, |k| format!("sentence {k}"))?;
        let logits = |some: &[&[u32]]| {
            let (texts, images) = (TokenBatch::new(some), vec![0; some.len()]);
            host(self.model.match_logits_of(&texts, &self.regions, &images, None))
        };
        Ok(rows.chunks(ROWS).flat_map(logits).collect())
    }
}
