//! Range checks of configuration values. Each error names the key, the range and the value.

use burn::tensor::Device;
use itm_kernels::Precision;

use crate::{Error, Result};

/// Refuses 0.
///
/// # Errors
/// Names the key.
pub fn at_least_one(key: &str, value: usize) -> Result<()> {
    Error::unless(value > 0, key, "at least 1", value)
}

/// Refuses a size of an input that is 0, or larger than any: a model of that size fits no memory.
///
/// # Errors
/// Names the key, its range and its value.
pub fn size_within(key: &str, value: usize) -> Result<()> {
    const MOST: usize = 1 << 24;
    Error::unless((1..=MOST).contains(&value), key, format_args!("1 to {MOST}"), value)
}

/// Refuses weights that memory cannot hold.
///
/// # Errors
/// Names the key and the number of values.
pub(crate) fn in_memory(key: &str, values: u128) -> Result<()> {
    let mut room = Vec::<f32>::new();
    let fits = usize::try_from(values).is_ok_and(|n| room.try_reserve_exact(n).is_ok());
    std::hint::black_box(&room); // or a compiler may leave the allocation out
    Error::unless(fits, key, "weights that fit the memory", format_args!("{values} values"))
}

/// Refuses values that are not above 0.
///
/// # Errors
/// Names the key.
pub fn above_zero(key: &str, value: f64) -> Result<()> {
    within(key, value, "above 0", |x| x > 0.0)
}

/// Refuses values below 0.
///
/// # Errors
/// Names the key.
pub fn at_least_zero(key: &str, value: f64) -> Result<()> {
    within(key, value, "at least 0", |x| x >= 0.0)
}

/// Refuses values that are NaN, infinite or outside a range.
///
/// ```
/// use itm_core::learn::within;
///
/// let share = |value| within("train.dropout", value, "in [0, 1)", |x| (0.0..1.0).contains(&x));
/// assert!(share(0.5).is_ok());
/// let line = share(f64::NAN).unwrap_err().to_string();
/// assert_eq!(line, "train.dropout: expected in [0, 1), got NaN");
/// ```
///
/// # Errors
/// Names the key and the range.
pub fn within(key: &str, value: f64, range: &str, holds: impl Fn(f64) -> bool) -> Result<()> {
    Error::unless(value.is_finite() && holds(value), key, range, value)
}

/// Refuses bf16 on a device without products of bf16 operands: only the CPU backend has them.
///
/// # Errors
/// Names the key.
pub fn precision_of(key: &str, precision: Precision, device: &Device) -> Result<()> {
    let expected = "f32: only the backend cpu multiplies bf16 numbers with f32 sums";
    Error::unless(precision.runs_on(device), key, expected, "bf16")
}
