//! Values of the independent double-precision reference, `tests/reference/fne.py`.

use serde_json::Value;

/// The whole file.
pub(crate) fn golden() -> Value {
    serde_json::from_str(include_str!("../tests/golden/fne.json")).expect("golden/fne.json is JSON")
}

/// Numbers of any nesting, flattened in order; booleans count as 0 and 1.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Bool(b) => vec![f64::from(u8::from(*b))],
        other => vec![other.as_f64().unwrap_or_else(|| panic!("{other} is not a number"))],
    }
}

/// [`numbers`] in f32.
pub(crate) fn floats(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|x| x as f32).collect()
}

/// [`numbers`] as integers.
pub(crate) fn integers(value: &Value) -> Vec<i64> {
    numbers(value).into_iter().map(|x| x as i64).collect()
}

/// Fails with the first place where `got` and `want` differ by more than `tolerance`.
pub(crate) fn close(name: &str, got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{name}: length");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let d = (f64::from(*g) - w).abs();
        assert!(d <= tolerance, "{name}[{i}]: got {g}, want {w}");
    }
}
