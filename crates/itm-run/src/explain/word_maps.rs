//! FNE's Figures 3 and 7, NAAF's Figure 4: pictures with the maps of words laid over them, or with the regions that
//! words attend to. The rows of a table are beside each other.

use itm_core::data::{Bounds, Split};
use itm_core::encoders::Places;
use itm_core::learn::{WordMap, WordMaps};
use itm_core::scored::Scored;
use itm_core::{Relevance, Result};

use super::queries::Queries;
use crate::report::{Pair, PairKind, PairMaps, RowMaps};
use crate::source::{Grounded, Source};

/// Number of words shown per caption if the user names none.
const WORDS: usize = 4;

/// Maximum number of rows beside each other.
pub(super) const ROWS: usize = 4;

/// Words that name nothing to look for in a picture.
const FUNCTION: &[&str] = &[
    "a", "an", "the", "this", "that", "these", "those", "some", "and", "or", "but", "of", "in",
    "on", "at", "to", "by", "from", "with", "for", "as", "is", "are", "was", "were", "be", "being",
    "been", "has", "have", "it", "its", "he", "his", "him", "she", "her", "they", "their", "them",
    "there", "while", "who", "which", "into", "onto", "than", "very",
];

/// The numbers of the image and the caption of each pair.
pub(super) fn numbers(pairs: &[Pair]) -> Vec<(usize, usize)> {
    pairs.iter().map(|pair| (pair.image, pair.text)).collect()
}

/// Each caption with its own image, and with another image. If the truth is known, the other image is a false negative,
/// whatever the scores are. Otherwise it is the most similar other image by `scored`. There may be no other image.
///
/// # Errors
/// If the scores fail.
pub(super) fn pairs(
    source: &Source,
    split: Split,
    captions: &[usize],
    scored: Option<&dyn Scored>,
) -> Result<Vec<Pair>> {
    let (part, truth) = source.part(split);
    let mut shown = Vec::new();
    for &text in captions {
        let own = part.pairs.image_of(text);
        shown.push(Pair { image: own, text, kind: PairKind::Annotated });
        let (other, kind) = match (truth, scored) {
            (Some(truth), _) => (false_negative(truth, own, text), PairKind::FalseNegative),
            (None, Some(scored)) => (most_similar(scored, text, own)?, PairKind::MostSimilar),
            (None, None) => continue,
        };
        shown.extend(other.map(|image| Pair { image, text, kind }));
    }
    Ok(shown)
}

/// At most `count` captions, spread evenly. If the truth is known, each gives way to the next caption that is true of a
/// second image.
pub(super) fn spread(source: &Source, split: Split, count: usize) -> Vec<usize> {
    let (part, truth) = source.part(split);
    let texts = part.pairs.texts();
    let two = |t: &usize| truth.is_none_or(|truth| truth.images_of(*t).len() > 1);
    let next = |t: usize| (0..texts).map(|k| (t + k) % texts).find(two).unwrap_or(t);
    let mut captions: Vec<_> =
        Queries::spread(source, split, count).captions.into_iter().map(next).collect();
    captions.sort_unstable(); // the next caption of the last may be the first
    captions.dedup();
    captions
}

fn most_similar(scored: &dyn Scored, text: usize, own: usize) -> Result<Option<usize>> {
    let column = scored.block(0..scored.images(), text..text + 1)?.transpose();
    Ok(column.ranking(0).into_iter().find(|&image| image != own))
}

