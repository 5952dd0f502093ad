//! Tests the whole baseline against its NumPy twin, and the traps of closed-form CCA.

use faer::Mat;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::data::Embeddings;
use crate::eval::{Protocol, TiePolicy};
use crate::scored::Scored;

/// Three small problems, `dx < dy`, `dx > dy` and one with given rows on both sides, which `tests/reference/cca.py` solved with
/// Cholesky factors and SVD.
#[test]
fn golden_problems() {
    let golden: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../tests/golden/cca.json")).unwrap();
    for (case, golden) in golden.iter().enumerate() {
        let data = Dataset {
            name: "golden".into(),
            train: part(&golden["train"]),
            val: part(&golden["val"]),
            test: part(&golden["test"]),
            sha256: String::new(),
        };
        let (grid, want) = (&golden["grid"], &golden["want"]);
        let options = CcaOptions {
            ridge_image: numbers(&grid["ridge_image"]),
            ridge_text: numbers(&grid["ridge_text"]),
            power: numbers(&grid["power"]),
            dims: numbers(&grid["dims"]).iter().map(|&d| d as usize).collect(),
            ..CcaOptions::default()
        };
        let cca = Cca::fit(&data, &options).unwrap();
        assert_eq!(cca.terms.len() as u64, want["terms"].as_u64().unwrap());
        let BestPoint { ridge_image, ridge_text, power, dims } = cca.chosen;
        let chosen = [ridge_image, ridge_text, power, dims as f64];
        assert_eq!(chosen[..], numbers(&want["chosen"])[..], "case {case}");
        close(
            "rSum",
            &[cca.validation_rsum],
            &numbers(&serde_json::json!([want["validation_rsum"]])),
        );
        close("correlations", &cca.correlations, &numbers(&want["correlations"]));
        let val = cca.scores(&data.val).unwrap();
        let val = <dyn Scored>::evaluate(&val, Protocol::Full, &data.val.pairs, TiePolicy::Index)
            .unwrap();
        close("rSum of the evaluator", &[cca.validation_rsum], &[val.rsum]);
        let scores = cca.scores(&data.test).unwrap();
        let scores: Vec<_> = scores.values().iter().copied().map(f64::from).collect();
        close("scores", &scores, &numbers(&want["scores"]));
    }
}

/// Given rows alone are as features that were transformed before, and a side without any inputs is refused.
#[test]
fn given_rows_need_no_features() {
    let mut data = dataset(1, 40, 6, 2);
    let options = single(1.0, 1.0);
    let transform = ImageTransform::suited_to(&data.train.features);
    let want = Cca::fit(&data, &options).unwrap().scores(&data.test).unwrap();
    for part in [&mut data.train, &mut data.val, &mut data.test] {
        let Features { dim, values } = std::mem::take(&mut part.features);
        let mut rows = vec![0.0; values.len()];
        for (row, out) in values.chunks(dim).zip(rows.chunks_mut(dim)) {
            let mut transformed = vec![0.0; dim];
            transform.apply(row, &mut transformed);
            out.iter_mut().zip(transformed).for_each(|(out, x)| *out = x as f32);
        }
        part.embeddings.images = Features { dim, values: rows };
    }
    let got = Cca::fit(&data, &options).unwrap().scores(&data.test).unwrap();
    let pairs = got.values().iter().zip(want.values());
    assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-4) && got.values().len() > 10);

    for part in [&mut data.train, &mut data.val, &mut data.test] {
        part.embeddings.images = Features::default();
    }
    let line = Cca::fit(&data, &options).unwrap_err().to_string();
    assert!(line.ends_with("expected features or given rows of images, got none"), "{line}");
}

/// A trap: if the mean of the embedded batch were subtracted, an embedding would depend on its neighbours.
#[test]
fn an_embedding_does_not_depend_on_its_batch() {
    let data = dataset(1, 40, 6, 2);
    let cca = Cca::fit(&data, &single(1.0, 1.0)).unwrap();
    let (all, d) = (cca.image_embeddings(&data.test), cca.dims());
    let mut one = data.test.clone();
    one.keep(&[3]).unwrap();
    assert_eq!(cca.image_embeddings(&one), all[3 * d..4 * d]);
    let all = cca.text_embeddings(&data.test);
    assert_eq!(cca.text_embeddings(&one), all[6 * d..8 * d]);
}

