//! The rows of a study: what each fits, what it leaves to choose, and what its input allows.

use itm_core::{Error, Result};

use super::fit::Fit;
use super::input::{Banks, TestScores};
use super::method::{Base, Method, Then};
use super::settings::{Choice, Settings};
use crate::Direction;
use crate::report::ChoiceOrigin;
use crate::rows::Length;

/// One row of the study.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StudyRow {
    /// The name of the row; every row has a different name.
    pub(crate) name: String,
    /// The candidate corrections; a single one if nothing is to be chosen.
    pub(crate) fits: Vec<Fit>,
    pub(crate) then: Then,
    /// λ of a matching.
    pub(crate) lambda: Choice,
    /// Whether the user gave a number.
    pub(crate) given: bool,
}

impl StudyRow {
    /// Whether something is left to choose.
    pub(crate) fn chooses(&self) -> bool {
        self.fits.len() > 1 || (self.then == Then::Rgm && self.lambda == Choice::Auto)
    }

    /// Who chooses its settings.
    pub(crate) fn chosen(&self, validated: bool) -> ChoiceOrigin {
        match (self.chooses(), self.given, validated) {
            (true, _, true) => ChoiceOrigin::Validation,
            (true, _, false) => ChoiceOrigin::CrossFitted,
            (false, true, _) => ChoiceOrigin::Given,
            (false, false, _) => ChoiceOrigin::Default,
        }
    }

    /// The name of a row of RGM without its λ, the last of the numbers.
    pub(crate) fn name_without_lambda(&self) -> String {
        let Some(numbered) = self.name.strip_suffix(')') else { return self.name.clone() };
        match (numbered.rsplit_once(','), numbered.split_once('(')) {
            (Some((rest, _)), _) => format!("{rest})"),
            (None, Some((method, _))) => method.into(),
            (None, None) => self.name.clone(),
        }
    }
}

/// What the input allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// There is a bank of queries for every direction.
    pub(crate) bank: bool,
    /// There is a bank of items for every direction.
    pub(crate) item_bank: bool,
    /// Scores are cosines.
    pub(crate) cosines: bool,
    /// The scores come from runs: a method must not need any other score.
    pub(crate) run: bool,
    /// There are too many scores to hold in memory for empirical mutual proximity.
    pub(crate) large: bool,
    /// There is a single image, or a direction has a single query: there are no other queries to compare with.
    pub(crate) alone: bool,
}

/// Above this number of scores, empirical mutual proximity runs only on request.
const COUNTED: usize = 20_000_000;

impl Limits {
    /// What scores and banks allow in these directions.
    pub(crate) fn new(
        scores: &TestScores<'_>,
        length: Length,
        banks: &Banks<'_>,
        directions: &[Direction],
    ) -> Self {
        let (images, texts) = scores.shape();
        let few = |d: &Direction| d.queries(images, texts) < 2;
        Self {
            bank: directions.iter().all(|&d| banks.has(d)),
            item_bank: directions.iter().all(|&d| banks.has(d.reversed())),
            cosines: scores.cosine_rows().is_some() && length == Length::Unit,
            run: matches!(scores, TestScores::Runs(_)),
            large: images.saturating_mul(texts) > COUNTED,
            alone: images < 2 || directions.iter().any(few),
        }
    }

    /// Checks that the input allows a method.
    ///
    /// # Errors
    /// If not; the error says what the method needs.
    pub(crate) fn check(self, method: Method) -> Result<()> {
        let place = format_args!("method {method}");
        let unless = |fits, expected, got| Error::unless(fits, place, expected, got);
        let Method::One(base, then) = method else { return unless(!self.alone, MANY, "1") };
        let fits = !base.needs_item_bank() || (self.bank && self.item_bank);
        unless(fits, "banks of images and of texts", "at most one of them")?;
        let fits = self.cosines || !matches!(base, Base::Ls | Base::Nicdm);
        unless(fits, "cosines (of embeddings of unit length)", "other scores")?;
        let by_pair = matches!(base, Base::Nns | Base::Csls | Base::Is | Base::Nnn);
        let fits = !self.run || (by_pair && then == Then::Ranking);
        unless(fits, "all scores", "only the scores of a run")?;
        let by_itself = then == Then::Ranking && (base == Base::Nns || self.bank);
        unless(!self.alone || by_itself, MANY, "1")
    }

    /// The fits of a correction: on the test queries (`false`), on a bank (`true`), or one of each.
    fn banks(self, base: Base) -> &'static [bool] {
        match (base != Base::Nns && self.bank, base.needs_item_bank() || self.alone) {
            (true, true) => &[true],
            (true, false) => &[false, true],
            (false, _) => &[false],
        }
    }
}

/// Corrections compare queries.
const MANY: &str = "at least 2 queries and 2 images in each direction";

