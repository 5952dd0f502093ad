//! A model beside one image: words for masked captions, and match scores of sentences.

use burn::module::Module;
use itm_core::encoders::TokenBatch;
use itm_core::{Error, Result, host};
use itm_kernels::Noise;

use super::{At, EmbeddedRegions, RegionBatch, Uniter};
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
    /// The model that fills masks, if it is another one: it has learnt without images and sees none.
    pub(crate) generator: Option<Uniter>,
}

impl Beside {
    /// # Errors
    /// If there is not one image, or its regions have another width than the model's.
    pub fn new(model: &Uniter, image: &RegionBatch) -> Result<Self> {
        Error::unless(image.counts.len() == 1, "regions", "one image", image.counts.len())?;
        model.shape.check_regions(image)?;
        let model = model.valid();
        let regions = model.embed_regions(image);
        Ok(Self { model, regions, generator: None })
    }

    fn joint(&self, rows: &[&[u32]]) -> super::Joint {
        self.model.join(&TokenBatch::new(rows), &self.regions, &vec![0; rows.len()], Noise::Off)
    }
}

impl Generator for Beside {
    fn vocabulary(&self) -> usize {
        self.model.shape.text.vocabulary
    }

    fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>> {
        let mut logits = vec![];
        for some in rows.chunks(ROWS) {
            let texts: Vec<&[u32]> = some.iter().map(|row| &row.ids[..]).collect();
            let at = |(row, masked): (usize, &Masking)| -> Vec<At> {
                masked.targets().map(|position| At { row, position }).collect()
            };
            let asked: Vec<At> = some.iter().enumerate().flat_map(at).collect();
            logits.extend(host(match &self.generator {
                Some(alone) => {
                    let joint = alone.alone(&TokenBatch::new(&texts), Noise::Off);
                    alone.word_logits(&joint, &asked)
                }
                None => self.model.word_logits(&self.joint(&texts), &asked),
            }));
        }
        Ok(logits)
    }
}

impl Scores for Beside {
    fn scores(&mut self, rows: &[&[u32]]) -> Result<Vec<f32>> {
        let logits = |some: &[&[u32]]| {
            let (texts, images) = (TokenBatch::new(some), vec![0; some.len()]);
            host(self.model.match_logits_of(&texts, &self.regions, &images, None))
        };
        Ok(rows.chunks(ROWS).flat_map(logits).collect())
    }
}
