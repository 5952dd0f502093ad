use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use tempfile::TempDir;

use super::*;

fn write(path: &Path, tensors: &[(&str, Dtype, &[usize], &[u8])]) {
    let view = |dtype, shape: &[usize], bytes| TensorView::new(dtype, shape.to_vec(), bytes);
    let views = tensors.iter().map(|(name, t, s, b)| (*name, view(*t, s, b).unwrap()));
    let bytes = safetensors::serialize(views, None::<HashMap<String, String>>).unwrap();
    fs::write(path, bytes).unwrap();
}

fn error(folder: &Path) -> String {
    let message = WeightFiles::open(folder).unwrap_err().to_string();
    message.replace(&*folder.display().to_string(), "FOLDER")
}

/// 1.5 = 1.1₂: f16 0x3E00, bf16 0x3FC0 (the upper half of f32's 0x3FC00000); −2: f16 0xC000, bf16 0xC000.
#[test]
fn every_real_type_becomes_f32() {
    let folder = TempDir::new().unwrap();
    let f32s = [1.5f32, -2.0].map(f32::to_le_bytes).concat();
    let f64s = [1.5f64, -2.0].map(f64::to_le_bytes).concat();
    let tensors: [(&str, Dtype, &[usize], &[u8]); 5] = [
        ("a", Dtype::F32, &[2], &f32s),
        ("b", Dtype::F64, &[1, 2], &f64s),
        ("c", Dtype::F16, &[2], &[0x00, 0x3E, 0x00, 0xC0]),
        ("d", Dtype::BF16, &[2], &[0xC0, 0x3F, 0x00, 0xC0]),
        ("e", Dtype::U8, &[2], &[1, 2]),
    ];
    write(&folder.path().join("model.safetensors"), &tensors);
    let weights = WeightFiles::open(&folder).unwrap();
    assert_eq!(weights.names().collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    for name in ["a", "b", "c", "d"] {
        assert_eq!(weights.f32s(name).unwrap(), [1.5, -2.0], "{name}");
        assert!(weights.is_real(name));
    }
    assert_eq!(weights.shape("b"), Some(&[1, 2][..]));
    assert_eq!(weights.describe("c").unwrap(), "F16 [2]");
    assert!(!weights.is_real("e"));
    let got = weights.f32s("e").unwrap_err().to_string();
    assert!(got.ends_with(": e: expected F32, F16, BF16 or F64, got U8"), "{got}");
    assert!(weights.f32s("f").unwrap_err().to_string().ends_with("expected a tensor f, got none"));
}

#[test]
fn shards_are_one_set_of_tensors() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (one, two) = (1f32.to_le_bytes(), 2f32.to_le_bytes());
    write(&at("m-1.safetensors"), &[("a", Dtype::F32, &[1], &one)]);
    write(&at("m-2.safetensors"), &[("b", Dtype::F32, &[1], &two)]);
    let index = at("model.safetensors.index.json");
    let indexed = |map: &str| fs::write(&index, format!("{{\"weight_map\": {map}}}")).unwrap();

    indexed(r#"{"a": "m-1.safetensors", "b": "m-2.safetensors"}"#);
    let weights = WeightFiles::open(&folder).unwrap();
    assert_eq!((weights.f32s("a").unwrap(), weights.f32s("b").unwrap()), (vec![1.0], vec![2.0]));

    for (map, want) in [
        (
            r#"{"a": "m-1.safetensors", "c": "m-1.safetensors", "d": "m-2.safetensors"}"#,
            "expected its tensors in the shards, got none named c, d",
        ),
        (r#"{"a": "../m.safetensors"}"#, "names of files beside it, got ../m.safetensors"),
        (r#"{"a": "m-3.safetensors"}"#, "FOLDER/m-3.safetensors: No such file"),
        (r#"{"a": 1}"#, "expected an index of shards"),
    ] {
        indexed(map);
        assert!(error(folder.path()).contains(want), "{}", error(folder.path()));
    }
    write(&at("m-2.safetensors"), &[("a", Dtype::F32, &[1], &two)]);
    indexed(r#"{"a": "m-1.safetensors", "b": "m-2.safetensors"}"#);
    assert_eq!(error(folder.path()), "FOLDER: expected a tensor a in one file, got two");
}

/// A path of a file means that file, whatever its name and whatever other files are in the folder.
#[test]
fn one_file_is_opened_by_itself() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("any name.safetensors");
    let one = 1f32.to_le_bytes();
    write(&path, &[("a", Dtype::F32, &[1], &one)]);
    write(&folder.path().join("model.safetensors"), &[("b", Dtype::F32, &[1], &one)]);
    let weights = WeightFiles::open(&path).unwrap();
    assert_eq!(weights.names().collect::<Vec<_>>(), ["a"]);
    assert_eq!(weights.place(), path.display().to_string());
    let beside = WeightFiles::open(&folder).unwrap();
    assert_eq!(beside.names().collect::<Vec<_>>(), ["b"]);
    // A file with another ending counts as a PyTorch file.
    let renamed = folder.path().join("model.pt");
    fs::rename(&path, &renamed).unwrap();
    let line = WeightFiles::open(&renamed).unwrap_err().to_string();
    assert!(line.starts_with(&format!("{}: expected ", renamed.display())), "{line}");
}

#[test]
fn damaged_and_absent_files_are_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.safetensors");
    let all = "model.safetensors, model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json";
    assert_eq!(error(folder.path()), format!("FOLDER: expected {all}, got none of them"));
    assert!(error(&folder.path().join("none")).starts_with("FOLDER: No such file"));

    write(&path, &[("a", Dtype::F32, &[2], &[0; 8])]);
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let message = error(folder.path());
        assert!(message.starts_with("FOLDER/model.safetensors: expected "), "{cut}: {message}");
    }
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    assert!(error(folder.path()).contains("model.safetensors: expected "));
}

#[cfg(not(feature = "pytorch"))]
#[test]
fn a_pickled_file_says_what_reads_it() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../itm-core/tests/golden/hf/bert_bin");
    let want =
        "FOLDER/pytorch_model.bin: expected a build with the feature `pytorch`, got one without";
    assert_eq!(error(&golden), want);
}

/// `bert_bin` holds the weights of `bert` as f16, with `bert.` before each name.
#[cfg(feature = "pytorch")]
#[test]
fn golden_a_pickled_file_holds_the_same_weights() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../itm-core/tests/golden/hf");
    let safe = WeightFiles::open(golden.join("bert")).unwrap();
    let pickled = WeightFiles::open(golden.join("bert_bin")).unwrap();
    assert_eq!(pickled.names().count(), safe.names().count() + 1); // and the bias of a head
    for name in safe.names() {
        let old = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        let old = format!("bert.{}", old.replace("LayerNorm.bias", "LayerNorm.beta"));
        assert_eq!(pickled.shape(&old), safe.shape(name), "{old}");
        assert!(pickled.describe(&old).unwrap().starts_with("F16"));
        let rounded = safe.f32s(name).unwrap().into_iter().map(|x| half::f16::from_f32(x).to_f32());
        assert_eq!(pickled.f32s(&old).unwrap(), rounded.collect::<Vec<_>>(), "{old}");
    }
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("pytorch_model.bin"), b"PK no pickle").unwrap();
    assert!(error(folder.path()).contains("pytorch_model.bin: expected a PyTorch file of tensors"));
}

#[test]
fn open_clip_has_two_names_of_weights() {
    let folder = TempDir::new().unwrap();
    for name in ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"] {
        let weights = folder.path().join(name);
        fs::write(&weights, "").unwrap();
        assert_eq!(open_clip_weights(folder.path()), weights);
        fs::remove_file(weights).unwrap();
    }
    assert!(open_clip_weights(folder.path()).ends_with("open_clip_model.safetensors"));
}
