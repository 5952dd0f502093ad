//! Joining and shortening splits.

use std::mem::take;
use std::path::Path;

use super::{Features, Regions, SplitData};
use crate::{Error, Pairs, Result};

/// Checks that two parts have features of the same width, and regions of the same width.
///
/// # Errors
/// If a width differs; the error names both widths.
pub(super) fn same_widths(
    folder: &Path,
    (of, train): (&str, &SplitData),
    (name, part): (&str, &SplitData),
) -> Result<()> {
    let widths = |part: &SplitData| {
        let regions = part.regions.as_ref().map_or(0, Regions::dim);
        [("features", part.features.dim), ("regions", regions)]
    };
    for ((what, width), (_, got)) in widths(train).into_iter().zip(widths(part)) {
        let place = format_args!("{} {what} of {name}", folder.display());
        Error::unless(got == width, place, format_args!("the width of {of}, {width}"), got)?;
    }
    Ok(())
}

/// The first `most` captions of a split, with their images.
///
/// # Errors
/// If `most` is 0, or does not cover whole images.
pub(super) fn first_captions(
    mut part: SplitData,
    most: usize,
    notes: &mut Vec<String>,
) -> Result<SplitData> {
    let Some(per_image) = part.pairs.captions_per_image() else {
        let expected = "no such key where images have different numbers of captions";
        return Err(Error::invalid("val_captions", expected, most));
    };
    let fits = most > 0 && most.is_multiple_of(per_image);
    let expected = format_args!("a multiple of {per_image}, the captions per image, above 0");
    Error::unless(fits, "val_captions", expected, most)?;
    let all = part.captions.len();
    if most >= all {
        return Ok(part);
    }
    notes.push(format!("val: the first {most} of {all} captions"));
    part.keep(&(0..most / per_image).collect::<Vec<_>>())?;
    Ok(part)
}

impl SplitData {
    /// Keeps only these images, in ascending order, with all their captions.
    ///
    /// # Errors
    /// If the part has regions and the images are not its first ones, or its pairs are judged. Then the part has not changed.
    ///
    /// # Panics
    /// If there is no such image, or the images do not ascend.
    pub fn keep(&mut self, images: &[usize]) -> Result<()> {
        assert!(images.is_sorted_by(|a, b| a < b), "images to keep: not in ascending order");
        let (all, last) = (self.images.len(), images.last());
        assert!(last.is_none_or(|&image| image < all), "image {last:?} of {all}");
        let judged = self.pairs.is_judged();
        Error::unless(!judged, "pairs", "texts of one image each", "judged pairs")?;
        let fits = self.regions.is_none() || images.iter().enumerate().all(|(k, i)| k == *i);
        Error::unless(fits, "regions", "the first images of a part with regions", "others")?;
        self.regions = self.regions.take().map(|regions| regions.first(images.len()));
        let mut number = vec![None; self.images.len()];
        images.iter().enumerate().for_each(|(k, &image)| number[image] = Some(k));
        let (texts, image_of_text): (Vec<usize>, Vec<usize>) = (0..self.captions.len())
            .filter_map(|text| Some((text, number[self.pairs.image_of(text)]?)))
            .unzip();
        self.pairs = Pairs::new(images.len(), image_of_text)?;
        self.features.keep(images);
        self.embeddings.images.keep(images);
        self.embeddings.texts.keep(&texts);
        self.images = images.iter().map(|&image| take(&mut self.images[image])).collect();
        self.captions = texts.iter().map(|&text| take(&mut self.captions[text])).collect();
        Ok(())
    }
}

impl Features {
    /// Only these rows, in ascending order.
    fn keep(&mut self, rows: &[usize]) {
        let dim = self.dim;
        for (k, &row) in rows.iter().enumerate() {
            self.values.copy_within(row * dim..(row + 1) * dim, k * dim);
        }
        self.values.truncate(rows.len() * dim);
    }
}

/// The images of two training files, one after another; neither has rows of frozen encoders yet.
///
/// # Errors
/// If features or regions differ in width.
pub(super) fn join(mut a: SplitData, b: SplitData, folder: &Path) -> Result<SplitData> {
    same_widths(folder, ("train", &a), ("train_extra", &b))?;
    let shifted = b.pairs.image_of_text().iter().map(|&image| image + a.images.len());
    let image_of_text = a.pairs.image_of_text().iter().copied().chain(shifted).collect();
    a.images.extend(b.images);
    a.pairs = Pairs::new(a.images.len(), image_of_text)?;
    a.features.values.extend(b.features.values);
    a.captions.extend(b.captions);
    a.regions = a.regions.take().zip(b.regions).map(|(a, b)| a.joined(b)).transpose()?;
    Ok(a)
}
