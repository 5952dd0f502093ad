use std::fs;

use super::*;
use crate::data::tests::{Folder, lines, npy, npy_of};
use crate::data::{LoadOptions, Loaded, RegionRows, TestSet, load_precomp};

fn options(regions: RegionSource) -> LoadOptions {
    LoadOptions { regions: Some(regions), ..Default::default() }
}

fn load(folder: &Folder, regions: RegionSource) -> Result<Loaded> {
    load_precomp(folder.dir.path(), &options(regions))
}

/// The error line without the folder's name.
fn error(folder: &Folder, regions: RegionSource) -> String {
    let line = load(folder, regions).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line.replace(&format!("{}/", folder.dir.path().display()), "")
}

/// Name, first image, images.
const SPLITS: [(&str, usize, usize); 3] = [("train", 0, 4), ("val", 6, 2), ("test", 8, 3)];

/// Image i has regions (i, 0, 1) and (i + 2, 4, 7).
fn values(images: impl Iterator<Item = usize>) -> Vec<f32> {
    images.flat_map(|i| [i, 0, 1, i + 2, 4, 7].map(|x| x as f32)).collect()
}

/// A grid of two regions in the folder of the fixture, as bytes, with scale and boxes.
fn with_grid() -> Folder {
    let folder = Folder::new();
    for (name, first, count) in SPLITS {
        let bytes = values(first..first + count).into_iter().map(|x| x as u8);
        folder.write(&format!("precomp/{name}_grid.npy"), npy_of("|i1", &[count, 2, 3], bytes));
    }
    folder.write("precomp/grid_scale.npy", npy(&[3], [0.5, 1.0, 2.0]));
    let boxes = [0.0, 0.0, 0.5, 1.0, 0.5, 0.0, 1.0, 1.0];
    folder.write("precomp/grid_boxes.npy", npy(&[2, 4], boxes));
    folder
}

/// Regions beside the features, with boxes that differ between images.
fn with_regions() -> Folder {
    let folder = Folder::new();
    for (name, first, count) in SPLITS {
        let write =
            |end: &str, bytes: Vec<u8>| folder.write(&format!("precomp/{name}_{end}"), bytes);
        write("regions.npy", npy(&[count, 2, 3], values(first..first + count)));
        let boxes = (0..2 * count).flat_map(|k| [0.0, 0.0, k as f32 / 10.0, 1.0]);
        write("boxes.npy", npy(&[count, 2, 4], boxes));
    }
    folder
}

fn rows(regions: Option<&Regions>, images: &[usize]) -> RegionRows {
    regions.unwrap().rows(images).unwrap()
}

#[test]
fn a_grid_is_bytes_times_a_scale() {
    let folder = with_grid();
    let loaded = load(&folder, RegionSource::Grid).unwrap();
    let data = &loaded.dataset;
    let test = rows(data.test.regions.as_ref(), &[2, 0]);
    assert_eq!(test.counts, [2, 2]);
    assert_eq!(test.values, [5.0, 0.0, 2.0, 6.0, 4.0, 14.0, 4.0, 0.0, 2.0, 5.0, 4.0, 14.0]);
    for image in [0, 2] {
        let boxes = data.test.regions.as_ref().unwrap().boxes(image).unwrap();
        assert_eq!((boxes.len(), boxes[1].x1, boxes[1].x2), (2, 0.5, 1.0));
    }
    // Global features stay as they are.
    assert_eq!(data.test.features.row(2), [1000.0, 1001.0, 1002.0]);
    // The extra images have no grid, so no row learns from them.
    assert_eq!((data.train.images.len(), data.train.features.rows()), (4, 4));
    assert_eq!(data.train.regions.as_ref().unwrap().len(), 4);
    for note in ["train_extra has no such regions", "test: 2 regions per image, 3 wide, with boxes"]
    {
        assert!(loaded.notes.iter().any(|n| n.contains(note)), "{:?}", loaded.notes);
    }
    folder.remove("precomp/grid_boxes.npy");
    let data = load(&folder, RegionSource::Grid).unwrap().dataset;
    assert_eq!(data.test.regions.unwrap().boxes(0), None);
}

