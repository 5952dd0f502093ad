//! A small data folder in the layout of `load_precomp`, for tests; each test then breaks one thing in it.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

/// A `.npy` file of version 1 with f32 values.
pub(crate) fn npy(shape: &[usize], values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    npy_of("<f4", shape, values.into_iter().flat_map(f32::to_le_bytes))
}

/// A `.npy` file of version 1 with any dtype.
pub(crate) fn npy_of(descr: &str, shape: &[usize], data: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    with_header(&header, &data.into_iter().collect::<Vec<_>>())
}

/// A `.npy` file of version 1 with this dictionary.
pub(crate) fn with_header(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(dictionary.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, dictionary.as_bytes(), data].concat()
}

/// A JPEG of 2 × 1 pixels in structure only: start, frame header, scan, end.
pub(crate) const JPEG: &[u8] = &[
    0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 1, 0, 2, 1, 1, 0x11, 0, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63,
    0, 0x12, 0xff, 0x00, 0x34, 0xff, 0xd0, 0x56, 0xff, 0xd9,
];

pub(crate) const CAPTIONS: usize = 5;

/// 4 + 2 training images, 2 of validation, 3 of test; features `[n, 3]`; value = 100·image + column.
pub(crate) struct Folder {
    pub(crate) dir: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(folder.path("precomp")).unwrap();
        fs::create_dir(folder.path("images")).unwrap();
        let mut json = Vec::new();
        for (name, first, count) in Self::SPLITS {
            let images = first..first + count;
            let names: Vec<_> = images.clone().map(|i| format!("{i}.jpg")).collect();
            let captions =
                |i: usize| (0..CAPTIONS).map(move |j| format!("A dog number {i} , take {j} ."));
            let values = images.clone().flat_map(|i| (0..3).map(move |c| (100 * i + c) as f32));
            folder.write(&format!("precomp/{name}_ims.npy"), npy(&[count, 3], values));
            folder.write(&format!("precomp/{name}_ids.txt"), lines(names.clone()));
            folder.write(
                &format!("precomp/{name}_caps.txt"),
                lines(images.clone().flat_map(captions)),
            );
            if name == "train_extra" {
                continue;
            }
            for (i, file) in images.zip(names) {
                folder.write(&format!("images/{file}"), JPEG);
                let sentences: Vec<_> =
                    captions(i).map(|raw| serde_json::json!({"raw": raw})).collect();
                json.push(serde_json::json!({
                    "filename": file, "filepath": "images", "imgid": i, "split": name,
                    "sentences": sentences,
                }));
            }
        }
        let json = serde_json::json!({"dataset": "dogs", "images": json});
        folder.write("dataset_dogs.json", serde_json::to_string(&json).unwrap());
        folder
    }

    /// Name, first image, number of images.
    const SPLITS: [(&str, usize, usize); 4] =
        [("train", 0, 4), ("train_extra", 4, 2), ("val", 6, 2), ("test", 8, 3)];

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Replaces the first `from` of a text file; the file must contain it.
    pub(crate) fn change(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no {from:?}");
        self.write(name, text.replacen(from, to, 1));
    }
}

pub(crate) fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Sums of Karpathy's splits.
#[test]
fn counts_of_the_advice_add_up() {
    for (set, count, sum) in [
        (0, "31,014", 29_000 + 1_014 + 1_000),
        (0, "145,000 lines", 5 * 29_000),
        (1, "8,000", 6_000 + 1_000 + 1_000),
        (2, "113,287 train", 82_783 + 30_504),
        (2, "123,287", 113_287 + 5_000 + 5_000),
        (2, "566,435 lines", 5 * 113_287),
    ] {
        let number: String = count.chars().filter(char::is_ascii_digit).collect();
        assert_eq!(number.parse(), Ok(sum), "{count}");
        assert!(super::ADVICE.split("\n\n").nth(set).unwrap().contains(count), "{count}");
    }
}

#[test]
fn every_set_says_sign_place_and_features() {
    let mut parts = super::ADVICE.split("\n\n");
    for name in ["Flickr30K", "Flickr8k", "MS-COCO"] {
        let text = parts.next().unwrap();
        assert!(text.starts_with(name), "{name}");
        for word in ["\n  sign ", "\n  place ", "\n  features ", "\n  computed "] {
            assert!(text.contains(word), "{name}: {word}");
        }
        assert!(text.lines().all(|line| line.len() <= 115), "{name}");
    }
    assert!(parts.next().unwrap().starts_with("DIR is ") && parts.next().is_none());
}
