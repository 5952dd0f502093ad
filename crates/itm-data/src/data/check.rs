//! What is in a data folder, and what is wrong with it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::check_report::{CheckReport, LayoutReport, size};
use super::fne_annotations::{is_list, picture_of, split_of};
use super::images::{ImageInfo, LARGEST_IMAGE_FILE, is_picture, probe_bytes, turned_pictures};
use super::karpathy::karpathy_file;
use super::leakage::leakage;
use super::names::{EXTRA, Names};
use super::precomp::precomp_folder;
use super::precomp_split::{PrecompSplit, SplitFiles};
use super::{
    CaptionRule, Dataset, FneAnnotations, ImageFolder, Judgements, Karpathy, KarpathyImage,
    LoadOptions, Npy, RegionSource, Split, SplitData, load_pictures, load_precomp, originals,
};
use crate::files::{self, FileHash, LARGEST_TEXT, Manifest, file_name};
use crate::{Error, Result};

/// Captions per image that the protocols need.
const PER_IMAGE: usize = 5;

/// Checks a data folder: which layouts it holds, what is in them, and what is wrong with them.
///
/// # Errors
/// If the folder cannot be read or holds none of the layouts. Problems inside a layout are in
/// [`CheckReport::problems`].
pub fn check(dir: impl AsRef<Path>) -> Result<CheckReport> {
    let dir = dir.as_ref();
    let entries = files::entries(dir)?;
    let manifest = Manifest::default();
    let mut report = CheckReport { dir: dir.into(), layouts: vec![], manifest, problems: vec![] };
    json_files(&mut report, &entries);
    originals(&mut report);
    if !precomp(&mut report) {
        loads(&mut report);
    }
    let mut told = HashSet::new();
    report.problems.retain(|problem| told.insert(problem.clone())); // two layouts may share a broken file
    if report.layouts.is_empty() && report.problems.is_empty() {
        let expected = "dataset_*.json, FNE annotations, captions with lists of the splits, or precomp/train_ims.npy";
        let inside: Vec<_> = entries.iter().filter(|p| p.is_dir() && holds_layout(p)).collect();
        let got = match inside.as_slice() {
            [] => "none of them".to_string(),
            [first, ..] => format!("none of them; try {}", first.display()),
        };
        return Err(Error::invalid(dir.display(), expected, got));
    }
    Ok(report)
}

fn holds_layout(dir: &Path) -> bool {
    let json = karpathy_file(dir).is_ok_and(|found| found.is_some());
    json || precomp_folder(dir).is_ok()
}

/// Checks every JSON file of the folder that is Karpathy's or FNE's.
fn json_files(report: &mut CheckReport, entries: &[PathBuf]) {
    let mut annotations = Vec::new();
    for path in entries.iter().filter(|p| p.extension().is_some_and(|e| e == "json")) {
        let Some(bytes) = report.ok(files::read(path, LARGEST_TEXT)) else { continue };
        let place = path.display().to_string();
        // A list whose name has no split may be some other list.
        if is_list(&bytes) && split_of(&place).is_some() {
            annotations.push((path.clone(), bytes));
        } else if file_name(&place).starts_with("dataset_") {
            report.manifest.add(&report.dir, path, &bytes);
            let found = LayoutReport::new("Karpathy JSON", path);
            of_images(report, found, Karpathy::parse(&place, &bytes, CaptionRule::All));
        }
    }
    if !annotations.is_empty() {
        fne(report, annotations);
    }
}

/// Checks captions and lists as their publishers gave them, if no other list of images is there.
fn originals(report: &mut CheckReport) {
    if !report.layouts.is_empty() || !originals::are_in(&report.dir) {
        return;
    }
    let found = LayoutReport::new("captions and lists of the splits", &report.dir);
    let read = originals::read(&report.dir, CaptionRule::All, &mut report.manifest);
    if let Some(images) = read.transpose() {
        of_images(report, found, images);
    }
}

/// Counts images and captions, and reads every picture.
fn of_images(report: &mut CheckReport, mut found: LayoutReport, json: Result<Karpathy>) {
    let Some(json) = report.ok(json) else {
        report.layouts.push(found);
        return;
    };
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
    shared(report, &mut found, Split::ALL.map(|split| json.part(split)));
    let folder = ImageFolder::new(&report.dir, Some(&json));
    let place = |image: &KarpathyImage| {
        folder.image_path(&image.filename).unwrap_or_else(|| image.path(&report.dir))
    };
    let paths = json.images.iter().map(place).collect();
    pictures(report, &mut found, paths);
    report.layouts.push(found);
}

