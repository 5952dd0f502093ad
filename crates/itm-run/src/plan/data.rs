//! The part of a plan that all methods share: sizes of the data, and the memory of the data.

use itm_core::cca::CcaOptions;
use itm_core::data::{Features, Regions};
use itm_core::text::Terms;
use itm_report::format::bytes;

use super::Bytes;
use crate::encoded::Reading;
use crate::source::Source;
use crate::split::{Split, Splits};

/// Sizes that come from the data, not from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Width of the image features.
    pub features: usize,
    /// Width of the region features; 0 if there are none.
    pub region_width: usize,
    /// Largest number of regions in an image.
    pub regions: usize,
    /// Number of words, word pieces or stems in the vocabulary.
    pub vocabulary: usize,
    /// Longest caption, in words.
    pub words: usize,
    /// Captions of the training split.
    pub captions: usize,
    /// Bytes of the pictures in memory, for a row that sees pictures.
    pub pictures: u64,
}

impl Sizes {
    pub(crate) fn of(source: &Source, reading: &Reading) -> Self {
        let train = reading.texts(Split::Train);
        let regions =
            [Split::Train, Split::Val, Split::Test].map(|split| regions_of(source, split));
        let longest = train.iter().map(Vec::len).max();
        Self {
            features: source.dataset.train.features.dim,
            region_width: regions[0].map_or(0, Regions::dim),
            regions: regions.iter().flatten().flat_map(|r| r.counts()).copied().max().unwrap_or(0),
            vocabulary: reading.vocabulary,
            words: longest.unwrap_or(0),
            captions: train.len(),
            pictures: source.held_by_pictures(),
        }
    }
}

/// The part of a plan that is the same for all rows: data and evaluation.
///
/// ```text
/// data   = 4 · (given values + transformed values + numbers of words) + text of the captions + regions in memory
/// scores = 12 · images · texts of the larger split      two tables of f32, and a third while it is made
/// ```
pub(crate) fn data(source: &Source, features: &Splits<Features>, readings: &[Reading]) -> Bytes {
    let data = &source.dataset;
    let parts = [&data.train, &data.val, &data.test];
    let values = |features: &Features| 4 * features.values.len() as u64;
    let given: u64 = parts.iter().map(|part| values(&part.features)).sum();
    let regions: u64 = parts.iter().flat_map(|part| &part.regions).map(Regions::held).sum();
    let captions: usize = parts.iter().flat_map(|part| &part.captions).map(String::len).sum();
    let taken: u64 = features.all().into_iter().map(values).sum();
    let numbers: usize = readings.iter().map(Reading::numbers).sum();
    let scores = [&data.val, &data.test].map(|part| part.pairs.images() * part.pairs.texts());
    let data = given + taken + 4 * numbers as u64 + captions as u64 + regions;
    let scores = 12 * scores.into_iter().max().unwrap_or(0) as u64;
    Bytes { data, loaded: data, scores, ..Bytes::default() }
}

/// Describes the regions of the training images, and the bytes of all regions that [`Bytes::data`] does not count; `None` without
/// regions.
pub(crate) fn regions(source: &Source) -> Option<String> {
    let all = [Split::Train, Split::Val, Split::Test].map(|split| regions_of(source, split));
    let mapped: u64 = all.iter().flatten().map(|regions| regions.mapped_bytes()).sum();
    let mapped = match mapped {
        0 => "in memory".into(),
        n => format!("{} of files that are read on demand, not held", bytes(n)),
    };
    all[0].map(|train| format!("{}, {mapped}", train.describe()))
}

fn regions_of(source: &Source, split: Split) -> Option<&Regions> {
    source.part(split).0.regions.as_ref()
}

