//! NumPy's `.npy` files, memory-mapped, converted to f32 row by row.

use std::fs::File;
use std::path::Path;

use half::f16;
use memmap2::Mmap;

use super::Features;
use super::files::regular;
use super::npy_header::{Dtype, Header};
use crate::{Error, Result};

/// An array in a `.npy` file: versions 1–3, C order, little-endian.
///
/// The file stays mapped; nothing is copied until a row is asked for. Before that the header, the shape's product and
/// the length of the file have been checked against each other, so that no size in a header is ever trusted.
///
/// ```no_run
/// use itm_core::data::Npy;
///
/// let regions = Npy::open("precomp/train_ims.npy")?; // [29000, 36, 2048]: 8.6 GB, not read
/// let mut row = vec![0.0; regions.row_len()];
/// regions.row_into(17, &mut row)?; // image 17: 36 · 2048 values
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Npy {
    place: String,
    bytes: Bytes,
    header: Header,
    scale: Option<Vec<f32>>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    fn all(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Npy {
    /// Maps a file and checks its header.
    ///
    /// # Errors
    /// A missing or truncated file, trailing bytes, big-endian or Fortran order, a dtype that is not among [`Dtype`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let place = path.display().to_string();
        let file = File::open(path).map_err(Error::io(path))?;
        let meta = file.metadata().map_err(Error::io(path))?;
        regular(path, &meta)?;
        if meta.len() == 0 {
            return Err(Error::invalid(place, "a .npy file", "an empty file")); // cannot be mapped
        }
        #[allow(unsafe_code, reason = "region features are larger than memory (COCO: 33 GB)")]
        // SAFETY: the map is read-only, private to this value and dropped with it, and its bytes are only ever read as
        // `u8`, for which every bit pattern is valid. What is left is another process that shortens the file meanwhile:
        // the system then ends this program (SIGBUS) rather than hand out wrong values. Data files are not written
        // while they are read; this is what every reader of mapped files assumes.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io(path))?;
        Self::new(place, Bytes::Mapped(map))
    }

    /// The same for bytes in memory; `place` stands in error lines.
    ///
    /// # Errors
    /// As [`Npy::open`].
    pub fn from_bytes(place: impl Into<String>, bytes: Vec<u8>) -> Result<Self> {
        Self::new(place.into(), Bytes::Owned(bytes))
    }

    fn new(place: String, bytes: Bytes) -> Result<Self> {
        let header = Header::parse(&place, bytes.all())?;
        Ok(Self { place, bytes, header, scale: None })
    }

    /// Real value = stored value × `scale[dimension]`, over the last dimension; one value serves all.
    ///
    /// # Errors
    /// If `scale` has neither one value nor as many as the last dimension, or one is not finite.
    pub fn with_scale(mut self, scale: Vec<f32>) -> Result<Self> {
        let width = self.header.shape.last().copied().unwrap_or(1);
        if scale.len() != width && scale.len() != 1 {
            let expected = format!("a scale of 1 or {width} values (the last dimension)");
            return Err(Error::invalid(&self.place, expected, scale.len()));
        }
        if let Some(i) = scale.iter().position(|v| !v.is_finite()) {
            let place = format!("scale of {}, value {i}", self.place);
            return Err(Error::invalid(place, "a finite number", scale[i]));
        }
        self.scale = Some(if scale.len() == 1 { vec![scale[0]; width] } else { scale });
        Ok(self)
    }

    /// The file's name as it stands in error lines.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The whole file, header included: what a hash is taken of.
    pub fn file_bytes(&self) -> &[u8] {
        self.bytes.all()
    }

    /// What a stored number is.
    pub fn dtype(&self) -> Dtype {
        self.header.dtype
    }

    /// The shape; empty for a single number.
    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// Length of the first dimension.
    pub fn rows(&self) -> usize {
        self.header.shape.first().copied().unwrap_or(1)
    }

    /// Numbers in a row: the product of the other dimensions.
    pub fn row_len(&self) -> usize {
        self.header.shape.iter().skip(1).product()
    }

    /// Bytes of the rows as f32, for memory estimates.
    pub fn f32_bytes(&self) -> u64 {
        self.rows() as u64 * self.row_len() as u64 * 4
    }

    /// The stored bytes of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_bytes(&self, row: usize) -> &[u8] {
        assert!(row < self.rows(), "row {row} of {} rows", self.rows());
        let size = self.row_len() * self.header.dtype.size();
        &self.file_bytes()[self.header.data..][row * size..][..size]
    }

    /// Converts a row.
    ///
    /// # Errors
    /// If a value is NaN or infinite as f32: names row and column.
    ///
    /// # Panics
    /// If there is no such row, or `out` is not as long as one.
    pub fn row_into(&self, row: usize, out: &mut [f32]) -> Result<()> {
        let bytes = self.row_bytes(row);
        assert_eq!(out.len(), self.row_len(), "out for a row of {:?}", self.shape());
        convert(self.header.dtype, bytes, out);
        if let Some(scale) = &self.scale {
            for part in out.chunks_mut(scale.len().max(1)) {
                part.iter_mut().zip(scale).for_each(|(v, s)| *v *= s);
            }
        }
        match out.iter().position(|v| !v.is_finite()) {
            None => Ok(()),
            Some(column) => {
                let place = format!("{} row {row}, column {column}", self.place);
                Err(Error::invalid(place, "a finite number", out[column]))
            }
        }
    }

    /// The whole array as `[rows, dim]`.
    ///
    /// # Errors
    /// If it is not of rank 2, has no rows or columns, or a value is not finite.
    pub fn to_features(&self) -> Result<Features> {
        self.check_rank(&[2])?;
        let (rows, dim) = (self.rows(), self.row_len());
        let mut values = vec![0.0; rows * dim]; // at most 4 times the file: the header was checked
        for (row, out) in values.chunks_exact_mut(dim).enumerate() {
            self.row_into(row, out)?;
        }
        Ok(Features { dim, values })
    }

    /// All values, whatever the rank: for scales and other small files.
    ///
    /// # Errors
    /// If a value is not finite.
    pub fn to_vec(&self) -> Result<Vec<f32>> {
        let (rows, len) = (self.rows(), self.row_len());
        let mut values = vec![0.0; rows * len];
        for (row, out) in values.chunks_exact_mut(len.max(1)).enumerate() {
            self.row_into(row, out)?;
        }
        Ok(values)
    }

    /// The values of an integer array of rank 1, none of them negative: row numbers.
    ///
    /// # Errors
    /// If rank or dtype differ, or a value is negative: names the row.
    pub fn to_indices(&self) -> Result<Vec<usize>> {
        self.check_rank(&[1])?;
        let size = self.header.dtype.size();
        let integer: fn(&[u8]) -> i64 = match self.header.dtype {
            Dtype::I8 => |b| i64::from(b[0] as i8),
            Dtype::U8 => |b| i64::from(b[0]),
            Dtype::I32 => |b| i64::from(i32::from_le_bytes(array(b))),
            Dtype::I64 => |b| i64::from_le_bytes(array(b)),
            other => return Err(Error::invalid(&self.place, "integers", other)),
        };
        let data = &self.file_bytes()[self.header.data..];
        data.chunks_exact(size)
            .enumerate()
            .map(|(row, bytes)| {
                usize::try_from(integer(bytes)).map_err(|_| {
                    let place = format!("{} row {row}", self.place);
                    Error::invalid(place, "a row number", integer(bytes))
                })
            })
            .collect()
    }

    /// Refuses other ranks, and arrays without a number in them.
    pub(crate) fn check_rank(&self, ranks: &[usize]) -> Result<()> {
        let shape = self.shape();
        if !ranks.contains(&shape.len()) {
            let ranks: Vec<_> = ranks.iter().map(usize::to_string).collect();
            let expected = format!("an array of rank {}", ranks.join(" or "));
            let got = format!("rank {} (shape {shape:?})", shape.len());
            return Err(Error::invalid(&self.place, expected, got));
        }
        if shape.contains(&0) {
            let got = format!("shape {shape:?}");
            return Err(Error::invalid(&self.place, "an array that is not empty", got));
        }
        Ok(())
    }
}

