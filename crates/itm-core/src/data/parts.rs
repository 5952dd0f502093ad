//! Joining and shortening splits.

use std::path::Path;

use super::{Features, Part, Regions};
use crate::{Error, Pairs, Result};

/// Checks that two parts have features of the same width, and regions of the same width.
///
/// # Errors
/// If a width differs; the error names both widths.
pub(super) fn same_widths(
    folder: &Path,
    (of, train): (&str, &Part),
    (name, part): (&str, &Part),
) -> Result<()> {
    let widths = |part: &Part| {
        let regions = part.regions.as_ref().map_or(0, Regions::dim);
        [("features", part.features.dim), ("regions", regions)]
    };
    for ((what, width), (_, got)) in widths(train).into_iter().zip(widths(part)) {
        if got != width {
            let place = format!("{} {what} of {name}", folder.display());
            return Err(Error::invalid(place, format!("the width of {of}, {width}"), got));
        }
    }
    Ok(())
}

/// The first `most` captions of a split, with their images.
///
/// # Errors
/// If `most` is 0, or does not cover whole images.
pub(super) fn first_captions(mut part: Part, most: usize, notes: &mut Vec<String>) -> Result<Part> {
    let Some(per_image) = part.pairs.captions_per_image() else {
        let expected = "no such key where images have different numbers of captions";
        return Err(Error::invalid("val_captions", expected, most));
    };
    if most == 0 || !most.is_multiple_of(per_image) {
        let expected = format!("a multiple of {per_image}, the captions per image, above 0");
        return Err(Error::invalid("val_captions", expected, most));
    }
    let all = part.captions.len();
    if most >= all {
        return Ok(part);
    }
    notes.push(format!("val: the first {most} of {all} captions"));
    let images = most / per_image;
    part.features.values.truncate(images * part.features.dim);
    part.images.truncate(images);
    part.captions.truncate(most);
    part.regions = part.regions.map(|regions| regions.first(images));
    part.pairs = Pairs::uniform(images, per_image);
    Ok(part)
}

/// The images of two training files, one after another.
///
/// # Errors
/// If features or regions differ in width.
pub(super) fn join(a: Part, b: Part, folder: &Path) -> Result<Part> {
    same_widths(folder, ("train", &a), ("train_extra", &b))?;
    let offset = a.images.len();
    let shifted = b.pairs.image_of_text().iter().map(|&image| image + offset);
    let image_of_text = a.pairs.image_of_text().iter().copied().chain(shifted).collect();
    let images: Vec<_> = a.images.into_iter().chain(b.images).collect();
    let pairs = Pairs::new(images.len(), image_of_text)?;
    let mut values = a.features.values;
    values.extend(b.features.values);
    let regions = match (a.regions, b.regions) {
        (Some(a), Some(b)) => Some(a.joined(b)?),
        _ => None,
    };
    let captions = a.captions.into_iter().chain(b.captions).collect();
    Ok(Part {
        features: Features { dim: a.features.dim, values },
        regions,
        images,
        captions,
        pairs,
    })
}
