use std::fs;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Toy {
    train: Train,
    negatives: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Train {
    epochs: usize,
    rate: f64,
}

const TEXT: &str = r#"
negatives = "fne"
[target]
method = "fne"
paper = "P"
table = 3
dataset = "scenes"
protocol = "full"
seeds = 3
features = "given"
min_word_count = 1
max_words = 30
checkpoint_steps = 10
log_steps = 1
observe_steps = 0
[train]
epochs = 2
rate = 0.1
[row.Full]
[row."w/o FNE"]
negatives = "hardest"
train.epochs = 5
"#;

fn parse(text: &str) -> Result<Config> {
    Config::parse("toy", "configs/toy.toml".into(), text.into())
}

#[test]
fn rows_override_key_by_key_and_keep_their_order() {
    let config = parse(TEXT).unwrap();
    assert_eq!(config.rows().collect::<Vec<_>>(), ["Full", "w/o FNE"]);
    let full: Toy = config.row("Full").unwrap();
    assert_eq!(full, Toy { train: Train { epochs: 2, rate: 0.1 }, negatives: "fne".into() });
    let without: Toy = config.row("w/o FNE").unwrap();
    assert_eq!(without.train, Train { epochs: 5, rate: 0.1 });
    assert_eq!(without.negatives, "hardest");
}

#[test]
fn unknown_missing_and_mistyped_keys_are_one_line_that_names_them() {
    let error = |text: &str| match parse(text) {
        Ok(config) => config.row::<Toy>("Full").unwrap_err().to_string(),
        Err(e) => e.to_string(),
    };
    for (text, parts) in [
        (TEXT.replace("epochs = 2", "epoch = 2"), ["toy.toml", "row.Full", "epoch"]),
        (TEXT.replace("epochs = 2\n", ""), ["toy.toml", "row.Full", "missing field `epochs`"]),
        (TEXT.replace("epochs = 2", "epochs = \"two\""), ["toy.toml", "epochs", "string"]),
        (TEXT.replace("seeds = 3\n", ""), ["toy.toml", "target", "missing field `seeds`"]),
        (TEXT.replace("seeds = 3", "seeds = 3\nsede = 1"), ["toy.toml", "target", "sede"]),
        (TEXT.replace("rate = 0.1", "rate = = 1"), ["toy.toml line 18", "TOML", "expected"]),
        (TEXT.replace("rate = 0.1", "= 1"), ["toy.toml line 18", "TOML", "expected"]),
        (TEXT.replace("[row.Full]", "[raw.Full]"), ["toy.toml", "rows", "one of w/o FNE"]),
        (format!("{TEXT}[raw.Full]\n"), ["toy.toml", "every key", "raw"]),
    ] {
        let line = error(&text);
        assert_eq!(line.lines().count(), 1, "{line}");
        for part in parts {
            assert!(line.contains(part), "{line:?} names no {part:?}");
        }
    }
}

#[test]
fn an_unknown_row_is_answered_by_the_known_ones() {
    let error = parse(TEXT).unwrap().row::<Toy>("Ful").unwrap_err().to_string();
    assert!(error.contains("Full, w/o FNE") && error.contains("`Ful`"), "{error}");
}

const VIEWS: &str = "[table.4]\nrows = [\"Full\", \"w/o\"]\nensemble = 2\nprinted = { Full = \"P\" }\n\
    [figure.5]\nrows = [\"w/o\", \"Full\"]\nx = \"train.batch\"\n";

fn viewed(views: &str) -> Result<Config> {
    let rows = "[row.Full]\n[row.\"w/o\"]\ntrain.batch = 3\n";
    let scenes = include_str!("../../../../configs/fne-scenes.toml");
    let head = scenes.split("[row.Full]").next().unwrap();
    Config::parse("toy", "toy.toml".into(), format!("{head}{rows}{views}"))
}

#[test]
fn views_name_rows_once_and_numbers_on_an_axis() {
    let config = viewed(VIEWS).unwrap();
    assert_eq!(config.shown(), [Exhibit::Table(3), Exhibit::Table(4), Exhibit::Figure(5)]);
    let view = config.view(&Exhibit::Table(4)).unwrap();
    assert_eq!((view.ensemble, view.printed("Full"), view.printed("w/o")), (2, "P", "w/o"));
    let claim = view.claim();
    assert_eq!((claim.row.as_str(), &claim.against[..]), ("Full", &["w/o".to_owned()][..]));
    assert_eq!(config.number("w/o", "train.batch"), Some(3.0));
    assert_eq!(config.number("Full", "train.batch"), Some(128.0));
    let figure = config.view(&Exhibit::Figure(5)).unwrap();
    let rows = vec!["Full".to_owned(), "w/o".to_owned()];
    let points = config.points(&Exhibit::Figure(5), &View { rows, ..figure.clone() }).unwrap();
    assert_eq!(points, [("w/o".to_owned(), 3.0), ("Full".to_owned(), 128.0)], "ascending");
    let wrong = View { x: Some("train.botch".into()), ..figure };
    let line = config.points(&Exhibit::Figure(5), &wrong).unwrap_err().to_string();
    assert!(line.contains("toy.toml, figure.5, x") && line.contains("`train.botch`"), "{line}");
    // The target's own table has no section here, so it shows all rows.
    assert_eq!(config.view(&Exhibit::Table(3)).unwrap().rows, ["Full", "w/o"]);
    assert_eq!(config.view(&Exhibit::Table(9)), None);
    let named = viewed(&VIEWS.replace("[table.4]", "[table.scratch]")).unwrap();
    assert_eq!(named.shown()[1], Exhibit::Named("scratch".into()));
    assert_eq!(named.view(&Exhibit::table("scratch")).unwrap().ensemble, 2);
    config.row::<fne::FneConfig>("w/o").unwrap(); // views are not keys of the method
}

#[test]
fn a_row_names_the_row_that_it_begins_with() {
    let config =
        parse(&format!("{TEXT}[row.on]\nfrom = \"Full\"\n[row.again]\nextends = \"on\"\n"))
            .unwrap();
    let from = ["Full", "w/o FNE", "on", "again"].map(|row| config.from(row));
    assert_eq!(from, [None, None, Some("Full"), Some("Full")]);
    config.row::<Toy>("on").unwrap(); // `from` is not a key of the method
    for (rows, want) in [
        (
            "[row.on]\nfrom = \"Fool\"",
            "row.on, from: expected one of Full, w/o FNE, on, got `Fool`",
        ),
        ("[row.on]\nfrom = 3", "row.on, from: expected the name of a row, got integer"),
        (
            "[row.on]\nfrom = \"on\"",
            "row.on, from: expected a row that does not lead back to itself, got on → on",
        ),
        (
            "[row.a]\nfrom = \"b\"\n[row.b]\nfrom = \"c\"\n[row.c]\nfrom = \"b\"",
            "row.a, from: expected a row that does not lead back to itself, got a → b → c → b",
        ),
    ] {
        let line = parse(&format!("{TEXT}{rows}\n")).unwrap_err().to_string();
        assert_eq!(line, format!("configs/toy.toml, {want}"));
    }
}

#[test]
fn rows_are_together_in_a_table() {
    let with = |table: &str| viewed(&format!("[table.4]\nrows = [\"Full\", \"w/o\"]\n{table}\n"));
    let all = "together = [\"Full\", \"w/o\"]\nprinted = { \"Full + w/o\" = \"P\" }\n\
        claim = { row = \"Full + w/o\", against = [\"Full\"] }";
    let view = with(all).unwrap().view(&Exhibit::Table(4)).unwrap();
    assert_eq!((view.joined(), view.printed(&view.joined())), ("Full + w/o".into(), "P"));
    for (table, want) in [
        (
            "together = [\"Full\", \"Fool\"]",
            "table.4, together: expected rows of this table: Full, w/o, got `Fool`",
        ),
        (
            "together = [\"Full\", \"Full\"]",
            "table.4, together: expected each row once, got `Full` twice",
        ),
        ("together = [\"Full\"]", "table.4, together: expected at least two rows, got one"),
        (
            "together = [\"Full\", \"w/o\"]\nensemble = 2",
            "table.4, together: expected none beside ensemble, got rows",
        ),
        (
            "claim = { row = \"Full\", against = [\"w/o\", \"Full\"] }",
            "table.4, claim: expected a row against others, got `Full` against itself",
        ),
        (
            "printed = { \"Full + w/o\" = \"P\" }",
            "table.4, printed: expected rows of this file: Full, w/o, got `Full + w/o`",
        ),
    ] {
        assert_eq!(with(table).unwrap_err().to_string(), format!("toy.toml, {want}"));
    }
    let figure = "[figure.5]\nrows = [\"w/o\", \"Full\"]\nx = \"train.batch\"\ntogether = [\"Full\", \"w/o\"]\n";
    let line = viewed(figure).unwrap_err().to_string();
    assert_eq!(line, "toy.toml, figure.5, together: expected none in a figure, got rows");
}

/// The keys of a target for its tokens and its vocabulary file.
#[test]
fn a_target_names_its_words() {
    use itm_core::text::Tokens;
    let target =
        |keys: &str| parse(&TEXT.replace("[train]", &format!("{keys}\n[train]"))).map(|c| c.target);
    let plain = target("").unwrap();
    assert_eq!((plain.tokens, plain.vocabulary, plain.marks), (Tokens::Words, None, Marks::Off));
    assert_eq!(target("tokens = \"treebank\"").unwrap().tokens, Tokens::Treebank);
    assert_eq!(target("tokens = \"treebank_line\"").unwrap().tokens, Tokens::TreebankLine);
    assert!(
        target("tokens = \"bytes\"").unwrap_err().to_string().contains("unknown variant `bytes`")
    );
    let line = target("vocabulary = \"v.json\"").unwrap_err().to_string();
    let want = "configs/toy.toml, target.vocabulary: expected none: Scenes have no folder, and their vocabulary is built, got v.json";
    assert_eq!(line, want);
}

#[test]
fn wrong_views_are_one_line() {
    for (from, to, parts) in [
        ("rows = [\"Full\"", "rows = [\"Fool\"", ["table.4, rows", "Full, w/o", "`Fool`"]),
        ("\"w/o\"]\nens", "\"Full\"]\nens", ["table.4, rows", "once", "`Full` twice"]),
        ("rows = [\"Full\", \"w/o\"]", "rows = []", ["table.4, rows", "one row", "none"]),
        ("[table.4]", "[table.\"a/b\"]", ["table.a/b", "letters, digits", "`a/b`"]),
        ("[figure.5]", "[figure.five]", ["figure.five", "number", "`five`"]),
        ("[table.4]", "[table.0]", ["table.0", "number", "`0`"]),
        ("ensemble = 2", "ensemble = 0", ["table.4, ensemble", "1 to", "0"]),
        ("ensemble = 2", "colour = 2", ["table.4", "unknown field", "colour"]),
        ("ensemble = 2", "x = \"train.batch\"", ["table.4, x", "no axis", "key"]),
        ("Full = \"P\"", "Fool = \"P\"", ["table.4, printed", "rows of this file", "`Fool`"]),
        ("x = \"train.batch\"", "", ["figure.5, x", "x axis, or hubs and k", "none"]),
        ("x =", "sentences = true\nx =", ["figure.5, sentences", "none beside x", "a key"]),
        ("x = \"train.batch\"", "hubs = \"t2i\"", ["figure.5, k", "N_k", "none"]),
        ("x = \"train.batch\"", "k = 1", ["figure.5, k", "without hubs", "a key"]),
        ("x = \"train.batch\"", "hubs = \"t2t\"", ["figure.5", "unknown variant", "t2t"]),
        ("x = \"train.batch\"", "hubs = \"t2i\"\nk = 11", ["figure.5, k", "1 to 10", "11"]),
        ("x = \"train.batch\"", "hubs = \"t2i\"\nk = 0", ["figure.5, k", "1 to 10", "0"]),
        ("x =", "hubs = \"t2i\"\nk = 1\nx =", ["figure.5, hubs", "none beside x", "a key"]),
        ("ensemble = 2", "hubs = \"i2t\"", ["table.4, hubs", "no axis", "key"]),
        ("x =", "alias = \"a\"\nx =", ["figure.5, alias", "none in a figure", "a key"]),
        ("x =", "rescore = [\"csls\"]\nx =", ["figure.5, rescore", "none in a figure", "a key"]),
    ] {
        assert!(VIEWS.contains(from), "{from}");
        let line = viewed(&VIEWS.replacen(from, to, 1)).unwrap_err().to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        for part in ["toy.toml"].iter().chain(&parts) {
            assert!(line.contains(part), "{line:?} names no {part:?}");
        }
    }
}

/// Writes a folder of targets and loads the target `name`.
fn folder(files: &[(&str, &str)], name: &str) -> Result<Config> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
    }
    Config::load(dir.path(), name)
}

