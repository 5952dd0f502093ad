//! Checks that several parts of the crate share. Their errors say where, expected, got.

use burn::tensor::Tensor;
use itm_core::{Error, Result, host};

/// Id of a bank row that was never written. No image may have this id.
pub const NEVER: i64 = -100;

/// Refuses the id that marks rows of a bank that were never written; `what` names an item in the message.
pub(crate) fn ids(what: &str, ids: &[i64]) -> Result<()> {
    let Some(row) = ids.iter().position(|&id| id == NEVER) else { return Ok(()) };
    let got = format!("{NEVER}, which marks bank rows never written");
    Err(Error::invalid(format!("{what} {row}"), "an image id", got))
}

/// Refuses a number of items other than `expected`.
pub(crate) fn count(what: &str, expected: usize, each: &str, got: usize) -> Result<()> {
    Error::unless(expected == got, what, format_args!("{expected} values, {each}"), got)
}

/// Refuses a table of a shape other than `expected`.
pub(crate) fn shape(what: &str, expected: [usize; 2], rows: &Tensor<2>) -> Result<()> {
    let (got, [n, d]) = (rows.dims(), expected);
    let shown = format_args!("{} of {}", got[0], got[1]);
    Error::unless(got == expected, what, format_args!("{n} rows of width {d}"), shown)
}

/// Refuses rows with a NaN or an infinity. Copies the rows to the host.
pub(crate) fn finite(what: &str, rows: &Tensor<2>) -> Result<()> {
    let width = rows.dims()[1];
    finite_values(what, &host(rows.clone().detach()), width)
}

/// [`finite`] for rows on the host.
pub(crate) fn finite_values(what: &str, values: &[f32], width: usize) -> Result<()> {
    let place = |at| format!("{what}, row {}", at / width.max(1));
    Error::unless_finite(values, place, "finite numbers")
}
