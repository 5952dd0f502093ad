//! `hubness export`: vectors whose plain inner-product search is the corrected search.

use std::io::Write;

use itm_core::scored::Scored;
use itm_core::{Error, Result};
use serde_json::json;

use super::output;
use super::rescore::{fitted, one, say};
use crate::cli::args::Export as Args;
use crate::cli::input::{self, InputScores};
use crate::study::Then;
use crate::{export, pass};

/// Length of the lists that an engine is checked against.
const EXPECTED: usize = 10;

pub(super) fn run(args: Args, out: &mut impl Write) -> Result<()> {
    let direction = args.direction;
    let (base, then) = one(&args.method, &args.settings)?;
    if then != Then::Ranking {
        let expected = "csls, is, nnn or sinkhorn: a matching has no vectors";
        return Err(Error::invalid("--method", expected, &args.method));
    }
    let loaded = input::load(&args.input)?;
    let InputScores::Embeddings(rows) = &loaded.scores else {
        let expected = "--images and --texts: an export needs embeddings";
        return Err(Error::invalid("export", expected, "scores"));
    };
    let runs = loaded.test_scores().runs()?;
    let fit = (base, then);
    let (set, correction, params) =
        fitted(fit, &args.settings, direction, &loaded, &runs, args.input.length())?;
    let (queries, items) =
        (direction.queries(&rows.images, &rows.texts), direction.items(&rows.images, &rows.texts));
    let number = direction.items(rows.images(), rows.texts());
    let augmented = export::items(direction, items, rows.dim, &correction)?;
    say(&loaded);
    let asked: Vec<f32> = queries.chunks(rows.dim).flat_map(export::query).collect();
    let expected = pass::top(set.scores, &correction, EXPECTED)?;
    let lists = (0..expected.queries()).flat_map(|q| expected.items(q).iter().map(|&i| i as i32));
    let lists: Vec<i32> = lists.collect();

    std::fs::create_dir_all(&args.out).map_err(Error::io(&args.out))?;
    let width = rows.dim + 1;
    output::npy(&args.out.join("items.npy"), width, augmented.into_iter())?;
    output::npy(&args.out.join("queries.npy"), width, asked.into_iter())?;
    output::npy(&args.out.join("expected.npy"), expected.k(), lists.into_iter())?;
    let about = json!({
        "method": args.method,
        "direction": direction,
        "params": params,
        "setting": correction.setting(),
        "items": number,
        "dim": width,
        "metric": "inner product (not cosine)",
        "query": "the embedding as it was fitted (unit length unless --raw), then 1.0",
        "files": loaded.messages.files.iter().map(|f| json!({"name": f.name, "sha256": f.sha256})).collect::<Vec<_>>(),
    });
    output::write(&args.out.join("export.json"), |file| writeln!(file, "{about:#}"))?;
    let (kind, asking) = direction.items(("images", "text"), ("texts", "image"));
    let text = format!(
        "{}: {} {kind} of width {width} in items.npy ({}).\n\
         Index them for the inner product. Append 1.0 to a {asking}'s embedding{} and search:\n\
         the largest inner products are the corrected ranking. queries.npy holds such queries,\n\
         expected.npy holds the {} best items of each query, to check the engine.\n",
        args.out.display(),
        number,
        correction.setting(),
        if args.input.raw { "" } else { " of unit length" },
        expected.k(),
    );
    out.write_all(text.as_bytes()).map_err(Error::io("standard output"))
}
