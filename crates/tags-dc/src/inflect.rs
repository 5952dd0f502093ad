//! Forms of English words: singular and plural of nouns, lemmas of verbs.
//!
//! Rules and tables of irregular words, made for captions of photographs. Words must be in lower case.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Plurals and their singulars, where no rule leads from one to the other.
static IRREGULAR_NOUNS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| pairs(include_str!("inflect/nouns.txt")));

/// Ends of plurals and of their singulars, in compounds: `policemen`, `grandchildren`, `bookshelves`.
static COMPOUNDS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    pairs("men:man children:child shelves:shelf wives:wife wolves:wolf shoes:shoe")
});

/// Words that are always plural.
pub(crate) static PLURAL_ONLY: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let text = "binoculars cattle clothes glasses goggles headphones jeans leggings overalls pajamas \
                pants police scissors shorts stairs sunglasses sweatpants tights tongs trousers trunks";
    text.split(' ').collect()
});

/// Nouns whose plural is the same word.
pub(crate) static ALIKE: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "aircraft bison deer elk fish moose series sheep species".split(' ').collect()
});

/// Other words that `singular` keeps: uncountable nouns, and singulars in -s.
static UNCHANGED: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let text = "air basketball canvas chess christmas clothing equipment gas grass lens snow \
                soccer tennis underwear";
    text.split(' ').collect()
});

/// Past forms and participles, and their lemmas. Present forms follow rules.
static IRREGULAR_VERBS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| pairs(include_str!("inflect/verbs.txt")));

/// The pairs of a table.
fn pairs(text: &'static str) -> Vec<(&'static str, &'static str)> {
    text.split_whitespace().filter_map(|pair| pair.split_once(':')).collect()
}

/// The singular of a noun. A noun that is not a plural stays.
///
/// ```
/// use tags_dc::inflect::singular;
///
/// let words = ["dogs", "men", "boxes", "ladies", "bus", "dog"];
/// assert_eq!(words.map(singular), ["dog", "man", "box", "lady", "bus", "dog"]);
/// ```
pub fn singular(noun: &str) -> String {
    if let Some((_, one)) = IRREGULAR_NOUNS.iter().find(|(many, _)| *many == noun) {
        return (*one).to_owned();
    }
    for &(many, one) in COMPOUNDS.iter() {
        // policemen, grandchildren; not omen, specimen
        let is_plural = |stem: &&str| stem.len() > 3 && !["speci", "abdo", "regi"].contains(stem);
        if let Some(stem) = noun.strip_suffix(many).filter(is_plural) {
            return format!("{stem}{one}");
        }
    }
    let kept = ["ss", "us", "is"].iter().any(|end| noun.ends_with(end));
    if is_unchanged(noun) || kept || noun.len() < 4 || !noun.ends_with('s') {
        return noun.to_owned();
    }
    let cut = |n: usize| &noun[..noun.len() - n];
    if noun.ends_with("ies") {
        return format!("{}y", cut(3));
    }
    let after_consonant = |end: &str| {
        let stem = noun.strip_suffix(end).unwrap_or_default();
        stem.len() > 1 && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    };
    let hissing = ["sses", "shes", "ches", "xes", "zzes"].iter().any(|end| noun.ends_with(end))
        || noun.ends_with("oes") && noun.len() > 4 // heroes, not hoes
        || after_consonant("uses"); // viruses, not houses
    let ache = after_consonant("aches"); // headaches, not beaches
    cut(if hissing && !ache { 2 } else { 1 }).to_owned()
}

fn is_unchanged(noun: &str) -> bool {
    [&ALIKE, &UNCHANGED, &PLURAL_ONLY].iter().any(|words| words.contains(noun))
}