#[test]
fn the_hash_covers_regions_only_if_they_are_read() {
    let (folder, plain) = (with_grid(), Folder::new());
    let default = |f: &Folder| load_precomp(f.dir.path(), &LoadOptions::default()).unwrap();
    assert_eq!(default(&folder).dataset.sha256, default(&plain).dataset.sha256);
    let hash = |f: &Folder| load(f, RegionSource::Grid).unwrap().dataset.sha256;
    let before = hash(&folder);
    assert_ne!(before, default(&folder).dataset.sha256);
    folder.write("precomp/grid_scale.npy", npy(&[3], [0.5, 1.0, 3.0]));
    let scaled = hash(&folder);
    assert_ne!(before, scaled);
    folder.remove("precomp/grid_boxes.npy");
    assert_ne!(scaled, hash(&folder));
}

#[test]
fn regions_have_boxes_of_their_own() {
    let folder = with_regions();
    let data = load(&folder, RegionSource::Given).unwrap().dataset;
    let test = data.test.regions.unwrap();
    assert_eq!(test.rows(&[1]).unwrap().values, values(9..10));
    assert_eq!(test.boxes(1).unwrap().iter().map(|b| b.x2).collect::<Vec<_>>(), [0.2, 0.3]);
}

/// Trap 20: files with N and 5 N rows of the same data.
/// As if another process wrote the file anew: with regions from a map this ended the program.
#[test]
fn a_file_that_is_shortened_after_loading_is_one_line() {
    let folder = with_regions();
    let train = load(&folder, RegionSource::Given).unwrap().dataset.train;
    let path = folder.dir.path().join("precomp/train_regions.npy");
    let length = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    let line = train.regions.unwrap().rows(&[3]).unwrap_err().to_string();
    let want =
        format!("{}: expected {length} bytes, as when it was opened, got fewer", path.display());
    assert_eq!(line, want);
}

#[test]
fn repeated_images_give_the_same_regions() {
    let (once, folder) = (with_regions(), with_regions());
    let want = load(&once, RegionSource::Given).unwrap().dataset.test;
    let images = || (0..15).map(|row| 8 + row / 5);
    folder.write("precomp/test_regions.npy", npy(&[15, 2, 3], values(images())));
    let boxes = (0..15).flat_map(|row| [2 * (row / 5), 2 * (row / 5) + 1]);
    let boxes: Vec<f32> = boxes.flat_map(|k| [0.0, 0.0, k as f32 / 10.0, 1.0]).collect();
    folder.write("precomp/test_boxes.npy", npy(&[15, 2, 4], boxes));
    let same = |folder: &Folder| {
        let test = load(folder, RegionSource::Given).unwrap().dataset.test.regions.unwrap();
        let want = want.regions.as_ref().unwrap();
        assert_eq!(test.rows(&[0, 1, 2]).unwrap(), want.rows(&[0, 1, 2]).unwrap());
        test
    };
    assert_eq!(same(&folder).boxes(2), want.regions.as_ref().unwrap().boxes(2));

    // The published layout: the features themselves are regions.
    let rank_3 = Folder::new();
    for (name, first, count) in [("train", 0, 4), ("train_extra", 4, 2), ("val", 6, 2)] {
        let ims = npy(&[count, 2, 3], values(first..first + count));
        rank_3.write(&format!("precomp/{name}_ims.npy"), ims);
    }
    rank_3.write("precomp/test_ims.npy", npy(&[3, 2, 3], values(8..11)));
    same(&rank_3);
    rank_3.write("precomp/test_ims.npy", npy(&[15, 2, 3], values(images())));
    same(&rank_3);
    let data = load(&rank_3, RegionSource::Given).unwrap().dataset;
    assert_eq!(data.test.features.row(2), [11.0, 2.0, 4.0]);
    // The extra images have regions here.
    let train = data.train.regions.unwrap();
    assert_eq!((train.len(), data.train.images.len()), (6, 6));
    assert_eq!(train.rows(&[5, 0]).unwrap().values, [values(5..6), values(0..1)].concat());

    let mut changed = values(images());
    changed[6 * 7] += 1.0;
    folder.write("precomp/test_regions.npy", npy(&[15, 2, 3], changed));
    let line = "precomp/test_regions.npy row 7: expected row 5 again";
    assert!(error(&folder, RegionSource::Given).starts_with(line));
}

