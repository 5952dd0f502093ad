//! The rows of a report, from what was asked for.

use itm_core::{Error, Result};

use super::spec::Spec;
use crate::cli::args::Settings;
use crate::cli::methods::{Base, Choice, Method, Then};

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Its name, told apart from all others.
    pub(crate) name: String,
    /// The corrections among which one is chosen; a single one if nothing is to be chosen.
    pub(crate) specs: Vec<Spec>,
    pub(crate) then: Then,
    /// λ of a matching.
    pub(crate) lambda: Choice,
    /// Whether the command line gave a number.
    pub(crate) given: bool,
}

impl Row {
    /// Whether something is left to choose.
    pub(crate) fn chooses(&self) -> bool {
        self.specs.len() > 1 || (self.then == Then::Rgm && self.lambda == Choice::Auto)
    }
}

/// What the input allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Queries of a bank in every direction asked.
    pub(crate) bank: bool,
    /// Items of a bank too.
    pub(crate) item_bank: bool,
    /// Scores are cosines.
    pub(crate) cosines: bool,
    /// A run: only what needs no scores beside those it holds.
    pub(crate) run: bool,
    /// So many queries and items that counting proximity would take too much memory.
    pub(crate) large: bool,
}

impl Offer {
    /// Whether a correction can be had, and if not why.
    fn refuses(self, base: Base, then: Then) -> Option<&'static str> {
        if base.needs_item_bank() && !(self.bank && self.item_bank) {
            return Some("--bank-images and --bank-texts");
        }
        if matches!(base, Base::Ls | Base::Nicdm) && !self.cosines {
            return Some("cosines (embeddings, without --raw)");
        }
        let held = matches!(base, Base::Nns | Base::Csls | Base::Is | Base::Nnn);
        if self.run && (!held || then != Then::Ranking) {
            return Some("all scores, not those of a run");
        }
        None
    }
}

/// Every row that was asked for, nearest neighbours first whether or not they were.
///
/// # Errors
/// If a correction cannot be had of this input.
pub(crate) fn rows(methods: &[Method], settings: &Settings, offer: Offer) -> Result<Vec<Row>> {
    let asked = if methods.is_empty() { all(offer) } else { methods.to_vec() };
    let plain = Method::One(Base::Nns, Then::Ranking);
    let mut rows: Vec<Row> = Vec::new();
    for method in [plain].into_iter().chain(asked.into_iter().filter(|&m| m != plain)) {
        let Method::One(base, then) = method else {
            let specs = [Spec::PLAIN].into_iter().chain(grids(&[Base::Csls, Base::Is]));
            let name = method.to_string();
            let lambda = Choice::Number(f64::INFINITY);
            rows.push(Row {
                name,
                specs: specs.collect(),
                then: Then::Ranking,
                lambda,
                given: false,
            });
            continue;
        };
        if let Some(needs) = offer.refuses(base, then) {
            return Err(Error::invalid(format!("--method {method}"), needs, "none"));
        }
        let banks: &[bool] = match (base.takes_bank() && offer.bank, base.needs_item_bank()) {
            (_, true) => &[true],
            (true, _) => &[false, true],
            _ => &[false],
        };
        for &bank in banks {
            rows.extend(expanded(method, base, then, bank, settings));
        }
    }
    named_apart(&mut rows);
    Ok(rows)
}

fn grids(bases: &[Base]) -> impl Iterator<Item = Spec> {
    bases.iter().flat_map(|&base| Spec::grid(base, false))
}

/// Everything that can be had.
fn all(offer: Offer) -> Vec<Method> {
    let ranking = Base::ALL.into_iter().map(|(_, base)| Method::One(base, Then::Ranking));
    let matched = [
        Method::One(Base::Nns, Then::Gm),
        Method::One(Base::Nns, Then::Rgm),
        Method::One(Base::Is, Then::Rgm),
        Method::One(Base::Csls, Then::Rgm),
        Method::Auto,
    ];
    let can = |method: &Method| match *method {
        Method::One(Base::MpEmpirical, _) if offer.large => false,
        Method::One(base, then) => offer.refuses(base, then).is_none(),
        Method::Auto => true,
    };
    ranking.chain(matched).filter(can).collect()
}

/// A row for every number of the correction and every λ.
fn expanded(method: Method, base: Base, then: Then, bank: bool, settings: &Settings) -> Vec<Row> {
    let (numbers, fallback) = match base {
        Base::Csls => (&settings.csls_k[..], 10.0),
        Base::Is => (&settings.is_beta[..], 30.0),
        _ => (&[][..], f64::NAN),
    };
    let one = [Choice::Number(f64::NAN)];
    let numbers = if numbers.is_empty() { &one[..] } else { numbers };
    let gm = [Choice::Number(1.0)];
    let lambdas = match then {
        Then::Ranking => &one[..],
        Then::Gm => &gm[..],
        Then::Rgm => &settings.rgm_lambda[..],
    };
    let mut rows = Vec::new();
    for &number in numbers {
        let specs = match number {
            Choice::Auto => Spec::grid(base, bank),
            Choice::Number(n) => vec![Spec { base, number: Some(n).filter(|n| !n.is_nan()), bank }],
        };
        for &lambda in lambdas {
            let given = matches!(number, Choice::Number(n) if !n.is_nan() && n != fallback);
            let given = given || (then == Then::Rgm && lambda != Choice::Auto);
            let name = format!("{method}{}", if bank { "@bank" } else { "" });
            rows.push(Row { name, specs: specs.clone(), then, lambda, given });
        }
    }
    rows
}

/// Rows of one method are told apart by their numbers.
fn named_apart(rows: &mut [Row]) {
    let names: Vec<_> = rows.iter().map(|row| row.name.clone()).collect();
    for (row, name) in rows.iter_mut().zip(&names) {
        if names.iter().filter(|other| *other == name).count() < 2 {
            continue;
        }
        let number = match &row.specs[..] {
            [one] => one.number.map(|n| n.to_string()),
            _ => Some("auto".into()),
        };
        let lambda = (row.then == Then::Rgm).then(|| row.lambda.to_string());
        let parts: Vec<_> = number.into_iter().chain(lambda).collect();
        row.name = format!("{name}({})", parts.join(","));
    }
}
