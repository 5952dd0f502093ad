//! Data as rows read them, closed forms that weights begin with, ready word vectors.

use itm_core::cca::{Cca, CcaOptions, StartInputs};
use itm_core::data::{Dataset, Regions, Split, SplitData};
use itm_core::encoders::Embedder;
use itm_core::learn::ImageItems;
use itm_core::start::{BagPooling, Start, StartOptions, TextForm};
use itm_core::text::{Marks, Terms};
use itm_core::vision::Transform;
use itm_kernels::Precision;

use super::*;
use crate::cli::{ExportArgs, RunRow};
use crate::encoded::{Captions, Cleaning};
use crate::methods::{ClosedForm, Sees};
use crate::pictures::View;
use crate::tests;

fn run() -> Run {
    let (config, source) = tests::small_scenes([120, 4, 4]); // a batch of each row
    Run::new(config, source, vec![Device::flex()]).unwrap()
}

fn reading(run: &Run, captions: Captions) -> &Reading {
    run.readings.iter().find(|reading| reading.captions == captions).unwrap()
}

fn closed_form(form: TextForm) -> ClosedForm {
    let options =
        StartOptions { ridge_image: 1.0, ridge_text: 2.0, power: 0.5, dims: 8, fill: 0.0 };
    ClosedForm { options, width: 8, form }
}

/// A row of the vocabulary is the row of its word's stem, or zero without such a stem. A form that does not fit the reading is
/// refused.
#[test]
fn a_start_is_in_the_form_that_captions_are_read_in() {
    let run = run();
    let [stems, words] = [Captions::Stems, Captions::Words(Marks::Off)].map(|of| reading(&run, of));
    let mean = TextForm::Stems(BagPooling::Mean);
    let pooled = run.solve(&closed_form(mean), Sees::Features, stems).unwrap();
    let start = run.solve(&closed_form(TextForm::Words), Sees::Features, words).unwrap();
    assert_eq!((&start.image, &start.text.bias), (&pooled.image, &pooled.text.bias));
    let (rows, terms) = (start.text.weight.chunks(8), stems.terms().unwrap());
    assert_eq!(rows.len(), words.vocabulary);
    let (mut known, mut zeros) = (0, 0);
    for (word, row) in words.words_by_number().unwrap().into_iter().zip(rows) {
        match terms.numbers(word)[..] {
            [stem] => {
                assert_eq!(row, &pooled.text.weight[stem as usize * 8..][..8], "{word}");
                known += 1;
            }
            _ => {
                assert_eq!(row, [0.0; 8], "{word}");
                zeros += 1;
            }
        }
    }
    assert!(known > 20 && zeros >= 2, "{known} words with a stem, {zeros} without");
    for (form, reading) in [(TextForm::Words, stems), (mean, words)] {
        let line = run.solve(&closed_form(form), Sees::Features, reading).unwrap_err().to_string();
        assert_eq!(line, "model.start: expected a text encoder of stems or words, got another");
    }
}

/// Words begin with the vectors of a file, and the vectors are data. Without the file, a row that needs it is refused, and other rows
/// run.
#[test]
fn words_begin_with_the_vectors_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors.txt");
    let run = || {
        let bigru =
            [("start = \"cca\"", "start = \"random\""), ("text = \"words\"", "text = \"bigru\"")];
        let given = [("word_vectors = \"random\"", "word_vectors = \"given\"")];
        let none = [("scratch\".model]\n", "scratch\".model]\nword_vectors = \"random\"\n")];
        let changes = [&bigru[..], &given, &none].concat();
        let (config, mut source) = tests::small_target("naaf-scenes", &changes);
        source.word_vectors = Some(file.clone());
        Run::new(config, source, vec![Device::flex()]).unwrap()
    };
    let all: Vec<usize> = (0..20).collect(); // five captions of four images
    let score = |run: &Run, row: &str| {
        let model = run.model(row, 0).unwrap();
        model.scored(Split::Test).unwrap().pairs(&[0; 20], &all).unwrap()
    };
    let (refused, without) = ("Full", "Full, scratch");
    let bare = run();
    let line = bare.check_vectors(refused).unwrap_err().to_string();
    let want = "row.Full: expected a file of word vectors, named by target.word_vectors, got none";
    assert!(line.ends_with(want), "{line}");
    assert_eq!(bare.model(refused, 0).err().unwrap().to_string(), line);
    bare.check_vectors(without).unwrap();
    let mut scores = vec![];
    for vectors in ["a 1 1 1 1 1 1 1 1\n", "a 2 1 1 1 1 1 1 1\n"] {
        std::fs::write(&file, vectors).unwrap();
        let run = run();
        let note = "word vectors of `vectors.txt`: vectors of width 8 for 1 of ";
        assert!(run.source.notes.iter().any(|line| line.starts_with(note)));
        assert_ne!(run.source.dataset.sha256, bare.source.dataset.sha256);
        assert_eq!(score(&run, without), score(&bare, without));
        scores.push(score(&run, refused));
    }
    assert_ne!(scores[0], scores[1]);
}

