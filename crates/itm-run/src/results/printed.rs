//! What the paper prints for the rows of a run, and the claim about the rows.

use crate::config::{ClaimConfig, Shown};
use crate::job::{Job, together};
use crate::paper::{Measured as PaperData, Printed};
use crate::report::{CCA, Claim};

/// The data and the protocol of the run, if the paper measured the same. Then the paper's numbers are beside ours,
/// otherwise in a block of their own.
pub(super) fn measured_as_the_paper(job: &Job) -> Option<PaperData> {
    PaperData::new(job.run.bench.source.known?, job.asked.protocol)
}

/// The number of the paper's table; `None` for figures and for tables that no paper has: they have no printed numbers.
pub(super) fn table(job: &Job) -> Option<u32> {
    match job.asked.shown {
        Shown::Table(n) => Some(n),
        Shown::Named(_) | Shown::Figure(_) => None,
    }
}

/// What the paper calls a row of ours. If the view has ensembles, the paper's name belongs to the ensemble of a row.
pub(super) fn printed<'a>(job: &'a Job, name: &'a str) -> &'a str {
    let view = &job.asked.view;
    if view.ensemble < 2 {
        return view.printed(name);
    }
    let row = view.rows.iter().find(|row| together(row, view.ensemble) == name);
    row.map_or(name, |row| view.printed(row))
}

/// The paper's line of a row, if the run has the paper's data and protocol.
pub(super) fn printed_line<'a>(job: &'a Job, name: &'a str) -> Option<&'a Printed> {
    let (on, table) = measured_as_the_paper(job).zip(table(job))?;
    job.asked.paper.line(table, on, printed(job, name))
}

/// The claim about the rows, or about their ensembles if there are any. If the claim names no other row, the claim is
/// that its row is above the closed form.
pub(super) fn claim(job: &Job) -> Claim {
    let ClaimConfig { row, mut against } = job.asked.view.claim();
    if against.is_empty() {
        against.push(CCA.into());
    }
    match job.asked.view.ensemble {
        0 | 1 => Claim { row, against },
        size => {
            let of = |row: String| if row == CCA { row } else { together(&row, size) };
            Claim { row: of(row), against: against.into_iter().map(of).collect() }
        }
    }
}
