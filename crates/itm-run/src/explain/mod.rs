//! Explanations: what a reader sees of single queries, pairs and words. `itm explain` writes pages about one row of a finished run; reports
//! show some of the same.
//!
//! | what | where |
//! |---|---|
//! | queries, their first answers, the most probable false negatives, and pairs that the command line names | `queries`, and as measures `examples` |
//! | words: maps over patches or regions, and effects on a score | `word_maps`; pages of several rows here |
//! | where words point, in numbers | `pointing`, a measure |

mod examples;
mod pointing;
mod queries;
mod word_maps;

use std::fs;
use std::path::{Path, PathBuf};

use itm_core::data::Split;
use itm_core::encoders::Places;
use itm_core::output::write_bytes;
use itm_core::{Error, Result};
use itm_report::format::clean;

use self::queries::{Queries, false_negatives};
use crate::methods::Kind;
use crate::model::Model;
use crate::report::{self, AnswerNumbers, Example, Item, Pair, PairKind, PairMaps};
use crate::run::Run;
use crate::{cli, progress};

pub(crate) use self::examples::{Examples, FalseNegatives};
pub(crate) use self::pointing::Pointing;

/// Writes pages about a row: the most probable false negatives of some queries, maps of words where there are patches or regions, and words
/// that do not match an image, where the row judges words. If the command names pairs, only the words of these pairs. Returns the folder.
///
/// # Errors
/// If the run or the row is missing, if there is nothing to show, or if a file cannot be written: one line.
pub(crate) fn explain(args: &cli::Explain, configs: &Path) -> Result<PathBuf> {
    let of = &args.of;
    let (run, row) = Run::open(&of.run, (of.data.as_deref(), &of.backend), configs, |config| {
        let kind = Kind::of(config)?;
        let expected = format_args!("{}, the method of {}", kind.name, of.run.display());
        let got = format_args!("`{}`", args.what);
        Error::unless(kind.name == args.what, "what to explain", expected, got)?;
        config.named_row(of.row.as_deref())
    })?;
    let split = match args.split {
        cli::ExplainedSplit::Train => Split::Train,
        cli::ExplainedSplit::Test => Split::Test,
    };
    let folder = run.dir().folder(&row, of.seed).join("explain").join(split.to_string());
    let named = queries::pairs(&run.source, split, args)?;
    let queries = Queries::of(&run.source, split, args)?;
    let model = progress::during("embedding", || run.trained(&row, of.seed))?;
    let of = Explanation { run: &run, model, split, args, folder };
    let pages = if named.is_empty() { of.queries(&queries)? } else { of.named(&named)? };
    pages.iter().for_each(|page| progress::say(format!("Page: {}", page.display())));
    Ok(of.folder)
}

/// A trained model of a run, and what the command line wants to see of it.
struct Explanation<'a> {
    run: &'a Run,
    model: Model<'a>,
    split: Split,
    args: &'a cli::Explain,
    folder: PathBuf,
}