/// Reads every picture, in parallel; the results are in order.
fn pictures(report: &mut CheckReport, found: &mut LayoutReport, mut paths: Vec<PathBuf>) {
    let (inside, listed) = (ImageFolder::new(&report.dir, None), paths.len());
    let mut links = vec![];
    paths.retain(|path| {
        let out = inside.leads_out(path);
        links.extend(out.clone().map(|to| (path.clone(), to)));
        out.is_none()
    });
    if let Some((path, to)) = links.first() {
        let expected = "pictures in the folder (links out of it are not followed)";
        let got = format!("links out of it: {}, the first to {}", links.len(), to.display());
        report.extend(vec![Error::invalid(path.display(), expected, got)]);
    }
    let Some(folder) = paths.first().and_then(|p| p.parent()) else { return };
    if !paths.iter().any(|path| path.exists()) {
        found.notes.push(format!("no pictures below {}", folder.display()));
        return;
    }
    let results: Vec<_> = paths.par_iter().map(|path| picture(&report.dir, path)).collect();
    let (hashes, infos): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    report.manifest.files.extend(hashes.into_iter().flatten());
    let whole = infos.iter().flatten().count();
    let turned = infos.iter().flatten().filter(|info| info.orientation != 1).count();
    found.notes.push(format!("{whole} of {listed} pictures are there and whole"));
    if turned > 0 {
        found.notes.push(turned_pictures(turned));
    }
    report.extend(infos.into_iter().filter_map(Result::err).collect::<Vec<_>>());
    let folders: HashSet<_> = paths.iter().filter_map(|p| p.parent()).collect();
    let known: HashSet<_> = paths.iter().collect();
    let others = folders.into_iter().filter_map(|f| files::entries(f).ok()).flatten();
    let others = others.filter(|p| is_picture(p) && !known.contains(p)).count();
    if others > 0 {
        found.notes.push(format!("{others} pictures beside them are not listed"));
    }
}

/// The hash of a picture, if it can be read, and what it says about itself.
fn picture(root: &Path, path: &Path) -> (Option<FileHash>, Result<ImageInfo>) {
    let bytes = files::read(path, LARGEST_IMAGE_FILE);
    let hash = bytes.as_ref().ok().map(|bytes| FileHash::of(root, path, bytes));
    (hash, bytes.and_then(|bytes| probe_bytes(&path.display().to_string(), &bytes)))
}

fn fne(report: &mut CheckReport, annotations: Vec<(PathBuf, Vec<u8>)>) {
    let mut found = LayoutReport::new("FNE annotations", &report.dir);
    let mut parts = Split::ALL.map(|_| SplitData::default());
    let mut paths = Vec::new();
    for (path, bytes) in annotations {
        report.manifest.add(&report.dir, &path, &bytes);
        let place = path.display().to_string();
        let file = FneAnnotations::parse(&place, &bytes, CaptionRule::First(PER_IMAGE));
        let Some(file) = report.ok(file) else { continue };
        let (name, dropped) = (file_name(&place), file.dropped.captions);
        found.count(name, file.images.len(), file.captions.len());
        if dropped > 0 {
            let note = format!("{name}: {dropped} captions beyond {PER_IMAGE} per image dropped");
            found.notes.push(note);
        }
        paths.extend(file.images.iter().map(|image| picture_of(&report.dir, image)));
        if let Some(split) = split_of(&place) {
            parts[split as usize] = file.into_part();
        }
    }
    shared(report, &mut found, parts);
    pictures(report, &mut found, paths);
    report.layouts.push(found);
}

/// Reports what the splits share by name and caption; nothing if there is only one split.
fn shared(report: &mut CheckReport, found: &mut LayoutReport, parts: [SplitData; 3]) {
    if parts.iter().filter(|part| !part.images.is_empty()).count() < 2 {
        return;
    }
    let [train, val, test] = parts;
    let data = Dataset { name: String::new(), train, val, test, sha256: String::new() };
    found.notes.extend(report.ok(leakage(&data, &found.place)).into_iter().flatten());
}