/// Every wanted row. Nearest neighbours always come first.
///
/// # Errors
/// If the input does not allow a method.
pub(crate) fn rows(
    methods: &[Method],
    settings: &Settings,
    limits: Limits,
) -> Result<Vec<StudyRow>> {
    let wanted = if methods.is_empty() { all(limits) } else { methods.to_vec() };
    let plain = Method::One(Base::Nns, Then::Ranking);
    let mut rows: Vec<StudyRow> = Vec::new();
    for method in [plain].into_iter().chain(wanted.into_iter().filter(|&m| m != plain)) {
        limits.check(method)?;
        let expanded = match method {
            Method::Auto => vec![auto()],
            Method::One(base, then) => {
                let of = |&bank: &bool| expanded(method, base, then, bank, settings);
                limits.banks(base).iter().flat_map(of).collect()
            }
        };
        for row in expanded {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    name_apart(&mut rows);
    Ok(rows)
}

/// NNS, CSLS and IS with all their settings.
fn auto() -> StudyRow {
    let grids = [Base::Csls, Base::Is].into_iter().flat_map(|base| Fit::grid(base, false));
    StudyRow {
        name: Method::Auto.to_string(),
        fits: [Fit::PLAIN].into_iter().chain(grids).collect(),
        then: Then::Ranking,
        lambda: Choice::Number(f64::INFINITY),
        given: false,
    }
}

/// All methods that the input allows. Empirical mutual proximity is left out if there are too many scores.
fn all(limits: Limits) -> Vec<Method> {
    let ranking = Base::ALL.into_iter().map(|(_, base)| Method::One(base, Then::Ranking));
    let matched = [
        Method::One(Base::Nns, Then::Gm),
        Method::One(Base::Nns, Then::Rgm),
        Method::One(Base::Is, Then::Rgm),
        Method::One(Base::Csls, Then::Rgm),
        Method::Auto,
    ];
    let can = |method: &Method| match *method {
        Method::One(Base::MpEmpirical, _) if limits.large => false,
        method => limits.check(method).is_ok(),
    };
    ranking.chain(matched).filter(can).collect()
}

/// Sizes that cut no number of neighbours: settings are compared as they were asked.
const ANY: (usize, usize) = (usize::MAX, usize::MAX);

/// A row for every number of the correction and every λ.
fn expanded(
    method: Method,
    base: Base,
    then: Then,
    bank: bool,
    settings: &Settings,
) -> Vec<StudyRow> {
    let defaults = Settings::default();
    let numbers = |settings: &Settings| match base {
        Base::Csls => settings.csls_k.clone().into_iter().map(Some).collect(),
        Base::Is => settings.is_beta.clone().into_iter().map(Some).collect(),
        _ => vec![None],
    };
    let lambdas = match then {
        Then::Ranking => &[Choice::Number(f64::INFINITY)][..],
        Then::Gm => &[Choice::Number(1.0)],
        Then::Rgm => &settings.rgm_lambda,
    };
    // A correction with a bank of items has no form without banks, so its name needs no mark.
    let mark = if bank && !base.needs_item_bank() { "@bank" } else { "" };
    let name = format!("{method}{mark}");
    let of = |number: Option<Choice>| match number {
        Some(Choice::Auto) => None,
        Some(Choice::Number(number)) => Some(Fit { base, number: Some(number), bank }),
        None => Some(Fit { base, number: None, bank }),
    };
    let usual = of(numbers(&defaults)[0]).map(|fit| fit.params(&defaults, ANY));
    let mut rows = Vec::new();
    for number in numbers(settings) {
        let settled = of(number);
        let changed = settled.map(|fit| fit.params(settings, ANY)) != usual;
        let fits = settled.map_or_else(|| Fit::grid(base, bank), |fit| vec![fit]);
        for &lambda in lambdas {
            let given = changed || (then == Then::Rgm && lambda != Choice::Auto);
            rows.push(StudyRow { name: name.clone(), fits: fits.clone(), then, lambda, given });
        }
    }
    rows
}

/// If a method has several rows, adds the numbers to their names.
fn name_apart(rows: &mut [StudyRow]) {
    let names: Vec<_> = rows.iter().map(|row| row.name.clone()).collect();
    for (row, name) in rows.iter_mut().zip(&names) {
        if names.iter().filter(|other| *other == name).count() < 2 {
            continue;
        }
        let number = match &row.fits[..] {
            [one] => one.number.map(|n| n.to_string()),
            _ => Some("auto".into()),
        };
        let lambda = (row.then == Then::Rgm).then(|| row.lambda.to_string());
        let parts: Vec<_> = number.into_iter().chain(lambda).collect();
        row.name = format!("{name}({})", parts.join(","));
    }
}