/// `OWN` extends `HALF`, and `HALF` extends `toy`: they change keys, leave out a row and a key, add a row and change a row.
const HALF: &str = "extends = \"toy\"\nrow.\"w/o FNE\" = false\n[train]\nepochs = 9\n";
const OWN: &str = "extends = \"half\"\n[target]\ntable = 4\nsubstitute = false\n\
    [row.New]\ntrain.rate = 0.5\n[row.Full]\nnegatives = \"own\"\n";

#[test]
fn a_target_takes_over_what_it_extends() {
    let toy = &TEXT.replace("seeds = 3", "seeds = 3\nsubstitute = \"other\"");
    let read = |name| folder(&[("toy", toy), ("half", HALF), ("own", OWN)], name).unwrap();
    assert_eq!((&read("toy").text, read("toy").sha256), (toy, sha256_hex(toy.as_bytes())));
    let own = read("own");
    assert_eq!((own.target.table, own.target.seeds, own.name.as_str()), (4, 3, "own"));
    let substitutes = ["half", "own"].map(|name| read(name).target.substitute);
    assert_eq!(substitutes, [Some("other".to_owned()), None]);
    assert_eq!(own.rows().collect::<Vec<_>>(), ["Full", "New"]);
    let row = |name: &str| own.row::<Toy>(name).unwrap();
    assert_eq!((row("Full").negatives.as_str(), row("New").negatives.as_str()), ("own", "fne"));
    assert_eq!(row("Full").train, Train { epochs: 9, rate: 0.1 });
    assert_eq!(row("New").train, Train { epochs: 9, rate: 0.5 });

    // The copy in the run directory is complete: without its base it is the same target, with the same hash.
    let copy = folder(&[("own", &own.text)], "own").unwrap();
    assert!(!own.text.contains("extends") && copy.sha256 == own.sha256 && copy.text == own.text);
    assert_eq!((&copy.rows, &copy.method, &copy.target), (&own.rows, &own.method, &own.target));
}

