//! `hubness export --biases`: an export of what parts gave. The items are read a few at a time.

use std::ops::Range;
use std::path::{Path, PathBuf};

use itm_core::data::{Features, FileBytes};
use itm_core::tiles::{Part, Reduction, Tiles};
use itm_core::{Error, Result};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde_json::json;

use super::export_about::{About, EXPECTED, hash};
use super::npy::{npy, npy_by};
use super::parts::view;
use crate::cli::args::ExportArgs;
use crate::cli::input;
use crate::export::{augmented, query};

/// Items that are in memory at once: 128 MiB for rows of 512 numbers.
const ITEMS: usize = 1 << 16;

/// Writes vectors, queries and lists.
pub(super) fn write(
    args: &ExportArgs,
    path: &Path,
    [vectors, asking, lists_of, _]: &[PathBuf; 4],
) -> Result<About> {
    let (direction, length) = (args.fit.direction, args.fit.input.length());
    let ([images, texts], _) = input::arrays(&args.fit.input, false)?;
    let whole = (images.rows(), texts.rows());
    let (queries, items) = (direction.queries(&images, &texts), direction.items(&images, &texts));
    let biases = biases(path, items.rows())?;
    let mean = || biases.iter().sum::<f64>() / biases.len() as f64;
    let (centre, width) = (args.centre.unwrap_or_else(mean), items.dim() + 1);
    let asked = input::some_rows(queries, 0..queries.rows(), length)?;
    let asked = asked.values.chunks(asked.dim).flat_map(query).collect();
    let asked = Features { dim: width, values: asked };
    npy(asking, width, asked.values.iter().copied())?;

    let mut best: Option<Part> = None;
    npy_by(vectors, (items.rows(), width), ITEMS, |some: Range<usize>| {
        let rows = input::some_rows(items, some.clone(), length)?;
        let values = augmented(&rows.values, rows.dim, &biases[some.clone()], centre, some.start)?;
        drop(rows);
        let found = Features { dim: width, values };
        let (of_items, of_queries) = (view("items", &found)?, view("queries", &asked)?);
        let (images, texts) =
            (direction.queries(of_queries, of_items), direction.items(of_queries, of_items));
        let (origin, lists) = direction.queries(
            ((0, some.start), Reduction::TopTexts(EXPECTED)),
            ((some.start, 0), Reduction::TopImages(EXPECTED)),
        );
        let part = Tiles::new(images, texts)?.part(lists, origin, whole)?;
        best = Some(match best.take() {
            Some(all) => all.join(part)?,
            None => part,
        });
        Ok(found.values)
    })?;
    let best = best.expect("at least one row").top()?;
    let lists = (0..best.queries()).flat_map(|q| best.items(q).iter().map(|&item| item as i32));
    npy(lists_of, best.k(), lists.collect::<Vec<_>>().into_iter())?;
    Ok(About {
        method: "biases".into(),
        params: json!({}),
        setting: None,
        items: items.rows(),
        centre,
        width,
        k: best.k(),
        files: vec![hash(path)?],
    })
}

/// The bias of each item.
fn biases(path: &Path, items: usize) -> Result<Vec<f64>> {
    let bytes = FileBytes::open(path)?;
    let refused = |expected: &str, got: String| Error::invalid(path.display(), expected, got);
    let all = SafeTensors::deserialize(&bytes)
        .map_err(|error| refused("a file of `hubness finish --method`", error.to_string()))?;
    let tensor = all.tensor("bias").map_err(|_| {
        let mut names = all.names();
        names.sort_unstable();
        refused("a tensor `bias` (csls, nnn, is, dual-is)", names.join(", "))
    })?;
    if (tensor.dtype(), tensor.shape()) != (Dtype::F64, &[items]) {
        let expected = format!("one f64 for each of {items} items");
        return Err(refused(&expected, format!("{:?} {:?}", tensor.dtype(), tensor.shape())));
    }
    let (values, _) = tensor.data().as_chunks();
    Ok(values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
}
