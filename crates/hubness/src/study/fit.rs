//! A correction with its numbers, and how it is fitted.

use itm_core::Result;
use itm_core::scored::Scored;

use super::input::Banks;
use super::method::Base;
use super::settings::Settings;
use crate::report::{Param, Params};
use crate::{
    AnyCorrection, Bank, Correction, Direction, DualBank, EmpiricalProximity, GaussianProximity,
    HeldOutBank, LocalForm, LocalScaling, Nnn, QueryBank, Sinkhorn, TestQueries, csls,
    inverted_softmax,
};

/// A correction with the number that may be chosen (CSLS's k, IS's β), fitted on the test queries or on a bank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    pub(crate) base: Base,
    pub(crate) number: Option<f64>,
    pub(crate) bank: bool,
}

/// The values of CSLS's k that `auto` tries.
const KS: [f64; 9] = [100.0, 50.0, 30.0, 20.0, 10.0, 5.0, 3.0, 2.0, 1.0];

/// The values of IS's β that `auto` tries.
const BETAS: [f64; 13] =
    [2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0];

impl Fit {
    pub(crate) const PLAIN: Self = Self { base: Base::Nns, number: None, bank: false };

    /// All settings of a correction that `auto` tries.
    pub(crate) fn grid(base: Base, bank: bool) -> Vec<Self> {
        let of = |number: &f64| Self { base, number: Some(*number), bank };
        match base {
            Base::Csls => KS.iter().map(of).collect(),
            Base::Is => BETAS.iter().map(of).collect(),
            _ => vec![Self { base, number: None, bank }],
        }
    }

    /// The correction with the number of neighbours that its parameters say it used.
    pub(crate) fn used(self, params: &Params) -> Self {
        match (self.base, params.get("k")) {
            (Base::Csls, Some(&Param::Count(k))) => Self { number: Some(k as f64), ..self },
            _ => self,
        }
    }

    /// The name of the setting in a list of candidates.
    pub(crate) fn label(self) -> String {
        match (self.base, self.number) {
            (Base::Csls, Some(k)) => format!("csls k={k}"),
            (Base::Is, Some(beta)) => format!("is beta={beta}"),
            (base, _) => base.name().into(),
        }
    }

    /// The parameters of the correction, by name, as it uses them: a number of neighbours is at most what there is, which is
    /// `bank` queries for an item and `items` for a query.
    pub(crate) fn params(self, settings: &Settings, (bank, items): (usize, usize)) -> Params {
        let number = self.number.unwrap_or(f64::NAN);
        let among = |k: usize, all: usize| k.min(all) as f64;
        let all: Vec<(&str, f64)> = match self.base {
            Base::Nns | Base::Mp | Base::MpEmpirical => vec![],
            Base::Csls => vec![("k", among(whole(number), bank))],
            Base::Is => vec![("beta", number)],
            Base::Nnn => vec![("alpha", settings.nnn_alpha), ("k", among(settings.nnn_k, bank))],
            Base::Sinkhorn => vec![
                ("epsilon", settings.sinkhorn_eps),
                ("iterations", settings.sinkhorn_iterations as f64),
            ],
            Base::QbNorm => {
                vec![("beta", settings.qbnorm_beta), ("k", among(settings.qbnorm_k, items))]
            }
            Base::DualIs | Base::DualDis => {
                vec![("beta1", settings.dual_beta[0]), ("beta2", settings.dual_beta[1])]
            }
            Base::Ls | Base::Nicdm => vec![("k", among(settings.local_k, bank))],
        };
        all.into_iter().map(|(name, value)| (name.into(), Param::from(value))).collect()
    }

    /// Fits the correction for a direction. Sinkhorn adds its iterations and its row error to the parameters.
    pub(crate) fn fit(
        self,
        test: &dyn Scored,
        banks: &Banks<'_>,
        settings: &Settings,
        direction: Direction,
    ) -> Result<(AnyCorrection, Params)> {
        if !self.bank {
            return self.on(&TestQueries(test), test, banks, settings, direction);
        }
        let bank = banks.scores(direction, test, direction)?;
        self.on(&HeldOutBank(&bank), test, banks, settings, direction)
    }

    fn on<B: Bank>(
        self,
        bank: &B,
        test: &dyn Scored,
        banks: &Banks<'_>,
        settings: &Settings,
        direction: Direction,
    ) -> Result<(AnyCorrection, Params)> {
        let queries = direction.queries(bank.scores().images(), bank.scores().texts());
        let items = direction.items(test.images(), test.texts());
        let mut params = self.params(settings, (queries, items));
        let number = self.number.unwrap_or(f64::NAN);
        let local = |form| LocalScaling { form, k: settings.local_k };
        let correction = match self.base {
            Base::Nns => return Ok((Correction::none(test, direction).into_any(), params)),
            Base::Csls => csls(bank, direction, whole(number))?,
            Base::Is => inverted_softmax(bank, direction, number)?,
            Base::Nnn => {
                Nnn { alpha: settings.nnn_alpha, k: settings.nnn_k }.fit(bank, direction)?
            }
            Base::Sinkhorn => {
                let sinkhorn = Sinkhorn {
                    epsilon: settings.sinkhorn_eps,
                    iterations: settings.sinkhorn_iterations,
                    ..Default::default()
                };
                let balanced = sinkhorn.fit(bank, direction)?;
                params.insert("iterations".into(), Param::from(balanced.iterations as f64));
                let error = format!("{:.1e}", balanced.row_error);
                params.insert("row_error".into(), Param::Word(error));
                balanced.correction
            }
            Base::QbNorm => {
                let (beta, k) = (settings.qbnorm_beta, settings.qbnorm_k);
                QueryBank { beta, k, ..Default::default() }.fit(bank, test, direction)?
            }
            Base::DualIs | Base::DualDis => {
                let dual = DualBank {
                    query_beta: settings.dual_beta[0],
                    item_beta: settings.dual_beta[1],
                    dynamic: self.base == Base::DualDis,
                    ..Default::default()
                };
                let items = banks.scores(direction.reversed(), test, direction)?;
                dual.fit(bank, &items, test, direction)?
            }
            Base::Mp => GaussianProximity.fit(bank, test, direction)?,
            Base::MpEmpirical => EmpiricalProximity::default().fit(bank, test, direction)?,
            Base::Ls => local(LocalForm::LocalScaling).fit(bank, test, direction)?,
            Base::Nicdm => local(LocalForm::Nicdm).fit(bank, test, direction)?,
        };
        Ok((correction.into_any(), params))
    }
}

/// A number of neighbours as an integer. [`Settings::check`] has checked that it is whole.
pub(super) fn whole(k: f64) -> usize {
    k as usize
}
