//! Helpers of the kernels' tests.

use std::collections::BTreeMap;

#[cfg(feature = "flex")]
use burn::tensor::Tensor;

use crate::random::unit;

pub(crate) type Golden = BTreeMap<String, Vec<f64>>;

/// Values of `tests/golden/<name>.json`, written by the script of the same name in `tests/reference`.
pub(crate) fn golden(name: &str) -> Golden {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn f32s(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

pub(crate) fn counts(values: &[f64]) -> Vec<usize> {
    values.iter().map(|&v| v as usize).collect()
}

/// Uniform in ±1/2.
pub(crate) fn random(n: usize, seed: u64) -> Vec<f32> {
    (0..n as u64).map(|k| unit(seed, k) - 0.5).collect()
}

/// Largest error relative to the wanted value; absolute for wanted values below 1.
pub(crate) fn worst(got: &[f32], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let error = |(&g, &w): (&f32, &f64)| (f64::from(g) - w).abs() / w.abs().max(1.0);
    largest(got.iter().zip(want).map(error))
}

/// The largest of these errors, or NaN if one is: `max` would pass over it.
pub(crate) fn largest(errors: impl Iterator<Item = f64>) -> f64 {
    errors.fold(0.0, |worst, e| if e <= worst || worst.is_nan() { worst } else { e })
}

/// Runs the check with each copy of the kernels that this CPU can run, on one thread.
pub(crate) fn on_every_instruction_set(check: impl Fn() + Sync) {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::dispatch::{FORCED, Level};
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        for level in [Level::Avx512, Level::Avx2, Level::Baseline] {
            pool.install(|| {
                FORCED.set(Some(level));
                check();
                FORCED.set(None);
            });
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    check();
}

/// Asserts that the bits do not depend on the number of threads.
pub(crate) fn on_every_thread_count(compute: impl Fn() -> Vec<f32> + Sync) {
    let bits = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(&compute).into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let one = bits(1);
    for threads in [2, 3, 5] {
        assert!(bits(threads) == one, "{threads} threads give other bits than one");
    }
}

#[cfg(feature = "flex")]
pub(crate) fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

/// Asserts that `got` equals `want` to 1e-5, and that `want` is not all zero.
#[cfg(feature = "flex")]
pub(crate) fn close<const D: usize>(name: &str, got: Tensor<D>, want: Tensor<D>) {
    assert_eq!(got.dims(), want.dims(), "{name}");
    let (got, want) = (values(got), values(want));
    let error = largest(got.iter().zip(&want).map(|(g, w)| f64::from((g - w).abs())));
    assert!(error < 1e-5, "{name} is off by {error:e}");
    assert!(want.iter().any(|w| w.abs() > 1e-3), "{name} is all zero: nothing was compared");
}
