//! The contract of the backends: every operation of `itm-kernels`, a training step and an evaluation give on each
//! backend of the build what they give on `cpu`, whose kernels have references of their own.
//!
//! `cargo test -p itm-tests --features wgpu --test backends -- --nocapture` prints the largest deviations. Without
//! another backend in the build `cpu` is compared with itself, bit by bit.

#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../common/mod.rs"]
mod common;
mod ops;
mod training;
mod values;

use burn::tensor::Device;
use itm_run::devices::{BUILT, device};
use values::Values;

/// Backends and their devices: all of the build but `cpu`, or `cpu` alone.
///
/// CUDA may be built and absent, which is said; what else is built must be there.
fn backends() -> Vec<(&'static str, Device)> {
    let others: Vec<&str> = BUILT.iter().copied().filter(|&name| name != "cpu").collect();
    let names = if others.is_empty() { vec!["cpu"] } else { others };
    let found = names.into_iter().filter_map(|name| match device(name) {
        Ok(device) => Some((name, device)),
        Err(error) if name.ends_with("cuda") => {
            eprintln!("not compared: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    });
    found.collect()
}

/// Compares what `run` gives on every backend with what it gives on `cpu`; `bound` is of [`values::deviation`].
fn compare(what: &str, bound: f64, run: impl Fn(&Device) -> Values) {
    let want = run(&device("cpu").unwrap());
    for (name, device) in backends() {
        let got = run(&device);
        let (worst, at) = values::deviation(&got, &want);
        eprintln!("{name:9} {what:32} {worst:8.1e}  of {bound:.0e}, at {at}");
        let bound = if name == "cpu" { 0.0 } else { bound };
        assert!(worst <= bound, "{name}: {what}: {at} is off by {worst:e}, bound {bound:e}");
    }
}

#[test]
fn every_operation_and_its_gradients() {
    for case in ops::CASES {
        compare(case.name, case.bound, |device| (case.run)(&device.clone().autodiff()));
    }
}

#[test]
fn one_training_step() {
    for row in common::rows() {
        for epoch in [0, 1] {
            let what = format!("{}, epoch {epoch}", row.name);
            let step = |device: &Device| training::step(&row, epoch, device);
            compare(&what, training::BOUND, |device| step(device).into_iter().next().unwrap());
            compare(&what, training::WEIGHTS, |device| step(device).into_iter().last().unwrap());
        }
    }
}

/// A model of each method trained on `cpu` and loaded on the backend: the same recalls, scores within the bound.
#[test]
fn one_evaluation() {
    let mut methods: Vec<common::Row> = common::rows();
    methods.dedup_by(|a, b| a.target() == b.target());
    for row in methods {
        let saved = tempfile::tempdir().unwrap();
        training::train(&row, &device("cpu").unwrap(), saved.path());
        let evaluate = |device: &Device| training::evaluate(&row, saved.path(), device);
        compare(&format!("scores of {}", row.name), 1e-5, |device| evaluate(device).0);
        let want = evaluate(&device("cpu").unwrap()).1;
        assert!(want[..4].iter().any(|&r| r > 0.0 && r < 100.0), "{want:?} tells nothing apart");
        for (name, device) in backends() {
            assert_eq!(evaluate(&device).1, want, "{}: recalls on {name}", row.name);
        }
    }
}
