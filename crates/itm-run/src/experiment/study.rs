//! Corrections for hubs by the names that a command line or a table gives them.

use hubness::report::Report;
use hubness::study::{Method, Study};
use itm_core::{Error, Result};

/// The paper's recipe for the methods that a command line or a table names; nearest neighbours come first.
///
/// # Errors
/// If a name is unknown or is given twice.
pub(crate) fn study(place: &str, names: &[String]) -> Result<Study> {
    let mut methods: Vec<Method> = vec![];
    for name in [Report::BASELINE].into_iter().chain(names.iter().map(String::as_str)) {
        let Ok(method) = name.parse() else {
            let expected = "names of `hubness report --method`: csls, is, rgm, csls+rgm, …";
            return Err(Error::invalid(place, expected, format!("`{name}`")));
        };
        if names.iter().filter(|other| *other == name).count() > 1 {
            return Err(Error::invalid(place, "each name once", format!("`{name}` twice")));
        }
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    Ok(Study { methods, curves: true, ..Study::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_neighbours_come_first_and_once() {
        let study = |names: &[&str]| {
            study("--rescore", &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        let got = study(&["csls", "nns", "is+rgm"]).unwrap();
        let methods: Vec<_> = got.methods.iter().map(Method::to_string).collect();
        assert_eq!(methods, ["nns", "csls", "is+rgm"]);
        let line = |list: &[&str]| study(list).unwrap_err().to_string();
        assert!(line(&["cslz"]).contains("--rescore: expected names of"));
        assert!(line(&["is", "is"]).contains("`is` twice"));
    }
}
