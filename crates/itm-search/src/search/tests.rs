use hubness::{Direction, HeldOutBank, Nnn, csls, inverted_softmax, pass};
use image::RgbImage;
use itm_core::Pairs;
use itm_core::eval::TiePolicy;
use itm_core::tiles::{Embeddings, Tiles, ranks};

use super::*;
use crate::fakes::{Colours, DIM, Numbers, World};

fn options(top: usize) -> Options {
    Options { top, corrected: false, threshold: None, filter: Filter::default() }
}

fn answer(searcher: &Searcher, query: &str, options: &Options) -> Result<Answer> {
    searcher.search(&Query::parse(query, searcher.index()).unwrap(), options)
}

fn paths(searcher: &Searcher, answer: &Answer) -> Vec<String> {
    answer.hits.iter().map(|hit| searcher.index().pictures()[hit.picture].path.clone()).collect()
}

fn colours() -> (World, Searcher) {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let searcher = world.searcher();
    (world, searcher)
}

#[test]
fn a_sentence_finds_its_picture() {
    let (_world, searcher) = colours();
    for (query, want) in [
        ("a red car", "a/red.jpg"),
        ("blue", "a/blue.jpg"),
        ("white - 2:blue", "b/yellow.jpg"),
        ("b/green.jpg + a/red.jpg - 0.2:blue", "b/yellow.jpg"),
    ] {
        let got = answer(&searcher, query, &options(1)).unwrap();
        assert_eq!(paths(&searcher, &got), [want], "{query}");
    }
}

/// A picture of the query is no answer to it; one from elsewhere finds the picture of the index that it is.
#[test]
fn pictures_find_pictures() {
    let (_world, searcher) = colours();
    let red = searcher.index().pictures().iter().position(|p| p.path == "a/red.jpg").unwrap();
    let got = searcher.search(&Query::like(red), &options(100)).unwrap();
    assert_eq!((got.hits.len(), got.candidates), (5, 6));
    assert!(got.hits.iter().all(|hit| hit.picture != red));
    let image = RgbImage::from_pixel(7, 5, image::Rgb([215, 35, 28])).into();
    let options = Options { corrected: true, ..options(1) };
    let got = searcher.search(&Query::image(image), &options).unwrap();
    assert_eq!(paths(&searcher, &got), ["a/red.jpg"]);
    assert_eq!(got.hits[0].score, got.hits[0].cosine); // the bank has no pictures: nothing is corrected
    assert!(got.found);
}