/// The plural of a noun in the singular.
///
/// ```
/// use tags_dc::inflect::plural;
///
/// let words = ["dog", "man", "box", "lady", "boy", "sheep"];
/// assert_eq!(words.map(plural), ["dogs", "men", "boxes", "ladies", "boys", "sheep"]);
/// ```
pub fn plural(noun: &str) -> String {
    if let Some((many, _)) = IRREGULAR_NOUNS.iter().find(|(_, one)| *one == noun) {
        return (*many).to_owned();
    }
    for &(many, one) in COMPOUNDS.iter() {
        if let Some(stem) = noun.strip_suffix(one).filter(|stem| stem.len() > 3) {
            return format!("{stem}{many}");
        }
    }
    if is_unchanged(noun) {
        return noun.to_owned();
    }
    let ends = |ends: &[&str]| ends.iter().any(|end| noun.ends_with(end));
    let oes = ends(&["tomato", "potato", "hero", "volcano", "tornado", "mango"]);
    let before = noun.chars().rev().nth(1);
    match noun.chars().next_back() {
        Some('y') if before.is_some_and(|c| !"aeiou".contains(c)) => {
            format!("{}ies", &noun[..noun.len() - 1])
        }
        _ if oes || ends(&["s", "sh", "ch", "x", "z"]) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// The form of a verb that a word can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerbForm {
    /// `jump`
    Base,
    /// `jumps`
    Third,
    /// `jumping`
    Ing,
    /// `jumped`, `fallen`: past or participle
    Past,
}

/// The possible lemmas of a word, the most likely first. Most of them are not English words; a lexicon must decide.
pub(crate) fn lemmas(word: &str) -> Vec<(String, VerbForm)> {
    let of = |form: &str| match form {
        "has" | "does" | "goes" => VerbForm::Third,
        _ if form.ends_with("ing") && form.len() > 4 => VerbForm::Ing,
        _ => VerbForm::Past,
    };
    let irregular = IRREGULAR_VERBS.iter().filter(|(form, lemma)| *form == word && form != lemma);
    let mut all: Vec<_> = irregular.map(|&(form, lemma)| (lemma.to_owned(), of(form))).collect();
    all.push((word.to_owned(), VerbForm::Base));
    let mut add = |stem: &str, form| {
        all.push((stem.to_owned(), form));
        all.push((format!("{stem}e"), form));
        let mut ends = stem.chars().rev();
        let (last, before) = (ends.next(), ends.next());
        if last == before && last.is_some_and(|c| !"aeiou".contains(c)) {
            let shorter = &stem[..stem.len() - last.map_or(0, char::len_utf8)];
            all.push((shorter.to_owned(), form)); // running
        }
    };
    if let Some(stem) = word.strip_suffix("ing").filter(|stem| stem.len() > 1) {
        add(stem, VerbForm::Ing);
    }
    if let Some(stem) = word.strip_suffix("ied") {
        all.push((format!("{stem}y"), VerbForm::Past));
    } else if let Some(stem) = word.strip_suffix("ed").filter(|stem| stem.len() > 1) {
        add(stem, VerbForm::Past);
    }
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        all.push((format!("{stem}y"), VerbForm::Third));
    } else if let Some(stem) = word.strip_suffix('s').filter(|stem| stem.len() > 1) {
        all.push((stem.to_owned(), VerbForm::Third));
        if let Some(shorter) = stem.strip_suffix('e') {
            all.push((shorter.to_owned(), VerbForm::Third)); // watches
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singular_and_plural_of_one_another() {
        for (one, many) in [
            ("dog", "dogs"),
            ("corgi", "corgis"),
            ("necktie", "neckties"),
            ("quiche", "quiches"),
            ("doberman", "dobermans"),
            ("man", "men"),
            ("woman", "women"),
            ("policeman", "policemen"),
            ("child", "children"),
            ("grandchild", "grandchildren"),
            ("box", "boxes"),
            ("bench", "benches"),
            ("lady", "ladies"),
            ("boy", "boys"),
            ("shelf", "shelves"),
            ("tomato", "tomatoes"),
            ("shoe", "shoes"),
            ("bus", "buses"),
            ("horse", "horses"),
            ("house", "houses"),
            ("sheep", "sheep"),
            ("jeans", "jeans"),
            ("scarf", "scarves"),
            ("dress", "dresses"),
            ("kite", "kites"),
            ("piece", "pieces"),
            ("person", "people"),
            ("ski", "skis"),
            ("tv", "tvs"),
            ("toe", "toes"),
            ("hero", "heroes"),
            ("superhero", "superheroes"),
            ("lens", "lenses"),
            ("cactus", "cactuses"),
            ("beanie", "beanies"),
            ("mustache", "mustaches"),
            ("ottoman", "ottomans"),
            ("canvas", "canvases"),
            ("gas", "gases"),
            ("virus", "viruses"),
            ("overpass", "overpasses"),
            ("bookshelf", "bookshelves"),
            ("housewife", "housewives"),
            ("snowshoe", "snowshoes"),
            ("godchild", "godchildren"),
            ("moose", "moose"),
            ("bison", "bison"),
            ("rookie", "rookies"),
            ("smoothie", "smoothies"),
            ("headache", "headaches"),
            ("beach", "beaches"),
            ("avalanche", "avalanches"),
            ("blouse", "blouses"),
            ("volcano", "volcanoes"),
            ("tornado", "tornadoes"),
            ("mango", "mangoes"),
            ("photo", "photos"),
            ("specimen", "specimens"),
        ] {
            assert_eq!((singular(many), plural(one)), (one.to_owned(), many.to_owned()));
            assert_eq!(singular(one), one, "a singular stays");
        }
        for stays in ["tennis", "cactus", "grass", "gas", "", "s"] {
            assert_eq!(singular(stays), stays);
        }
    }

    /// The right lemma is among the candidates, with its form.
    #[test]
    fn lemmas_hold_the_right_one() {
        use VerbForm::{Base, Ing, Past, Third};
        for (word, lemma, form) in [
            ("jump", "jump", Base),
            ("jumps", "jump", Third),
            ("jumping", "jump", Ing),
            ("jumped", "jump", Past),
            ("running", "run", Ing),
            ("riding", "ride", Ing),
            ("ran", "run", Past),
            ("fallen", "fall", Past),
            ("carries", "carry", Third),
            ("carried", "carry", Past),
            ("watches", "watch", Third),
            ("has", "have", Third),
            ("lying", "lie", Ing),
            ("wearing", "wear", Ing),
            ("graze", "graze", Base),
            ("stopped", "stop", Past),
            ("being", "be", Ing),
        ] {
            let found = lemmas(word).into_iter().any(|candidate| candidate == (lemma.into(), form));
            assert!(found, "{word}: {:?}", lemmas(word));
        }
    }
}
