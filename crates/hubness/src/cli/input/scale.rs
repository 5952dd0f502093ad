//! What bytes were before they were rounded: a scale, and perhaps a zero point, beside the array.

use itm_core::data::Npy;
use itm_core::{Error, Result};

use super::element::Element;

/// Endings of the names of a scale, and of a zero point: `image_scale`, `image.scale`, `scale`.
const SCALES: [&str; 2] = ["scale", "scales"];
const ZEROS: [&str; 2] = ["zero_point", "zero_points"];

/// `value = (stored − zero) · scale`
#[derive(Debug)]
pub(crate) struct Scale {
    scale: Per,
    zero: Per,
    /// Where they are, for a note.
    pub(crate) places: String,
}

/// One number for all values, or one for each column or row.
#[derive(Debug)]
enum Per {
    All(f64),
    Column(Vec<f64>),
    Row(Vec<f64>),
}

/// An array of any shape.
pub(crate) struct ScaleArray {
    pub(crate) place: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

/// Whether an array of this name belongs to another array.
pub(crate) fn is_scale(name: &str) -> bool {
    let ends = |end: &&str| {
        name.strip_suffix(*end).is_some_and(|rest| rest.is_empty() || rest.ends_with(['_', '.']))
    };
    SCALES.iter().chain(&ZEROS).any(ends)
}

impl Scale {
    /// The scale of an array of a file by its name, type and shape: what `numbers` gives for the names of the file that belong to the
    /// array. `None` if the file has no scale, or the array is no matrix of bytes.
    ///
    /// # Errors
    /// If the scale or the zero point has a shape that fits neither all values nor the columns nor the rows, or holds other numbers than
    /// scales can be; if there is a zero point without a scale.
    pub(crate) fn of(
        (name, element, shape): (&str, Element, &[usize]),
        has: impl Fn(&str) -> bool,
        mut numbers: impl FnMut(&str) -> Result<ScaleArray>,
    ) -> Result<Option<Self>> {
        let (&[rows, dim], true) = (shape, element.is_byte()) else { return Ok(None) };
        let mut found = |ends: [&str; 2]| {
            let own =
                ends.iter().flat_map(|end| [format!("{name}_{end}"), format!("{name}.{end}")]);
            let shared = ends.iter().map(|end| (*end).to_owned());
            own.chain(shared).find(|name| has(name)).map(|name| numbers(&name)).transpose()
        };
        let (scale, zero) = (found(SCALES)?, found(ZEROS)?);
        let Some(scale) = scale else {
            let alone = |zero: ScaleArray| {
                Err(Error::invalid(zero.place, "a scale beside the zero point", "none"))
            };
            return zero.map_or(Ok(None), alone);
        };
        let mut places = scale.place.clone();
        places.extend(zero.iter().map(|zero| format!(" and {}", zero.place)));
        let per = |numbers, expected, fits| Per::new(numbers, [rows, dim], expected, fits);
        let scale = per(scale, "finite numbers above 0", |v| v.is_finite() && v > 0.0)?;
        let zero = zero.map(|zero| per(zero, "finite numbers", f64::is_finite)).transpose()?;
        Ok(Some(Self { scale, zero: zero.unwrap_or(Per::All(0.0)), places }))
    }