/// A trap: with fewer images than features and no ridge, CCA fits anything and does not generalise.
#[test]
fn without_ridge_it_overfits() {
    let data = dataset(2, 30, 60, 1);
    let free = Cca::fit(&data, &single(0.0, 0.0)).unwrap();
    let worst = free.correlations.iter().copied().fold(1.0, f64::min);
    assert!(worst > 1.0 - 1e-6, "correlations {:?}", free.correlations);
    assert!(free.correlations[0] < 1.0 + 1e-6, "{:?}: rounding whitened", free.correlations);
    let ridged = Cca::fit(&data, &single(1.0, 1.0)).unwrap();
    assert!(ridged.correlations[0] < 0.9);
    let (free, ridged) = (free.validation_rsum, ridged.validation_rsum);
    assert!(free < 0.8 * ridged, "rSum {free} without ridge, {ridged} with");
}

/// A trap: ridges in units of the features would change with their scale.
#[test]
fn ridges_are_relative() {
    let noise = |seed, rows, columns| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Mat::from_fn(rows, columns, |_, _| rng.random_range(-1.0..1.0))
    };
    let (x, y): (Mat<f64>, Mat<f64>) = (noise(1, 20, 4), noise(2, 20, 3));
    let solve = |scale: f64| {
        let moments = PairMoments {
            mean_x: vec![0.0; 4],
            mean_y: vec![0.0; 3],
            xx: (x.transpose() * &x) * faer::Scale(scale * scale),
            yy: y.transpose() * &y,
            xy: (x.transpose() * &y) * faer::Scale(scale),
        };
        Problem::new(&moments).unwrap().solve([1.0, 0.5], 3).unwrap()
    };
    close("correlations", &solve(30.0).0, &solve(1.0).0);
}

/// By hand: the second feature varies only by rounding, so it gets no weight. The first has correlation 0.5.
#[test]
fn what_does_not_vary_has_no_weight() {
    let moments = PairMoments {
        mean_x: vec![0.0; 2],
        mean_y: vec![0.0; 1],
        xx: Mat::from_fn(2, 2, |i, j| [[1.0, 0.0], [0.0, 1e-14]][i][j]),
        yy: Mat::from_fn(1, 1, |_, _| 1.0),
        xy: Mat::from_fn(2, 1, |i, _| [0.5, 1e-9][i]),
    };
    let (s, [images, _]) = Problem::new(&moments).unwrap().solve([0.0; 2], 1).unwrap();
    close("correlations", &s, &[0.5]);
    close("weights", &[images[(0, 0)].abs(), images[(1, 0)]], &[1.0, 0.0]);
}

/// A trap: a correlation of 1e-8 is a rounding error, and a division by it turns noise into unit length.
#[test]
fn dimensions_stop_at_the_rank() {
    let mut data = dataset(3, 40, 6, 2);
    for part in [&mut data.train, &mut data.val, &mut data.test] {
        for row in part.features.values.chunks_mut(6) {
            (0..4).for_each(|k| row[k + 2] = row[k % 2]); // 2 of 6 features remain
        }
    }
    let cca = Cca::fit(&data, &CcaOptions { dims: vec![384], ..single(1.0, 1.0) }).unwrap();
    assert!((1..=2).contains(&cca.dims()), "{} dimensions", cca.dims());
    assert!(cca.image_embeddings(&data.test).iter().all(|x| x.is_finite()));
}

/// With one image and one caption, every point of the grid has rSum 600.
#[test]
fn the_first_of_equal_points_is_chosen() {
    let mut data = dataset(10, 30, 6, 2);
    data.val.features.values.truncate(6);
    data.val.captions.truncate(1);
    data.val.pairs = Pairs::uniform(1, 1);
    let options = CcaOptions {
        ridge_image: vec![1.0, 0.1],
        ridge_text: vec![0.5, 2.0],
        power: vec![1.0, 0.5],
        dims: vec![3, 2, 5],
        ..CcaOptions::default()
    };
    let first = BestPoint { ridge_image: 1.0, ridge_text: 0.5, power: 1.0, dims: 2 };
    assert_eq!(Cca::fit(&data, &options).unwrap().chosen, first);
}

