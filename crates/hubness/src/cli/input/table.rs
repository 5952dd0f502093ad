//! A column of a Parquet table: embeddings as a list of numbers in each row, or names as a text in each row.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use bytes::Bytes;
use itm_core::data::contents;
use itm_core::files::{caught, open};
use itm_core::{Error, Result};
use parquet::basic::{LogicalType, Type as Physical};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{
    ChunkReader, FileReader, Length, RowGroupReader, SerializedFileReader,
};
use parquet::record::Field;
use parquet::schema::types::Type;

use super::array::{Array, ArrayFile};
use super::element::Element;
use super::text::chosen;

/// A column of lists as a matrix: the named one, or the only one.
///
/// # Errors
/// If the table is damaged, there is no such column or several to choose from (the error lists their names), or a row is missing, has
/// another width than the first or other numbers than f16, f32 or f64.
pub(super) fn matrix(place: &str, part: Option<&str>, path: &Path) -> Result<Array> {
    let (mut bytes, mut found) = (Vec::new(), None);
    let name = each(place, part, path, |column| !column.is_primitive(), &mut |row, field| {
        let here = || format!("{place} row {row}");
        let Field::ListInternal(list) = field else {
            return Err(Error::invalid(here(), "a list of numbers", kind(field)));
        };
        let numbers = list.elements();
        for number in numbers {
            let element = match number {
                Field::Float16(v) => (Element::F16, bytes.extend(v.to_le_bytes())).0,
                Field::Float(v) => (Element::F32, bytes.extend(v.to_le_bytes())).0,
                Field::Double(v) => (Element::F64, bytes.extend(v.to_le_bytes())).0,
                other => {
                    return Err(Error::invalid(here(), "numbers of f16, f32 or f64", kind(other)));
                }
            };
            found.get_or_insert((element, numbers.len()));
        }
        match found {
            Some((_, width)) if width == numbers.len() => Ok(()),
            Some((_, width)) => {
                Err(Error::invalid(here(), format!("{width} numbers"), numbers.len()))
            }
            None => Err(Error::invalid(here(), "a number", "an empty list")),
        }
    })?;
    let (element, width) = found.ok_or_else(|| Error::invalid(place, "a row", "none"))?;
    let rows = bytes.len() / (width * element.size());
    let stored = ArrayFile::Bytes(bytes.into(), 0);
    Array::new(format!("{place}:{name}"), element, &[rows, width], stored)
}

/// A column of texts or whole numbers: the named one, or the only one of texts.
///
/// # Errors
/// As [`matrix`].
pub(super) fn names(place: &str, part: Option<&str>, path: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let is_text = |column: &Type| {
        column.is_primitive()
            && column.get_physical_type() == Physical::BYTE_ARRAY
            && column.get_basic_info().logical_type_ref() == Some(&LogicalType::String)
    };
    each(place, part, path, is_text, &mut |row, field| {
        names.push(match field {
            Field::Str(text) => text.clone(),
            Field::Int(n) => n.to_string(),
            Field::Long(n) => n.to_string(),
            other => {
                let here = format!("{place} row {row}");
                return Err(Error::invalid(here, "a text or a whole number", kind(other)));
            }
        });
        Ok(())
    })?;
    Ok(names)
}

/// Calls `take` with the number and the value of each row of a column, and returns the column's name. The library may panic over a
/// damaged table.
fn each(
    place: &str,
    part: Option<&str>,
    path: &Path,
    fits: impl Fn(&Type) -> bool,
    take: &mut dyn FnMut(usize, &Field) -> Result<()>,
) -> Result<String> {
    let damaged = |e: &dyn std::fmt::Display| Error::invalid(place, "a whole Parquet table", e);
    let mut file = open(path)?;
    let mut head = Vec::new();
    (&mut file).take(512).read_to_end(&mut head).map_err(Error::io(path))?;
    let whole = head.starts_with(b"PAR1");
    Error::unless(whole, place, "a whole Parquet table", contents(&head))?;
    let read = || {
        let mut left = file.len().saturating_mul(MOST_VALUES);
        let reader = SerializedFileReader::new(Table(file)).map_err(|e| damaged(&e))?;
        let schema = reader.metadata().file_metadata().schema();
        let columns = schema.get_fields();
        let all: Vec<_> = columns.iter().map(|column| column.name()).collect();
        let fitting: Vec<_> =
            columns.iter().filter(|column| fits(column)).map(|c| c.name()).collect();
        let choose = "FILE:COLUMN, to choose a column";
        let words = ["a column of this kind", choose, "a column", "no columns"];
        let find = |name: &str| columns.iter().find(|column| column.name() == name);
        let (name, column) = chosen(place, part, words, &fitting, &all, find)?;
        let only =
            Type::group_type_builder(schema.name()).with_fields(vec![column.clone()]).build();
        let only = only.map_err(|e| damaged(&e))?;
        let mut number = 0;
        for at in 0..reader.num_row_groups() {
            let group = reader.get_row_group(at).map_err(|e| damaged(&e))?;
            check_pages(&*group, name, &mut left).map_err(|e| damaged(&e))?;
            for row in group.get_row_iter(Some(only.clone())).map_err(|e| damaged(&e))? {
                let row = row.map_err(|e| damaged(&e))?;
                let Some((_, field)) = row.get_column_iter().next() else {
                    return Err(damaged(&"a row without a value"));
                };
                take(number, field)?;
                number += 1;
            }
        }
        Ok(name.to_owned())
    };
    caught(read).map_err(|panic| damaged(&panic))?
}

/// The most values in all pages of a column, for each byte of the file. A table of one repeated row has up to 700.
const MOST_VALUES: u64 = 4096;