impl Explanation<'_> {
    /// The page of some pairs.
    fn named(&self, pairs: &[Pair]) -> Result<Vec<PathBuf>> {
        let page = self.judged(pairs)?.map_or_else(|| self.maps(pairs), |page| Ok(Some(page)))?;
        let page = page.ok_or_else(|| {
            let expected = "a row that compares words with patches or regions, or judges words";
            Error::invalid("--row", expected, format!("`{}`", self.model.row))
        })?;
        Ok(vec![page])
    }

    /// The pages of some queries, and of the words of some captions.
    fn queries(&self, queries: &Queries) -> Result<Vec<PathBuf>> {
        let (source, split, row) = (&self.run.source, self.split, &self.model.row);
        let scored = self.run.scores(&self.model, split)?;
        let own = &source.part(split).0.pairs;
        let captions = match (&self.args.captions, &self.args.images) {
            (Some(_), _) => queries.captions.clone(),
            (None, Some(images)) => {
                let first = |&image: &usize| own.texts_of(image).first().copied();
                images.iter().filter_map(first).collect()
            }
            (None, None) => word_maps::spread(source, split, self.args.queries),
        };
        let pairs = word_maps::pairs(source, split, &captions, Some(&*scored))?;
        if let Some(page) = self.judged(&pairs)? {
            return Ok(vec![page]);
        }
        let maps = self.maps(&pairs)?;
        if maps.is_none() {
            progress::say(format!(
                "No word-patches.html: it needs ViT and BERT with means as pools, which `{row}` has not."
            ));
        }
        let Some(posterior) = self.model.method.posterior() else {
            let place = self.run.dir().folder(row, self.args.of.seed);
            let expected = "a posterior: a row that draws negatives by one, and more than `sampler.min_count` pairs of the last epoch that rank first";
            let error = Error::invalid(place.display(), expected, "no such row, or fewer pairs");
            let Some(page) = maps else { return Err(error) };
            progress::say(format!("No false-negatives.html: {error}"));
            return Ok(vec![page]);
        };
        let found = false_negatives(row, &*scored, &posterior, source, (split, queries))?;
        let (seed, prior) = (self.args.of.seed, posterior.prior);
        let title = format!("{row}, seed {seed}: most probable false negatives, p = {prior:e}");
        let shown = report::shown_examples(&found, AnswerNumbers::Probabilities);
        let page = self.write("false-negatives.html", &report::headed(&title, shown))?;
        self.write_pictures(&found)?;
        found.iter().for_each(|example| progress::say(text(example)));
        Ok([page].into_iter().chain(maps).collect())
    }

    /// Writes `word-patches.html` or `word-regions.html`: where the rows find the words of a caption in a picture, and what the words do to
    /// a score; `None` if the row has neither patches nor regions. The other rows of the run with the same seed stand beside it. A row
    /// whose training is not finished is left out; a line says so.
    ///
    /// # Errors
    /// If no caption has one of the named words, or if the page cannot be written.
    fn maps(&self, pairs: &[Pair]) -> Result<Option<PathBuf>> {
        let (run, seed, row, split) =
            (self.run, self.args.of.seed, &self.model.row[..], self.split);
        let (asked, words) = (word_maps::numbers(pairs), self.args.words.as_deref());
        let Some(own) = self.model.word_maps(split, &asked)? else { return Ok(None) };
        let shown = |row: &str, crop, maps| {
            let name = format!("{row}, seed {seed}");
            word_maps::shown((&name, crop), &run.source, (split, pairs), maps, words)
        };
        let mut all: Vec<PairMaps> = shown(row, self.model.inputs.crop(), own);
        let is_trained = |other: &&str| *other != row && run.dir().folder(other, seed).is_dir();
        for other in run.config.rows().filter(is_trained) {
            if all.first().is_some_and(|pair| pair.rows.len() == word_maps::ROWS) {
                break;
            }
            let made = run
                .trained(other, seed)
                .and_then(|model| Ok((model.inputs.crop(), model.word_maps(split, &asked)?)));
            match made {
                Ok((crop, maps)) => {
                    let maps = maps.map_or(vec![], |maps| shown(other, crop, maps));
                    word_maps::beside(&mut all, maps);
                }
                Err(error) => progress::say(format!("{other} is left out of the maps: {error}")),
            }
        }
        all.retain(|pair| !pair.words.is_empty());
        if let (true, Some(words)) = (all.is_empty(), words) {
            let expected = "words of the captions that are shown";
            return Err(Error::invalid("--words", expected, format!("`{}`", words.join(","))));
        }
        let regions = all.first().is_some_and(|pair| matches!(pair.places, Places::Boxes(_)));
        let places = if regions { "regions" } else { "patches" };
        let title = format!("Words and {places}, seed {seed}");
        let page = report::headed(&title, report::word_pictures(&all));
        self.write(&format!("word-{places}.html"), &page).map(Some)
    }

    /// Writes `words-judged.html`; `None` if the row's method judges no words.
    fn judged(&self, pairs: &[Pair]) -> Result<Option<PathBuf>> {
        let kind = Kind::of(&self.run.config)?;
        let Some(content) = (kind.judge)(&self.model, self.split, pairs)? else { return Ok(None) };
        if let Some(words) = &self.args.words {
            let expected = "none: this row judges all words of a caption";
            return Err(Error::invalid("--words", expected, format!("`{}`", words.join(","))));
        }
        let title = format!("Words and images, {}", self.model.name());
        self.write("words-judged.html", &report::headed(&title, content)).map(Some)
    }

    fn write(&self, name: &str, page: &str) -> Result<PathBuf> {
        fs::create_dir_all(&self.folder).map_err(Error::io(&self.folder))?;
        let path = self.folder.join(name);
        write_bytes(&path, page.as_bytes())?;
        Ok(path)
    }

    /// Writes the pictures of a page also as files.
    fn write_pictures(&self, examples: &[Example]) -> Result<()> {
        let pictures = self.folder.join("pictures");
        fs::create_dir_all(&pictures).map_err(Error::io(&pictures))?;
        let answers = examples.iter().flat_map(|example| &example.answers);
        let items = answers.map(|answer| &answer.item).chain(examples.iter().map(|e| &e.query));
        for item in items {
            let Item::Image(picture) = item else { continue };
            let name = Path::new(&picture.name).file_name();
            if let Some(name) = name.filter(|_| !picture.bytes.is_empty()) {
                write_bytes(&pictures.join(name), &picture.bytes)?;
            }
        }
        Ok(())
    }
}