/// The order of rows is the order of a table.
#[test]
fn a_copy_keeps_the_order_of_rows_that_are_merged() {
    let configs = crate::tests::configs();
    for name in Config::names(&configs).unwrap() {
        let config = Config::load(&configs, &name).unwrap();
        let copy = Config::parse(&name, "config.toml".into(), config.text.clone()).unwrap();
        assert!(copy.rows().eq(config.rows()), "{name}");
        assert_eq!((&copy.views, &copy.sha256), (&config.views, &config.sha256), "{name}");
        for row in config.rows() {
            let [own, copied] = [&config, &copy].map(|config| config.row::<Table>(row).unwrap());
            assert_eq!(own, copied, "{name}, {row}");
        }
    }
}

/// A file has the keys of its preset where it and its row say nothing else.
#[test]
fn a_target_begins_with_a_preset() {
    let of = |preset: &str, more: &str| {
        let head = TEXT.split("[train]").next().unwrap().replace("negatives = \"fne\"\n", "");
        Config::parse("toy", "toy.toml".into(), format!("preset = {preset}\n{head}{more}"))
    };
    let row = |preset, more| of(preset, more).unwrap().row::<fne::FneConfig>("A").unwrap();
    for (name, preset) in [
        ("\"paper\"", fne::Preset::Paper),
        ("\"official\"", fne::Preset::Official),
        ("\"default\"", fne::Preset::Default),
    ] {
        assert_eq!(row(name, "[row.A]\n"), fne::FneConfig::preset(preset), "{name}");
    }
    let mut want = fne::FneConfig::preset(fne::Preset::Paper);
    (want.train.batch, want.sampler.tau) = (7, 0.25);
    assert_eq!(row("\"paper\"", "[train]\nbatch = 7\n[row.A]\nsampler.tau = 0.25\n"), want);
    // Another kind has other keys; `false` leaves a section out.
    let bag = "[model]\ntext = { kind = \"bag\", pooling = \"mean\" }\n\
        [model.image]\nkind = \"features\"\ntransform = \"raw\"\nresidual = { hidden = 4, \
        input_scale = 1.0, input_dropout = 0.0, hidden_dropout = 0.0, rate_factor = 1.0 }\n\
        [row.A]\nmodel.image.residual = false\n[row.B]\n";
    let fne::ImageConfig::Features(features) = row("\"default\"", bag).model.image else {
        panic!("no features")
    };
    assert_eq!(features.residual, None);
    assert!(of("\"default\"", bag).unwrap().row::<fne::FneConfig>("B").is_ok());
    for (preset, more, want) in [
        (
            "\"papre\"",
            "",
            "toy.toml, preset: expected one of paper, official, default, got `papre`",
        ),
        ("3", "", "toy.toml, preset: expected one of paper, official, default, got 3"),
        (
            "\"paper\"",
            "[row.A]\nextends = \"B\"\n",
            "toy.toml, row.A, extends: expected one of A, got `B`",
        ),
        (
            "\"paper\"",
            "[row.A]\nlike = \"B\"\n",
            "toy.toml, row.A.like: expected `extends`, which replaces this key, got `like`",
        ),
        (
            "\"paper\"",
            "[row.A]\n[without]\nrow = []\n",
            "toy.toml, without: expected `KEY = false`, which replaces this key, got `without`",
        ),
        (
            "\"paper\"",
            "[row.A]\ntrain.seed = 7\n",
            "toy.toml, row.A.train.seed: expected 0: `--seeds` counts from it, got 7",
        ),
        (
            "\"paper\"",
            "[row.\"α = 1\"]\n[row.\"α = -1\"]\n",
            "toy.toml, row.α = -1: expected another name: `α = 1` has the folder `α-1`, got `α = -1`",
        ),
        (
            "\"paper\"",
            "[row.\"+\"]\n",
            "toy.toml, row.+: expected a name with a letter or a digit, got none",
        ),
    ] {
        assert_eq!(of(preset, more).unwrap_err().to_string(), want);
    }
    of("\"paper\"", "[row.like]\n").unwrap(); // a row of any name
    let line = of("\"paper\"", "[row.A]\ntrain.seeds = false\n").unwrap();
    let line = line.row::<fne::FneConfig>("A").unwrap_err().to_string();
    assert!(line.contains("toy.toml, row.A") && line.contains("`seeds`"), "{line}");
}

