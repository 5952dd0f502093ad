//! An answer in the terminal.

use itm_search::{Answer, Index};
use serde_json::json;

use crate::cli::SearchArgs;
use crate::progress;

/// Prints an answer: paths with scores, paths alone, or JSON.
pub(super) fn say(args: &SearchArgs, index: &Index, answer: &Answer) {
    let path = |picture: usize| &index.pictures()[picture].path;
    if args.json {
        let hits = answer.hits.iter().map(
            |hit| json!({ "path": path(hit.picture), "score": hit.score, "cosine": hit.cosine }),
        );
        let all = json!({
            "hits": hits.collect::<Vec<_>>(),
            "found": answer.found,
            "level": answer.level,
            "candidates": answer.candidates,
            "correction": if args.no_correction { "none" } else { index.correction() },
        });
        return progress::say(all);
    }
    if !args.files && !answer.found {
        let level = answer.level;
        progress::say(format!(
            "nothing here matches: the best is below {level:.3}, which ordinary queries reach"
        ));
    }
    for hit in &answer.hits {
        match args.files {
            true => progress::say(index.folder().join(path(hit.picture)).display()),
            false => progress::say(format!("{:.4}  {}", hit.score, path(hit.picture))),
        }
    }
}
