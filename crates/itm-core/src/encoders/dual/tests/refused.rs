//! Folders and captions that are refused, each with one line.

use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use super::*;

/// The line about a folder whose configuration was changed; FOLDER stands for its path.
fn line(from: &str, file: &str, change: &dyn Fn(&mut Value)) -> String {
    let own = TempDir::new().unwrap();
    for entry in fs::read_dir(folder(from)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, own.path().join(path.file_name().unwrap())).unwrap();
    }
    let path = own.path().join(file);
    let mut config = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    fs::write(&path, config.to_string()).unwrap();
    let error = DualEncoder::open(own.path(), &Device::flex()).unwrap_err().to_string();
    error.replace(&*own.path().display().to_string(), "FOLDER")
}

#[test]
fn configurations_of_other_models_are_named() {
    let config = |change: &dyn Fn(&mut Value)| line("clip", "config.json", change);
    for (got, want) in [
        (
            config(&|c| c["model_type"] = json!("clip_vision_model")),
            "FOLDER/config.json: model_type: expected \"clip\" or \"siglip\", a model of two towers, \
             got \"clip_vision_model\": one tower without the other",
        ),
        (
            config(&|c| c["model_type"] = json!("siglip2")),
            "FOLDER/config.json: model_type: expected \"clip\" or \"siglip\", a model of two towers, \
             got \"siglip2\": SigLIP 2 of any resolution (NaFlex); SigLIP 2 of one resolution says siglip",
        ),
        (
            config(&|c| c["text_config"]["hidden_act"] = json!("swish")),
            "FOLDER/config.json: text_config: hidden_act: expected gelu, quick_gelu or \
             gelu_pytorch_tanh, got swish",
        ),
        (
            config(&|c| c["vision_config"]["hidden_size"] = json!(u64::MAX)),
            "FOLDER/config.json: vision_config: hidden_size: expected a whole number from 1 to \
             16777216, got 18446744073709551615",
        ),
        (
            config(&|c| c["vision_config"]["num_attention_heads"] = json!(5)),
            "FOLDER/config.json: vision_config: num_attention_heads: expected a divisor of the \
             width 24, got 5",
        ),
        (
            config(&|c| c["vision_config"]["num_channels"] = json!(1)),
            "FOLDER/config.json: vision_config: num_channels: expected 3, as pictures have, got 1",
        ),
        (
            config(&|c| c["text_config"]["eos_token_id"] = json!(554)),
            "FOLDER/config.json: text_config: eos_token_id: expected a whole number from 1 to 553, got 554",
        ),
    ] {
        assert_eq!(got, want);
    }
    let epsilon = config(&|c| c["vision_config"]["layer_norm_eps"] = json!(1e39));
    let want = "FOLDER/config.json: vision_config: layer_norm_eps: expected a number above 0, got ";
    assert!(epsilon.starts_with(want), "{epsilon}");
    let config = |change: &dyn Fn(&mut Value)| line("open_clip", "open_clip_config.json", change);
    let vision = |name: &'static str, value: Value| {
        config(&move |c| c["model_cfg"]["vision_cfg"][name] = value.clone())
    };
    let start = "FOLDER/open_clip_config.json: model_cfg: vision_cfg: ";
    for (got, want) in [
        (
            vision("layers", json!([3, 4, 6, 3])),
            "layers: expected one number: a vision transformer, got a list: a ResNet",
        ),
        (
            vision("timm_model_name", json!("vit_base")),
            "timm_model_name: expected CLIP's own transformers, got a tower of timm",
        ),
        (vision("pool_type", json!("avg")), "pool_type: expected tok, got avg"),
        (
            vision("norm_kwargs", json!({ "eps": 1e-6 })),
            "norm_kwargs: expected eps 1e-5, got 0.000001",
        ),
        (
            vision("act_kwargs", json!({ "approximate": "tanh" })),
            "act_kwargs: expected none, got some",
        ),
    ] {
        assert_eq!(got, format!("{start}{want}"));
    }
}

