//! The orderings of inferences in the paper's Table 3: which inference has the lower rSum.

use itm_report::format;
use serde::Serialize;

use super::method::MethodSummary;

/// Pairs of inferences, the lesser first, as in every Flickr30K line of the paper.
const ORDERINGS: [(&str, &str); 6] = [
    ("gm", "nns"),
    ("nns", "rgm"),
    ("rgm", "is"),
    ("rgm", "csls"),
    ("is", "is+rgm"),
    ("csls", "csls+rgm"),
];

/// The best inference is one of these.
const COMBINED: [&str; 2] = ["is+rgm", "csls+rgm"];

/// One ordering and whether it holds here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Ordering {
    /// `NNS < RGM`.
    pub(super) text: String,
    /// Greater minus lesser, mean over the seeds.
    pub(super) difference: f64,
    /// Number of seeds (and folds) with which it holds.
    pub(super) seeds: usize,
    /// Whether it holds for the means.
    pub(super) holds: bool,
    /// Greater minus lesser, in the paper.
    pub(super) paper_difference: Option<f64>,
}

/// The paper's orderings among the inferences that were measured.
pub(super) fn orderings(methods: &[MethodSummary]) -> Vec<Ordering> {
    let named = |name: &str| methods.iter().find(|m| m.method == name);
    let pair = |&(lesser, greater): &(&str, &str)| {
        let (a, b) = (named(lesser)?, named(greater)?);
        let text = format!("{} < {}", upper(lesser), upper(greater));
        Some(ordering(text, &[a], &[b]))
    };
    let mut found: Vec<_> = ORDERINGS.iter().filter_map(pair).collect();
    let is_combined = |m: &&MethodSummary| COMBINED.contains(&&m.method[..]);
    let (combined, others): (Vec<_>, Vec<_>) = methods.iter().partition(is_combined);
    if combined.len() == COMBINED.len() && !others.is_empty() {
        found.push(ordering("all others < the better combination".into(), &others, &combined));
    }
    found
}

/// Compares the best of `greater` with the best of `lesser`, by seed and by the means.
fn ordering(text: String, lesser: &[&MethodSummary], greater: &[&MethodSummary]) -> Ordering {
    let best = |methods: &[&MethodSummary], of: &dyn Fn(&MethodSummary) -> Option<f64>| {
        methods.iter().filter_map(|m| of(m)).max_by(f64::total_cmp)
    };
    let difference = |of: &dyn Fn(&MethodSummary) -> Option<f64>| {
        best(greater, of).zip(best(lesser, of)).map(|(greater, lesser)| greater - lesser)
    };
    let seeds = greater.first().map_or(0, |m| m.per_seed.len());
    let holds = |&seed: &usize| difference(&|m| m.per_seed.get(seed).copied()) > Some(0.0);
    let mean = difference(&|m| Some(m.rsum)).unwrap_or(f64::NAN);
    Ordering {
        text,
        difference: mean,
        seeds: (0..seeds).filter(holds).count(),
        holds: mean > 0.0,
        paper_difference: difference(&|m| m.paper),
    }
}

/// One or two sentences: which orderings hold, and which inference is best; `unit` is what the differences are tested over.
pub(super) fn verdict(
    row: &str,
    methods: &[MethodSummary],
    orderings: &[Ordering],
    unit: &str,
) -> String {
    let held = orderings.iter().filter(|o| o.holds).count();
    let failed: Vec<_> = orderings.iter().filter(|o| !o.holds).map(|o| &o.text[..]).collect();
    let but = match failed.is_empty() {
        true => String::new(),
        false => format!(", not: {}", failed.join("; ")),
    };
    let best = methods.iter().max_by(|a, b| a.rsum.total_cmp(&b.rsum));
    let best = best.map_or(String::new(), |best| match best.difference {
        None => format!(" Best: {}, rSum {:.1}.", upper(&best.method), best.rsum),
        Some(difference) => format!(
            " Best: {}, rSum {:.1}, {} against NNS (significant with {} of {} {unit}).",
            upper(&best.method),
            best.rsum,
            format::signed(difference),
            best.above,
            best.per_seed.len()
        ),
    });
    let count = orderings.len();
    format!("{row}: {held} of {count} orderings of the paper's Table 3 hold{but}.{best}")
}

/// The method's name as the paper writes it.
pub(super) fn upper(method: &str) -> String {
    method.to_uppercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn printed() -> BTreeMap<String, f64> {
        crate::tests::paper("hal").inferences(3, None, String::new).unwrap().rsum
    }

    fn method(name: &str, per_seed: &[f64]) -> MethodSummary {
        MethodSummary {
            method: name.into(),
            rsum: per_seed.iter().sum::<f64>() / per_seed.len() as f64,
            per_seed: per_seed.into(),
            difference: (name != "nns").then_some(per_seed[0] - 300.0),
            above: usize::from(name != "nns"),
            below: 0,
            hs_sum: None,
            lambda: None,
            paper: printed().get(name).copied(),
            paper_difference: None,
        }
    }

    /// The paper's own line keeps every ordering, because the orderings were read off it.
    #[test]
    fn the_papers_line_holds_every_ordering() {
        let names = ["nns", "gm", "rgm", "is", "csls", "is+rgm", "csls+rgm"];
        let rsum = |name: &str| printed()[name];
        let paper = |name: &&str| method(name, &[rsum(name)]);
        let found = orderings(&names.iter().map(paper).collect::<Vec<_>>());
        assert_eq!(found.len(), 7);
        for o in &found {
            assert!(o.holds && o.seeds == 1, "{o:?}");
            assert!((o.difference - o.paper_difference.unwrap()).abs() < 1e-9, "{o:?}");
        }
        let last = &found[6];
        assert!((last.difference - 1.4).abs() < 1e-9, "309.6 − 308.2: {last:?}");
    }

    #[test]
    fn what_fails_is_named_and_counted_by_seed() {
        let methods = [
            method("nns", &[300.0, 302.0]),
            method("rgm", &[299.0, 305.0]), // above on the mean, and with the second seed only
            method("csls", &[301.0, 303.0]), // not above RGM: 302 = 302
        ];
        let found = orderings(&methods);
        let seen: Vec<_> = found.iter().map(|o| (&o.text[..], o.holds, o.seeds)).collect();
        assert_eq!(seen, [("NNS < RGM", true, 1), ("RGM < CSLS", false, 1)]);
        let text = verdict("Full", &methods, &found, "seeds");
        assert!(text.starts_with("Full: 1 of 2 orderings"), "{text}");
        assert!(text.contains("not: RGM < CSLS."), "{text}");
    }
}
