use safetensors::tensor::Dtype;

use super::super::super::tests::files::{Folder, le, npy, rows, tensors};
use super::super::super::{InputArgs, InputScores};

/// Bytes times their scale are the values that were rounded, in each file that has a scale.
#[test]
fn bytes_have_the_scale_beside_them() {
    let texts = rows([[1.0, 0.0], [0.0, 1.0]]);
    let (bytes, scale) = ([100i8, 10, -50, 40], [0.01f32, 0.1]); // [1, 1], [-0.5, 4]
    let image = npy(&[2, 2], &bytes);
    let stored: Vec<u8> = bytes.iter().map(|&b| b as u8).collect();
    let safe = tensors(&[
        ("image", Dtype::I8, &[2, 2], &stored),
        ("scale", Dtype::F32, &[2], &le(&scale)),
    ]);
    let two = tensors(&[
        ("image", Dtype::I8, &[2, 2], &stored),
        ("scale", Dtype::F32, &[1, 2], &le(&scale)),
    ]);
    let folder = Folder::with(&[
        ("image.npy", &image),
        ("image_scale.npy", &npy(&[1, 2], &scale)),
        ("t.npy", &texts),
        ("square.safetensors", &safe),
        ("i.safetensors", &two),
    ]);
    for (file, place) in [
        ("image.npy", "image.npy: bytes with the scale in image_scale.npy"),
        ("i.safetensors", "i.safetensors:image: bytes with the scale in i.safetensors:scale"),
    ] {
        let loaded = folder.loaded(&InputArgs { raw: true, ..folder.embeddings(file, "t.npy") });
        let InputScores::Embeddings(rows) = &loaded.scores else { panic!("embeddings") };
        for (got, want) in rows.images.iter().zip([1.0, 1.0, -0.5, 4.0]) {
            assert!((got - want).abs() < 1e-6, "{file}: {got}, want {want}");
        }
        assert_eq!(folder.notes(&loaded)[0], place);
    }
    let line = folder.refused(&folder.embeddings("square.safetensors", "t.npy"));
    let want =
        "square.safetensors:scale: expected shape [2, 1] for rows or [1, 2] for columns, got ";
    assert!(line.starts_with(want), "{line}");
}