fn convert(dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    let each = |out: &mut [f32], size: usize, one: fn(&[u8]) -> f32| {
        out.iter_mut().zip(bytes.chunks_exact(size)).for_each(|(v, b)| *v = one(b));
    };
    match dtype {
        Dtype::F16 => each(out, 2, |b| f16::from_le_bytes(array(b)).to_f32()),
        Dtype::F32 => each(out, 4, |b| f32::from_le_bytes(array(b))),
        Dtype::F64 => each(out, 8, |b| f64::from_le_bytes(array(b)) as f32),
        Dtype::I8 => each(out, 1, |b| f32::from(b[0] as i8)),
        Dtype::U8 => each(out, 1, |b| f32::from(b[0])),
        Dtype::I32 => each(out, 4, |b| i32::from_le_bytes(array(b)) as f32),
        Dtype::I64 => each(out, 8, |b| i64::from_le_bytes(array(b)) as f32),
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes); // chunks_exact(N) gave it
    array
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::PathBuf;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Written by NumPy: `tests/reference/npy_files.py`.
    fn golden(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/npy").join(format!("{name}.npy"))
    }

    fn bytes_of(name: &str) -> Vec<u8> {
        std::fs::read(golden(name)).unwrap()
    }

    fn refused(bytes: Vec<u8>) -> String {
        let line = Npy::from_bytes("x.npy", bytes).unwrap_err().to_string();
        assert!(line.starts_with("x.npy") && !line.contains('\n'), "{line}");
        line
    }

    /// A version 1 file with this dictionary.
    fn with_header(dictionary: &str, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(dictionary.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00".as_slice(), &length, dictionary.as_bytes(), data].concat()
    }

    #[derive(serde::Deserialize)]
    struct Want {
        shape: Vec<usize>,
        values: Vec<f64>,
    }

    #[test]
    fn golden_files_of_numpy() {
        let wants = include_str!("../../tests/golden/npy/values.json");
        let wants: HashMap<String, Want> = serde_json::from_str(wants).unwrap();
        let refused = ["fortran", "big_endian", "overflow"];
        let mut read = 0;
        for (name, want) in wants.iter().filter(|(name, _)| !refused.contains(&name.as_str())) {
            let npy = Npy::open(golden(name)).unwrap();
            assert_eq!(npy.shape(), want.shape, "{name}");
            let values: Vec<f32> = want.values.iter().map(|&v| v as f32).collect();
            assert_eq!(npy.to_vec().unwrap(), values, "{name}");
            let owned = Npy::from_bytes("x", bytes_of(name)).unwrap();
            assert_eq!(owned.to_vec().unwrap(), values, "{name}, in memory");
            read += 1;
        }
        assert_eq!(read, 12);
    }

    #[test]
    fn the_map_serves_any_row_and_drops() {
        let npy = Npy::open(golden("regions")).unwrap();
        let mut row = [0.0; 12];
        npy.row_into(1, &mut row).unwrap();
        assert_eq!(row, [12., 13., 14., 15., 16., 17., 18., 19., 20., 21., 22., 23.]);
        assert_eq!((npy.rows(), npy.row_len(), npy.f32_bytes()), (2, 12, 96));
        assert_eq!(npy.row_bytes(1)[..4], 12f32.to_le_bytes());
        assert_eq!(npy.file_bytes(), bytes_of("regions"));
        let line = npy.to_features().unwrap_err().to_string();
        assert!(
            line.ends_with("expected an array of rank 2, got rank 3 (shape [2, 3, 4])"),
            "{line}"
        );
        drop(npy);
        let features = Npy::open(golden("f16")).unwrap().to_features().unwrap();
        assert_eq!((features.rows(), features.row(1)[2]), (2, 3.140625));
    }

    #[test]
    fn scales_belong_to_the_last_dimension() {
        let npy = || Npy::open(golden("i8")).unwrap();
        let scaled = npy().with_scale(vec![0.5, 2.0, 1.0]).unwrap().to_vec().unwrap();
        assert_eq!(scaled, [-64.0, -2.0, 0.0, 0.5, 4.0, 127.0]);
        let scaled = npy().with_scale(vec![0.5]).unwrap().to_vec().unwrap();
        assert_eq!(scaled, [-64.0, -0.5, 0.0, 0.5, 1.0, 63.5]);
        let line = npy().with_scale(vec![1.0; 2]).unwrap_err().to_string();
        assert!(line.ends_with("expected a scale of 1 or 3 values (the last dimension), got 2"));
        assert!(npy().with_scale(vec![1.0, f32::NAN, 1.0]).is_err());
        let regions = Npy::open(golden("regions")).unwrap();
        let doubled = regions.with_scale(vec![1.0, 1.0, 1.0, 2.0]).unwrap().to_vec().unwrap();
        assert_eq!(doubled[..8], [0., 1., 2., 6., 4., 5., 6., 14.]);
    }

    #[test]
    fn indices_are_integers_not_below_zero() {
        let indices = |name| Npy::open(golden(name)).unwrap().to_indices();
        assert_eq!(indices("i64").unwrap(), [0, 1, 1, 1 << 40]);
        assert_eq!(indices("i32").unwrap(), [0, 2, 1, (1 << 31) - 1]);
        assert_eq!(indices("u8").unwrap(), [0, 1, 128, 255]);
        assert!(indices("f32").unwrap_err().to_string().contains("rank 1"));
        let dictionary = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}";
        let npy = Npy::from_bytes("x", with_header(dictionary, &[1, 0, 0, 0, 255, 255, 255, 255]));
        let line = npy.unwrap().to_indices().unwrap_err().to_string();
        assert_eq!(line, "x row 1: expected a row number, got -1");
    }

    #[test]
    fn what_is_not_finite_has_row_and_column() {
        let line = Npy::open(golden("nan")).unwrap().to_features().unwrap_err().to_string();
        assert!(
            line.ends_with("nan.npy row 1, column 1: expected a finite number, got NaN"),
            "{line}"
        );
        let line = Npy::open(golden("overflow")).unwrap().to_vec().unwrap_err().to_string();
        assert!(line.ends_with("row 0, column 1: expected a finite number, got inf"), "{line}");
    }

    #[test]
    fn refusals_say_expected_and_got() {
        let cut = |name: &str, length| bytes_of(name)[..length].to_vec();
        for (bytes, want) in [
            (bytes_of("fortran"), "expected C order (rows together), got Fortran order"),
            (bytes_of("big_endian"), "expected a little-endian dtype, got big-endian \">f4\""),
            (bytes_of("unicode"), "f64, i8, u8, i32, i64, got \"<U2\""),
            (cut("f32", 151), "expected 152 bytes (128 of header, f32 [2, 3]), got 151 bytes"),
            ([bytes_of("f32"), vec![0]].concat(), "expected 152 bytes"),
            (cut("f32", 90), "expected at least 128 bytes of header, got 90 bytes"),
            (cut("f32", 7), "at least 10 bytes of header"),
            (cut("version2", 11), "at least 12 bytes of header"),
            (
                b"PK\x03\x04 a zip".to_vec(),
                "expected a .npy file (93 'NUMPY'), got a file beginning",
            ),
            (b"\x93NUMPY\x04\x00".to_vec(), "version 1, 2 or 3, got version 4.0"),
            (Vec::new(), "expected a .npy file"),
        ] {
            let line = refused(bytes);
            assert!(line.contains(want), "{line}");
        }
        assert!(
            Npy::open(golden("no_such_file")).unwrap_err().to_string().contains("No such file")
        );
        assert!(
            Npy::open(env!("CARGO_MANIFEST_DIR")).unwrap_err().to_string().contains("a folder")
        );
    }

    #[test]
    fn no_size_in_a_header_is_trusted() {
        for shape in
            ["(1152921504606846976,)", "(4294967296, 4294967296)", "(99999999999999999999999,)"]
        {
            let dictionary =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
            refused(with_header(&dictionary, &[0; 16]));
        }
        // Nothing to read, but products of the other dimensions overflow.
        let shape = "(0, 4294967296, 4294967296)";
        refused(with_header(
            &format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"),
            &[],
        ));
        // Many rows of nothing must not be walked through.
        let shape = "(1152921504606846976, 0)";
        let bytes = with_header(
            &format!("{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}}}"),
            &[],
        );
        assert!(Npy::from_bytes("x", bytes).unwrap().to_vec().unwrap().is_empty());
        let mut long = bytes_of("version2");
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(refused(long).contains("a header of at most 10000 bytes, got 4294967295 bytes"));
    }

    #[test]
    fn headers_are_read_as_numpy_writes_them() {
        for header in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }        \n",
            "{\"shape\":(1,2),\"fortran_order\":True,\"descr\":\"<f4\"}"
                .replace("True", "False")
                .as_str(),
            " { 'shape' : ( 1L , 2L , ) , 'descr' : '<f4' , 'fortran_order' : False }",
        ] {
            let npy = Npy::from_bytes("x", with_header(header, &[0; 8])).unwrap();
            assert_eq!(npy.shape(), [1, 2], "{header}");
        }
        for (header, want) in [
            ("{'descr': '<f4', 'fortran_order': False}", "expected shape, got no such key"),
            ("{'descr': '<f4', 'descr': '<f4'}", "expected each key once, got a second descr"),
            ("{'descr': '<f4', 'order': 1}", "expected the keys descr"),
            ("{'descr': '<f4' 'shape'", "expected }, got"),
            ("{'descr': '<f4', 'fortran_order': 1}", "expected False, got"),
            ("{'descr': [('a', '<f4')]}", "expected a string, got"),
            ("{'shape': (-1,)}", "expected a dimension, got \"-1,)}\""),
            ("{'shape': (1,), } x", "expected nothing after the dictionary, got \"x\""),
            ("", "expected {, got \"\""),
        ] {
            let line = refused(with_header(header, &[0; 8]));
            assert!(line.contains(want), "{header}: {line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in vec(any::<u8>(), 0..300), magic: bool) {
            let bytes = if magic { [b"\x93NUMPY\x01\x00".to_vec(), bytes].concat() } else { bytes };
            let _ = Npy::from_bytes("x", bytes).map(|npy| npy.to_vec());
        }

        #[test]
        fn any_dictionary_gives_an_answer(text in "[{}()',: 0-9a-z<|_FTL]{0,80}") {
            let _ = Npy::from_bytes("x", with_header(&text, &[0; 64])).map(|npy| npy.to_vec());
        }

        #[test]
        fn a_changed_file_gives_an_answer(
            which in 0..4usize, at in 0..134usize, byte: u8, cut in 0..176usize,
        ) {
            let mut bytes = bytes_of(["f16", "f32", "i8", "version3"][which]);
            bytes[at] = byte;
            if let Ok(npy) = Npy::from_bytes("x", bytes.clone()) {
                let _ = npy.to_vec();
            }
            bytes.truncate(cut.min(bytes.len() - 1));
            prop_assert!(Npy::from_bytes("x", bytes).is_err() || at < 128);
        }
    }
}
