//! `itm index`, `itm search`, `itm serve`: photographs found by sentences. `itm-search` does the work; here are its models.

mod joined;
mod published;
mod run;

use std::fs;
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

use itm_core::data::upright_image;
use itm_core::files::read_text;
use itm_core::{Error, Result};
use itm_report::format::is_harmful;
use itm_search::serve::{self, Server};
use itm_search::{
    Answer, Encoder, Filter, Index, Options, Query, Searcher, Sources, Update, check_out,
    ordinary_queries, update,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::{How, IndexArgs, SearchArgs, ServeArgs, What};
use crate::config::Config;
use crate::{progress, stop};
use published::Towers;

/// What an index says of its model, so that `search` opens the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Origin {
    /// Folder or name of CLIP or SigLIP.
    Published { model: String },
    /// Folders or names of two models, and the file of their maps beside the index.
    Joined { model: String, text_model: String, maps: String },
    /// The folder of a run, and its row.
    Run { run: PathBuf, row: String },
}

pub(crate) fn index(args: &IndexArgs, configs: &Path) -> Result<()> {
    stop::listen()?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&args.images));
    if let Some(folder) = &args.run {
        let expected = "`scenes`: a run has no rows of other pictures";
        let fits = args.images == Path::new("scenes");
        Error::unless(fits, "--images", expected, args.images.display())?;
        return index_run(folder, &out, args, configs);
    }
    check_out(&args.images, &out)?; // before the maps of two models are written there
    let model = args.model.as_deref().unwrap_or_default();
    let (encoder, origin) = match (&args.text_model, &args.captions) {
        (Some(text), Some(captions)) => {
            joined::fit([model, text], captions, &args.images, &out, &args.backend)?
        }
        _ => (Towers::open(model, &args.backend)?, Origin::Published { model: named(model) }),
    };
    let bank = bank(args)?.unwrap_or_else(ordinary_queries);
    write(&args.images, &out, &bank, &encoder, &origin)?;
    joined::forget_maps(&out, &origin);
    Ok(())
}

/// The name of the photographs' folder and `.index`. A path as `.` or `..` has no name of its own.
fn default_out(images: &Path) -> PathBuf {
    let whole = match images.file_name() {
        Some(_) => images.to_owned(),
        None => images.canonicalize().unwrap_or_default(),
    };
    let name = whole.file_name().unwrap_or("photographs".as_ref());
    Path::new(name).with_added_extension("index")
}

/// Draws the pictures of Scenes into the folder of the index, and indexes them.
fn index_run(folder: &Path, out: &Path, args: &IndexArgs, configs: &Path) -> Result<()> {
    let (run, row) = (absolute(folder)?, run::row(folder, configs)?);
    let encoder = run::RunEncoder::open(&run, &row, &args.backend, configs)?;
    let images = out.join("pictures");
    fs::create_dir_all(&images).map_err(Error::io(&images))?; // a folder that is not there is of no index
    check_out(&images, out).inspect_err(|_| _ = fs::remove_dir(&images))?; // only if it is empty
    encoder.draw(&images)?;
    let bank = bank(args)?.unwrap_or_else(|| encoder.bank.clone());
    write(&images, out, &bank, &encoder, &Origin::Run { run, row })
}

/// A folder as it is named from anywhere; the name of a model on the hub stays.
fn named(model: &str) -> String {
    absolute(Path::new(model)).map_or_else(|_| model.to_owned(), |path| path.display().to_string())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(Error::io(path))
}

fn bank(args: &IndexArgs) -> Result<Option<Vec<String>>> {
    let Some(path) = &args.bank else { return Ok(None) };
    let text = read_text(path)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(Some(lines.map(str::to_owned).collect()))
}