#[test]
fn rows_have_unit_length_even_of_an_unknown_text() {
    let data = dataset(4, 40, 6, 2);
    let cca = Cca::fit(&data, &single(1.0, 1.0)).unwrap();
    let texts = ["nothing known here", ""].map(String::from);
    let part = SplitData { captions: texts.into(), ..data.test };
    for row in cca.text_embeddings(&part).chunks(cca.dims()) {
        let norm: f32 = row.iter().map(|x| x * x).sum();
        assert!((norm - 1.0).abs() < 1e-5, "{row:?}");
    }
}

#[test]
fn an_image_without_caption_teaches_nothing() {
    let data = dataset(5, 20, 6, 2);
    let mut more = data.clone();
    more.train.features.values.extend([9.0; 6]);
    more.train.pairs = Pairs::new(21, data.train.pairs.image_of_text().to_vec()).unwrap();
    let [a, b] = [data, more].map(|data| Cca::fit(&data, &single(1.0, 1.0)).unwrap());
    assert_eq!(a.correlations, b.correlations);
}

#[test]
fn the_test_split_is_not_read() {
    let data = dataset(6, 30, 6, 2);
    let mut other = data.clone();
    other.test = dataset(7, 5, 6, 1).test;
    let scores =
        |of: &Dataset| Cca::fit(of, &single(1.0, 1.0)).unwrap().scores(&data.test).unwrap();
    assert_eq!(scores(&data), scores(&other));
}

#[test]
fn one_thread_and_three_agree() {
    let data = dataset(8, 160, 130, 1);
    let scores = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = CcaOptions { dims: vec![9], ..single(0.5, 0.5) };
        pool.install(|| Cca::fit(&data, &options).unwrap().scores(&data.test).unwrap())
    };
    assert_eq!(scores(1), scores(3));
}

#[test]
fn the_transform_follows_the_training_features() {
    let features = |values: &[f32]| Features { dim: 2, values: values.to_vec() };
    assert_eq!(ImageTransform::suited_to(&features(&[0.0, 4.0])), ImageTransform::Root);
    assert_eq!(ImageTransform::suited_to(&features(&[-1e-3, 4.0])), ImageTransform::SignedRoot);
    for (transform, want) in
        [(ImageTransform::Root, [0.0, 1.0]), (ImageTransform::SignedRoot, [-3.0 / 5.0, 4.0 / 5.0])]
    {
        let mut row = [0.0; 2];
        transform.apply(&[-9.0, 16.0], &mut row);
        close("row", &row, &want);
    }
}

#[test]
fn what_is_refused_is_named() {
    let refused = |change: fn(&mut Dataset, &mut CcaOptions)| {
        let (mut data, mut options) = (dataset(9, 20, 6, 2), single(1.0, 1.0));
        change(&mut data, &mut options);
        Cca::fit(&data, &options).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|data, _| data.val.features.values[9] = f32::NAN),
        "tiny, val, image 1, feature 3: expected a finite number, got NaN"
    );
    assert_eq!(
        refused(|data, _| data.val.features.dim = 3),
        "tiny, val, width of the features: expected 6, got 3"
    );
    assert_eq!(
        refused(|data, _| data.val.features.values.push(0.5)),
        "tiny, val, values of features: expected 240, got 241"
    );
    assert_eq!(
        refused(|data, _| data.train.captions.truncate(7)),
        "tiny, train, captions: expected 40, got 7"
    );
    assert_eq!(
        refused(|_, options| options.min_captions = 1000),
        "tiny, train: expected a term of at least 1000 captions, got none"
    );
    assert_eq!(
        refused(|data, _| data.train.features.values.fill(1.0)),
        "tiny, train: expected images that vary together with their captions, got no correlation"
    );
    assert_eq!(
        refused(|_, options| options.ridge_text = vec![1.0, -1.0]),
        "CCA options, ridge_text: expected numbers from 0, got [1.0, -1.0]"
    );
    assert_eq!(
        refused(|data, _| {
            let (images, texts) = (data.val.pairs.images(), data.val.pairs.texts());
            data.val.pairs = Pairs::judged(images, vec![vec![]; texts]).unwrap();
        }),
        "tiny, val: expected at least one true pair, got none"
    );
    assert_eq!(
        refused(|_, options| options.dims.clear()),
        "CCA options, dims: expected numbers from 1, got []"
    );
}

