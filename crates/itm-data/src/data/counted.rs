//! Rows of items, one item after another: so many rows of each.

use crate::{Error, Result};

/// Refuses values that are not the rows of all items. `counts` has the number of rows of each item, and `names` says what an item, a row and
/// the values are.
///
/// ```
/// use itm_data::data::{check_counts, item_of};
///
/// let (counts, names) = ([2, 1], ["image", "region", "regions"]);
/// assert!(check_counts(&counts, names, 4, 12).is_ok()); // 3 × 4 values
/// assert_eq!(item_of(&counts, 2), (1, 0)); // row 2 is the first of image 1
/// ```
///
/// # Errors
/// If an item has no row, the rows are not at least 1 wide, or there are not as many values as the counts say.
pub fn check_counts(
    counts: &[usize],
    [item, row, what]: [&str; 3],
    width: usize,
    values: usize,
) -> Result<()> {
    if let Some(k) = counts.iter().position(|&count| count == 0) {
        return Err(Error::invalid(format!("{item} {k}"), format!("at least 1 {row}"), 0));
    }
    let rows = counts.iter().try_fold(0usize, |rows, &count| rows.checked_add(count));
    let fits = width > 0 && rows.and_then(|rows| rows.checked_mul(width)) == Some(values);
    let rows = rows.map_or_else(|| "too many".into(), |rows| rows.to_string());
    Error::unless(fits, what, format_args!("{rows} × {width} values, at least 1 wide"), values)
}

/// The item of a row, and the row's number among the rows of this item.
///
/// # Panics
/// If there is no such row.
pub fn item_of(counts: &[usize], mut row: usize) -> (usize, usize) {
    let mut item = 0;
    while row >= counts[item] {
        row -= counts[item];
        item += 1;
    }
    (item, row)
}
