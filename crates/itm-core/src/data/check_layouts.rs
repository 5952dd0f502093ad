//! The check of each layout.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::check_report::{CheckReport, Layout, LayoutReport};
use super::fne_annotations::{picture_of, split_of};
use super::images::{ImageInfo, LARGEST_IMAGE_FILE, is_picture, probe_bytes, turned_pictures};
use super::names::{Extra, Names};
use super::precomp::{karpathy_file, precomp_folder};
use super::precomp_split::{PrecompSplit, SplitFiles};
use super::{
    CaptionRule, Dataset, Embeddings, Features, FneAnnotations, ImageFolder, Judgements, Karpathy,
    KarpathyImage, Leakage, LoadOptions, Npy, RegionSource, Split, SplitData, json, load_pictures,
    load_precomp, originals,
};
use crate::files::{self, FileHash, LARGEST_TEXT, Manifest, file_name};
use crate::{Pairs, Result};

/// Captions per image that the protocols need.
const PER_IMAGE: usize = 5;

/// Checks every JSON file of the folder that is Karpathy's or FNE's.
pub(crate) fn json_files(report: &mut CheckReport, entries: &[PathBuf]) {
    let mut annotations = Vec::new();
    for path in entries.iter().filter(|p| p.extension().is_some_and(|e| e == "json")) {
        let bytes = match files::read(path, LARGEST_TEXT) {
            Ok(bytes) => bytes,
            Err(error) => {
                report.problems.push(error.to_string());
                continue;
            }
        };
        let place = json::place(path);
        let karpathy = file_name(&place).starts_with("dataset_");
        match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
            // A list whose name has no split may be some other list.
            Some(b'[') if split_of(&place).is_some() => annotations.push((path.clone(), bytes)),
            _ if karpathy => {
                report.manifest.add(&report.dir, path, &bytes);
                self::karpathy(report, path, &bytes);
            }
            _ => {}
        }
    }
    if !annotations.is_empty() {
        fne(report, annotations);
    }
}

fn karpathy(report: &mut CheckReport, path: &Path, bytes: &[u8]) {
    match Karpathy::parse(&json::place(path), bytes, CaptionRule::All) {
        Ok(json) => of_images(report, LayoutReport::new(Layout::Karpathy, path), &json),
        Err(error) => {
            report.layouts.push(LayoutReport::new(Layout::Karpathy, path));
            report.problems.push(error.to_string());
        }
    }
}

/// Checks captions and lists as their publishers gave them, if no other list of images is there.
pub(crate) fn originals(report: &mut CheckReport) {
    if !report.layouts.is_empty() || !originals::are_in(&report.dir) {
        return;
    }
    let dir = report.dir.clone();
    let found = LayoutReport::new(Layout::Originals, &dir);
    match originals::read(&dir, CaptionRule::All, &mut report.manifest) {
        Ok(Some(images)) => of_images(report, found, &images),
        Ok(None) => (),
        Err(error) => {
            report.layouts.push(found);
            report.problems.push(error.to_string());
        }
    }
}

/// Counts images and captions, and reads every picture.
fn of_images(report: &mut CheckReport, mut found: LayoutReport, json: &Karpathy) {
    if !json.dataset.is_empty() {
        found.notes.push(format!("dataset \"{}\"", json.dataset));
    }
    for split in Split::ALL {
        let images: Vec<_> = json.images_of(split).collect();
        if !images.is_empty() {
            found.count(split, images.len(), images.iter().map(|i| i.captions.len()).sum());
        }
    }
    let of_protocols = json.images.iter().filter(|image| image.captions.len() < PER_IMAGE).count();
    if of_protocols > 0 {
        found.notes.push(format!(
            "{of_protocols} images have fewer than {PER_IMAGE} captions: only targets with protocol = \"full\" take them"
        ));
    }
    let part = |split| {
        let images = || json.images_of(split);
        let counts = images().map(|i| i.captions.len());
        let captions = images().flat_map(|i| i.captions.clone()).collect();
        named_part(images().map(|i| i.filename.clone()).collect(), captions, counts)
    };
    leakage(report, &mut found, Split::ALL.map(part));
    let folder = ImageFolder::new(&report.dir, Some(json));
    let place = |image: &KarpathyImage| {
        folder.image_path(&image.filename).unwrap_or_else(|| image.path(&report.dir))
    };
    let paths = json.images.iter().map(place).collect();
    pictures(report, &mut found, paths);
    report.layouts.push(found);
}