/// The base leaves a key out in its rows; the file leaves it out in the target, and the row with it.
#[test]
fn a_key_is_left_out_once() {
    let toy = "[target]\n[section]\npart = { a = 1 }\n[row.A]\nsection.part = false\n";
    let own = "extends = \"toy\"\n[section]\npart = false\n";
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("toy.toml"), toy).unwrap();
    let chain = chain(&dir.path().join("own.toml"), own.parse().unwrap(), vec![]).unwrap();
    assert_eq!(
        merged(Table::new(), &chain),
        "[target]\n[section]\n[row.A.section]\n".parse().unwrap()
    );
}

/// A file names another `kind` than its base, which leaves its own to the preset: the keys of the base were kept, and refused.
#[test]
fn another_kind_than_the_presets_replaces_a_section() {
    let head = TEXT.split("[train]").next().unwrap().replace("negatives = \"fne\"\n", "");
    let base = format!("preset = \"default\"\n{head}[model.image]\nimage_size = 96\n[row.A]\n");
    let image = |kind: &str| {
        let own = format!("extends = \"toy\"\n[model]\nimage = {{ {kind} }}\n");
        let config = folder(&[("toy", &base), ("own", &own)], "own").unwrap();
        config.row::<fne::FneConfig>("A").unwrap().model.image
    };
    let fne::ImageConfig::Features(_) = image("kind = \"features\", transform = \"raw\"") else {
        panic!("no features")
    };
    let fne::ImageConfig::Vit(vit) = image("kind = \"vit\", augment = \"off\"") else {
        panic!("no pictures")
    };
    assert_eq!(vit.image_size, 96, "the same kind keeps the keys of the base");
}