/// Only the sum of both widths was compared: transforms met the wrong columns.
#[test]
#[should_panic(expected = "features of width 0 beside given rows, not 6")]
fn features_that_come_as_given_rows_are_refused() {
    let mut data = dataset(9, 20, 6, 2);
    let cca = Cca::fit(&data, &single(1.0, 1.0)).unwrap();
    data.test.embeddings.images = std::mem::take(&mut data.test.features);
    _ = cca.scores(&data.test);
}

#[test]
fn scores_of_too_few_rows_are_an_error() {
    let mut data = dataset(9, 20, 6, 2);
    let cca = Cca::fit(&data, &single(1.0, 1.0)).unwrap();
    data.test.captions.pop();
    let line = cca.scores(&data.test).unwrap_err().to_string();
    assert!(line.starts_with("a split, captions: expected "), "{line}");
}

/// A grid of one point, with power 1.
fn single(ridge_image: f64, ridge_text: f64) -> CcaOptions {
    let (ridge_image, ridge_text) = (vec![ridge_image], vec![ridge_text]);
    CcaOptions { ridge_image, ridge_text, power: vec![1.0], dims: vec![4], ..CcaOptions::default() }
}

/// Each image is one of eight topics plus noise; each caption has one word of its topic and two others.
pub(super) fn dataset(seed: u64, train: usize, dim: usize, captions: usize) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let topics: Vec<Vec<f32>> =
        (0..8).map(|_| (0..dim).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
    let mut part = |images: usize| {
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        for _ in 0..images {
            let topic = rng.random_range(0..8);
            values.extend(topics[topic].iter().map(|x| x + rng.random_range(-0.5..0.5)));
            for _ in 0..captions {
                let (a, b) = (rng.random_range(0..9), rng.random_range(0..9));
                texts.push(format!("topic{topic} word{a} word{b}"));
            }
        }
        SplitData {
            features: Features { dim, values },
            images: (0..images).map(|i| format!("{i}.jpg")).collect(),
            captions: texts,
            pairs: Pairs::uniform(images, captions),
            ..SplitData::default()
        }
    };
    let (train, val, test) = (part(train), part(40), part(10));
    Dataset { name: "tiny".into(), train, val, test, sha256: String::new() }
}

pub(super) fn part(golden: &serde_json::Value) -> SplitData {
    let rows: Vec<Vec<f32>> = serde_json::from_value(golden["features"].clone()).unwrap();
    let image_of_text = serde_json::from_value(golden["image_of_text"].clone()).unwrap();
    let given = |name: &str| {
        let rows: Vec<Vec<f32>> = serde_json::from_value(golden[name].clone()).unwrap_or_default();
        Features { dim: rows.first().map_or(0, Vec::len), values: rows.concat() }
    };
    SplitData {
        features: Features { dim: rows[0].len(), values: rows.concat() },
        embeddings: Embeddings { images: given("image_rows"), texts: given("text_rows") },
        images: (0..rows.len()).map(|i| format!("{i}.jpg")).collect(),
        captions: serde_json::from_value(golden["captions"].clone()).unwrap(),
        pairs: Pairs::new(rows.len(), image_of_text).unwrap(),
        ..SplitData::default()
    }
}

pub(super) fn numbers(value: &serde_json::Value) -> Vec<f64> {
    serde_json::from_value(value.clone()).unwrap()
}

fn close(what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}");
    let near = got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6 * b.abs().max(1.0));
    assert!(near, "{what}: got {got:?}, want {want:?}");
}
