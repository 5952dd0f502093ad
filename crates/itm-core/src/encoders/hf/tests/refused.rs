//! Files of other programs, damaged files, and inputs that no encoder can read.

use super::*;

/// A folder with the golden configuration, in which `config` replaces fields, and with the given tensors.
fn folder(
    name: &str,
    config: &[(&str, &str)],
    tensors: &BTreeMap<String, (Vec<usize>, Vec<f32>)>,
) -> TempDir {
    let folder = TempDir::new().unwrap();
    let text = fs::read(golden_folder().join(name).join("config.json")).unwrap();
    let mut fields: serde_json::Value = serde_json::from_slice(&text).unwrap();
    for (field, value) in config {
        fields[field] = serde_json::from_str(value).unwrap();
    }
    fs::write(folder.path().join("config.json"), fields.to_string()).unwrap();
    let half =
        |values: &[f32]| values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect();
    let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> =
        tensors.iter().map(|(name, (shape, values))| (name, shape, half(values))).collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (name.as_str(), TensorView::new(Dtype::F16, shape.to_vec(), bytes).unwrap())
    });
    let file = safetensors::serialize(views, None::<HashMap<String, String>>).unwrap();
    fs::write(folder.path().join("model.safetensors"), file).unwrap();
    folder
}

fn message(folder: &TempDir, result: Result<(Bert, LoadReport)>) -> String {
    result.unwrap_err().to_string().replace(&*folder.path().display().to_string(), "FOLDER")
}

/// Old conversions have f16 values, `bert.` before the names, gamma and beta, and additional heads.
#[test]
fn old_names_halves_and_heads_are_read() {
    let device = Device::flex();
    let old = |name: &str| {
        let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        format!("bert.{}", name.replace("LayerNorm.bias", "LayerNorm.beta"))
    };
    let mut tensors: BTreeMap<_, _> =
        all(&golden_folder().join("bert")).into_iter().map(|(n, t)| (old(&n), t)).collect();
    tensors.insert("cls.seq_relationship.bias".into(), (vec![2], vec![0.0; 2]));
    tensors.insert("bert.something".into(), (vec![1], vec![0.0]));
    let halves = folder("bert", &[], &tensors);
    let (model, report) = Bert::open(&halves, &device).unwrap();
    assert_eq!(report.loaded, 5 + 2 * 16);
    let unused =
        ["cls.seq_relationship.bias", "bert.pooler.dense.bias", "bert.pooler.dense.weight"];
    assert_eq!(report.unused, [unused[0], unused[1], unused[2]]);
    assert_eq!(report.unexpected, ["bert.something"]);
    let rounded = |x: f32| f16::from_f32(x).to_f32();
    let want: Vec<f32> = host(bert(&device).words.val()).into_iter().map(rounded).collect();
    assert_eq!(host(model.words.val()), want);
    let query = |model: &Bert| host(model.blocks[1].attention.qkv.weight.val());
    assert_eq!(query(&model), query(&bert(&device)).into_iter().map(rounded).collect::<Vec<_>>());

    #[cfg(feature = "pytorch")]
    {
        let (pickled, report) = Bert::open(golden_folder().join("bert_bin"), &device).unwrap();
        assert_eq!(report.unused.len(), 3);
        assert_eq!(query(&pickled), query(&model));
    }
}

#[test]
fn every_missing_and_misshaped_tensor_is_named() {
    let mut tensors = all(&golden_folder().join("bert"));
    tensors.remove("embeddings.LayerNorm.weight");
    tensors.remove("encoder.layer.1.attention.self.key.bias");
    tensors.get_mut("encoder.layer.0.intermediate.dense.weight").unwrap().0 = vec![32, 64];
    tensors.get_mut("encoder.layer.1.attention.self.value.weight").unwrap().0 = vec![16, 64];
    let faulty = folder("bert", &[], &tensors);
    let got = message(&faulty, Bert::open(&faulty, &Device::flex()));
    let want = "FOLDER: expected the 37 tensors that its config.json asks for, got \
                no embeddings.LayerNorm.weight; no encoder.layer.1.attention.self.key.bias; \
                encoder.layer.0.intermediate.dense.weight of F16 [32, 64], not [64, 32]; \
                encoder.layer.1.attention.self.value.weight of F16 [16, 64], not [32, 32]";
    assert_eq!(got, want);
    // The configuration has more words than the file.
    let other = folder("bert", &[("vocab_size", "61")], &all(&golden_folder().join("bert")));
    let got = message(&other, Bert::open(&other, &Device::flex()));
    assert!(
        got.contains("embeddings.word_embeddings.weight of F16 [60, 32], not [61, 32]"),
        "{got}"
    );
}