/// What a report shows of the maps of the model `name`, which sees this [`crop`](crate::inputs::Inputs::crop): for each pair the wanted words, or words that `chosen`
/// selects. If none are wanted, all words with regions are shown, because their effects add up.
pub(super) fn shown(
    (name, crop): (&str, Option<f32>),
    source: &Source,
    (split, pairs): (Split, &[Pair]),
    maps: Vec<WordMaps>,
    wanted: Option<&[String]>,
) -> Vec<PairMaps> {
    let of_pair = |(pair, maps): (&Pair, WordMaps)| {
        let grounded = source.grounded_words(split, (pair.image, pair.text), &maps.words);
        let chosen = match (&maps.places, wanted) {
            (Places::Boxes(_), None) => (0..maps.words.len()).collect(),
            _ => chosen(&maps.words, &grounded, wanted),
        };
        let boxes = |k: usize| -> Vec<Bounds> {
            grounded[k].as_ref().map(|g| g.boxes.clone()).unwrap_or_default()
        };
        PairMaps {
            picture: source.picture(split, pair.image),
            crop,
            caption: source.part(split).0.captions[pair.text].clone(),
            kind: pair.kind,
            words: chosen.iter().map(|&k| maps.words[k].word.clone()).collect(),
            boxes: chosen.iter().map(|&k| boxes(k)).collect(),
            rows: vec![RowMaps {
                name: name.to_owned(),
                score: maps.score,
                maps: chosen.iter().map(|&k| maps.words[k].clone()).collect(),
            }],
            places: maps.places,
        }
    };
    pairs.iter().zip(maps).map(of_pair).collect()
}

/// Puts the maps of another row beside the maps in `all`, up to [`ROWS`] rows per pair. Skips a pair if the row has
/// other places or other words.
///
/// # Panics
/// If the row has another number of pairs.
pub(super) fn beside(all: &mut Vec<PairMaps>, row: Vec<PairMaps>) {
    if all.is_empty() || row.is_empty() {
        return all.extend(row);
    }
    assert_eq!(all.len(), row.len(), "maps of other pairs");
    for (pair, other) in all.iter_mut().zip(row) {
        let same =
            (&pair.places, pair.crop, &pair.words) == (&other.places, other.crop, &other.words);
        if same && pair.rows.len() < ROWS {
            pair.rows.extend(other.rows);
        }
    }
}

/// The numbers of the words to show, ascending. If some are wanted: the wanted words. Otherwise at most [`WORDS`]
/// words: names of objects first, then other words with a box. If no word is known to have a box: the first words that
/// are not function words.
fn chosen(words: &[WordMap], truth: &[Option<Grounded>], wanted: Option<&[String]>) -> Vec<usize> {
    let all = || 0..words.len();
    if let Some(wanted) = wanted {
        let is_wanted =
            |&k: &usize| wanted.iter().any(|w| w.to_lowercase() == words[k].word.to_lowercase());
        return all().filter(is_wanted).collect();
    }
    let known = |k: &usize| truth.get(*k)?.as_ref().filter(|g| !g.boxes.is_empty());
    let names = all().filter(|k| known(k).is_some_and(|g| g.names));
    let others = all().filter(|k| known(k).is_some_and(|g| !g.names));
    let mut found: Vec<usize> = names.chain(others).collect();
    if found.is_empty() {
        let content = |&k: &usize| !FUNCTION.contains(&words[k].word.to_lowercase().as_str());
        found = all().filter(content).collect();
    }
    found.truncate(WORDS);
    found.sort_unstable();
    found
}

/// The next image after `own` that a caption is true of, else the first such image; `None` if there is no other image.
pub(super) fn false_negative(truth: &Relevance, own: usize, text: usize) -> Option<usize> {
    let images = truth.images_of(text).iter().map(|&i| i as usize);
    let others = || images.clone().filter(|&i| i != own);
    others().find(|&i| i > own).or_else(|| others().next())
}

#[cfg(test)]
mod tests {
    use itm_core::encoders::PatchGrid;
    use itm_core::scored::{EmbeddingRows, Similarity};

    use super::*;
    use crate::explain::queries::kind;
    use crate::tests;

    fn map(word: &str, values: Vec<f32>) -> WordMap {
        WordMap { word: word.into(), values, effect: None }
    }

    fn words(text: &str) -> Vec<WordMap> {
        text.split(' ').map(|word| map(word, vec![0.0, 1.0, 0.0, 0.0])).collect()
    }