/// The memory of fitting closed-form CCA, without the data; 0 without features.
///
/// ```text
/// 8 · (dx² + dy² + dx·dy + a² + max(b² + a·b + 2a², a² + (n + m)·a + threads · (5a² + 2·(n + m)·d)))
/// ```
///
/// | symbol | here |
/// |---|---|
/// | dx, dy | width of the features, number of terms |
/// | a, b | the smaller and the larger of dx and dy |
/// | n, m | images and captions of the validation split |
/// | d | largest number of dimensions that is tried |
///
/// The result is this value times 1.5, because allocators can keep half as much again. A start from regions is solved on the mean
/// region of each image; these means count too.
pub(crate) fn closed_form(source: &Source) -> u64 {
    let train = &source.dataset.train;
    let means = |regions: &Regions| {
        let dx = regions.dim() as u64;
        4 * dx * regions.len() as u64 + closed_form_of(source, dx)
    };
    let of_features = closed_form_of(source, train.features.dim as u64);
    of_features.max(train.regions.as_ref().map_or(0, means))
}

/// [`closed_form`] for features of width `dx`.
fn closed_form_of(source: &Source, dx: u64) -> u64 {
    if dx == 0 {
        return 0;
    }
    let (data, options) = (&source.dataset, CcaOptions::default());
    let terms = Terms::fit(&data.train.captions, options.min_captions, options.max_terms);
    let dy = terms.len() as u64;
    let (a, b) = (dx.min(dy), dx.max(dy));
    let ridges = if dx <= dy { &options.ridge_image } else { &options.ridge_text };
    let threads = rayon::current_num_threads().min(ridges.len()) as u64;
    let rows = (data.val.pairs.images() + data.val.pairs.texts()) as u64;
    let d = options.dims.iter().copied().max().unwrap_or(0) as u64;
    let solving = b * b + a * b + 2 * a * a;
    let choosing = a * a + rows * a + threads * (5 * a * a + 2 * rows * d);
    let values = dx * dx + dy * dy + dx * dy + a * a + solving.max(choosing);
    12 * values
}

#[cfg(test)]
mod tests {
    use itm_core::data::RegionSource;
    use itm_core::scenes::{Scenes, export};

    use super::*;
    use crate::config::{Config, ScenesConfig};
    use crate::encoded;
    use crate::testing;

    /// Regions of Scenes are in memory; only the boxes of a folder's regions are. There are 12 images of 12 regions of 704 numbers.
    #[test]
    fn regions_in_memory_are_counted_and_mapped_ones_told() {
        let (mut config, plain) = testing::small_scenes([7, 2, 3]);
        config.target.regions = Some(RegionSource::Given);
        let open = |config: &Config, data| Source::open(config, data, &testing::configs()).unwrap();
        let held = open(&config, None).1;
        let folder = tempfile::tempdir().unwrap();
        let sizes = ScenesConfig { train: 7, val: 2, test: 3, pixels: 32, ..Default::default() };
        export(&Scenes::generate(0, sizes.sizes()), folder.path()).unwrap();
        let mut config = Config::load(&testing::configs(), "fne-flickr8k").unwrap();
        config.target.regions = Some(RegionSource::Given);
        let mapped = open(&config, Some(folder.path())).1;
        let of = |source: &Source| {
            let features = encoded::features(&plain.dataset, &config.target);
            data(source, &features, &[]).data
        };
        let boxes = 12 * 12 * 16;
        assert_eq!(of(&held) - of(&plain), 12 * 12 * 704 * 4 + boxes);
        assert_eq!(of(&mapped) - of(&plain), boxes);
        assert_eq!(regions(&plain), None);
        let begin = "12 regions per image, 704 wide, with boxes, ";
        assert_eq!(regions(&held).unwrap(), format!("{begin}in memory"));
        let line = regions(&mapped).unwrap();
        assert!(
            line.starts_with(begin) && line.ends_with("of files that are read on demand, not held")
        );
        // 12 · 12 · 704 numbers of f16, and three headers.
        assert!(line.contains(" 198.37 KiB ") || line.contains(" 198.38 KiB "), "{line}");
    }
}
