//! The fields of a foreign configuration in JSON, each with its place for messages.

use std::fmt::Display;
use std::path::Path;

use serde_json::{Map, Value};

use crate::{Error, Result, files};

/// A JSON object of a configuration, with its place for messages. An absent field and null are the same. A value of another kind is an
/// error that names place and field, except for [`flag`](Self::flag), which gives its default, and [`text`](Self::text), which gives `None`.
pub struct Fields {
    place: String,
    values: Map<String, Value>,
}

impl Fields {
    /// The object of a file.
    pub fn read(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let text = files::read(path, LARGEST_CONFIG)?;
        let values = files::parse_json(&place, "a JSON object", &text)?;
        Ok(Self { place, values })
    }

    /// The object of a file; an empty one if there is no file.
    pub fn if_present(path: &Path) -> Result<Self> {
        match path.exists() {
            true => Self::read(path),
            false => Ok(Self { place: path.display().to_string(), values: Map::new() }),
        }
    }

    /// An object inside; an empty one if it is absent or null.
    pub fn object(&self, name: &str) -> Result<Self> {
        let place = format!("{}: {name}", self.place);
        match self.value(name) {
            None => Ok(Self { place, values: Map::new() }),
            Some(Value::Object(values)) => Ok(Self { place, values: values.clone() }),
            Some(other) => Err(Error::invalid(place, "a JSON object", other)),
        }
    }

    /// Whether there is a value that is not null.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// The error of a field's value.
    pub fn refused<T>(&self, name: &str, expected: &str, got: impl Display) -> Result<T> {
        Err(Error::invalid(format!("{}: {name}", self.place), expected, got))
    }

    /// Refuses the field if `holds` is false.
    pub fn unless(
        &self,
        holds: bool,
        name: &str,
        expected: impl Display,
        got: impl Display,
    ) -> Result<()> {
        Error::unless(holds, format_args!("{}: {name}", self.place), expected, got)
    }

    /// A number of things, at least 1.
    pub fn count(&self, name: &str, default: usize) -> Result<usize> {
        self.count_to(LARGEST_COUNT, name, default)
    }

    /// A number of things from 1 to `most`.
    pub fn count_to(&self, most: usize, name: &str, default: usize) -> Result<usize> {
        let expected = format!("a whole number from 1 to {most}");
        let Some(value) = self.value(name) else {
            self.unless(default <= most, name, expected, default)?;
            return Ok(default);
        };
        let number = value.as_u64().filter(|n| (1..=most as u64).contains(n));
        number.map_or_else(|| self.refused(name, &expected, value), |n| Ok(n as usize))
    }

    /// A number that divides `whole`: heads of a width.
    pub fn divisor(&self, whole: usize, name: &str, default: usize) -> Result<usize> {
        let part = self.count(name, default)?;
        let expected = format_args!("a divisor of the width {whole}");
        self.unless(whole.is_multiple_of(part), name, expected, part)?;
        Ok(part)
    }

    /// A number that is above 0 and finite as `f32`.
    pub fn real(&self, name: &str, default: f64) -> Result<f64> {
        self.number(name, default, "a number above 0", |x| x as f32 > 0.0 && (x as f32).is_finite())
    }

    /// A share from 0 to below 1.
    pub fn share(&self, name: &str, default: f64) -> Result<f64> {
        self.number(name, default, "a share from 0 to below 1", |x| (0.0..1.0).contains(&x))
    }

    fn number(
        &self,
        name: &str,
        default: f64,
        expected: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Result<f64> {
        let Some(value) = self.value(name) else { return Ok(default) };
        let number = value.as_f64().filter(|x| fits(*x));
        number.map_or_else(|| self.refused(name, expected, value), Ok)
    }

    /// Height and width: one number for both, or a list of two, each at least 1; zeros if it is absent.
    pub fn sides(&self, name: &str) -> Result<[usize; 2]> {
        match self.values.get(name) {
            Some(list @ Value::Array(_)) => {
                let sides = serde_json::from_value::<[usize; 2]>(list.clone()).ok();
                let fit =
                    |sides: &[usize; 2]| sides.iter().all(|n| (1..=LARGEST_COUNT).contains(n));
                let expected = format!("one whole number or two, from 1 to {LARGEST_COUNT}");
                sides.filter(fit).map_or_else(|| self.refused(name, &expected, list), Ok)
            }
            _ => Ok([self.count(name, 0)?; 2]),
        }
    }

    /// An error for another text than the one that is supported, which is also the default.
    pub fn only(&self, name: &str, supported: &str) -> Result<()> {
        match self.value(name) {
            None => Ok(()),
            Some(Value::String(text)) => self.unless(text == supported, name, supported, text),
            Some(other) => self.refused(name, supported, other),
        }
    }

    /// An error for another value than true, which is also the default.
    pub fn only_true(&self, name: &str) -> Result<()> {
        match self.value(name) {
            None | Some(Value::Bool(true)) => Ok(()),
            Some(other) => self.refused(name, "true", other),
        }
    }

    /// Three numbers, one per channel.
    pub fn channels(&self, name: &str, default: [f32; 3]) -> Result<[f32; 3]> {
        let Some(value) = self.value(name) else { return Ok(default) };
        let number = |value: &Value| value.as_f64().map(|x| x as f32).filter(|x| x.is_finite());
        let numbers = value.as_array().and_then(|list| list.iter().map(number).collect());
        match numbers.map(<[f32; 3]>::try_from as fn(Vec<f32>) -> _) {
            Some(Ok(numbers)) => Ok(numbers),
            _ => self.refused(name, "three numbers", value),
        }
    }

    /// Whether a list or an object is absent or empty.
    pub fn is_empty(&self, name: &str) -> bool {
        match self.value(name) {
            None => true,
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(object)) => object.is_empty(),
            Some(_) => false,
        }
    }

    /// Whether the value is a list.
    pub fn is_list(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(Value::is_array)
    }

    /// A flag with its default.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.values.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// The value, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str)
    }
}

/// A configuration is some kilobytes.
const LARGEST_CONFIG: u64 = 16 << 20;

/// No size of a published model comes near it, and products of two stay within 64 bits.
const LARGEST_COUNT: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_one_number_or_two() {
        let fields = |json: Value| {
            let Value::Object(values) = json else { panic!("an object") };
            Fields { place: "config.json".into(), values }
        };
        let sides = |value: Value| fields(serde_json::json!({ "size": value })).sides("size");
        assert_eq!(sides(7.into()).unwrap(), [7, 7]);
        assert_eq!(sides(vec![7, 8].into()).unwrap(), [7, 8]);
        assert_eq!(sides(Value::Null).unwrap(), [0, 0]);
        for bad in [vec![0i64, 5], vec![5, 1 << 40], vec![5], vec![5, -1]] {
            let line = sides(bad.into()).unwrap_err().to_string();
            assert!(
                line.contains("expected one whole number or two, from 1 to 16777216"),
                "{line}"
            );
        }
    }

    #[test]
    fn a_real_number_is_no_zero_and_not_infinite_in_f32() {
        let real = |value: f64| {
            let values = [("eps".to_owned(), value.into())].into_iter().collect();
            Fields { place: "config.json".into(), values }.real("eps", 1.0)
        };
        assert_eq!(real(1e-12).unwrap(), 1e-12);
        for bad in [0.0, -1.0, 1e-60, 1e60] {
            let line = real(bad).unwrap_err().to_string();
            assert!(line.contains("eps: expected a number above 0"), "{line}");
        }
    }
}
