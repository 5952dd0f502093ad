//! Loads a folder with precomputed features as a [`Dataset`].

use std::path::{Path, PathBuf};

use super::image_folder::ImageFolder;
use super::leakage::leakage;
use super::names::{EXTRA, Names};
use super::parts::{first_captions, join, same_widths};
use super::precomp_split::{PrecompSplit, SplitFiles};
use super::{CaptionRule, Dataset, Karpathy, RegionSource, SplitData};
use crate::files::{self, Manifest};
use crate::{Error, Result};

/// What [`load_precomp`] reads from a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Which captions of an image are read: 5 in the protocols of all published sets.
    pub captions: CaptionRule,
    /// Which files are the test split.
    pub test: TestSet,
    /// The most captions of the validation split: the first ones of the files are kept.
    pub val_captions: Option<usize>,
    /// Which region features are read in addition to the global ones.
    pub regions: Option<RegionSource>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        let captions = CaptionRule::First(5);
        Self { captions, test: TestSet::Test, val_captions: None, regions: None }
    }
}

/// Which files are the test split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestSet {
    /// `test_*`; COCO: 1,000 images.
    Test,
    /// `testall_*`, or `test_*` if there is no such file; COCO: 5,000 images.
    TestAll,
}

/// A data set, and facts about it for a report.
#[derive(Debug)]
pub struct Loaded {
    /// The three splits.
    pub dataset: Dataset,
    /// The name of the data in `dataset_*.json`, if there is one.
    pub declared: Option<String>,
    /// Finds the pictures; not every image has one.
    pub images: ImageFolder,
    /// Every file that was read.
    pub manifest: Manifest,
    /// What held-out splits share with training, one line each. If they share an image, loading fails.
    pub leakage: Vec<String>,
    /// Notes on layout, repetitions and missing data, one line each.
    pub notes: Vec<String>,
}

/// Loads a folder with precomputed features.
///
/// ```text
/// DIR/dataset_NAME.json             Karpathy's captions and splits; optional, everything is checked against it
/// DIR/images/…                      pictures, for reports; optional
/// DIR/precomp/train_ims.npy         [n, dim] or regions [n, r, dim] (their mean is taken); images once or repeated
/// DIR/precomp/train_caps.txt        as many lines for every image, one after another
/// DIR/precomp/train_of.txt          the row or the id of each line's image, if images have different numbers of captions
/// DIR/precomp/train_ids.txt         file names, one per image; optional
/// DIR/precomp/train_extra_*         more of the same; optional
/// DIR/precomp/val_* (or dev_*), test_* (or testall_*)
/// DIR/precomp/…_regions.npy, …_grid.npy, …   region features, if the caller wants them: see [`RegionSource`]
/// ```
///
/// If the caller wants regions and `train_extra` has none, `train_extra` is left out, so that all methods train on the
/// same images.
///
/// The features may also be in `DIR` itself, or in its only folder `*_precomp`.
///
/// # Errors
/// If anything is missing, malformed or contradictory, or an image is in two splits.
pub fn load_precomp(dir: impl AsRef<Path>, options: &LoadOptions) -> Result<Loaded> {
    let dir = dir.as_ref();
    let folder = precomp_folder(dir)?;
    let mut manifest = Manifest::default();
    let json = Karpathy::of_folder(dir, options.captions, &mut manifest)?.map(|(_, json)| json);
    let names = json.as_ref().map(Names::new);
    let mut notes = vec![match &json {
        Some(json) => format!("captions and names checked against dataset \"{}\"", json.dataset),
        None => "no dataset_*.json: names and captions could not be checked against one".into(),
    }];

    let of_files = options.regions.filter(|regions| *regions != RegionSource::Patches);
    let mut read = |name: &str| -> Result<SplitData> {
        let part = PrecompSplit::open_hashed(dir, &folder, name, options.captions, &mut manifest);
        let part = part.map_err(|e| Names::explain(names.as_ref(), e, &folder, name))?;
        notes.push(part.describe());
        let images = match &names {
            Some(names) => names.resolve(&part, &mut notes)?,
            None => part.ids.clone().unwrap_or_else(|| part.numbered()),
        };
        let features = part.global_features()?;
        let open = |asked: RegionSource| asked.open((dir, &folder), &part, &mut manifest);
        let regions = of_files.map(open).transpose()?;
        notes.extend(regions.iter().map(|regions| format!("{name}: {}", regions.describe())));
        let PrecompSplit { captions, pairs, .. } = part;
        Ok(SplitData { features, regions, images, captions, pairs, ..SplitData::default() })
    };

    let mut train = read("train")?;
    let ims = |name: &str| SplitFiles::of(&folder, name).ims.exists();
    let without = of_files.is_some_and(|asked| !asked.is_there(&folder, EXTRA));
    if ims(EXTRA) && !without {
        train = join(train, read(EXTRA)?, &folder)?;
    }
    // `val` here, `dev` in the files of the SCAN program.
    let neither = || Error::invalid(folder.display(), "val_ims.npy or dev_ims.npy", "neither");
    let val = read(["val", "dev"].into_iter().find(|name| ims(name)).ok_or_else(neither)?)?;
    let test = match options.test {
        TestSet::TestAll if ims("testall") => "testall",
        TestSet::Test | TestSet::TestAll => "test",
    };
    let test = read(test)?;
    if ims(EXTRA) && without {
        notes.push("train_extra has no such regions: every row learns without these images".into());
    }
    let val = match options.val_captions {
        Some(most) => first_captions(val, most, &mut notes)?,
        None => val,
    };
    for (part, name) in [(&val, "val"), (&test, "test")] {
        same_widths(&folder, ("training", &train), (name, part))?;
    }
    let named = json.as_ref().map(|j| j.dataset.clone()).filter(|name| !name.is_empty());
    let name = named.clone().unwrap_or_else(|| folder_name(dir));
    let dataset = Dataset { name, train, val, test, sha256: manifest.combined() };
    let leakage = leakage(&dataset, dir)?;
    let images = ImageFolder::new(dir, json.as_ref());
    Ok(Loaded { dataset, declared: named, images, manifest, leakage, notes })
}

/// The folder of the feature files.
pub(crate) fn precomp_folder(dir: &Path) -> Result<PathBuf> {
    let named = dir.join("precomp");
    if named.is_dir() {
        return Ok(named);
    }
    if SplitFiles::of(dir, "train").ims.exists() {
        return Ok(dir.to_path_buf());
    }
    let ends = |p: &Path| p.is_dir() && p.to_string_lossy().ends_with("_precomp");
    let folders: Vec<_> = files::entries(dir)?.into_iter().filter(|p| ends(p)).collect();
    match folders.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let expected = "precomp/train_ims.npy, train_ims.npy or a folder *_precomp";
            Err(Error::invalid(dir.display(), expected, "none of them"))
        }
        [a, b, ..] => {
            let got = format!("{} and {}", a.display(), b.display());
            Err(Error::invalid(dir.display(), "one folder *_precomp", got))
        }
    }
}

pub(super) fn folder_name(dir: &Path) -> String {
    let full = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    full.file_name().map_or_else(|| "data".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
