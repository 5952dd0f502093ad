//! Which captions are true of an image, and which objects match a word. Training never reads this truth.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::Serialize;

use super::SceneCaption;
use super::grammar::{Claim, Meaning, Phrase};
use super::parse::{Role, analyse};
use super::world::{Background, Colour, Kind, Pattern, Scene, Size};
use itm_core::Relevance;

/// Whether every fact in the meaning holds in the scene.
///
/// "A ball" needs at least one ball, "a ball and a thing" two different objects, and "two balls" exactly two balls.
pub fn entails(scene: &Scene, meaning: &Meaning) -> bool {
    meaning.place.is_none_or(|p| p == scene.background) && claims(scene, &meaning.claim)
}

fn claims(scene: &Scene, claim: &Claim) -> bool {
    match claim {
        Claim::Place => true,
        Claim::Exist(phrases) => assign(scene, phrases, &[]),
        Claim::Related(..) => !related(scene, claim).is_empty(),
        Claim::Count(n, phrase) => fitting(scene, phrase).count() == *n as usize,
    }
}

/// Whether the phrases fit different objects, none of them `used`.
fn assign(scene: &Scene, phrases: &[Phrase], used: &[usize]) -> bool {
    let Some((first, rest)) = phrases.split_first() else { return true };
    let mut free = fitting(scene, first).filter(|i| !used.contains(i));
    free.any(|i| assign(scene, rest, &[used, &[i]].concat()))
}

fn fitting<'a>(scene: &'a Scene, phrase: &'a Phrase) -> impl Iterator<Item = usize> + 'a {
    scene.objects.iter().enumerate().filter(|(_, o)| phrase.fits(o)).map(|(i, _)| i)
}

/// The pairs of objects for which a [`Claim::Related`] is true.
fn related(scene: &Scene, claim: &Claim) -> Vec<(usize, usize)> {
    let Claim::Related(first, relation, second) = claim else { return Vec::new() };
    let pairs = fitting(scene, first).flat_map(|a| fitting(scene, second).map(move |b| (a, b)));
    pairs.filter(|&(a, b)| a != b && relation.holds(scene, a, b)).collect()
}

/// What a word of a caption matches in an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounding {
    /// The word names nothing that an image can show: the, of, is.
    Functional,
    /// Nothing in the image matches.
    Mismatched,
    /// The whole picture: its background matches.
    Background,
    /// These objects of the scene, ascending.
    Objects(Vec<usize>),
}

/// What every word of a caption matches in a scene; `None` if the text is no sentence of the grammar.
///
/// A word about an object matches the first of these sets that is not empty: the objects of its phrase in pairs for
/// which the sentence's relation is true; the objects that fit its phrase; the objects that fit the word alone. If all
/// are empty, the word is mismatched. A relation matches the objects that it is true of. A count matches the counted
/// objects, if exactly that number is there. The result is aligned with [`words`](super::words).
pub fn grounding(scene: &Scene, text: &str) -> Option<Vec<Grounding>> {
    let parsed = analyse(text)?;
    let claim = &parsed.meaning.claim;
    let (pairs, phrases) = (related(scene, claim), claim.phrases());
    let of = |index: usize, word: Phrase| {
        let in_claim = pairs.iter().map(|&(a, b)| if index == 0 { a } else { b }).collect();
        let in_phrase = fitting(scene, &phrases[index]).collect();
        [in_claim, in_phrase, fitting(scene, &word).collect()]
            .into_iter()
            .find(|found: &Vec<usize>| !found.is_empty())
            .map_or(Grounding::Mismatched, objects)
    };
    let word = |role: &Role| match *role {
        Role::Function => Grounding::Functional,
        Role::Kind(i, kind) => of(i, Phrase { kind, ..Phrase::default() }),
        Role::Colour(i, c) => of(i, Phrase { colour: Some(c), ..Phrase::default() }),
        Role::Size(i, s) => of(i, Phrase { size: Some(s), ..Phrase::default() }),
        Role::Pattern(i, p) => of(i, Phrase { pattern: Some(p), ..Phrase::default() }),
        Role::Place if parsed.meaning.place == Some(scene.background) => Grounding::Background,
        Role::Relation if !pairs.is_empty() => {
            objects(pairs.iter().flat_map(|&(a, b)| [a, b]).collect())
        }
        Role::Count if claims(scene, claim) => objects(fitting(scene, &phrases[0]).collect()),
        Role::Place | Role::Relation | Role::Count => Grounding::Mismatched,
    };
    Some(parsed.roles.iter().map(word).collect())
}

