//! Tests the start against its NumPy twin and the baseline, and the errors.

use serde_json::Value;

use super::*;
use crate::ScoreMatrix;
use crate::cca::rows::text_row;
use crate::cca::tests::{dataset, numbers, part};
use crate::cca::{Cca, CcaOptions};
use crate::data::{CentredRoots, Dataset, SplitData};
use crate::eval::{Ranks, TiePolicy};

const OPTIONS: StartOptions =
    StartOptions { ridge_image: 2.0, ridge_text: 1.0, power: 0.75, dims: 4, fill: 0.3 };

/// Two small problems, `dx < dy` and `dx > dy`, which `tests/reference/start.py` solved with Cholesky factors and SVD.
#[test]
fn golden_two_problems() {
    let golden: Vec<Value> =
        serde_json::from_str(include_str!("../../../tests/golden/start.json")).unwrap();
    for (case, golden) in golden.iter().enumerate() {
        let options: StartOptions = serde_json::from_value(golden["options"].clone()).unwrap();
        let train = part(&golden["train"]);
        let terms = Terms::fit(&train.captions, 2, 6000);
        let start = solve(&train, &terms, options.dims, &options).unwrap();
        let want = |name: &str| numbers(&golden["want"][name]);
        let signs = signs(&start.image.weight, &want("image_weight"), options.dims);
        let near = |what: &str, got: &[f32]| {
            let want = want(what);
            assert_eq!(got.len(), want.len(), "case {case}, {what}");
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let got = f64::from(*got) * signs[i % options.dims];
                assert!(
                    (got - want).abs() < 2e-6 * want.abs().max(1.0),
                    "case {case}, {what} {i}: {got}, {want}"
                );
            }
        };
        near("image_weight", &start.image.weight);
        near("image_bias", &start.image.bias);
        near("text_weight", &start.text.weight);
        near("text_bias", &start.text.bias);
        for (idf, want) in terms.idf().iter().zip(want("idf")) {
            assert!((idf - want).abs() < 1e-6);
        }
        let pooled = start.clone().mean_pooled(&train.captions, &terms);
        near("pooled", &pooled.text.weight);
        assert_eq!((&pooled.text.bias, &pooled.image), (&start.text.bias, &start.image));
    }
}

/// The rows of a vocabulary match `tests/reference/start_words.py`.
#[test]
fn golden_words() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../tests/golden/start_words.json")).unwrap();
    let options: StartOptions = serde_json::from_value(golden["options"].clone()).unwrap();
    let words: Vec<String> = serde_json::from_value(golden["words"].clone()).unwrap();
    let train = part(&golden["train"]);
    let terms = Terms::fit(&train.captions, 2, 6000);
    let stems = solve(&train, &terms, options.dims, &options).unwrap();
    let start = stems.clone().of_words(&train.captions, &terms, &words);
    let want = |name: &str| numbers(&golden["want"][name]);
    let signs = signs(&start.image.weight, &want("image_weight"), options.dims);
    for (name, got) in [("text_weight", &start.text.weight), ("text_bias", &start.text.bias)] {
        let want = want(name);
        assert_eq!(got.len(), want.len(), "{name}");
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let got = f64::from(*got) * signs[i % options.dims];
            assert!((got - want).abs() < 2e-6 * want.abs().max(1.0), "{name} {i}: {got}, {want}");
        }
    }
    assert_eq!((&start.image, &start.text.bias), (&stems.image, &stems.text.bias));
    let row = |word: &str| {
        let at = words.iter().position(|w| w == word).unwrap();
        &start.text.weight[at * options.dims..][..options.dims]
    };
    assert_eq!(row("jump"), row("jumped"), "one stem, and training has only one of the words");
    for none in ["", "unheard", "zebra"] {
        assert_eq!(row(none), [0.0; 3], "{none}");
    }
}

/// The purpose of the words form: if a caption has each word once and each stem is known, the mean over its words
/// equals the mean-pooled text of its stems.
#[test]
fn the_mean_word_is_the_mean_stem() {
    let train = dataset(17, 80, 6, 2).train;
    let terms = Terms::fit(&train.captions, 2, 6000);
    let start = solve(&train, &terms, 4, &OPTIONS).unwrap();
    let pooled = start.clone().mean_pooled(&train.captions, &terms);
    let caption = "topic1 word2 word5";
    let words: Vec<&str> = caption.split(' ').collect();
    let start = start.of_words(&train.captions, &terms, &words);
    let mean = |inputs: &[u32]| inputs.iter().map(|&t| (t as usize, 1.0 / 3.0)).collect();
    let [of_words, of_stems] = [
        apply(&start.text, &mean(&[0, 1, 2])),
        apply(&pooled.text, &mean(&terms.numbers(caption))),
    ];
    for (a, b) in of_words.iter().zip(&of_stems) {
        assert!((a - b).abs() < 1e-6, "{of_words:?}, {of_stems:?}");
    }
}

