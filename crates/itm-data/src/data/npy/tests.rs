use std::collections::HashMap;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::data::npy_header;
use crate::data::tests::with_header;

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

#[derive(serde::Deserialize)]
struct Want {
    shape: Vec<usize>,
    values: Vec<f64>,
}

#[test]
fn golden_files_of_numpy() {
    let wants = include_str!("../../../tests/golden/npy/values.json");
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

/// A header that is written is read again. Its length is a multiple of 64, so that the values are aligned.
#[test]
fn a_written_header_is_read() {
    for (shape, length) in
        [(vec![3], 128), (vec![2, 3], 128), (vec![1; 17], 128), (vec![1; 30], 192)]
    {
        let count = shape.iter().product::<usize>();
        let header = npy_header("<f4", &shape);
        assert_eq!(header.len(), length, "{shape:?}");
        let values = (0..count).flat_map(|k| (k as f32).to_le_bytes());
        let file: Vec<u8> = header.into_iter().chain(values).collect();
        let npy = Npy::from_bytes("x", file).unwrap();
        assert_eq!((npy.shape(), npy.dtype()), (&shape[..], Dtype::F32));
        assert_eq!(npy.to_vec().unwrap(), (0..count).map(|k| k as f32).collect::<Vec<_>>());
    }
}

#[test]
fn the_map_serves_any_row_and_drops() {
    let npy = Npy::open(golden("regions")).unwrap();
    let mut row = [0.0; 12];
    npy.row_into(1, &mut row).unwrap();
    assert_eq!(row, [12., 13., 14., 15., 16., 17., 18., 19., 20., 21., 22., 23.]);
    assert_eq!((npy.rows(), npy.row_len()), (2, 12));
    assert_eq!(npy.row_bytes(1)[..4], 12f32.to_le_bytes());
    assert_eq!(npy.file_bytes(), bytes_of("regions"));
    let line = npy.check_rank(&[2]).unwrap_err().to_string();
    assert!(line.ends_with("expected an array of rank 2, got rank 3 (shape [2, 3, 4])"), "{line}");
    drop(npy);
}

/// Values that f32 does not have.
#[test]
fn f64_and_integers_keep_their_digits() {
    let read = |kind: &str, values: [[u8; 8]; 2]| {
        Npy::from_bytes("x", [npy_header(kind, &[2]), values.concat()].concat()).unwrap().to_f64()
    };
    let odd = [16_777_217.0, 1e300];
    assert_eq!(read("<f8", odd.map(f64::to_le_bytes)).unwrap(), odd);
    let long = [16_777_217, 1 << 40 | 1];
    assert_eq!(read("<i8", long.map(i64::to_le_bytes)).unwrap(), long.map(|k| k as f64));
    let f32s = |values: [f32; 2]| {
        let bytes = values.map(f32::to_le_bytes).concat();
        Npy::from_bytes("x", [npy_header("<f4", &[2]), bytes].concat()).unwrap().to_f64()
    };
    assert_eq!(f32s([0.5, 2.0]).unwrap(), [0.5, 2.0]);
    let nan = [f32s([0.5, f32::NAN]), read("<f8", [0.5, f64::NAN].map(f64::to_le_bytes))];
    for line in nan.map(|read| read.unwrap_err().to_string()) {
        assert_eq!(line, "x row 1: expected a finite number, got NaN");
    }
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
    // A size in a header allocates nothing.
    let none = Npy::from_bytes("x", npy_header("|u1", &[0, 1 << 60])).unwrap();
    assert!(none.with_scale(vec![0.5]).unwrap().to_vec().unwrap().is_empty());
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
    let line = Npy::open(golden("nan")).unwrap().to_vec().unwrap_err().to_string();
    assert!(line.ends_with("nan.npy row 1, column 1: expected a finite number, got NaN"), "{line}");
    let line = Npy::open(golden("overflow")).unwrap().to_vec().unwrap_err().to_string();
    assert!(line.ends_with("row 0, column 1: expected a finite number, got inf"), "{line}");
}

#[test]
fn refusals_say_expected_and_got() {
    let cut = |name: &str, length| bytes_of(name)[..length].to_vec();
    for (bytes, want) in [
        (
            bytes_of("fortran"),
            "expected C order (rows together: numpy.ascontiguousarray), got Fortran order",
        ),
        (bytes_of("big_endian"), "expected a little-endian dtype, got big-endian \">f4\""),
        (bytes_of("unicode"), "f64, i8, u8, i32, i64, got \"<U2\""),
        (cut("f32", 151), "expected 152 bytes (128 of header, f32 [2, 3]), got 151 bytes"),
        ([bytes_of("f32"), vec![0]].concat(), "expected 152 bytes"),
        (cut("f32", 90), "expected at least 128 bytes of header, got 90 bytes"),
        (cut("f32", 7), "at least 10 bytes of header"),
        (cut("version2", 11), "at least 12 bytes of header"),
        (
            b"PK\x03\x04 a zip".to_vec(),
            "expected a .npy file, got a zip archive (.npz, .pt, .zip?)",
        ),
        (b"\x93NUMPY\x04\x00".to_vec(), "version 1, 2 or 3, got version 4.0"),
        (Vec::new(), "expected a .npy file"),
    ] {
        let line = refused(bytes);
        assert!(line.contains(want), "{line}");
    }
    assert!(Npy::open(golden("no_such_file")).unwrap_err().to_string().contains("No such file"));
    assert!(Npy::open(env!("CARGO_MANIFEST_DIR")).unwrap_err().to_string().contains("a folder"));
}

#[test]
fn no_size_in_a_header_is_trusted() {
    for shape in
        ["(1152921504606846976,)", "(4294967296, 4294967296)", "(99999999999999999999999,)"]
    {
        let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        refused(with_header(&dictionary, &[0; 16]));
    }
    // Nothing to read, but products of the other dimensions overflow.
    let shape = "(0, 4294967296, 4294967296)";
    refused(with_header(
        &format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"),
        &[],
    ));
    // Reading must not loop over many empty rows.
    let shape = "(1152921504606846976, 0)";
    let bytes =
        with_header(&format!("{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}}}"), &[]);
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
        ("{'descr': '<f4', 'fortran_order': False}", "got missing field `shape`"),
        ("{'descr': '<f4', 'descr': '<f4'}", "got duplicate field `descr`"),
        (
            "{'descr': '<f4', 'order': 1}",
            "x.npy header: expected a dictionary of descr, fortran_order and shape, got unknown field `order`",
        ),
        ("{'descr': '<f4' 'shape'", "got expected `,` or `}` at line 1"),
        ("{'descr': '<f4', 'fortran_order': 1}", "expected a boolean at line 1"),
        ("{'descr': 1, 'fortran_order': False, 'shape': (1,)}", "i32, i64, got \"1\""),
        (
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
            "i32, i64, got a structured dtype (named fields)",
        ),
        (
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
            "x.npy: expected a dtype among f16, f32, f64, i8, u8, i32, i64, got Python objects (dtype object)",
        ),
        ("{'descr': '<fL4', 'fortran_order': False, 'shape': (1,)}", "i32, i64, got \"<fL4\""),
        ("{'shape': (-1,)}", "integer `-1`, expected usize"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", "got trailing characters"),
        ("", "got EOF while parsing"),
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