/// Checks `precomp/`, or the folder that holds the features instead. Returns whether there is one.
fn precomp(report: &mut CheckReport) -> bool {
    let Ok(folder) = precomp_folder(&report.dir) else { return false };
    let (before, rule) = (report.problems.len(), CaptionRule::All);
    let mut found = LayoutReport::new("precomputed features", &folder);
    let mut memory = 0;
    let json = Karpathy::of_folder(&report.dir, rule, &mut Manifest::default()).ok().flatten();
    let names = json.as_ref().map(|(_, json)| Names::new(json));
    for name in ["train", EXTRA, "dev", "val", "test", "testall"] {
        let paths = SplitFiles::of(&folder, name);
        if !paths.ims.exists() && !paths.caps.exists() && !paths.ids.exists() {
            continue;
        }
        let (dir, manifest) = (&report.dir, &mut report.manifest);
        let part = PrecompSplit::open_hashed(dir, &folder, name, rule, manifest);
        let part = part.map_err(|e| Names::explain(names.as_ref(), e, &folder, name));
        let Some(part) = report.ok(part) else { continue };
        found.count(name, part.images(), part.captions.len());
        found.notes.push(part.describe());
        if let Some(empty) = part.captions.iter().position(|caption| caption.trim().is_empty()) {
            let line = format!("{} line {}", part.files.caps.display(), empty + 1);
            found.notes.push(format!(
                "{line}: an empty caption: only models that put marks around captions take it"
            ));
        }
        let width = part.features.shape().last().copied().unwrap_or(0);
        memory += (part.images() * width * 4) as u64;
        memory += part.captions.iter().map(|c| c.len() as u64 + 24).sum::<u64>();
        report.extend(not_finite(&part.features));
        let problems = arrays_and_regions(report, &folder, &part, &mut found);
        report.extend(problems);
        if let Some(names) = &names {
            let compared = names.compare(&part);
            report.extend(compared.mismatches);
            found.notes.extend(compared.notes);
        }
    }
    if report.problems.len() == before {
        let options = LoadOptions { captions: rule, ..Default::default() };
        if let Some(loaded) = report.ok(load_precomp(&report.dir, &options)) {
            found.notes.extend(loaded.leakage);
            found.notes.push(format!("data_sha256 of a run on it: {}", loaded.dataset.sha256));
            judgements(report, &mut found, &loaded.dataset.test);
        }
    } else {
        found.notes.push("leakage is checked when the problems below are gone".into());
    }
    if memory > 0 {
        found.notes.push(format!("in memory: {}", size(memory)));
    }
    report.layouts.push(found);
    true
}

/// Loads the pictures of a folder without features as a run does, if it has no problem yet.
fn loads(report: &mut CheckReport) {
    if !report.problems.is_empty() {
        return;
    }
    let Some(mut found) = report.layouts.pop() else { return };
    if let Some(loaded) = report.ok(load_pictures(&report.dir, CaptionRule::All)) {
        judgements(report, &mut found, &loaded.dataset.test);
    }
    report.layouts.push(found);
}

/// Reads the judgements of the folder, as a run does.
fn judgements(report: &mut CheckReport, found: &mut LayoutReport, test: &SplitData) {
    let sets = Judgements::of_folder(&report.dir, test, &mut report.manifest);
    found.notes.extend(report.ok(sets).iter().flatten().map(Judgements::to_string));
}

/// An error for every row with a value that is not finite.
fn not_finite(npy: &Npy) -> Vec<Error> {
    let mut row = vec![0.0; npy.row_len()];
    (0..npy.rows()).filter_map(|i| npy.row_into(i, &mut row).err()).collect()
}

/// Checks the other arrays of the split, such as a grid: one row per image or per caption. If all have them, checks the regions
/// from every source that exists.
fn arrays_and_regions(
    report: &mut CheckReport,
    folder: &Path,
    part: &PrecompSplit,
    found: &mut LayoutReport,
) -> Vec<Error> {
    let mut problems = Vec::new();
    let begin = format!("{}_", part.name);
    for path in files::entries(folder).unwrap_or_default() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_other = |end: &str| end != "ims.npy" && !end.starts_with("extra_");
        if !name.ends_with(".npy") || !name.strip_prefix(&begin).is_some_and(is_other) {
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
                    problems.push(Error::invalid(npy.place(), expected, npy.rows()));
                }
            }
        }
    }
    if !problems.is_empty() {
        return problems;
    }
    let mut read = Manifest::default();
    for source in RegionSource::ALL.into_iter().filter(|s| s.is_there(folder, &part.name)) {
        match source.open((&report.dir, folder), part, &mut read) {
            Ok(regions) => found.notes.push(format!("{}: {}", part.name, regions.describe())),
            Err(error) => problems.push(error),
        }
    }
    for file in read.files {
        if !report.manifest.files.contains(&file) {
            report.manifest.files.push(file);
        }
    }
    problems
}

#[cfg(test)]
mod tests;
