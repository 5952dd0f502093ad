//! A target's file as TOML, merged with the target that it `extends`.

use std::ops::RangeInclusive;
use std::path::Path;

use itm_core::files::read_text;
use itm_core::{Error, Result};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::Config;
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

impl Config {
    /// The targets in a folder, sorted: the names of its `.toml` files.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(folder: &Path) -> Result<Vec<String>> {
        let target = |file: &String| file.strip_suffix(".toml").map(str::to_owned);
        let mut names: Vec<_> = file_names(folder)?.iter().filter_map(target).collect();
        names.sort(); // `a-b.toml` comes before `a.toml`, but `a-b` after `a`
        Ok(names)
    }
}

/// Every key of a table, and of the tables in it below its own, with the value there.
fn all_keys<'a>(table: &'a Table, above: &[&'a str]) -> Vec<(Vec<&'a str>, &'a Value)> {
    let mut all = vec![];
    for (key, value) in table {
        let path = [above, &[key.as_str()]].concat();
        let below = value.as_table().map_or(vec![], |inner| all_keys(inner, &path));
        all.push((path, value));
        all.extend(below);
    }
    all
}

/// The greatest whole number at a key; every other number may be [`MOST`].
const BOUNDS: [(i64, &str); 4] = [
    (1_000, "heads layers"),
    (10_000, "maskings refills"),
    (
        65_536,
        "channels dims embed_dim hidden image_size max_length mlp patch positions width word_dim",
    ),
    (i64::MAX, "seed"),
];
const MOST: i64 = 1_000_000_000;

/// Refuses whole numbers that no training can have: sizes are products of them.
///
/// # Errors
/// The first such number, with its key and its bound.
pub(super) fn check_counts(path: &Path, table: &Table) -> Result<()> {
    for (key, value) in all_keys(table, &[]) {
        let is_last = |name: &str| key.last() == Some(&name);
        let bound = BOUNDS.iter().find(|(_, names)| names.split(' ').any(is_last));
        let most = bound.map_or(MOST, |(most, _)| *most);
        let numbers = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        if let Some(got) = numbers.iter().filter_map(Value::as_integer).find(|&n| n > most) {
            let place = format!("{}, {}", path.display(), key.join("."));
            return Err(Error::invalid(place, format!("at most {most}"), got));
        }
    }
    Ok(())
}

/// Refuses a seed that no row would be trained with: the seeds of a row count from 0. A file without a preset, as a run's own copy is, may
/// have another seed.
///
/// # Errors
/// If the tables have a `train.seed` other than 0.
pub(crate) fn check_seed(place: &str, table: &Table) -> Result<()> {
    for (key, value) in all_keys(table, &[]) {
        let fits = !key.ends_with(&["train", "seed"]) || value.as_integer() == Some(0);
        let at = format!("{place}, {}", key.join("."));
        Error::unless(fits, at, "0: `--seeds` counts from it", value)?;
    }
    Ok(())
}

/// Keys that files had under another name: the old name, and what replaces it.
const RENAMED: [(&str, &str); 7] = [
    ("activations", "gradient_checkpointing = true or false"),
    ("bag_pooling", "text.pooling"),
    ("decay_epochs", "milestones"),
    ("like", "extends"),
    ("max_pieces", "max_length"),
    ("text_pool", "text.pool"),
    ("without", "KEY = false"),
];

/// The tables of a target's file.
///
/// # Errors
/// If the file is not TOML, or has a key of an older version.
pub(crate) fn file(path: &Path, text: &str) -> Result<Table> {
    let root = parse(path, text)?;
    for (key, _) in all_keys(&root, &[]) {
        let is_name_of_row = key.len() == 2 && key[0] == "row";
        let renamed = RENAMED.iter().find(|(old, _)| key.last() == Some(old) && !is_name_of_row);
        if let Some((old, new)) = renamed {
            let place = format!("{}, {}", path.display(), key.join("."));
            let expected = format!("`{new}`, which replaces this key");
            return Err(Error::invalid(place, expected, format!("`{old}`")));
        }
    }
    Ok(root)
}

/// A file after the files that it extends: each overrides those before it. `above` is the chain of targets that leads to it by `extends`.
///
/// # Errors
/// If the chain of targets is a circle, breaks off or changes the method.
pub(crate) fn chain(path: &Path, mut own: Table, mut above: Vec<String>) -> Result<Vec<Table>> {
    let Some(extends) = own.remove("extends") else { return Ok(vec![own]) };
    let wrong = |expected: String, got: String| {
        Error::invalid(format!("{}, extends", path.display()), expected, got)
    };
    let Value::String(name) = extends else {
        return Err(wrong("the name of a target".into(), extends.type_str().into()));
    };
    above.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    if above.contains(&name) {
        let expected = "a target that does not lead back to itself";
        return Err(wrong(expected.into(), format!("{} → {name}", above.join(" → "))));
    }
    let known = Config::names(path.parent().unwrap_or(path))?;
    if !known.contains(&name) {
        return Err(wrong(format!("one of {}", known.join(", ")), format!("`{name}`")));
    }
    let base = path.with_file_name(format!("{name}.toml"));
    let text = read_text(&base)?;
    let mut chain = chain(&base, file(&base, &text)?, above)?;
    let methods = method(std::slice::from_ref(&own)).zip(method(&chain));
    if let Some((own, base)) = methods.filter(|(own, base)| own != base) {
        let got = format!("`{name}`, whose method is {base}");
        return Err(wrong(format!("a target of the method {own}"), got));
    }
    chain.push(own);
    Ok(chain)
}

