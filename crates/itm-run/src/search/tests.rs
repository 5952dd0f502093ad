use std::fs;

use itm_core::Pairs;
use itm_core::data::Split;
use itm_core::eval::TiePolicy;
use itm_core::tiles::{Embeddings, ranks};
use itm_search::{Term, What as Of};
use tempfile::TempDir;

use super::*;
use crate::embed::tests::model;
use crate::tests::{configs, small_run_in};

/// Pictures of Scenes with captions, a model of CLIP's files with made-up weights, and a small bank.
struct World {
    dir: TempDir,
    captions: Vec<String>,
}

const PICTURES: usize = 30;

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["images", "model"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        model(&dir.path().join("model"));
        let sizes = scenes::Sizes { train: PICTURES, val: 0, test: 0, pixels: 24 };
        let world = scenes::Scenes::generate(4, sizes);
        let captions: Vec<String> =
            (0..PICTURES).map(|i| world.train.captions[5 * i].text.clone()).collect();
        let mut table = String::new();
        for (i, caption) in captions.iter().enumerate() {
            fs::write(dir.path().join(format!("images/{i:02}.png")), world.train.png(i)).unwrap();
            table += &format!("{i:02}.png\t{caption}\n");
        }
        fs::write(dir.path().join("captions.txt"), table).unwrap();
        let bank: String = (0..40).map(|k| format!("a {k} of {}\n", k * k)).collect();
        fs::write(dir.path().join("bank.txt"), bank).unwrap();
        Self { dir, captions }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn args(&self, joined: bool) -> IndexArgs {
        let model = self.path("model").display().to_string();
        IndexArgs {
            model: Some(model.clone()),
            images: self.path("images"),
            out: Some(self.path("out")),
            bank: Some(self.path("bank.txt")),
            text_model: joined.then_some(model),
            captions: joined.then(|| self.path("captions.txt")),
            run: None,
            backend: "cpu".into(),
        }
    }

    fn open(&self) -> Searcher {
        open(&self.path("out"), "cpu", &configs()).unwrap()
    }

    fn line(&self, result: Result<()>) -> String {
        result.unwrap_err().to_string().replace(&*self.dir.path().display().to_string(), "DIR")
    }
}

fn options() -> Options {
    Options { top: PICTURES, corrected: false, threshold: None, filter: Filter::default() }
}

/// The rank of each caption's picture in a search is its rank among the model's rows.
fn check_ranks(searcher: &Searcher, captions: &[String]) {
    let index = searcher.index();
    let texts: Vec<&str> = captions.iter().map(String::as_str).collect();
    let texts: Vec<f32> =
        texts.iter().flat_map(|text| searcher.encoder().texts(&[text]).unwrap()).collect();
    let rows: Vec<f32> = (0..captions.len()).flat_map(|k| index.row(k).to_vec()).collect();
    let side = |name, rows| Embeddings::new(name, captions.len(), index.width(), rows).unwrap();
    let want = ranks(
        side("pictures", &rows),
        side("captions", &texts),
        &Pairs::uniform(captions.len(), 1),
    );
    let want = want.unwrap();
    for (k, caption) in captions.iter().enumerate() {
        let query = Query::parse(caption, index).unwrap();
        let hits =
            searcher.search(&query, &Options { top: captions.len(), ..options() }).unwrap().hits;
        let rank = hits.iter().position(|hit| hit.picture == k).unwrap();
        assert_eq!(rank as f64, want.t2i()[k].rank(TiePolicy::Index), "{caption}");
    }
}

#[test]
fn clip_finds_pictures_by_sentences_and_by_pictures() {
    let world = World::new();
    index(&world.args(false), &configs()).unwrap();
    let searcher = world.open();
    assert_eq!((searcher.index().pictures().len(), searcher.index().width()), (PICTURES, 12));
    check_ranks(&searcher, &world.captions);
    let query = Query::parse("3:red - blue + 04.png", searcher.index()).unwrap();
    let hits = searcher.search(&query, &options()).unwrap().hits;
    assert!(hits.len() == PICTURES - 1 && hits.iter().all(|hit| hit.picture != 4));
    // The file of a picture of the index has the row of the index.
    let same = like(&world.path("images/07.png"), searcher.index()).unwrap();
    let best = searcher.search(&same, &options()).unwrap().hits[0];
    assert!(best.picture == 7 && best.cosine > 0.9999, "{best:?}");
    assert_eq!(like(Path::new("07.png"), searcher.index()).unwrap(), Query::like(7));
    // A patch map for each word; the mean of the map is no row of the picture.
    let why = searcher.why(&query, 2).unwrap().unwrap();
    assert_eq!((why.grid, why.words.len(), why.words[0].1.len()), ([2, 2], 2, 4));

    // The same command again encodes nothing, and another model everything: its rows differ.
    let first = searcher.index().row(0).to_vec();
    index(&world.args(false), &configs()).unwrap();
    assert_eq!(world.open().index().row(0), first);
    let preprocessor = world.path("model/preprocessor_config.json");
    let text = fs::read_to_string(&preprocessor).unwrap();
    fs::write(&preprocessor, text.replacen('{', "{\"image_mean\": [0.1, 0.2, 0.3], ", 1)).unwrap();
    let line = world.line(open(&world.path("out"), "cpu", &configs()).map(drop));
    assert_eq!(
        line,
        "model: expected model, as the index was made with, got model, or other weights"
    );
    index(&world.args(false), &configs()).unwrap();
    assert_ne!(world.open().index().row(0), first);
}

