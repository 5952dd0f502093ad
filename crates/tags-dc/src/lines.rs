//! Lines of untrusted length.

use std::io::{BufRead, Read};

use itm_core::{Error, Result};

/// Shows each line of a source with its number, from 1. Errors give `name` as the place.
///
/// # Errors
/// If the source cannot be read, or a line has more than `longest` bytes; also the errors of `show`.
pub(crate) fn each_line(
    name: &str,
    mut source: impl BufRead,
    longest: usize,
    mut show: impl FnMut(usize, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let part = (&mut source).take(longest as u64 + 1).read_until(b'\n', &mut line);
        if part.map_err(Error::io(name))? == 0 {
            break;
        }
        let place = format_args!("{name} line {number}");
        let expected = format_args!("at most {longest} bytes");
        Error::unless(line.len() <= longest, place, expected, "a longer line")?;
        show(number, &line)?;
    }
    Ok(())
}
