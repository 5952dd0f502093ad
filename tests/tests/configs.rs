//! Every config in `configs/` is complete: each row reads into its method's configuration and passes its validation.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::{Path, PathBuf};

use fne::FneConfig;
use hubness::training::HalConfig;
use itm_run::config::{Config, Exhibit};
use itm_run::methods;
use itm_run::paper::Paper;
use naaf::NaafConfig;
use tags_dc::config::TagsDcConfig;

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

/// Every target.
fn targets() -> Vec<Config> {
    let names = Config::names(&configs()).unwrap();
    names.iter().map(|name| Config::load(&configs(), name).unwrap()).collect()
}

#[test]
fn every_row_of_every_target_is_valid() {
    let names = Config::names(&configs()).unwrap();
    assert!(names.len() >= 3, "{names:?}");
    for config in targets() {
        for row in config.rows() {
            methods::recipe(&config, row).unwrap();
        }
    }
}

#[test]
fn a_substitute_is_a_target_with_the_same_rows() {
    for config in targets() {
        let name = &config.name;
        let Some(substitute) = &config.target.substitute else { continue };
        let other = Config::load(&configs(), substitute).unwrap();
        let known: Vec<_> = other.rows().collect();
        // This row exists because the others need a file of the data folder; Scenes has no such file.
        let mut rows = config.rows().filter(|row| *row != "w/o GloVe");
        assert!(rows.all(|row| known.contains(&row)), "{name} and {substitute}");
        assert!(
            other.target.scenes.is_some(),
            "{substitute} must run on data that are always there"
        );
    }
}

/// The rows of the FNE targets differ in the key of their name, and in the rate and warm-up that validation chose for each row.
#[test]
fn fne_rows_differ_in_one_key() {
    for name in ["fne-flickr", "fne-flickr-features", "fne-flickr8k", "fne-scenes"] {
        let config = Config::load(&configs(), name).unwrap();
        let row = |name| config.row::<FneConfig>(name).unwrap();
        let full = |other: &FneConfig| {
            let mut full = row("Full");
            full.train.learning_rate = other.train.learning_rate;
            full.sampler.warmup_epochs = other.sampler.warmup_epochs;
            full
        };
        let mut without_bank = full(&row("w/o MMM"));
        without_bank.sampler.bank_size = 0;
        assert_eq!(row("w/o MMM"), without_bank, "{name}");
        for (row_name, negatives) in [
            ("w/o FNE", fne::NegativeChoice::Hardest),
            ("w/o MMM+FNE", fne::NegativeChoice::InBatch),
        ] {
            let mut other = full(&row(row_name));
            other.sampler.negatives = negatives;
            assert_eq!(row(row_name), other, "{name}");
        }
    }
}

/// The target with visible patches: the paper's kind of encoders, from scratch on Scenes; its rows differ only in the draw.
#[test]
fn fne_scenes_vit_sees_pictures_without_published_weights() {
    let config = Config::load(&configs(), "fne-scenes-vit").unwrap();
    assert!(config.target.scenes.is_some());
    let [full, mut hardest] = ["Full", "w/o FNE"].map(|row| config.row::<FneConfig>(row).unwrap());
    assert_eq!(hardest.sampler.negatives, fne::NegativeChoice::Hardest);
    hardest.sampler.negatives = full.sampler.negatives;
    assert_eq!(hardest, full);
    let fne::ImageConfig::Vit(vit) = &full.model.image else { panic!("{:?}", full.model.image) };
    let fne::TextConfig::Bert(bert) = &full.model.text else { panic!("{:?}", full.model.text) };
    assert!(vit.weights.folder().unwrap().is_none() && bert.weights.folder().unwrap().is_none());
    assert_eq!((vit.shape().unwrap().grid(), vit.image_size), ([8, 8], 96));
}

