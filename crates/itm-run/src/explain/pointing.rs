//! Where words find what they name: pictures, and on data with a truth a number for FNE's Figures 3 and 7 and for NAAF's Figure 4.
//!
//! ```text
//! patches:  hit(i, t, j) = [the centre of patch argmax_k m_jk lies in a box that word j of caption t has in image i]
//! regions:  hit(i, t, j) = [region argmax_k w_jk has an IoU of at least 0.5 with such a box]
//! share     = Σ hit / words,   chance = Σ (patches or regions that would hit / all of them) / words
//! ```
//!
//! The sums run over words that have a box, in the annotated pairs of the test split and in one false negative per
//! caption. The false negative is the next image after the caption's own image that the caption is true of. Among
//! equal places the first counts as the largest. A word that attends to no region hits nothing.
//!
//! For methods whose words have effects, [`mismatch`] also measures which words do not match an image.
//!
//! # Departures
//! The papers show pictures and print no number.

mod mismatch;
mod tables;

use itm_core::data::{Bounds, Split};
use itm_core::encoders::Places;
use itm_core::learn::{WordMap, WordMaps};
use itm_core::scored::Scored;
use itm_core::significance::Share;
use itm_core::{Error, Result};
use serde::{Deserialize, Serialize};

use self::mismatch::{Mismatch, OneWord};
use super::word_maps::{self, false_negative};
use crate::measures::{BySeed, Measure, Trial};
use crate::report::{PairMaps, Report, Section, largest, word_pictures};
use crate::source::Source;

/// Captions whose maps a report shows.
const SHOWN: usize = 4;
/// Number of pairs per call.
const BLOCK: usize = 500;
/// The smallest IoU with which a region hits a box.
const IOU: f32 = 0.5;

/// Where the words of each row point, in pictures and numbers.
#[derive(Debug, Default)]
pub(crate) struct Pointing {
    counts: BySeed<OfImages>,
    maps: BySeed<Vec<PairMaps>>,
}

impl Measure for Pointing {
    fn look(&self, trial: &Trial) -> Result<()> {
        let Some(trained) = trial.trained else { return Ok(()) };
        let (source, model) = (trial.source, trained.model);
        let maps = |pairs: &[(usize, usize)]| model.word_maps(Split::Test, pairs);
        if let Some(counts) = measure(source, trial.scores, maps)? {
            self.counts.put(trial, counts);
        }
        if trained.first {
            let captions = word_maps::spread(source, Split::Test, SHOWN);
            let pairs = word_maps::pairs(source, Split::Test, &captions, None)?;
            if let Some(maps) = maps(&word_maps::numbers(&pairs))? {
                let asked = (Split::Test, pairs.as_slice());
                let shown = word_maps::shown(
                    (&model.name(), model.inputs.crop()),
                    source,
                    asked,
                    maps,
                    None,
                );
                self.maps.put(trial, shown);
            }
        }
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let words = self.counts.rows(report, |seeds| Some(WordNumbers::new(seeds)));
        let mut shown = vec![];
        for maps in self.maps.rows(report, |seeds| Some(seeds[0].clone())).into_iter().flatten() {
            word_maps::beside(&mut shown, maps);
        }
        let regions = shown.iter().any(|pair| matches!(pair.places, Places::Boxes(_)));
        let mut section =
            Section::new(if regions { "Words and regions" } else { "Words and patches" });
        section.add_rows(report, |row| row.truth.get_or_insert_default(), &words)?;
        section.pictures = word_pictures(&shown);
        section.tables = vec![
            tables::pointing(report, &words),
            tables::grounding(report, &words),
            tables::mismatch(report, &words),
        ];
        Ok(section)
    }
}

/// The numbers of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct WordNumbers {
    /// Whether the patch closest to a word lies on what the word names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pointing: Option<WordShares>,
    /// Whether the region that a word attends to most is what the word names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grounding: Option<WordShares>,
    /// Whether the row separates words that do not match an image from words that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mismatch: Option<Mismatch>,
}