/// A configuration of another model: its tensors are not in the file.
#[test]
fn tensors_of_another_model_are_named() {
    let siglip = line("clip", "config.json", &|c| c["model_type"] = json!("siglip"));
    assert!(siglip.contains("projection_size") && siglip.lines().count() == 1, "{siglip}");
    let wide = line("clip", "config.json", &|c| c["projection_dim"] = json!(16));
    assert!(wide.contains("visual_projection.weight"), "{wide}");
    let deep = line("clip", "config.json", &|c| c["text_config"]["num_hidden_layers"] = json!(3));
    assert!(deep.contains("text_model.encoder.layers.2."), "{deep}");
    assert_eq!(deep.lines().count(), 1);
}

/// A tensor inside a block changes the block, so it must be read. Blocks beyond the configuration's are left out, as in `transformers`.
#[test]
fn unread_tensors_of_blocks_are_named() {
    let own = TempDir::new().unwrap();
    let file = own.path().join("open_clip_model.safetensors");
    let config = folder("open_clip").join("open_clip_config.json");
    fs::copy(config, own.path().join("open_clip_config.json")).unwrap();
    let open = |more: &[&str]| {
        let mut tensors = all(&folder("open_clip").join("open_clip_model.safetensors"));
        tensors.extend(more.iter().map(|name| (name.to_string(), (vec![1], vec![0.5]))));
        let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensors: Vec<(&str, &[usize], Vec<u8>)> = tensors
            .iter()
            .map(|(name, (shape, values))| (&**name, &**shape, bytes(values)))
            .collect();
        let views = tensors.iter().map(|(name, shape, bytes)| {
            (name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap())
        });
        fs::write(
            &file,
            safetensors::serialize(views, None::<std::collections::HashMap<String, String>>)
                .unwrap(),
        )
        .unwrap();
        DualEncoder::open(own.path(), &Device::flex())
    };
    let inside =
        ["visual.transformer.resblocks.1.ln_attn.weight", "transformer.resblocks.0.ls_1.gamma"];
    let line = open(&inside).unwrap_err().to_string();
    let want = "the unknown transformer.resblocks.0.ls_1.gamma; \
                the unknown visual.transformer.resblocks.1.ln_attn.weight";
    assert!(line.ends_with(want) && line.lines().count() == 1, "{line}");
    let outside = ["head.weight", "transformer.resblocks.2.ln_1.weight"];
    assert_eq!(open(&outside).unwrap().1.unexpected, outside);
}

/// A configuration that asks for terabytes is refused before anything is allocated.
#[test]
fn sizes_beyond_the_files_are_refused() {
    for (tower, name) in [("text_config", "vocab_size"), ("vision_config", "intermediate_size")] {
        let huge = line("clip", "config.json", &|c| c[tower][name] = json!(1 << 24));
        assert!(huge.starts_with("FOLDER: expected about the "), "{huge}");
        assert!(huge.contains(" values of its config.json, got "), "{huge}");
    }
    let deep = line("siglip", "config.json", &|c| {
        c["text_config"]["num_hidden_layers"] = json!(1 << 24);
    });
    assert!(deep.starts_with("FOLDER: expected about the "), "{deep}");
}

#[test]
fn captions_are_named() {
    let device = Device::flex();
    let (clip, siglip) = (open("clip", &device), open("siglip", &device));
    let line = |model: &DualEncoder, captions: &[&[u32]]| {
        model.text.shape.check(&TokenBatch::new(captions)).unwrap_err().to_string()
    };
    assert_eq!(
        line(&clip, &[&[552, 3, 553], &[552, 3, 4]]),
        "caption 1 of the batch: expected the end piece 553 last, got 4"
    );
    assert_eq!(
        line(&clip, &[&[552, 554, 553]]),
        "caption 0 of the batch: expected numbers below 554, the size of the vocabulary, got 554"
    );
    let long = [553; 17];
    assert_eq!(line(&clip, &[&long]), "caption 0 of the batch: expected at most 16 pieces, got 17");
    assert_eq!(
        line(&siglip, &[&[5, 6, 1]]),
        "caption 0 of the batch: expected 8 pieces, with padding, got 3"
    );
}

