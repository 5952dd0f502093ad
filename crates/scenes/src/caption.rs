//! Five captions per image. Each caption states a part of the facts, as people do.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::SceneCaption;
use super::grammar::{Claim, Meaning, Phrase, render};
use super::layout::Relation;
use super::truth::entails;
use super::world::{Object, Pattern, Scene, weighted};

/// Captions of one image. All have different meanings if the scene offers enough.
pub(super) fn captions(rng: &mut impl RngExt, scene: &Scene, count: usize) -> Vec<SceneCaption> {
    let mut captions: Vec<SceneCaption> = Vec::with_capacity(count);
    let mut tries = 0;
    while captions.len() < count {
        let meaning = tell(rng, scene);
        debug_assert!(entails(scene, &meaning), "{meaning:?} of {scene:?}");
        tries += 1;
        let said = captions.iter().any(|c| c.meaning == meaning);
        if !said || tries > 40 {
            captions.push(SceneCaption { text: render(&meaning, rng), meaning });
        }
    }
    captions
}

/// The subject of a caption.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Subject {
    One,
    Several,
    Related,
    Counted,
    Place,
}

/// What a caption of this scene may tell of, with weights. If the scene lacks the drawn subject, the caption tells of
/// one object.
pub(super) fn telling(scene: &Scene) -> Vec<(Subject, f64)> {
    let mut told = vec![(Subject::One, 0.34), (Subject::Place, 0.012)];
    if scene.objects.len() >= 2 {
        told.extend([(Subject::Several, 0.17), (Subject::Related, 0.36), (Subject::Counted, 0.11)]);
    }
    told
}

/// Probability that a caption about objects also names the place.
pub(super) const PLACE_TOO: f64 = 0.35;

/// A meaning that is true of the scene.
pub(super) fn tell(rng: &mut impl RngExt, scene: &Scene) -> Meaning {
    let claim = match weighted(rng, telling(scene).into_iter()) {
        Subject::One => None,
        Subject::Several => several(rng, scene),
        Subject::Related => related(rng, scene),
        Subject::Counted => counted(rng, scene),
        Subject::Place => Some(Claim::Place),
    };
    let claim = claim.unwrap_or_else(|| {
        let object = scene.objects.choose(rng).expect("a scene has an object");
        Claim::Exist(vec![phrase(rng, object, Detail::Full)])
    });
    let place = claim == Claim::Place || rng.random_bool(PLACE_TOO);
    Meaning { claim, place: place.then_some(scene.background) }
}

/// How much is said of an object.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Detail {
    Full,  // the only object of the caption
    Brief, // one of several objects
}

/// The probabilities that a phrase says "thing" instead of the kind, and that it says colour, size and pattern. A phrase without
/// the kind always has the colour.
pub(super) fn said(object: &Object, detail: Detail) -> [f64; 4] {
    let more = if detail == Detail::Full { 1.0 } else { 0.55 };
    let pattern = more * if object.pattern == Pattern::Plain { 0.12 } else { 0.6 };
    [0.05, 0.85 * more, 0.4 * more, pattern]
}

fn phrase(rng: &mut impl RngExt, object: &Object, detail: Detail) -> Phrase {
    let [thing, colour, size, pattern] = said(object, detail);
    let kind = !rng.random_bool(thing);
    let colour = !kind || rng.random_bool(colour);
    let [size, pattern] = [size, pattern].map(|p| rng.random_bool(p));
    Phrase::of(object, [kind, colour, size, pattern])
}

/// Probability of listing three objects instead of two, if the scene has at least three.
pub(super) const THREE: f64 = 0.3;

fn several(rng: &mut impl RngExt, scene: &Scene) -> Option<Claim> {
    let count = if scene.objects.len() > 2 && rng.random_bool(THREE) { 3 } else { 2 };
    let told: Vec<_> = scene.objects.sample(rng, count).copied().collect();
    Some(Claim::Exist(told.iter().map(|o| phrase(rng, o, Detail::Brief)).collect()))
}

/// The relations of a scene with weights. Overlaps and nestings weigh more because people notice them first.
pub(super) fn relations(scene: &Scene) -> Vec<((usize, Relation, usize), f64)> {
    let ids = 0..scene.objects.len();
    let pairs = ids.clone().flat_map(|a| ids.clone().map(move |b| (a, b))).filter(|(a, b)| a != b);
    let all = pairs.flat_map(|(a, b)| Relation::ALL.iter().map(move |&r| (a, r, b)));
    let weight = |r| match r {
        Relation::Inside | Relation::InFrontOf | Relation::Behind => 4.0,
        Relation::NextTo => 1.5,
        _ => 1.0,
    };
    all.filter(|&(a, r, b)| r.holds(scene, a, b)).map(|held| (held, weight(held.1))).collect()
}

fn related(rng: &mut impl RngExt, scene: &Scene) -> Option<Claim> {
    let held = relations(scene);
    if held.is_empty() {
        return None;
    }
    let (a, relation, b) = weighted(rng, held.into_iter());
    let (a, b) = (&scene.objects[a], &scene.objects[b]);
    Some(Claim::Related(phrase(rng, a, Detail::Brief), relation, phrase(rng, b, Detail::Brief)))
}

/// Number of phrases drawn for a count, all about one object.
pub(super) const COUNT_DRAWS: i32 = 12;

/// Probabilities that such a phrase has kind, colour, size and pattern.
pub(super) const COUNT_SAYS: [f64; 4] = [0.7, 0.5, 0.2, 0.2];

/// The number of objects that a phrase counts. A phrase without kind and colour gives `None`, because "two things"
/// would be true of a third of all images.
pub(super) fn counts(scene: &Scene, phrase: &Phrase) -> Option<usize> {
    let n = scene.objects.iter().filter(|o| phrase.fits(o)).count();
    let tells = phrase.kind.is_some() || phrase.colour.is_some();
    (tells && (2..=4).contains(&n)).then_some(n)
}

/// How specific a phrase is. The most specific phrase is used; among equals, the last.
pub(super) fn telling_of(phrase: &Phrase) -> u8 {
    phrase.kind.is_some() as u8 * 2 + phrase.colour.is_some() as u8
}

/// Draws an object and counts the objects that share some of its attributes.
fn counted(rng: &mut impl RngExt, scene: &Scene) -> Option<Claim> {
    let object = scene.objects.choose(rng)?;
    let mut draw = || Phrase::of(object, COUNT_SAYS.map(|p| rng.random_bool(p)));
    let draws = (0..COUNT_DRAWS).map(|_| draw());
    let fit = draws.filter_map(|p| counts(scene, &p).map(|n| (p, n)));
    let most = fit.max_by_key(|(p, _)| telling_of(p));
    most.map(|(p, n)| Claim::Count(n as u8, p))
}
