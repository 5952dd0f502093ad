use itm_core::scored::Scored;
use itm_core::tiles::Side;

use super::*;
use crate::fakes::{DIM, Numbers};

fn world() -> (Vec<f32>, Vec<f32>) {
    let bank = (0..600).flat_map(|k| Numbers::text(&format!("sentence {k}"))).collect();
    ((0..80).flat_map(Numbers::picture).collect(), bank)
}

/// A picture's score and the correction of `hubness` put the pictures of every query of the bank into the same order.
#[test]
fn biases_rank_as_hubness_does() {
    let (rows, bank) = world();
    let pictures = Embeddings::new("pictures", 80, DIM, &rows).unwrap();
    let tiles = Tiles::new(pictures, Embeddings::new("bank", 600, DIM, &bank).unwrap()).unwrap();
    let held_out = HeldOutBank(&tiles);
    let t2i = Direction::T2i;
    assert_eq!(CHOICES.len(), 4, "each choice but the first has its correction here");
    for ((name, choice), correction) in CHOICES[1..].iter().zip([
        csls(&held_out, t2i, 10).unwrap().into_any(),
        Nnn::default().fit(&held_out, t2i).unwrap().into_any(),
        inverted_softmax(&held_out, t2i, 30.0).unwrap().into_any(),
    ]) {
        let biases = biases(*choice, &tiles).unwrap();
        assert!(biases.iter().sum::<f64>().abs() < 1e-9, "around their mean");
        for query in 0..600 {
            let scores = tiles.scores_of(Side::Texts, &[query]).unwrap().values().to_vec();
            let want = order(&correction.of_query(&scores).unwrap());
            let got: Vec<f64> =
                scores.iter().zip(&biases).map(|(s, b)| f64::from(*s) - b).collect();
            assert_eq!(order(&got), want, "{name}, query {query}");
        }
    }
}

fn order(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order
}

/// Every fourth picture leans to what all sentences share. Uncorrected, these pictures have most of the first answers.
#[test]
fn hubs_are_found_and_mended() {
    let (rows, bank) = world();
    let levels = fit(&rows, &bank, DIM).unwrap();
    assert_ne!(levels.correction, "none");
    let [plain, corrected] = &levels.answers;
    let of_hubs = |answers: &[u32]| answers.iter().step_by(4).sum::<u32>();
    assert_eq!((plain.iter().sum::<u32>(), corrected.iter().sum::<u32>()), (600, 600));
    assert!(of_hubs(plain) > 500, "{}", of_hubs(plain));
    assert!(of_hubs(corrected) < 400, "{}", of_hubs(corrected));
    assert!(plain.iter().max() > corrected.iter().max());
}

/// The level is the quantile of the best score of each query.
#[test]
fn the_level_is_what_half_of_the_queries_reach() {
    let (rows, bank) = world();
    let levels = fit(&rows, &bank, DIM).unwrap();
    let pictures = Embeddings::new("pictures", 80, DIM, &rows).unwrap();
    let tiles = Tiles::new(pictures, Embeddings::new("bank", 600, DIM, &bank).unwrap()).unwrap();
    let top = tiles.top(Side::Texts, 1);
    let mut best: Vec<f32> = (0..600).map(|query| top.scores(query)[0]).collect();
    best.sort_by(f32::total_cmp);
    assert_eq!(levels.levels[0], best[(599.0 * QUANTILE).round() as usize]);
}

/// Without hubs in the data nothing is corrected: here each of three pictures answers as many sentences.
#[test]
fn no_hubs_no_correction() {
    let rows = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let bank: Vec<f32> = rows.repeat(8); // each half has as many of each
    let levels = fit(&rows, &bank, 3).unwrap();
    assert_eq!((levels.correction.as_str(), levels.biases), ("none", vec![0.0; 3]));
    assert_eq!(levels.answers[0], [8, 8, 8]);
    let line = fit(&rows, &rows, 3).unwrap_err().to_string();
    assert_eq!(line, "bank: expected at least 8 queries, got 3");
}