/// Regions 0 and 2·x have the mean x, so their map is the map of features x. Here x are the first 20 features of each image.
#[test]
fn an_image_map_of_regions_is_that_of_their_mean() {
    let mut run = run();
    let all = run.features[Split::Train as usize].clone();
    let images = all.rows();
    let cut = |by: f32| (0..images).map(move |i| (i, by));
    let rows = |(i, by): (usize, f32)| all.row(i)[..20].iter().map(move |x| by * x);
    let pairs = cut(0.0).zip(cut(2.0)).flat_map(|(a, b)| [a, b]);
    let regions = Regions::new(20, vec![2; images], pairs.flat_map(rows).collect()).unwrap();
    let means = Features { dim: 20, values: cut(1.0).flat_map(rows).collect() };
    run.source.dataset.train.regions = Some(regions);
    let form = closed_form(TextForm::Stems(BagPooling::TfIdf));
    let solve = |run: &Run, sees| run.solve(&form, sees, reading(run, Captions::Stems)).unwrap();
    let of_regions = solve(&run, Sees::Regions);
    assert_ne!(of_regions.image.weight.len(), solve(&run, Sees::Features).image.weight.len());
    run.features[Split::Train as usize] = means;
    assert_eq!(of_regions, solve(&run, Sees::Features));
}

/// Where rows see regions, the closed form sees their mean and no features: with regions 0 and 2·x it scores as with rows x.
#[test]
fn the_closed_form_of_regions_is_that_of_their_mean() {
    let (config, source) = tests::small_target("naaf-scenes", &[]);
    let mut run = Run::new(config, source, vec![Device::flex()]).unwrap();
    let mut plain = run.source.dataset.clone();
    let parts = |data: &mut Dataset, change: &dyn Fn(&mut SplitData, Features)| {
        for part in [&mut data.train, &mut data.val, &mut data.test] {
            let all = part.features.clone();
            let values = (0..all.rows()).flat_map(|i| all.row(i)[..20].to_vec()).collect();
            change(part, Features { dim: 20, values });
        }
    };
    parts(&mut run.source.dataset, &|part, rows| {
        let both =
            |i: usize| [0.0, 2.0].into_iter().flat_map(move |by| (0..20).map(move |k| (i, k, by)));
        let values = (0..rows.rows()).flat_map(both).map(|(i, k, by)| by * rows.row(i)[k]);
        let counts = vec![2; rows.rows()];
        part.regions = Some(Regions::new(20, counts, values.collect()).unwrap());
    });
    parts(&mut plain, &|part, rows| {
        part.features = Features::default();
        part.embeddings.images = rows;
    });
    let want = Cca::fit(&plain, &CcaOptions::default()).unwrap();
    let (cca, scores) = run.cca().unwrap();
    assert_eq!(cca.chosen, want.chosen);
    assert_eq!(scores, want.scores(&plain.test).unwrap());
    assert!(run.source.notes.last().unwrap().starts_with("CCA (closed form): the mean"));
}

