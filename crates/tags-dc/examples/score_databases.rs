//! Scores all pairs of a split in the databases that UNITER is distributed with: R@1, 5 and 10 in both directions.
//!
//! `cargo run --release -p tags-dc --features lmdb,flex --example score_databases -- TEXTS.db IMAGES WEIGHTS SHAPE`: SHAPE is `base`, `large`
//! or a JSON file of a `UniterShape`. All captions of Flickr30k's test split need 5 million passes, which take days on a CPU.

use std::path::Path;
use std::process::ExitCode;

use burn::tensor::Device;
use itm_core::eval::{Evaluation, Protocol, TiePolicy};
use itm_core::scored::Scored;
use itm_core::{Error, Result};
use tags_dc::databases::{Detections, ImageDatabase, TextDatabase};
use tags_dc::model::{Uniter, UniterScores, UniterShape};

/// Images per batch of regions.
const IMAGES: usize = 128;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(found) => {
            let [a, b, c] = found.i2t.recalls();
            let [d, e, f] = found.t2i.recalls();
            eprintln!("image to text: R@1 {a:.1}, R@5 {b:.1}, R@10 {c:.1}");
            eprintln!("text to image: R@1 {d:.1}, R@5 {e:.1}, R@10 {f:.1}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the example with these arguments.
pub(crate) fn run(args: &[String]) -> Result<Evaluation> {
    let [texts, images, weights, shape] = args else {
        let expected = "TEXTS.db IMAGES WEIGHTS SHAPE";
        return Err(Error::invalid("arguments", expected, format!("{} of them", args.len())));
    };
    let shape = match &shape[..] {
        "base" => UniterShape::base(),
        "large" => UniterShape::large(),
        file => read_shape(Path::new(file))?,
    };
    let (database, images) =
        (TextDatabase::open(texts)?, ImageDatabase::open(images, Detections::default())?);
    database.meta().check(shape.text.vocabulary)?;
    let split = database.read(None)?;
    let (model, report) = Uniter::open(weights, &shape, &Device::flex())?;
    eprintln!("{report:?}");
    let names: Vec<&str> = split.images.iter().map(String::as_str).collect();
    let batches = names.chunks(IMAGES).map(|some| images.batch(some));
    let pieces = split.pieces.iter().map(|pieces| database.meta().around(pieces)).collect();
    let scores: &dyn Scored = &UniterScores::new(&model, batches, pieces)?;
    scores.evaluate(Protocol::Full, &split.pairs, TiePolicy::Index)
}

fn read_shape(file: &Path) -> Result<UniterShape> {
    let bytes = std::fs::read(file).map_err(Error::io(file))?;
    serde_json::from_slice(&bytes)
        .map_err(|e| Error::invalid(file.display(), "the sizes of a UNITER", e))
}
