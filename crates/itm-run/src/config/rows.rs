//! `[row.<name>]`: the changes of a row to its target. `extends = "ROW"` takes over the changes of another row, and `from = "ROW"` begins
//! with the weights of another row.

use std::collections::BTreeMap;
use std::iter::successors;
use std::path::Path;

use indexmap::IndexMap;
use itm_core::{Error, Result};
use toml::{Table, Value};

use crate::run_dir::slug;

/// The rows in the order of the file, each with its changes: they override those before them, and the row's own are the last.
pub(super) type RowMap = IndexMap<String, Vec<Table>>;

/// Gives every row the changes of the row that it extends, before its own changes.
///
/// # Errors
/// If `extends` names a missing row or leads back to the row.
pub(super) fn resolve(rows: &mut RowMap, path: &Path) -> Result<()> {
    let bases = take(rows, "extends", path)?;
    let own = rows.clone();
    for (name, changes) in rows {
        let way: Vec<_> = successors(Some(name), |row| bases.get(*row)).collect();
        *changes = way.iter().rev().flat_map(|row| own[*row].clone()).collect();
    }
    Ok(())
}

/// Refuses rows that would write into one folder.
///
/// # Errors
/// Names the second of two such rows, or a row whose name makes no folder.
pub(super) fn check_folders(rows: &RowMap, path: &Path) -> Result<()> {
    let mut folders = BTreeMap::new();
    for row in rows.keys() {
        let (place, folder) = (format_args!("{}, row.{row}", path.display()), slug(row));
        Error::unless(!folder.is_empty(), place, "a name with a letter or a digit", "none")?;
        let first = *folders.entry(folder).or_insert(row);
        let expected = format_args!("another name: `{first}` has the folder `{}`", slug(row));
        Error::unless(first == row, place, expected, format_args!("`{row}`"))?;
    }
    Ok(())
}

/// Takes `key` out of the rows; returns, for each row with that key, the row that it names.
///
/// # Errors
/// If that row is missing, or leads back to the row.
pub(super) fn take(rows: &mut RowMap, key: &str, path: &Path) -> Result<BTreeMap<String, String>> {
    let wrong = |row: &str, expected: String, got: String| {
        Error::invalid(format!("{}, row.{row}, {key}", path.display()), expected, got)
    };
    let known: Vec<_> = rows.keys().cloned().collect();
    let mut all = BTreeMap::new();
    for (row, changes) in rows {
        // The last change counts, and `false` leaves out what was before.
        let values = changes.iter_mut().filter_map(|own| own.remove(key));
        let last = values.fold(None, |before, own| match own {
            Value::Boolean(false) if before.is_some() => None,
            own => Some(own),
        });
        match last {
            None => (),
            Some(Value::String(to)) if known.contains(&to) => _ = all.insert(row.clone(), to),
            Some(Value::String(to)) => {
                let expected = format!("one of {}", known.join(", "));
                return Err(wrong(row, expected, format!("`{to}`")));
            }
            Some(other) => {
                return Err(wrong(row, "the name of a row".into(), other.type_str().into()));
            }
        }
    }
    for row in all.keys() {
        let mut way = vec![row.as_str()];
        while let Some(to) = all.get(way[way.len() - 1]) {
            let circle = way.contains(&to.as_str());
            way.push(to);
            if circle {
                let expected = "a row that does not lead back to itself".into();
                return Err(wrong(row, expected, way.join(" → ")));
            }
        }
    }
    Ok(all)
}