/// Any r is allowed: 36 is only the number in the published files.
#[test]
fn splits_may_have_other_numbers_of_regions() {
    let folder = with_regions();
    folder.write("precomp/val_regions.npy", npy(&[2, 1, 3], [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]));
    folder.write("precomp/val_boxes.npy", npy(&[2, 1, 4], [0.0, 0.0, 1.0, 1.0].repeat(2)));
    let data = load(&folder, RegionSource::Given).unwrap().dataset;
    // A row of zeros is a region.
    let val = rows(data.val.regions.as_ref(), &[1, 0]);
    assert_eq!((val.counts, val.values), (vec![1, 1], vec![0.0, 0.0, 0.0, 1.0, 2.0, 3.0]));
    assert_eq!(data.train.regions.unwrap().counts(), [2; 4]);
}

#[test]
fn each_fault_has_its_line() {
    use RegionSource::{Given, Grid};
    type Fault = fn(&Folder);
    let faults: [(RegionSource, Fault, &str); 16] = [
        (Grid, |f| f.remove("precomp/val_grid.npy"), "precomp/val_grid.npy: No such file"),
        (Grid, |f| f.remove("precomp/grid_scale.npy"), "precomp/grid_scale.npy: No such file"),
        (
            Grid,
            |f| f.write("precomp/grid_scale.npy", npy(&[2], [0.5, 1.0])),
            "precomp/train_grid.npy: expected a scale of 1 or 3 values (the last dimension), got 2",
        ),
        (
            Grid,
            |f| f.write("precomp/grid_boxes.npy", npy(&[3, 4], [0.5; 12])),
            "precomp/grid_boxes.npy: expected shape [2, 4], a box per region, got [3, 4]",
        ),
        (
            Grid,
            |f| f.write("precomp/grid_boxes.npy", npy(&[2, 4], [0., 0., 1., 1., 0., 0., 1.1, 1.])),
            "precomp/grid_boxes.npy row 1, box 0: expected x1, y1, x2, y2 in shares of the picture, \
             0 ≤ x1 ≤ x2 ≤ 1, 0 ≤ y1 ≤ y2 ≤ 1, got [0.0, 0.0, 1.1, 1.0]",
        ),
        (
            Grid,
            |f| f.write("precomp/test_grid.npy", npy(&[3, 2, 2], [1.0; 12])),
            "precomp regions of test: expected the width of training, 3, got 2",
        ),
        (
            Grid,
            |f| f.write("precomp/val_grid.npy", npy(&[3, 2, 3], [1.0; 18])),
            "precomp/val_grid.npy: expected 2 rows, one per image, got 3",
        ),
        (
            Grid,
            |f| f.write("precomp/val_grid.npy", npy(&[2, 3], [1.0; 6])),
            "precomp/val_grid.npy: expected regions [n, r, d], got shape [2, 3]",
        ),
        (
            Given,
            |f| f.remove("precomp/train_regions.npy"),
            "precomp/train_ims.npy: expected regions [n, r, d], or a train_regions.npy, got shape [4, 3]",
        ),
        (
            Given,
            |f| {
                let mut values = values(8..11);
                values[10] = f32::NAN;
                f.write("precomp/test_regions.npy", npy(&[3, 2, 3], values));
            },
            "precomp/test_regions.npy row 1, region 1: expected finite values, got NaN",
        ),
        (
            Given,
            |f| f.write("precomp/val_boxes.npy", npy(&[2, 1, 4], [0.5; 8])),
            "precomp/val_boxes.npy: expected shape [2, 2, 4], a box per region, got [2, 1, 4]",
        ),
        (
            Given,
            |f| f.write("precomp/val_boxes.npy", npy(&[2, 2, 4], [0.9, 0.0, 0.1, 1.0].repeat(4))),
            "precomp/val_boxes.npy row 0, box 0: expected x1, y1, x2, y2 in shares of the picture, \
             0 ≤ x1 ≤ x2 ≤ 1, 0 ≤ y1 ≤ y2 ≤ 1, got [0.9, 0.0, 0.1, 1.0]",
        ),
        (
            Given,
            |f| f.write("precomp/train_extra_ims.npy", vec![0; 9]),
            "precomp/train_extra_ims.npy: expected ",
        ),
        (
            Given,
            |f| f.write("precomp/val_regions.npy", npy(&[2, 0, 3], [])),
            "precomp/val_regions.npy: expected an array that is not empty, got shape [2, 0, 3]",
        ),
        (
            Given,
            |f| f.write("precomp/val_regions.npy", npy_of("<i8", &[2, 1, 1], [0; 16])),
            "precomp/val_regions.npy: expected features of f16, f32, f64, i8 or u8, got i64",
        ),
        (
            Given,
            |f| {
                f.remove("dataset_dogs.json");
                f.change("precomp/val_caps.txt", "A dog number 6 , take 2 .\n", "");
            },
            "precomp/val_caps.txt: expected 10 lines (5 for each of the 2 rows of precomp/val_ims.npy), got 9 lines",
        ),
    ];
    for (asked, fault, want) in faults {
        let folder = if asked == Given { with_regions() } else { with_grid() };
        fault(&folder);
        let line = error(&folder, asked);
        assert!(line.starts_with(want), "{line}\n{want}");
    }
}

