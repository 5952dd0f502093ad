//! Wrong inputs of a caller: the error is one line with place, expected and got, and the model does not change.

use itm_core::start::InputStatistics;

use super::pictures::{new, pictures, small};
use super::*;

/// The error that refuses a batch. Checks that the model did not change.
fn refused(fne: &mut Fne, batch: &Batch) -> String {
    let before = files(fne);
    let line = fne.step(batch, 1, Observe::Off).unwrap_err().to_string();
    assert!(files(fne) == before, "{line}");
    line
}

#[test]
fn a_batch_that_does_not_fit_is_refused() {
    let mut model = fne(&tiny(Preset::Default));
    step(&mut model, &EVEN, 1).unwrap();
    let whole = Batch {
        images: Images::Features(&[0.5; 2 * DIM]),
        texts: &[&[2], &[3, 11]],
        image_ids: &[1, 2],
        caption_ids: &[1, 2],
        train: None,
    };
    let nothing = Batch { images: Images::Features(&[]), texts: &[], image_ids: &[], ..whole };
    let pixels = Images::Pixels { size: 2, values: &[0.5; 24] };
    for (batch, want) in [
        (Batch { caption_ids: &[], ..nothing }, "pairs of the batch: expected at least 1, got 0"),
        (Batch { texts: &[&[2]], ..whole }, "texts of the batch: expected 2, one per pair, got 1"),
        (
            Batch { caption_ids: &[1, 2, 3], ..whole },
            "caption numbers of the batch: expected 2, one per pair, got 3",
        ),
        (
            Batch { images: Images::Features(&[0.5; 9]), ..whole },
            "features of the batch: expected 10 values, 2 images of width 5, got 9",
        ),
        (
            Batch { images: pixels, ..whole },
            "images: expected features of width 5, got pictures of 2 px",
        ),
        (
            Batch { texts: &[&[2], &[3, 12]], ..whole },
            "caption 1 of the batch: expected numbers of words below 12, the vocabulary, got 12",
        ),
    ] {
        assert_eq!(refused(&mut model, &batch), want);
    }
    let empty = refused(&mut model, &Batch { texts: &[&[2], &[]], ..whole });
    assert!(empty.starts_with("caption 1 of the batch: expected at least one word"), "{empty}");
    assert!(model.step(&whole, 1, Observe::Off).is_ok());
}

#[test]
fn pictures_that_do_not_fit_are_refused() {
    let mut model = new(&small(Preset::Default, 0.0));
    let (texts, ids) = ([&[2, 7, 3][..]; 2], [1, 2]);
    let of =
        |images| Batch { images, texts: &texts, image_ids: &ids, caption_ids: &ids, train: None };
    let large = pictures(&[0, 2], 24);
    let line = "images: expected pictures of 16 px, got 24 px";
    assert_eq!(refused(&mut model, &of(Images::from(&large))), line);
    assert_eq!(model.embed_pictures(large.clone()).unwrap_err().to_string(), line);
    let one = pictures(&[0], 16);
    let line = "pixels of the batch: expected 1536 values, 2 pictures of 3 · 16 · 16, got 768";
    assert_eq!(refused(&mut model, &of(Images::from(&one))), line);
    let line = "images: expected pictures, got features";
    assert_eq!(refused(&mut model, &of(Images::Features(&[0.5; 10]))), line);
}

/// A NaN among the features would give an embedding without valid scores.
#[test]
fn features_to_evaluate_must_be_finite_and_words_known() {
    let model = fne(&tiny(Preset::Default));
    let pairs = Pairs::uniform(2, 1);
    let line = |values: Vec<f32>, texts: &[Vec<u32>]| {
        let features = Features { dim: DIM, values };
        let items = Items { images: ImageItems::Features(&features), texts, pairs: &pairs };
        model.scored(items).err().expect("refused").to_string()
    };
    let mut values = vec![0.5; 2 * DIM];
    let unknown = line(values.clone(), &[vec![2], vec![12]]);
    assert!(unknown.ends_with("numbers of words below 12, the vocabulary, got 12"), "{unknown}");
    values[DIM] = f32::NAN;
    let damaged = line(values, &[vec![2], vec![3]]);
    assert_eq!(damaged, "features, row 1: expected finite numbers, got NaN");
}

#[test]
fn sizes_of_nothing_and_late_inputs_are_refused() {
    let config = tiny(Preset::Default);
    let of = |dim, vocabulary| {
        Fne::new(&config, dim, vocabulary, &Device::flex()).unwrap_err().to_string()
    };
    let width = "image_dim, the width of a row of features: expected 1 to 16777216, got 0";
    assert_eq!(of(0, 12), width);
    assert_eq!(of(DIM, 0), "vocabulary: expected 1 to 16777216, got 0");
    let mut large = config.clone();
    large.sampler.bank_size = usize::MAX;
    let line = Fne::new(&large, DIM, 12, &Device::flex()).unwrap_err().to_string();
    let want = "sampler.bank_size: expected rows that memory can hold, got 18446744073709551615";
    assert_eq!(line, want);
    let mut model = fne(&config);
    step(&mut model, &EVEN, 1).unwrap();
    let inputs = InputStatistics { deviation: 0.8, idf: None, rows: None };
    let line = model.with_inputs(&inputs).unwrap_err().to_string();
    let expected = "inputs or start: expected a model before its first step";
    assert_eq!(line, format!("{expected}, got a model after step 1"));
}

/// A state whose statistics hold a NaN would leave every later step without a candidate. A count is stored as an `i64`.
#[test]
fn damaged_statistics_are_refused() {
    let mut model = fne(&tiny(Preset::Default));
    for (count, mean, want) in [
        (3, f64::NAN, "statistics.positive.mean: expected a finite number, got NaN"),
        (u64::MAX, 0.0, "statistics.positive.count: expected a count of at least 0, got -1"),
    ] {
        let mut seen = Snapshot::default();
        (seen.positive.count, seen.positive.mean) = (count, mean);
        let mut damaged = model.clone();
        damaged.statistics.restore(seen);
        let folder = tempfile::tempdir().unwrap();
        save(&damaged, folder.path());
        let line = model.load(folder.path()).unwrap_err().to_string();
        assert!(line.ends_with(want), "{line}");
        assert_eq!(model.statistics(), Snapshot::default());
    }
}