#[test]
#[should_panic(expected = "expected the end piece 553 last")]
fn a_caption_without_an_end_is_not_encoded() {
    open("clip", &Device::flex()).texts(&TokenBatch::new(&[&[552, 3]]));
}

/// What a configuration leaves out has the value of the class; a dictionary of older files wins.
#[test]
fn absent_keys_have_the_defaults_of_the_class() {
    let own = TempDir::new().unwrap();
    let read = |config: Value| {
        fs::write(own.path().join("config.json"), config.to_string()).unwrap();
        DualShape::read(own.path()).unwrap()
    };
    assert_eq!(read(json!({ "model_type": "clip" })), DualShape::clip_base_32());
    let siglip = read(json!({ "model_type": "siglip", "vision_config": null }));
    let (image, text) = (&siglip.image, &siglip.text);
    assert_eq!((image.patch, image.width, image.epsilon), (16, 768, 1e-6));
    assert_eq!((text.vocabulary, text.positions, text.mlp, text.end), (32_000, 64, 3072, None));
    assert_eq!((siglip.joint, text.activation), (768, Activation::GeluTanh));
    let old = read(json!({
        "model_type": "clip",
        "text_config": { "hidden_size": 64, "hidden_act": "gelu" },
        "text_config_dict": { "hidden_size": 768, "num_attention_heads": 12, "eos_token_id": 7 },
    }));
    assert_eq!((old.text.width, old.text.heads, old.text.end), (768, 12, Some(7)));
    assert_eq!(old.text.activation, Activation::QuickGelu, "the default of the class");
    fs::remove_file(own.path().join("config.json")).unwrap();
    fs::write(own.path().join("open_clip_config.json"), "{\"model_cfg\": {}}").unwrap();
    let open_clip = DualShape::read(own.path()).unwrap();
    // timm's file beside it names no model, and its weights are not open_clip's.
    fs::write(own.path().join("config.json"), "{\"architecture\": \"vit\"}").unwrap();
    fs::write(own.path().join("model.safetensors"), "").unwrap();
    assert_eq!(DualShape::read(own.path()).unwrap(), open_clip);
    let defaults =
        r#"{"model_cfg": {"text_cfg": {"norm_kwargs": {"eps": 1e-5}, "act_kwargs": null}}}"#;
    fs::write(own.path().join("open_clip_config.json"), defaults).unwrap();
    assert_eq!(DualShape::read(own.path()).unwrap(), open_clip);
    assert_eq!(
        open_clip.image.activation,
        Activation::Gelu,
        "quick_gelu is off where it is absent"
    );
}

/// In open_clip's layout one file says model and preparation, and it knows one activation and one ε.
#[test]
fn what_open_clips_configuration_cannot_hold_is_refused() {
    let (own, device) = (TempDir::new().unwrap(), Device::flex());
    let name = "open_clip_config.json";
    fs::copy(folder("open_clip").join(name), own.path().join(name)).unwrap();
    open("open_clip", &device).save(own.path(), DualLayout::OpenClip).unwrap();
    let read =
        |path: PathBuf| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let [before, after] = [folder("open_clip"), own.path().into()].map(|at| read(at.join(name)));
    assert!(before["preprocess_cfg"].is_object());
    assert_eq!(after["preprocess_cfg"], before["preprocess_cfg"]);
    let mut model = open("clip", &device);
    model.shape.text.activation = Activation::Gelu;
    let line = model.save(own.path(), DualLayout::OpenClip).unwrap_err().to_string();
    assert!(line.contains("expected one activation, GELU or QuickGELU, and ε 1e-5"), "{line}");
    assert_eq!(read(own.path().join(name)), after);
}

/// A configuration has one side of a picture.
#[test]
fn pictures_of_two_sides_are_not_saved() {
    let (own, mut model) = (TempDir::new().unwrap(), open("clip", &Device::flex()));
    model.shape.image.image = [12, 16];
    for layout in [DualLayout::Transformers, DualLayout::OpenClip] {
        let line = model.save(own.path(), layout).unwrap_err().to_string();
        let want = "expected square pictures for a configuration, got 12 x 16";
        assert!(line.ends_with(want), "{line}");
    }
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 0);
}