fn objects(mut found: Vec<usize>) -> Grounding {
    found.sort_unstable();
    found.dedup();
    Grounding::Objects(found)
}

/// All true pairs. Captions with the same meaning are judged once, and a mask of needed facts rules out most scenes.
pub(super) fn relevance(scenes: &[Scene], captions: &[SceneCaption]) -> Relevance {
    let mut captions_of: HashMap<&Meaning, Vec<u32>> = HashMap::new();
    for (i, caption) in captions.iter().enumerate() {
        captions_of.entry(&caption.meaning).or_default().push(i as u32);
    }
    let meanings: Vec<_> = captions_of.iter().map(|(m, texts)| (needs(m), *m, texts)).collect();
    let row = |scene: &Scene| {
        let has = facts(scene);
        let true_ones =
            meanings.iter().filter(|(need, m, _)| need & !has == 0 && entails(scene, m));
        true_ones.flat_map(|(_, _, texts)| texts.iter().copied()).collect()
    };
    Relevance::new(captions.len(), scenes.par_iter().map(row).collect())
}

const COLOUR: u32 = Kind::ALL.len() as u32;
const SIZE: u32 = COLOUR + Colour::ALL.len() as u32;
const PATTERN: u32 = SIZE + Size::ALL.len() as u32;
const PLACE: u32 = PATTERN + Pattern::ALL.len() as u32;
const _: () = assert!(PLACE + Background::ALL.len() as u32 <= 64);

/// One bit per kind, colour, size, pattern and background that is said.
fn bits(phrases: impl IntoIterator<Item = Phrase>, place: Option<Background>) -> u64 {
    let bit = |at: Option<u32>| at.map_or(0u64, |at| 1 << at);
    let of = |p: Phrase| {
        bit(p.kind.map(|k| k as u32))
            | bit(p.colour.map(|c| COLOUR + c as u32))
            | bit(p.size.map(|s| SIZE + s as u32))
            | bit(p.pattern.map(|p| PATTERN + p as u32))
    };
    let place = bit(place.map(|p| PLACE + p as u32));
    phrases.into_iter().fold(place, |mask, p| mask | of(p))
}

/// The bits that the scene has.
fn facts(scene: &Scene) -> u64 {
    bits(scene.objects.iter().map(|o| Phrase::of(o, [true; 4])), Some(scene.background))
}

