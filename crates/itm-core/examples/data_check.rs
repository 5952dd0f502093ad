//! Checks a data folder and loads it if it has features: `cargo run --release --example data_check -- DIR`.
#![allow(clippy::print_stdout, reason = "an example for people")]

use std::time::Instant;

use itm_core::data::{LoadOptions, check, load_precomp};
use itm_core::text::{Vocabulary, VocabularyOptions};

fn main() -> itm_core::Result<()> {
    let Some(dir) = std::env::args_os().nth(1) else {
        println!("usage: data_check DIR");
        std::process::exit(2);
    };
    let start = Instant::now();
    println!("{}", check(&dir)?);
    println!("\nchecked in {:.2} s", start.elapsed().as_secs_f64());

    let start = Instant::now();
    let Ok(loaded) = load_precomp(dir, &LoadOptions::default()) else { return Ok(()) };
    let data = &loaded.dataset;
    println!("{} loaded in {:.2} s: {}", data.name, start.elapsed().as_secs_f64(), data.sha256);
    for (name, part) in [("train", &data.train), ("val", &data.val), ("test", &data.test)] {
        let (dim, captions) = (part.features.dim, part.captions.len());
        println!("  {name}: [{}, {dim}], {captions} captions", part.features.rows());
    }
    let options = VocabularyOptions { min_count: 3, ..Default::default() };
    let vocabulary = Vocabulary::build(&data.train.captions, options);
    println!("  {} vocabulary entries (count ≥ 3)", vocabulary.len());
    let first = &data.test.images[0];
    println!("  {:?}: {}", loaded.images.image_path(first), data.test.captions[0]);
    Ok(())
}
