//! The words that the grammar writes and the parser reads, defined once.

use super::layout::Relation;
use super::world::{Background, Colour, Kind, Pattern, Size};

/// Singular and plural of every name of a kind; the usual name is first.
pub(super) fn nouns(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Ball => &[("ball", "balls"), ("sphere", "spheres")],
        Kind::House => &[("house", "houses"), ("cottage", "cottages")],
        Kind::Tree => &[("tree", "trees")],
        Kind::Car => &[("car", "cars")],
        Kind::Cube => &[("cube", "cubes"), ("block", "blocks")],
        Kind::Boat => &[("boat", "boats"), ("ship", "ships")],
        Kind::Star => &[("star", "stars")],
        Kind::Bird => &[("bird", "birds")],
        Kind::Fish => &[("fish", "fish")],
        Kind::Flower => &[("flower", "flowers"), ("blossom", "blossoms")],
        Kind::Cup => &[("cup", "cups"), ("mug", "mugs")],
        Kind::Ring => &[("ring", "rings"), ("hoop", "hoops")],
        Kind::Heart => &[("heart", "hearts")],
        Kind::Umbrella => &[("umbrella", "umbrellas"), ("parasol", "parasols")],
        Kind::Kite => &[("kite", "kites")],
        Kind::Hat => &[("hat", "hats")],
        Kind::Cone => &[("cone", "cones")],
        Kind::Mushroom => &[("mushroom", "mushrooms")],
        Kind::Frame => &[("frame", "frames")],
    }
}

/// Names of an object of any kind.
pub(super) const THINGS: &[(&str, &str)] = &[("thing", "things"), ("object", "objects")];

pub(super) fn colours(colour: Colour) -> &'static [&'static str] {
    match colour {
        Colour::Red => &["red", "scarlet"],
        Colour::Blue => &["blue"],
        Colour::Yellow => &["yellow", "golden"],
        Colour::Green => &["green"],
        Colour::White => &["white"],
        Colour::Orange => &["orange"],
        Colour::Black => &["black"],
        Colour::Purple => &["purple", "violet"],
    }
}

pub(super) fn sizes(size: Size) -> &'static [&'static str] {
    match size {
        Size::Small => &["small", "little", "tiny"],
        Size::Large => &["large", "big", "huge"],
    }
}

pub(super) fn patterns(pattern: Pattern) -> &'static [&'static str] {
    match pattern {
        Pattern::Plain => &["plain"],
        Pattern::Striped => &["striped"],
        Pattern::Dotted => &["dotted", "spotted"],
    }
}

/// Words after "with": "a ball with stripes".
pub(super) fn trimmings(pattern: Pattern) -> &'static [&'static str] {
    match pattern {
        Pattern::Plain => &[],
        Pattern::Striped => &["stripes"],
        Pattern::Dotted => &["dots", "spots"],
    }
}

pub(super) fn places(background: Background) -> &'static [&'static str] {
    match background {
        Background::Grass => &["on the grass", "on a lawn", "in a meadow"],
        Background::Sand => &["on the sand", "on a beach", "at the beach"],
        Background::Water => &["on the water", "on the sea", "at sea"],
        Background::Table => &["on a wooden table", "on a table", "on wooden planks"],
        Background::Snow => &["in the snow", "on snowy ground", "on a snowy field"],
        Background::Night => &["at night", "in the night sky", "in the dark sky"],
    }
}

pub(super) fn relations(relation: Relation) -> &'static [&'static str] {
    match relation {
        Relation::LeftOf => &["to the left of", "left of"],
        Relation::RightOf => &["to the right of", "right of"],
        Relation::Above => &["above", "over", "higher than"],
        Relation::Below => &["below", "under", "beneath"],
        Relation::Inside => &["inside", "within"],
        Relation::InFrontOf => &["in front of", "partly covering"],
        Relation::Behind => &["behind", "partly hidden by"],
        Relation::NextTo => &["next to", "beside", "close to"],
    }
}

pub(super) const COUNTS: [(&str, u8); 3] = [("two", 2), ("three", 3), ("four", 4)];

/// Verbs between a subject and a relation.
pub(super) const VERBS: &[&str] = &["is", "sits", "lies", "stands", "rests"];

/// Names of the picture itself.
pub(super) const PICTURES: &[&str] = &["picture", "image", "photo"];

/// Words of a fixed phrase that carry no fact, in any position.
pub(super) fn is_function(word: &str) -> bool {
    matches!(
        word,
        "a" | "an" | "the" | "to" | "of" | "on" | "in" | "at" | "than" | "by" | "and" | "with"
    )
}

/// The words of a text: runs of letters and digits, in lower case.
///
/// ```
/// assert_eq!(scenes::words("A cup, a fish ."), ["a", "cup", "a", "fish"]);
/// ```
pub fn words(text: &str) -> Vec<String> {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    runs.map(str::to_lowercase).collect()
}
