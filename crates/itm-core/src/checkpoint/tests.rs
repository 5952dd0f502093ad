use std::fs;

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use itm_kernels::{AdamOptions, AdamW, Linear};

use super::*;

const KIND: &str = "test 1";

/// A linear map from 2 to 3 inputs after three updates; only one of them changed the bias.
fn trained(seed: u64) -> (Linear, AdamW) {
    let device = Device::flex().autodiff();
    let mut layer = Linear::seeded(2, 3, seed, &device);
    let mut adam = AdamW::new(AdamOptions::default());
    for step in 0..3 {
        let x = Tensor::<2>::from_floats([[0.3, -0.2], [1.0, 0.1]], &device);
        let y = if step == 1 { layer.forward(x) } else { x.matmul(layer.weight.val()) };
        let loss = (y.clone() * y).sum();
        let grads = GradientsParams::from_grads(loss.backward(), &layer);
        layer = adam.step(layer, grads, 0.1).0;
    }
    (layer, adam)
}

fn written(write: impl FnOnce(&mut CheckpointWriter)) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let mut writer = CheckpointWriter::default();
    write(&mut writer);
    fs::write(&path, writer.contents(KIND).unwrap()).unwrap();
    (folder, path)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_module_and_its_optimiser_come_back_bit_for_bit() {
    let (layer, adam) = trained(1);
    let (_folder, path) = written(|w| {
        w.module("layer", &layer);
        w.optimizer(&adam, &layer);
        w.values("numbers", &[2], &[f64::NAN, 1e-300]);
        w.values("integers", &[1], &[i64::MIN]);
    });
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    let (other, _) = trained(2);
    let back = reader.module("layer", other).unwrap();
    assert_eq!(bits(&host(back.weight.val())), bits(&host(layer.weight.val())));
    assert_eq!(bits(&host(back.bias.val())), bits(&host(layer.bias.val())));
    assert!(back.weight.val().is_require_grad(), "a parameter that learns goes on learning");
    let optimizer = reader.optimizer(*adam.options(), &back, 3).unwrap();
    let moments = |a: &AdamW| a.moments().collect::<Vec<_>>();
    assert_eq!(moments(&optimizer), moments(&adam));
    let updates: Vec<_> = moments(&adam).into_iter().map(|m| m.unwrap().steps).collect();
    assert_eq!((updates, optimizer.steps()), (vec![3, 1], 3));
    let e = reader.optimizer(*adam.options(), &back, 2).unwrap_err().to_string();
    assert!(e.ends_with("optimizer.updates: expected 0 to 2 updates, got 3"), "{e}");
    let numbers = reader.values::<f64>("numbers", &[2]).unwrap();
    assert!(numbers[0].is_nan() && numbers[1] == 1e-300, "{numbers:?}");
    assert_eq!(reader.values::<i64>("integers", &[1]).unwrap(), [i64::MIN]);
}

