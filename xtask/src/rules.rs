//! What a file of the repository must not contain. Every rule is a function of a path and a text.

/// Folders and files that may hold unsafe code: fused operations, calls of `gemm`, memory maps, LMDB in a test.
const UNSAFE: [&str; 8] = [
    "crates/itm-kernels/",
    "crates/hubness/benches/corrections.rs",
    "crates/itm-core/benches/encoders/products.rs",
    "crates/itm-core/benches/evaluation.rs",
    "crates/itm-data/src/data/npy.rs",
    "crates/itm-core/src/tiles/kernel.rs",
    "crates/naaf/benches/all_pairs.rs",
    "crates/tags-dc/src/databases/tests/malformed.rs",
];

/// In two halves, so that this file does not find itself.
const UNSAFE_WORD: &str = concat!("un", "safe");

/// A file with more lines than the first number gets a warning, with more than the second an error.
const LINES: (usize, usize) = (400, 600);

/// Largest file, in bytes. A larger file is a mistake, and would stay in the history.
const LARGEST: usize = 512 * 1024;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// Printed.
    Warning,
    /// Printed, and `tidy` fails.
    Error,
}

/// One finding, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Severity,
    pub(crate) place: String,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn error(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Severity::Error, place: place.into(), message: message.into() }
    }
}

/// All findings of one file; `path` is relative to the root, with slashes.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(length(path, text));
    for (number, line) in text.lines().enumerate() {
        let place = format!("{path}:{}", number + 1);
        let mut error = |message: String| findings.push(Finding::error(&place, message));
        if let Some(found) = machine_path(line) {
            error(format!("a path of one machine: {found}"));
        }
        if !path.ends_with(".rs") {
            continue;
        }
        if line.contains(concat!("#[", "ignore")) || line.contains(concat!("```", "ignore")) {
            error("a test is never ignored".to_owned());
        }
        let code = line.split("//").next().unwrap_or_default();
        let allowed = UNSAFE.iter().any(|start| path.starts_with(start));
        if !allowed && has_word(code, UNSAFE_WORD) {
            error(format!("{UNSAFE_WORD} code: only in the places that xtask/src/rules.rs names"));
        }
    }
    findings
}

/// A file that is too large.
pub(crate) fn size(path: &str, bytes: usize) -> Option<Finding> {
    let message = || format!("{bytes} bytes, at most {LARGEST}: generated or downloaded");
    (bytes > LARGEST).then(|| Finding::error(path, message()))
}

/// Every configuration must be named in the README, because otherwise nobody finds it.
pub(crate) fn configs_are_named(configs: &[&str], readme: &str) -> Vec<Finding> {
    let unnamed = configs.iter().filter(|path| {
        let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".toml");
        !has_word(readme, name)
    });
    unnamed.map(|path| Finding::error(*path, "not named in README.md")).collect()
}

fn length(path: &str, text: &str) -> Option<Finding> {
    let counted = [".rs", ".py", ".sh"].iter().any(|end| path.ends_with(end));
    let lines = text.lines().count();
    let level = match lines {
        _ if !counted || lines <= LINES.0 => return None,
        _ if lines <= LINES.1 => Severity::Warning,
        _ => Severity::Error,
    };
    Some(Finding { level, place: path.to_owned(), message: format!("{lines} lines: split it") })
}

/// The first absolute path below a folder that exists only on one machine.
fn machine_path(line: &str) -> Option<String> {
    ["work", "tmp", "root", "home", "Users"].into_iter().find_map(|folder| {
        let start = format!("/{folder}");
        line.match_indices(&start).find_map(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + start.len()..].chars().next();
            let inside = |c: char| c.is_alphanumeric() || "._-~}/*".contains(c);
            let longer = |c: char| c.is_alphanumeric() || "_-".contains(c);
            (!before.is_some_and(inside) && !after.is_some_and(longer)).then(|| start.clone())
        })
    })
}

/// Whether `text` contains `word` with no letter, digit, `_` or `-` on either side.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(path, text).into_iter().map(|f| format!("{}: {}", f.place, f.message)).collect()
    }

    #[test]
    fn machine_paths_are_found_and_others_are_not() {
        for folder in ["work", "tmp", "root", "home", "Users"] {
            let found = machine_path(&format!("see /{folder}/somebody/data"));
            assert_eq!(found, Some(format!("/{folder}")));
            assert!(machine_path(&format!("--out=\"/{folder}\"")).is_some());
            assert_eq!(machine_path(&format!("/{folder}shop, ../{folder}/x, a/{folder}/b")), None);
            assert_eq!(machine_path(&format!("https://example.org/{folder}/page")), None);
        }
        let line = format!("fine\nx = \"/{}/a\"", "tmp");
        assert_eq!(messages("a.md", &line), [format!("a.md:2: a path of one machine: /{}", "tmp")]);
    }

    #[test]
    fn unsafe_code_stays_where_it_belongs() {
        let block = format!("    {} {{ *p }}", UNSAFE_WORD);
        assert_eq!(check("crates/itm-kernels/src/exp.rs", &block), []);
        assert_eq!(check("crates/itm-core/src/tiles/kernel.rs", &block), []);
        assert_eq!(check("crates/fne/src/bank.rs", &block).len(), 1);
        assert_eq!(check("crates/fne/src/bank.rs", &format!("// {block}")), []);
        let lint = format!("#![deny({}_code)]", UNSAFE_WORD);
        assert_eq!(check("crates/fne/src/lib.rs", &lint), []);
    }

    #[test]
    fn ignored_tests_are_found() {
        for text in [
            concat!("#[", "ignore]"),
            concat!("#[", "ignore = \"slow\"]"),
            concat!("/// ```", "ignore"),
        ] {
            assert_eq!(check("tests/src/smoke.rs", text).len(), 1, "{text}");
            assert_eq!(check("docs/style.md", text), []);
        }
    }

    #[test]
    fn long_files_are_warned_of_and_then_refused() {
        let level = |path: &str, lines: usize| {
            check(path, &"x\n".repeat(lines)).first().map(|finding| finding.level)
        };
        assert_eq!(level("a.rs", 400), None);
        assert_eq!(level("a.rs", 401), Some(Severity::Warning));
        assert_eq!(level("a.rs", 600), Some(Severity::Warning));
        assert_eq!(level("a.rs", 601), Some(Severity::Error));
        assert_eq!(level("docs/a.md", 9000), None);
        assert_eq!(level("golden/a.json", 9000), None);
    }

    #[test]
    fn large_files_are_refused() {
        assert_eq!(size("a.whl", LARGEST), None);
        let found = size("a.whl", LARGEST + 1).unwrap();
        assert_eq!((found.level, &found.place[..]), (Severity::Error, "a.whl"));
    }

    #[test]
    fn a_config_is_named_by_its_whole_name() {
        let configs = ["configs/fne-flickr.toml", "configs/fne-flickr8k.toml"];
        let places = |readme| {
            let findings = configs_are_named(&configs, readme);
            findings.into_iter().map(|finding| finding.place).collect::<Vec<_>>()
        };
        assert_eq!(places("`fne-flickr8k`"), ["configs/fne-flickr.toml"]);
        assert_eq!(places("| fne-flickr | fne-flickr8k |"), [] as [String; 0]);
        assert_eq!(configs_are_named(&["configs/fne.toml"], "fne-flickr, my-fne, fnes").len(), 1);
    }
}
