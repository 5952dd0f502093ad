//! The runner knows no method by name: code for one method is in its own file under `methods`.
//!
//! Comments, documentation and tests may name a method. Code may name the crate `hubness`, which corrects the scores of any method,
//! but not its training modules, because they are a method.

use crate::circles::{self, Named};
use crate::modules::{self, Files, Token};
use crate::rules::Finding;

/// The crate that is checked, and the only places in it that may name methods.
const RUNNER: &str = "crates/itm-run";
const ALLOWED: [&str; 2] = ["crates/itm-run/src/methods/", "crates/itm-run/src/methods.rs"];

/// The words of each method's name, in lower case.
const METHODS: [&[&str]; 4] = [&["fne"], &["naaf"], &["tags", "dc"], &["hal"]];

/// The modules of `hubness` that are a method.
const TRAINING: [&str; 2] = ["training", "losses"];

/// Every place of the runner that names a method.
pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    let outside = |file: &str| !ALLOWED.iter().any(|allowed| file.starts_with(allowed));
    for module in modules::all(files, RUNNER).filter(|module| outside(&module.file)) {
        let training = circles::paths(&module.tokens).into_iter().filter_map(of_training);
        let names = module.tokens.iter().filter_map(named).chain(training);
        findings.extend(names.map(|(line, method)| {
            let place = format!("{}:{line}", module.file);
            Finding::error(place, format!("names the method {method}: only methods/ may"))
        }));
    }
    findings
}

/// The line of a token that names a method, and the method.
fn named(token: &Token) -> Option<(usize, String)> {
    let words = words(&token.text);
    let holds = |name: &&&[&str]| words.windows(name.len()).any(|window| window == **name);
    METHODS.iter().find(holds).map(|name| (token.line, name.join("-")))
}

/// The line of a path to a module of `hubness` that is a method, and the module.
fn of_training(found: Named) -> Option<(usize, String)> {
    let [first, module, ..] = &found.path[..] else { return None };
    let is_method = first == "hubness" && TRAINING.contains(&&**module);
    is_method.then(|| (found.line, format!("of hubness::{module}")))
}

/// The words of `FneModel`, `hal_method` or `"tags-dc"`, in lower case. A word ends before a character that is not a letter, and
/// where a capital follows a small letter.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for letter in text.chars() {
        if !letter.is_alphabetic() || small && letter.is_uppercase() {
            words.push(String::new());
        }
        small = letter.is_lowercase();
        if let (true, Some(word)) = (letter.is_alphabetic(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<String> {
        let path = |name: &str| format!("crates/itm-run/src/{name}");
        let root = "mod list; pub mod methods;".to_owned();
        let mut files = Files::from([(path("lib.rs"), root)]);
        for name in ["list.rs", "methods/mod.rs"] {
            files.insert(path(name), if name == file { text.to_owned() } else { String::new() });
        }
        let findings = check(&files).into_iter();
        findings.map(|found| format!("{}: {}", found.place, found.message)).collect()
    }

    #[test]
    fn a_method_is_named_under_methods_alone() {
        for (text, method) in [
            ("use fne::Bank;", "fne"),
            ("struct FneModel;", "fne"),
            ("fn of_fne() {}", "fne"),
            ("const X: &str = \"hal\";", "hal"),
            ("const X: &str = \"configs/hal-scenes.toml\";", "hal"),
            ("const X: &str = \"the presets of FNE's paper\";", "fne"),
            ("#[serde(rename = \"naaf\")] struct X;", "naaf"),
            ("fn f() { tags_dc::step() }", "tags-dc"),
            ("const X: &str = \"tags-dc\";", "tags-dc"),
            ("struct TagsDc;", "tags-dc"),
            ("use hubness::training::X;", "of hubness::training"),
            ("use hubness::{Scores, csls::{X, losses}, losses::Y};", "of hubness::losses"),
        ] {
            let want = format!(
                "crates/itm-run/src/list.rs:2: names the method {method}: only methods/ may"
            );
            assert_eq!(found("list.rs", &format!("\n{text}")), [want], "{text}");
            assert_eq!(found("methods/mod.rs", text), [] as [&str; 0]);
        }
    }

    #[test]
    fn other_words_are_no_method() {
        for text in [
            "// fne\n/// [`fne::Bank`] and HAL\nfn f() {}",
            "#[cfg(test)] mod tests { use fne::Bank; }",
            "use hubness::{self, csls, Scores}; use crate::training; struct Hubness;",
            "use half::f16; struct Halo; const X: &str = \"half a shallow tags file, dc\";",
            "fn f(training: u8) { losses(training) }",
        ] {
            assert_eq!(found("list.rs", text), [] as [&str; 0], "{text}");
        }
    }
}