/// `target.method` of a chain of files.
pub(crate) fn method(chain: &[Table]) -> Option<&Value> {
    chain.iter().rev().find_map(|file| file.get("target")?.get("method"))
}

/// The sections of a preset, overridden by each file of a chain.
pub(crate) fn merged(mut all: Table, chain: &[Table]) -> Table {
    for own in chain {
        sections(&mut all, "row").for_each(|row| drop_falses(row, own));
        sections(&mut all, "table").for_each(|table| _ = table.remove("alias")); // names one file's table
        override_with(&mut all, own);
    }
    all
}

/// The sections `[kind.<name>]`.
fn sections<'a>(root: &'a mut Table, kind: &str) -> impl Iterator<Item = &'a mut Table> {
    let all = root.get_mut(kind).and_then(Value::as_table_mut).into_iter();
    all.flat_map(|all| all.iter_mut()).filter_map(|(_, one)| one.as_table_mut())
}

/// Removes what is `false` in a row and in the file: a row cannot leave out a key that the file has left out already.
fn drop_falses(row: &mut Table, file: &Table) {
    row.retain(|key, value| match (value, file.get(key)) {
        (Value::Boolean(false), Some(Value::Boolean(false))) => false,
        (Value::Table(row), Some(Value::Table(file))) => {
            drop_falses(row, file);
            true
        }
        _ => true,
    });
}

/// Sections merge key by key; a section of another `kind`, or another choice of `parts`, replaces the old section, because its keys are others. `false`
/// leaves a key out, unless the old value is a boolean. Any other value replaces the old value.
pub(crate) fn override_with(base: &mut Table, overrides: &Table) {
    for (key, value) in overrides {
        match (base.get_mut(key), value) {
            (Some(Value::Table(old)), Value::Table(new)) if is_same_kind(key, old, new) => {
                override_with(old, new);
            }
            (Some(old), Value::Boolean(false)) if !old.is_bool() => _ = base.remove(key),
            _ => _ = base.insert(key.clone(), value.clone()),
        }
    }
}

pub(super) fn is_same_kind(key: &str, old: &Table, new: &Table) -> bool {
    if key == "parts" {
        return new.keys().all(|choice| old.contains_key(choice)); // `last` or `lora`
    }
    new.get("kind").is_none_or(|kind| old.get("kind").is_none_or(|other| kind == other))
}

/// Takes a section out of a file.
pub(super) fn take_table(root: &mut Table, path: &Path, key: &str) -> Result<Table> {
    match root.remove(key) {
        Some(value) => table_of(value, format!("{}, {key}", path.display())),
        None => Err(Error::invalid(path.display(), format!("a section [{key}]"), "none")),
    }
}

/// The table of a section; refuses any other value.
pub(super) fn table_of(value: Value, place: String) -> Result<Table> {
    match value {
        Value::Table(table) => Ok(table),
        other => Err(Error::invalid(place, "a section", other.type_str())),
    }
}

/// Reads a section; `place` is its name.
pub(crate) fn section<C: DeserializeOwned>(path: &Path, place: &str, table: Table) -> Result<C> {
    Value::Table(table).try_into().map_err(|e: toml::de::Error| {
        let (reason, text) = (e.message().lines().next().unwrap_or("a wrong value"), e.to_string());
        // The path of the key is on a separate line: "in `train.epochs`".
        let key = text.lines().rev().find_map(|line| line.strip_prefix("in "));
        let key = key.map_or(String::new(), |key| format!(", {}", key.trim_matches('`')));
        let place = format!("{}, {place}{key}", path.display());
        Error::invalid(place, "every key known, present and of its type", reason)
    })
}

/// Refuses a number outside of its range.
pub(crate) fn within(place: String, got: u64, range: RangeInclusive<u64>) -> Result<()> {
    let expected = format_args!("{} to {}", range.start(), range.end());
    Error::unless(range.contains(&got), place, expected, got)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row could not learn by LoRA where the file says `last`.
    #[test]
    fn another_choice_of_parts_replaces_the_old() {
        let table = |text: &str| toml::from_str::<Table>(text).unwrap();
        let merged = |old: &str, new: &str| {
            let mut base = table(old);
            override_with(&mut base, &table(new));
            base
        };
        let lora = "parts = { lora = { rank = 4, alpha = 9 } }";
        assert_eq!(merged("parts = { last = 2 }", lora), table(lora));
        let want = table("parts = { lora = { rank = 2, alpha = 9 } }");
        assert_eq!(merged(lora, "parts.lora.rank = 2"), want);
    }

    /// A width of 2⁶³ − 1 was planned as 64.97 MiB, because products of sizes wrapped.
    #[test]
    fn numbers_that_no_training_can_have_are_refused_with_their_bound() {
        let check = |text: &str| {
            let checked = check_counts(Path::new("t.toml"), &toml::from_str(text).unwrap());
            checked.map_err(|error| error.to_string())
        };
        for (text, want) in [
            (
                "[model.image]\nembed_dim = 9223372036854775807",
                "model.image.embed_dim: expected at most 65536, got 9223372036854775807",
            ),
            (
                "train.epochs = 1_000_000_001",
                "train.epochs: expected at most 1000000000, got 1000000001",
            ),
            (
                "row.\"w/o FNE\".train.layers = 1_001",
                "row.w/o FNE.train.layers: expected at most 1000, got 1001",
            ),
            (
                "milestones = [1, 2_000_000_000]",
                "milestones: expected at most 1000000000, got 2000000000",
            ),
        ] {
            assert_eq!(check(text), Err(format!("t.toml, {want}")));
        }
        check("seed = 9223372036854775807\nmodel.embed_dim = 65_536").unwrap();
    }
}