/// CLIP's rows are of the centre of a wide photograph; the map of its patches lies over all of it.
#[test]
fn patches_cover_the_whole_photograph() {
    let world = World::new();
    let model = Towers::open(&world.path("model").display().to_string(), "cpu").unwrap();
    let wide = |edge: u8| {
        let pixel = |x: u32, _: u32| image::Rgb([if x < 8 { edge } else { 90 }, 40, 200]);
        image::DynamicImage::from(image::RgbImage::from_fn(48, 16, pixel))
    };
    let two = [wide(0), wide(255)];
    let row = |picture: &image::DynamicImage| model.pictures(std::slice::from_ref(picture));
    assert_eq!(row(&two[0]).unwrap(), row(&two[1]).unwrap(), "the edge is cut off");
    let [a, b] = two.each_ref().map(|picture| model.patches(picture).unwrap().unwrap());
    assert_eq!(a.grid, [2, 2]);
    assert_ne!(a.rows, b.rows);
}

/// The maps of CCA are made once: the same captions open them, others make new ones, and the index keeps only its own.
#[test]
fn two_models_are_joined_by_captions() {
    let world = World::new();
    index(&world.args(true), &configs()).unwrap();
    let maps = || {
        let names =
            fs::read_dir(world.path("out")).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("maps-")).collect::<Vec<_>>()
    };
    let first = maps();
    assert_eq!(first.len(), 1);
    let rows = || {
        let searcher = world.open();
        let index = searcher.index();
        (0..index.pictures().len()).flat_map(|k| index.row(k)).collect::<Vec<f32>>()
    };
    let whole = rows();
    fs::remove_dir_all(world.path("out/index")).unwrap(); // as after a stop between the maps and the index
    index(&world.args(true), &configs()).unwrap();
    assert!(maps() == first && rows() == whole);
    let searcher = world.open();
    check_ranks(&searcher, &world.captions);
    assert!(searcher.index().width() <= 12);
    assert_eq!(searcher.why(&Query::parse("a", searcher.index()).unwrap(), 0).unwrap(), None);
    fs::remove_file(world.path("images/29.png")).unwrap(); // it has a caption, and the maps are there
    index(&world.args(true), &configs()).unwrap();
    assert_eq!((maps(), world.open().index().pictures().len()), (first.clone(), PICTURES - 1));

    let captions = fs::read_to_string(world.path("captions.txt")).unwrap();
    let fewer: String = captions.lines().take(25).map(|line| format!("{line}\n")).collect();
    fs::write(world.path("captions.txt"), &fewer).unwrap();
    let own = ["maps-of-europe.safetensors", "maps-0123456789abcdef.txt"];
    let own = own.map(|name| world.path("out").join(name));
    own.iter().for_each(|path| fs::write(path, "").unwrap());
    index(&world.args(true), &configs()).unwrap();
    own.iter().for_each(|path| fs::remove_file(path).unwrap()); // an index removes only what it has written
    assert_eq!(maps().len(), 1);
    assert_ne!(maps(), first);
    let path = world.path("out").join(&maps()[0]);
    let whole = fs::read(&path).unwrap();
    for cut in [0, 7, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let line = world.line(open(&world.path("out"), "cpu", &configs()).map(drop));
        assert!(line.contains("expected maps of CCA, got "), "{line}");
    }
    let short: String = fewer.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(world.path("captions.txt"), short).unwrap();
    let line = world.line(index(&world.args(true), &configs()));
    assert_eq!(line, "DIR/captions.txt: expected captions of at least 20 photographs, got 3");
    let outside = fewer.replacen("00.png", "../secret.png", 1);
    fs::write(world.path("captions.txt"), outside).unwrap();
    let line = world.line(index(&world.args(true), &configs()));
    let want =
        "DIR/captions.txt line 1: expected a path below the data folder, got \"../secret.png\"";
    assert_eq!(line, want);
    #[cfg(unix)]
    {
        fs::rename(world.path("images/00.png"), world.path("secret.png")).unwrap();
        let link = world.path("images/00.png");
        std::os::unix::fs::symlink(world.path("secret.png"), link).unwrap();
        fs::write(world.path("captions.txt"), fewer.replace("red", "pink")).unwrap();
        let line = world.line(index(&world.args(true), &configs()));
        let want = "DIR/images/00.png: expected a photograph of the folder, got a link out of it";
        assert_eq!(line, want);
    }
}

