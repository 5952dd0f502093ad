//! Ordinary queries: what people type into a search of photographs.

use std::collections::{HashMap, HashSet};

/// A form of queries on each line; then what each of their words in capital letters stands for.
const GRAMMAR: &str = include_str!("bank.txt");

/// Queries of the bank that comes with this crate.
const COUNT: usize = 5000;

/// 5,000 ordinary queries, all different, always the same: people, animals, things, places, actions, weather, food, vehicles and
/// events, in one word or in a sentence. A small grammar makes them; no data set was read.
///
/// ```
/// let bank = itm_search::ordinary_queries();
/// assert_eq!(bank.len(), 5000);
/// assert!(bank.iter().any(|query| query.contains("dog")));
/// ```
pub fn ordinary_queries() -> Vec<String> {
    let (forms, lists): (Vec<_>, Vec<_>) = GRAMMAR.lines().partition(|line| !line.contains(": "));
    let lists = lists.into_iter().filter_map(|line| line.split_once(": "));
    let lists: Grammar = lists.map(|(name, words)| (name, words.split(", ").collect())).collect();
    let (mut seen, mut bank, mut draw) = (HashSet::new(), Vec::with_capacity(COUNT), Draw(1));
    while bank.len() < COUNT {
        let form = draw.of(&forms);
        let query = draw.fill(form, &lists);
        if seen.insert(query.clone()) {
            bank.push(query);
        }
    }
    bank
}

/// Words by the name of their list.
type Grammar = HashMap<&'static str, Vec<&'static str>>;

/// A sequence of numbers that depends on nothing.
struct Draw(u64);

impl Draw {
    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        // Knuth's MMIX generator; its high bits are its good ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words[((self.0 >> 33) % words.len() as u64) as usize]
    }

    /// Puts a word for each capital letter of a form, and `an` for `a` where it belongs.
    fn fill(&mut self, form: &str, lists: &Grammar) -> String {
        let mut query = String::new();
        for word in form.split(' ') {
            let words = lists.get(word).map_or(word, |words| self.of(words));
            if query.ends_with(" a") || query == "a" {
                query.push_str(if words.starts_with(['a', 'e', 'i', 'o', 'u']) { "n" } else { "" });
            }
            if !query.is_empty() {
                query.push(' ');
            }
            query.push_str(words);
        }
        query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bank_is_many_different_ordinary_sentences() {
        let bank = ordinary_queries();
        assert_eq!((bank.len(), bank.iter().collect::<HashSet<_>>().len()), (COUNT, COUNT));
        assert_eq!(bank, ordinary_queries());
        for query in &bank {
            assert!(!query.chars().any(char::is_uppercase), "{query}");
            for wrong in [" a a ", " a an ", "an an ", "  ", " a e", " an d", " a o"] {
                assert!(!format!(" {query}").contains(wrong), "{query}");
            }
        }
        let words = |query: &&String| query.split(' ').count();
        let short = bank.iter().filter(|query| words(query) <= 3).count();
        let long = bank.iter().filter(|query| words(query) >= 8).count();
        assert!(short > 800 && long > 1000, "{short} short, {long} long");
    }
}
