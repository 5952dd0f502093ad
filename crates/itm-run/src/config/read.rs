//! A target's file as TOML, merged with the target that it `extends`.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use itm_core::{Error, Result};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::disk::file_names;

/// The tables of a file.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Table> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..before].iter().filter(|&&b| b == b'\n').count();
        let reason = error.message().lines().next().unwrap_or("a wrong value").to_owned();
        Error::invalid(format!("{} line {line}", path.display()), "valid TOML", reason)
    })
}

/// The names of the `.toml` files of a folder, sorted.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>> {
    let target = |file: &String| file.strip_suffix(".toml").map(str::to_owned);
    let mut names: Vec<_> = file_names(folder)?.iter().filter_map(target).collect();
    names.sort(); // `a-b.toml` comes before `a.toml`, but `a-b` after `a`
    Ok(names)
}

/// A file with its `extends` resolved: the tables of that target, without the keys that `without` names, overridden by the file's
/// own tables.
///
/// # Errors
/// If the chain of targets is a circle, breaks off or changes the method, or if `without` names a missing key.
pub(super) fn whole(path: &Path, own: Table) -> Result<Table> {
    merged(path, own, &mut vec![])
}

/// `above` is the chain of targets that leads to this one by `extends`.
fn merged(path: &Path, mut own: Table, above: &mut Vec<String>) -> Result<Table> {
    let Some(extends) = own.remove("extends") else { return Ok(own) };
    let wrong = |key: &str, expected: String, got: String| {
        Error::invalid(format!("{}, {key}", path.display()), expected, got)
    };
    let Value::String(name) = extends else {
        return Err(wrong("extends", "the name of a target".into(), extends.type_str().into()));
    };
    above.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    if above.contains(&name) {
        let expected = "a target that does not lead back to itself";
        return Err(wrong("extends", expected.into(), format!("{} → {name}", above.join(" → "))));
    }
    let known = names(path.parent().unwrap_or(path))?;
    if !known.contains(&name) {
        return Err(wrong("extends", format!("one of {}", known.join(", ")), format!("`{name}`")));
    }
    let file = path.with_file_name(format!("{name}.toml"));
    let text = fs::read_to_string(&file).map_err(Error::io(&file))?;
    let mut base = merged(&file, parse(&file, &text)?, above)?;
    let method = |file: &Table| file.get("target")?.get("method").cloned();
    if let Some((own, base)) = method(&own).zip(method(&base)).filter(|(own, base)| own != base) {
        let got = format!("`{name}`, whose method is {base}");
        return Err(wrong("extends", format!("a target of the method {own}"), got));
    }
    if let Some(without) = own.remove("without") {
        leave_out(&mut base, &without, "without", &|key, got| {
            wrong(key, format!("keys of {name}"), got)
        })?;
    }
    override_with(&mut base, &own);
    Ok(base)
}

/// Removes listed keys, as in `without.row = ["Full"]`, from the section of that name; a list inside the list is a path of keys.
pub(super) fn leave_out(
    base: &mut Table,
    without: &Value,
    place: &str,
    wrong: &impl Fn(&str, String) -> Error,
) -> Result<()> {
    match without {
        Value::Table(sections) => sections.iter().try_for_each(|(key, inner)| {
            let place = format!("{place}.{key}");
            match base.get_mut(key) {
                Some(Value::Table(section)) => leave_out(section, inner, &place, wrong),
                _ => Err(wrong(&place, format!("`{key}`"))),
            }
        }),
        Value::Array(keys) => keys.iter().try_for_each(|key| {
            let found = match key {
                Value::Array(path) => removed(base, path),
                key => removed(base, std::slice::from_ref(key)),
            };
            found.ok_or_else(|| wrong(place, key.to_string()))
        }),
        other => Err(wrong(place, other.to_string())),
    }
}

/// Removes the value at a path of keys.
fn removed(base: &mut Table, path: &[Value]) -> Option<()> {
    let (key, rest) = path.split_first()?;
    match rest {
        [] => base.remove(key.as_str()?).map(|_| ()),
        rest => removed(base.get_mut(key.as_str()?)?.as_table_mut()?, rest),
    }
}

/// Sections merge key by key; any other value replaces the old value.
pub(super) fn override_with(base: &mut Table, overrides: &Table) {
    for (key, value) in overrides {
        match (base.get_mut(key), value) {
            (Some(Value::Table(base)), Value::Table(overrides)) => override_with(base, overrides),
            _ => _ = base.insert(key.clone(), value.clone()),
        }
    }
}

/// Takes a section out of a file.
pub(super) fn take_table(root: &mut Table, path: &Path, key: &str) -> Result<Table> {
    match root.remove(key) {
        Some(Value::Table(table)) => Ok(table),
        Some(other) => {
            Err(Error::invalid(format!("{}, {key}", path.display()), "a section", other.type_str()))
        }
        None => Err(Error::invalid(path.display(), format!("a section [{key}]"), "none")),
    }
}

/// Reads a section; `place` is its name.
pub(crate) fn section<C: DeserializeOwned>(path: &Path, place: &str, table: Table) -> Result<C> {
    Value::Table(table).try_into().map_err(|e: toml::de::Error| {
        let mut lines = e.message().lines();
        let reason = lines.next().unwrap_or("a wrong value").to_owned();
        // The path of the key is on a separate line: "in `train.epochs`".
        let key =
            e.to_string().lines().rev().find_map(|l| l.strip_prefix("in ").map(str::to_owned));
        let place = match key {
            Some(key) => format!("{}, {place}, {}", path.display(), key.trim_matches('`')),
            None => format!("{}, {place}", path.display()),
        };
        Error::invalid(place, "every key known, present and of its type", reason)
    })
}

/// Refuses a number outside of its range.
pub(crate) fn within(place: String, got: u64, range: RangeInclusive<u64>) -> Result<()> {
    if range.contains(&got) {
        return Ok(());
    }
    Err(Error::invalid(place, format!("{} to {}", range.start(), range.end()), got))
}

/// Refuses an unknown method.
pub(crate) fn check_method(path: &Path, method: &str, known: &[&str]) -> Result<()> {
    if known.contains(&method) {
        return Ok(());
    }
    let place = format!("{}, target.method", path.display());
    Err(Error::invalid(place, format!("one of {}", known.join(", ")), format!("`{method}`")))
}