fn write(
    images: &Path,
    out: &Path,
    bank: &[String],
    encoder: &dyn Encoder,
    origin: &Origin,
) -> Result<()> {
    let bar = progress::bar("index", "pictures", 0);
    let progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let about = &serde_json::to_value(origin)
        .map_err(|e| Error::invalid("itm index", "paths in UTF-8", e))?;
    let sources = Sources { images, out, about, bank, progress: &progress, stop: &stop::is_asked };
    let Update { pictures, encoded, gone, left_out } = update(&sources, encoder)?;
    for (_, why) in &left_out {
        progress::say(format!("left out: {why}"));
    }
    let (index, out, left_out) = (Index::open(out)?, out.display(), left_out.len());
    let counts = format!("{encoded} encoded, {gone} gone, {left_out} left out");
    let correction = index.correction();
    let line = format!("{pictures} pictures in {out}: {counts}; correction for hubs: {correction}");
    progress::say(line);
    Ok(())
}

/// Opens an index with its model.
pub(crate) fn open(index: &Path, backend: &str, configs: &Path) -> Result<Searcher> {
    let opened = Index::open(index)?;
    let origin: Origin = serde_json::from_value(opened.about().clone())
        .map_err(|e| Error::invalid(index.display(), "an index of `itm index`", e))?;
    let encoder: Box<dyn Encoder> = match &origin {
        Origin::Published { model } => Box::new(Towers::open(model, backend)?),
        Origin::Joined { model, text_model, maps } => {
            Box::new(joined::open([model, text_model], &index.join(maps), backend)?)
        }
        Origin::Run { run, row } => Box::new(run::RunEncoder::open(run, row, backend, configs)?),
    };
    Searcher::new(opened, encoder)
}

pub(crate) fn search(args: &SearchArgs, configs: &Path) -> Result<()> {
    let Some(index) = &args.index else {
        let alone = args.query.is_none() && args.like.is_none();
        Error::unless(alone, "--index", "the folder of an index", "none")?;
        return world(&args.backend, configs);
    };
    let searcher = open(index, &args.backend, configs)?;
    let query = match (&args.query, &args.like) {
        (Some(words), _) => Query::parse(words, searcher.index())?,
        (None, Some(photo)) => like(photo, searcher.index())?,
        (None, None) => {
            return Err(Error::invalid("itm search", "a sentence or --like", "neither"));
        }
    };
    let number = |text: &str| {
        let number = text.parse::<f32>().ok().filter(|n| n.is_finite());
        number.ok_or_else(|| Error::invalid("--threshold", "`auto` or a number", text))
    };
    let auto = args.threshold.as_deref() == Some("auto");
    let fits = !auto || query.has_words();
    Error::unless(fits, "--threshold", "a number: `auto` is the level of sentences", "auto")?;
    let threshold = args.threshold.as_deref().filter(|_| !auto).map(number).transpose()?;
    let filter = Filter {
        folder: args.folder.clone(),
        after: args.after.clone(),
        before: args.before.clone(),
    };
    let options = Options { top: args.top, corrected: !args.no_correction, threshold, filter };
    let mut answer = searcher.search(&query, &options)?;
    if auto {
        let level = answer.level;
        answer.hits.retain(|hit| hit.score >= level);
    }
    // Programs open the paths, so each of their characters counts.
    let raw = args.files && !stdout().is_terminal();
    for line in lines(args, searcher.index(), &answer, &query) {
        if raw { progress::say_painted(&line) } else { progress::say(line) }
    }
    Ok(())
}