/// A file written by hand by the rules of the format: eight bytes of length, a header, the values.
#[test]
fn golden_file() {
    let header = concat!(
        r#"{"__metadata__":{"format":"test 1"},"#,
        r#""a":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},"#,
        r#""n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#,
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend((-3i64).to_le_bytes());
    bytes.extend([0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x00, 0x80]); // 1.5, -0
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hand.safetensors");
    fs::write(&path, &bytes).unwrap();
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    assert_eq!(bits(&reader.values("a", &[2, 1]).unwrap()), bits(&[1.5, -0.0]));
    assert_eq!(reader.values::<i64>("n", &[1]).unwrap(), [-3]);

    let mut writer = CheckpointWriter::default();
    writer.values("a", &[2, 1], &[1.5f32, -0.0]);
    writer.values("n", &[1], &[-3i64]);
    let ours = writer.contents(KIND).unwrap();
    assert_eq!(ours[ours.len() - 16..], bytes[bytes.len() - 16..], "values of eight bytes first");
}

#[test]
fn no_update_is_no_moment_and_an_entry_too_many_is_named() {
    let (layer, adam) = trained(1);
    let (_folder, path) = written(|w| {
        w.optimizer(&AdamW::new(*adam.options()), &layer);
        w.values("left over", &[1], &[0.5f32]);
    });
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    assert_eq!(reader.optimizer(*adam.options(), &layer, 0).unwrap().moments().count(), 0);
    let line = reader.nothing_else().unwrap_err().to_string();
    let want = "left over: expected only entries of the model, got a foreign entry";
    assert!(line.ends_with(want), "{line}");
    reader.values::<f32>("left over", &[1]).unwrap();
    reader.nothing_else().unwrap();
}

#[test]
fn what_does_not_fit_is_named_in_one_line() {
    let (layer, adam) = trained(1);
    let (folder, path) = written(|w| {
        w.module("layer", &layer);
        w.optimizer(&adam, &layer);
    });
    let device = Device::flex();
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    let wide = Linear::seeded(2, 4, 1, &device);
    let e = reader.module("layer", wide.clone()).unwrap_err().to_string();
    let want = "x.safetensors: layer.weight: expected F32 [2, 4], got F32 [2, 3]";
    assert!(e.ends_with(want), "{e}");
    let e = reader.module("other", layer.clone()).unwrap_err().to_string();
    assert!(e.ends_with("other.weight: expected F32 [2, 3], got nothing"), "{e}");
    let e = reader.optimizer(*adam.options(), &wide, 3).unwrap_err().to_string();
    assert!(e.contains("optimizer.0.first: expected F32 [8], got F32 [6]"), "{e}");
    let e = CheckpointReader::open(&path, "test 2").unwrap_err().to_string();
    assert!(e.ends_with("expected test 2, got test 1"), "{e}");

    let bytes = fs::read(&path).unwrap();
    for length in [0, 5, 100, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        let e = CheckpointReader::open(&path, KIND).unwrap_err().to_string();
        assert!(e.contains("x.safetensors") && !e.contains('\n'), "{length} bytes: {e}");
    }
    let missing = folder.path().join("none.safetensors");
    assert!(
        CheckpointReader::open(&missing, KIND)
            .unwrap_err()
            .to_string()
            .contains("none.safetensors")
    );
}

#[test]
fn shapes_that_no_memory_holds_are_refused() {
    for shape in [[usize::MAX, 2], [1 << 63, 2]] {
        let mut writer = CheckpointWriter::default();
        writer.values::<f32>("wide", &shape, &[]);
        let e = writer.contents(KIND).unwrap_err().to_string();
        assert_eq!(e, format!("test 1: expected values of shape {shape:?} for wide, got 0 bytes"));
    }
}

#[test]
fn moments_that_cannot_be_are_refused() {
    let (layer, adam) = trained(1);
    for [first, second] in [[0.0, f32::NAN], [0.0, -1.0], [0.0, f32::INFINITY], [f32::NAN, 0.0]] {
        let (_folder, path) = written(|w| {
            for (i, n) in [6, 3].into_iter().enumerate() {
                w.values(&format!("optimizer.{i}.first"), &[n], &vec![first; n]);
                w.values(&format!("optimizer.{i}.second"), &[n], &vec![second; n]);
            }
            w.values("optimizer.updates", &[2], &[3i64, 3]);
        });
        let reader = CheckpointReader::open(&path, KIND).unwrap();
        let e = reader.optimizer(*adam.options(), &layer, 3).unwrap_err().to_string();
        let want = "optimizer.0.second: expected finite moments, these at least 0, got others";
        assert!(e.ends_with(want), "{first}, {second}: {e}");
    }
}

#[test]
fn negative_counts_are_refused() {
    let (layer, adam) = trained(1);
    let (_folder, path) = written(|w| {
        for (i, n) in [6, 3].into_iter().enumerate() {
            w.values(&format!("optimizer.{i}.first"), &[n], &vec![0.0f32; n]);
            w.values(&format!("optimizer.{i}.second"), &[n], &vec![0.0f32; n]);
        }
        w.values("optimizer.updates", &[2], &[3i64, -1]);
    });
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    let e = reader.optimizer(*adam.options(), &layer, 3).unwrap_err().to_string();
    assert!(e.ends_with("optimizer.updates: expected 0 to 3 updates, got -1"), "{e}");
}

/// A frozen parameter takes no room; older files have zeros for it.
#[test]
fn a_parameter_without_updates_has_no_moments() {
    let (layer, adam) = trained(1);
    let weight = adam.moments().next().unwrap();
    let some = AdamW::restore(*adam.options(), &layer, 3, vec![weight.clone(), None]);
    let (_folder, path) = written(|w| w.optimizer(&some, &layer));
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    assert!(reader.has("optimizer.0.first") && !reader.has("optimizer.1.first"));
    let back = reader.optimizer(*adam.options(), &layer, 3).unwrap();
    assert_eq!(back.moments().collect::<Vec<_>>(), [weight, None]);
    reader.nothing_else().unwrap();
    let (_folder, path) = written(|w| {
        for (i, n) in [6, 3].into_iter().enumerate() {
            w.values(&format!("optimizer.{i}.first"), &[n], &vec![0.0f32; n]);
            w.values(&format!("optimizer.{i}.second"), &[n], &vec![0.0f32; n]);
        }
        w.values("optimizer.updates", &[2], &[0i64, 0]);
    });
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    let back = reader.optimizer(*adam.options(), &layer, 3).unwrap();
    assert_eq!(back.moments().collect::<Vec<_>>(), [None, None]);
    reader.nothing_else().unwrap();
}

/// A variant of an enum adds nothing to the names. So old files still fit after a module has become an enum.
#[test]
fn the_variant_of_an_enum_is_no_part_of_a_name() {
    use burn::module::Module;
    #[derive(Module, Debug)]
    enum Either {
        Linear(Linear),
    }
    let (layer, _) = trained(1);
    let (_folder, path) = written(|w| w.module("layer", &layer));
    let reader = CheckpointReader::open(&path, KIND).unwrap();
    let Either::Linear(back) = reader.module("layer", Either::Linear(trained(2).0)).unwrap();
    assert_eq!(bits(&host(back.weight.val())), bits(&host(layer.weight.val())));
    let (_folder, path) = written(|w| w.module("layer", &Either::Linear(layer.clone())));
    assert!(CheckpointReader::open(&path, KIND).unwrap().module("layer", back).is_ok());
}
