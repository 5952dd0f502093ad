//! Compares with `tests/reference/clip.py`: rows of `transformers` and of sentence-transformers.

use std::fs;

use super::*;
use crate::encoders::hf::tests::{Golden, close};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/clip").join(name)
}

fn open(folder: &Path) -> Result<Embedder> {
    Embedder::open(folder, None, Precision::F32, &Device::flex())
}

/// The pictures and captions of the goldens.
#[test]
fn golden_rows_of_dual_encoders() {
    for (name, width) in [("clip", 12), ("siglip", 24)] {
        let values = Golden::open(&golden(&format!("{name}.safetensors")));
        let model = open(&golden(name)).unwrap();
        assert_eq!([model.image_width(), model.text_width()], [width; 2]);
        assert_eq!(model.transform("pictures").unwrap().size, 12);
        let [rows, none] = model.images(values.values("pixels").into(), 12, false);
        close("image.unit", &rows, values.values("image.unit"), 1.0, 2e-6);
        assert!(none.is_empty());
        let [again, patches] = model.images(values.values("pixels").into(), 12, true);
        close("with patches", &again, &rows, 1.0, 1e-6);
        assert_eq!(patches.len(), 3 * 9 * 24);
        let captions = ["A dog runs.", "the man and the woman", "a hat!"];
        let (rows, cut) = model.captions(&captions, 2, |_| ()).unwrap();
        close("text.unit", &rows, values.values("text.unit"), 1.0, 2e-6);
        assert_eq!(cut, 0);
        close("one batch", &model.sentences(&captions).unwrap(), &rows, 1.0, 1e-6);
        assert_eq!(model.about["architecture"], name);
    }
}

/// Captions that are sorted by length come back in their own order, whatever the batch.
#[test]
fn golden_sentences_in_batches() {
    let text = fs::read_to_string(golden("sentence.json")).unwrap();
    let values: Value = serde_json::from_str(&text).unwrap();
    let sentences: Vec<String> = serde_json::from_value(values["sentences"].clone()).unwrap();
    let rows: Vec<Vec<f32>> = serde_json::from_value(values["rows"].clone()).unwrap();
    let model = open(&golden("sentence")).unwrap();
    for batch in [1, 2, 4, 32] {
        let mut heard = 0;
        let (got, cut) = model.captions(&sentences, batch, |read| heard += read).unwrap();
        close(&format!("batch {batch}"), &got, &rows.concat(), 1.0, 2e-6);
        assert_eq!((cut, heard), (1, 5)); // the last sentence has more pieces than the model reads
    }
    let many: Vec<&str> = (0..Embedder::SORTED + 3).map(|k| &*sentences[k % 5]).collect();
    let (got, _) = model.captions(&many, 64, |_| ()).unwrap();
    for (k, row) in got.chunks_exact(16).enumerate() {
        close(&format!("caption {k}"), row, &rows[k % 5], 1.0, 2e-6);
    }
    assert!(model.captions::<&str>(&[], 2, |_| ()).unwrap().0.is_empty());
}

/// open_clip has the word pieces of OpenAI in itself, and needs no files of them.
#[test]
fn open_clip_names_word_pieces_that_fit() {
    let error = open(&golden("open_clip")).unwrap_err().to_string();
    let files = "vocab.json and merges.txt: CLIP's own fit, from openai/clip-vit-base-patch32";
    assert!(error.ends_with(&format!("open_clip: expected {files}, got none of them")), "{error}");
}

/// DINOv2: the class row beside the mean of the patches, from the golden states.
#[test]
fn golden_rows_of_a_vit() {
    let (values, own) = (Golden::open(&golden("dinov2.safetensors")), tempfile::tempdir().unwrap());
    for file in ["config.json", "model.safetensors"] {
        fs::copy(golden("dinov2").join(file), own.path().join(file)).unwrap();
    }
    let pictures = golden("clip").join("preprocessor_config.json");
    fs::copy(pictures, own.path().join("preprocessor_config.json")).unwrap();
    let model = open(own.path()).unwrap();
    let [rows, _] = model.images(values.values("pixels").into(), 12, false);
    let states = values.values("states").chunks_exact(10 * 24);
    for (row, states) in rows.chunks_exact(48).zip(states) {
        let mean: Vec<f32> =
            (0..24).map(|i| (1..10).map(|p| states[24 * p + i]).sum::<f32>() / 9.0).collect();
        for (half, want) in row.chunks_exact(24).zip([&states[..24], &mean]) {
            let length = want.iter().map(|x| x * x).sum::<f32>().sqrt() * 2f32.sqrt();
            let want: Vec<f32> = want.iter().map(|x| x / length).collect();
            close("row", half, &want, 1.0, 3e-6);
        }
    }
    let line = |error: Error| error.to_string().replace(&*own.path().display().to_string(), "DIR");
    let error = line(model.check_captions("sentences").unwrap_err());
    assert_eq!(error, "sentences: expected a model that reads captions, got DIR");
    let config = fs::read_to_string(own.path().join("config.json")).unwrap();
    let grey = config.replace("\"num_channels\": 3", "\"num_channels\": 1");
    fs::write(own.path().join("config.json"), grey).unwrap();
    let error = line(open(own.path()).unwrap_err());
    assert_eq!(error, "DIR/config.json: num_channels: expected 3, as pictures have, got 1");
    fs::write(own.path().join("config.json"), "{\"model_type\": \"blip\"}").unwrap();
    let error = line(open(own.path()).unwrap_err());
    let kinds =
        "CLIP, SigLIP (transformers or open_clip), ViT, DINOv2, BERT or sentence-transformers";
    assert_eq!(error, format!("DIR/config.json: model_type: expected {kinds}, got \"blip\""));
    // Relatives of CLIP and SigLIP: what they are, and what is read instead.
    for (kind, about) in [
        (
            "siglip2",
            ": SigLIP 2 of any resolution (NaFlex); SigLIP 2 of one resolution says siglip",
        ),
        ("clip_vision_model", ": one tower without the other"),
        ("chinese_clip", ": another family"),
    ] {
        let config = format!("{{\"model_type\": \"{kind}\"}}");
        fs::write(own.path().join("config.json"), config).unwrap();
        let error = line(open(own.path()).unwrap_err());
        let want =
            "DIR/config.json: model_type: expected \"clip\" or \"siglip\", a model of two towers";
        assert_eq!(error, format!("{want}, got \"{kind}\"{about}"));
    }
    let error = open(&golden("sentence")).unwrap().transform("pictures").unwrap_err().to_string();
    assert!(error.starts_with("pictures: expected a model that reads pictures, got "), "{error}");
    let error = Embedder::check_rows("DIR", &[1.0, f32::NAN]).unwrap_err().to_string();
    assert_eq!(error, "DIR: expected finite values of the model, got NaN");
}
