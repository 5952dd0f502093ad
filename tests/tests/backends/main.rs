//! The contract of the backends: every operation of `itm-kernels`, a training step and an evaluation give the same result
//! on each backend of the build as on `cpu`. The kernels of `cpu` have their own references.
//!
//! `cargo test -p itm-tests --features wgpu --test backends -- --nocapture` prints the largest deviations. Without
//! another backend in the build, `cpu` is compared with itself, bit by bit.

#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "../common/mod.rs"]
mod common;
mod ops;
mod training;
mod values;

use burn::tensor::Device;
use itm_core::learn::precision_of;
use itm_kernels::Precision;
use itm_run::devices::{BUILT, device};
use values::Values;

/// Backends and their devices: all backends of the build except `cpu`, or only `cpu`.
///
/// CUDA may be built without a device; then a message says so. Every other built backend must be present.
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

/// Compares the values of `run` on every backend with its values on `cpu`; `bound` limits [`values::deviation`].
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

/// Only `cpu` multiplies bf16 numbers with f32 sums. The other backends refuse in one line, before anything runs.
#[test]
fn only_cpu_takes_bf16() {
    for (name, device) in backends() {
        let outcome = precision_of("train.precision", Precision::Bf16, &device);
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
            let step = |device: &Device| training::step(&row, epoch, device);
            compare(&what, training::BOUND, |device| step(device).into_iter().next().unwrap());
            compare(&what, training::WEIGHTS, |device| step(device).into_iter().last().unwrap());
        }
    }
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
        for (name, device) in backends() {
            let mut step = |replicas: &[Device]| {
                row.replicas = replicas.to_vec();
                training::step(&row, 1, &device)
            };
            let want = step(&[]);
            assert_eq!(step(&[device.clone(), device.clone()]), want, "{}, {name}", row.name);
            let mixed = step(std::slice::from_ref(&cpu));
            for (got, want, bound) in
                [(&mixed[0], &want[0], training::BOUND), (&mixed[1], &want[1], training::WEIGHTS)]
            {
                let (worst, at) = values::deviation(got, want);
                eprintln!("{name:9} and cpu {:32} {worst:8.1e}  of {bound:.0e}, at {at}", row.name);
                assert!(
                    worst <= if name == "cpu" { 0.0 } else { bound },
                    "{name} and cpu: {at}, {worst:e}"
                );
            }
        }
    }
}

/// A model of each method is trained on `cpu` and loaded on the backend: the recalls are equal, the scores are within the bound.
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
