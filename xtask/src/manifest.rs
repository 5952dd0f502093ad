//! The imports and features of a `Cargo.toml`, as far as the arrows need them.

use std::collections::BTreeMap;

use toml::de::Error;
use toml::{Table, Value};

/// The feature for the command line of a library.
pub(crate) const CLI: &str = "cli";

/// The feature for the pages of a library.
pub(crate) const PAGE: &str = "page";

/// One crate of the project, the imports of its manifest (except for tests) and its features.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) imports: Vec<Import>,
    features: BTreeMap<String, Vec<String>>,
}

/// A crate that a manifest imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) name: String,
    pub(crate) optional: bool,
}

impl Manifest {
    /// # Errors
    /// If the text is no manifest.
    pub(crate) fn new(name: &str, text: &str) -> Result<Self, Error> {
        let root: Table = text.parse()?;
        let features = root.get("features").cloned().map(Value::try_into).transpose()?;
        let (name, imports) = (name.to_owned(), imports(&root));
        Ok(Self { name, imports, features: features.unwrap_or_default() })
    }

    /// The folder of the crate, from the root.
    pub(crate) fn folder(&self) -> String {
        if self.name == "xtask" { self.name.clone() } else { format!("crates/{}", self.name) }
    }

    /// Whether only this feature enables an import, and it is not a default feature.
    pub(crate) fn behind(&self, feature: &str, import: &Import) -> bool {
        let name = import.name.as_str();
        let enables = |item: &String| {
            let item = item.strip_prefix("dep:").unwrap_or(item);
            item == name || item.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        };
        let enabled_by = self.features.iter().filter(|(_, items)| items.iter().any(enables));
        let by_it_alone = enabled_by.map(|(feature, _)| feature.as_str()).eq([feature]);
        // Without `dep:` the import would also be a feature with the same name.
        let hidden = self.items_of(feature).iter().any(|item| *item == format!("dep:{name}"));
        import.optional && by_it_alone && hidden && !self.reaches("default", feature)
    }

    /// What a feature enables.
    pub(crate) fn items_of(&self, feature: &str) -> &[String] {
        self.features.get(feature).map_or(&[], Vec::as_slice)
    }

    /// Whether a feature enables another, directly or through other features. Cargo refuses circles of them.
    fn reaches(&self, feature: &str, to: &str) -> bool {
        self.items_of(feature).iter().any(|item| item == to || self.reaches(item, to))
    }
}

/// Keys of `[dependencies]`, `[build-dependencies]` and their target-specific forms.
fn imports(manifest: &Table) -> Vec<Import> {
    let of_targets = manifest.get("target").and_then(Value::as_table);
    let of_targets = of_targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let sections = [manifest].into_iter().chain(of_targets);
    let tables = sections.flat_map(|section| {
        let kinds = ["dependencies", "build-dependencies"].into_iter();
        kinds.filter_map(|kind| section.get(kind)?.as_table()).flatten()
    });
    let import = |(name, value): (&String, &Value)| {
        let optional = value.get("optional").and_then(Value::as_bool).unwrap_or_default();
        Import { name: name.clone(), optional }
    };
    tables.map(import).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_read_from_every_form() {
        let manifest = r#"
            [package]
            name = "a"
            [dependencies]
            # comment = "1"
            burn = { workspace = true, optional = true } # why
            serde.workspace = true
            [dependencies.rand]
            version = "1"
            [dependencies.clap]
            version = "4"
            optional = true
            [target.'cfg(unix)'.dependencies]
            libc = "0.2"
            [dev-dependencies]
            proptest.workspace = true
            [lints]
            workspace = true
        "#;
        let found = imports(&manifest.parse().unwrap());
        let names: Vec<_> = found.iter().map(|import| import.name.as_str()).collect();
        assert_eq!(names, ["burn", "serde", "rand", "clap", "libc"]);
        let optional = found.iter().filter(|import| import.optional);
        assert!(optional.map(|import| import.name.as_str()).eq(["burn", "clap"]));
    }

    #[test]
    fn features_are_read_over_lines() {
        let manifest = r#"
            [features]
            # cli = ["no"]
            default = []
            cli = ["dep:clap", "dep:npyz"] # the binary
            burn = [
                "dep:burn", # the loss
                "itm-core/burn",
            ]
            [dependencies]
            cli = "1"
        "#;
        let found = Manifest::new("a", manifest).unwrap();
        for (name, want) in
            [("default", ""), ("cli", "dep:clap dep:npyz"), ("burn", "dep:burn itm-core/burn")]
        {
            assert_eq!(found.items_of(name).join(" "), want);
        }
    }
}