/// The bits that a scene must have for the meaning to be true.
fn needs(meaning: &Meaning) -> u64 {
    bits(meaning.claim.phrases(), meaning.place)
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::super::world::Object;
    use super::super::{Scenes, Sizes};
    use super::*;
    use Grounding::{Functional, Mismatched};
    use itm_core::data::Bounds;

    /// A small red ball left of a large blue striped cup, and a second red ball, on sand.
    fn scene() -> Scene {
        let object = |kind, colour, size, pattern, x, y, side| Object {
            kind,
            colour,
            size,
            pattern,
            bounds: Bounds::around(x, y, side, side),
        };
        use self::{Colour::*, Kind::*, Pattern::*, Size::*};
        let objects = vec![
            object(Ball, Red, Small, Plain, 0.2, 0.3, 0.2),
            object(Cup, Blue, Large, Striped, 0.7, 0.3, 0.4),
            object(Ball, Red, Small, Plain, 0.6, 0.8, 0.2),
        ];
        Scene { background: Background::Sand, objects }
    }

    #[test]
    fn truth_by_hand() {
        for (text, truth) in [
            ("A red ball.", true),
            ("A red cup.", false),
            ("Two red balls on the sand.", true),
            ("Two red balls in the snow.", false),
            ("Two things.", false), // there are three
            ("Three objects on a beach.", true),
            ("A ball and a ball.", true),
            ("A ball, a ball and a ball.", false), // needs three different balls
            ("A ball, a sphere and a thing.", true),
            ("A tiny sphere sits left of a striped mug.", true),
            ("A tiny sphere sits to the right of a striped mug.", false),
            ("To the left of a cup there is a ball.", true),
            ("To the left of a ball there is a cup.", false),
            ("The cup is blue and big.", true),
            ("The cup is blue and small.", false),
            ("A photo taken at the beach.", true),
            ("The scene is at night.", false),
        ] {
            let meaning = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(entails(&scene(), &meaning), truth, "{text}");
        }
    }

    /// One bit for each object was enough for 32 of them.
    #[test]
    fn a_scene_may_have_many_objects() {
        let [ball, cup] = [scene().objects[0], scene().objects[1]];
        let mut many = Scene { objects: vec![cup; 36], ..scene() };
        (many.objects[3], many.objects[35]) = (ball, ball);
        for (text, truth) in [("A ball and a ball.", true), ("A ball, a ball and a ball.", false)] {
            assert_eq!(entails(&many, &parse(text).expect("a sentence")), truth, "{text}");
        }
    }

    #[test]
    fn grounding_by_hand() {
        let on = |text| grounding(&scene(), text).expect("a sentence");
        let at = |objects: &[usize]| Grounding::Objects(objects.to_vec());
        assert_eq!(
            on("A red ball on the sand."),
            [Functional, at(&[0, 2]), at(&[0, 2]), Functional, Functional, Grounding::Background]
        );
        // Only the upper ball is left of the cup: the claim decides which.
        assert_eq!(
            on("A ball sits left of a huge cup")[1..],
            [at(&[0]), Functional, at(&[0, 1]), Functional, Functional, at(&[1]), at(&[1])]
        );
        // No yellow anywhere; the cup is there, though not a yellow one.
        assert_eq!(
            on("A yellow cup in the snow")[1..],
            [Mismatched, at(&[1]), Functional, Functional, Mismatched]
        );
        // A red cup is not there, but red things are.
        assert_eq!(on("There is a red cup")[3..], [at(&[0, 2]), at(&[1])]);
        assert_eq!(on("Two balls"), [at(&[0, 2]), at(&[0, 2])]);
        assert_eq!(on("Four balls"), [Mismatched, at(&[0, 2])]);
        assert_eq!(on("A cup inside a ball")[1..3], [at(&[1]), Mismatched]);
        assert_eq!(grounding(&scene(), "A ball cup"), None);
    }

    fn split() -> Scenes {
        Scenes::generate(11, Sizes { train: 0, val: 0, test: 60, pixels: 32 })
    }

    #[test]
    fn relevance_is_entailment_of_every_pair() {
        let test = split().test;
        let relevance = test.relevance();
        assert_eq!((relevance.images(), relevance.texts()), (60, 300));
        for (i, scene) in test.scenes.iter().enumerate() {
            for (t, caption) in test.captions.iter().enumerate() {
                let truth = entails(scene, &parse(&caption.text).expect("a sentence"));
                assert_eq!(relevance.contains(i, t), truth, "image {i}: {}", caption.text);
            }
        }
    }

    #[test]
    fn an_edited_fact_makes_a_caption_false() {
        let mut edits = 0;
        let test = split().test;
        for (t, caption) in test.captions.iter().enumerate() {
            let scene = &test.scenes[test.pairs.image_of(t)];
            assert!(entails(scene, &caption.meaning), "{}", caption.text);
            let mut false_one = caption.meaning.clone();
            let absent = Colour::ALL.iter().find(|&&c| scene.objects.iter().all(|o| o.colour != c));
            match &mut false_one.claim {
                Claim::Exist(p) => p[0].colour = absent.copied(),
                Claim::Related(p, ..) | Claim::Count(_, p) => p.colour = absent.copied(),
                Claim::Place => {
                    false_one.place =
                        Background::ALL.iter().copied().find(|&b| b != scene.background)
                }
            }
            assert!(!entails(scene, &false_one), "{false_one:?}");
            edits += 1;
            if let Some(place) = caption.meaning.place {
                let elsewhere = Background::ALL[(place as usize + 1) % Background::ALL.len()];
                let moved = Meaning { place: Some(elsewhere), ..caption.meaning.clone() };
                assert!(!entails(scene, &moved));
            }
            if let Claim::Count(n, p) = caption.meaning.claim {
                let more = Meaning { claim: Claim::Count(n + 1, p), ..caption.meaning.clone() };
                assert!(!entails(scene, &more));
            }
        }
        assert_eq!(edits, 300);
    }
}
