//! What the paper says of the rows of a run, and what is claimed of them.

use crate::config::{ClaimConfig, Shown};
use crate::ensemble::Ensemble;
use crate::paper::{Measured as PaperData, Paper, Printed};
use crate::report::{CCA, Claim};
use crate::reproduce::Job;

/// The data and protocol of the paper's table, if they are those of the run: then its numbers stand beside ours, otherwise
/// in a block of their own.
pub(super) fn measured_as_the_paper(job: &Job) -> Option<PaperData> {
    PaperData::new(job.source.known?, job.protocol)
}

pub(super) fn paper(job: &Job) -> Paper {
    Paper::of(job.asked.target.method)
}

/// The number of the paper's table; a figure has no printed numbers.
pub(super) fn table(job: &Job) -> Option<u32> {
    match job.shown {
        Shown::Table(n) => Some(n),
        Shown::Figure(_) => None,
    }
}

/// What the paper calls a row of ours. Where it prints an ensemble, that is what its line stands beside.
pub(super) fn printed<'a>(job: &'a Job, name: &'a str) -> &'a str {
    let view = &job.view;
    if view.ensemble < 2 {
        return view.printed(name);
    }
    let row = view.rows.iter().find(|row| Ensemble::name(row, view.ensemble) == name);
    row.map_or(name, |row| view.printed(row))
}

/// The paper's line of a row, if the run is of its data.
pub(super) fn printed_line(job: &Job, name: &str) -> Option<&'static Printed> {
    let (on, table) = measured_as_the_paper(job).zip(table(job))?;
    paper(job).line(table, on, printed(job, name))
}

/// With ensembles it is of them: of the first row's against the closed form.
pub(super) fn claim(job: &Job) -> Claim {
    let ClaimConfig { row, mut against } = job.view.claim();
    against.push(CCA.into());
    match job.view.ensemble {
        0 | 1 => Claim { row, against },
        size => {
            let of = |row: String| if row == CCA { row } else { Ensemble::name(&row, size) };
            Claim { row: of(row), against: against.into_iter().map(of).collect() }
        }
    }
}
