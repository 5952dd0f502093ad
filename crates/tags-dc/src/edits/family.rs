//! Nouns that may name the same thing, and nouns that name nothing visible.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Words of one line never replace each other: a man may be called a person, a biker or a boy.
const FAMILIES: &str = include_str!("families.txt");

/// Nouns that a picture does not show as things.
const NON_VISUAL: &str = include_str!("non_visual.txt");

/// Uncountable nouns: nobody says `a snow` or `two snows`.
const MASS: &str = include_str!("mass.txt");

/// The families of each noun.
static FAMILIES_OF: LazyLock<HashMap<&'static str, Vec<usize>>> = LazyLock::new(|| {
    let mut families: HashMap<&'static str, Vec<usize>> = HashMap::new();
    for (number, line) in FAMILIES.lines().enumerate() {
        line.split_whitespace().for_each(|noun| families.entry(noun).or_default().push(number));
    }
    families
});

/// Whether two nouns, in the singular, may name the same thing.
pub(super) fn related(a: &str, b: &str) -> bool {
    match (FAMILIES_OF.get(a), FAMILIES_OF.get(b)) {
        (Some(a), Some(b)) => a.iter().any(|family| b.contains(family)),
        _ => false,
    }
}

/// Whether a noun, in the singular, is uncountable.
pub(super) fn mass(noun: &str) -> bool {
    MASS.split_whitespace().any(|word| word == noun)
}

/// Whether a noun, in the singular, names a thing that can be seen.
pub(super) fn visual(noun: &str) -> bool {
    !NON_VISUAL.split_whitespace().any(|word| word == noun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_family_exclude_each_other() {
        for (a, b) in [("man", "person"), ("woman", "lady"), ("dog", "animal"), ("car", "vehicle")]
        {
            assert!(related(a, b) && related(b, a), "{a}, {b}");
        }
        for (a, b) in [("man", "woman"), ("dog", "cat"), ("car", "boat"), ("hat", "shoe")] {
            assert!(!related(a, b), "{a}, {b}");
        }
    }

    #[test]
    fn front_is_not_seen_and_a_dog_is() {
        assert!(!visual("front") && visual("dog"));
    }
}