/// Tables 1 to 5 and Figures 4 and 5, wherever the paper has them; every printed name is one of the paper's lines.
#[test]
fn fne_targets_have_the_papers_tables_and_figures() {
    use Exhibit::{Figure, Table};
    let named = |names: &[&str]| names.iter().map(|name| Exhibit::table(name)).collect::<Vec<_>>();
    let own = |names: &[&str], tables: &[u32]| {
        let tables = tables.iter().copied().map(Table).chain(named(names));
        tables.chain([Figure(4), Figure(5)]).collect::<Vec<_>>()
    };
    let flickr = own(&["draw", "scratch"], &[1, 3, 4, 5]);
    for (name, want) in [
        ("fne-flickr", own(&[], &[1, 3, 4, 5])),
        ("fne-flickr-features", flickr),
        ("fne-flickr8k", own(&["draw", "hubs", "scratch"], &[1, 3, 4, 5])),
        ("fne-scenes", own(&["draw", "hubs", "scratch", "truth"], &[1, 2, 3, 4, 5])),
        ("fne-coco", vec![Table(1), Table(2)]),
        ("fne-coco-features", [vec![Table(1), Table(2)], named(&["draw", "scratch"])].concat()),
    ] {
        let config = Config::load(&configs(), name).unwrap();
        assert_eq!(config.shown(), want, "{name}");
        let paper = Paper::read(&configs().join("papers/fne.toml")).unwrap();
        for shown in want {
            let view = config.view(&shown).unwrap();
            let Table(table) = shown else { continue };
            let printed = |row: &str| paper.of_table(table).any(|line| line.row == row);
            for row in
                view.rows.iter().filter(|row| *row != "InfoNCE" && (table != 5 || *row != "Full"))
            {
                assert!(printed(view.printed(row)), "{name}, table {table}: {row}");
            }
        }
        let full = config.row::<FneConfig>("Full").unwrap();
        for (figure, whole) in [(4, full.train.batch), (5, full.sampler.bank_size)] {
            let Some(view) = config.view(&Figure(figure)) else { continue };
            let x = |row: &String| config.number(row, view.x.as_ref().unwrap()).unwrap() as usize;
            // Rounded: the released code's bank has 8,224 rows; the paper prints 8,192.
            let part = |row: &String| (4.0 * x(row) as f64 / whole as f64).round() as usize;
            let parts: Vec<_> = view.rows.iter().map(part).collect();
            assert_eq!(parts, [4, 3, 2, 1], "{name}, figure {figure}");
        }
    }
}

/// In the full-size targets the rows of HAL's tables have the paper's values: rates by family, k, similarity.
#[test]
fn hal_rows_are_the_papers() {
    use hubness::losses::AaaiOptions;
    use hubness::training::Objective;
    use itm_core::scored::Similarity;

    for (name, aaai) in [("hal-flickr", AaaiOptions::FLICKR30K), ("hal-coco", AaaiOptions::COCO)] {
        let config = Config::load(&configs(), name).unwrap();
        let paper = |objective| HalConfig { aaai, ..HalConfig::new(objective) };
        for (row, objective) in [
            ("SUM", Objective::Sum),
            ("MAX", Objective::Max),
            ("HAL", Objective::Hal),
            ("MAX+HAL", Objective::MaxHal),
            ("AAAI local", Objective::HalAaaiLocal),
            ("AAAI bank", Objective::HalAaaiBank),
        ] {
            assert_eq!(config.row::<HalConfig>(row).unwrap(), paper(objective), "{name}, {row}");
        }
        let mut nearest = paper(Objective::MaxHal);
        nearest.hubs.neighbours = 1;
        assert_eq!(config.row::<HalConfig>("MAX+HAL (k=1)").unwrap(), nearest, "{name}");
        for (row, objective) in [
            ("Order SUM", Objective::Sum),
            ("Order MAX", Objective::Max),
            ("Order HAL", Objective::Hal),
        ] {
            let mut order = paper(objective);
            order.model.similarity = Similarity::Order;
            assert_eq!(config.row::<HalConfig>(row).unwrap(), order, "{name}, {row}");
        }
        for k in (1..=10).filter(|&k| k != 3) {
            let mut figure = paper(Objective::Hal);
            figure.hubs.neighbours = k;
            assert_eq!(config.row::<HalConfig>(&format!("k = {k}")).unwrap(), figure, "{name}");
        }
    }
}

