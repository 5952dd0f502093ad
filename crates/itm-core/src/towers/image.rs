//! Images to v̄: a linear map of global features, or ViT, CLIP or SigLIP over pixels.

use std::borrow::Cow;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use itm_kernels::{Linear, Noise, TransformerBlock, normalize_rows};

use super::config::set_memory;
use super::frozen::FrozenBlocks;
use super::{ImageConfig, TowerDropout, VitConfig, WithReport, derive, projected, started};
use crate::encoders::{
    DualEncoder, EarlyStates, ImagePool, ImageTower, PatchGrid, Projection, Vit, table_values,
};
use crate::learn::{Images, size_within};
use crate::ranges::in_memory;
use crate::start::{InputStatistics, Start};
use crate::{Error, Result};

impl ImageConfig {
    /// Features, transformed for the projection, or pixels, unchanged.
    ///
    /// # Panics
    /// If `images` are regions, or their values are not `count` whole images.
    pub fn prepared<'a>(&self, images: Images<'a>, count: usize) -> ImageInput<'a> {
        let n = images.values().len();
        let (size, width) = match images {
            Images::Pixels { size, .. } => (Some(size), 3 * size * size),
            Images::Features(_) => (None, n / count.max(1)),
            other => panic!("{} for an encoder of features or pictures", other.kind()),
        };
        assert_eq!(n, count * width, "{n} values for {count} images of {width}");
        let mut values = Cow::Borrowed(images.values());
        if let (Self::Features(config), None) = (self, size) {
            let rows = values.to_mut().chunks_exact_mut(width.max(1));
            rows.for_each(|row| config.transform.apply(row));
        }
        ImageInput { values, size, width }
    }
}

/// Images ready for their encoder.
#[derive(Debug, Clone)]
pub struct ImageInput<'a> {
    values: Cow<'a, [f32]>,
    /// Height and width of pictures; none for features.
    size: Option<usize>,
    width: usize,
}

impl ImageInput<'_> {
    /// Number of images.
    pub(crate) fn count(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Images `first` to `first + count`.
    pub(crate) fn part(&self, first: usize, count: usize) -> Images<'_> {
        let values = &self.values[first * self.width..(first + count) * self.width];
        match self.size {
            Some(size) => Images::Pixels { size, values },
            None => Images::Features(values),
        }
    }
}

/// The encoder of images.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // only two values exist
pub enum ImageEncoder {
    /// Takes global features.
    Features(Projection),
    /// Takes pixels.
    Vit(VitEncoder),
    /// Takes pixels.
    Clip(ClipEncoder),
}

/// The image tower of CLIP or SigLIP: v̄ = rows / ‖rows‖ with `ImageTower::rows`.
#[derive(Module, Debug)]
pub struct ClipEncoder {
    /// Makes a row of each picture.
    pub tower: ImageTower,
    /// Height and width of a picture, in pixels.
    #[module(skip)]
    pub size: usize,
    /// The blocks that do not learn.
    #[module(skip)]
    pub(super) frozen: FrozenBlocks,
}

/// ViT, a mean over its rows, and perhaps a fully connected layer after it.
///
/// ```text
/// v̄ = (1/m) Σ v_i,   v̄ ← v̄ W + b  with a projection,   then v̄ / ‖v̄‖
/// ```
///
/// v̄ has unit length before the projection too if the projection begins with closed-form CCA of such rows.
#[derive(Module, Debug)]
pub struct VitEncoder {
    /// Makes a row for the class token and a row for each patch.
    pub vit: Vit,
    /// W and b, if there is a projection.
    pub projection: Option<Linear>,
    /// Which rows the mean is over.
    #[module(skip)]
    pub pool: ImagePool,
    /// Whether rows have unit length before the projection.
    #[module(skip)]
    pub unit: bool,
    /// Height and width of a picture, in pixels.
    #[module(skip)]
    pub size: usize,
    /// The blocks that do not learn.
    #[module(skip)]
    pub(super) frozen: FrozenBlocks,
}

