//! Corrections and rows of a study, by name.

use std::fmt;
use std::str::FromStr;

use itm_core::Error;

/// A correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// Nearest neighbours without a correction.
    Nns,
    /// CSLS.
    Csls,
    /// Inverted softmax.
    Is,
    /// Nearest neighbour normalisation.
    Nnn,
    /// Sinkhorn normalisation.
    Sinkhorn,
    /// QB-Norm, the dynamic inverted softmax.
    QbNorm,
    /// Dual inverted softmax over two banks.
    DualIs,
    /// The dynamic form of Dual-IS.
    DualDis,
    /// Mutual proximity, Gaussian.
    Mp,
    /// Mutual proximity, empirical.
    MpEmpirical,
    /// Local scaling.
    Ls,
    /// Non-iterative contextual dissimilarity.
    Nicdm,
}

impl Base {
    /// All corrections, in the order of reports.
    pub(crate) const ALL: [(&str, Self); 12] = [
        ("nns", Self::Nns),
        ("csls", Self::Csls),
        ("is", Self::Is),
        ("nnn", Self::Nnn),
        ("sinkhorn", Self::Sinkhorn),
        ("qbnorm", Self::QbNorm),
        ("dual-is", Self::DualIs),
        ("dual-dis", Self::DualDis),
        ("mp", Self::Mp),
        ("mp-empirical", Self::MpEmpirical),
        ("ls", Self::Ls),
        ("nicdm", Self::Nicdm),
    ];

    /// The name of the correction.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, base)| *base == self).map_or("?", |(name, _)| name)
    }

    /// Whether it needs a bank of items.
    pub(crate) fn needs_item_bank(self) -> bool {
        matches!(self, Self::DualIs | Self::DualDis)
    }
}

/// What follows a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Then {
    /// Nothing: items are ranked.
    #[default]
    Ranking,
    /// Greedy matching, λ = 1.
    Gm,
    /// Relaxed greedy matching.
    Rgm,
}

/// One row of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// A correction, and perhaps a matching after it.
    One(Base, Then),
    /// The best of NNS, CSLS and IS with their settings, by cross-fitting or on validation.
    Auto,
}

impl FromStr for Method {
    type Err = Error;

    /// # Errors
    /// If no method has this name; the error lists the names.
    fn from_str(name: &str) -> Result<Self, Error> {
        let short = name.strip_prefix("nns+").filter(|then| ["gm", "rgm"].contains(then));
        let of = |base| [Then::Ranking, Then::Gm, Then::Rgm].map(|then| Self::One(base, then));
        let mut all = Base::ALL.into_iter().flat_map(|(_, base)| of(base)).chain([Self::Auto]);
        let found = all.find(|method| method.to_string() == short.unwrap_or(name));
        found.ok_or_else(|| {
            let names: Vec<_> = Base::ALL.iter().map(|(name, _)| *name).collect();
            let expected =
                format!("auto, gm, rgm, or one of {}, alone or with +gm or +rgm", names.join(", "));
            Error::invalid("method", expected, name)
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::One(Base::Nns, Then::Gm) => f.write_str("gm"),
            Self::One(Base::Nns, Then::Rgm) => f.write_str("rgm"),
            Self::One(base, Then::Ranking) => f.write_str(base.name()),
            Self::One(base, Then::Gm) => write!(f, "{}+gm", base.name()),
            Self::One(base, Then::Rgm) => write!(f, "{}+rgm", base.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let names = ["nns", "csls", "is", "gm", "rgm", "csls+rgm", "is+gm", "auto", "mp-empirical"];
        for name in names {
            assert_eq!(name.parse::<Method>().unwrap().to_string(), name);
        }
        for name in ["", "CSLS", "rgm+csls", "csls+is", "auto+rgm"] {
            let error = name.parse::<Method>().unwrap_err().to_string();
            assert!(
                error.starts_with("method: expected auto, gm, rgm, or one of nns, csls"),
                "{error}"
            );
            assert!(error.ends_with(&format!("got {name}")), "{error}");
        }
    }
}