/// Towers over pictures and word pieces begin with the closed form of the given rows of both, which must be there.
#[test]
fn towers_begin_with_the_closed_form_of_given_rows() {
    let (mut run, folder) =
        (run(), concat!(env!("CARGO_MANIFEST_DIR"), "/../itm-core/tests/golden"));
    let pieces = Captions::Pieces(PathBuf::from(folder).join("clip/sentence"), Cleaning::Raw);
    let reading = Reading::new(&run.source, &run.config.target, pieces).unwrap();
    let form = closed_form(TextForm::Stems(BagPooling::Off));
    let sees = Sees::Pictures(View { augment: None, transform: Transform::default() });
    let refused = |run: &Run| run.solve(&form, sees, &reading).unwrap_err().to_string();
    assert_eq!(
        refused(&run),
        "model.start = \"cca\": expected rows of images in target.embeddings, by the row's own weights, got none"
    );
    let train = &mut run.source.dataset.train;
    let all = &train.features;
    let values = (0..all.rows()).flat_map(|i| all.row(i)[..20].to_vec()).collect();
    train.embeddings.images = Features { dim: 20, values };
    assert!(refused(&run).contains("rows of captions in target.embeddings"));
    let train = &mut run.source.dataset.train;
    let value = |k: usize| (k as f32 * 0.7).sin();
    let values = (0..9 * train.captions.len()).map(value).collect();
    train.embeddings.texts = Features { dim: 9, values };
    let start = run.solve(&form, sees, &reading).unwrap();
    let train = &run.source.dataset.train;
    let inputs = StartInputs {
        features: &train.embeddings.images,
        captions: &train.captions,
        pairs: &train.pairs,
        terms: &Terms::fit(&[] as &[&str], 1, 0),
        rows: &train.embeddings.texts,
    };
    assert_eq!(start, Start::solve(&inputs, 8, 0, &form.options).unwrap());
}

/// A step of FNE has four parts here. NAAF's has none that can be elsewhere.
#[test]
fn more_devices_than_parts_are_refused() {
    let run = |target, changes: &[_], devices| {
        let (config, source) = tests::small_target(target, changes);
        Run::new(config, source, vec![Device::flex(); devices]).unwrap()
    };
    let line = |run: Run, row| run.check_row(row).err().map(|e| e.to_string()).unwrap_or_default();
    let fne = |devices| run("fne-scenes", &[("micro_batch = 8", "micro_batch = 2")], devices);
    assert_eq!(line(fne(4), "Full"), "");
    let refused = line(fne(5), "Full");
    let want =
        "row.Full, --backend: expected at most 4 devices, one for each part of a step, got 5";
    assert!(refused.ends_with(want), "{refused}");
    let naaf = run("naaf-scenes", &[], 2);
    let row = naaf.config.rows().next().unwrap().to_owned();
    let refused = line(naaf, &row);
    let want = "--backend: expected 1 device, because a step of this row is on one, got 2";
    assert!(refused.ends_with(want), "{refused}");
    fne(4).model("Full", 0).unwrap();
}

/// Weights that are good already are kept if no epoch is better, but not beside heads that begin at random: their words would come from heads
/// that have learnt nothing.
#[test]
fn a_start_with_new_heads_is_not_kept() {
    let run = tests::small_run("tags-dc-scenes");
    let starts = ["TAGS", "TAGS-DC", "w/ paper's filter"].map(|row| run.plan(row, 0).ready);
    assert_eq!(starts, [true, false, false]);
}

/// Changes of `fne-scenes-vit`: small pictures, and only the last block learns.
const LAST_BLOCK: [(&str, &str); 4] = [
    ("[train]", "[train]\nparts = { last = 1 }"),
    ("embed_dim = 16", "embed_dim = 64"),
    ("image = [96, 96]", "image = [32, 32]"),
    ("image_size = 96", "image_size = 32"),
];

/// The log and the checkpoint of a training, momentum encoders and bank included, are the same whether frozen blocks see each picture once or at
/// each step.
#[test]
fn kept_states_of_pictures_change_no_training() {
    let trained = |states: u64| {
        let folder = tempfile::tempdir().unwrap();
        let mut run = tests::small_run_in("fne-scenes-vit", &LAST_BLOCK, folder.path());
        assert!(run.facts("Full").keeps_states);
        run.states = states;
        let progress = run.train("Full", 0, |_| {}).unwrap().1;
        let log = std::fs::read_to_string(run.dir().folder("Full", 0).join("log.jsonl")).unwrap();
        (log, run.hash_of_chosen("Full", 0).unwrap(), progress.step)
    };
    let (without, with) = (trained(0), trained(1 << 30));
    assert!(without.2 > 5 && without == with, "{without:?} {with:?}");
}

/// A LoRA that a training wrote gives `itm embed` the rows by which the training scores: CLIP's files beside the checkpoint's adapter, and
/// the exported model, which contains it.
#[test]
fn an_adapter_of_a_training_embeds_as_the_training_scores() {
    trained_clip_embeds_as_it_scores(
        "parts = { lora = { rank = 2, maps = [\"query\", \"value\", \"up\"] } }",
    );
}

/// The same for an exported model that learnt as a whole.
#[test]
fn an_exported_model_embeds_as_the_training_scores() {
    trained_clip_embeds_as_it_scores("parts = \"all\"");
}