impl WordNumbers {
    fn new(seeds: &[&OfImages]) -> Self {
        let (mismatch, words) = (mismatches(seeds), summary(seeds));
        match mismatch {
            Some(_) => Self { grounding: words, mismatch, pointing: None }, // of regions
            None => Self { pointing: words, ..Self::default() },
        }
    }
}

/// Share of words whose closest patch or most attended region hits one of the word's boxes, over all test images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WordShares {
    /// In annotated pairs.
    pub(crate) annotated: PointedShare,
    /// In one false negative per caption; `null` if there is none.
    pub(crate) false_negatives: Option<PointedShare>,
}

/// Pointing over one kind of pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PointedShare {
    /// Share of the words that have a box, over all seeds.
    pub(crate) share: f64,
    /// The same share for a patch or region that is drawn at random.
    pub(crate) chance: f64,
    /// 95 % interval `[lo, hi]` of `share`: bootstrap over test images and seeds.
    pub(crate) ci95: [f64; 2],
    /// Number of words with a box over all pairs of one seed.
    pub(crate) words: u64,
    /// Share of the words that attend to no region, over all seeds; each counts as off target.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) idle: f64,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Counts over the words of one image.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Points {
    hits: u32,
    words: u32,
    /// Words that attend to no region.
    idle: u32,
    chance: f64,
}

/// The counts of every test image, for a trained row.
#[derive(Debug, Clone, PartialEq)]
struct OfImages {
    annotated: Vec<Points>,
    false_negatives: Vec<Points>,
    /// If words have effects: words with the own image, with the hardest wrong image and with a random wrong image.
    words: Option<[Vec<OneWord>; 3]>,
}

impl Points {
    fn add(&mut self, map: &WordMap, places: &Places, boxes: &[Bounds]) {
        let hits = |place: usize| boxes.iter().any(|b| meets(places, place, b));
        let pointed = match &map.effect {
            None => Some(largest(&map.values)),
            Some(effect) => effect.place(),
        };
        let all = map.values.len();
        self.words += 1;
        self.hits += u32::from(pointed.is_some_and(hits));
        self.idle += u32::from(pointed.is_none());
        self.chance += (0..all).filter(|&k| hits(k)).count() as f64 / all as f64;
    }
}

/// Whether a place (a patch or a region) hits a box.
fn meets(places: &Places, place: usize, b: &Bounds) -> bool {
    match places {
        Places::Patches(grid) => {
            let [x, y] = grid.centre(place);
            (b.x1..=b.x2).contains(&x) && (b.y1..=b.y2).contains(&y)
        }
        Places::Boxes(regions) => regions.get(place).is_some_and(|region| {
            let shared = region.overlap(b);
            shared >= IOU * (region.area() + b.area() - shared)
        }),
    }
}
/// Points with every word of the test split that has a box. `maps` gives the word maps of pairs. `scored` says which
/// wrong image is the hardest. `None` without maps or without a truth.
///
/// # Errors
/// If a picture or a caption cannot be read, or if the scores fail.
fn measure(
    source: &Source,
    scored: &dyn Scored,
    maps: impl Fn(&[(usize, usize)]) -> Result<Option<Vec<WordMaps>>>,
) -> Result<Option<OfImages>> {
    let (part, Some(truth)) = source.part(Split::Test) else { return Ok(None) };
    let (pairs, texts) = (&part.pairs, 0..part.pairs.texts());
    let annotated = texts.clone().map(|t| (pairs.image_of(t), t)).collect();
    let Some(annotated) = look(source, annotated, &maps)? else { return Ok(None) };
    let other = |t: usize| Some((false_negative(truth, pairs.image_of(t), t)?, t));
    let others = texts.filter_map(other).collect();
    let false_negatives = look(source, others, &maps)?.unwrap_or_default().points;
    let mut found = OfImages { annotated: annotated.points, false_negatives, words: None };
    if !annotated.words.is_empty() {
        let of = |pairs| Ok::<_, Error>(look(source, pairs, &maps)?.unwrap_or_default().words);
        let [hardest, random] = [mismatch::hardest(scored, truth)?, mismatch::random(truth)];
        found.words = Some([annotated.words, of(hardest)?, of(random)?]);
    }
    Ok(Some(found))
}

