//! `tests/reference/hubness.py`: the listing on the whole sorted matrix, before and after CSLS and IS.

use serde::Deserialize;
use serde_json::Value;

use super::*;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    images: usize,
    texts: usize,
    scores: Vec<f32>,
    methods: Vec<Method>,
    rgm: Vec<Rgm>,
}

/// Corrected scores, images × texts.
#[derive(Deserialize)]
struct Method {
    method: String,
    params: Value,
    source: String,
    i2t: Vec<f64>,
    t2i: Vec<f64>,
}

#[derive(Deserialize)]
struct Rgm {
    base: String,
    params: Value,
    direction: Direction,
    k: usize,
    capacity: usize,
    stop: Stop,
    stack: Vec<(u32, u32)>,
}

/// The reference's corrected scores: this test covers only the matching.
#[derive(Debug)]
struct Given {
    direction: Direction,
    texts: usize,
    values: Vec<f64>,
}

impl Rescore for Given {
    fn rescore(&self, query: usize, item: usize, _: f32) -> f64 {
        let (image, text) =
            (self.direction.queries(query, item), self.direction.items(query, item));
        self.values[image * self.texts + text]
    }

    fn items(&self) -> usize {
        self.direction.items(self.values.len() / self.texts, self.texts)
    }

    fn queries(&self) -> Option<usize> {
        Some(self.direction.queries(self.values.len() / self.texts, self.texts))
    }
}

#[test]
fn stacks_of_the_reference() {
    let golden = include_str!("../../../tests/golden/hubness.json");
    let golden: Golden = serde_json::from_str(golden).unwrap();
    let mut compared = 0;
    for case in golden.cases {
        let scores = ScoreMatrix::new(case.images, case.texts, case.scores).unwrap();
        for rgm in case.rgm {
            let Rgm { base, params, direction, k, capacity, stop, stack: want } = rgm;
            let same = |m: &&Method| {
                m.method == base && m.params == params && ["none", "test"].contains(&&*m.source)
            };
            let method = case.methods.iter().find(same).expect("the base is among the methods");
            let values = direction.queries(&method.i2t, &method.t2i).clone();
            let map = any(direction, Given { direction, texts: case.texts, values });
            for c in [1, 2, 100] {
                let got = stack(&scores, &map, [c, k, capacity], stop);
                assert_eq!(got, want, "{}, {base}, {direction}, k = {k}, {capacity}", case.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared} stacks");
}
