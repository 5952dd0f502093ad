//! The runner's seams: what is known about one method stays under `methods`, and a training knows nothing of reports.
//!
//! Comments, documentation and tests may name a method. Code may name the crate `hubness`, which corrects the scores of any method,
//! but not its training modules, because they are a method.

use crate::circles::{self, Named};
use crate::modules::{self, Files, Token};
use crate::rules::Finding;

/// The crate that is checked.
const RUNNER: &str = "crates/itm-run";

/// The words of each method's name, in lower case.
const NAMES: [&[&str]; 4] = [&["fne"], &["naaf"], &["tags", "dc"], &["hal"]];

/// The modules of `hubness` that are a method.
const OF_HUBNESS: [&str; 2] = ["training", "losses"];

/// The modules of a training. They must not reach the module of the reports, directly or through others.
const TRAINING: [&str; 2] = ["train", "log"];
const REPORTS: &str = "report";

/// The module of the methods.
const METHODS: &str = "methods";

/// The names that [`METHODS`] may pass on from a method: the command line of a tool.
const TOOLS: [&str; 4] = ["ModelSplit", "Negatives", "TrainedModel", "filler"];

/// Downcasts and names of a method outside the methods, names of a method that the methods pass on, and ways from a training to the reports.
pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = circles::ways(files, RUNNER, &TRAINING, REPORTS);
    let modules: Vec<_> = modules::all(files, RUNNER).collect();
    let is_method = |path: &[String]| path.first().is_some_and(|name| name == METHODS);
    let methods: Vec<&str> = modules
        .iter()
        .filter(|module| module.path.len() == 2 && is_method(&module.path))
        .map(|module| module.path[1].as_str())
        .collect();
    for module in &modules {
        let mut add = |line: usize, message: String| {
            findings.push(Finding::error(format!("{}:{line}", module.file), message));
        };
        if !is_method(&module.path) {
            for token in downcasts(&module.tokens) {
                add(token.line, "looks inside a method: only methods/ may".to_owned());
            }
            let training = circles::paths(&module.tokens).into_iter().filter_map(of_training);
            for (line, method) in module.tokens.iter().filter_map(named).chain(training) {
                add(line, format!("names the method {method}: only methods/ may"));
            }
        } else if module.path.len() == 1 {
            for (token, method) in passed_on(&module.tokens, &methods) {
                let name = &token.text;
                let message = "say it in the terms of all methods";
                add(token.line, format!("passes on `{name}` of {method}: {message}"));
            }
        }
    }
    findings
}

/// The line of a token that names a method, and the method.
fn named(token: &Token) -> Option<(usize, String)> {
    let words = words(&token.text);
    let holds = |name: &&&[&str]| words.windows(name.len()).any(|window| window == **name);
    NAMES.iter().find(holds).map(|name| (token.line, name.join("-")))
}

