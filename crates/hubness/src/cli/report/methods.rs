//! How methods and their parameters are called, and whom to cite.

use super::format::clean;
use super::model::{Chosen, Directed, Param, Params, Row};
use crate::Setting;

/// A method's name as people write it: `CSLS + RGM`; a name that is not known stays as it is.
pub(super) fn title(method: &str) -> String {
    let part = |name: &str| known(name).map_or_else(|| clean(name), |k| k.title.to_owned());
    method.split('+').map(part).collect::<Vec<_>>().join(" + ")
}

/// What to cite for the methods of a report, each work once, in order.
pub(super) fn citations<'a>(
    methods: impl Iterator<Item = &'a str>,
) -> Vec<(&'static str, &'static str)> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for known in methods.flat_map(|m| m.split('+')).filter_map(known) {
        if !known.cite.is_empty() && out.iter().all(|(title, _)| *title != known.title) {
            out.push((known.title, known.cite));
        }
    }
    out
}

/// What to cite for the measures, which every report has.
pub(super) const MEASURES: [(&str, &str); 2] = [
    (
        "N_k and its skewness",
        "Radovanović, Nanopoulos, Ivanović: Hubs in space: popular nearest neighbors in \
         high-dimensional data. JMLR 11, 2010.",
    ),
    (
        "Robin Hood index",
        "Feldbauer, Leodolter, Plant, Flexer: Fast approximate hubness reduction for large \
         high-dimensional data. ICBK 2018.",
    ),
];

/// A row's parameters: `k 10`, or by direction `beta 60 | 50` where they differ.
pub(super) fn params(params: &Directed<Params>) -> String {
    let pair = match (&params.i2t, &params.t2i) {
        (Some(a), Some(b)) if a != b => (a, Some(b)),
        (Some(a), _) | (None, Some(a)) => (a, None),
        (None, None) => return String::new(),
    };
    let (first, second) = pair;
    let names = first.keys().chain(second.into_iter().flat_map(|s| s.keys()));
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.dedup();
    let text = |params: &Params, name: &str| params.get(name).map_or("-".into(), value);
    let part = |name: &String| match second {
        Some(b) if first.get(name) != b.get(name) => {
            format!("{name} {} | {}", text(first, name), text(b, name))
        }
        _ => format!("{name} {}", text(first, name)),
    };
    names.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// The same with Greek letters, for a page.
pub(super) fn params_greek(row: &Row) -> String {
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

/// Who chose, in words.
pub(super) fn chosen(chosen: Chosen) -> &'static str {
    match chosen {
        Chosen::Default => "default",
        Chosen::Given => "given",
        Chosen::CrossFitted => "cross-fitted",
        Chosen::Validation => "validation",
    }
}

/// `T` for transductive, `H` for a held-out bank, nothing for neither.
pub(super) fn mark(row: &Row) -> &'static str {
    match row.seen.0 {
        Setting::Plain => "",
        Setting::HeldOut => "H",
        Setting::Transductive => "T",
    }
}

/// What the marks mean: letter, name, and why it matters.
pub(super) const MARKS: [(Setting, &str, &str); 2] = [
    (
        Setting::Transductive,
        "transductive",
        "this row was fitted on the other test queries, without their labels. It holds where all queries \
         come together; for queries that arrive one by one it promises too much, and it must not be compared \
         with rows that saw none.",
    ),
    (
        Setting::HeldOut,
        "held-out bank",
        "this row was fitted on queries (or items) that are not those of the test, so it holds for queries \
         that arrive one by one.",
    ),
];

struct Known {
    title: &'static str,
    cite: &'static str,
}

fn known(name: &str) -> Option<Known> {
    let name: String = name.trim().to_lowercase().replace(['-', '_', ' '], "");
    let (title, cite) = match name.as_str() {
        "nns" => ("NNS", ""),
        "csls" => (
            "CSLS",
            "Conneau, Lample, Ranzato, Denoyer, Jégou: Word translation without parallel data. ICLR 2018.",
        ),
        "is" => (
            "IS",
            "Smith, Turban, Hamblin, Hammerla: Offline bilingual word vectors, orthogonal transformations \
             and the inverted softmax. ICLR 2017.",
        ),
        "gm" => ("GM", LIU),
        "rgm" => ("RGM", LIU),
        "qbnorm" | "dis" => (
            "QB-Norm",
            "Bogolin, Croitoru, Jin, Liu, Albanie: Cross modal retrieval with querybank normalisation. \
             CVPR 2022.",
        ),
        "dbnorm" | "dualis" | "dualdis" => (
            "DBNorm",
            "Wang, Jian, Xue: Balance act: mitigating hubness in cross-modal retrieval with query and \
             gallery banks. EMNLP 2023.",
        ),
        "nnn" => (
            "NNN",
            "Chowdhury, Wang, Shenoy, Kiela, Schwettmann, Thrush: Nearest neighbor normalization improves \
             multimodal retrieval. EMNLP 2024.",
        ),
        "sinkhorn" => (
            "Sinkhorn",
            "Cuturi: Sinkhorn distances: lightspeed computation of optimal transport. NeurIPS 2013.",
        ),
        "mp" | "mutualproximity" => ("MP", SCHNITZER),
        "mpgauss" | "mpgaussian" => ("MP (Gaussian)", SCHNITZER),
        "mpempirical" => ("MP (empirical)", SCHNITZER),
        "ls" | "localscaling" => (
            "Local scaling",
            "Zelnik-Manor, Perona: Self-tuning spectral clustering. NeurIPS 2004.",
        ),
        "nicdm" => (
            "NICDM",
            "Jégou, Harzallah, Schmid: A contextual dissimilarity measure for accurate and efficient image \
             search. CVPR 2007.",
        ),
        _ => return None,
    };
    Some(Known { title, cite })
}

const LIU: &str = "Liu, Ye, Wang, Li: HAL: improved text-image matching by mitigating visual semantic hubs. \
                   AAAI 2020 (relaxed greedy matching: in its first version only).";
const SCHNITZER: &str = "Schnitzer, Flexer, Schedl, Widmer: Local and global scaling reduce hubs in space. \
                         JMLR 13, 2012.";

/// One value; those of several folds or lists apart by a slash.
fn value(param: &Param) -> String {
    match param {
        Param::Count(n) => n.to_string(),
        Param::Number(v) => v.to_string(),
        Param::Word(word) => word.clone(),
        Param::Each(all) => match all.split_first() {
            Some((first, rest)) if rest.iter().all(|p| p == first) => value(first),
            _ => all.iter().map(value).collect::<Vec<_>>().join("/"),
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
            ["nns", "csls+rgm", "qb-norm", "my_own"].map(title),
            ["NNS", "CSLS + RGM", "QB-Norm", "my_own"]
        );
    }

    #[test]
    fn equal_parameters_are_said_once() {
        let both = |i2t, t2i| params(&Directed { i2t, t2i });
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