fn trained_clip_embeds_as_it_scores(parts: &str) {
    let world = tempfile::tempdir().unwrap();
    let at = |name: &str| world.path().join(name);
    std::fs::create_dir(at("clip")).unwrap();
    crate::embed::tests::model(&at("clip"));
    std::fs::write(at("small.toml"), tests::small_target("fne-scenes-vit", &[]).0.text).unwrap();
    let tower =
        format!("{{ kind = \"clip\", weights = {:?}, gradient_checkpointing = false", at("clip"));
    let tuned = format!(
        "extends = \"small\"\n[model]\nembed_dim = 12\nimage = {tower}, augment = \"off\" }}\ntext = {tower} }}\n\
         [train]\n{parts}\n"
    );
    std::fs::write(at("tuned.toml"), tuned).unwrap();
    let config = Config::load(world.path(), "tuned").unwrap();
    let (config, source) = Source::open(&config, None, world.path()).unwrap();
    let run = Run::new(config, source, vec![Device::flex()]).unwrap();
    let run = tests::in_folder(run, &at("run"));
    assert!(!run.facts("Full").keeps_states, "all blocks change");
    run.train("Full", 0, |_| {}).unwrap();

    let adapter = run.chosen("Full", 0).unwrap().join("adapter");
    let model = run.trained("Full", 0).unwrap();
    let (items, part) = (model.inputs.items(Split::Test), run.source.part(Split::Test).0);
    let ImageItems::Pictures(pictures) = items.images else { panic!("pictures") };
    let n = pictures.len();
    let batch = pictures.some(&(0..n).collect::<Vec<_>>()).next().unwrap().unwrap();
    let scores = |folder: &str, adapter: Option<&Path>| -> Vec<f32> {
        let embedder =
            Embedder::open(&at(folder), adapter, Precision::F32, &Device::flex()).unwrap();
        let [images, _] = embedder.images(batch.values.clone(), batch.size, false);
        let (texts, _) = embedder.captions(&part.captions, 5, |_| {}).unwrap();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum();
        let of = |image| texts.chunks(12).map(move |text| dot(image, text));
        images.chunks(12).flat_map(of).collect()
    };
    let all: Vec<usize> = (0..part.captions.len()).collect();
    let scored = model.scored(Split::Test).unwrap();
    let want: Vec<f32> =
        (0..n).flat_map(|i| scored.pairs(&vec![i; all.len()], &all).unwrap()).collect();
    let differ = |got: Vec<f32>| {
        assert_eq!(got.len(), want.len());
        got.iter().zip(&want).map(|(g, w)| (g - w).abs()).max_by(f32::total_cmp).unwrap()
    };
    let (row, out) = (Some("Full".to_owned()), at("exported"));
    let of = RunRow { run: at("run"), row, seed: 0, data: None, backend: "cpu".into() };
    let args = ExportArgs { of, out };
    crate::export::export(&args, world.path()).unwrap();
    assert!(differ(scores("exported", None)) < 1e-5);
    if parts.contains("lora") {
        assert!(differ(scores("clip", Some(&adapter))) < 1e-5);
    }
    assert!(differ(scores("clip", None)) > 1e-3, "the training moved them");
    let line = crate::export::export(&args, world.path()).unwrap_err().to_string();
    assert!(
        line.ends_with("exported: expected a new or empty folder, got a folder with files"),
        "{line}"
    );
}

/// Other weights of frozen blocks make other states: a model that reads them forgets what it kept.
#[test]
fn a_model_that_reads_weights_forgets_its_kept_states() {
    let folder = tempfile::tempdir().unwrap();
    let run = tests::small_run_in("fne-scenes-vit", &LAST_BLOCK, &folder.path().join("run"));
    let scores =
        |model: &Model| model.scored(Split::Test).unwrap().pairs(&[0; 4], &[0, 1, 2, 3]).unwrap();
    let (mut model, other) = (run.model("Full", 0).unwrap(), run.model("Full", 1).unwrap());
    let save = &mut |name: &str, contents: &[u8]| {
        std::fs::write(folder.path().join(name), contents).unwrap();
        Ok(())
    };
    other.method.save(save).unwrap();
    model.method.keep_states(1 << 30);
    assert_ne!(scores(&model), scores(&other));
    model.method.load(folder.path()).unwrap();
    assert_eq!(scores(&model), scores(&other));
}
