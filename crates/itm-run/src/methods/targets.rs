//! Targets by their names. A target begins with a preset of its method.

use std::path::{Path, PathBuf};

use itm_core::files::read_text;
use itm_core::{Error, Preset, Result};
use serde::Serialize;
use toml::{Table, Value};

use super::ALL;
use crate::config::{self, Config, Exhibit, merged};

/// The presets of every method, as files name them.
const PRESETS: &str = "paper, official, default";

/// A preset of a method, as a file has it.
pub(super) fn sections(preset: impl Serialize) -> Table {
    Table::try_from(preset).expect("sections of keys")
}

impl Config {
    /// Reads `<folder>/<name>.toml`.
    ///
    /// # Errors
    /// If there is no such file (the error names all targets), if it is not TOML, if its method or its preset does not exist, or if a
    /// key is unknown or missing.
    pub fn load(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(format!("{name}.toml"));
        if name.contains(['/', '\\']) || !path.is_file() {
            let mut known = Self::names(folder)?;
            known.extend(aliases(folder)?.into_iter().map(|(alias, ..)| alias));
            known.sort();
            let expected = format!("one of {}", known.join(", "));
            return Err(Error::invalid("target", expected, format!("`{name}`")));
        }
        let text = read_text(&path)?;
        Self::parse(name, path, text)
    }

    /// The target of a name, and the table that the name stands for if it is an alias.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn find(folder: &Path, name: &str) -> Result<(Self, Option<Exhibit>)> {
        if !folder.join(format!("{name}.toml")).is_file()
            && let Some((_, target, shown)) =
                aliases(folder)?.into_iter().find(|(alias, ..)| alias == name)
        {
            return Ok((target, Some(shown)));
        }
        Ok((Self::load(folder, name)?, None))
    }

    /// Reads a text as if it were in a file.
    pub(crate) fn parse(name: &str, path: PathBuf, mut text: String) -> Result<Self> {
        let mut root = config::file(&path, &text)?;
        if root.contains_key("extends") || root.contains_key("preset") {
            root = whole(&path, config::chain(&path, root, vec![])?)?;
            text = toml::to_string(&root).expect("the tables were TOML");
        }
        Self::new(name, path, text, root)
    }
}

/// A chain of files over the sections of its preset. The preset comes first: it says which `kind` a section has that names none.
fn whole(path: &Path, mut chain: Vec<Table>) -> Result<Table> {
    let presets = chain.iter_mut().filter_map(|file| file.remove("preset"));
    let Some(preset) = presets.last() else { return Ok(merged(Table::new(), &chain)) };
    let place = path.display().to_string();
    chain.iter().try_for_each(|file| config::check_seed(&place, file))?;
    let Ok(named) = preset.clone().try_into::<Preset>() else {
        let place = format!("{}, preset", path.display());
        let got = preset.as_str().map_or(preset.to_string(), |name| format!("`{name}`"));
        return Err(Error::invalid(place, format!("one of {PRESETS}"), got));
    };
    let method = config::method(&chain).and_then(Value::as_str);
    let kind = ALL.iter().find(|kind| Some(kind.name) == method);
    // No such method, or none of this build: `Kind::of` says so.
    let sections = kind.map_or(Table::new(), |kind| (kind.preset)(named));
    Ok(merged(sections, &chain))
}

/// The aliases of a folder: names of tables, with their targets. A target that is broken has none.
fn aliases(folder: &Path) -> Result<Vec<(String, Config, Exhibit)>> {
    let targets = Config::names(folder)?.into_iter();
    let targets = targets.filter_map(|name| Config::load(folder, &name).ok());
    let of = |target: Config| {
        let named = |shown: Exhibit| Some((target.view(&shown)?.alias?, target.clone(), shown));
        target.shown().into_iter().filter_map(named).collect::<Vec<_>>()
    };
    Ok(targets.flat_map(of).collect())
}
