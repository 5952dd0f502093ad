use std::fs;

use super::*;
use crate::Pairs;

/// A `.npy` of f32, version 1.
fn npy(shape: &str, values: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.bytes());
    bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn dataset() -> Dataset {
    let part = |images: &[&str], captions: &[&str]| SplitData {
        features: Features { dim: 1, values: (0..images.len()).map(|i| i as f32).collect() },
        images: images.iter().map(|&name| name.into()).collect(),
        captions: captions.iter().map(|&text| text.into()).collect(),
        pairs: Pairs::uniform(images.len(), captions.len() / images.len()),
        ..SplitData::default()
    };
    Dataset {
        name: "toy".into(),
        train: part(&["a", "b", "c"], &["A dog.", "dogs", "A cat.", "cats", "A dog.", "none"]),
        val: part(&["d"], &["A cat."]),
        test: part(&["e"], &["dogs "]),
        sha256: String::new(),
    }
}

/// Rows of the images e, c, a, d: (3, 4) and its like. Rows of the captions: a dog twice.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    write("image.npy", &npy("(4, 2)", &[3.0, 4.0, 0.0, 2.0, -1.0, 0.0, 6.0, 8.0]));
    write("image_ids.txt", b"e\nc\na\nd\n");
    write("text.npy", &npy("(6, 1)", &[1.0, -2.0, 3.0, -4.0, 5.0, 1.0]));
    write("captions.txt", b"A dog.\ndogs\nA cat.\ncats\nnone\nA dog.\n");
    dir
}

fn add(dir: &Path) -> Result<(Dataset, Vec<String>), String> {
    let mut data = dataset();
    let folders = [dir.to_path_buf()];
    let notes = data.add_embeddings(&folders, false, &mut Manifest::default());
    let here = format!("{}/", dir.display());
    let plain = |text: String| text.replace(&here, "");
    match notes {
        Ok(notes) => Ok((data, notes.into_iter().map(plain).collect())),
        Err(error) => Err(plain(error.to_string())),
    }
}

/// By hand: b has no row and goes with its captions; rows have unit length and follow names and captions, not the order of the file.
#[test]
fn rows_are_found_by_name_and_by_caption() {
    let (data, notes) = add(folder().path()).unwrap();
    assert_eq!(data.train.images, ["a", "c"]);
    assert_eq!(data.train.captions, ["A dog.", "dogs", "A dog.", "none"]);
    assert_eq!(data.train.pairs, Pairs::uniform(2, 2));
    assert_eq!(data.train.features.values, [0.0, 2.0]);
    let of = |part: &SplitData| (part.embeddings.images.clone(), part.embeddings.texts.clone());
    let rows = |dim, values: &[f32]| Features { dim, values: values.to_vec() };
    let want = (rows(2, &[-1.0, 0.0, 0.0, 1.0]), rows(1, &[1.0, -1.0, 1.0, 1.0]));
    assert_eq!(of(&data.train), want);
    assert_eq!(of(&data.val), (rows(2, &[0.6, 0.8]), rows(1, &[1.0])));
    assert_eq!(of(&data.test), (rows(2, &[0.6, 0.8]), rows(1, &[-1.0])));
    assert_eq!(
        notes,
        [
            "image.npy: rows of images, width 2",
            "image.npy: 1 of 3 training images have no row there: every row learns without them",
            "text.npy: rows of captions, width 1",
        ]
    );
}

/// The rows of two folders stand side by side.
#[test]
fn folders_stand_side_by_side() {
    let (one, two) = (folder(), folder());
    fs::remove_file(two.path().join("text.npy")).unwrap();
    let mut data = dataset();
    let folders = [one.path().to_path_buf(), two.path().to_path_buf()];
    let mut manifest = Manifest::default();
    data.add_embeddings(&folders, false, &mut manifest).unwrap();
    let images = &data.test.embeddings.images;
    assert_eq!((images.dim, &images.values[..]), (4, &[0.6, 0.8, 0.6, 0.8][..]));
    assert_eq!(data.test.embeddings.texts.dim, 1);
    assert_eq!(manifest.files.len(), 6);
}

