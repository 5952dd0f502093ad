//! The part of a plan that all rows share: the memory of scores and of regions.

use itm_core::data::Regions;
use itm_report::format::bytes;

use crate::source::Source;
use crate::split::Split;

/// The bytes of the largest matrix of scores that an evaluation holds: two tables of f32, and a third while it is made.
pub(crate) fn scores(source: &Source) -> u64 {
    let parts = [&source.dataset.val, &source.dataset.test];
    let pairs =
        parts.map(|part| (part.pairs.images() as u64).saturating_mul(part.pairs.texts() as u64));
    pairs.into_iter().max().unwrap_or(0).saturating_mul(12)
}

/// Describes the regions of the training images, and the bytes of regions in files; `None` without regions.
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

#[cfg(test)]
mod tests {
    use itm_core::data::RegionSource;
    use scenes::{Scenes, export};

    use super::*;
    use crate::config::{Config, ScenesConfig};
    use crate::tests;

    /// Regions of Scenes are in memory, and regions of a folder are not. There are 12 images of 12 regions of 704 numbers.
    #[test]
    fn regions_in_files_are_told() {
        let (mut config, plain) = tests::small_scenes([7, 2, 3]);
        config.target.regions = Some(RegionSource::Given);
        let open = |config: &Config, data| Source::open(config, data, &tests::configs()).unwrap();
        let held = open(&config, None).1;
        let folder = tempfile::tempdir().unwrap();
        let sizes = ScenesConfig { train: 7, val: 2, test: 3, pixels: 32, ..Default::default() };
        export(&Scenes::generate(0, sizes.sizes()), folder.path()).unwrap();
        let mut config = Config::load(&tests::configs(), "fne-flickr8k").unwrap();
        config.target.regions = Some(RegionSource::Given);
        let mapped = open(&config, Some(folder.path())).1;
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
