//! The stems of the training captions: a number and an inverse document frequency for each.

mod stem;

use std::collections::{BTreeMap, BTreeSet};

use stem::stems;

/// Terms of captions for a bag of words: distinct stems, numbered alphabetically, with their inverse document frequency.
///
/// ```text
/// idf_t = ln( (1 + m) / (1 + df_t) ) + 1
/// ```
///
/// | symbol | here                                             |
/// |--------|--------------------------------------------------|
/// | m      | number of captions that [`Terms::fit`] gets      |
/// | df_t   | number of these captions with the stem `t`       |
///
/// A token is a lower-case run of `[a-z0-9]`. The stemmer is light: plural, `-ing` and `-ed` with undoubling, final `e`.
///
/// ```
/// use itm_data::text::Terms;
///
/// let terms = Terms::fit(&["A dog runs.", "two dogs running", "a cat"], 2, 6000); // a, dog, run
/// assert_eq!(terms.numbers("Dogs run and run"), [1, 2]);
/// assert!(terms.numbers("Two cats").is_empty());
/// assert_eq!(terms.idf(), [(4.0f64 / 3.0).ln() + 1.0; 3]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    numbers: BTreeMap<String, u32>,
    idf: Vec<f64>,
}

impl Terms {
    /// Terms of at least `min_captions` captions. If more than `max_terms` remain, the rarest are dropped.
    pub fn fit(captions: &[impl AsRef<str>], min_captions: usize, max_terms: usize) -> Self {
        let mut count = BTreeMap::<String, usize>::new();
        let terms = captions.iter().flat_map(|caption| distinct(caption.as_ref()));
        terms.for_each(|term| *count.entry(term).or_default() += 1);
        let mut kept: Vec<_> = count.into_iter().filter(|(_, df)| *df >= min_captions).collect();
        kept.sort_by_key(|(_, df)| std::cmp::Reverse(*df)); // stable: equal counts stay alphabetical
        kept.truncate(max_terms);
        kept.sort();

        let m = captions.len() as f64;
        let idf = kept.iter().map(|(_, df)| ((1.0 + m) / (1.0 + *df as f64)).ln() + 1.0).collect();
        let numbers = kept.into_iter().zip(0..).map(|((term, _), number)| (term, number)).collect();
        Self { numbers, idf }
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.idf.len()
    }

    /// Whether no term was frequent enough.
    pub fn is_empty(&self) -> bool {
        self.idf.is_empty()
    }

    /// Numbers of the distinct known stems of a text, ascending; none if it has no known stem.
    pub fn numbers(&self, text: &str) -> Vec<u32> {
        distinct(text).iter().filter_map(|term| self.numbers.get(term).copied()).collect()
    }

    /// Inverse document frequency of each term.
    pub fn idf(&self) -> &[f64] {
        &self.idf
    }
}

/// Distinct stems in alphabetical order, as the numbers are.
fn distinct(text: &str) -> BTreeSet<String> {
    stems(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 3 captions; `dog` in 2, `run` in 2, `a` in 3, `cat` in 1 (dropped).
    #[test]
    fn golden_numbers_and_idf() {
        let terms = Terms::fit(&["a dog runs, runs", "dogs a", "A cat running"], 2, 10);
        let rarer = (4.0f64 / 3.0).ln() + 1.0;
        assert_eq!(terms.idf(), [1.0, rarer, rarer]); // a, dog, run
        assert_eq!(terms.len(), 3);
        assert_eq!(terms.numbers("running dogs: a dog!"), [0, 1, 2]);
        assert_eq!(terms.numbers("a cat"), [0]);
        assert_eq!(terms.numbers("cat"), [0; 0]);
    }

    #[test]
    fn the_rarest_terms_go_first() {
        let terms = Terms::fit(&["z y x", "z y", "z"], 1, 2);
        assert_eq!(terms.numbers.keys().collect::<Vec<_>>(), ["y", "z"]);
        assert!(Terms::fit(&["z y x"], 2, 9).is_empty());
    }
}