/// A query and its answers, for a terminal.
fn text(example: &Example) -> String {
    let name = |item: &Item| match item {
        Item::Image(picture) => clean(&picture.name),
        Item::Caption(text) => format!("\"{}\"", clean(text)),
    };
    let answer = |a: &report::RankedItem| {
        let mark = if a.mark == PairKind::FalseNegative { "  (true)" } else { "" };
        format!("  {:.4}  {}{mark}", a.score, name(&a.item))
    };
    let lines = std::iter::once(name(&example.query)).chain(example.answers.iter().map(answer));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::tests;

    /// A finished run of the first row of a small target.
    fn run(target: &str, folder: &Path) -> String {
        let run = tests::small_run_in(target, &[], folder);
        run.train(run.config.rows().next().unwrap(), 0, |_| {}).unwrap();
        folder.display().to_string()
    }

    fn asked(what: &str, run: &str, rest: &[&str]) -> Result<PathBuf> {
        let line = [&["itm", "explain", what, "--run", run], rest].concat();
        match cli::Cli::try_parse_from(line).unwrap().command {
            cli::Command::Explain(args) => explain(&args, &tests::configs()),
            _ => unreachable!("another command"),
        }
    }

    /// Image 1 has the captions 5 to 9.
    #[test]
    fn words_are_of_the_images_that_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let run = run("naaf-scenes", &dir.path().join("run"));
        let page = |rest: &[&str]| {
            let folder = asked("naaf", &run, rest).unwrap();
            fs::read_to_string(folder.join("word-regions.html")).unwrap()
        };
        let [of_image, of_caption] = [page(&["--images", "1"]), page(&["--captions", "5"])];
        assert!(of_image == of_caption, "other captions");
        assert!(of_image != page(&["--captions", "0"]));
    }

    #[test]
    fn words_that_would_be_ignored_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let run = run("tags-dc-scenes", &dir.path().join("run"));
        let line = asked("tags-dc", &run, &["--words", "a,ball"]).unwrap_err().to_string();
        assert_eq!(
            line,
            "--words: expected none: this row judges all words of a caption, got `a,ball`"
        );
        asked("tags-dc", &run, &["--queries", "1"]).unwrap();
    }
}
