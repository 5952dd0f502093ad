//! Negative captions without a model, as JSON lines.
//!
//! `cargo run -p tags-dc --example edit_captions -- CAPTIONS TRAINING OUT [SEED [PER_CAPTION]]`: the first two are files of
//! `image_id<TAB>caption` lines. The second file teaches which nouns may replace which.

use std::path::Path;
use std::process::ExitCode;

use itm_core::{Error, Result};
use tags_dc::edits::{Captions, Counts, Edits, NounTable, Quota, Rules, negatives, read_captions};
use tags_dc::phrases::{Sentence, parse};
use tags_dc::record::{self, Kind};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(counts) => {
            eprintln!("{} captions, {} without a variant", counts.captions, counts.without);
            eprintln!("{:?}", counts.records);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the example with these arguments.
pub(crate) fn run(args: &[String]) -> Result<Counts> {
    let [captions, training, out, rest @ ..] = args else {
        let expected = "CAPTIONS TRAINING OUT [SEED [PER_CAPTION]]";
        return Err(Error::invalid("arguments", expected, format!("{} of them", args.len())));
    };
    let number = |at: usize, default: u64| match rest.get(at) {
        Some(text) => text.parse().map_err(|_| Error::invalid("arguments", "a number", text)),
        None => Ok(default),
    };
    let (seed, per_caption) = (number(0, 0)?, number(1, 1)?);
    let captions = read_captions(Path::new(captions))?;
    let parsed = |image: &Captions| -> Vec<Sentence> {
        image.texts.iter().map(|text| parse(text)).collect()
    };
    let training: Vec<Vec<Sentence>> =
        read_captions(Path::new(training))?.iter().map(parsed).collect();
    let edits = Edits { nouns: NounTable::fit(&training), rules: Rules::Fitting };
    let kinds = Kind::RULES.to_vec();
    let wanted = Quota { seed, per_caption: per_caption as usize, kinds };
    let (records, counts) = negatives(&captions, &edits, &wanted);
    record::save(Path::new(out), &records)?;
    Ok(counts)
}
