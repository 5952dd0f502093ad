//! States of the online encoders before pooling: one row per patch, one row per word piece.

use burn::module::Module;
use itm_core::encoders::{ImagePool, PatchGrid, PiecePool};
use itm_core::learn::Images;
use itm_core::vision::PictureBatch;
use itm_core::{Result, host};

use crate::step::Fne;
use itm_core::towers::{ImageEncoder, TEXTS, TextEncoder, TowerDropout};

/// The online encoders in evaluation mode, with all their rows in the joint space.
///
/// ```text
/// v_k = V_k W_v + b_v,   w_i = W_i W_w + b_w  with projections,   the states themselves without
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | V | ViT's states of the patches, without the class token | `[n, width]` |
/// | W | BERT's states, including `[CLS]` and `[SEP]` | `[l, width]` |
/// | v | [`patches`](Self::patches) | `[n, d]` |
/// | w | [`pieces`](Self::pieces) | `[l, d]` |
///
/// A projection is affine and pooling is a mean, so the mean of these rows over the pooled positions is the embedding before
/// normalisation. [`itm_core::encoders::word_patches`] says which words are close to which patches.
#[derive(Debug)]
pub(crate) struct States<'a> {
    model: &'a Fne,
    image: ImageEncoder,
    text: TextEncoder,
    /// The grid of the patches.
    pub(crate) grid: PatchGrid,
}

impl Fne {
    /// The states; `None` unless images are pictures and captions are word pieces, and both pools are means.
    pub(crate) fn states(&self) -> Option<States<'_>> {
        match (&self.online().image, &self.online().text) {
            (ImageEncoder::Vit(image), TextEncoder::Bert(text))
                if matches!(image.pool, ImagePool::All | ImagePool::Patches)
                    && !matches!(text.pool, PiecePool::Class | PiecePool::Max)
                    && !image.unit
                    && !text.unit =>
            {
                let (image, text) = (self.online().image.valid(), self.online().text.valid());
                Some(States { model: self, grid: image.grid()?, image, text })
            }
            _ => None,
        }
    }
}

impl States<'_> {
    /// v of each picture, `[pictures, n, d]` row-major.
    ///
    /// # Errors
    /// As [`ImageEncoder::check`].
    pub(crate) fn patches(&self, pictures: &PictureBatch) -> Result<Vec<f32>> {
        self.image.check(Images::from(pictures), pictures.images)?;
        Ok(host(self.image.tokens(Images::from(pictures), TowerDropout::OFF)))
    }

    /// w of each caption, `[l, d]` row-major; captions are cut as in evaluation.
    ///
    /// # Errors
    /// As [`TextEncoder::check`].
    pub(crate) fn pieces<C: AsRef<[u32]>>(&self, texts: &[C]) -> Result<Vec<Vec<f32>>> {
        let cut = |text: &C| self.model.config.model.text.evaluation(text.as_ref());
        let texts: Vec<_> = texts.iter().map(cut).collect();
        self.text.check(&texts)?;
        Ok(texts.chunks(TEXTS).flat_map(|block| self.block(block)).collect())
    }

    fn block(&self, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
        let rows = self.text.tokens(&self.text.read(texts, None), TowerDropout::OFF);
        let [_, l, d] = rows.dims();
        let real = |(row, text): (&[f32], &Vec<u32>)| row[..text.len() * d].to_vec();
        host(rows).chunks_exact(l * d).zip(texts).map(real).collect()
    }
}
