//! A name of a type says one thing: no name is defined more than twice in the repository. Tests, associated types and types inside of functions
//! do not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{self, Files, Token};
use crate::rules::Finding;

const MOST: usize = 2;

const KEYWORDS: [&str; 4] = ["enum", "struct", "trait", "type"];

/// Names that are defined too often in the crates of these folders.
pub(crate) fn check<'a>(files: &Files, folders: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let mut places = BTreeMap::<String, BTreeSet<String>>::new();
    for module in folders.flat_map(|folder| modules::all(files, folder)) {
        for name in defined(&module.tokens) {
            let place = format!("{}:{}", module.file, name.line);
            places.entry(name.text.clone()).or_default().insert(place);
        }
    }
    let many = places.into_iter().filter(|(_, places)| places.len() > MOST);
    let finding = |(name, places): (String, BTreeSet<String>)| {
        let number = places.len();
        let places = places.into_iter().collect::<Vec<_>>().join(", ");
        let message =
            format!("{number} types have the name {name}, at most {MOST} may: rename one");
        Finding::error(places, message)
    };
    many.map(finding).collect()
}

/// The names of the types that a module itself defines.
fn defined(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    let mut depth = 0;
    tokens.windows(2).filter_map(move |pair| {
        let outside = depth == 0;
        depth += modules::depth_change(&pair[0]);
        let is_type = KEYWORDS.contains(&&*pair[0].text) && pair[1].is_name();
        (outside && is_type).then(|| &pair[1])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: [&str; 3]) -> Vec<String> {
        let path = |k: usize| format!("crates/c{k}/src/lib.rs");
        let files: Files = texts.iter().enumerate().map(|(k, t)| (path(k), (*t).into())).collect();
        let findings = check(&files, ["crates/c0", "crates/c1", "crates/c2"].into_iter());
        findings.into_iter().map(|found| format!("{}: {}", found.place, found.message)).collect()
    }

    #[test]
    fn a_third_type_of_one_name_is_found() {
        let want = "crates/c0/src/lib.rs:1, crates/c1/src/lib.rs:2, crates/c2/src/lib.rs:1: \
                    3 types have the name Part, at most 2 may: rename one";
        assert_eq!(
            found(["pub struct Part;", "\nenum Part {}", "mod a { type Part = u8; }"]),
            [want]
        );
        assert_eq!(found(["pub struct Part;", "trait Part {}", "struct Parts;"]), [] as [&str; 0]);
    }

    #[test]
    fn associated_and_local_types_and_tests_do_not_count() {
        for third in [
            "impl Consumer for X { type Part = u8; }",
            "trait Consumer { type Part; }",
            "fn f() { struct Part; }",
            "#[cfg(test)] mod tests { struct Part; }",
            "/// struct Part\nfn part() {}",
            "use other::Part;",
        ] {
            assert_eq!(found(["struct Part;", "struct Part;", third]), [] as [&str; 0], "{third}");
        }
    }
}
