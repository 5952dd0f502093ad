//! Low-rank adapters of PEFT, merged into the weights.

use serde_json::{Value, json};

use super::*;

/// From `tests/reference/clip.py`: rows of PEFT.
#[test]
fn golden_rows_with_an_adapter() {
    let device = Device::flex();
    let [golden, plain] =
        ["lora", "clip"].map(|name| Golden::open(&folder(&format!("{name}.safetensors"))));
    let model = DualEncoder::open(folder("clip"), &device).unwrap().0;
    let before = host(model.texts(&plain.captions()));
    let model = model.with_adapter(folder("lora")).unwrap();
    let got = host(model.texts(&plain.captions()));
    close("text.unit", &got, golden.values("text.unit"), 1.0, 2e-6);
    assert!(got.iter().zip(&before).any(|(g, b)| (g - b).abs() > 1e-2));
    let images = model.images(plain.tensor("pixels", &device));
    close("image.unit", &host(images), plain.values("image.unit"), 1.0, 2e-6);
}

#[test]
fn adapters_of_another_kind_or_model_are_named() {
    let own = TempDir::new().unwrap();
    fs::copy(
        folder("lora/adapter_model.safetensors"),
        own.path().join("adapter_model.safetensors"),
    )
    .unwrap();
    let line = |base: &str, change: &dyn Fn(&mut Value)| {
        let text = fs::read(folder("lora/adapter_config.json")).unwrap();
        let mut config = serde_json::from_slice(&text).unwrap();
        change(&mut config);
        fs::write(own.path().join("adapter_config.json"), config.to_string()).unwrap();
        let model = DualEncoder::open(folder(base), &Device::flex()).unwrap().0;
        let error = model.with_adapter(own.path()).unwrap_err().to_string();
        error.replace(&*own.path().display().to_string(), "FOLDER")
    };
    let config = "FOLDER/adapter_config.json: ";
    assert_eq!(
        line("clip", &|c| c["peft_type"] = json!("IA3")),
        format!("{config}peft_type: expected LORA, got IA3")
    );
    // PEFT then changes the weights too that the adapter is added to.
    assert_eq!(
        line("clip", &|c| c["init_lora_weights"] = json!("pissa")),
        format!(
            "{config}init_lora_weights: expected a start that keeps the weights of the model, got pissa"
        )
    );
    let alpha = line("clip", &|c| c["lora_alpha"] = json!(1e39));
    let want = format!("{config}lora_alpha: expected a number above 0, got ");
    assert!(alpha.starts_with(&want), "{alpha}");
    assert_eq!(
        line("clip", &|c| c["use_dora"] = json!(true)),
        format!("{config}use_dora: expected false, got true")
    );
    assert_eq!(
        line("clip", &|c| c["modules_to_save"] = json!(["head"])),
        format!("{config}modules_to_save: expected nothing, got a list")
    );
    for rank in [json!(0), json!(-1), json!(1.5), json!("8"), json!(u64::MAX)] {
        let got = line("clip", &|c| c["r"] = rank.clone());
        assert!(
            got.starts_with(&format!("{config}r: expected a whole number from 1 to ")),
            "{got}"
        );
    }
    let weights =
        "FOLDER/adapter_model.safetensors: base_model.model.text_model.encoder.layers.0.self_attn.";
    assert!(line("siglip", &|_| {}).starts_with(weights));
    assert!(line("clip", &|c| c["r"] = json!(3)).starts_with(weights));
    // One matrix of two: not left out without a word.
    let orphan = folder("lora/adapter_model.safetensors");
    let file = safetensors::SafeTensors::deserialize(&fs::read(&orphan).unwrap()).map(|file| {
        let kept =
            file.iter().filter(|(name, _)| !name.ends_with("0.self_attn.q_proj.lora_B.weight"));
        let kept: Vec<_> = kept.collect();
        safetensors::serialize(kept, None).unwrap()
    });
    fs::write(own.path().join("adapter_model.safetensors"), file.unwrap()).unwrap();
    let got = line("clip", &|_| {});
    assert!(got.contains("q_proj.lora_B.weight: expected [") && got.ends_with("got none"), "{got}");
}