/// The purpose of the start: before the first step, the model is the baseline.
#[test]
fn scores_and_ranks_are_those_of_cca() {
    let data = positive(dataset(11, 120, 6, 3));
    let grid = CcaOptions {
        ridge_image: vec![OPTIONS.ridge_image],
        ridge_text: vec![OPTIONS.ridge_text],
        power: vec![OPTIONS.power],
        dims: vec![OPTIONS.dims],
        ..CcaOptions::default()
    };
    let want = Cca::fit(&data, &grid).unwrap().scores(&data.val).unwrap();

    let terms = Terms::fit(&data.train.captions, 2, 6000);
    let roots = CentredRoots::of_free_length(&data.train.features);
    let seen =
        |part: &SplitData| SplitData { features: roots.apply(&part.features), ..part.clone() };
    let start = solve(&seen(&data.train), &terms, 4, &OPTIONS).unwrap();
    let got = scores(&start, &seen(&data.val), &terms);
    for (got, want) in got.values().iter().zip(want.values()) {
        assert!((got - want).abs() < 1e-5, "{got}, {want}");
    }
    let ranks = |scores| Ranks::new(scores, &data.val.pairs).unwrap();
    let (got, want) = (ranks(&got), ranks(&want));
    let order = |ranks: &Ranks| -> Vec<f64> {
        ranks.i2t().iter().chain(ranks.t2i()).map(|s| s.rank(TiePolicy::Index)).collect()
    };
    assert_eq!(order(&got), order(&want));
}

/// There are more images and captions than the scales use. The later ones have other lengths, so the test detects their
/// use.
#[test]
fn scales_come_from_the_first_images_and_captions() {
    let mut train = dataset(12, 2100, 3, 3).train;
    train.features.values[3 * 2000..].iter_mut().for_each(|x| *x *= 3.0);
    train.captions[5000..].iter_mut().for_each(|text| *text = text[..6].to_owned());
    let terms = Terms::fit(&train.captions, 2, 6000);
    let start = solve(&train, &terms, 3, &StartOptions { dims: 3, ..OPTIONS }).unwrap();

    let images = lengths(&start.image, (0..2100).map(|i| image_row(train.features.row(i))));
    let texts = lengths(&start.text, train.captions.iter().map(|text| text_row(&terms, text, &[])));
    for (what, lengths, first) in [("images", images, 2000), ("captions", texts, 5000)] {
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        assert!((mean(&lengths[..first]) - 1.0).abs() < 1e-5, "{what}");
        assert!((mean(&lengths) - 1.0).abs() > 1e-2, "{what} behind the first {first} count");
    }

    // Captions after the first 3,000 have one term; if they counted, `c` would change.
    let mut captions = train.captions.clone();
    captions[3000..].iter_mut().for_each(|text| *text = "topic1".into());
    let all = start.clone().mean_pooled(&captions, &terms);
    assert_eq!(all, start.clone().mean_pooled(&captions[..3000], &terms));
    assert_ne!(all, start.clone().mean_pooled(&captions[..2000], &terms));
}

