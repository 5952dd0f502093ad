//! A table of corrections for hubs: its rows under each correction, over the seeds and beside the paper's numbers.

mod markdown;
mod orderings;
mod summary;

use std::path::Path;
use std::time::Instant;

use itm_core::Result;

use crate::disk::write_atomically;
use crate::job::Job;
use crate::progress;
use crate::report::CCA;
use crate::rescore::Rescoring;
use crate::results::{Results, RowResult};
use summary::{Origin, RowReports, Summary};

/// Writes `summary.json` and `summary.md` into the folder of a table of corrections.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn write(
    job: &Job,
    rescoring: &Rescoring,
    results: &Results,
    folder: &Path,
    started: Instant,
) -> Result<()> {
    let row = |name: &String| results.rows.iter().find(|row| row.name == *name);
    let cca = results.rows.iter().find(|row| row.name == CCA).map(RowResult::rsum);
    let rows = job.asked.view.rows.iter().zip(&job.asked.printed.rows);
    let measured = rows.filter_map(|(name, printed)| {
        let result = row(name)?;
        let reports = rescoring.of_row(name);
        let origin = Origin { rsum: Some(result.rsum()), cca };
        Some(RowReports { row: name.clone(), printed: printed.clone(), reports, origin })
    });
    let summary = Summary::new(job, rescoring.study.resamples, measured.collect(), started);
    let text = serde_json::to_string_pretty(&summary).expect("names and numbers");
    write_atomically(&folder.join("summary.json"), (text + "\n").as_bytes())?;
    let page = markdown::render(&summary);
    write_atomically(&folder.join("summary.md"), page.as_bytes())?;
    progress::say(&page);
    Ok(())
}
