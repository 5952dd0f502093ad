//! The files of an index.
//!
//! | file | what it is |
//! |---|---|
//! | `index/index.json` | [`IndexManifest`] |
//! | `index/pictures.jsonl` | a [`Picture`] on each line |
//! | `index/bank.txt` | an ordinary query on each line |
//! | `index/index.safetensors` | [`Tables`] |
//! | `thumbnails/ab/….jpg` | small pictures, by the SHA-256 of the photograph |
//! | `encoded.part` | rows that a stopped update leaves to the next one |

use std::path::{Path, PathBuf};

use itm_core::arrays::{ArrayValue, NamedArrays, array, to_bytes};
use itm_core::files::{read, read_json, read_json_lines, read_text, sha256_hex, sha256_of};
use itm_core::output::{NewFolder, write_bytes};
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::Picture;
use crate::encoder::is_unit;
use crate::exif::is_moment;

/// The version of the files.
const FORMAT: u32 = 1;
/// The files of the folder `index`, the manifest last.
pub(crate) const FILES: [&str; 4] =
    ["pictures.jsonl", "bank.txt", "index.safetensors", "index.json"];
/// The largest file of tables that is read: a hundred million rows are beyond one machine.
const MOST_BYTES: u64 = 1 << 38;

/// What an index was made of, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexManifest {
    pub(crate) format: u32,
    /// The folder of the photographs.
    pub(crate) folder: PathBuf,
    pub(crate) model: String,
    pub(crate) identity: String,
    /// What the maker of the index must know to open its model again.
    pub(crate) about: serde_json::Value,
    pub(crate) width: usize,
    /// [`Update::left_out`](crate::Update::left_out).
    pub(crate) left_out: Vec<(String, String)>,
    /// The correction's name.
    pub(crate) correction: String,
    /// The level of cosines and of scores.
    pub(crate) levels: [f32; 2],
    /// SHA-256 of the other files, in their order.
    pub(crate) sha256: Vec<String>,
}

/// Arrays of an index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tables {
    /// `[n, d]`.
    pub(crate) rows: Vec<f32>,
    /// `[queries of the bank, d]`.
    pub(crate) bank: Vec<f32>,
    /// `[n]`.
    pub(crate) biases: Vec<f64>,
    /// How many queries of the bank have a picture first: by cosine, by score. `[n]` each.
    pub(crate) answers: [Vec<u32>; 2],
}

/// Everything that is stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(crate) manifest: IndexManifest,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) bank: Vec<String>,
    pub(crate) tables: Tables,
}

/// The folder with the index itself.
pub(crate) fn index_folder(out: &Path) -> PathBuf {
    out.join("index")
}

/// Whether a text is a SHA-256 as this program writes it.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The file of a thumbnail.
pub(crate) fn thumbnail(out: &Path, sha256: &str) -> PathBuf {
    out.join("thumbnails").join(&sha256[..2]).join(format!("{sha256}.jpg"))
}

/// The hash in the name of a thumbnail, of this index or of another; `None` for any other file.
pub(crate) fn hash_of_thumbnail(path: &Path) -> Option<&str> {
    let hash = path.file_stem()?.to_str().filter(|stem| is_hash(stem))?;
    (path == thumbnail(path.ancestors().nth(3)?, hash)).then_some(hash)
}