#[test]
fn columns_behind_those_of_cca_are_drawn() {
    let train = dataset(13, 300, 30, 2).train;
    let terms = Terms::fit(&train.captions, 2, 6000);
    let draw = |fill, seed| {
        Start::solve(&inputs(&train, &terms), 400, seed, &StartOptions { fill, ..OPTIONS }).unwrap()
    };
    let narrow = solve(&train, &terms, 4, &OPTIONS).unwrap();
    let [a, again, other, wide] = [(0.3, 1), (0.3, 1), (0.3, 2), (0.6, 1)].map(|(f, s)| draw(f, s));
    assert_eq!(a, again);
    assert_ne!(a, other);
    for (map, wide, narrow) in
        [(&a.image, &wide.image, &narrow.image), (&a.text, &wide.text, &narrow.text)]
    {
        let spread = |map: &LinearMap, drawn: bool| {
            let rows = map.weight.chunks(map.bias.len());
            let cut = |row: &[f32]| if drawn { row[4..].to_vec() } else { row[..4].to_vec() };
            let of: Vec<f64> = rows.flat_map(cut).map(f64::from).collect();
            deviation(of.into_iter())
        };
        let (own, drawn) = (spread(narrow, false), spread(map, true));
        assert_eq!(spread(map, false), own, "the columns of CCA stay");
        assert!((drawn / own / 0.3 - 1.0).abs() < 0.05, "{drawn} of {own}");
        assert!((spread(wide, true) / drawn / 2.0 - 1.0).abs() < 1e-6);
        assert_eq!(map.bias[..4], narrow.bias[..]);
        assert_eq!(map.bias[4..], [0.0; 396]);
    }
    assert_ne!(a.image.weight[4..9], a.text.weight[4..9], "one stream for both maps");
}

#[test]
fn one_thread_and_three_agree() {
    let train = dataset(14, 400, 150, 2).train;
    let terms = Terms::fit(&train.captions, 1, 6000);
    let start = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| solve(&train, &terms, 4, &OPTIONS).unwrap())
    };
    assert_eq!(start(1), start(3));
}

