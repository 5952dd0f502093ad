//! Loads a data folder and says what is in it: `cargo run --example data_load -- DIR`.
#![allow(clippy::print_stdout, reason = "an example for people")]

use std::time::Instant;

use itm_core::data::{LoadOptions, load_precomp};
use itm_core::text::{Vocabulary, VocabularyOptions};

fn main() {
    let Some(dir) = std::env::args_os().nth(1) else {
        println!("usage: data_load DIR");
        std::process::exit(2);
    };
    let start = Instant::now();
    let loaded = load_precomp(dir, &LoadOptions::default()).unwrap_or_else(|error| {
        println!("{error}");
        std::process::exit(2);
    });
    let seconds = start.elapsed().as_secs_f64();
    let data = &loaded.dataset;
    println!("{} in {seconds:.2} s, sha256 {}", data.name, data.sha256);
    loaded.notes.iter().for_each(|note| println!("{note}"));
    println!("{}", loaded.leakage);
    let options = VocabularyOptions { min_count: 3, ..Default::default() };
    let vocabulary = Vocabulary::build(&data.train.captions, options);
    let oov = vocabulary.out_of_vocabulary(&data.test.captions);
    println!(
        "{} entries (count ≥ 3), {:.2} % of test unknown",
        vocabulary.len(),
        100.0 * oov.rate()
    );
    let first = &data.test.images[0];
    println!("{first}: {:?}: {}", loaded.images.image_path(first), data.test.captions[0]);
}
