//! Scores of a benchmark's pairs from files.

use std::collections::HashMap;
use std::path::Path;

use itm_core::data::Npy;
use itm_core::files::{excerpt, read_text};
use itm_core::{Error, Result};

use crate::benchmark::Benchmark;

/// The score of a picture and a caption.
pub(super) type PairScores = Box<dyn Fn(usize, usize) -> f64>;

/// The scores of a file with one per pair.
///
/// # Errors
/// If the file cannot be read or is no array of as many finite numbers.
pub(super) fn of_pairs(benchmark: &Benchmark, path: &Path) -> Result<PairScores> {
    let pairs = benchmark.pairs();
    let npy = Npy::open(path)?;
    let expected = format_args!("an array of {} scores, as pairs.tsv has lines", pairs.len());
    Error::unless(npy.shape() == [pairs.len()], path.display(), expected, shape(&npy))?;
    let of: HashMap<_, _> = pairs.into_iter().zip(npy.to_f64()?).collect();
    Ok(Box::new(move |picture, caption| of[&(picture, caption)]))
}

/// The cosines of the rows of pictures and of captions.
///
/// # Errors
/// If a file cannot be read or is no array of numbers, or a picture or caption has no row.
pub(super) fn of_rows(benchmark: &Benchmark, images: &Path, texts: &Path) -> Result<PairScores> {
    let names: Vec<&str> = benchmark.pictures.iter().map(|picture| &picture.name[..]).collect();
    let pictures = unit_rows(images, "image_ids.txt", "picture", &names)?;
    let texts_of: Vec<&str> = benchmark.captions.iter().map(String::as_str).collect();
    let captions = unit_rows(texts, "captions.txt", "caption", &texts_of)?;
    let [width, other] = [&pictures, &captions].map(|rows| rows[0].len());
    let expected = format_args!("rows of width {width}, as {} has", images.display());
    Error::unless(width == other, texts.display(), expected, other)?;
    Ok(Box::new(move |picture, caption| {
        pictures[picture].iter().zip(&captions[caption]).map(|(v, w)| v * w).sum()
    }))
}

/// The rows of these names at unit length: by the list beside the file, or in order.
fn unit_rows(path: &Path, list: &str, what: &str, names: &[&str]) -> Result<Vec<Vec<f64>>> {
    let npy = Npy::open(path)?;
    let expected = format_args!("an array [rows, width], a row per {what}");
    let fits = npy.shape().len() == 2 && npy.row_len() > 0;
    Error::unless(fits, path.display(), expected, shape(&npy))?;
    let list = path.with_file_name(list);
    let numbers = if list.exists() {
        found(&list, npy.rows(), what, names)?
    } else if npy.rows() == names.len() {
        (0..names.len()).collect()
    } else {
        let expected = format!("{} rows, or {} beside it", names.len(), list.display());
        return Err(Error::invalid(path.display(), expected, npy.rows()));
    };
    let mut row = vec![0.0; npy.row_len()];
    let mut unit = |number: usize| {
        npy.row_into(number, &mut row)?;
        let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let place = format_args!("{} row {number}", path.display());
        Error::unless(length != 0.0, place, "a row of length above 0", 0)?;
        Ok(row.iter().map(|&x| f64::from(x) / length).collect())
    };
    numbers.into_iter().map(&mut unit).collect()
}

/// The row of each name. A picture is also found by its file name without folders, or without its ending, if that means one picture and one row.
fn found(list: &Path, rows: usize, what: &str, names: &[&str]) -> Result<Vec<usize>> {
    let text = read_text(list)?;
    let lines: Vec<String> = text.lines().map(single_blanks).collect();
    let expected = format_args!("{rows} lines, as many as rows");
    Error::unless(lines.len() == rows, list.display(), expected, lines.len())?;
    let (mut exact, mut short) = (HashMap::new(), HashMap::<&str, Vec<usize>>::new());
    for (k, line) in lines.iter().enumerate() {
        let first = *exact.entry(line.as_str()).or_insert(k);
        if what == "picture" && first < k {
            let place = format!("{} line {}", list.display(), k + 1);
            let got = format!("{}, which line {} has", excerpt(line), first + 1);
            return Err(Error::invalid(place, "an id that no line before has", got));
        }
        short.entry(bare(line)).or_default().push(k);
    }
    let mut asked = HashMap::<&str, usize>::new();
    names.iter().for_each(|name| *asked.entry(bare(name)).or_default() += 1);
    let row = |name: &&str| {
        let is_one = |rows: &&Vec<usize>| rows.len() == 1 && asked[bare(name)] == 1;
        let near = || short.get(bare(name)).filter(|rows| what == "picture" && is_one(rows));
        exact.get(name).copied().or_else(|| near().map(|rows| rows[0])).ok_or_else(|| {
            Error::invalid(list.display(), format!("the {what} {}", excerpt(name)), "no such line")
        })
    };
    names.iter().map(row).collect()
}

fn single_blanks(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `val2014/1.jpg` becomes `1`.
fn bare(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

fn shape(npy: &Npy) -> String {
    format!("the shape {:?}", npy.shape())
}