/// After an index, which listens to signals, the server ends by them. The test runs itself as the server.
#[cfg(unix)]
#[test]
fn a_server_ends_by_a_signal() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    const SERVES: &str = "ITM_TEST_SERVES";
    if std::env::var_os(SERVES).is_some() {
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_secs(60));
            std::process::exit(1); // no signal ended the server
        });
        let world = World::new();
        index(&world.args(false), &configs()).unwrap();
        let listen = ([127, 0, 0, 1], 0).into();
        return page(world.open(), &serve::Options { listen, token: None }).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    for (signal, number) in [("-TERM", None), ("-HUP", Some(1))] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["search::tests::a_server_ends_by_a_signal", "--exact", "--nocapture"]);
        command.env(SERVES, "").env("TMPDIR", dir.path()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let line = said.map_while(Result::ok).find(|line| line.contains("http://")).unwrap();
        let address = line.split('/').nth(2).unwrap();
        let mut asked = TcpStream::connect(address).unwrap();
        asked.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        asked.read_exact(&mut [0]).unwrap(); // the server answers, so it waits for signals
        let kill = format!("kill {signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!((status.success(), status.signal()), (number.is_none(), number), "{signal}");
    }
}

/// A run on Scenes: its test pictures by its towers, and new sentences.
#[test]
fn a_finished_run_is_searched() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    let run = small_run_in("fne-scenes", &[], &folder);
    run.train("Full", 0, |_| ()).unwrap();
    let captions = run.source.dataset.test.captions.clone();
    drop(run);
    let args = IndexArgs {
        model: None,
        images: "scenes".into(),
        out: Some(dir.path().join("out")),
        bank: None,
        text_model: None,
        captions: None,
        run: Some(folder.clone()),
        backend: "cpu".into(),
    };
    index(&args, &configs()).unwrap();
    let out = dir.path().join("out");
    let searcher = open(&out, "cpu", &configs()).unwrap();
    assert_eq!(searcher.index().pictures().len(), 4);
    assert!(out.join("pictures").join(&searcher.index().pictures()[0].path).is_file());
    let run = small_run_in("fne-scenes", &[], &folder);
    let model = run.trained("Full", 0).unwrap();
    let scores = run.scores(&model, Split::Test).unwrap();
    for (k, caption) in captions.iter().enumerate() {
        let query = Query { terms: vec![Term { weight: 1.0, what: Of::Words(caption.clone()) }] };
        for hit in searcher.search(&query, &options()).unwrap().hits {
            let want = scores.pairs(&[hit.picture], &[k]).unwrap()[0];
            assert!((hit.cosine - want).abs() < 1e-5, "{caption}: {} for {want}", hit.cosine);
        }
    }
    let error = |query: &Query| searcher.search(query, &options()).unwrap_err().to_string();
    let words = Query::parse("zzyzx", searcher.index()).unwrap();
    assert_eq!(
        error(&words),
        "\"zzyzx\": expected a word that a caption of the training has, got none"
    );
    let new = Query::image(image::RgbImage::new(4, 4).into());
    assert!(
        error(&new).starts_with("picture: expected a picture of the run's test split"),
        "{}",
        error(&new)
    );
    // A picture of an earlier run, of which this run has no row.
    let other = out.join("pictures/test_000099.png");
    fs::copy(out.join("pictures/test_000000.png"), &other).unwrap();
    let line = index(&args, &configs()).unwrap_err().to_string();
    let want =
        "expected pictures of this run alone, or another --out, got a picture that it has not";
    assert_eq!(line, format!("{}: {want}", other.display()));
    let line =
        index(&IndexArgs { images: "photos".into(), ..args }, &configs()).unwrap_err().to_string();
    assert_eq!(
        line,
        "--images: expected `scenes`: a run has no rows of other pictures, got photos"
    );
}

