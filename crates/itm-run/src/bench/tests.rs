//! Data as rows read them, closed forms that weights begin with, ready word vectors.

use itm_core::data::Regions;
use itm_core::start::{BagPooling, StartOptions};
use itm_core::text::Marks;

use super::*;
use crate::testing;

fn bench() -> Bench {
    let (config, source) = testing::small_scenes([120, 4, 4]); // a batch of each row
    Bench::new(config, source, Device::flex()).unwrap()
}

fn reading(bench: &Bench, captions: Captions) -> &Reading {
    bench.readings.iter().find(|reading| reading.captions == captions).unwrap()
}

fn asked(form: TextForm) -> StartAsked {
    let options =
        StartOptions { ridge_image: 1.0, ridge_text: 2.0, power: 0.5, dims: 8, fill: 0.0 };
    StartAsked { options, width: 8, form }
}

/// A row of the vocabulary is the row of its word's stem, or zero without such a stem. A form that does not fit the reading is
/// refused.
#[test]
fn a_start_is_in_the_form_that_captions_are_read_in() {
    let bench = bench();
    let [stems, words] =
        [Captions::Stems, Captions::Words(Marks::Off)].map(|of| reading(&bench, of));
    let mean = TextForm::Stems(BagPooling::Mean);
    let pooled = bench.solve(&asked(mean), Sees::Features, stems).unwrap();
    let start = bench.solve(&asked(TextForm::Words), Sees::Features, words).unwrap();
    assert_eq!((&start.image, &start.text.bias), (&pooled.image, &pooled.text.bias));
    let (rows, terms) = (start.text.weight.chunks(8), stems.terms().unwrap());
    assert_eq!(rows.len(), words.vocabulary);
    let (mut known, mut zeros) = (0, 0);
    for (word, row) in words.words_by_number().unwrap().into_iter().zip(rows) {
        match terms.numbers(word)[..] {
            [stem] => {
                assert_eq!(row, &pooled.text.weight[stem as usize * 8..][..8], "{word}");
                known += 1;
            }
            _ => {
                assert_eq!(row, [0.0; 8], "{word}");
                zeros += 1;
            }
        }
    }
    assert!(known > 20 && zeros >= 2, "{known} words with a stem, {zeros} without");
    for (form, reading) in [(TextForm::Words, stems), (mean, words)] {
        let line = bench.solve(&asked(form), Sees::Features, reading).unwrap_err().to_string();
        assert_eq!(line, "model.start: expected a text encoder of stems or words, got another");
    }
}

/// Words begin with the vectors of a file, and the vectors are data. Without the file, a row that needs it is refused, and other rows
/// run.
#[test]
fn words_begin_with_the_vectors_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors.txt");
    let bench = || {
        let bigru =
            [("start = \"cca\"", "start = \"random\""), ("text = \"words\"", "text = \"bigru\"")];
        let given = [("word_vectors = \"random\"", "word_vectors = \"given\"")];
        let none = [("scratch\".model]\n", "scratch\".model]\nword_vectors = \"random\"\n")];
        let changes = [&bigru[..], &given, &none].concat();
        let (config, mut source) = testing::small_target("naaf-scenes", &changes);
        source.word_vectors = Some(file.clone());
        Bench::new(config, source, Device::flex()).unwrap()
    };
    let all: Vec<usize> = (0..20).collect(); // five captions of four images
    let score = |bench: &Bench, row: &str| {
        let model = bench.model(row, 0, Some(folder.path())).unwrap();
        model.scored(Split::Test).unwrap().pairs(&[0; 20], &all).unwrap()
    };
    let (refused, without) = ("Full", "Full, scratch");
    let bare = bench();
    let line = bare.check_vectors(refused).unwrap_err().to_string();
    let want = "row.Full: expected a file of word vectors, named by target.word_vectors, got none";
    assert!(line.ends_with(want), "{line}");
    assert_eq!(bare.model(refused, 0, None).err().unwrap().to_string(), line);
    bare.check_vectors(without).unwrap();
    let mut scores = vec![];
    for vectors in ["a 1 1 1 1 1 1 1 1\n", "a 2 1 1 1 1 1 1 1\n"] {
        std::fs::write(&file, vectors).unwrap();
        let bench = bench();
        let note = bench.source.notes.last().unwrap();
        assert!(note.starts_with("word vectors of `vectors.txt`: vectors of width 8 for 1 of "));
        assert_ne!(bench.source.dataset.sha256, bare.source.dataset.sha256);
        assert_eq!(score(&bench, without), score(&bare, without));
        scores.push(score(&bench, refused));
    }
    assert_ne!(scores[0], scores[1]);
}

/// Regions 0 and 2·x have the mean x, so their map is the map of features x. Here x are the first 20 features of each image.
#[test]
fn an_image_map_of_regions_is_that_of_their_mean() {
    let mut bench = bench();
    let (all, images) = (bench.features.train.clone(), bench.features.train.rows());
    let cut = |by: f32| (0..images).map(move |i| (i, by));
    let rows = |(i, by): (usize, f32)| all.row(i)[..20].iter().map(move |x| by * x);
    let pairs = cut(0.0).zip(cut(2.0)).flat_map(|(a, b)| [a, b]);
    let regions = Regions::new(20, vec![2; images], pairs.flat_map(rows).collect()).unwrap();
    let means = Features { dim: 20, values: cut(1.0).flat_map(rows).collect() };
    bench.source.dataset.train.regions = Some(regions);
    let asked = asked(TextForm::Stems(BagPooling::TfIdf));
    let solve =
        |bench: &Bench, sees| bench.solve(&asked, sees, reading(bench, Captions::Stems)).unwrap();
    let of_regions = solve(&bench, Sees::Regions);
    assert_ne!(of_regions.image.weight.len(), solve(&bench, Sees::Features).image.weight.len());
    bench.features.train = means;
    assert_eq!(of_regions, solve(&bench, Sees::Features));
}