#[test]
fn thresholds_and_levels() {
    let (_world, searcher) = colours();
    let all = answer(&searcher, "red", &options(100)).unwrap();
    assert_eq!(all.hits.len(), 6);
    assert!(all.hits.is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!(all.level, searcher.index().level(false));
    assert_eq!(all.found, all.hits[0].score >= all.level);
    let least = all.hits[2].score;
    let some =
        answer(&searcher, "red", &Options { threshold: Some(least), ..options(100) }).unwrap();
    assert_eq!(some.hits, all.hits[..3]);
    // A sum of opposites is near to nothing.
    let far = answer(&searcher, "0.9:red - red + 0.2:blue - 0.1:yellow", &options(1)).unwrap();
    assert!(!far.found || far.hits[0].score >= far.level);
    let none = answer(&searcher, "red - red", &options(1)).unwrap_err().to_string();
    assert_eq!(none, "query: expected terms that do not cancel, got a sum of length 0");
    let none = answer(&searcher, "red", &options(0)).unwrap_err().to_string();
    assert_eq!(none, "top: expected at least 1, got 0");
}

#[test]
fn filters() {
    let (_world, searcher) = colours();
    let mut index = searcher.index;
    for (k, picture) in index.pictures.iter_mut().enumerate() {
        picture.taken = (k > 0).then(|| format!("2024-0{k}-15T12:00:00"));
    }
    let searcher = Searcher::new(index, Box::new(Colours::default())).unwrap();
    let count = |folder: Option<&str>, after: Option<&str>, before: Option<&str>| {
        let [folder, after, before] = [folder, after, before].map(|s| s.map(str::to_owned));
        let filter = Filter { folder, after, before };
        answer(&searcher, "red", &Options { filter, ..options(100) }).map(|got| got.candidates)
    };
    assert_eq!(count(None, None, None).unwrap(), 6);
    assert_eq!(count(Some("a"), None, None).unwrap(), 3);
    assert_eq!(count(Some("a/"), None, None).unwrap(), 3);
    assert_eq!(count(Some(""), None, None).unwrap(), 6);
    assert_eq!(count(Some("a/r"), None, None).unwrap(), 0); // a folder, and no beginning of a name
    assert_eq!(count(None, Some("2024"), None).unwrap(), 5);
    assert_eq!(count(None, None, Some("2025")).unwrap(), 5);
    assert_eq!(count(None, Some("2024-02"), Some("2024-04")).unwrap(), 2);
    assert_eq!(count(None, Some("2024-02-15T12:00:01"), None).unwrap(), 3);
    assert_eq!(count(None, Some("2024-02-15T12:00:00"), None).unwrap(), 4);
    assert_eq!(count(None, None, Some("2024")).unwrap(), 0);
    assert_eq!(count(None, Some("2024-02-29"), None).unwrap(), 3);
    for bad in [
        "",
        "24",
        "2024-1",
        "2024/01",
        "yesterday",
        "2024-01-01 10:00",
        "2024-01-01T10:00:00Z",
        "2024-13",
        "2024-00",
        "2024-04-31",
        "2023-02-29T10",
    ] {
        let line = count(None, Some(bad), None).unwrap_err().to_string();
        assert!(line.starts_with("after: expected a date as 2024, 2024-05"), "{line}");
    }
}

#[test]
fn why_compares_words_with_patches() {
    let (world, searcher) = colours();
    let query = Query::parse("red blue + a/red.jpg", searcher.index()).unwrap();
    let picture = searcher.index().pictures().iter().position(|p| p.path == "a/red.jpg").unwrap();
    let why = searcher.why(&query, picture).unwrap().unwrap();
    assert_eq!(why.grid, [2, 2]);
    let words: Vec<_> = why.words.iter().map(|(word, _)| word.as_str()).collect();
    assert_eq!(words, ["red", "blue"]);
    for (word, cosines) in &why.words {
        assert_eq!(cosines.len(), 4);
        assert_eq!(
            cosines.iter().all(|cosine| *cosine > 0.99),
            word == "red",
            "{word} {cosines:?}"
        );
    }
    assert_eq!(searcher.why(&Query::like(0), picture).unwrap(), None);
    std::fs::remove_file(world.images.join("a/red.jpg")).unwrap();
    let line = searcher.why(&query, picture).unwrap_err().to_string();
    assert_eq!(
        line,
        "a/red.jpg: expected a photograph of the index, got none: it was moved or deleted"
    );
}

#[test]
fn another_model_is_refused() {
    let (world, _) = colours();
    let other = Colours { version: 1, ..Colours::default() };
    let line = Searcher::new(world.index(), Box::new(other)).err().unwrap().to_string();
    assert_eq!(
        line,
        "model: expected colours, as the index was made with, got colours, or other weights"
    );
}

/// For every caption of a captioned set, the rank of its picture in a search is the rank of the evaluation, with the correction and
/// without.
#[test]
fn ranks_are_the_ranks_of_the_evaluation() {
    const PICTURES: u8 = 48;
    let mut world = World::new();
    std::fs::remove_dir_all(&world.images).unwrap();
    (0..PICTURES).for_each(|k| world.write(&format!("{k:03}.png"), &Numbers::png(k)));
    world.bank = (0..400).map(|k| format!("ordinary {k}")).collect();
    world.update(&Numbers).unwrap();
    let searcher = Searcher::new(world.index(), Box::new(Numbers)).unwrap();
    let captions: Vec<String> =
        (0..5 * u32::from(PICTURES)).map(|k| format!("caption {k}")).collect();
    let pairs = Pairs::uniform(PICTURES.into(), 5);

    let pictures: Vec<f32> = (0..PICTURES).flat_map(|k| Numbers::picture(k.into())).collect();
    let texts =
        |texts: &[String]| texts.iter().flat_map(|t| Numbers::text(t)).collect::<Vec<f32>>();
    let (bank, texts) = (texts(&world.bank), texts(&captions));
    let images = Embeddings::new("pictures", PICTURES.into(), DIM, &pictures).unwrap();
    let embedded = Embeddings::new("captions", captions.len(), DIM, &texts).unwrap();
    let bank =
        Tiles::new(images, Embeddings::new("bank", world.bank.len(), DIM, &bank).unwrap()).unwrap();
    let scores = Tiles::new(images, embedded).unwrap();

    let of = |direction| match searcher.index().correction() {
        "csls" => csls(&HeldOutBank(&bank), direction, 10).unwrap().into_any(),
        "nnn" => Nnn::default().fit(&HeldOutBank(&bank), direction).unwrap().into_any(),
        "is" => inverted_softmax(&HeldOutBank(&bank), direction, 30.0).unwrap().into_any(),
        other => panic!("a correction, not {other}"),
    };
    let i2t = hubness::Correction::none(&scores, Direction::I2t).into_any();
    let corrected = pass::ranks(&scores, &pairs, &i2t, &of(Direction::T2i)).unwrap();
    let plain = ranks(images, embedded, &pairs).unwrap();
    assert_ne!(plain.t2i(), corrected.t2i());
    for (want, corrected) in [(plain, false), (corrected, true)] {
        for (k, caption) in captions.iter().enumerate() {
            let options = Options { corrected, ..options(PICTURES.into()) };
            let query = Query {
                terms: vec![crate::Term { weight: 1.0, what: What::Words(caption.clone()) }],
            };
            let hits = searcher.search(&query, &options).unwrap().hits;
            let rank = hits.iter().position(|hit| hit.picture == k / 5).unwrap();
            assert_eq!(rank as f64, want.t2i()[k].rank(TiePolicy::Index), "{caption}, {corrected}");
        }
    }
}