    fn grounded(word: &str, names: bool, boxes: usize) -> Option<Grounded> {
        Some(Grounded {
            word: word.into(),
            names,
            mismatched: (boxes > 0).then_some(false),
            boxes: vec![Bounds::around(0.5, 0.5, 0.2, 0.2); boxes],
        })
    }

    /// By hand: caption 0 is true of images 0, 2 and 3, caption 1 only of image 1.
    #[test]
    fn the_next_true_image_is_the_false_negative() {
        let truth = Relevance::new(2, vec![vec![0], vec![1], vec![0], vec![0]]);
        let of = |own, text| false_negative(&truth, own, text);
        assert_eq!([of(0, 0), of(2, 0), of(3, 0), of(1, 1)], [Some(2), Some(3), Some(0), None]);
    }

    #[test]
    fn words_are_those_wanted_or_names_first_or_content() {
        let caption = words("a tiny red ball lies left of a cup");
        let truth: Vec<_> = [0, 1, 1, 1, 0, 2, 0, 0, 1]
            .into_iter()
            .zip(&caption)
            .map(|(n, w)| grounded(&w.word, ["ball", "cup"].contains(&w.word.as_str()), n))
            .collect();
        assert_eq!(chosen(&caption, &truth, None), [1, 2, 3, 8]); // ball, cup; then tiny, red
        assert_eq!(chosen(&caption, &[], None), [1, 2, 3, 4]); // no function words
        let wanted = ["Left".to_owned(), "a".to_owned()];
        assert_eq!(chosen(&caption, &truth, Some(&wanted)), [0, 5, 7]);
        assert_eq!(chosen(&words("of the"), &[], None), [] as [usize; 0]);
    }

    fn source(truth: bool) -> Source {
        let mut source = tests::small_scenes([2, 1, 12]).1;
        source.truth = source.truth.filter(|_| truth);
        source
    }

    /// Captions 20 and 40 alone are true of two images; behind 50 the next one is 20 again.
    #[test]
    fn a_caption_is_spread_once() {
        let mut source = source(true);
        let mut texts: Vec<Vec<u32>> = (0..12).map(|i| (5 * i..5 * i + 5).collect()).collect();
        texts[0].extend([20, 40]);
        source.truth.as_mut().unwrap().test = Relevance::new(60, texts);
        assert_eq!(spread(&source, Split::Test, 3), [20, 40]);
    }

    /// Image 5 is nearest to all captions. Without a truth it is shown beside all captions except its own; they get
    /// image 2.
    fn embedded() -> EmbeddingRows {
        let mut images = vec![0.0; 12];
        (images[5], images[2]) = (1.0, 0.5);
        EmbeddingRows { dim: 1, images, texts: vec![1.0; 60], similarity: Similarity::Cosine }
    }

    #[test]
    fn a_caption_stands_with_its_image_and_with_another() {
        let unknown = pairs(&source(false), Split::Test, &[7, 25], Some(&embedded())).unwrap();
        let pair = |image, text, kind| Pair { image, text, kind };
        let (own, similar) = (PairKind::Annotated, PairKind::MostSimilar);
        assert_eq!(
            unknown,
            [pair(1, 7, own), pair(5, 7, similar), pair(5, 25, own), pair(2, 25, similar)]
        );

        let alone = pairs(&source(false), Split::Test, &[7], None).unwrap();
        assert_eq!(alone, [pair(1, 7, own)], "no model, no truth, no other image");

        let source = source(true);
        let captions = spread(&source, Split::Test, 3);
        let truth = &source.truth.as_ref().unwrap().test;
        let found = pairs(&source, Split::Test, &captions, Some(&embedded())).unwrap();
        assert_eq!(found.len(), 2 * captions.len(), "{captions:?}");
        for two in found.chunks(2) {
            assert_eq!((two[0].kind, two[1].kind), (own, PairKind::FalseNegative));
            assert!(two[0].image != two[1].image && truth.contains(two[1].image, two[0].text));
        }
    }