/// A part that is refused stays as it was; images that do not ascend are the caller's fault.
#[test]
fn a_part_keeps_only_ascending_images() {
    let mut part = dataset().train;
    part.regions = Some(Regions::new(1, vec![1; 3], vec![1.0, 2.0, 3.0]).unwrap());
    let line = part.keep(&[0, 2]).unwrap_err().to_string();
    assert_eq!(line, "regions: expected the first images of a part with regions, got others");
    assert_eq!((part.regions.as_ref().unwrap().len(), part.images.len()), (3, 3));
    part.keep(&[0, 1]).unwrap();
    assert_eq!((part.regions.take().unwrap().len(), part.captions.len()), (2, 4));
    let mut judged = part.clone();
    judged.pairs = Pairs::judged(2, vec![vec![0, 1], vec![0], vec![1], vec![1]]).unwrap();
    let line = judged.keep(&[0]).unwrap_err().to_string();
    assert_eq!(line, "pairs: expected texts of one image each, got judged pairs");
    for images in [&[1, 0][..], &[0, 0], &[0, 2]] {
        let mut part = part.clone();
        let kept = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| part.keep(images)));
        assert!(kept.is_err(), "{images:?}");
    }
}

/// Without a training image no row fits, which is an error and no panic.
#[test]
fn a_training_split_without_images_is_an_error() {
    let mut data = dataset();
    data.train.keep(&[]).unwrap();
    let folders = [folder().path().to_path_buf()];
    assert!(data.add_embeddings(&folders, false, &mut Manifest::default()).is_err());
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let with = |name: &str, bytes: &[u8]| {
        let dir = folder();
        fs::write(dir.path().join(name), bytes).unwrap();
        add(dir.path()).unwrap_err()
    };
    let rows = npy("(4, 2)", &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    for (name, bytes, want) in [
        ("image.npy", &rows[..], "image.npy, row 0: expected a finite length above 0, got 0"),
        (
            "image_ids.txt",
            b"e\nc\na\n",
            "image_ids.txt: expected 4 lines, as many as image.npy has rows, got 3",
        ),
        (
            "image_ids.txt",
            b"f\nc\na\nd\n",
            "image.npy: expected a row for test image 0, \"e\", got none",
        ),
        (
            "image_ids.txt",
            b"e\nf\ng\nd\n",
            "image.npy: expected a training image such as \"a\", got none",
        ),
        (
            "captions.txt",
            b"A dog.\nhounds\nA cat.\ncats\nnone\nA dog.\n",
            "text.npy: expected a row for train caption 1, \"dogs\", got none",
        ),
        (
            "captions.txt",
            b"A dog.\nA dog.\nA cat.\ncats\nnone\ndogs\n",
            "captions.txt line 2: expected the row of line 1, which is the same, got another row",
        ),
    ] {
        assert_eq!(with(name, bytes), want);
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(
        add(empty.path()).unwrap_err().contains("text.npy with captions.txt, got none of them")
    );
    let dir = folder();
    fs::remove_file(dir.path().join("captions.txt")).unwrap();
    assert!(add(dir.path()).unwrap_err().starts_with("captions.txt"));
}

/// By hand: two patches of width 1 for each of e, c, a, d; the regions of a part follow its images.
#[test]
fn patches_are_the_regions_of_their_images() {
    let dir = folder();
    let patches = |values: &[f32]| npy(&format!("({}, 2, 1)", values.len() / 2), values);
    let write = |values: &[f32]| fs::write(dir.path().join("grid.npy"), patches(values)).unwrap();
    let add = || {
        let mut data = dataset();
        data.add_embeddings(&[dir.path().to_path_buf()], true, &mut Manifest::default())
            .map(|notes| (data, notes))
    };
    assert!(add().unwrap_err().to_string().ends_with("writes it, got 0"));
    write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let (data, notes) = add().unwrap();
    assert!(
        notes[3].ends_with("grid.npy: 2 regions per image, 1 wide, without boxes"),
        "{notes:?}"
    );
    let rows =
        |part: &SplitData, images: &[usize]| part.regions.as_ref().unwrap().rows(images).unwrap();
    assert_eq!(data.train.images, ["a", "c"]);
    assert_eq!(rows(&data.train, &[1, 0]).values, [3.0, 4.0, 5.0, 6.0]);
    assert_eq!(rows(&data.test, &[0]).values, [1.0, 2.0]);
    write(&[1.0; 6]);
    let line = add().unwrap_err().to_string();
    assert!(
        line.contains("patches of 4 images, as many as image.npy has rows, got [3, 2, 1]"),
        "{line}"
    );
}
