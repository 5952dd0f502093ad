//! `itm features`: writes MobileNetV2 features of a folder of pictures, as files that the loaders read.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use half::f16;
use itm_core::data::{Npy, decode_image, probe_image, turned_pictures};
use itm_core::files::read_text;
use itm_core::output::{Existing, NewFolder, write_bytes};
use itm_core::vision::{GRID, GridPca, MobileNet, Scratch, grid_boxes, quantise};
use itm_core::{Error, Result};
use rayon::prelude::*;

use crate::cli::FeaturesArgs;
use crate::config::within;
use crate::npy::{array, header};
use crate::progress;

/// Global feature of a picture and, with `--grid`, its grid.
type Row = (Vec<f32>, Option<Vec<f32>>);

pub(crate) fn features(args: &FeaturesArgs) -> Result<()> {
    within("--batch".into(), args.batch as u64, 1..=65_536)?;
    if args.name.is_empty() || args.name.contains(['/', '\\']) {
        return Err(Error::invalid("--name", "the beginning of a file name", &args.name));
    }
    let names = match &args.ids {
        Some(file) => listed(file)?,
        None => found(&args.images)?,
    };
    let net = MobileNet::open(&args.weights)?;
    let pca = args.grid.then(|| GridPca::open(&args.weights, net.channels())).transpose()?;
    let folder = NewFolder::begin(&args.out, Existing::Files)?;
    let new = folder.path();

    let file = |end: &str| new.join(format!("{}_{end}", args.name));
    let mut ims = Rows::create(file("ims.npy"), "<f2", &[net.channels()])?;
    let mut grid = match &pca {
        // Real values first, because their scale is known only at the end.
        Some(pca) => Some(Rows::create(file("grid_real.npy"), "<f4", &[GRID * GRID, pca.width()])?),
        None => None,
    };
    let bar = progress::bar(&args.name, "pictures");
    bar.set_length(names.len() as u64);
    let (mut kept, mut bad, mut side) = (String::new(), Vec::new(), 0);
    for batch in names.chunks(args.batch) {
        let rows: Vec<Result<(Row, usize)>> = batch
            .par_iter()
            .with_max_len(1)
            .map_init(Scratch::default, |scratch, name| {
                let image = decode_image(args.images.join(name))?;
                let got = net.features(&image, scratch);
                let grid = pca.as_ref().map(|pca| pca.project(&got.map));
                Ok(((got.pooled, grid), got.map.width))
            })
            .collect();
        for (name, row) in batch.iter().zip(rows) {
            let ((global, windows), width) = match row {
                Ok(row) => row,
                Err(error) if args.skip_bad => {
                    bad.push(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            side = width;
            ims.write(global.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()))?;
            if let (Some(grid), Some(windows)) = (&mut grid, windows) {
                grid.write(windows.iter().flat_map(|v| v.to_le_bytes()))?;
            }
            kept.push_str(name);
            kept.push('\n');
        }
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    for error in &bad {
        progress::say(format!("left out: {error}"));
    }
    if kept.is_empty() {
        return Err(Error::invalid(args.images.display(), "pictures that can be read", "none"));
    }
    let count = ims.finish()?;
    if let Some(grid) = grid {
        grid.finish()?;
        quantised(&file("grid_real.npy"), file("grid.npy"), (&args.out, &new), side)?;
    }
    write_bytes(&file("ids.txt"), kept.as_bytes())?;
    folder.commit()?;
    let left_out = if bad.is_empty() { String::new() } else { format!(", {} left out", bad.len()) };
    let is_turned = |name: &str| probe_image(args.images.join(name)).is_ok_and(|info| info.turned);
    let turned = kept.par_lines().filter(|name| is_turned(name)).count();
    if turned > 0 {
        progress::say(turned_pictures(turned));
    }
    let what = if args.grid { "global and grid features" } else { "global features" };
    progress::say(format!("{count} pictures{left_out}: {what} in {}", args.out.display()));
    Ok(())
}

/// The names of a list; refuses a name that occurs twice.
pub(crate) fn listed(file: &Path) -> Result<Vec<String>> {
    let text = read_text(file)?;
    let mut seen = HashSet::new();
    for (i, name) in text.lines().enumerate() {
        let place = format!("{} line {}", file.display(), i + 1);
        if name.trim().is_empty() {
            return Err(Error::invalid(place, "a file name", "an empty line"));
        }
        if !seen.insert(name) {
            return Err(Error::invalid(place, "each picture once", format!("a second {name}")));
        }
    }
    if seen.is_empty() {
        return Err(Error::invalid(file.display(), "a file name on each line", "an empty file"));
    }
    Ok(text.lines().map(str::to_owned).collect())
}

/// The files of a folder that end like pictures, sorted by name.
pub(crate) fn found(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let end = path.extension().unwrap_or_default().to_ascii_lowercase();
        if ["jpg", "jpeg", "png", "webp"].iter().any(|e| end == *e) && path.is_file() {
            let name = path.file_name().unwrap_or_default().to_str();
            let name = name.filter(|n| !n.contains(char::is_control));
            let refuse =
                || Error::invalid(path.display(), "a name of one line in UTF-8", "another");
            names.push(name.ok_or_else(refuse)?.to_owned());
        }
    }
    if names.is_empty() {
        let expected = "pictures (.jpg, .jpeg, .png, .webp)";
        return Err(Error::invalid(folder.display(), expected, "none"));
    }
    names.sort();
    Ok(names)
}

/// Real grids → int8 and one scale per dimension. If the folder has scales, they are used, so that all splits share them;
/// otherwise a scale is the greatest magnitude / 127.
fn quantised(real: &Path, to: PathBuf, (out, new): (&Path, &Path), side: usize) -> Result<()> {
    let values = Npy::open(real)?;
    let width = values.shape()[2];
    let mut row = vec![0.0; values.row_len()];
    let path = out.join("grid_scale.npy");
    let scale = if path.exists() {
        let scale = Npy::open(&path)?;
        if scale.shape() != [width] {
            let got = format!("shape {:?}", scale.shape());
            return Err(Error::invalid(path.display(), format!("shape [{width}]"), got));
        }
        scale.to_vec()?
    } else {
        let mut most = vec![0.0f32; width];
        for i in 0..values.rows() {
            values.row_into(i, &mut row)?;
            for window in row.chunks_exact(width) {
                most.iter_mut().zip(window).for_each(|(most, v)| *most = most.max(v.abs()));
            }
        }
        let scale: Vec<f32> = most.iter().map(|m| m / 127.0).collect();
        let bytes = scale.iter().flat_map(|v| v.to_le_bytes());
        write_bytes(&new.join("grid_scale.npy"), &array("<f4", &[width], bytes))?;
        scale
    };
    let mut grid = Rows::create(to, "|i1", &values.shape()[1..])?;
    for i in 0..values.rows() {
        values.row_into(i, &mut row)?;
        grid.write(quantise(&row, &scale).into_iter().map(|v| v as u8))?;
    }
    grid.finish()?;
    let boxes = grid_boxes(side).concat();
    let boxes = array("<f4", &[GRID * GRID, 4], boxes.iter().flat_map(|v| v.to_le_bytes()));
    write_bytes(&new.join("grid_boxes.npy"), &boxes)?;
    drop(values);
    fs::remove_file(real).map_err(Error::io(real))
}

/// A `.npy` file whose number of rows is known only at the end.
struct Rows {
    path: PathBuf,
    file: BufWriter<File>,
    kind: &'static str,
    shape: Vec<usize>,
    row: usize,
    rows: usize,
    buffer: Vec<u8>,
}

impl Rows {
    fn create(path: PathBuf, kind: &'static str, row: &[usize]) -> Result<Self> {
        let file = File::create(&path).map_err(Error::io(&path))?;
        let mut shape = vec![0];
        shape.extend(row);
        let (row, buffer) = (row.iter().product(), header(kind, &shape));
        let mut file = BufWriter::new(file);
        file.write_all(&buffer).map_err(Error::io(&path))?;
        Ok(Self { path, file, kind, shape, row, rows: 0, buffer })
    }

    /// One row, as bytes.
    fn write(&mut self, bytes: impl Iterator<Item = u8>) -> Result<()> {
        self.buffer.clear();
        self.buffer.extend(bytes);
        let size = self.kind[2..].parse::<usize>().unwrap_or(1) * self.row;
        assert_eq!(self.buffer.len(), size, "bytes of a row {:?}", &self.shape[1..]);
        self.rows += 1;
        self.file.write_all(&self.buffer).map_err(Error::io(&self.path))
    }

    /// Writes the shape and returns the number of rows.
    fn finish(mut self) -> Result<usize> {
        self.shape[0] = self.rows;
        let header = header(self.kind, &self.shape);
        let written = self.file.seek(SeekFrom::Start(0));
        written
            .and_then(|_| self.file.write_all(&header))
            .and_then(|()| self.file.flush())
            .map_err(Error::io(&self.path))?;
        Ok(self.rows)
    }
}

#[cfg(test)]
mod tests;
