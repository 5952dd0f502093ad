//! Made data in a folder, and the binary run there.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tempfile::TempDir;

/// Number of images, texts per image, and width of the data that most tests use.
pub(crate) const IMAGES: usize = 24;
pub(crate) const EACH: usize = 3;
pub(crate) const WIDTH: usize = 8;

/// A folder with files, deleted at the end.
pub(crate) struct Folder(TempDir);

/// The result of a run of the binary.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with `i.npy` and `t.npy`: images, and three texts around each; some images are hubs.
    pub(crate) fn made() -> Self {
        let (folder, (images, texts)) = (Self::new(), made());
        folder.npy("i.npy", WIDTH, &images);
        folder.npy("t.npy", WIDTH, &texts);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap()
    }

    /// Rows of f32.
    pub(crate) fn npy(&self, name: &str, width: usize, values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.write(name, npy("<f4", false, &[values.len() / width, width], &bytes));
    }

    /// Runs a command line, whose words are separated by spaces.
    pub(crate) fn run(&self, line: &str) -> Ran {
        self.piped(line, &[])
    }

    /// Runs a command line with `input` on standard input.
    pub(crate) fn piped(&self, line: &str, input: &[u8]) -> Ran {
        self.command(line, "2", input)
    }

    /// Runs a command line with forced roundings.
    pub(crate) fn forced(&self, line: &str, fused: &str) -> Ran {
        self.with("ITM_FUSED", fused, line, &[])
    }

    /// Runs a command line on `threads` threads, with `input` on standard input.
    pub(crate) fn command(&self, line: &str, threads: &str, input: &[u8]) -> Ran {
        self.with("RAYON_NUM_THREADS", threads, line, input)
    }

    fn with(&self, variable: &str, value: &str, line: &str, input: &[u8]) -> Ran {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hubness"))
            .args(line.split(' ').filter(|word| !word.is_empty()))
            .current_dir(self.path())
            .env("RAYON_NUM_THREADS", "2")
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).ok();
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// `hubness report … --json`, by default of the made data and without resampling; `options` may name another source or
    /// `--resamples`.
    pub(crate) fn report(&self, options: &str) -> Value {
        let draws = if options.contains("--resamples") { "" } else { "--resamples 0" };
        let source =
            ["--images", "--scores", "--run"].iter().any(|option| options.contains(option));
        let source = if source { "" } else { "--images i.npy --texts t.npy" };
        self.run(&format!("report {source} {draws} --json {options}")).json()
    }
}

impl Ran {
    /// # Panics
    /// If the exit code is not 0, or there is text on standard error.
    pub(crate) fn good(self) -> Self {
        assert_eq!((self.code, &self.err[..]), (Some(0), ""));
        self
    }

    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.good().out).unwrap()
    }
}

/// The row of a method.
pub(crate) fn row<'a>(report: &'a Value, method: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["method"] == method).unwrap_or_else(|| {
        panic!("{method} among {:?}", names(report));
    })
}

/// The methods of all rows.
pub(crate) fn names(report: &Value) -> Vec<&str> {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().map(|row| row["method"].as_str().unwrap()).collect()
}

/// R@1, R@5, R@10 of the measured directions.
pub(crate) fn recalls(row: &Value) -> Vec<f64> {
    let directions = ["i2t", "t2i"].into_iter().filter(|d| !row[*d].is_null());
    directions.flat_map(|d| ["r1", "r5", "r10"].map(|k| row[d][k].as_f64().unwrap())).collect()
}

/// A file in NumPy's format, version 1.
pub(crate) fn npy(descr: &str, fortran: bool, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let shape: Vec<_> = shape.iter().map(usize::to_string).collect();
    let shape = shape.join(", ") + if shape.len() == 1 { "," } else { "" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), bytes].concat()
}

/// Width and numbers of a file as [`npy`] makes it, with four bytes per number.
pub(crate) fn parsed<T>(file: &[u8], descr: &str, number: fn([u8; 4]) -> T) -> (usize, Vec<T>) {
    let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = std::str::from_utf8(&file[10..10 + length]).unwrap();
    assert!(header.contains(&format!("'descr': '{descr}'")), "{header}");
    let shape = header.split_once('(').unwrap().1.split_once(')').unwrap().0;
    let width = shape.split(',').nth(1).unwrap().trim().parse().unwrap();
    let values = file[10 + length..].chunks(4).map(|c| number(c.try_into().unwrap()));
    (width, values.collect())
}

pub(crate) fn floats(file: &[u8]) -> (usize, Vec<f32>) {
    parsed(file, "<f4", f32::from_le_bytes)
}

/// Images, and `EACH` consecutive texts around each image.
pub(crate) fn made() -> (Vec<f32>, Vec<f32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut noise = |size: f32| {
        let sum: f32 = (0..4).map(|_| rng.random_range(-1.0f32..1.0)).sum();
        sum * size
    };
    let images: Vec<f32> =
        (0..IMAGES * WIDTH).map(|at| noise(0.8) + f32::from(u8::from(at % WIDTH == 0))).collect();
    let text = |image: usize, noise: &mut dyn FnMut(f32) -> f32| -> Vec<f32> {
        let row = &images[image * WIDTH..][..WIDTH];
        row.iter()
            .enumerate()
            .map(|(k, v)| v + noise(0.9) + if k == 0 { 0.8 } else { 0.0 })
            .collect()
    };
    let texts = (0..IMAGES * EACH).flat_map(|t| text(t / EACH, &mut noise)).collect();
    (images, texts)
}

/// Rows of unit length in f64, rounded to f32 as the program keeps them.
pub(crate) fn unit(rows: &[f32]) -> Vec<f64> {
    rows.chunks(WIDTH)
        .flat_map(|row| {
            let norm = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            row.iter().map(move |&v| f64::from((f64::from(v) / norm) as f32))
        })
        .collect()
}

/// All cosines of the made data, images × texts, `[image][text]`.
pub(crate) fn cosines() -> Vec<Vec<f64>> {
    let (images, texts) = made();
    products(&unit(&images), &unit(&texts))
}

pub(crate) fn products(images: &[f64], texts: &[f64]) -> Vec<Vec<f64>> {
    let dot = |v: &[f64], w: &[f64]| v.iter().zip(w).map(|(a, b)| a * b).sum::<f64>();
    images.chunks(WIDTH).map(|v| texts.chunks(WIDTH).map(|w| dot(v, w)).collect()).collect()
}

pub(crate) fn transposed(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    (0..rows[0].len()).map(|j| rows.iter().map(|row| row[j]).collect()).collect()
}

/// The scores of the made data in f32, as values of a file.
pub(crate) fn score_values() -> Vec<f32> {
    cosines().into_iter().flatten().map(|s| s as f32).collect()
}
