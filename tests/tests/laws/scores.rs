//! Laws of scores: other pairs do not change the score of a pair.

use burn::tensor::Device;
use itm_core::Pairs;
use itm_core::data::Features;
use itm_core::learn::{ImageItems, Items};
use itm_run::methods::Sees;

use crate::common::{DIM, Data, PAIRS, idf, rows, start};
use crate::{scores, trained};

#[test]
fn blocks_and_pairs_have_the_bits_of_the_matrix() {
    for row in rows() {
        let (model, _) = trained(&row, 0, 2);
        let (data, all) = (Data::new(), scores(&*model));
        let scored = model.scored(data.items()).unwrap();
        for (images, texts) in [(0..PAIRS, 0..1), (3..4, 0..PAIRS), (2..5, 1..7), (0..0, 2..3)] {
            let block = scored.block(images.clone(), texts.clone()).unwrap();
            let want = images.flat_map(|i| texts.clone().map(move |t| (i, t)));
            let want: Vec<_> = want.map(|(i, t)| all[i * PAIRS + t].to_bits()).collect();
            let got: Vec<_> = block.values().iter().map(|s| s.to_bits()).collect();
            assert_eq!(got, want, "{}", row.name);
        }
        let (images, texts) = ([7, 0, 3], [1, 0, 3]);
        let pairs = scored.pairs(&images, &texts).unwrap();
        for ((i, t), s) in images.iter().zip(texts).zip(pairs) {
            assert_eq!(s.to_bits(), all[i * PAIRS + t].to_bits(), "{}", row.name);
        }
    }
}

/// Half of the items in reverse order: other neighbours in a batch, other padding, another order.
#[test]
fn a_score_does_not_depend_on_what_stands_beside_it() {
    for row in rows() {
        let (model, _) = trained(&row, 0, 2);
        let (data, all) = (Data::new(), scores(&*model));
        let chosen: Vec<usize> = (0..PAIRS).rev().step_by(2).collect();
        let values = chosen.iter().flat_map(|&i| data.features.row(i)).copied().collect();
        let features = Features { dim: DIM, values };
        let texts: Vec<_> = chosen.iter().map(|&t| data.texts[t].clone()).collect();
        let pairs = Pairs::uniform(chosen.len(), 1);
        let images = ImageItems::Features(&features);
        let scored = model.scored(Items { images, texts: &texts, pairs: &pairs }).unwrap();
        let some = scored.matrix().unwrap();
        for (row_at, &i) in chosen.iter().enumerate() {
            for (column, &t) in chosen.iter().enumerate() {
                let (got, want) = (some.row(row_at)[column], all[i * PAIRS + t]);
                assert!((got - want).abs() < 1e-5, "{}: {got}, {want}", row.name);
            }
        }
    }
}

#[test]
fn scores_do_not_depend_on_threads() {
    let of = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| rows().iter().map(|row| scores(&*trained(row, 0, 2).0)).collect::<Vec<_>>())
    };
    assert!(of(1) == of(3));
}

/// `cos(Wxᵀ x + bx, Wyᵀ y + by)` in double precision, where `y` is the idf of a caption's terms at unit length. A row that
/// begins with given maps has this score before its first step, whatever modules it adds to the maps.
#[test]
fn a_start_gives_the_scores_of_its_maps() {
    let data = Data::new();
    let mut seen = 0;
    for row in rows() {
        let facts = row.facts();
        let Some(form) = facts.start else { continue };
        if row.name.contains("Order") || matches!(facts.sees, Sees::Regions) {
            continue; // another similarity; several rows per item
        }
        let (start, d) = (start(form.width), form.width);
        let mapped = |map: &itm_core::start::LinearMap, inputs: &[(usize, f64)]| -> Vec<f64> {
            let of = |k: usize| {
                let sum: f64 =
                    inputs.iter().map(|&(i, x)| x * f64::from(map.weight[i * d + k])).sum();
                sum + f64::from(map.bias[k])
            };
            (0..d).map(of).collect()
        };
        let cosine = |a: &[f64], b: &[f64]| -> f64 {
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
            dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
        };
        let got = scores(&*row.model(0, &Device::flex()));
        for i in 0..PAIRS {
            let x: Vec<_> =
                data.features.row(i).iter().map(|&x| f64::from(x)).enumerate().collect();
            for (t, terms) in data.texts.iter().enumerate() {
                let of = |term: u32| f64::from(idf()[term as usize]);
                let length = terms.iter().map(|&term| of(term).powi(2)).sum::<f64>().sqrt();
                let y: Vec<_> =
                    terms.iter().map(|&term| (term as usize, of(term) / length)).collect();
                let want = cosine(&mapped(&start.image, &x), &mapped(&start.text, &y));
                let got = f64::from(got[i * PAIRS + t]);
                assert!((got - want).abs() < 1e-5, "{}, {i} {t}: {got}, {want}", row.name);
            }
        }
        seen += 1;
    }
    assert!(seen >= 8, "{seen} rows begin with given maps");
}