/// The line of a path to a module of `hubness` that is a method, and the module.
fn of_training(found: Named) -> Option<(usize, String)> {
    let [first, module, ..] = &found.path[..] else { return None };
    let is_method = first == "hubness" && OF_HUBNESS.contains(&&**module);
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

/// Downcasts, except to the text of a panic.
fn downcasts(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    let is_text = |at: usize| {
        let to =
            tokens[at..].iter().map(|token| token.text.as_str()).take_while(|text| *text != ">");
        let to: Vec<_> = to.skip(1).collect();
        [&["::", "<", "&", "str"][..], &["::", "<", "String"]].contains(&&to[..])
    };
    let all = tokens.iter().enumerate();
    let found = all.filter(move |(at, token)| token.text.starts_with("downcast") && !is_text(*at));
    found.map(|(_, token)| token)
}

/// The names of a method that `pub use` passes on, except [`TOOLS`], and the method.
fn passed_on<'a>(tokens: &'a [Token], methods: &[&'a str]) -> Vec<(&'a Token, &'a str)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    for at in (1..tokens.len()).filter(|&at| text(at) == "use") {
        let is_public = ["pub", ")"].contains(&text(at - 1));
        let start = if text(at + 1) == "self" { at + 3 } else { at + 1 };
        let Some(method) = methods.iter().find(|method| **method == text(start)) else { continue };
        if !is_public {
            continue;
        }
        let names = tokens[start + 1..].iter().take_while(|token| token.text != ";");
        let others = names.filter(|token| token.is_name() && !TOOLS.contains(&&*token.text));
        found.extend(others.map(|token| (token, *method)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of a runner whose file `name` has this text.
    fn found(name: &str, text: &str) -> Vec<String> {
        let path = |name: &str| format!("crates/itm-run/src/{name}");
        let root = "mod audit; mod explain; mod log; mod methods; mod report; mod train;";
        let mut files = Files::from([(path("lib.rs"), root.to_owned())]);
        for (own, usual) in [
            ("audit.rs", ""),
            ("explain.rs", "use crate::report::X;"),
            ("log.rs", ""),
            ("methods/mod.rs", "mod fne; pub use crate::train::Y;"),
            ("methods/fne.rs", "fn f(any: &dyn Any) { any.downcast_ref::<Fne>() }"),
            ("report.rs", ""),
            ("train.rs", "use crate::{audit, log};"),
        ] {
            files.insert(path(own), if own == name { text } else { usual }.to_owned());
        }
        let findings = check(&files).into_iter();
        findings.map(|found| format!("{}: {}", found.place, found.message)).collect()
    }

    #[test]
    fn a_runner_that_keeps_its_seams_passes() {
        assert_eq!(found("", ""), [] as [&str; 0]);
        let tests =
            "#[cfg(test)] mod tests { use crate::report::X; fn f() { any.downcast_ref() } }";
        assert_eq!(found("log.rs", tests), [] as [&str; 0]);
    }

    #[test]
    fn a_training_does_not_reach_the_reports() {
        let log = found("log.rs", "use crate::report::X;");
        assert_eq!(log.len(), 2, "{log:?}");
        assert!(log[1].contains("log → report: log names report at crates/itm-run/src/log.rs:1"));
        let audit = found("audit.rs", "\nuse crate::report::X;");
        assert_eq!(audit.len(), 1, "{audit:?}");
        assert!(audit[0].contains("train → audit → report"), "{audit:?}");
    }

    #[test]
    fn only_methods_look_inside_a_method() {
        for call in ["any.downcast_ref::<Model>()", "any.downcast::<Model>()", "any.downcast_mut()"]
        {
            let text = format!("fn f() {{ {call} }}");
            let want = "crates/itm-run/src/explain.rs:1: looks inside a method: only methods/ may";
            assert_eq!(found("explain.rs", &text), [want]);
        }
        let panic = "fn f() { any.downcast_ref::<&str>(); any.downcast_ref::<String>() }";
        assert_eq!(found("explain.rs", panic), [] as [&str; 0], "the text of a panic");
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
                "crates/itm-run/src/audit.rs:2: names the method {method}: only methods/ may"
            );
            assert_eq!(found("audit.rs", &format!("\n{text}")), [want], "{text}");
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
            assert_eq!(found("audit.rs", text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn methods_pass_nothing_on() {
        let of = |text: &str| found("methods/mod.rs", &format!("mod fne;\n{text}"));
        for (text, names) in [
            ("pub(crate) use self::fne::{Bank, draw};", &["Bank", "draw"][..]),
            ("pub use fne::Bank;", &["Bank"]),
            ("pub use self::fne::{Negatives, Draws};", &["Draws"]),
            ("use self::fne::Bank;", &[]),
            ("pub use self::fne::Negatives;", &[]),
        ] {
            let want = names.iter().map(|name| {
                format!(
                    "crates/itm-run/src/methods/mod.rs:2: passes on `{name}` of fne: say it in the terms of all methods"
                )
            });
            assert_eq!(of(text), want.collect::<Vec<_>>(), "{text}");
        }
    }
}