#[test]
fn an_index_is_called_by_its_photographs() {
    let here = std::env::current_dir().unwrap();
    let name = |path: &Path| format!("{}.index", path.file_name().unwrap().display());
    for (images, want) in [
        ("a/b", "b.index"),
        ("a/b/", "b.index"),
        ("none", "none.index"),
        (".", &*name(&here)),
        ("..", &*name(here.parent().unwrap())),
        ("/", "photographs.index"),
    ] {
        assert_eq!(default_out(images.as_ref()), Path::new(want), "{images}");
    }
}

/// The digits of a score are its own, and an answer without candidates names the filter.
#[test]
fn an_answer_is_printed() {
    let world = World::new();
    let turned = "\u{200e}a\u{202e}gpj.png";
    fs::rename(world.path("images/00.png"), world.path("images").join(turned)).unwrap();
    index(&world.args(false), &configs()).unwrap();
    let searcher = world.open();
    let command = |line: &str| {
        let line = format!("itm search red --index x {line}");
        let cli = <crate::cli::Cli as clap::Parser>::try_parse_from(line.split_whitespace());
        let crate::cli::Command::Search(args) = cli.unwrap().command else { panic!("{line}") };
        let query = Query::parse("red", searcher.index()).unwrap();
        let (folder, after) = (args.folder.clone(), args.after.clone());
        let filter = Filter { folder, after, before: None };
        let answer = searcher.search(&query, &Options { filter, ..options() }).unwrap();
        let lines = lines(&args, searcher.index(), &answer, &query);
        (answer, lines)
    };
    let (answer, lines) = command("--json");
    let hit = answer.hits[0];
    for part in [
        format!("\"score\":{}", hit.score),
        format!("\"cosine\":{}", hit.cosine),
        format!("\"level\":{}", answer.level),
    ] {
        assert!([',', '}'].iter().any(|end| lines[0].contains(&format!("{part}{end}"))), "{part}");
    }
    assert!(lines[0].contains(r#""path":"\u200ea\u202egpj.png""#), "{}", lines[0]);
    let json: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert!(json["hits"].as_array().unwrap().iter().any(|hit| hit["path"] == turned));
    let want = "nothing here matches: no photograph passes --folder nosuch --after 2024";
    assert_eq!(command("--folder nosuch --after 2024").1, [want]);
}

/// Options that did nothing: without an index a world is made and shown, and `auto` is the level of sentences.
#[test]
fn options_that_would_be_ignored_are_refused() {
    let parse = |line: &str| {
        let line = format!("itm search {line}");
        <crate::cli::Cli as clap::Parser>::try_parse_from(line.split_whitespace())
    };
    let options = ["--threshold 0.1", "--no-correction", "-f", "--json", "--after 2024"];
    let options = options.into_iter().chain(["--before 2024", "--folder a"]);
    let taken: Vec<_> = options.filter(|option| parse(option).is_ok()).collect();
    assert!(taken.is_empty(), "{taken:?}");
    let world = World::new();
    index(&world.args(false), &configs()).unwrap();
    let cli = parse("--like 07.png --threshold auto --index x").unwrap();
    let crate::cli::Command::Search(mut args) = cli.command else { panic!("another command") };
    args.index = Some(world.path("out"));
    let want = "--threshold: expected a number: `auto` is the level of sentences, got auto";
    assert_eq!(world.line(search(&args, &configs())), want);
}

#[test]
fn what_makes_no_index_is_one_line() {
    let world = World::new();
    let args = |change: &dyn Fn(&mut IndexArgs)| {
        let mut args = world.args(false);
        change(&mut args);
        world.line(index(&args, &configs()))
    };
    let twice = |joined| {
        let args = IndexArgs { out: Some(world.path("images")), ..world.args(joined) };
        world.line(index(&args, &configs()))
    };
    let want = "DIR/images: expected another folder than the photographs', got the same";
    assert_eq!((twice(false), twice(true)), (want.into(), want.into()));
    assert_eq!(fs::read_dir(world.path("images")).unwrap().count(), PICTURES);
    fs::write(world.path("few.txt"), "a\n\nb\n").unwrap();
    let few = world.path("few.txt");
    assert_eq!(args(&|a| a.bank = Some(few.clone())), "bank: expected at least 8 queries, got 2");
    let none = args(&|a| a.images = world.path("none"));
    assert!(none.starts_with("DIR/none: "), "{none}");
    let line = world.line(open(&world.path("images"), "cpu", &configs()).map(drop));
    assert!(line.starts_with("DIR/images/index/index.json: "), "{line}");
}
