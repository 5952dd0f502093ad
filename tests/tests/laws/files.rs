//! Laws of saved files: a file is whole or refused by name, and the plan counts its weights.

use std::collections::{BTreeMap, HashMap};

use burn::tensor::Device;
use itm_core::learn::{Method, Observe};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};

use crate::common::{Data, rows, saved, step, write};
use crate::{scores, trained};

type Files = BTreeMap<String, Vec<u8>>;

#[test]
fn a_saved_model_is_the_same() {
    for row in rows() {
        let folder = tempfile::tempdir().unwrap();
        let (model, _) = trained(&row, 0, 3);
        write(&saved(&*model), folder.path());
        let mut loaded = row.model(9, &Device::flex());
        loaded.load(folder.path()).unwrap();
        assert!(scores(&*model) == scores(&*loaded), "{}", row.name);
        assert!(saved(&*model) == saved(&*loaded), "{}", row.name);
    }
}

/// A training that begins with the learnt weights of another model: the same scores, and no step counted.
#[test]
fn a_model_begins_with_what_another_has_learnt() {
    let progress = |model: &dyn Method| {
        let files = saved(model);
        let of = |file: &str| {
            let tensors = SafeTensors::deserialize(&files[file]).unwrap();
            tensors.tensor("progress").unwrap().data().to_vec()
        };
        ["model.safetensors", "state.safetensors"].map(of)
    };
    for row in rows() {
        let folder = tempfile::tempdir().unwrap();
        let (model, _) = trained(&row, 0, 3);
        write(&saved(&*model), folder.path());
        let mut begun = row.model(9, &Device::flex());
        let fresh = progress(&*begun);
        begun.start_from(folder.path()).unwrap();
        assert!(scores(&*model) == scores(&*begun), "{}", row.name);
        assert!(progress(&*begun) == fresh && progress(&*model) != fresh, "{}", row.name);
        while begun.next_phase() {} // a first phase may be of a generator alone, which scores nothing
        begun.begin_epoch(0, Data::new().items()).unwrap();
        step(&mut *begun, 1, Observe::Off).unwrap();
        assert!(scores(&*model) != scores(&*begun), "{}: it learns on", row.name);
        std::fs::remove_file(folder.path().join("model.safetensors")).unwrap();
        let before = saved(&*begun);
        let line = begun.start_from(folder.path()).unwrap_err().to_string();
        assert!(line.contains("model.safetensors") && saved(&*begun) == before, "{line}");
    }
}

/// The error of loading a changed copy of the files. The model that refused them must not change.
fn refused(model: &mut dyn Method, files: &Files, name: &str, contents: Vec<u8>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut files = files.clone();
    files.insert(name.to_owned(), contents);
    write(&files, folder.path());
    let before = saved(model);
    let error = model.load(folder.path()).expect_err(name).to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(name), "the file is not named: {error}");
    assert!(saved(model) == before, "{error}: something was loaded all the same");
    error
}

/// A file with other tensors in it.
fn changed(contents: &[u8], change: impl Fn(&mut BTreeMap<String, TensorView>)) -> Vec<u8> {
    let (_, head) = SafeTensors::read_metadata(contents).unwrap();
    let tensors = SafeTensors::deserialize(contents).unwrap();
    let mut all: BTreeMap<String, TensorView> = tensors.tensors().into_iter().collect();
    change(&mut all);
    let metadata: Option<HashMap<String, String>> = head.metadata().clone();
    serialize(all, metadata).unwrap()
}

#[test]
fn a_missing_misshaped_or_foreign_entry_is_refused_by_name() {
    let all = rows();
    let of_methods = all.chunk_by(|a, b| a.target() == b.target());
    for row in of_methods.flat_map(|of_one| of_one.iter().step_by(5)) {
        let (model, _) = trained(row, 0, 2);
        let files = saved(&*model);
        let mut other = row.model(3, &Device::flex());
        for (file, contents) in &files {
            let tensors = SafeTensors::deserialize(contents).unwrap();
            let names: Vec<_> = tensors.names().into_iter().map(str::to_owned).collect();
            for name in names.iter().step_by(3) {
                let without = changed(contents, |all| _ = all.remove(name));
                let line = refused(&mut *other, &files, file, without);
                assert!(line.contains(name), "{}: {name} is missing: {line}", row.name);
                static FLAT: [u8; 12] = [0; 12];
                let view = TensorView::new(Dtype::F32, vec![3, 1, 1], &FLAT).unwrap();
                let shorter = changed(contents, |all| _ = all.insert(name.clone(), view.clone()));
                let line = refused(&mut *other, &files, file, shorter);
                assert!(line.contains(name), "{}: {name} is misshaped: {line}", row.name);
            }
            static VALUE: [u8; 4] = [0; 4];
            let view = TensorView::new(Dtype::F32, vec![1], &VALUE).unwrap();
            let more = changed(contents, |all| _ = all.insert("foreign".into(), view.clone()));
            let line = refused(&mut *other, &files, file, more);
            assert!(line.contains("foreign"), "{}: {line}", row.name);
            let cut = contents[..contents.len() - 1].to_vec();
            refused(&mut *other, &files, file, cut);
        }
    }
}

/// Each method gets the files of every other method.
#[test]
fn the_files_of_another_model_are_refused() {
    let mut first = rows();
    first.dedup_by(|a, b| a.target() == b.target());
    let files: Vec<_> = first.iter().map(|row| saved(&*trained(row, 0, 1).0)).collect();
    for (row, own) in first.iter().zip(&files) {
        let mut model = row.model(0, &Device::flex());
        for (file, contents) in files.iter().filter(|other| *other != own).flatten() {
            refused(&mut *model, own, file, contents.clone());
        }
    }
}
