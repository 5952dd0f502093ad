//! `hubness export`: vectors whose plain inner-product search is the corrected search.

use std::io::Write;

use itm_core::scored::Scored;
use itm_core::{Error, Result};
use serde_json::json;

use super::output;
use super::rescore::{fitted, one, say};
use crate::cli::args::ExportArgs;
use crate::cli::input::{self, InputScores};
use crate::study::Then;
use crate::{export, pass};

/// Length of the lists that an engine is checked against.
const EXPECTED: usize = 10;

pub(super) fn run(ExportArgs { fit, out: folder }: ExportArgs, out: &mut impl Write) -> Result<()> {
    let direction = fit.direction;
    let (base, then) = one(&fit)?;
    if then != Then::Ranking {
        let expected = "csls, is, nnn or sinkhorn: a matching has no vectors";
        return Err(Error::invalid("--method", expected, &fit.method));
    }
    let loaded = input::load(&fit.input)?;
    let InputScores::Embeddings(rows) = &loaded.scores else {
        let expected = "--images and --texts: an export needs embeddings";
        return Err(Error::invalid("export", expected, "scores"));
    };
    let runs = loaded.test_scores().runs()?;
    let (set, correction, params) = fitted(&fit, (base, then), &loaded, &runs)?;
    let (queries, items) =
        (direction.queries(&rows.images, &rows.texts), direction.items(&rows.images, &rows.texts));
    let number = direction.items(rows.images(), rows.texts());
    let augmented = export::items(direction, items, rows.dim, &correction)?;
    say(&loaded);
    let asked: Vec<f32> = queries.chunks(rows.dim).flat_map(export::query).collect();
    let expected = pass::top(set.scores, &correction, EXPECTED)?;
    let lists = (0..expected.queries()).flat_map(|q| expected.items(q).iter().map(|&i| i as i32));
    let lists: Vec<i32> = lists.collect();

    std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    let width = rows.dim + 1;
    output::npy(&folder.join("items.npy"), width, augmented.into_iter())?;
    output::npy(&folder.join("queries.npy"), width, asked.into_iter())?;
    output::npy(&folder.join("expected.npy"), expected.k(), lists.into_iter())?;
    let about = json!({
        "method": fit.method,
        "direction": direction,
        "params": params,
        "setting": correction.setting(),
        "items": number,
        "dim": width,
        "metric": "inner product (not cosine)",
        "query": "the embedding as it was fitted (unit length unless --raw), then 1.0",
        "files": loaded.messages.files.iter().map(|f| json!({"name": f.name, "sha256": f.sha256})).collect::<Vec<_>>(),
    });
    output::write(&folder.join("export.json"), |file| writeln!(file, "{about:#}"))?;
    let (kind, asking) = direction.items(("images", "text"), ("texts", "image"));
    let text = format!(
        "{}: {} {kind} of width {width} in items.npy ({}).\n\
         Index them for the inner product. Append 1.0 to a {asking}'s embedding{} and search:\n\
         the largest inner products are the corrected ranking. queries.npy holds such queries,\n\
         expected.npy holds the {} best items of each query, to check the engine.\n",
        folder.display(),
        number,
        correction.setting(),
        if fit.input.raw { "" } else { " of unit length" },
        expected.k(),
    );
    out.write_all(text.as_bytes()).map_err(Error::io("standard output"))
}
