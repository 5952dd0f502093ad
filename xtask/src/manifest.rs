//! The imports and features of a `Cargo.toml`, as far as the arrows need them.

/// The feature for the command line of a library.
pub(crate) const CLI: &str = "cli";

/// The feature for the pages of a library.
pub(crate) const PAGE: &str = "page";

/// One crate of the project, the imports of its manifest (except for tests) and its features.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) imports: Vec<Import>,
    features: Vec<(String, Vec<String>)>,
}

/// A crate that a manifest imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) name: String,
    pub(crate) optional: bool,
}

impl Manifest {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), imports: imports(text), features: features(text) }
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
        import.optional
            && by_it_alone
            && hidden
            && !self.reaches("default", feature, &mut Vec::new())
    }

    /// What a feature enables.
    pub(crate) fn items_of(&self, feature: &str) -> &[String] {
        let found = self.features.iter().find(|(name, _)| name == feature);
        found.map_or(&[], |(_, items)| items)
    }

    /// Whether a feature enables another, directly or through other features.
    fn reaches<'a>(&'a self, feature: &'a str, to: &str, seen: &mut Vec<&'a str>) -> bool {
        if seen.contains(&feature) {
            return false;
        }
        seen.push(feature);
        self.items_of(feature).iter().any(|item| item == to || self.reaches(item, to, seen))
    }
}

/// Keys of `[dependencies]`, `[build-dependencies]` and their target-specific forms.
fn imports(manifest: &str) -> Vec<Import> {
    let mut imports: Vec<Import> = Vec::new();
    let (mut inside, mut own_table) = (false, false);
    for line in manifest.lines().map(uncommented) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.split(']').next().unwrap_or_default().trim();
            let (section, name) = match header.rsplit_once("dependencies.") {
                Some((section, name)) => (format!("{section}dependencies"), Some(name)),
                None => (header.to_owned(), None),
            };
            inside = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            own_table = name.is_some();
            if let (true, Some(name)) = (inside, name) {
                imports.push(Import { name: name.to_owned(), optional: false });
            }
        } else if inside && own_table {
            if let Some(last) = imports.last_mut() {
                last.optional |= is_optional(line);
            }
        } else if inside {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            let name = key.split('.').next().unwrap_or_default().trim();
            if !name.is_empty() {
                imports.push(Import { name: name.to_owned(), optional: is_optional(value) });
            }
        }
    }
    imports
}

/// Whether `text` is `optional = true`, or a table with this key.
fn is_optional(text: &str) -> bool {
    let keys = text.trim().trim_start_matches('{').trim_end_matches('}').split(',');
    keys.filter_map(|key| key.split_once('='))
        .any(|(key, value)| key.trim() == "optional" && value.trim() == "true")
}

/// The lists of `[features]`, each on one or several lines.
fn features(manifest: &str) -> Vec<(String, Vec<String>)> {
    let mut features: Vec<(String, Vec<String>)> = Vec::new();
    let (mut inside, mut open) = (false, false);
    for line in manifest.lines().map(uncommented) {
        let mut items = line;
        if !open {
            if line.starts_with('[') {
                inside = line.trim_matches(['[', ']']).trim() == "features";
                continue;
            }
            let Some((name, rest)) = line.split_once('=').filter(|_| inside) else { continue };
            features.push((name.trim().trim_matches('"').to_owned(), Vec::new()));
            items = rest;
        }
        open = !items.contains(']');
        if let Some((_, all)) = features.last_mut() {
            all.extend(items.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    features
}

/// A line without its comment and without the blanks around it. (No key or version of ours contains a `#`.)
fn uncommented(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
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
        let found = imports(manifest);
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
        let found = features(manifest);
        let lists: Vec<(&str, String)> =
            found.iter().map(|(name, items)| (name.as_str(), items.join(" "))).collect();
        let want =
            [("default", ""), ("cli", "dep:clap dep:npyz"), ("burn", "dep:burn itm-core/burn")];
        assert_eq!(lists, want.map(|(name, items)| (name, items.to_owned())));
    }
}
