//! The files of a `*_precomp` folder that hold region features.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::precomp_split::{PrecompSplit, SplitFiles, open_scaled};
use super::{Bounds, Npy, Regions};
use crate::files::Manifest;
use crate::{Error, Result};

/// Which region features of a data set are read.
///
/// | here | values `[rows, r, d]` | boxes, if the file exists |
/// |---|---|---|
/// | `Given` | `<name>_regions.npy`, or else `<name>_ims.npy` | `<name>_boxes.npy`, `[rows, r, 4]` |
/// | `Grid`  | `<name>_grid.npy` | `grid_boxes.npy`, `[r, 4]` |
/// | `Patches` | `grid.npy` of a folder of `itm embed` | |
///
/// Rows are images or captions; numbers are f16, f32, f64, or bytes with a scale of d numbers (`grid_scale.npy`,
/// `regions_scale.npy`, `ims_scale.npy`). Boxes are x1, y1, x2, y2 from 0 to 1. `r` may be any number and may differ
/// between splits: 36 in the published files, 12 in Scenes. `Given` also selects the built-in regions of Scenes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RegionSource {
    /// Regions of a detector.
    Given,
    /// A grid of windows or patches.
    Grid,
    /// The patches that `itm embed --patches` wrote, beside its rows of images: [`Dataset::add_embeddings`](super::Dataset::add_embeddings)
    /// reads them, and [`load_precomp`](super::load_precomp) reads none.
    Patches,
}

impl RegionSource {
    /// The sources in a `*_precomp` folder.
    pub(super) const ALL: [Self; 2] = [Self::Given, Self::Grid];

    /// Whether a split has a file of this source.
    pub(super) fn is_there(self, folder: &Path, name: &str) -> bool {
        let [values, ..] = self.files(folder, name);
        match self {
            Self::Given if values.ends_with(format!("{name}_ims.npy")) => {
                // The reader of a damaged file says what is wrong.
                Npy::open(&values).map_or(values.exists(), |ims| ims.shape().len() == 3)
            }
            _ => values.exists(),
        }
    }

    /// Maps the regions of a split and checks them against its captions. Reads them once, to find values that are not
    /// finite.
    ///
    /// # Errors
    /// If files are missing or malformed, the rows are neither the images nor the captions of the split, the scale has
    /// another width, boxes have another shape or are outside the picture, or a value is not finite.
    pub(super) fn open(
        self,
        (root, folder): (&Path, &Path),
        split: &PrecompSplit,
        manifest: &mut Manifest,
    ) -> Result<Regions> {
        let [values, scale, boxes] = self.files(folder, &split.name);
        let file = open_scaled(root, &values, &scale, manifest)?;
        let every = split.rows_an_image(&file)?;
        let of_features = file.place() == split.features.place();
        let &[rows, count, _] = file.shape() else {
            let expected = match of_features {
                true => format!("regions [n, r, d], or a {}_regions.npy", split.name),
                false => "regions [n, r, d]".into(),
            };
            let got = format!("shape {:?}", file.shape());
            return Err(Error::invalid(file.place(), expected, got));
        };
        file.check_rank(&[3])?;
        let regions = Regions::mapped(file, every);
        // Regions in the feature file are read for the global features, which checks them.
        if !of_features {
            regions.check()?;
        }
        if !boxes.exists() {
            return Ok(regions);
        }
        let file = Npy::open(&boxes)?;
        manifest.add(root, &boxes, file.file_bytes());
        let (shape, rows) = match self {
            Self::Given => (vec![rows, count, 4], (0..rows).step_by(every)),
            Self::Grid | Self::Patches => (vec![count, 4], (0..count).step_by(1)),
        };
        let (got, expected) = (file.shape(), format_args!("shape {shape:?}, a box per region"));
        Error::unless(got == shape, file.place(), expected, format_args!("{got:?}"))?;
        regions.with_boxes(read_boxes(&file, rows)?)
    }

    /// The files of the values, their scale and the boxes.
    fn files(self, folder: &Path, name: &str) -> [PathBuf; 3] {
        let of = |end: &str| folder.join(format!("{name}_{end}"));
        let own = of("regions.npy");
        match self {
            Self::Grid | Self::Patches => {
                let [scale, boxes] = ["grid_scale.npy", "grid_boxes.npy"];
                [of("grid.npy"), folder.join(scale), folder.join(boxes)]
            }
            Self::Given if own.exists() => [own, folder.join("regions_scale.npy"), of("boxes.npy")],
            Self::Given => {
                let SplitFiles { ims, scale, .. } = SplitFiles::of(folder, name);
                [ims, scale, of("boxes.npy")]
            }
        }
    }
}

fn read_boxes(file: &Npy, rows: impl Iterator<Item = usize>) -> Result<Vec<Bounds>> {
    let (mut edges, mut boxes) = (vec![0.0; file.row_len()], vec![]);
    for row in rows {
        file.row_into(row, &mut edges)?;
        for (k, edges) in edges.chunks_exact(4).enumerate() {
            let place = || format!("{} row {row}, box {k}", file.place());
            boxes.push(Bounds::inside(place, [edges[0], edges[1], edges[2], edges[3]])?);
        }
    }
    Ok(boxes)
}

#[cfg(test)]
mod tests;