impl ImageEncoder {
    /// An encoder with random or published weights, and a report on the published weights.
    ///
    /// # Errors
    /// As [`Encoders::open`](super::Encoders::open).
    pub fn open(
        config: &ImageConfig,
        (image_dim, embed_dim): (usize, usize),
        seed: u64,
        device: &Device,
    ) -> Result<WithReport<Self>> {
        let config = match config {
            ImageConfig::Features(features) => {
                size_within("image_dim, the width of a row of features", image_dim)?;
                let hidden = features.residual.as_ref().map_or(0, |shape| shape.hidden);
                let maps = [[image_dim, embed_dim], [image_dim, hidden], [hidden, embed_dim]];
                in_memory("model.image", maps.iter().map(|map| table_values(map)).sum())?;
                let mut map = Projection::new(image_dim, embed_dim, derive(seed, 1), device);
                if let Some(shape) = &features.residual {
                    map = map.with_residual(shape, 1.0, derive(seed, 8))?;
                }
                return Ok((Self::Features(map), None));
            }
            ImageConfig::Clip(config) => {
                let (model, report) = DualEncoder::open(config.folder()?.0, device)?;
                let mut tower = model.image;
                set_memory(&mut tower.vit.blocks, config.gradient_checkpointing);
                let size = model.shape.image.image[0];
                let frozen = FrozenBlocks::default();
                return Ok((Self::Clip(ClipEncoder { tower, size, frozen }), Some(report)));
            }
            ImageConfig::Vit(config) => config,
        };
        let (mut vit, report) = match config.weights.folder()? {
            Some(folder) => Vit::open(folder, device).map(|(vit, report)| (vit, Some(report)))?,
            None => {
                let shape = config.shape()?;
                in_memory("model.image.weights", shape.values())?;
                (Vit::seeded(&shape, derive(seed, 1), device), None)
            }
        };
        set_memory(&mut vit.blocks, config.gradient_checkpointing);
        let width = config.pool.width(vit.shape.width);
        let projection = config.projection.map([width, embed_dim], derive(seed, 6), device)?;
        let VitConfig { pool, image_size: size, .. } = *config;
        let frozen = FrozenBlocks::default();
        Ok((Self::Vit(VitEncoder { vit, projection, pool, unit: false, size, frozen }), report))
    }

    /// The blocks, if there are any.
    pub(super) fn blocks_mut(&mut self) -> &mut [TransformerBlock] {
        self.vit_mut().map_or(&mut [], |vit| &mut vit.blocks)
    }

    /// What makes rows of patches; none for features.
    pub(super) fn vit_mut(&mut self) -> Option<&mut Vit> {
        match self {
            Self::Features(_) => None,
            Self::Vit(encoder) => Some(&mut encoder.vit),
            Self::Clip(encoder) => Some(&mut encoder.tower.vit),
        }
    }

    /// Notes that the first blocks do not learn.
    pub(super) fn freeze_first(&mut self, blocks: usize) {
        match self {
            Self::Features(_) => {}
            Self::Vit(encoder) => encoder.frozen = FrozenBlocks::first(blocks),
            Self::Clip(ClipEncoder { tower, frozen, .. }) => {
                // Of CLIP's last block only the class row is computed.
                let partial = usize::from(tower.pool.is_none());
                let most = tower.vit.blocks.len().saturating_sub(partial);
                *frozen = FrozenBlocks::first(blocks.min(most));
            }
        }
    }

    /// v̄, `[b, d]`, rows of unit length.
    ///
    /// # Panics
    /// If the images are of another kind, width or size than the encoder's, or the values are not whole images.
    pub fn encode(&self, images: Images, dropout: TowerDropout) -> Tensor<2> {
        match (self, images) {
            (Self::Features(projection), Images::Features(values)) => {
                projection.embed(values, dropout.features())
            }
            (Self::Vit(encoder), Images::Pixels { size, values }) => {
                encoder.encode(size, values, dropout)
            }
            (Self::Clip(encoder), Images::Pixels { size, values }) => {
                normalize_rows(encoder.tower.rows_after(encoder.begun(size, values)))
            }
            (Self::Features(_), images) => panic!("{} for an encoder of features", images.kind()),
            (Self::Vit(_) | Self::Clip(_), images) => {
                panic!("{} for an encoder of pictures", images.kind())
            }
        }
    }

    /// A row of the joint space for each patch of each picture, `[b, n, d]`, not of unit length: what the encoder's map makes of the patch's
    /// row. A class row is left out. Where the pooled row gets unit length before the map, the patch's row keeps its own length.
    ///
    /// # Panics
    /// If the encoder takes features, the pictures are of another size than the encoder's, or it maps class row and patches side by side.
    pub fn tokens(&self, images: Images, dropout: TowerDropout) -> Tensor<3> {
        let Images::Pixels { size, values } = images else {
            panic!("{} for the patches of an encoder of pictures", images.kind())
        };
        let (states, patches) = match self {
            Self::Features(_) => panic!("patches of an encoder of features"),
            Self::Vit(encoder) => (encoder.states(size, values, dropout), &encoder.vit),
            Self::Clip(encoder) => {
                let ClipEncoder { tower, .. } = encoder;
                (tower.vit.finished(encoder.begun(size, values), Noise::Off), &tower.vit)
            }
        };
        let ([b, all, width], first) = (states.dims(), patches.shape.class_rows());
        let n = all - first;
        let each = states.narrow(1, first, n).reshape([b * n, width]);
        let rows = match self {
            Self::Vit(encoder) => projected(&encoder.projection, each),
            Self::Clip(encoder) => encoder.tower.rows_of(each.unsqueeze_dim(1)),
            Self::Features(_) => each,
        };
        let d = rows.dims()[1];
        rows.reshape([b, n, d])
    }