/// What was measured over some pairs.
#[derive(Default)]
struct Seen {
    /// One value per image.
    points: Vec<Points>,
    words: Vec<OneWord>,
}

fn look(
    source: &Source,
    mut pairs: Vec<(usize, usize)>,
    maps: impl Fn(&[(usize, usize)]) -> Result<Option<Vec<WordMaps>>>,
) -> Result<Option<Seen>> {
    pairs.sort_unstable(); // each image is encoded once, or twice at the end of a block
    let images = source.part(Split::Test).0.pairs.images();
    let mut seen = Seen { points: vec![Points::default(); images], ..Seen::default() };
    for block in pairs.chunks(BLOCK) {
        let Some(maps) = maps(block)? else { return Ok(None) };
        for (&pair, maps) in block.iter().zip(maps) {
            let grounded = source.grounded_words(Split::Test, pair, &maps.words);
            for (map, truth) in maps.words.iter().zip(grounded) {
                let Some(truth) = truth else { continue };
                if !truth.boxes.is_empty() {
                    seen.points[pair.0].add(map, &maps.places, &truth.boxes);
                }
                if let (Some(effect), Some(mismatched)) = (&map.effect, truth.mismatched) {
                    let (image, negative, best) = (pair.0 as u32, effect.negative, map.best());
                    seen.words.push(OneWord { image, mismatched, negative, best });
                }
            }
        }
    }
    Ok(Some(seen))
}

/// Shares over all seeds of a row; `None` where no word has a box.
fn summary(runs: &[&OfImages]) -> Option<WordShares> {
    let of = |points: fn(&OfImages) -> &Vec<Points>| {
        pointed(&runs.iter().map(|run| points(run).as_slice()).collect::<Vec<_>>())
    };
    Some(WordShares {
        annotated: of(|run| &run.annotated)?,
        false_negatives: of(|run| &run.false_negatives),
    })
}

/// How well a row separates mismatched from matched words, over all seeds; `None` where words have no effects.
fn mismatches(runs: &[&OfImages]) -> Option<Mismatch> {
    let images = runs.first()?.annotated.len();
    let of_kind = |kind: usize| -> Option<Vec<&[OneWord]>> {
        runs.iter().map(|run| Some(&run.words.as_ref()?[kind][..])).collect()
    };
    let detected = |kind| Some(mismatch::detected(&of_kind(kind)?, images));
    Some(Mismatch { own: detected(0)?, hardest: detected(1)?, random: detected(2)? })
}

/// The share of words that hit, with its chance level and interval.
fn pointed(runs: &[&[Points]]) -> Option<PointedShare> {
    let counts = |points: &Points| [u64::from(points.hits), u64::from(points.words)];
    let counts: Vec<Vec<_>> = runs.iter().map(|run| run.iter().map(counts).collect()).collect();
    let Share { value, ci95, .. } = Share::over(&counts)?;
    let words = runs[0].iter().map(|p| u64::from(p.words)).sum();
    let chance = runs[0].iter().map(|p| p.chance).sum::<f64>() / words as f64;
    let of_all = |of: fn(&Points) -> u32| -> f64 {
        runs.iter().flat_map(|run| run.iter()).map(|p| f64::from(of(p))).sum()
    };
    let idle = of_all(|p| p.idle) / of_all(|p| p.words);
    Some(PointedShare { share: value, chance, ci95, words, idle })
}

#[cfg(test)]
mod tests;