/// Figure 1 is over k, Figure 2 shows N_1, text to image; in the full-size targets captions have the released code's marks.
#[test]
fn hal_targets_have_the_papers_figures() {
    use itm_core::text::Marks;

    for (name, table, marks) in [
        ("hal-flickr", 1, Marks::StartEnd),
        ("hal-coco", 2, Marks::StartEnd),
        ("hal-coco-c1", 2, Marks::StartEnd),
        ("hal-flickr8k", 1, Marks::Off),
        ("hal-scenes", 1, Marks::Off),
    ] {
        let config = Config::load(&configs(), name).unwrap();
        assert_eq!((config.target.table, config.target.marks), (table, marks), "{name}");
        let view = config.view(&Exhibit::Figure(2)).unwrap();
        assert_eq!(view.distribution(), Some((hubness::Direction::T2i, 1)), "{name}");
        assert_eq!(view.rows, ["SUM", "MAX", "HAL"], "{name}");
        assert_eq!(view.claim().against, ["SUM", "MAX"], "{name}");
        if let Some(view) = config.view(&Exhibit::Figure(1)) {
            let k = |row: &String| config.number(row, view.x.as_ref().unwrap()).unwrap();
            assert!(view.rows.iter().map(k).eq((1..=10).map(f64::from)), "{name}");
        }
    }
}

/// The tables of corrections have the paper's inferences in the paper's order, and models that the paper prints.
#[test]
fn corrections_are_the_papers() {
    let paper = Paper::read(&configs().join("papers/hal.toml")).unwrap();
    let lines = || paper.of_table(3).take(7);
    let printed = lines().map(|line| line.inference.as_ref().unwrap().to_lowercase());
    let printed: Vec<_> = printed.collect();
    let mut aliases = vec![];
    for config in targets() {
        for shown in config.shown() {
            let view = config.view(&shown).unwrap();
            let Some(alias) = view.alias else { continue };
            assert_eq!(view.rescore, printed, "{alias}");
            for model in view.printed.values() {
                paper.inferences(3, Some(model), || alias.clone()).unwrap();
            }
            aliases.push(alias);
        }
    }
    aliases.sort();
    let want = ["hubness-flickr8k", "hubness-flickr8k-fne", "hubness-scenes", "hubness-scenes-fne"];
    assert_eq!(aliases, want);
}

