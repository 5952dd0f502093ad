//! Scores of all pairs. Each pair is a separate row of a batch through the blocks.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use itm_core::data::Regions;
use itm_core::encoders::{BertShape, TokenBatch};
use itm_core::scored::Scored;
use itm_core::{Error, Result, ScoreMatrix, host};

use super::{EmbeddedRegions, RegionBatch, Uniter, UniterShape};
use crate::words::distinct;

/// The most pairs per batch: few, because the last batch of each width is filled up.
const BATCH: usize = 16;
/// Bytes that the states of a batch may take within a block. Published sizes stay below it with 16 pairs of 60 tokens and 100 regions.
const MEMORY: usize = 256 << 20;
/// The width of a batch is a multiple of this, so that a pair is padded by at most three positions.
const STEP: usize = 4;
/// Images whose regions are embedded at once.
const IMAGES: usize = 128;

/// Images and texts of a split, compared by the match logit: scores by blocks.
///
/// Regions are embedded once per image. A block's pairs are sorted by their number of positions, then by image, so that a batch
/// mixes images and texts and has almost no padding. Every batch of a width has the same number of pairs, 16, or fewer if a wide batch
/// would need too much memory: the last batch of each width is filled up with copies of its last pair. The width of a batch depends only
/// on its own pairs. So a score has the same bits in every block.
///
/// A score is the match logit, not its sigmoid: both rank alike, but the logit has no ties where the sigmoid is 1 in f32.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::Device;
/// use itm_core::scored::Scored;
/// use tags_dc::model::{RegionBatch, Uniter, UniterScores, UniterShape};
///
/// let shape = UniterShape { features: 2, ..UniterShape::of_width(8, 2, 1, 30) };
/// let model = Uniter::seeded(&shape, 1, &Device::flex());
/// let images = RegionBatch::new(2, vec![1, 2], vec![0.5, 0.1, 0.2, 0.9, 0.4, 0.3], vec![0.5; 21])?;
/// let scores = UniterScores::new(&model, [Ok(images)], vec![vec![2, 7, 3], vec![2, 9, 8, 3]])?;
/// assert_eq!((scores.images(), scores.texts()), (2, 2));
/// assert_eq!(scores.block(1..2, 0..2)?.row(0), scores.matrix()?.row(1));
/// # }
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug)]
pub struct UniterScores {
    model: Uniter,
    /// Embedded regions of all images, `[Σ counts, d]`.
    pub(super) rows: Vec<f32>,
    /// The image side of the prior, `[images, k]`; empty without a prior.
    prior: Vec<f32>,
    /// Row at which each image begins, and the end.
    starts: Vec<usize>,
    pub(super) texts: Vec<Vec<u32>>,
}

impl UniterScores {
    /// Images in the order of the batches, and texts as pieces with `[CLS]` and `[SEP]`.
    ///
    /// # Errors
    /// The first error of a batch; if features have another width than the model's; if a text is empty or longer than the position table, or
    /// has a piece that is not in the vocabulary (the error names the text).
    pub fn new(
        model: &Uniter,
        images: impl IntoIterator<Item = Result<RegionBatch>>,
        texts: Vec<Vec<u32>>,
    ) -> Result<Self> {
        model.shape.check_texts(&texts, |k| format!("text {k}"))?;
        let mut new =
            Self { model: model.valid(), rows: vec![], prior: vec![], starts: vec![0], texts };
        for images in images {
            let images = images?;
            model.shape.check_regions(&images)?;
            let EmbeddedRegions { rows, counts, prior } = new.model.embed_regions(&images);
            new.rows.extend(host(rows));
            new.prior.extend(prior.map(host).unwrap_or_default());
            for count in counts {
                new.starts.push(new.starts[new.starts.len() - 1] + count);
            }
        }
        Ok(new)
    }

    /// All images of a split, read in parts.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if a region cannot be read or has no box.
    pub(crate) fn of_split(
        model: &Uniter,
        regions: &Regions,
        texts: Vec<Vec<u32>>,
    ) -> Result<Self> {
        let images: Vec<usize> = (0..regions.len()).collect();
        Self::new(model, images.chunks(IMAGES).map(|some| RegionBatch::of(regions, some)), texts)
    }

    pub(super) fn regions_of(&self, image: usize) -> Range<usize> {
        self.starts[image]..self.starts[image + 1]
    }

