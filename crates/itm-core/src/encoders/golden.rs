//! Reads the goldens of `tests/reference/start_encoders.py` and compares results with them.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};

/// Seed of every mask in the goldens.
pub(super) const SEED: u64 = 5;
/// Dropout probability of the inputs in the goldens.
pub(super) const SHARE: f64 = 0.3;

pub(super) struct Golden(BTreeMap<String, Vec<f32>>);

impl Golden {
    pub(super) fn read() -> Self {
        let text = include_str!("../../tests/golden/start_encoders.json");
        Self(serde_json::from_str(text).unwrap())
    }

    pub(super) fn values(&self, name: &str) -> &[f32] {
        self.0.get(name).unwrap_or_else(|| panic!("no golden {name}"))
    }

    pub(super) fn rows(&self, name: &str, width: usize, device: &Device) -> Tensor<2> {
        let values = self.values(name).to_vec();
        let shape = [values.len() / width, width];
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    pub(super) fn check(&self, name: &str, got: &[f32]) {
        let want = self.values(name);
        assert_eq!(got.len(), want.len(), "{name}");
        assert!(want.iter().any(|w| w.abs() > 1e-3), "{name} is all zero: nothing was compared");
        for (k, (g, w)) in got.iter().zip(want).enumerate() {
            assert!((g - w).abs() < 4e-6 * w.abs().max(1.0), "{name}[{k}]: got {g}, want {w}");
        }
    }
}
