//! Position lists: which words are masked together.

use std::collections::HashSet;
use std::ops::Range;

use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::Sentence;

/// Whether a list that occurs twice is kept twice (departure 18).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// The list is kept once: the default.
    #[default]
    Once,
    /// The list is kept as often as it occurs, as in the released program. Each position then has half the rate and two chances.
    Kept,
}

/// The position lists of a sentence: one list per phrase, and no empty lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phrases {
    /// The lists of objects.
    pub node: Vec<Vec<usize>>,
    /// The lists of attributes.
    pub attribute: Vec<Vec<usize>>,
    /// The lists of relations.
    pub relation: Vec<Vec<usize>>,
}

impl Sentence {
    /// The words of each phrase.
    ///
    /// ```
    /// use tags_dc::phrases::{Duplicates, parse};
    ///
    /// let phrases = parse("A brown dog jumps over a fallen log.").phrases(Duplicates::Once);
    /// assert_eq!(phrases.node, [vec![2], vec![7]]);
    /// assert_eq!(phrases.attribute, [vec![1], vec![6]]);
    /// assert_eq!(phrases.relation, [vec![3, 4]]);
    /// ```
    pub fn phrases(&self, duplicates: Duplicates) -> Phrases {
        let kinds: [Vec<Vec<usize>>; 3] = [
            self.objects.iter().map(|object| object.words.clone()).collect(),
            self.attributes.iter().map(|attribute| attribute.words.clone()).collect(),
            self.relations.iter().map(|relation| relation.words.clone()).collect(),
        ];
        let mut seen = HashSet::new();
        Phrases::of(kinds.map(|lists| duplicates.kept(lists, &mut seen)))
    }
}

impl Duplicates {
    /// The lists of one caption. `self` decides whether identical lists are kept once or all.
    ///
    /// ```
    /// use tags_dc::phrases::Duplicates;
    ///
    /// let lists = vec![vec![2], vec![0, 1], vec![2]];
    /// assert_eq!(Duplicates::Once.of(lists.clone()), [vec![2], vec![0, 1]]);
    /// assert_eq!(Duplicates::Kept.of(lists.clone()), lists);
    /// ```
    pub fn of(self, lists: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        self.kept(lists, &mut HashSet::new())
    }

    fn kept(self, mut lists: Vec<Vec<usize>>, seen: &mut HashSet<Vec<usize>>) -> Vec<Vec<usize>> {
        lists.retain(|list| self == Self::Kept || seen.insert(list.clone()));
        lists
    }
}

impl Phrases {
    pub(super) fn kinds(self) -> [Vec<Vec<usize>>; 3] {
        [self.node, self.attribute, self.relation]
    }

    /// The lists of the three kinds that are not empty.
    fn of(kinds: [Vec<Vec<usize>>; 3]) -> Self {
        let [node, attribute, relation] = kinds.map(|mut lists| {
            lists.retain(|list| !list.is_empty());
            lists
        });
        Self { node, attribute, relation }
    }

    /// The phrases of a caption with this number of tokens, without empty lists. `outside` is the error of a position that it does not have.
    pub(crate) fn within(
        kinds: [Vec<Option<Vec<usize>>>; 3],
        tokens: usize,
        outside: impl Fn(usize) -> Error,
    ) -> Result<Self> {
        let kinds = kinds.map(|lists| lists.into_iter().flatten().collect::<Vec<_>>());
        match kinds.iter().flatten().flatten().find(|&&at| at >= tokens) {
            Some(&at) => Err(outside(at)),
            None => Ok(Self::of(kinds)),
        }
    }

    /// Turns positions of words into positions of word pieces: `pieces[w]` are the pieces of word `w`. A word without pieces is dropped, and
    /// so is a phrase without pieces.
    ///
    /// # Panics
    /// If a position lies outside `pieces`.
    ///
    /// ```
    /// use tags_dc::phrases::Phrases;
    ///
    /// let words = Phrases { node: vec![vec![1]], relation: vec![vec![0, 2]], ..Phrases::default() };
    /// let pieces = words.expand(&[0..1, 1..3, 3..3]); // the second word has two pieces, the third none
    /// assert_eq!(pieces.node, [vec![1, 2]]);
    /// assert_eq!(pieces.relation, [vec![0]]);
    /// ```
    pub fn expand(&self, pieces: &[Range<usize>]) -> Self {
        let expanded = |list: Vec<usize>| -> Vec<usize> {
            list.into_iter().flat_map(|word| pieces[word].clone()).collect()
        };
        Self::of(self.clone().kinds().map(|lists| lists.into_iter().map(expanded).collect()))
    }

    /// The lists of all three kinds. If there are none, each of the `tokens` positions is its own phrase.
    pub fn lists(&self, tokens: usize) -> Vec<Vec<usize>> {
        let all = self.clone().kinds().concat();
        if all.is_empty() { (0..tokens).map(|at| vec![at]).collect() } else { all }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    /// Departure 18: `has` leads to three objects.
    #[test]
    fn identical_lists_are_kept_once() {
        let sentence = parse("The kitchen has a stove , two ovens and no refrigerator .");
        assert_eq!(sentence.phrases(Duplicates::Once).relation, [vec![2]]);
        assert_eq!(sentence.phrases(Duplicates::Kept).relation, vec![vec![2]; 3]);
    }

    #[test]
    fn without_a_phrase_every_token_is_one() {
        let none = parse("of and .").phrases(Duplicates::Once);
        assert_eq!(none, Phrases::default());
        assert_eq!(none.lists(3), [vec![0], vec![1], vec![2]]);
        let some = parse("a dog .").phrases(Duplicates::Once);
        assert_eq!(some.lists(3), [vec![1]]);
    }

    // Trap 22
    #[test]
    fn a_phrase_covers_every_piece_of_its_words() {
        let phrases = parse("a snowboarder jumps").phrases(Duplicates::Once);
        let pieces = phrases.expand(&[0..1, 1..4, 4..5]);
        assert_eq!((&pieces.node, &pieces.attribute), (&vec![vec![1, 2, 3]], &vec![vec![4]]));
    }
}