/// The lines of an answer: paths with scores, paths alone, or JSON.
fn lines(args: &SearchArgs, index: &Index, answer: &Answer, query: &Query) -> Vec<String> {
    let corrected = !args.no_correction && query.has_words();
    let path = |picture: usize| &index.pictures()[picture].path;
    if args.json {
        // `json!` would show the digits of the double that is equal to a score.
        let digits = |value: f32| value.to_string().parse::<f64>().expect("digits of a number");
        let hits = answer.hits.iter().map(|hit| {
            let [score, cosine] = [hit.score, hit.cosine].map(digits);
            json!({ "path": path(hit.picture), "score": score, "cosine": cosine })
        });
        let all = json!({
            "hits": hits.collect::<Vec<_>>(),
            "found": answer.found,
            "level": digits(answer.level),
            "candidates": answer.candidates,
            "correction": if corrected { index.correction() } else { "none" },
        });
        // Escapes stand for the same characters, and do not turn the line of a terminal.
        let code = |c: char| format!("\\u{:04x}", u32::from(c));
        let escaped = |c: char| if is_harmful(c) { code(c) } else { c.into() };
        return vec![all.to_string().chars().map(escaped).collect()];
    }
    let level = answer.level;
    let filters = [("folder", &args.folder), ("after", &args.after), ("before", &args.before)];
    let filters = filters.map(|(name, value)| value.as_ref().map(|v| format!(" --{name} {v}")));
    let nothing = match answer.candidates {
        0 => format!("no photograph passes{}", filters.into_iter().flatten().collect::<String>()),
        // Without words every photograph counts as found.
        _ if answer.hits.is_empty()
            && (args.threshold.is_none() || !answer.found && !query.has_words()) =>
        {
            "no other photograph passes".into()
        }
        _ if answer.found => {
            let least = args.threshold.as_deref().unwrap_or_default();
            format!("no photograph has a score of {least} or more")
        }
        _ => format!("the best is below {level:.3}, which ordinary queries reach"),
    };
    let is_empty = !answer.found || answer.hits.is_empty();
    let nothing = (!args.files && is_empty).then(|| format!("nothing here matches: {nothing}"));
    let hits = answer.hits.iter().map(|hit| match args.files {
        true => index.folder().join(path(hit.picture)).display().to_string(),
        false => format!("{:.4}  {}", hit.score, path(hit.picture)),
    });
    nothing.into_iter().chain(hits).collect()
}

/// A photograph of the index by its path, or a file.
fn like(photo: &Path, index: &Index) -> Result<Query> {
    let path = photo.to_string_lossy();
    match index.pictures().iter().position(|picture| picture.path == path) {
        Some(picture) => Ok(Query::like(picture)),
        None => Ok(Query::image(upright_image(photo)?.into())),
    }
}

/// From nothing to a search: trains FNE on Scenes, unless that was done, and indexes its test pictures.
fn world(backend: &str, configs: &Path) -> Result<()> {
    let run = Path::new("runs/search-scenes");
    let out = Path::new("runs/search-scenes.index");
    if !run.join("report.json").exists() {
        let what = What { rows: Some("Full".into()), seeds: Some(1), ..What::default() };
        let how = How {
            backend: backend.into(),
            out: Some(run.into()),
            resume: run.exists(),
            ..How::default()
        };
        let target: Config = Config::load(configs, crate::methods::SEARCHED)?;
        crate::reproduce::reproduce(target, &what, &how, configs)?;
    }
    let args = IndexArgs {
        images: "scenes".into(),
        out: Some(out.into()),
        run: Some(run.into()),
        backend: backend.into(),
        ..IndexArgs::default()
    };
    index(&args, configs)?;
    page(open(out, backend, configs)?, &serve::Options::default())
}

pub(crate) fn serve(args: &ServeArgs, configs: &Path) -> Result<()> {
    let searcher = open(&args.index, &args.backend, configs)?;
    page(searcher, &serve::Options { listen: args.listen, token: args.token.clone() })
}

/// Serves an index until Ctrl-C or SIGTERM.
fn page(searcher: Searcher, options: &serve::Options) -> Result<()> {
    stop::end()?; // the work before, if there was any, listened to signals
    let pictures = searcher.index().pictures().len();
    let server = Server::bind(searcher, options)?;
    progress::say(format!("{pictures} pictures: {} (Ctrl-C ends)", server.address()));
    server.run()
}

/// Refuses to go on after a signal.
fn stopped(done: usize) -> Result<()> {
    let got = format_args!("a signal after {done}");
    Error::unless(!stop::is_asked(), "itm index", "captions of all photographs", got)
}

#[cfg(test)]
mod tests;