    /// Turns the stored numbers of a row into values.
    pub(crate) fn apply(&self, row: usize, out: &mut [f64]) {
        for (column, value) in out.iter_mut().enumerate() {
            *value = (*value - self.zero.at(row, column)) * self.scale.at(row, column);
        }
    }
}

impl Per {
    fn new(
        ScaleArray { place, shape, values }: ScaleArray,
        [rows, dim]: [usize; 2],
        expected: &str,
        fits: fn(f64) -> bool,
    ) -> Result<Self> {
        if let Some(wrong) = values.iter().find(|v| !fits(**v)) {
            return Err(Error::invalid(place, expected, wrong));
        }
        match shape[..] {
            _ if values.len() == 1 => Ok(Self::All(values[0])),
            [n] if n == rows && n == dim => {
                let expected = format!("shape [{n}, 1] for rows or [1, {n}] for columns");
                let got = format!("shape {shape:?}, which may be either");
                Err(Error::invalid(place, expected, got))
            }
            [n] | [1, n] if n == dim => Ok(Self::Column(values)),
            [n] | [n, 1] if n == rows => Ok(Self::Row(values)),
            _ => {
                let expected = format!("1 number, {dim} (the columns) or {rows} (the rows)");
                Err(Error::invalid(place, expected, format!("shape {shape:?}")))
            }
        }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        match self {
            Self::All(number) => *number,
            Self::Column(numbers) => numbers[column],
            Self::Row(numbers) => numbers[row],
        }
    }
}

impl ScaleArray {
    pub(crate) fn of_npy(npy: &Npy) -> Result<Self> {
        let (element, shape) = (Element::of(npy)?, npy.shape().to_vec());
        let mut values = vec![0.0; npy.rows() * npy.row_len()]; // no more than the file has, which was checked
        for (row, out) in values.chunks_exact_mut(npy.row_len().max(1)).enumerate() {
            element.read(npy.row_bytes(row), out);
        }
        Ok(Self { place: npy.place().to_owned(), shape, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scale of an array of 2 rows and 3 columns.
    fn scale(files: &[(&str, &[usize], &[f64])]) -> Result<Option<Scale>, String> {
        let find = |name: &str| files.iter().find(|file| file.0 == name);
        let numbers = |name: &str| {
            let (name, shape, values) = find(name).unwrap();
            Ok(ScaleArray { place: (*name).into(), shape: shape.to_vec(), values: values.to_vec() })
        };
        Scale::of(("a", Element::I8, &[2, 3]), |name| find(name).is_some(), numbers)
            .map_err(|e| e.to_string())
    }

    fn second_row(files: &[(&str, &[usize], &[f64])]) -> [f64; 3] {
        let mut row = [1.0, 2.0, 3.0];
        scale(files).unwrap().unwrap().apply(1, &mut row);
        row
    }

    #[test]
    fn a_scale_is_of_all_values_of_columns_or_of_rows() {
        assert_eq!(second_row(&[("scale", &[], &[2.0])]), [2.0, 4.0, 6.0]);
        assert_eq!(second_row(&[("a.scales", &[3], &[2.0, 1.0, 4.0])]), [2.0, 2.0, 12.0]);
        assert_eq!(second_row(&[("a_scale", &[2, 1], &[7.0, 10.0])]), [10.0, 20.0, 30.0]);
        assert_eq!(second_row(&[("a_scale", &[2], &[7.0, 10.0])]), [10.0, 20.0, 30.0]);
        let own = [("scale", &[][..], &[9.0][..]), ("a_scale", &[], &[2.0])];
        assert_eq!(second_row(&own), [2.0, 4.0, 6.0], "the array's own comes first");
        let with_zero =
            [("scale", &[][..], &[2.0][..]), ("zero_point", &[1, 3], &[1.0, 0.0, -1.0])];
        assert_eq!(second_row(&with_zero), [0.0, 4.0, 8.0]);
        assert!(scale(&[("b_scale", &[], &[2.0])]).unwrap().is_none(), "of another array");
    }

    #[test]
    fn what_is_no_scale_is_one_line() {
        for (files, want) in [
            (
                ("scale", &[4][..], &[1.0; 4][..]),
                "scale: expected 1 number, 3 (the columns) or 2 (the rows), got shape [4]",
            ),
            (("scale", &[], &[0.0]), "scale: expected finite numbers above 0, got 0"),
            (("scale", &[], &[f64::NAN]), "scale: expected finite numbers above 0, got NaN"),
            (
                ("zero_point", &[], &[3.0]),
                "zero_point: expected a scale beside the zero point, got none",
            ),
        ] {
            assert_eq!(scale(&[files]).unwrap_err(), want);
        }
        let square = Per::new(
            ScaleArray { place: "scale".into(), shape: vec![3], values: vec![1.0; 3] },
            [3, 3],
            "numbers",
            f64::is_finite,
        );
        let want = "scale: expected shape [3, 1] for rows or [1, 3] for columns, got shape [3], which may be either";
        assert_eq!(square.unwrap_err().to_string(), want);
    }

    #[test]
    fn names_of_scales() {
        let scales = ["scale", "image_scale", "image.scales", "zero_point", "a_zero_points"];
        assert!(scales.into_iter().all(is_scale));
        assert!(!["grayscale", "image", "scale_of"].into_iter().any(is_scale));
    }
}
