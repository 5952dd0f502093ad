//! `itm explain`: reads a finished run and writes pages with pictures about one row. Depending on the row, they show
//! - items that the row takes for matches that nobody annotated,
//! - patches that its words are close to,
//! - regions that its words attend to, and how the words change a score,
//! - words that do not match an image, and their corrections.

mod asked;
mod maps;

use std::fs;
use std::path::{Path, PathBuf};

use itm_core::{Error, Result};

use crate::disk::write_atomically;
use crate::explanations::queries::{Queries, false_negatives};
use crate::explanations::word_maps::{self, Pair};
use crate::methods::Kind;
use crate::model::Model;
use crate::report::{self, Example, Item, Mark};
use crate::run::Run;
use crate::split::Split;
use crate::{cli, progress};

/// Shows the most probable false negatives of some queries, and maps of words where there are patches or regions. If
/// the command names pairs, shows only the maps of these pairs. Returns the folder with pages and pictures.
///
/// # Errors
/// If the run or the row is missing, if there is neither posterior nor map, or if a file cannot be written: one line.
pub(crate) fn explain(args: &cli::Explain, configs: &Path) -> Result<PathBuf> {
    let run = open(args, configs)?;
    let source = &run.source;
    let split = match args.split {
        cli::ExplainedSplit::Train => Split::Train,
        cli::ExplainedSplit::Test => Split::Test,
    };
    let row = run.config.named_row(args.row.as_deref())?;
    let folder = run.dir().folder(&row, args.seed).join("explain").join(split.name());
    let pairs = word_maps::asked(source, split, &asked::pairs(source, split, args)?);
    if !pairs.is_empty() {
        let model = run.trained(&row, args.seed)?;
        let page = match judged(&run, &model, (split, &pairs), &folder)? {
            None => maps::write(&run, (&model, args), (split, &pairs), &folder)?,
            page => page,
        };
        let Some(page) = page else {
            let expected = "a row that compares words with patches or regions, or judges words";
            return Err(Error::invalid("--row", expected, format!("`{row}`")));
        };
        progress::say(format!("Page: {}", page.display()));
        return Ok(folder);
    }
    let given = Queries {
        images: args.images.clone().unwrap_or_default(),
        captions: args.captions.clone().unwrap_or_default(),
    };
    let queries = match given == Queries::default() {
        true => Queries::spread(source, split, args.queries),
        false => given,
    };
    queries.check(source, split)?;
    let spinner = progress::spinner("embedding");
    let model = run.trained(&row, args.seed)?;
    spinner.finish_and_clear();
    let scored = run.scores(&model, split)?;
    let captions = match args.captions {
        Some(_) => queries.captions.clone(),
        None => word_maps::spread(source, split, args.queries),
    };
    let pairs = word_maps::pairs(source, split, &captions, Some(&*scored))?;
    if let Some(path) = judged(&run, &model, (split, &pairs), &folder)? {
        progress::say(format!("Page: {}", path.display()));
        return Ok(folder);
    }
    let maps = maps::write(&run, (&model, args), (split, &pairs), &folder)?;
    if maps.is_none() {
        progress::say(format!("No word-patches.html: the encoders of `{row}` have no patches."));
    }
    match model.method.posterior() {
        Some(posterior) => {
            let asked = (split, &queries);
            let found = false_negatives(&row, &*scored, &posterior, source, asked)?;
            write(&folder, &row, args.seed, posterior.prior, &found)?;
            found.iter().for_each(|example| progress::say(text(example)));
            progress::say(format!("Page: {}", folder.join("false-negatives.html").display()));
        }
        None => {
            let place = run.dir().folder(&row, args.seed);
            let expected = "a row that draws negatives by a posterior and has seen enough pairs";
            let error = Error::invalid(place.display(), expected, "none");
            if maps.is_none() {
                return Err(error);
            }
            progress::say(format!("No false-negatives.html: {error}"));
        }
    }
    if let Some(path) = maps {
        progress::say(format!("Page: {}", path.display()));
    }
    Ok(folder)
}

/// Writes `words-judged.html`; `None` if the row's method judges no words.
fn judged(
    run: &Run,
    model: &Model,
    (split, pairs): (Split, &[Pair]),
    folder: &Path,
) -> Result<Option<PathBuf>> {
    let kind = Kind::of(&run.config)?;
    let Some(all) = kind.judge(model, split, pairs)? else { return Ok(None) };
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let path = folder.join("words-judged.html");
    let title = format!("Words and images, {}", model.name());
    write_atomically(&path, report::judged_page(&title, &all).as_bytes())?;
    Ok(Some(path))
}

/// The named run, if it has the named row and the named method made it.
fn open(args: &cli::Explain, configs: &Path) -> Result<Run> {
    Run::open(&args.run, (args.data.as_deref(), &args.backend), configs, |config| {
        let kind = Kind::of(config)?;
        if kind.name == args.what {
            return config.named_row(args.row.as_deref()).map(drop);
        }
        let expected = format!("{}, the method of {}", kind.name, args.run.display());
        Err(Error::invalid("what to explain", expected, format!("`{}`", args.what)))
    })
}

/// Writes the page, with its pictures inside, and also the pictures as files.
fn write(folder: &Path, row: &str, seed: u64, prior: f64, examples: &[Example]) -> Result<()> {
    let pictures = folder.join("pictures");
    fs::create_dir_all(&pictures).map_err(Error::io(&pictures))?;
    let items = examples
        .iter()
        .flat_map(|e| std::iter::once(&e.query).chain(e.answers.iter().map(|answer| &answer.item)));
    for item in items {
        let Item::Image(picture) = item else { continue };
        let name = Path::new(&picture.name).file_name();
        if let Some(name) = name.filter(|_| !picture.bytes.is_empty()) {
            write_atomically(&pictures.join(name), &picture.bytes)?;
        }
    }
    let title = format!("{row}, seed {seed}: most probable false negatives, p = {prior:e}");
    let page = report::explained(&title, examples);
    write_atomically(&folder.join("false-negatives.html"), page.as_bytes())
}

/// A query and its answers, for a terminal.
fn text(example: &Example) -> String {
    let name = |item: &Item| match item {
        Item::Image(picture) => picture.name.clone(),
        Item::Caption(text) => format!("\"{text}\""),
    };
    let answer = |a: &report::Answer| {
        let mark = if a.mark == Mark::TrueNotAnnotated { "  (true)" } else { "" };
        format!("  {:.4}  {}{mark}", a.score, name(&a.item))
    };
    let lines = std::iter::once(name(&example.query)).chain(example.answers.iter().map(answer));
    lines.collect::<Vec<_>>().join("\n")
}
