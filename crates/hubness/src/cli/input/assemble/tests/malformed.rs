use safetensors::tensor::Dtype;

use crate::cli::input::tests::files::{Folder, le, npy, npy_of, rows, tensors};

const UNIT: [[f32; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

#[test]
fn malformed_npy_files_are_one_line() {
    let good = rows(UNIT);
    let data = [0; 16];
    let long = npy_of("<f4", "False", "(1152921504606846976, 1152921504606846976)", &[]);
    let folder = Folder::with(&[
        ("good.npy", &good),
        ("fortran.npy", &npy_of("<f4", "True", "(2, 2)", &data)),
        ("big.npy", &npy_of(">f4", "False", "(2, 2)", &data)),
        ("object.npy", &npy_of("|O", "False", "(2, 2)", &data)),
        ("cut.npy", &good[..good.len() - 1]),
        ("head.npy", &good[..20]),
        ("empty.npy", b""),
        ("zip.npy", b"PK\x03\x04 and so on"),
        ("text.npy", b"0.5 0.5 0.7\n"),
        ("int.npy", &npy(&[2, 2], &[1i64, 2, 3, 4])),
        ("flat.npy", &npy(&[4], &[1f32, 2., 3., 4.])),
        ("none.npy", &npy_of("<f4", "False", "(0, 2)", &[])),
        ("long.npy", &long),
    ]);
    for (name, want) in [
        (
            "fortran.npy",
            "fortran.npy: expected C order (rows together: numpy.ascontiguousarray), got Fortran order",
        ),
        ("big.npy", "big.npy: expected a little-endian dtype, got big-endian \">f4\""),
        (
            "object.npy",
            "object.npy: expected a dtype among f16, f32, f64, i8, u8, i32, i64, got Python objects (dtype object)",
        ),
        ("cut.npy", "cut.npy: expected 144 bytes (128 of header, f32 [2, 2]), got 143 bytes"),
        ("head.npy", "head.npy: expected at least 128 bytes of header, got 20 bytes"),
        ("empty.npy", "empty.npy: expected a .npy, .npz or .safetensors file, got an empty file"),
        ("zip.npy", "zip.npy: expected a whole .npz archive, got one that is cut short or damaged"),
        (
            "text.npy",
            "text.npy: expected a .npy, .npz or .safetensors file, got text that begins \"0.5 0.5 0.7\"",
        ),
        ("int.npy", "int.npy: expected real numbers of f16, f32 or f64, or bytes, got i64"),
        ("flat.npy", "flat.npy: expected an array of 2 dimensions, got 1 (shape [4])"),
        ("none.npy", "none.npy: expected at least one row and one column, got 0 × 2"),
        (
            "long.npy",
            "long.npy: expected a shape that fits into memory, got shape [1152921504606846976, 1152921504606846976] of f32",
        ),
        ("missing.npy", "missing.npy: No such file or directory (os error 2)"),
    ] {
        assert_eq!(folder.refused(&folder.embeddings(name, "good.npy")), want);
        assert_eq!(folder.refused(&folder.embeddings("good.npy", name)), want);
        assert_eq!(folder.refused(&folder.matrix(name)), want);
    }
    let mut request = folder.embeddings("good.npy", "good.npy");
    request.images.as_mut().unwrap().part = Some("image".into());
    let want =
        "good.npy: expected a .safetensors file, got a .npy file, which has no part \"image\"";
    assert_eq!(folder.refused(&request), want);
}

#[test]
fn malformed_safetensors_files_are_one_line() {
    let v = le(&[1.0; 4]);
    let two = tensors(&[("x", Dtype::F32, &[2, 2], &v), ("y", Dtype::F32, &[2, 2], &v)]);
    let text = |header: &str| {
        let n = (header.len() as u64).to_le_bytes();
        [&n[..], header.as_bytes(), &v].concat()
    };
    let huge = r#"{"x":{"dtype":"F32","shape":[18446744073709551615,4],"data_offsets":[0,16]}}"#;
    let other = r#"{"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,16]}}"#;
    let folder = Folder::with(&[
        ("good.npy", &rows(UNIT)),
        ("two.safetensors", &two),
        ("cut.safetensors", &two[..two.len() - 1]),
        ("head.safetensors", &two[..20]),
        ("int.safetensors", &tensors(&[("x", Dtype::I64, &[1, 2], &[0; 16])])),
        ("flat.safetensors", &tensors(&[("x", Dtype::F32, &[4], &v)])),
        ("none.safetensors", &tensors(&[])),
        ("huge.safetensors", &text(huge)),
        ("other.safetensors", &text(other)),
        ("json.safetensors", &text("{\"x\": nothing}")),
    ]);
    for (name, want) in [
        (
            "two.safetensors",
            "two.safetensors: expected FILE:NAME, to choose a tensor, got \"x\", \"y\"",
        ),
        ("two.safetensors:z", "two.safetensors: expected a tensor among \"x\", \"y\", got \"z\""),
        (
            "cut.safetensors",
            "cut.safetensors: expected as many bytes as the header's tensors have (a file cut short?), got 159 bytes",
        ),
        (
            "head.safetensors",
            "head.safetensors: expected at least 128 bytes of header, got 20 bytes",
        ),
        (
            "int.safetensors",
            "int.safetensors:x: expected a dtype among F16, BF16, F32, F64, I8, U8, got I64",
        ),
        (
            "flat.safetensors",
            "flat.safetensors: expected a tensor of 2 dimensions, got none among \"x\"",
        ),
        (
            "flat.safetensors:x",
            "flat.safetensors:x: expected an array of 2 dimensions, got 1 (shape [4])",
        ),
        (
            "none.safetensors",
            "none.safetensors: expected a tensor of 2 dimensions, got none among no tensors",
        ),
        (
            "huge.safetensors",
            "huge.safetensors: expected a .safetensors file, got overflow computing buffer size from shape and/or element type",
        ),
        (
            "other.safetensors",
            "other.safetensors: expected a .safetensors file, got invalid shape, data type, or offset for tensor",
        ),
        (
            "json.safetensors",
            "json.safetensors: expected a .safetensors file, got invalid JSON in header: expected ident at line 1 column 8",
        ),
    ] {
        assert_eq!(folder.refused(&folder.embeddings(name, "good.npy")), want);
    }
}
