//! What a word can be, without its neighbours.

use crate::inflect::VerbForm;
use crate::phrases::lexicon::LEXICON;

/// What an open word can be.
#[derive(Clone, Copy)]
pub(super) struct Can {
    pub(super) noun: bool,
    pub(super) adjective: bool,
    pub(super) verb: Option<VerbForm>,
}

/// What a word can be according to the lexicon, or to its ending if the lexicon does not know the word.
pub(super) fn can(word: &str) -> Can {
    let verb = LEXICON.verb(word).map(|(_, form)| form);
    let known =
        Can { noun: LEXICON.noun(word), adjective: LEXICON.adjectives.contains(word), verb };
    if known.noun || known.adjective || verb.is_some() {
        return known;
    }
    let ends =
        |ends: &[&str]| ends.iter().any(|end| word.len() > end.len() + 2 && word.ends_with(end));
    let hyphen = word.contains('-');
    if hyphen && ends(&["ed", "ing", "old", "colored", "like", "foot", "style"]) {
        Can { adjective: true, ..known }
    } else if ends(&["ing"]) {
        Can { verb: Some(VerbForm::Ing), ..known }
    } else if ends(&["ed"]) {
        Can { verb: Some(VerbForm::Past), ..known }
    } else if ends(&["ous", "ful", "ive", "able", "ible", "less", "ish", "ese"]) {
        Can { adjective: true, ..known }
    } else if ends(&["y", "al", "ic", "ern"]) {
        Can { noun: true, adjective: true, ..known }
    } else {
        // a verb that the lexicon does not know: `frolics`
        let third = ends(&["s"]) && !ends(&["ss", "us"]);
        Can { noun: true, verb: third.then_some(VerbForm::Third), ..known }
    }
}
