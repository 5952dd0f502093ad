//! Values of the independent double-precision reference, `tests/reference/naaf.py`.

use serde_json::Value;

pub(crate) fn golden() -> Value {
    serde_json::from_str(include_str!("../tests/golden/naaf.json"))
        .expect("golden/naaf.json is JSON")
}

/// A list of numbers.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    let items = value.as_array().expect("a list");
    items.iter().map(|x| x.as_f64().expect("a number")).collect()
}