/// A row took over single keys of the file's section, into a section of its own kind, and what it left out came back from the file.
#[test]
fn a_row_changes_what_the_extended_row_is() {
    let rows = "[row.A]\npart.size = 2\n[row.B]\nextends = \"A\"\npart = { kind = \"new\", width = 3 }\n\
        [row.C]\nextends = \"A\"\npart.size = false\n";
    let head = TEXT.replace("[train]", "[part]\nkind = \"old\"\nsize = 1\n[train]");
    let config = parse(&format!("{head}{rows}")).unwrap();
    for (row, want) in [
        ("A", "kind = \"old\"\nsize = 2\n"),
        ("B", "kind = \"new\"\nwidth = 3\n"),
        ("C", "kind = \"old\"\n"),
    ] {
        let want = Value::Table(want.parse().unwrap());
        assert_eq!(config.row::<Table>(row).unwrap()["part"], want, "{row}");
    }
}

#[test]
fn wrong_bases_are_one_line() {
    let other = TEXT.replace("\"fne\"", "\"hal\"");
    for (own, half, parts) in [
        (OWN.replace("half", "hulf"), HALF, ["own.toml, extends", "one of half", "`hulf`"]),
        (OWN.replace("half", "../toy"), HALF, ["own.toml, extends", "one of half", "`../toy`"]),
        (OWN.replace("half", "own"), HALF, ["own.toml, extends", "back to itself", "own → own"]),
        (OWN.into(), OWN, ["half.toml, extends", "back to itself", "own → half → half"]),
        (OWN.into(), "extends = \"own\"", ["half.toml, extends", "itself", "own → half → own"]),
        (OWN.into(), "extends = 3", ["half.toml, extends", "name of a target", "integer"]),
        (OWN.into(), "extends = ", ["half.toml line 1", "valid TOML", "got"]),
        (
            OWN.replace("table = 4", "table = 4\nmethod = \"fne\""),
            &other,
            ["own.toml, extends", "the method \"fne\"", "`half`, whose method is \"hal\""],
        ),
        (
            OWN.replace("substitute = false", "seeds = false"),
            HALF,
            ["own.toml, target", "missing field", "`seeds`"],
        ),
        (
            OWN.replace("substitute = false\n", ""),
            "extends = \"toy\"\nrow.Fool = false\n",
            ["own.toml, row.Fool", "a section", "boolean"],
        ),
    ] {
        let error = folder(&[("toy", TEXT), ("half", half), ("own", &own)], "own").unwrap_err();
        let line = error.to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        for part in parts {
            assert!(line.contains(part), "{line:?} names no {part:?}");
        }
    }
}