/// The first BERTs have the fields of Google's program. `transformers` takes these values for the others.
#[test]
fn absent_fields_have_the_defaults_of_the_class() {
    let none = BTreeMap::new();
    let read = |name: &str| {
        let own = folder(name, &[], &none);
        let path = own.path().join("config.json");
        let mut config: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for field in ["layer_norm_eps", "type_vocab_size", "hidden_dropout_prob"] {
            config.remove(field);
        }
        config.remove("attention_probs_dropout_prob");
        fs::write(path, serde_json::to_string(&config).unwrap()).unwrap();
        own
    };
    let (text, image) = (read("bert"), read("vit"));
    let own = bert(&Device::flex()).shape;
    let want = BertShape { kinds: 2, epsilon: 1e-12, dropout: 0.1, attention_dropout: 0.1, ..own };
    assert_eq!(BertShape::read(&text).unwrap(), want);
    let VitShape { epsilon, dropout, attention_dropout, .. } = VitShape::read(&image).unwrap();
    assert_eq!([epsilon, dropout, attention_dropout], [1e-12, 0.0, 0.0]);
}

#[test]
fn another_architecture_or_choice_is_one_line() {
    let error = Bert::open(golden_folder().join("vit"), &Device::flex()).unwrap_err().to_string();
    let want = "expected a model of the architecture \"bert\", got \"vit\"";
    assert!(error.ends_with(want), "{error}");
    let none = BTreeMap::new();
    for (field, value, want) in [
        ("hidden_act", "\"gelu_new\"", "hidden_act: expected gelu, got gelu_new"),
        ("position_embedding_type", "\"relative_key\"", "expected absolute, got relative_key"),
        ("num_attention_heads", "3", "expected a divisor of the width 32, got 3"),
        ("hidden_dropout_prob", "1", "expected a share from 0 to below 1, got 1"),
        ("layer_norm_eps", "1e39", "layer_norm_eps: expected a number above 0, got 1e"),
        ("vocab_size", "0", "vocab_size: expected a whole number from 1 to 16777216, got 0"),
        ("hidden_size", "\"wide\"", "hidden_size: expected a whole number from 1 to 16777216"),
    ] {
        let faulty = folder("bert", &[(field, value)], &none);
        let got = message(&faulty, Bert::open(&faulty, &Device::flex()));
        assert!(got.starts_with("FOLDER/config.json") && got.contains(want), "{got}");
    }
    for (field, value, want) in [
        ("patch_size", "64", "expected a square patch within the image, got 64 x 64, [32, 32]"),
        ("patch_size", "[8, 4]", "expected a square patch within the image, got 8 x 4, [32, 32]"),
        ("qkv_bias", "false", "qkv_bias: expected true, got false"),
        ("qkv_bias", "0", "qkv_bias: expected true, got 0"),
    ] {
        let faulty = folder("vit", &[(field, value)], &none);
        let got = VitShape::read(&faulty).unwrap_err().to_string();
        assert!(got.ends_with(want), "{got}");
    }
    let wide = folder("vit", &[("image_size", "[48, 32]")], &none);
    assert_eq!(VitShape::read(&wide).unwrap().grid(), [6, 4]);
    let empty = TempDir::new().unwrap();
    assert!(
        message(&empty, Bert::open(&empty, &Device::flex())).starts_with("FOLDER/config.json: ")
    );
}

/// By hand: a block has 4d² + 4d (attention) + 2dm + m + d (perceptron) + 4d (norms) = 7,087,872 parameters. BERT base
/// without pooler has 108,891,648 parameters, ViT-B/16 at 384 px has 86,090,496.
#[test]
fn published_sizes() {
    let block = |d: usize, m: usize| 4 * d * d + 4 * d + 2 * d * m + m + d + 4 * d;
    let (b, v) = (BertShape::base_uncased(), VitShape::base_16_384());
    let tables = (b.vocabulary + b.positions + b.kinds) * b.width + 2 * b.width;
    assert_eq!(tables + b.layers * block(b.width, b.mlp), 108_891_648);
    let ([h, w], pixels) = (v.grid(), v.channels * v.patch * v.patch);
    let embedding = (pixels + 1) * v.width + v.width + (1 + h * w) * v.width + 2 * v.width;
    assert_eq!(embedding + v.layers * block(v.width, v.mlp), 86_090_496);
}

#[test]
#[should_panic(expected = "caption 0, word 1: 60 of 60 words")]
fn a_piece_outside_the_vocabulary_is_named() {
    bert(&Device::flex()).forward(&TokenBatch::new(&[&[2, 60, 3]]), Noise::Off);
}

#[test]
#[should_panic(expected = "captions of 41 word pieces for 40 positions")]
fn a_caption_beyond_the_positions_is_refused() {
    bert(&Device::flex()).forward(&TokenBatch::new(&[vec![5; 41]]), Noise::Off);
}

#[test]
#[should_panic(expected = "images [1, 3, 7, 32] for")]
fn an_image_without_a_patch_is_refused() {
    let device = Device::flex();
    vit(&device).forward(Tensor::zeros([1, 3, 7, 32], &device), Noise::Off);
}