/// Reads every picture, in parallel; the results are in order.
fn pictures(report: &mut CheckReport, found: &mut LayoutReport, paths: Vec<PathBuf>) {
    let Some(folder) = paths.first().and_then(|p| p.parent()) else { return };
    if !paths.iter().any(|path| path.exists()) {
        found.notes.push(format!("no pictures below {}", folder.display()));
        return;
    }
    let results: Vec<_> = paths.par_iter().map(|path| picture(&report.dir, path)).collect();
    let mut problems = Vec::new();
    let (mut whole, mut turned) = (0, 0);
    for result in results {
        match result {
            Ok((hash, Ok(info))) => {
                whole += 1;
                turned += usize::from(info.turned);
                report.manifest.files.push(hash);
            }
            Ok((hash, Err(problem))) => {
                problems.push(problem);
                report.manifest.files.push(hash);
            }
            Err(error) => problems.push(error),
        }
    }
    found.notes.push(format!("{whole} of {} pictures are there and whole", paths.len()));
    if turned > 0 {
        found.notes.push(turned_pictures(turned));
    }
    report.extend(problems);
    let folders: HashSet<_> = paths.iter().filter_map(|p| p.parent()).collect();
    let known: HashSet<_> = paths.iter().collect();
    let others = folders.into_iter().filter_map(|f| files::entries(f).ok()).flatten();
    let others = others.filter(|p| is_picture(p) && !known.contains(p)).count();
    if others > 0 {
        found.notes.push(format!("{others} pictures beside them are not listed"));
    }
}

/// The hash of a picture, and what it says about itself.
fn picture(root: &Path, path: &Path) -> Result<(FileHash, Result<ImageInfo>)> {
    let bytes = files::read(path, LARGEST_IMAGE_FILE)?;
    let info = probe_bytes(&path.display().to_string(), &bytes);
    Ok((FileHash::of(root, path, &bytes), info))
}

fn fne(report: &mut CheckReport, annotations: Vec<(PathBuf, Vec<u8>)>) {
    let mut found = LayoutReport::new(Layout::FneAnnotations, &report.dir);
    let mut parts = Split::ALL.map(|_| named_part(Vec::new(), Vec::new(), std::iter::empty()));
    let mut paths = Vec::new();
    for (path, bytes) in annotations {
        report.manifest.add(&report.dir, &path, &bytes);
        let place = json::place(&path);
        let rule = CaptionRule::First(PER_IMAGE);
        let file = match FneAnnotations::parse(&place, &bytes, rule) {
            Ok(file) => file,
            Err(error) => {
                report.problems.push(error.to_string());
                continue;
            }
        };
        let name = file_name(&place);
        found.count(name, file.images.len(), file.captions.len());
        if file.dropped.captions > 0 {
            let captions = file.dropped.captions;
            found
                .notes
                .push(format!("{name}: {captions} captions beyond {PER_IMAGE} per image dropped"));
        }
        paths.extend(file.images.iter().map(|image| picture_of(&report.dir, image)));
        match split_of(&place) {
            None => (),
            Some(split) => {
                let names = file.images.iter().map(|i| file_name(i).to_string()).collect();
                let part = &mut parts[split as usize];
                *part = SplitData {
                    images: names,
                    captions: file.captions,
                    pairs: file.pairs,
                    features: Features { dim: 0, values: Vec::new() },
                    embeddings: Embeddings::default(),
                    regions: None,
                };
            }
        }
    }
    leakage(report, &mut found, parts);
    pictures(report, &mut found, paths);
    report.layouts.push(found);
}