impl Stored {
    /// Reads an index and checks that its files belong together.
    pub(crate) fn read(out: &Path) -> Result<Self> {
        let folder = index_folder(out);
        let place = folder.join(FILES[3]);
        let manifest: IndexManifest = read_json(&place, "an index of `itm index`")?;
        let IndexManifest { format, sha256, .. } = &manifest;
        let (expected, got) = (format_args!("format {FORMAT}"), format_args!("format {format}"));
        Error::unless(*format == FORMAT, place.display(), expected, got)?;
        let got = format_args!("{} hashes", sha256.len());
        let fits = sha256.len() == FILES.len() - 1;
        Error::unless(fits, place.display(), "a hash for each other file", got)?;
        for (name, want) in FILES.iter().zip(&manifest.sha256) {
            let path = folder.join(name);
            let same = sha256_of(&path)? == *want;
            Error::unless(same, path.display(), "the file that index.json names", "another")?;
        }
        let path = folder.join(FILES[0]);
        let pictures: Vec<Picture> = read_json_lines(&path, "a picture")?;
        if let Some(wrong) = pictures.iter().find(|picture| !is_hash(&picture.sha256)) {
            return Err(Error::invalid(path.display(), "SHA-256 in 64 digits", &wrong.sha256));
        }
        let mut moments = pictures.iter().filter_map(|picture| picture.taken.as_ref());
        if let Some(bad) = moments.find(|taken| !is_moment(taken)) {
            return Err(Error::invalid(path.display(), "moments as 2024-05-01T12:30:00", bad));
        }
        let sorted = pictures.is_sorted_by(|a, b| a.path < b.path);
        Error::unless(sorted, path.display(), "pictures in the order of their paths", "others")?;
        let bank: Vec<String> = read_text(folder.join(FILES[1]))?.lines().map(Into::into).collect();
        let path = folder.join(FILES[2]);
        let counts = [pictures.len(), bank.len()];
        let tables = Tables::read(&path, &read(&path, MOST_BYTES)?, counts, manifest.width)?;
        Ok(Self { manifest, pictures, bank, tables })
    }

    /// Writes an index in place of the one that is there.
    pub(crate) fn write(mut self, folder: NewFolder) -> Result<()> {
        let at = folder.path();
        let lines =
            self.pictures.iter().map(|p| serde_json::to_string(p).expect("a picture") + "\n");
        let pictures = lines.collect::<String>().into_bytes();
        let bank =
            self.bank.iter().map(|query| format!("{query}\n")).collect::<String>().into_bytes();
        let tables = self.tables.bytes(self.manifest.width);
        let files = [pictures, bank, tables];
        self.manifest.format = FORMAT;
        self.manifest.sha256 = files.iter().map(|bytes| sha256_hex(bytes)).collect();
        for (name, bytes) in FILES.iter().zip(&files) {
            write_bytes(&at.join(name), bytes)?;
        }
        let manifest = serde_json::to_vec_pretty(&self.manifest).expect("a manifest");
        write_bytes(&at.join(FILES[3]), &manifest)?;
        folder.commit()
    }
}

impl Tables {
    fn read(path: &Path, bytes: &[u8], [n, m]: [usize; 2], width: usize) -> Result<Self> {
        let wrong = |expected: String, got: String| Error::invalid(path.display(), expected, got);
        let file =
            NamedArrays::new(bytes).map_err(|e| wrong("safetensors".into(), e.to_string()))?;
        let tables = Self {
            rows: values(&file, path, "rows", &[n, width])?,
            bank: values(&file, path, "bank", &[m, width])?,
            biases: values(&file, path, "biases", &[n])?,
            answers: [
                values(&file, path, "answers", &[n])?,
                values(&file, path, "corrected_answers", &[n])?,
            ],
        };
        let unit = |rows: &[f32]| rows.chunks_exact(width.max(1)).all(is_unit);
        if !unit(&tables.rows) || !unit(&tables.bank) {
            return Err(wrong("rows of length 1".into(), "others".into()));
        }
        match tables.biases.iter().find(|bias| !bias.is_finite()) {
            Some(bias) => Err(wrong("finite biases".into(), bias.to_string())),
            None => Ok(tables),
        }
    }

    fn bytes(&self, width: usize) -> Vec<u8> {
        let (n, m) = (self.biases.len(), self.bank.len() / width);
        let arrays = [
            ("rows", array(&[n, width], &self.rows)),
            ("bank", array(&[m, width], &self.bank)),
            ("biases", array(&[n], &self.biases)),
            ("answers", array(&[n], &self.answers[0])),
            ("corrected_answers", array(&[n], &self.answers[1])),
        ];
        to_bytes(arrays, &[])
    }
}

/// The values of an array of this shape.
fn values<T: ArrayValue>(
    file: &NamedArrays<&[u8]>,
    path: &Path,
    name: &str,
    shape: &[usize],
) -> Result<Vec<T>> {
    let expected =
        |got| Error::invalid(path.display(), format!("`{name}` as {:?} {shape:?}", T::DTYPE), got);
    file.values(name, |found| found == shape).map_err(expected)
}
