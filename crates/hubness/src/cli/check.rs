//! Settings that no correction could use are refused before anything is read, by the name of their option.

use std::fmt::Display;

use itm_core::{Error, Result};

use super::args::Settings;
use super::methods::Choice;

impl Settings {
    /// Whether every number is one that its correction can use.
    ///
    /// # Errors
    /// For the first that is not.
    pub fn check(&self) -> Result<()> {
        for k in numbers(&self.csls_k) {
            let whole = |k: f64| (1.0..1e9).contains(&k) && k.fract() == 0.0;
            require("--csls-k", "a whole number of neighbours, 1 or more", k, whole)?;
        }
        for beta in numbers(&self.is_beta) {
            require("--is-beta", ABOVE, beta, above)?;
        }
        for lambda in numbers(&self.rgm_lambda) {
            require("--rgm-lambda", "a number above 0, or inf", lambda, |lambda| lambda > 0.0)?;
        }
        require("--nnn-alpha", FROM, self.nnn_alpha, from)?;
        require("--nnn-k", NEIGHBOURS, self.nnn_k, positive)?;
        require("--qbnorm-beta", ABOVE, self.qbnorm_beta, above)?;
        require("--qbnorm-k", NEIGHBOURS, self.qbnorm_k, positive)?;
        for &beta in &self.dual_beta {
            require("--dual-beta", FROM, beta, from)?;
        }
        let sum = self.dual_beta.iter().sum::<f64>();
        require("--dual-beta", "numbers with a sum above 0", sum, above)?;
        require("--sinkhorn-eps", ABOVE, self.sinkhorn_eps, above)?;
        require("--sinkhorn-iterations", "at least 1", self.sinkhorn_iterations, positive)?;
        require("--local-k", NEIGHBOURS, self.local_k, positive)
    }
}

const ABOVE: &str = "a finite number above 0";
const FROM: &str = "a finite number, 0 or more";
const NEIGHBOURS: &str = "at least 1 neighbour";

fn numbers(choices: &[Choice]) -> impl Iterator<Item = f64> {
    choices.iter().filter_map(|choice| match choice {
        Choice::Number(number) => Some(*number),
        Choice::Auto => None,
    })
}

fn above(x: f64) -> bool {
    x.is_finite() && x > 0.0
}

fn from(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}

fn positive(n: usize) -> bool {
    n > 0
}

fn require<T: Display + Copy>(
    option: &str,
    expected: &str,
    got: T,
    good: impl Fn(T) -> bool,
) -> Result<()> {
    if good(got) { Ok(()) } else { Err(Error::invalid(option, expected, got)) }
}
