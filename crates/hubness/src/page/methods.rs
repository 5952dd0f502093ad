//! Display names of methods and their parameters, and what to cite.

use std::collections::BTreeSet;

use itm_report::format::clean;

use crate::Setting;
use crate::report::{ChoiceOrigin, Param, Params, PerDirection, Report, ReportRow};

/// A row's name as people write it: `is(10)` is `IS (β = 10)`, `csls+rgm@bank(5,auto)` is `CSLS + RGM, bank (k = 5, λ = auto)`.
/// An unknown name stays as it is.
pub(super) fn title(name: &str) -> String {
    let (methods, bank, numbers) = parts(name);
    let part = |name: &str| known(name).map_or_else(|| clean(name), |(title, _)| title.to_owned());
    let mut title = methods.split('+').map(part).collect::<Vec<_>>().join(" + ");
    if bank {
        title += ", bank";
    }
    let numbered = |method| match method {
        "csls" => Some("k"),
        "is" => Some("β"),
        "rgm" => Some("λ"),
        _ => None,
    };
    let symbols: Vec<_> = methods.split('+').filter_map(numbered).collect();
    let numbers: Vec<_> = numbers.map(|all| all.split(',').collect()).unwrap_or_default();
    match numbers.len() {
        0 => title,
        n if n <= symbols.len() => {
            let one = |(symbol, number): (&&str, &&str)| format!("{symbol} = {}", clean(number));
            let all: Vec<_> = symbols.iter().zip(&numbers).map(one).collect();
            format!("{title} ({})", all.join(", "))
        }
        _ => format!("{title} ({})", clean(&numbers.join(", "))),
    }
}

/// The parts of a row's name, `methods[@bank][(numbers)]`.
fn parts(name: &str) -> (&str, bool, Option<&str>) {
    let numbered = name.strip_suffix(')').and_then(|name| name.rsplit_once('('));
    let (rest, numbers) = numbered.map_or((name, None), |(rest, all)| (rest, Some(all)));
    let methods = rest.strip_suffix("@bank");
    (methods.unwrap_or(rest), methods.is_some(), numbers)
}

/// What to cite for the methods of a report, each work once, in order.
pub(super) fn citations<'a>(
    methods: impl Iterator<Item = &'a str>,
) -> Vec<(&'static str, &'static str)> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for known in methods.flat_map(|m| parts(m).0.split('+')).filter_map(known) {
        if !known.1.is_empty() && !out.contains(&known) {
            out.push(known);
        }
    }
    out
}

/// What every report cites: `N_k` and the Robin Hood index.
pub(super) const MEASURES: [&str; 2] = ["n_k", "robin_hood"];

/// A row's parameters: `k 10`, or `beta 60 | 50` if the directions differ.
pub(super) fn params(params: &PerDirection<Params>) -> String {
    let (first, second) = match (&params.i2t, &params.t2i) {
        (Some(a), Some(b)) if a != b => (a, Some(b)),
        (Some(a), _) | (None, Some(a)) => (a, None),
        (None, None) => return String::new(),
    };
    let names: BTreeSet<_> =
        first.keys().chain(second.into_iter().flat_map(Params::keys)).collect();
    let text = |params: &Params, name: &str| params.get(name).map_or("-".into(), value);
    let part = |name: &String| match second {
        Some(b) if first.get(name) != b.get(name) => {
            format!("{name} {} | {}", text(first, name), text(b, name))
        }
        _ => format!("{name} {}", text(first, name)),
    };
    names.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// One direction's parameters: `k 10`; a chosen setting stands without the word `setting`.
pub(super) fn listed(params: &Params) -> String {
    let one = |(name, param): (&String, &Param)| match name.as_str() {
        "setting" => value(param),
        name => format!("{name} {}", value(param)),
    };
    params.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A row's parameters with Greek letters, for the page.
pub(super) fn params_greek(row: &ReportRow) -> String {
    let greek = |word: &str| match word {
        "beta" => "β".to_owned(),
        "lambda" => "λ".to_owned(),
        "alpha" => "α".to_owned(),
        "eps" | "epsilon" => "ε".to_owned(),
        "inf" => "∞".to_owned(),
        other => other.replace('_', " "),
    };
    params(&row.params).split(' ').map(greek).collect::<Vec<_>>().join(" ")
}

/// Who chose the parameters, in words.
pub(super) fn chosen(chosen: ChoiceOrigin) -> &'static str {
    match chosen {
        ChoiceOrigin::Default => "default",
        ChoiceOrigin::Given => "given",
        ChoiceOrigin::CrossFitted => "cross-fitted",
        ChoiceOrigin::Validation => "validation",
    }
}

/// `T` for transductive, `H` for a held-out bank, otherwise nothing.
pub(super) fn mark(row: &ReportRow) -> &'static str {
    MARKS.iter().find(|(setting, ..)| *setting == row.setting).map_or("", |(_, mark, _)| mark)
}

/// The marks in a report: setting, letter, and why it matters.
pub(super) fn marks(
    report: &Report,
) -> impl Iterator<Item = (Setting, &'static str, &'static str)> {
    let seen = |setting| report.rows.iter().any(|row| row.setting == setting);
    MARKS.into_iter().filter(move |(setting, ..)| seen(*setting))
}

