//! The probability that the world gives a caption to an image. An oracle that knows the world's probabilities would
//! rank by it.

use rayon::prelude::*;

use super::ScenesSplit;
use super::caption::{
    COUNT_DRAWS, COUNT_SAYS, Detail, PLACE_TOO, Subject, THREE, counts, relations, said, telling,
    telling_of,
};
use super::grammar::{Claim, Meaning, Phrase};
use super::world::{Object, Scene};
use itm_core::{Result, ScoreMatrix};

impl ScenesSplit {
    /// The posterior of Bayes' rule, `[images, texts]`: the probability that a caption was written for an image of this
    /// split.
    ///
    /// ```text
    /// S(i, c) = P(m_c | scene_i) / Σ_k P(m_c | scene_k)
    /// ```
    ///
    /// # Departures
    /// The captions of one image avoid each other's meanings; this formula treats each caption as if it were the only
    /// one.
    ///
    /// # Errors
    /// None on a generated split, because each caption has a positive probability for its own image.
    pub fn posterior(&self) -> Result<ScoreMatrix> {
        let (n, m) = (self.len(), self.captions.len());
        let truth = self.relevance();
        let column = |c: usize| -> Vec<(usize, f64)> {
            let meaning = &self.captions[c].meaning;
            let of = |&i: &u32| (i as usize, likelihood(&self.scenes[i as usize], meaning));
            truth.images_of(c).iter().map(of).collect()
        };
        let columns: Vec<_> = (0..m).into_par_iter().map(column).collect();
        let mut values = vec![0.0; n * m];
        for (c, column) in columns.iter().enumerate() {
            let sum: f64 = column.iter().map(|(_, p)| p).sum();
            column.iter().for_each(|(i, p)| values[i * m + c] = (p / sum) as f32);
        }
        ScoreMatrix::new(n, m, values)
    }
}

/// P(meaning | scene) of one caption.
pub(super) fn likelihood(scene: &Scene, meaning: &Meaning) -> f64 {
    let background = meaning.place.is_none_or(|place| place == scene.background);
    let place = match (&meaning.claim, meaning.place) {
        _ if !background => 0.0,
        (Claim::Place, _) => 1.0,
        (_, Some(_)) => PLACE_TOO,
        (_, None) => 1.0 - PLACE_TOO,
    };
    place * claim(scene, &meaning.claim)
}

/// P(claim | scene), summed over what a caption may tell of. Where the scene has no relation or nothing to count, the
/// caption tells of one object.
fn claim(scene: &Scene, claim: &Claim) -> f64 {
    let told = telling(scene);
    let total: f64 = told.iter().map(|(_, weight)| weight).sum();
    let of = |(told, weight): (Subject, f64)| {
        let p = match told {
            Subject::One => one(scene, claim),
            Subject::Several => several(scene, claim),
            Subject::Place => f64::from(u8::from(*claim == Claim::Place)),
            Subject::Related => related(scene, claim),
            Subject::Counted => counted(scene, claim),
        };
        weight / total * p
    };
    told.into_iter().map(of).sum()
}

/// P(phrase | object).
fn phrase(phrase: &Phrase, object: &Object, detail: Detail) -> f64 {
    if !phrase.fits(object) {
        return 0.0;
    }
    let [thing, colour, size, pattern] = said(object, detail);
    let named = phrase.kind.is_some();
    either(named, 1.0 - thing)
        * either(phrase.colour.is_some(), if named { colour } else { 1.0 })
        * either(phrase.size.is_some(), size)
        * either(phrase.pattern.is_some(), pattern)
}

fn either(happens: bool, p: f64) -> f64 {
    if happens { p } else { 1.0 - p }
}

fn one(scene: &Scene, claim: &Claim) -> f64 {
    let Claim::Exist(phrases) = claim else { return 0.0 };
    let [told] = phrases[..] else { return 0.0 };
    let of = scene.objects.iter().map(|object| phrase(&told, object, Detail::Full));
    of.sum::<f64>() / scene.objects.len() as f64
}

fn several(scene: &Scene, claim: &Claim) -> f64 {
    let Claim::Exist(phrases) = claim else { return 0.0 };
    let three = if scene.objects.len() > 2 { THREE } else { 0.0 };
    match phrases.len() {
        2 => (1.0 - three) * listed(scene, phrases, &[]),
        3 => three * listed(scene, phrases, &[]),
        _ => 0.0,
    }
}