/// An alias is a table of a target; a name that is neither a target nor an alias is answered by both.
#[test]
fn an_alias_names_a_table() {
    let configs = crate::tests::configs();
    for (alias, target, table) in [
        ("hubness-scenes", "hal-scenes", "3"),
        ("hubness-flickr8k", "hal-flickr8k", "3"),
        ("hubness-scenes-fne", "fne-scenes", "hubs"),
        ("hubness-flickr8k-fne", "fne-flickr8k", "hubs"),
    ] {
        let (config, shown) = Config::find(&configs, alias).unwrap();
        assert_eq!((config.name.as_str(), shown), (target, Some(Exhibit::table(table))));
    }
    let (config, shown) = Config::find(&configs, "hal-scenes").unwrap();
    assert_eq!((config.name.as_str(), shown), ("hal-scenes", None));
    let line = Config::find(&configs, "hubnes").unwrap_err().to_string();
    assert!(line.contains("hal-scenes, hubness-flickr8k, hubness-flickr8k-fne"), "{line}");
    let path = Config::find(&configs, "../configs/hal-scenes").unwrap_err().to_string();
    assert!(
        path.starts_with("target: expected one of "),
        "a run's folder has the target's name: {path}"
    );
}

/// Each choice of data reaches the reader or is refused; none is ignored silently.
#[test]
fn choices_of_data_are_read_or_refused() {
    use itm_core::data::{CaptionRule, LoadOptions, RegionSource, RegionTransform, TestSet};
    let with = |dataset: &str, keys: &str| {
        let text =
            TEXT.replace("dataset = \"scenes\"", &format!("dataset = \"{dataset}\"\n{keys}"));
        parse(&text).map(|config| config.target)
    };
    let keys = "regions = \"grid\"\nregion_transform = \"unit_centred\"\nval_captions = 5000";
    let target = with("coco", keys).unwrap();
    assert_eq!(target.region_transform, RegionTransform::UnitCentred);
    let options = load_options(&target);
    assert_eq!((options.regions, options.val_captions), (Some(RegionSource::Grid), Some(5000)));
    assert_eq!(options.test, TestSet::Test);
    let of_5000 = Target { protocol: Protocol::Coco5k, ..target };
    let options = load_options(&of_5000);
    assert_eq!((options.test, options.captions), (TestSet::TestAll, CaptionRule::First(5)));
    let whole = LoadOptions { captions: CaptionRule::All, ..LoadOptions::default() };
    assert_eq!(load_options(&with("coco", "").unwrap()), whole);
    with("scenes", "regions = \"given\"").unwrap();
    for (dataset, keys, parts) in [
        ("scenes", "regions = \"grid\"", ["target.regions", "Scenes have no grid", "Grid"]),
        ("scenes", "val_captions = 5", ["target.val_captions", "scenes.val", "5"]),
        (
            "coco",
            "region_transform = \"unit_centred\"",
            ["region_transform", "without target.regions", "Unit"],
        ),
        ("coco", "regions = \"boxes\"", ["target", "unknown variant", "boxes"]),
    ] {
        let line = with(dataset, keys).unwrap_err().to_string();
        for part in parts {
            assert!(line.contains(part) && !line.contains('\n'), "{line:?} names no {part:?}");
        }
    }
    for (keys, key) in [("regions = \"grid\"", "regions"), ("val_captions = 5", "val_captions")] {
        let text =
            TEXT.replace("features = \"given\"", &format!("features = \"pictures\"\n{keys}"));
        let line = parse(&text.replace("\"scenes\"", "\"coco\"")).unwrap_err().to_string();
        assert!(line.contains(&format!("target.{key}: expected none beside pictures")), "{line}");
    }
}