/// The released program keeps the first 5,000 captions of the validation file. COCO's 5,000 test images are chosen, too.
#[test]
fn splits_are_chosen() {
    let folder = with_regions();
    for end in ["regions.npy", "boxes.npy"] {
        let of = |name: &str| folder.path(&format!("precomp/{name}_{end}"));
        fs::copy(of("test"), of("testall")).unwrap();
    }
    folder.write("precomp/testall_ims.npy", npy(&[3, 3], [5.0; 9]));
    let captions = (0..15).map(|j| format!("A dog number {} , take {} .", 8 + j / 5, j % 5));
    folder.write("precomp/testall_caps.txt", lines(captions));
    let with = |val_captions, test| {
        let options = LoadOptions { val_captions, test, ..options(RegionSource::Given) };
        load_precomp(folder.dir.path(), &options)
    };
    let loaded = with(Some(5), TestSet::TestAll).unwrap();
    let val = &loaded.dataset.val;
    assert_eq!((val.images.len(), val.captions.len(), val.features.rows()), (1, 5, 1));
    assert_eq!((val.pairs.texts(), val.regions.as_ref().unwrap().len()), (5, 1));
    assert!(loaded.notes.iter().any(|n| n == "val: the first 5 of 10 captions"));
    assert_eq!(loaded.dataset.test.features.row(0), [5.0; 3]);
    assert_eq!(with(Some(50), TestSet::Test).unwrap().dataset.val.captions.len(), 10);
    let line = with(Some(7), TestSet::Test).unwrap_err().to_string();
    assert_eq!(
        line,
        "val_captions: expected a multiple of 5, the captions per image, above 0, got 7"
    );
    assert!(with(Some(0), TestSet::Test).is_err());
    folder.remove("precomp/testall_ims.npy");
    let data = with(None, TestSet::TestAll).unwrap().dataset;
    assert_eq!(data.test.features.row(0), [800.0, 801.0, 802.0]);
}