/// P(phrases | as many different objects, drawn in random order); `taken` are the objects of the earlier phrases.
fn listed(scene: &Scene, phrases: &[Phrase], taken: &[usize]) -> f64 {
    let Some(next) = phrases.get(taken.len()) else { return 1.0 };
    let left: Vec<_> = (0..scene.objects.len()).filter(|k| !taken.contains(k)).collect();
    let of = |&k: &usize| match phrase(next, &scene.objects[k], Detail::Brief) {
        0.0 => 0.0,
        p => p * listed(scene, phrases, &[taken, &[k]].concat()),
    };
    left.iter().map(of).sum::<f64>() / left.len() as f64
}

fn related(scene: &Scene, claim: &Claim) -> f64 {
    let held = relations(scene);
    if held.is_empty() {
        return one(scene, claim);
    }
    let Claim::Related(a, relation, b) = claim else { return 0.0 };
    let total: f64 = held.iter().map(|(_, weight)| weight).sum();
    let same = held.into_iter().filter(|((_, r, _), _)| r == relation);
    let of = |((i, _, j), weight): ((usize, _, usize), f64)| {
        weight / total
            * phrase(a, &scene.objects[i], Detail::Brief)
            * phrase(b, &scene.objects[j], Detail::Brief)
    };
    same.map(of).sum()
}

fn counted(scene: &Scene, claim: &Claim) -> f64 {
    let of = |object: &Object| {
        let draws = counted_phrases(object).filter(|(p, _)| counts(scene, p).is_some());
        let draws: Vec<_> = draws.collect();
        let above = |least: u8| -> f64 {
            draws.iter().filter(|(p, _)| telling_of(p) >= least).map(|(_, odds)| odds).sum()
        };
        let none = |p: f64| (1.0 - p).powi(COUNT_DRAWS);
        match claim {
            Claim::Count(n, told) if counts(scene, told) == Some(*n as usize) => {
                let Some((_, odds)) = draws.iter().find(|(p, _)| p == told) else { return 0.0 };
                let level = telling_of(told);
                let (these, better) = (above(level), above(level + 1));
                odds / (these - better) * (none(better) - none(these))
            }
            _ => none(above(0)) * one(scene, claim),
        }
    };
    scene.objects.iter().map(of).sum::<f64>() / scene.objects.len() as f64
}

/// The sixteen phrases of an object, each with the probability that a count draws it.
fn counted_phrases(object: &Object) -> impl Iterator<Item = (Phrase, f64)> {
    (0..16).map(|bits: u8| {
        let says = [0, 1, 2, 3].map(|k| bits >> k & 1 == 1);
        let odds = says.into_iter().zip(COUNT_SAYS).map(|(says, p)| either(says, p)).product();
        (Phrase::of(object, says), odds)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::caption::tell;
    use super::super::{Scenes, Sizes};
    use super::*;

    /// Compares a hundred thousand captions with the formula. The shares agree within five standard errors, and the
    /// formula sums to nearly 1 over all meanings that occurred.
    #[test]
    fn the_formula_is_how_often_it_is_told() {
        let world = Scenes::generate(3, Sizes { train: 0, val: 0, test: 12, pixels: 16 });
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let n = 100_000;
        for scene in &world.test.scenes {
            let mut told: HashMap<Meaning, u32> = HashMap::new();
            (0..n).for_each(|_| *told.entry(tell(&mut rng, scene)).or_default() += 1);
            let mut sum = 0.0;
            for (meaning, count) in &told {
                let p = likelihood(scene, meaning);
                let share = f64::from(*count) / f64::from(n);
                let error = 5.0 * (p * (1.0 - p) / f64::from(n)).sqrt() + 2e-5;
                assert!((p - share).abs() < error, "{meaning:?}: {p} and {share}");
                sum += p;
            }
            assert!((0.95..=1.0 + 1e-9).contains(&sum), "{sum}");
        }
    }

    #[test]
    fn a_posterior_sums_to_one_and_is_of_true_pairs() {
        let split = Scenes::generate(3, Sizes { train: 0, val: 0, test: 40, pixels: 16 }).test;
        let (posterior, truth) = (split.posterior().unwrap(), split.relevance());
        for c in 0..posterior.texts() {
            let column: Vec<f32> = (0..40).map(|i| posterior.row(i)[c]).collect();
            assert!((column.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            (0..40).for_each(|i| assert_eq!(column[i] > 0.0, truth.contains(i, c)));
        }
    }
}
