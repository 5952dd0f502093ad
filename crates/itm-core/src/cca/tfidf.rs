//! Text features: binary term frequency times inverse document frequency, as sparse unit rows.

use std::collections::BTreeMap;

use super::stem::stems;

/// One text: its terms and their values, ascending by term.
pub(super) type SparseRow = Vec<(usize, f64)>;

/// The terms of the training captions.
#[derive(Debug, Clone)]
pub(super) struct Vocabulary {
    terms: BTreeMap<String, usize>,
    idf: Vec<f64>,
}

impl Vocabulary {
    /// Terms of at least `min_captions` captions; the rarest go first where more than `max_terms` remain.
    pub(super) fn fit(captions: &[String], min_captions: usize, max_terms: usize) -> Self {
        let mut count = BTreeMap::<String, usize>::new();
        for caption in captions {
            distinct(caption).into_iter().for_each(|term| *count.entry(term).or_default() += 1);
        }
        let mut kept: Vec<_> = count.into_iter().filter(|(_, df)| *df >= min_captions).collect();
        kept.sort_by_key(|(_, df)| std::cmp::Reverse(*df)); // stable: equal counts stay alphabetical
        kept.truncate(max_terms);
        kept.sort();

        let m = captions.len() as f64;
        let idf = kept.iter().map(|(_, df)| ((1.0 + m) / (1.0 + *df as f64)).ln() + 1.0).collect();
        let terms = kept.into_iter().enumerate().map(|(k, (term, _))| (term, k)).collect();
        Self { terms, idf }
    }

    /// Number of terms, `dy`.
    pub(super) fn len(&self) -> usize {
        self.idf.len()
    }

    /// The unit row of a text; empty if it has no known term.
    pub(super) fn row(&self, text: &str) -> SparseRow {
        let known = distinct(text).into_iter().filter_map(|term| self.terms.get(&term).copied());
        let mut row: SparseRow = known.map(|term| (term, self.idf[term])).collect();
        let norm = row.iter().map(|(_, value)| value * value).sum::<f64>().sqrt();
        row.iter_mut().for_each(|(_, value)| *value /= norm);
        row.sort_by_key(|(term, _)| *term);
        row
    }
}

fn distinct(text: &str) -> Vec<String> {
    let mut terms = stems(text);
    terms.sort();
    terms.dedup();
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 3 captions; `dog` in 2, `run` in 2, `a` in 3, `cat` in 1 (dropped).
    #[test]
    fn golden_weights() {
        let captions = ["a dog runs, runs", "dogs a", "A cat running"].map(String::from);
        let vocabulary = Vocabulary::fit(&captions, 2, 10);
        assert_eq!(vocabulary.len(), 3); // a, dog, run
        let (common, rarer) = (1.0, (4.0f64 / 3.0).ln() + 1.0);
        let norm = (common * common + rarer * rarer).sqrt();
        assert_eq!(vocabulary.row("dogs a, a dog!"), [(0, common / norm), (1, rarer / norm)]);
        assert_eq!(vocabulary.row("a cat"), [(0, 1.0)]);
        assert_eq!(vocabulary.row("cat"), []);
    }

    #[test]
    fn the_rarest_terms_go_first() {
        let captions = ["z y x", "z y", "z"].map(String::from);
        let vocabulary = Vocabulary::fit(&captions, 1, 2);
        assert_eq!(vocabulary.terms.keys().collect::<Vec<_>>(), ["y", "z"]);
    }
}