#[test]
fn a_stored_start_comes_back() {
    let train = dataset(15, 60, 6, 2).train;
    let terms = Terms::fit(&train.captions, 2, 6000);
    let start = solve(&train, &terms, 6, &OPTIONS).unwrap();
    let bytes = start.to_bytes("aaaa");
    let read = |bytes: &[u8], sha256| {
        Start::from_bytes("start.safetensors", bytes, sha256).map_err(|e| e.to_string())
    };
    assert_eq!(read(&bytes, "aaaa").unwrap(), start);
    assert_eq!(
        read(&bytes, "bbbb").unwrap_err(),
        "start.safetensors: expected the start of this data and configuration, got another"
    );
    for cut in [0, 4, 40, bytes.len() - 1] {
        let error = read(&bytes[..cut], "aaaa").unwrap_err();
        assert!(error.starts_with("start.safetensors: expected a whole start, got "), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let changed = |change: fn(&mut Start)| {
        let mut start = start.clone();
        change(&mut start);
        read(&start.to_bytes("aaaa"), "aaaa").unwrap_err()
    };
    assert_eq!(
        changed(|start| start.image = LinearMap { weight: vec![1.0; 4], bias: vec![0.0; 2] }),
        "start.safetensors: expected maps of one width, 6, got 2"
    );
    assert_eq!(
        changed(|start| start.image.weight.clear()),
        "start.safetensors: image.weight: expected F32 [inputs, width], got F32 [0, 6]"
    );
}

#[test]
fn what_is_refused_is_named() {
    let refused = |change: fn(&mut SplitData, &mut StartOptions, &mut usize, &mut usize)| {
        let (mut train, mut options) = (dataset(16, 40, 6, 2).train, OPTIONS);
        let (mut width, mut min_captions) = (8, 2);
        change(&mut train, &mut options, &mut width, &mut min_captions);
        let terms = Terms::fit(&train.captions, min_captions, 6000);
        solve(&train, &terms, width, &options).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|_, options, _, _| options.fill = 0.0),
        "model.cca.fill: expected a number above 0, for columns 4 to 7, got 0"
    );
    let line = refused(|_, options, _, _| options.fill = 1e300);
    let want = "model.cca: expected fill and power of finite weights, got StartOptions {";
    assert!(line.starts_with(want), "{line}");
    assert_eq!(
        refused(|train, _, _, _| train.features.values.push(0.5)),
        "model.cca, train, values of features: expected 240, got 241"
    );
    assert_eq!(
        refused(|_, _, width, _| *width = 3),
        "model.cca.dims: expected at most 3, the width of the model, got 4"
    );
    assert_eq!(
        refused(|_, _, _, min_captions| *min_captions = 1000),
        "model.cca: expected a term of the training captions that is frequent enough, got none"
    );
    assert_eq!(
        refused(|train, _, _, _| train.features.values.fill(1.0)),
        "model.cca, train: expected images that vary together with their captions, got no correlation"
    );
    assert_eq!(
        refused(|train, _, _, _| train.features = Features { dim: 0, values: vec![] }),
        "model.cca: expected images with features, got none"
    );
    assert_eq!(
        refused(|train, _, _, _| train.features.values[9] = f32::INFINITY),
        "model.cca, train, image 1, feature 3: expected a finite number, got inf"
    );
    assert_eq!(
        refused(|_, options, _, _| options.power = f64::NAN),
        "model.cca.power: expected a number from 0, got NaN"
    );
    assert_eq!(
        refused(|_, options, _, _| options.dims = 0),
        "model.cca.dims: expected a number from 1, got 0"
    );
    let unknown = r#"{"ridge_image":1,"ridge_text":1,"power":1,"dims":4,"fill":0.3,"ridge":1}"#;
    let error = serde_json::from_str::<StartOptions>(unknown).unwrap_err().to_string();
    assert!(error.contains("unknown field `ridge`"), "{error}");
}

/// Six features give six correlations: what is wanted beyond is filled, or zero without a fill, which leaves the scores alone.
#[test]
fn dimensions_beyond_the_rank_are_left_out() {
    let train = dataset(16, 40, 6, 2).train;
    let terms = Terms::fit(&train.captions, 2, 6000);
    let start = |dims: usize, fill: f64| {
        solve(&train, &terms, 8, &StartOptions { dims, fill, ..OPTIONS }).unwrap()
    };
    let (six, eight) = (start(6, 0.3), start(8, 0.3));
    assert_eq!([six.dims(), eight.dims(), start(4, 0.3).dims()], [6, 6, 4]);
    assert_eq!(six, eight, "the seventh column is drawn in both");
    let bare = start(8, 0.0);
    for (bare, six) in [(&bare.image, &six.image), (&bare.text, &six.text)] {
        for (bare, six) in bare.weight.chunks(8).zip(six.weight.chunks(8)) {
            assert_eq!((&bare[..6], &bare[6..]), (&six[..6], &[0.0; 2][..]));
        }
    }
}

fn inputs<'a>(train: &'a SplitData, terms: &'a Terms) -> StartInputs<'a> {
    let SplitData { features, captions, pairs, .. } = train;
    StartInputs { features, captions, pairs, terms, rows: &train.embeddings.texts }
}

fn solve(train: &SplitData, terms: &Terms, width: usize, options: &StartOptions) -> Result<Start> {
    Start::solve(&inputs(train, terms), width, 0, options)
}

/// +1 or −1 per column: the sign that makes the column point in the direction of the golden column.
fn signs(got: &[f32], want: &[f64], width: usize) -> Vec<f64> {
    let column = |k: usize| got.iter().zip(want).skip(k).step_by(width);
    (0..width).map(|k| column(k).map(|(g, w)| f64::from(*g) * w).sum::<f64>().signum()).collect()
}

fn positive(mut data: Dataset) -> Dataset {
    for part in [&mut data.train, &mut data.val, &mut data.test] {
        part.features.values.iter_mut().for_each(|x| *x = x.max(0.0) + 0.01);
    }
    data
}

/// `Wᵀ x + b`.
fn apply(map: &LinearMap, row: &SparseRow) -> Vec<f64> {
    let width = map.bias.len();
    let mut out: Vec<f64> = map.bias.iter().copied().map(f64::from).collect();
    for &(input, value) in row {
        let line = &map.weight[input * width..][..width];
        out.iter_mut().zip(line).for_each(|(sum, w)| *sum += f64::from(*w) * value);
    }
    out
}

fn lengths(map: &LinearMap, rows: impl Iterator<Item = SparseRow>) -> Vec<f64> {
    rows.map(|row| apply(map, &row).iter().map(|x| x * x).sum::<f64>().sqrt()).collect()
}

/// Cosines of a model whose weights are the start.
fn scores(start: &Start, part: &SplitData, terms: &Terms) -> ScoreMatrix {
    let unit = |mut row: Vec<f64>| {
        crate::cca::unit(&mut row);
        row
    };
    let images: Vec<_> = (0..part.features.rows())
        .map(|i| unit(apply(&start.image, &image_row(part.features.row(i)))))
        .collect();
    let texts: Vec<_> =
        part.captions.iter().map(|t| unit(apply(&start.text, &text_row(terms, t, &[])))).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() as f32;
    let values = images.iter().flat_map(|v| texts.iter().map(move |w| dot(v, w))).collect();
    ScoreMatrix::new(images.len(), texts.len(), values).unwrap()
}
