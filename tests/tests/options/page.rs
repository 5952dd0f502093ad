//! The page: one table for each section of each configuration.

use std::path::Path;

use serde_json::Value;

use crate::keys::{Key, keys, of_target};

/// The sign for no value, or for a source that says nothing.
const NOTHING: &str = "–";

/// A configuration.
pub(crate) struct Part {
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    /// The JSON schema, `docs/schema/<schema>.json`.
    pub(crate) schema: &'static str,
    /// Names of keys in the order of the configuration.
    pub(crate) order: Vec<String>,
    pub(crate) columns: Columns,
    /// Other configurations. The page shows only their differing keys.
    pub(crate) then: Vec<(&'static str, [Value; 3])>,
}

impl Part {
    /// All keys of the configuration.
    pub(crate) fn keys(&self) -> Vec<Key> {
        keys(&schema(self.schema), &self.order)
    }
}

fn schema(name: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = root.join(format!("docs/schema/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The columns: paper, released program, here.
pub(crate) struct Columns {
    pub(crate) values: [Value; 3],
    pub(crate) silent: super::silent::Silent,
}

const HEAD: &str = "# Every option of every method

`cargo xtask options` writes this page from the code: the values of the presets, and the comments of the configurations. A test fails if this page and the
code differ. It also writes JSON schemas of the files, `docs/schema/*.json`: an editor that reads `#:schema ../docs/schema/fne.json` in the first line of a
target completes and checks its keys.

| column | what it holds |
|---|---|
| paper | the printed value, `Preset::Paper` |
| program | the value of the authors' released program, `Preset::Official` |
| here | the value that is used unless a file says otherwise, `Preset::Default` |

A value in **bold** differs from the value here. A dash means that the source says nothing, or that the preset needs no such key. If the preset still needs a value, and that value
differs from the value here, it is in brackets. `kind = x` before a line means that the key exists only if `kind` has the value `x`.
";

const TARGET: &str = "
## The runner

What every method's file says of its data, of the evaluation and of the run. In Rust `itm_run::config::Target`. No preset has these keys.
";

/// The whole page.
pub(crate) fn page(parts: &[Part]) -> String {
    let mut page = HEAD.to_owned();
    for part in parts {
        page += &format!("\n## {}\n\n{}\n", part.title, part.about);
        let keys = part.keys();
        page += &sections(&keys, " paper | program | here |", |key| {
            let cells = cells(key, &part.columns.values, &part.columns.silent);
            format!(" {} |", cells.join(" | "))
        });
        for (about, values) in &part.then {
            page += &format!("\n{about}\n{}", table("| key | paper | program | here |"));
            let before = &part.columns.values;
            let differs =
                |key: &Key| (0..3).any(|k| key.value(&values[k]) != key.value(&before[k]));
            for key in keys.iter().filter(|key| differs(key)) {
                let cells = cells(key, values, &part.columns.silent);
                page += &format!("| `{}` | {} |\n", key.name(), cells.join(" | "));
            }
        }
    }
    page + TARGET + &sections(&of_target(&schema("fne")), "", |_| String::new())
}

/// A table for each section; `columns` are between a key and what it does, `cells` what a key has in them.
fn sections(keys: &[Key], columns: &str, cells: impl Fn(&Key) -> String) -> String {
    let mut text = String::new();
    let mut section = None;
    for key in keys {
        let (name, own) = key.path.split_last().unwrap();
        if section != Some(own) {
            let name = own.join(".");
            text += &if own.is_empty() { String::new() } else { format!("\n### `[{name}]`\n") };
            text += &table(&format!("| key |{columns} what it does |"));
            section = Some(own);
        }
        text += &format!("| `{name}` |{} {} |\n", cells(key), says(key));
    }
    text
}

fn table(head: &str) -> String {
    format!("\n{head}\n{}|\n", "|---".repeat(head.matches('|').count() - 1))
}

/// The cells of a key, one per column.
fn cells(key: &Key, values: &[Value; 3], silent: &[&[&str]; 3]) -> [String; 3] {
    let here = key.value(&values[2]);
    std::array::from_fn(|k| {
        let value = key.value(&values[k]);
        let quiet = silent[k].contains(&&key.name()[..]);
        match value {
            None => NOTHING.to_owned(),
            Some(_) if quiet && value == here => NOTHING.to_owned(),
            Some(value) if quiet => format!("{NOTHING} (`{value}`)"),
            Some(value) if Some(&value) == here.as_ref() => format!("`{value}`"),
            Some(value) => format!("**`{value}`**"),
        }
    })
}

/// The comment of a key, with its conditions and its allowed values.
fn says(key: &Key) -> String {
    let under = key.under.iter().map(|(path, value)| {
        let name = path.last().unwrap();
        format!("`{name} = {value}`: ")
    });
    let choices = key.choices.iter().map(|(choice, says)| match &says[..] {
        "" => format!("`{choice}`"),
        says => format!("`{choice}`: {says}"),
    });
    let choices: Vec<_> = choices.collect();
    let choices =
        if choices.is_empty() { String::new() } else { format!("<br>{}", choices.join("<br>")) };
    let line = under.collect::<String>() + &key.says + &choices;
    line.replace('|', "\\|")
}

/// Every key whose value is not a section, with dots.
pub(crate) fn leaves(value: &Value) -> Vec<(String, &Value)> {
    let Value::Object(section) = value else { return vec![] };
    let below = section.iter().flat_map(|(key, value)| {
        let deeper = leaves(value);
        let one = |(name, value)| (format!("{key}.{name}"), value);
        if deeper.is_empty() {
            vec![(key.clone(), value)]
        } else {
            deeper.into_iter().map(one).collect()
        }
    });
    below.collect()
}