    /// The grid of the patches; none for features.
    pub fn grid(&self) -> Option<PatchGrid> {
        match self {
            Self::Features(_) => None,
            Self::Vit(encoder) => Some(PatchGrid::new(encoder.size, encoder.vit.shape.patch)),
            Self::Clip(encoder) => {
                Some(PatchGrid::new(encoder.size, encoder.tower.vit.shape.patch))
            }
        }
    }

    pub(super) fn with_inputs(self, inputs: &InputStatistics) -> Result<Self> {
        let Self::Features(map) = self else { return Ok(self) };
        Ok(Self::Features(map.scaled_to(inputs.deviation)?))
    }

    pub(super) fn with_start(self, start: &Start) -> Result<Self> {
        match self {
            Self::Features(map) => Ok(Self::Features(map.with_map(&start.image)?)),
            Self::Vit(encoder) => {
                let projection = started(encoder.projection, &start.image, "map of pictures")?;
                Ok(Self::Vit(VitEncoder { projection, ..encoder }))
            }
            Self::Clip(_) => {
                Err(Error::invalid("a start", "an encoder of features", "of pictures"))
            }
        }
    }

    /// Refuses images of another kind, width, size or number than the encoder expects.
    ///
    /// # Errors
    /// The error says which.
    pub fn check(&self, images: Images, count: usize) -> Result<()> {
        match (self, images) {
            (Self::Features(map), Images::Features(values)) => {
                let (width, n) = (map.linear.weight.dims()[0], values.len());
                let (all, place) = (count.saturating_mul(width), "features of the batch");
                let expected = format_args!("{all} values, {count} images of width {width}");
                Error::unless(n == all, place, expected, n)
            }
            (
                Self::Vit(VitEncoder { size: own, .. }) | Self::Clip(ClipEncoder { size: own, .. }),
                Images::Pixels { size, values },
            ) => {
                let (same, expected) = (size == *own, format!("pictures of {own} px"));
                Error::unless(same, "images", expected, format_args!("{size} px"))?;
                let (all, n) = (count.saturating_mul(3 * size * size), values.len());
                let expected =
                    format_args!("{all} values, {count} pictures of 3 · {size} · {size}");
                Error::unless(n == all, "pixels of the batch", expected, n)
            }
            (Self::Features(map), images) => Err(images.refused(map.linear.weight.dims()[0])),
            (Self::Vit(_) | Self::Clip(_), images) => {
                Err(Error::invalid("images", "pictures", images.kind()))
            }
        }
    }

    /// Width of a row of features; none for pictures.
    pub fn feature_width(&self) -> Option<usize> {
        match self {
            Self::Features(projection) => Some(projection.linear.weight.dims()[0]),
            Self::Vit(_) | Self::Clip(_) => None,
        }
    }
}

impl VitEncoder {
    fn encode(&self, size: usize, values: &[f32], dropout: TowerDropout) -> Tensor<2> {
        let rows = self.pool.pool(self.states(size, values, dropout));
        let rows = if self.unit { normalize_rows(rows) } else { rows };
        normalize_rows(projected(&self.projection, rows))
    }

    /// Class token and patches, `[b, 1 + n, width]`.
    ///
    /// # Panics
    /// If the pictures are of another size than the encoder's, or the values are not whole pictures.
    pub(crate) fn states(&self, size: usize, values: &[f32], dropout: TowerDropout) -> Tensor<3> {
        assert_pictures(self.size, size, values);
        let noise = dropout.part(3);
        self.vit.finished(self.frozen.states(&self.vit, (size, values), noise), noise)
    }
}

impl ClipEncoder {
    /// States of pictures after the blocks that do not learn.
    ///
    /// # Panics
    /// As [`VitEncoder::states`].
    fn begun(&self, size: usize, values: &[f32]) -> EarlyStates {
        assert_pictures(self.size, size, values);
        self.frozen.states(&self.tower.vit, (size, values), Noise::Off)
    }
}

fn assert_pictures(own: usize, size: usize, values: &[f32]) {
    assert_eq!(size, own, "pictures of {size} px for an encoder of {own}");
    let (n, one) = (values.len(), 3 * size * size);
    assert!(n > 0 && n.is_multiple_of(one), "{n} values in pictures of {one}");
}