fn named_part(
    images: Vec<String>,
    captions: Vec<String>,
    counts: impl Iterator<Item = usize>,
) -> SplitData {
    let image_of_text = counts.enumerate().flat_map(|(i, n)| std::iter::repeat_n(i, n)).collect();
    let pairs = Pairs::new(images.len(), image_of_text).expect("counted from the images");
    SplitData {
        features: Features { dim: 0, values: Vec::new() },
        embeddings: Embeddings::default(),
        regions: None,
        images,
        captions,
        pairs,
    }
}

/// Reports what the splits share by name and caption; nothing if there is only one split.
fn leakage(report: &mut CheckReport, found: &mut LayoutReport, parts: [SplitData; 3]) {
    if parts.iter().filter(|part| !part.images.is_empty()).count() < 2 {
        return;
    }
    let [train, val, test] = parts;
    let data = Dataset { name: String::new(), train, val, test, sha256: String::new() };
    match Leakage::of(&data).refuse_images(&found.place) {
        Ok(leakage) => found.notes.extend(leakage.to_string().lines().map(str::to_string)),
        Err(error) => report.problems.push(error.to_string()),
    }
}

/// Checks `precomp/`, or the folder that holds the features instead.
pub(crate) fn precomp(report: &mut CheckReport) {
    let Ok(folder) = precomp_folder(&report.dir) else { return };
    let dir = report.dir.clone();
    let before = report.problems.len();
    let mut found = LayoutReport::new(Layout::Precomp, &folder);
    let json = karpathy_file(&dir).ok().flatten();
    let json = json.and_then(|path| Karpathy::read(path, CaptionRule::All).ok());
    let names = json.as_ref().map(Names::new);
    let splits = [
        ("train", Split::Train, Extra::LeftOut),
        ("train_extra", Split::Train, Extra::Included),
        ("dev", Split::Val, Extra::LeftOut),
        ("val", Split::Val, Extra::LeftOut),
        ("test", Split::Test, Extra::LeftOut),
        ("testall", Split::Test, Extra::LeftOut),
    ];
    for (name, split, extra) in splits {
        let paths = SplitFiles::of(&folder, name);
        if !paths.ims.exists() && !paths.caps.exists() && !paths.ids.exists() {
            continue;
        }
        let read = PrecompSplit::open_hashed(
            &dir,
            &folder,
            name,
            CaptionRule::All,
            Some(&mut report.manifest),
        );
        let part = match read {
            Ok(part) => part,
            Err(error) => {
                let error = match &names {
                    Some(names) => names.explain(error, &folder, name, split),
                    None => error,
                };
                report.problems.push(error.to_string());
                continue;
            }
        };
        found.count(name, part.images(), part.captions.len());
        found.notes.push(part.describe());
        let width = part.features.shape().last().copied().unwrap_or(0);
        found.memory += (part.images() * width * 4) as u64;
        found.memory += part.captions.iter().map(|c| c.len() as u64 + 24).sum::<u64>();
        report.extend(not_finite(&part.features));
        let mut problems = other_arrays(report, &folder, &part, &mut found);
        if problems.is_empty() {
            problems = regions(report, &folder, &part, &mut found);
        }
        report.extend(problems);
        if let Some(names) = &names {
            let compared = names.compare(&folder, &part, split, extra);
            report.extend(compared.mismatches);
            found.notes.extend(compared.notes);
        }
    }
    if report.problems.len() == before {
        let options = LoadOptions { captions: CaptionRule::All, ..Default::default() };
        match load_precomp(&dir, &options) {
            Ok(loaded) => {
                let lines = loaded.leakage.to_string();
                found.notes.extend(lines.lines().map(str::to_string));
                found.notes.push(format!("data_sha256 of a run on it: {}", loaded.dataset.sha256));
                judgements(report, &mut found, &loaded.dataset.test);
            }
            Err(error) => report.problems.push(error.to_string()),
        }
    } else {
        found.notes.push("leakage is checked when the problems below are gone".into());
    }
    report.layouts.push(found);
}

