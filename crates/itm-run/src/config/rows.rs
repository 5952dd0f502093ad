//! `[row.<name>]`: the changes of a row to its target. `extends = "ROW"` takes over the changes of another row, and `from = "ROW"` begins
//! with the weights of another row.

use std::collections::BTreeMap;
use std::path::Path;

use itm_core::{Error, Result};
use toml::{Table, Value};

use super::read::override_with;
use crate::run_dir::slug;

/// Every row with the changes of the row that it extends, overridden by its own changes.
///
/// # Errors
/// If `extends` names a missing row or leads back to the row.
pub(super) fn resolved(rows: Vec<(String, Table)>, path: &Path) -> Result<Vec<(String, Table)>> {
    let whole =
        |(name, _): &(String, Table)| Ok((name.clone(), changes(&rows, name, &mut vec![], path)?));
    rows.iter().map(whole).collect()
}

/// Refuses rows that would write into one folder.
///
/// # Errors
/// Names the second of two such rows, or a row whose name makes no folder.
pub(super) fn check_folders(rows: &[(String, Table)], path: &Path) -> Result<()> {
    let mut folders = BTreeMap::new();
    for (row, _) in rows {
        let (place, folder) = (format_args!("{}, row.{row}", path.display()), slug(row));
        Error::unless(!folder.is_empty(), place, "a name with a letter or a digit", "none")?;
        let first = *folders.entry(folder).or_insert(row);
        let expected = format_args!("another name: `{first}` has the folder `{}`", slug(row));
        Error::unless(first == row, place, expected, format_args!("`{row}`"))?;
    }
    Ok(())
}

/// The method's section with a row's changes.
pub(super) fn merged(method: &Table, changes: &Table) -> Table {
    let mut merged = method.clone();
    override_with(&mut merged, changes);
    merged
}

fn changes(
    rows: &[(String, Table)],
    name: &str,
    above: &mut Vec<String>,
    path: &Path,
) -> Result<Table> {
    let wrong = |expected: String, got: String| {
        let row = above.last().map_or(name, String::as_str);
        Err(Error::invalid(format!("{}, row.{row}, extends", path.display()), expected, got))
    };
    let Some((_, own)) = rows.iter().find(|(row, _)| row == name) else {
        let known: Vec<_> = rows.iter().map(|(row, _)| row.as_str()).collect();
        return wrong(format!("one of {}", known.join(", ")), format!("`{name}`"));
    };
    if above.iter().any(|row| row == name) {
        let expected = "a row that does not lead back to itself".into();
        return wrong(expected, format!("{} → {name}", above.join(" → ")));
    }
    let mut own = own.clone();
    let base = match own.remove("extends") {
        None => return Ok(own),
        Some(Value::String(base)) => base,
        Some(other) => return wrong("the name of a row".into(), other.type_str().into()),
    };
    above.push(name.to_owned());
    let mut all = changes(rows, &base, above, path)?;
    override_with(&mut all, &own);
    Ok(all)
}

/// Takes `from` out of the rows; returns, for each row with `from`, the row that it begins with.
///
/// # Errors
/// If that row is missing, or leads back to the row.
pub(super) fn take_from(
    rows: &mut [(String, Table)],
    path: &Path,
) -> Result<BTreeMap<String, String>> {
    let wrong = |row: &str, expected: String, got: String| {
        Error::invalid(format!("{}, row.{row}, from", path.display()), expected, got)
    };
    let known: Vec<_> = rows.iter().map(|(row, _)| row.clone()).collect();
    let mut all = BTreeMap::new();
    for (row, changes) in rows {
        match changes.remove("from") {
            None => (),
            Some(Value::String(from)) if known.contains(&from) => _ = all.insert(row.clone(), from),
            Some(Value::String(from)) => {
                let expected = format!("one of {}", known.join(", "));
                return Err(wrong(row, expected, format!("`{from}`")));
            }
            Some(other) => {
                return Err(wrong(row, "the name of a row".into(), other.type_str().into()));
            }
        }
    }
    for row in all.keys() {
        let mut way = vec![row];
        while let Some(from) = all.get(way[way.len() - 1]) {
            let circle = way.contains(&from);
            way.push(from);
            if circle {
                let names: Vec<_> = way.iter().map(|row| row.as_str()).collect();
                let expected = "a row that does not lead back to itself".into();
                return Err(wrong(row, expected, names.join(" → ")));
            }
        }
    }
    Ok(all)
}