    /// Positions of a pair's batch.
    fn width(&self, (image, text): (usize, usize)) -> usize {
        (self.texts[text].len() + self.regions_of(image).len()).next_multiple_of(STEP)
    }

    /// Logits of these pairs of an image and a text, in the given order.
    fn score(&self, pairs: &[(usize, usize)]) -> Result<Vec<f32>> {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_unstable_by_key(|&k| (self.width(pairs[k]), pairs[k], k));
        let mut out = vec![0.0; pairs.len()];
        for like in order.chunk_by(|&a, &b| self.width(pairs[a]) == self.width(pairs[b])) {
            let size = batch_of(&self.model.shape, self.width(pairs[like[0]]));
            for some in like.chunks(size) {
                let mut batch: Vec<(usize, usize)> = some.iter().map(|&k| pairs[k]).collect();
                batch.resize(size, batch[batch.len() - 1]);
                for (&k, logit) in some.iter().zip(self.logits(&batch)) {
                    let (image, text) = pairs[k];
                    let place = format_args!("score of image {image} with text {text}");
                    Error::unless(!logit.is_nan(), place, "a number", logit)?;
                    out[k] = logit;
                }
            }
        }
        Ok(out)
    }

    /// One pass of a batch. All pairs have the same width.
    fn logits(&self, batch: &[(usize, usize)]) -> Vec<f32> {
        let d = self.model.shape.text.width;
        let (images, of) = numbered(&batch.iter().map(|&(image, _)| image).collect::<Vec<_>>());
        let counts: Vec<usize> = images.iter().map(|&i| self.regions_of(i).len()).collect();
        let own = images.iter().map(|&i| self.regions_of(i));
        let rows: Vec<f32> =
            own.flat_map(|r| &self.rows[r.start * d..r.end * d]).copied().collect();
        let device = self.model.rank.weight.val().device();
        let shape = [rows.len() / d, d];
        let rows = Tensor::from_data(TensorData::new(rows, shape), &device);
        let texts: Vec<&[u32]> = batch.iter().map(|&(_, text)| &self.texts[text][..]).collect();
        let prior = (!self.prior.is_empty()).then(|| {
            let k = self.prior.len() / (self.starts.len() - 1);
            let own = images.iter().flat_map(|&i| &self.prior[i * k..][..k]);
            let own: Vec<f32> = own.copied().collect();
            Tensor::from_data(TensorData::new(own, [images.len(), k]), &device)
        });
        let (texts, regions) = (TokenBatch::new(&texts), EmbeddedRegions { rows, counts, prior });
        let width = Some(self.width(batch[0]));
        host(self.model.match_logits_of(&texts, &regions, &of, width))
    }
}

/// Pairs per batch of this width: as many as fit, from 1 to [`BATCH`]. A block holds its input, queries, keys and values, the weights of
/// attention, and the wide layer.
pub(super) fn batch_of(shape: &UniterShape, width: usize) -> usize {
    let BertShape { width: d, heads, mlp, .. } = shape.text;
    let of_position = heads.saturating_mul(width).saturating_add(4 * d + mlp);
    let pair = of_position.saturating_mul(width).saturating_mul(size_of::<f32>());
    (MEMORY / pair.max(1)).clamp(1, BATCH)
}

/// The distinct items in ascending order, and for each item its row among them.
pub(crate) fn numbered(items: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let distinct = distinct(items.to_vec());
    let row = |item: &usize| distinct.binary_search(item).expect("one of them");
    let rows = items.iter().map(row).collect();
    (distinct, rows)
}

impl Scored for UniterScores {
    fn images(&self) -> usize {
        self.starts.len() - 1
    }

    fn texts(&self) -> usize {
        self.texts.len()
    }

    fn block(&self, images: Range<usize>, texts: Range<usize>) -> Result<ScoreMatrix> {
        let (n, m) = (images.len(), texts.len());
        let row = |image| texts.clone().map(move |text| (image, text));
        let pairs: Vec<_> = images.flat_map(row).collect();
        ScoreMatrix::new(n, m, self.score(&pairs)?)
    }

    fn costly(&self) -> bool {
        true
    }

    fn pairs(&self, images: &[usize], texts: &[usize]) -> Result<Vec<f32>> {
        assert_eq!(images.len(), texts.len(), "one image for each text");
        let pairs: Vec<_> = images.iter().copied().zip(texts.iter().copied()).collect();
        self.score(&pairs)
    }
}