const MARKS: [(Setting, &str, &str); 2] = [
    (
        Setting::Transductive,
        "T",
        "this row was fitted on the other test queries, without their labels. It holds only where all queries \
         arrive together. For queries that arrive one by one it promises too much. It must not be compared \
         with rows that saw no other test queries.",
    ),
    (
        Setting::HeldOut,
        "H",
        "this row was fitted on queries (or items) outside the test set, so it also holds for queries \
         that arrive one by one.",
    ),
];

/// A line `name|title|work` for each method and measure; the work to cite may be none.
const WORKS: &str = include_str!("works.txt");

/// The title of a method and the work to cite for it.
fn known(name: &str) -> Option<(&'static str, &'static str)> {
    WORKS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('|')?.split_once('|'))
}

/// One value; a slash separates the values of several lists, a slash with spaces the values of several folds.
fn value(param: &Param) -> String {
    let long = |param: &Param| match param {
        Param::Each(_) => true,
        Param::Word(word) => word != "inf",
        Param::Count(_) | Param::Number(_) => false,
    };
    let apart = |all: &[Param]| if all.iter().any(long) { " / " } else { "/" };
    match param {
        Param::Count(n) => n.to_string(),
        Param::Number(v) if v.abs() < 1e-3 => format!("{v:.1e}"),
        Param::Number(v) => format!("{v:.3}").trim_end_matches('0').trim_end_matches('.').into(),
        Param::Word(word) => word.clone(),
        Param::Each(all) => match all.split_first() {
            Some((first, rest)) if rest.iter().all(|p| p == first) => value(first),
            _ => all.iter().map(value).collect::<Vec<_>>().join(apart(all)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: Param) -> Params {
        Params::from([(name.to_owned(), value)])
    }

    #[test]
    fn names_are_written_as_people_write_them() {
        assert_eq!(
            ["nns", "csls+rgm", "qbnorm", "my_own"].map(title),
            ["NNS", "CSLS + RGM", "QB-Norm", "my_own"]
        );
    }

    #[test]
    fn rows_of_one_method_are_told_apart_by_their_symbols() {
        let names = [
            "is(10)",
            "csls+rgm@bank(5,auto)",
            "is@bank",
            "gm(1)",
            "rgm(inf)",
            "mp+rgm(2)",
            "is+rgm(30)",
        ];
        let titles = [
            "IS (β = 10)",
            "CSLS + RGM, bank (k = 5, λ = auto)",
            "IS, bank",
            "GM (1)",
            "RGM (λ = inf)",
            "MP + RGM (λ = 2)",
            "IS + RGM (β = 30)",
        ];
        assert_eq!(names.map(title), titles);
        let cited =
            citations(["is(10)", "is(30,auto)", "dual-is", "csls+rgm@bank(5,2)"].into_iter());
        assert_eq!(cited.iter().map(|c| c.0).collect::<Vec<_>>(), ["IS", "Dual-IS", "CSLS", "RGM"]);
    }

    /// λ of two folds with three lists each is two lists of three values.
    #[test]
    fn folds_and_lists_are_told_apart() {
        let lists = |at: [f64; 3]| Param::Each(at.map(Param::from).into());
        let nested = Param::Each(vec![lists([1.0, 2.0, 1.0 / 3.0]), lists([1.0, 1.0, 1.0])]);
        assert_eq!(listed(&of("lambda", nested)), "lambda 1/2/0.333 / 1");
        assert_eq!(listed(&of("lambda", lists([f64::INFINITY, 2.0, 1.0]))), "lambda inf/2/1");
        let word = |word: &str| Param::Word(word.into());
        let each = Param::Each(vec![word("is beta=60"), word("nns")]);
        assert_eq!(listed(&of("setting", each)), "is beta=60 / nns");
    }

    #[test]
    fn equal_parameters_are_said_once() {
        let both = |i2t, t2i| params(&PerDirection { i2t, t2i });
        assert_eq!(both(Some(of("k", 10.0.into())), Some(of("k", 10.0.into()))), "k 10");
        assert_eq!(
            both(Some(of("beta", 60.0.into())), Some(of("beta", 50.0.into()))),
            "beta 60 | 50"
        );
        assert_eq!(both(None, Some(of("beta", 0.5.into()))), "beta 0.5");
        assert_eq!(
            both(Some(of("k", 1.0.into())), Some(of("form", Param::Word("item".into())))),
            "form - | item, k 1 | -"
        );
        assert_eq!(both(None, None), "");
        let folds = |values: [f64; 2]| of("beta", Param::Each(values.map(Param::from).into()));
        assert_eq!(both(Some(folds([60.0, 50.0])), None), "beta 60/50");
        assert_eq!(both(Some(folds([60.0, 60.0])), None), "beta 60");
        assert_eq!(both(Some(of("lambda", f64::INFINITY.into())), None), "lambda inf");
    }

    #[test]
    fn each_work_is_cited_once() {
        let cited = citations(["nns", "csls", "rgm", "csls+rgm", "unknown"].into_iter());
        assert_eq!(cited.iter().map(|c| c.0).collect::<Vec<_>>(), ["CSLS", "RGM"]);
    }
}
