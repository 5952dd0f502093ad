//! Five captions an image: each tells a part of the facts, as people do.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::Caption;
use super::grammar::{Claim, Meaning, Phrase, render};
use super::layout::Relation;
use super::truth::entails;
use super::world::{Object, Pattern, Scene, weighted};

/// Captions of one image that all mean something different where the scene has enough to say.
pub(super) fn captions(rng: &mut impl RngExt, scene: &Scene, count: usize) -> Vec<Caption> {
    let mut captions: Vec<Caption> = Vec::with_capacity(count);
    let mut tries = 0;
    while captions.len() < count {
        let meaning = tell(rng, scene);
        debug_assert!(entails(scene, &meaning), "{meaning:?} of {scene:?}");
        tries += 1;
        let said = captions.iter().any(|c| c.meaning == meaning);
        if !said || tries > 40 {
            captions.push(Caption { text: render(&meaning, rng), meaning });
        }
    }
    captions
}

/// A meaning that is true of the scene.
fn tell(rng: &mut impl RngExt, scene: &Scene) -> Meaning {
    let many = scene.objects.len() >= 2;
    let mut kinds = vec![(0, 0.34), (4, 0.012)];
    if many {
        kinds.extend([(1, 0.17), (2, 0.36), (3, 0.11)]);
    }
    let claim = match weighted(rng, kinds.into_iter()) {
        1 => several(rng, scene),
        2 => related(rng, scene),
        3 => counted(rng, scene),
        4 => Some(Claim::Place),
        _ => None,
    };
    let claim = claim.unwrap_or_else(|| {
        let object = scene.objects.choose(rng).expect("a scene has an object");
        Claim::Exist(vec![phrase(rng, object, Detail::Full)])
    });
    let place = claim == Claim::Place || rng.random_bool(0.35);
    Meaning { claim, place: place.then_some(scene.background) }
}

/// How much is said of an object.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Full,  // an object told alone
    Brief, // one of several
}

fn phrase(rng: &mut impl RngExt, object: &Object, detail: Detail) -> Phrase {
    let more = if detail == Detail::Full { 1.0 } else { 0.55 };
    let kind = !rng.random_bool(0.05);
    let colour = !kind || rng.random_bool(0.85 * more);
    let size = rng.random_bool(0.4 * more);
    let pattern = rng.random_bool(more * if object.pattern == Pattern::Plain { 0.12 } else { 0.6 });
    Phrase {
        kind: kind.then_some(object.kind),
        colour: colour.then_some(object.colour),
        size: size.then_some(object.size),
        pattern: pattern.then_some(object.pattern),
    }
}

fn several(rng: &mut impl RngExt, scene: &Scene) -> Option<Claim> {
    let count = if scene.objects.len() > 2 && rng.random_bool(0.3) { 3 } else { 2 };
    let told: Vec<_> = scene.objects.sample(rng, count).copied().collect();
    Some(Claim::Exist(told.iter().map(|o| phrase(rng, o, Detail::Brief)).collect()))
}

/// A caption says overlaps and nestings first: they strike the eye.
fn related(rng: &mut impl RngExt, scene: &Scene) -> Option<Claim> {
    let ids = 0..scene.objects.len();
    let pairs = ids.clone().flat_map(|a| ids.clone().map(move |b| (a, b))).filter(|(a, b)| a != b);
    let all = pairs.flat_map(|(a, b)| Relation::ALL.map(|r| (a, r, b)));
    let held: Vec<_> = all.filter(|&(a, r, b)| r.holds(scene, a, b)).collect();
    let weight = |r| match r {
        Relation::Inside | Relation::InFrontOf | Relation::Behind => 4.0,
        Relation::NextTo => 1.5,
        _ => 1.0,
    };
    if held.is_empty() {
        return None;
    }
    let (a, relation, b) = weighted(rng, held.iter().map(|&h| (h, weight(h.1))));
    let (a, b) = (&scene.objects[a], &scene.objects[b]);
    Some(Claim::Related(phrase(rng, a, Detail::Brief), relation, phrase(rng, b, Detail::Brief)))
}

/// Counts what the objects like one of them have in common.
fn counted(rng: &mut impl RngExt, scene: &Scene) -> Option<Claim> {
    let object = scene.objects.choose(rng)?;
    let draws = (0..12).map(|_| {
        let mut keep = |p: f64| rng.random_bool(p);
        Phrase {
            kind: keep(0.7).then_some(object.kind),
            colour: keep(0.5).then_some(object.colour),
            size: keep(0.2).then_some(object.size),
            pattern: keep(0.2).then_some(object.pattern),
        }
    });
    // "Two things" alone would be true of a third of all images.
    let draws = draws.filter(|p| p.kind.is_some() || p.colour.is_some());
    let counts = draws.map(|p| (p, scene.objects.iter().filter(|o| p.fits(o)).count()));
    let fit = counts.filter(|(_, n)| (2..=4).contains(n)).max_by_key(|(p, _)| {
        // The most telling of them.
        p.kind.is_some() as u8 * 2 + p.colour.is_some() as u8
    });
    fit.map(|(p, n)| Claim::Count(n as u8, p))
}