/// Refuses pages of a column that hold more values than the file can mean; `left` is what the pages of the file may still hold.
///
/// The library makes room for as many values as the head of a page names, and repetitions take nearly no space: a damaged file of a
/// kilobyte may name billions of values.
fn check_pages(group: &dyn RowGroupReader, column: &str, left: &mut u64) -> ParquetResult<()> {
    let chunks = group.metadata().columns().iter();
    let is_own = |chunk: &ColumnChunkMetaData| {
        chunk.column_path().parts().first().is_some_and(|root| root == column)
    };
    for (at, _) in chunks.enumerate().filter(|(_, chunk)| is_own(chunk)) {
        for page in group.get_column_page_reader(at)? {
            let page = page?;
            let values = u64::from(page.num_values());
            let fits = if page.is_dictionary_page() {
                values <= page.buffer().len() as u64 // each value takes a byte or more
            } else {
                let rest = left.checked_sub(values);
                *left = rest.unwrap_or(0);
                rest.is_some()
            };
            if !fits {
                let refusal = format!("a page of {values} values, more than the file can hold");
                return Err(ParquetError::General(refusal));
            }
        }
    }
    Ok(())
}

/// A file whose end is an error. The library skips fields behind the end of a file without an error, as many as a damaged header names.
struct Table(File);

/// What follows a place of the file.
struct Rest(BufReader<File>);

impl Length for Table {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Table {
    type T = Rest;

    fn get_read(&self, start: u64) -> ParquetResult<Rest> {
        self.0.get_read(start).map(Rest)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.0.get_bytes(start, length)
    }
}

impl Read for Rest {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.read(bytes)? {
            0 if !bytes.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}

fn kind(field: &Field) -> &'static str {
    match field {
        Field::Null => "nothing",
        Field::Str(_) => "a text",
        Field::ListInternal(_) => "a list",
        Field::Float16(_) | Field::Float(_) | Field::Double(_) => "a real number",
        Field::Group(_) | Field::MapInternal(_) => "several values",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Tables that pyarrow wrote (`tests/reference/hubness_parquet.py`).
    fn golden(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/parquet").join(name)
    }

    fn rows(name: &str, column: Option<&str>) -> Vec<Vec<f64>> {
        let array = matrix(name, column, &golden(name)).unwrap();
        let row = |at| {
            let mut row = vec![0.0; array.dim()];
            array.row_into(at, &mut row);
            row
        };
        (0..array.rows()).map(row).collect()
    }

    #[test]
    fn columns_of_lists_are_rows() {
        let want = [[3.0, 4.0], [0.0, -2.0], [1.0, 0.0]];
        assert_eq!(rows("images.parquet", None), want);
        assert_eq!(rows("texts.parquet", Some("text_embedding")), want);
        assert_eq!(rows("texts.parquet", Some("half")), want);
    }

    #[test]
    fn columns_of_texts_are_names() {
        let names = |file: &str, column| names(file, column, &golden(file)).unwrap();
        assert_eq!(names("texts.parquet", None), ["one", "two", "drei Hünde"]);
        assert_eq!(names("texts.parquet", Some("id")), ["7", "8", "9"]);
        assert_eq!(names("images.parquet", Some("image")), ["a.jpg", "b.jpg", "c.jpg"]);
    }

    #[test]
    fn what_is_no_such_column_is_one_line() {
        let line = |column| matrix("t", column, &golden("texts.parquet")).unwrap_err().to_string();
        let lists = r#""text_embedding", "half", "ragged", "missing""#;
        assert_eq!(line(None), format!("t: expected FILE:COLUMN, to choose a column, got {lists}"));
        assert_eq!(line(Some("ragged")), "t row 1: expected 1 numbers, got 2");
        assert_eq!(line(Some("missing")), "t row 1: expected a list of numbers, got nothing");
        assert_eq!(line(Some("caption")), "t row 0: expected a list of numbers, got a text");
        let all = r#""caption", "text_embedding", "half", "ragged", "missing", "id""#;
        assert_eq!(line(Some("x")), format!("t: expected a column among {all}, got \"x\""));
        let error = names("i", Some("image_embedding"), &golden("images.parquet")).unwrap_err();
        assert_eq!(error.to_string(), "i row 0: expected a text or a whole number, got a list");
    }

    /// A header of a page names two billion values where the file ends: found by the fuzz target `embeddings`.
    #[test]
    fn values_behind_the_end_are_not_skipped() {
        let error = matrix("t", None, &golden("no_end.parquet")).unwrap_err().to_string();
        assert!(error.starts_with("t: expected a whole Parquet table, got "), "{error}");
    }

    /// The head of a dictionary names two billion values, found by the fuzz target `embeddings`; a zero repeats 40 million times.
    #[test]
    fn a_small_file_of_many_values_is_refused() {
        for file in ["many_values.parquet", "one_row.parquet"] {
            let error = matrix("t", None, &golden(file)).unwrap_err().to_string();
            assert!(error.ends_with(" values, more than the file can hold"), "{file}: {error}");
        }
    }

    /// Every changed byte and every truncation gets an answer.
    #[test]
    fn a_damaged_table_is_one_line() {
        let whole = std::fs::read(golden("images.parquet")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let answer = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            matrix("t", None, &path).map(drop).map_err(|error| error.to_string())
        };
        for cut in 0..whole.len() {
            let line = answer(&whole[..cut]).unwrap_err();
            assert!(line.starts_with("t: expected a whole Parquet table, got "), "{cut}: {line}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            if let Err(line) = answer(&bytes) {
                assert_eq!(line.lines().count(), 1, "{at}: {line}");
            }
        }
    }
}
