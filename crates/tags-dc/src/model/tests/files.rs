//! Published files, and damaged ones.

use super::*;

/// A file in the safetensors format with the changed tensors of another file.
fn changed(
    from: &str,
    change: impl Fn(&mut BTreeMap<String, (Vec<usize>, Vec<f32>)>),
) -> (TempDir, PathBuf) {
    let files = WeightFiles::open(folder().join(from)).unwrap();
    let tensor = |name: &str| (files.shape(name).unwrap().to_vec(), files.f32s(name).unwrap());
    let mut tensors = files.names().map(|name| (name.to_string(), tensor(name))).collect();
    change(&mut tensors);
    let to = TempDir::new().unwrap();
    let path = to.path().join("changed.safetensors");
    let mut writer = itm_core::checkpoint::CheckpointWriter::default();
    tensors.iter().for_each(|(name, (shape, values))| writer.values(name, shape, values));
    fs::write(&path, writer.contents("pt").unwrap()).unwrap();
    (to, path)
}

fn refused(path: &Path) -> String {
    let message = Uniter::open(path, &shape(), &Device::flex()).unwrap_err().to_string();
    message.replace(&*path.display().to_string(), "FILE")
}

/// A new PyTorch file (an archive) and an old one (consecutive pickles, with `bert.`, gamma and beta) hold the same model.
#[test]
fn old_and_new_pytorch_files_score_the_same() {
    let (device, g) = (Device::flex(), golden());
    for file in ["new.pt", "old.pt"] {
        let (model, report) = Uniter::open(folder().join(file), &shape(), &device).unwrap();
        assert!(off(&logits(&model), &g["made.logits"]) < 1e-5, "{file}");
        assert_eq!(report.loaded, 5 + 4 + 6 + 2 * 16 + 2 + 5 + 2, "{report}");
        assert_eq!(report.unused.len(), 4, "{report}");
        let absent = ["rank_output.weight", "rank_output.bias", "disc_output.*"];
        assert_eq!(report.absent[..3], absent, "{report}");
        assert!(report.missing.is_empty() && report.unexpected.is_empty());
    }
    let [new, old] = ["new.pt", "old.pt"].map(|file| logits(&open(file, &device)));
    assert_eq!(new, old);
    // The same file without any prefix.
    let (_kept, path) = changed("new.pt", |tensors| {
        let all = std::mem::take(tensors);
        tensors.extend(all.into_iter().map(|(name, t)| (name.replace("uniter.", ""), t)));
    });
    let (plain, _) = Uniter::open(&path, &shape(), &device).unwrap();
    assert_eq!(logits(&plain), new);
}

#[test]
fn every_missing_misshaped_and_unknown_tensor_is_named() {
    let (_kept, path) = changed("full.safetensors", |tensors| {
        tensors.remove("uniter.pooler.dense.bias");
        tensors.remove("rank_output.bias"); // only a whole head may be missing
        tensors.remove("itm_output.weight");
        tensors.get_mut("disc_output.weight").unwrap().0 = vec![16, 2];
        tensors.insert("uniter.something.weight".into(), (vec![1], vec![0.0]));
        tensors.insert("bert.pooler.dense.weight".into(), (vec![1], vec![0.0]));
    });
    let message = refused(&path);
    for part in [
        "tensors that a UNITER of this shape asks for, got ",
        "no pooler.dense.bias",
        "no rank_output.bias",
        "no itm_output.weight",
        "disc_output.weight of F32 [16, 2], not [2, 16]",
        "the unknown uniter.something.weight",
        "the unknown bert.pooler.dense.weight",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains('\n') && message.starts_with("FILE: expected the "), "{message}");
}

#[test]
fn a_vocabulary_of_another_size_is_named() {
    let mut other = shape();
    other.text.vocabulary = 51;
    let path = folder().join("new.pt");
    let line = Uniter::open(path, &other, &Device::flex()).unwrap_err().to_string();
    let want = "uniter.embeddings.word_embeddings.weight of F32 [50, 16], not [51, 16]";
    assert!(line.contains(want), "{line}");
}

#[test]
fn a_decoder_of_its_own_is_refused() {
    let (_kept, path) = changed("new.pt", |tensors| {
        tensors.get_mut("cls.predictions.decoder.weight").unwrap().1[7] += 1.0;
    });
    let want = "FILE: cls.predictions.decoder.weight: expected a copy of the word embedding, got \
                another table";
    assert_eq!(refused(&path), want);
}

/// A cut file gives an error of one line, wherever it is cut.
#[test]
fn cut_files_are_refused() {
    let kept = TempDir::new().unwrap();
    for file in ["new.pt", "old.pt", "full.safetensors"] {
        let (whole, path) = (fs::read(folder().join(file)).unwrap(), kept.path().join(file));
        for cut in (0..whole.len()).step_by(1009).chain([whole.len() - 1]) {
            fs::write(&path, &whole[..cut]).unwrap();
            let message = refused(&path);
            assert!(message.starts_with("FILE: ") && !message.contains('\n'), "{cut}: {message}");
        }
    }
    assert!(refused(&kept.path().join("none.pt")).starts_with("FILE: No such file"));
}

#[test]
fn what_is_saved_is_what_was_loaded() {
    let (kept, device) = (TempDir::new().unwrap(), Device::flex());
    let path = kept.path().join("again.safetensors");
    open("full.safetensors", &device).save(&path).unwrap();
    let all = |path: PathBuf| {
        let files = WeightFiles::open(path).unwrap();
        let tensor = |name: &str| (files.shape(name).unwrap().to_vec(), files.f32s(name).unwrap());
        files.names().map(|name| (name.to_string(), tensor(name))).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(all(path), all(folder().join("full.safetensors")));
    assert_eq!(fs::read_dir(kept.path()).unwrap().count(), 1);
}
