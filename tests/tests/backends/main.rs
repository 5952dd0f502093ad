//! The contract of the backends: every operation of `itm-kernels`, a training step and an evaluation give the same result
//! on each backend of the build as on `cpu`. The kernels of `cpu` have their own references.
//!
//! `cargo test -p itm-tests --features wgpu --test backends -- --nocapture` prints the largest deviations.

#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../common/mod.rs"]
mod common;
mod ops;
mod training;
mod values;

use std::sync::LazyLock;

use burn::tensor::Device;
use itm_core::learn::precision_of;
use itm_kernels::Precision;
use itm_run::devices::{BUILT, device};
use values::Values;

/// All backends of the build and their devices. `cpu` is one of them: it is compared with itself, bit by bit.
///
/// CUDA may be built without a device; then a message says so. Every other built backend must be present.
static BACKENDS: LazyLock<Vec<(&str, Device)>> = LazyLock::new(|| {
    let found = BUILT.iter().filter_map(|&name| match device(name) {
        Ok(device) => Some((name, device)),
        Err(error) if name.ends_with("cuda") => {
            eprintln!("not compared: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    });
    found.collect()
});

/// Asserts that values on the backend `name` are those on `cpu`; `bound` limits [`values::deviation`].
fn agree(name: &str, what: &str, got: &Values, want: &Values, bound: f64) {
    let (worst, at) = values::deviation(got, want);
    let bound = if name == "cpu" { 0.0 } else { bound };
    eprintln!("{name:12} {what:32} {worst:8.1e}  of {bound:.0e}, at {at}");
    assert!(worst <= bound, "{name}: {what}: {at} is off by {worst:e}, bound {bound:e}");
}

#[test]
fn every_operation_and_its_gradients() {
    for case in ops::CASES {
        let run = |device: &Device| (case.run)(&device.clone().autodiff());
        let want = run(&device("cpu").unwrap());
        for &(name, ref device) in &*BACKENDS {
            agree(name, case.name, &run(device), &want, case.bound);
        }
    }
}

/// Only `cpu` multiplies bf16 numbers with f32 sums. The other backends refuse in one line, before anything runs.
#[test]
fn only_cpu_takes_bf16() {
    for &(name, ref device) in &*BACKENDS {
        let outcome = precision_of("train.precision", Precision::Bf16, device);
        let line = outcome.map_err(|error| error.to_string());
        eprintln!("{name:9} {line:?}");
        let refusal = "train.precision: expected f32: only the backend cpu multiplies bf16 numbers with f32 sums, got bf16";
        assert_eq!(line, if name == "cpu" { Ok(()) } else { Err(refusal.to_owned()) }, "{name}");
    }
}

#[test]
fn one_training_step() {
    for row in common::rows() {
        for epoch in [0, 1] {
            let what = format!("{}, epoch {epoch}", row.name);
            let want = training::step(&row, epoch, &device("cpu").unwrap());
            for &(name, ref device) in &*BACKENDS {
                agree_in_step(name, &what, &training::step(&row, epoch, device), &want);
            }
        }
    }
}

/// The numbers of a step and the weights after it, each with its bound.
fn agree_in_step(name: &str, what: &str, got: &[Values; 2], want: &[Values; 2]) {
    agree(name, what, &got[0], &want[0], training::BOUND);
    agree(name, what, &got[1], &want[1], training::WEIGHTS);
}

/// A step has the same bits on one device and on three of its kind. A part on a device of another kind, `cpu`, is moved there, and its
/// gradients back.
#[test]
fn parts_of_a_step_on_several_devices() {
    let mut in_parts = common::rows_in_parts_of(2);
    in_parts.retain(|row| row.facts().most_devices > 1);
    assert!(!in_parts.is_empty());
    let cpu = device("cpu").unwrap();
    for mut row in in_parts {
        for &(name, ref device) in &*BACKENDS {
            let mut step = |replicas: &[Device]| {
                row.replicas = replicas.to_vec();
                training::step(&row, 1, device)
            };
            let want = step(&[]);
            assert_eq!(step(&[device.clone(), device.clone()]), want, "{}, {name}", row.name);
            let mixed = step(std::slice::from_ref(&cpu));
            let what = format!("{}, with cpu", row.name);
            agree_in_step(name, &what, &mixed, &want);
        }
    }
}

/// A model of each method is trained on `cpu` and loaded on the backend: the recalls are equal, the scores are within the bound.
#[test]
fn one_evaluation() {
    let mut methods: Vec<common::Row> = common::rows();
    methods.dedup_by(|a, b| a.target() == b.target());
    let cpu = device("cpu").unwrap();
    for row in methods {
        let saved = tempfile::tempdir().unwrap();
        training::train(&row, &cpu, saved.path());
        let (scores, recalls) = training::evaluate(&row, saved.path(), &cpu);
        assert!(
            recalls[..4].iter().any(|&r| r > 0.0 && r < 100.0),
            "{recalls:?} tells nothing apart"
        );
        for &(name, ref device) in &*BACKENDS {
            let got = training::evaluate(&row, saved.path(), device);
            agree(name, &format!("scores of {}", row.name), &got.0, &scores, 1e-5);
            assert_eq!(got.1, recalls, "{}: recalls on {name}", row.name);
        }
    }
}