/// Loads the pictures as a run does, if nothing else in the folder can be loaded.
pub(crate) fn loads(report: &mut CheckReport) {
    let listed = |layout: &LayoutReport| layout.layout != Layout::Precomp;
    let features = report.layouts.iter().any(|layout| layout.layout == Layout::Precomp);
    if features || !report.problems.is_empty() || !report.layouts.iter().any(listed) {
        return;
    }
    match load_pictures(&report.dir, CaptionRule::All) {
        Ok(loaded) => {
            let Some(mut found) = report.layouts.pop() else { return };
            judgements(report, &mut found, &loaded.dataset.test);
            report.layouts.push(found);
        }
        Err(error) => report.problems.push(error.to_string()),
    }
}

/// Reads the judgements of the folder, as a run does.
fn judgements(report: &mut CheckReport, found: &mut LayoutReport, test: &SplitData) {
    match Judgements::of_folder(&report.dir, test, &mut report.manifest) {
        Ok(sets) => found.notes.extend(sets.iter().map(Judgements::to_string)),
        Err(error) => report.problems.push(error.to_string()),
    }
}

/// An error for every row with a value that is not finite.
fn not_finite(npy: &Npy) -> Vec<crate::Error> {
    let mut row = vec![0.0; npy.row_len()];
    (0..npy.rows()).filter_map(|i| npy.row_into(i, &mut row).err()).collect()
}

/// Checks the other arrays of the split, such as a grid: one row per image or per caption.
fn other_arrays(
    report: &mut CheckReport,
    folder: &Path,
    part: &PrecompSplit,
    found: &mut LayoutReport,
) -> Vec<crate::Error> {
    let mut problems = Vec::new();
    let begin = format!("{}_", part.name);
    for path in files::entries(folder).unwrap_or_default() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(&begin) else { continue };
        let ours = rest.ends_with(".npy") && rest != "ims.npy" && !rest.starts_with("extra_");
        if !ours {
            continue;
        }
        match Npy::open(&path) {
            Err(error) => problems.push(error),
            Ok(npy) => {
                report.manifest.add(&report.dir, &path, npy.file_bytes());
                let (dtype, shape) = (npy.dtype(), npy.shape());
                found.notes.push(format!("{name}: {dtype} {shape:?}"));
                let rows = [part.images(), part.captions.len()];
                if !rows.contains(&npy.rows()) {
                    let expected = format!("{} rows, one per image", part.images());
                    problems.push(crate::Error::invalid(npy.place(), expected, npy.rows()));
                }
            }
        }
    }
    problems
}

/// Checks the regions of the split, from every source that exists.
fn regions(
    report: &mut CheckReport,
    folder: &Path,
    part: &PrecompSplit,
    found: &mut LayoutReport,
) -> Vec<crate::Error> {
    let (mut problems, mut read) = (Vec::new(), Manifest::default());
    for source in RegionSource::ALL.into_iter().filter(|s| s.is_there(folder, &part.name)) {
        match source.open((report.dir.as_path(), folder), part, Some(&mut read)) {
            Ok(regions) => found.notes.push(format!("{}: {}", part.name, regions.describe())),
            Err(error) => problems.push(error),
        }
    }
    let known = &mut report.manifest.files;
    read.files.into_iter().for_each(|file| {
        if !known.contains(&file) {
            known.push(file);
        }
    });
    problems
}

impl FileHash {
    fn of(root: &Path, path: &Path, bytes: &[u8]) -> Self {
        let mut one = Manifest::default();
        one.add(root, path, bytes);
        one.files.remove(0)
    }
}