    #[test]
    fn rows_stand_beside_each_other() {
        let source = source(true);
        let (part, truth) = source.part(Split::Test);
        let named = |t: &usize| {
            let grounded = source.grounded(Split::Test, part.pairs.image_of(*t), *t);
            grounded.iter().any(|g| g.names) && truth.unwrap().images_of(*t).len() > 1
        };
        let captions = [(0..part.pairs.texts()).find(named).unwrap()];
        let pairs = pairs(&source, Split::Test, &captions, Some(&embedded())).unwrap();
        let maps = |value: f32| -> Vec<WordMaps> {
            let of = |pair: &Pair| {
                let words = source.grounded(Split::Test, pair.image, pair.text).into_iter();
                let words = words.map(|g| map(&g.word, vec![value; 4])).collect();
                WordMaps { places: Places::Patches(PatchGrid::new(8, 4)), score: None, words }
            };
            pairs.iter().map(of).collect()
        };
        let row =
            |name, value| shown((name, None), &source, (Split::Test, &pairs), maps(value), None);
        let mut all = vec![];
        beside(&mut all, row("Full", 1.0));
        beside(&mut all, vec![]); // a row without patches
        beside(&mut all, row("w/o FNE", 2.0));
        assert_eq!(all.len(), 2);
        for pair in &all {
            let rows: Vec<_> =
                pair.rows.iter().map(|r| (r.name.as_str(), r.maps[0].values[3])).collect();
            assert_eq!(rows, [("Full", 1.0), ("w/o FNE", 2.0)]);
            assert!(pair.words.len() <= WORDS && pair.boxes.iter().all(|b| !b.is_empty()));
            assert!(!pair.picture.bytes.is_empty());
        }
        let other = source.dataset.test.pairs.image_of(captions[0]);
        assert_eq!(all[0].picture.name, source.dataset.test.images[other]);
    }

    /// Marks and signs that the truth does not know are between the words. Words that occur twice keep their order.
    #[test]
    fn words_of_a_map_find_what_they_meet() {
        let source = source(true);
        let part = source.part(Split::Test).0;
        let twice = |t: &usize| part.captions[*t].to_lowercase().matches("a ").count() > 1;
        let text = (0..part.pairs.texts()).find(twice).unwrap();
        let pair = (part.pairs.image_of(text), text);
        let plain = source.grounded(Split::Test, pair.0, pair.1);
        let names = plain.iter().flat_map(|g| [g.word.as_str(), ","]);
        let read: Vec<_> =
            ["<start>"].into_iter().chain(names).chain(["<end>"]).map(|w| map(w, vec![])).collect();
        let found = source.grounded_words(Split::Test, pair, &read);
        assert_eq!(found.len(), read.len());
        assert!(found.iter().step_by(2).all(Option::is_none), "{found:?}");
        let words: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(words, plain);
    }

    /// All words with effects are shown, because effects add up.
    #[test]
    fn effects_of_all_words_are_shown() {
        let source = source(true);
        let pair = |image| Pair { image, text: 7, kind: kind(&source, Split::Test, (image, 7)) };
        let pairs = [1, 0].map(pair);
        let kinds = [pairs[0].kind, pairs[1].kind];
        assert!(kinds[0] == PairKind::Annotated && kinds[1] != PairKind::Annotated);
        let maps = |pair: &Pair| {
            let words = source.grounded(Split::Test, pair.image, pair.text).into_iter();
            let words = words.map(|g| map(&g.word, vec![0.5])).collect();
            let places = Places::Boxes(vec![Bounds::around(0.5, 0.5, 1.0, 1.0)]);
            WordMaps { places, score: Some(0.25), words }
        };
        let all = pairs.iter().map(maps).collect();
        let made = shown(("Full", None), &source, (Split::Test, &pairs), all, None);
        let count = source.grounded(Split::Test, 1, 7).len();
        assert!(count > WORDS || made[0].words.len() == count);
        assert_eq!((made[0].words.len(), made[0].rows[0].score), (count, Some(0.25)));
    }
}
