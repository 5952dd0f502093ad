//! The example scores databases that other libraries wrote, with a model of random weights.

#[path = "../examples/score_databases.rs"]
#[allow(dead_code, reason = "`main` is not called")]
mod example;

use std::path::Path;

use burn::tensor::Device;
use tags_dc::model::{Uniter, UniterShape};

#[test]
fn databases_go_in_and_recalls_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let golden = |name: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/databases");
        root.join(name).display().to_string()
    };
    let shape = UniterShape { features: 6, ..UniterShape::of_width(8, 2, 1, 300) };
    let write = |name: &str, shape: &UniterShape| {
        std::fs::write(path(name), serde_json::to_string(shape).unwrap()).unwrap();
    };
    write("shape.json", &shape);
    Uniter::seeded(&shape, 1, &Device::flex()).save(path("model.safetensors")).unwrap();
    let run = |shape: &str| {
        let args = [golden("text.db"), golden("images"), path("model.safetensors"), path(shape)];
        example::run(&args)
    };
    let found = run("shape.json").unwrap();
    // With two images and four sentences, every item is among the first four.
    assert_eq!((found.i2t.recalls()[1], found.t2i.recalls()[1]), (100.0, 100.0));

    let mut small = shape.clone();
    small.text.vocabulary = 299;
    write("small.json", &small);
    let line = run("small.json").unwrap_err().to_string();
    assert_eq!(line, "meta.json: expected tokens of a model with 299 tokens, got token 299");
}
