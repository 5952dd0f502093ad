//! What a run reports about the precision of its products.

use itm_kernels::Precision;

use crate::bench::Bench;
use crate::job::{Job, together};

/// One sentence about the rows whose configuration says bf16; `None` if there are no such rows.
pub(crate) fn sentence(bench: &Bench, rows: &[String]) -> Option<String> {
    let rows: Vec<_> = rows.iter().filter(|row| is_bf16(bench, row)).map(String::as_str).collect();
    let rows = (!rows.is_empty()).then(|| rows.join(", "))?;
    Some(match Precision::Bf16.here() {
        Precision::Bf16 => {
            format!("{rows}: products in blocks have bf16 operands and f32 sums.")
        }
        Precision::F32 => {
            format!(
                "{rows}: products are in f32, although bf16 was set: this processor has no AVX512-BF16."
            )
        }
    })
}

/// [`sentence`] about the rows of a run.
pub(crate) fn note(job: &Job) -> Option<String> {
    sentence(&job.run.bench, &job.asked.view.rows)
}

/// The precision that was used for a row of the report; `None` for f32.
pub(crate) fn of_row(job: &Job, name: &str) -> Option<String> {
    let view = &job.asked.view;
    let is_named = |row: &&String| *row == name || together(row, view.ensemble) == name;
    let row = view.rows.iter().find(is_named)?;
    let used = if is_bf16(&job.run.bench, row) { Precision::Bf16.here() } else { Precision::F32 };
    (used == Precision::Bf16).then(|| "bf16".into())
}

fn is_bf16(bench: &Bench, row: &str) -> bool {
    matches!(bench.precision(row), Ok(Some(Precision::Bf16)))
}