/// In the full-size targets Full is the preset `default`. In every target a row differs from Full in what its name says, and
/// all rows are scored at the same boundary, except the row that names another boundary.
#[test]
fn naaf_rows_differ_in_what_their_names_say() {
    use naaf::{Attention, InferenceBoundary, Intra, NegativeAware, Preset, Scan, Score, WordPool};
    type Change = fn(&mut NaafConfig);

    fn attention(config: &mut NaafConfig) -> &mut NegativeAware {
        let Attention::Naaf(naaf) = &mut config.attention else { panic!("another kind") };
        naaf
    }
    let changes: [(&str, Change); 7] = [
        ("w/o Neg.", |c| attention(c).negative = false),
        ("w/o Masks", |c| attention(c).masks = false),
        ("w/o Intra", |c| {
            attention(c).intra = Intra::Off;
            c.train.epochs = 0; // it scores with the weights of Full
        }),
        ("initial alpha = 1.0", |c| c.mining.alpha = 1.0),
        ("initial alpha = 3.0", |c| c.mining.alpha = 3.0),
        ("w/o up. neg. samp.", |c| c.mining.negative_word_pool = WordPool::Mean),
        ("w/o adjusting to alpha*", |c| {
            c.mining.inference_boundary = InferenceBoundary::Training;
        }),
    ];
    for name in ["naaf-flickr", "naaf-coco", "naaf-flickr8k", "naaf-scenes"] {
        let config = Config::load(&configs(), name).unwrap();
        let row = |name: &str| config.row::<NaafConfig>(name).unwrap();
        let full = row("Full");
        assert_eq!(full.mining.inference_boundary, InferenceBoundary::LowerBound);
        for (row_name, change) in changes {
            if name == "naaf-coco" && config.rows().all(|row| row != row_name) {
                continue; // it has no Table 3
            }
            let mut want = full.clone();
            change(&mut want);
            want.train.learning_rate = row(row_name).train.learning_rate; // each row has its own rate
            want.loss.warmup_epochs = row(row_name).loss.warmup_epochs;
            assert_eq!(row(row_name), want, "{name}, {row_name}");
        }
        for (row_name, scan) in [
            ("SCAN t-i", Scan::text_to_image(naaf::Pooling::Mean)),
            ("SCAN i-t", Scan::image_to_text(naaf::Pooling::Mean)),
        ] {
            let Attention::Scan(got) = row(row_name).attention else { panic!("{row_name}") };
            let lambda_lse = got.lambda_lse; // for another pooling
            assert_eq!(got, Scan { lambda_lse, ..scan }, "{name}, {row_name}");
        }
        let mut global = row("global triplet");
        assert_eq!(global.model.score, Score::Global, "{name}");
        global.model.score = full.model.score;
        (global.model.embed_dim, global.model.cca) = (full.model.embed_dim, full.model.cca.clone());
        global.train.learning_rate = full.train.learning_rate;
        assert_eq!(global, full, "{name}");
    }
    let flickr = Config::load(&configs(), "naaf-flickr").unwrap();
    let coco = Config::load(&configs(), "naaf-coco").unwrap();
    for (target, batch) in [(flickr, 128), (coco, 256)] {
        let mut want = NaafConfig::preset(Preset::Default);
        want.train.batch = batch; // N23
        assert_eq!(target.row::<NaafConfig>("w/o GloVe").unwrap(), want);
        want.model.word_vectors = naaf::VectorsFrom::Given; // a file, which no preset has
        assert_eq!(target.row::<NaafConfig>("Full").unwrap(), want);
    }
}

/// Both phases of both sizes have the paper's Table 5.
#[test]
fn tags_dc_rows_have_the_papers_hyper_parameters() {
    let text = std::fs::read_to_string(configs().join("papers/tags-dc.toml")).unwrap();
    let paper: toml::Table = text.parse().unwrap();
    let mut compared = 0;
    for hyper in paper["hyper"].as_array().unwrap() {
        let said = |key: &str| hyper.get(key).and_then(toml::Value::as_float);
        let named = |key: &str| hyper[key].as_str().unwrap();
        let data = if named("dataset") == "mscoco" { "coco" } else { "flickr" };
        let size = if named("size") == "large" { "-large" } else { "" };
        let target = &format!("tags-dc-{data}{size}");
        let row = if named("model") == "NSGDC" { "TAGS-DC" } else { "TAGS" };
        let config = Config::load(&configs(), target).unwrap();
        let TagsDcConfig { model, synthetic, retrieval, loss, train, .. } =
            config.row(row).unwrap();
        let width = if size.is_empty() { 768 } else { 1024 };
        assert_eq!((model.embed_dim, model.embed_dim / model.heads), (width, 64), "{target}");
        for (key, value) in [
            ("lr", train.learning_rate),
            ("margin", loss.margin),
            ("tau", synthetic.temperature),
            ("lambda_itm", loss.itm),
            ("lambda_mlm", loss.mlm),
            ("lambda_istm", loss.istm),
            ("lambda_wod", loss.wod),
            ("lambda_woc", loss.woc),
        ] {
            assert_eq!(value, said(key).unwrap_or(0.0), "{target}, {row}, {key}");
        }
        let m = hyper["m"].as_integer().unwrap() as usize;
        assert_eq!([synthetic.kept, retrieval.kept], [m, m]);
        let captions = if data == "coco" { 113_287 * 5 } else { 29_000 * 5 };
        let steps = hyper["steps"].as_integer().unwrap();
        assert_eq!(train.all_updates(captions) as i64, steps, "{target}, {row}");
        compared += 1;
    }
    assert_eq!(compared, 8);
}
