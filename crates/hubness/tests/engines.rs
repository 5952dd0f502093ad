//! Exported vectors in a third-party engine with exact search: the engine's lists are the corrected lists.
//! `tests/reference/hubness_faiss.py` does the same with faiss.

use hubness::{
    Correction, Direction, Nnn, TestQueries, Transductive, csls, export, inverted_softmax, pass,
};
use itm_core::tiles::{Embeddings, Tiles};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use usearch::{IndexOptions, MetricKind, ScalarKind, new_index};

const DIM: usize = 24;

/// Unit rows around a common direction, so that some are hubs.
fn rows(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let row = |i: usize| -> Vec<f32> {
        let mut row: Vec<f32> = (0..DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
        row[0] += (i % 5) as f32 * 0.4;
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.into_iter().map(|v| v / norm).collect()
    };
    (0..n).flat_map(row).collect()
}

/// The ten items with the largest inner products, from the engine.
fn engine(items: &[f32], queries: &[f32], width: usize) -> Vec<Vec<u32>> {
    let options = IndexOptions {
        dimensions: width,
        metric: MetricKind::IP,
        quantization: ScalarKind::F32,
        ..Default::default()
    };
    let index = new_index(&options).expect("an index");
    index.reserve(items.len() / width).expect("room");
    for (key, row) in items.chunks(width).enumerate() {
        index.add(key as u64, row).expect("a row");
    }
    let search = |query| index.exact_search(query, 10).expect("ten items").keys;
    queries.chunks(width).map(|q| search(q).into_iter().map(|key| key as u32).collect()).collect()
}

#[test]
fn an_engine_serves_corrected_lists() {
    let (n, m) = (150, 400);
    let (v, w) = (rows(n, 1), rows(m, 2));
    let images = Embeddings::new("images", n, DIM, &v).unwrap();
    let texts = Embeddings::new("texts", m, DIM, &w).unwrap();
    let tiles = Tiles::new(images, texts).unwrap();
    let bank = TestQueries(&tiles);
    for direction in Direction::BOTH {
        let (queries, items) = (direction.queries(&v, &w), direction.items(&v, &w));
        let plain = engine(items, queries, DIM);
        let corrections: [(&str, Correction<Transductive>); 4] = [
            ("csls", csls(&bank, direction, 10).unwrap()),
            ("is 30", inverted_softmax(&bank, direction, 30.0).unwrap()),
            ("nnn", Nnn { alpha: 0.75, k: 30 }.fit(&bank, direction).unwrap()),
            ("is 5", inverted_softmax(&bank, direction, 5.0).unwrap()),
        ];
        for (name, correction) in corrections {
            let augmented = export::items(direction, items, DIM, &correction).unwrap();
            let asked: Vec<f32> = queries.chunks(DIM).flat_map(export::query).collect();
            let got = engine(&augmented, &asked, DIM + 1);
            let want = pass::top(&tiles, &correction, 10).unwrap();
            for (query, got) in got.iter().enumerate() {
                assert_eq!(got, want.items(query), "{name}, {direction}, query {query}");
            }
            assert_ne!(got, plain, "{name}, {direction}: the correction changes lists");
        }
    }
}
