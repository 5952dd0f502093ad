//! `tags-dc benchmark`: SugarCrepe, ARO, VALSE and Winoground for any model with scores.

mod rows;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use itm_core::output::{Existing, NewFolder, write_bytes};
use itm_core::{Error, Result};
use itm_report::format::{count, interval_to, or_none, share};
use itm_report::table::{Role, Table};
use itm_report::terminal::{self, Palette};
use serde::Serialize;

use self::rows::PairScores;
use crate::benchmark::{Benchmark, BenchmarkPicture, Category, Format, Line, Measure};
use crate::edits::read_captions;
use crate::fluency::Trigrams;

/// The fewest questions of a subset that the printed table shows. ARO's program has the same bound for pairs of attributes.
const SHOWN: u64 = 25;

/// `tags-dc benchmark …`
#[derive(Debug, Args)]
pub(super) struct BenchmarkArgs {
    /// The layout of the files.
    #[arg(long, value_enum)]
    format: Format,
    /// The benchmark's files, as published, or a folder of `.json` files.
    #[arg(long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Write what must be scored into a new folder: `captions.txt`, a caption per line; `pictures.tsv`, a picture per line, with the box of a part of
    /// it; `pairs.tsv`, the picture and the caption of each score.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["scores", "images"])]
    list: Option<PathBuf>,
    /// A `.npy` with a score per line of `pairs.tsv`. A larger score means a better match.
    #[arg(long, value_name = "FILE", group = "judged", conflicts_with = "texts")]
    scores: Option<PathBuf>,
    /// A `.npy` with a row per picture: the names in `image_ids.txt` beside it, or in the order of `pictures.tsv`. The score is the cosine.
    #[arg(long, value_name = "FILE", group = "judged", requires = "texts")]
    images: Option<PathBuf>,
    /// A `.npy` with a row per caption: the captions in `captions.txt` beside it, or in the order of `captions.txt` of `--list`.
    #[arg(long, value_name = "FILE", requires = "images")]
    texts: Option<PathBuf>,
    /// Captions that teach the blind score, as lines of an image's id, a tab and a caption. Never the captions of the benchmark.
    #[arg(long, value_name = "FILE", requires = "judged")]
    train: Option<PathBuf>,
    /// Write all lines of the table as JSON.
    #[arg(long, value_name = "FILE", requires = "judged")]
    json: Option<PathBuf>,
    /// Seed of the orders that `--format order` draws.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// A line of the table, with the blind score's.
#[derive(Debug, Serialize)]
struct Judged {
    #[serde(flatten)]
    model: Line,
    #[serde(skip_serializing_if = "Option::is_none")]
    blind: Option<Line>,
}

impl BenchmarkArgs {
    /// Runs the command, and prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or written, or its contents are wrong; if a picture or caption has no score; if the JSON would replace an input.
    pub(super) fn run(&self, out: &mut impl Write) -> Result<()> {
        let Self { scores, images, texts, train, .. } = self;
        let read = || [scores, images, texts, train].into_iter().flatten().chain(&self.files);
        self.json.iter().try_for_each(|path| super::no_input(path, read()))?;
        let benchmark = Benchmark::read(self.format, &self.files, self.seed)?;
        let scores = match (scores, images, texts) {
            (Some(scores), ..) => Some(rows::of_pairs(&benchmark, scores)?),
            (None, Some(images), Some(texts)) => Some(rows::of_rows(&benchmark, images, texts)?),
            _ => None,
        };
        let lines = scores.map(|scores| self.judged(&benchmark, scores)).transpose()?;
        let listed = self.list.as_ref().map(|folder| list(&benchmark, folder)).transpose()?;
        if let (Some(path), Some(lines)) = (&self.json, &lines) {
            let text = serde_json::to_string_pretty(lines).expect("names and numbers") + "\n";
            write_bytes(path, text.as_bytes())?;
        }
        let mut printed = vec![];
        if let Some(listed) = listed {
            printed.push(format!("What must be scored: {}", listed.target().display()));
            listed.commit()?;
        }
        if let Some(lines) = lines {
            let palette = Palette::of(&std::io::stdout());
            printed.extend(terminal::table(&table(&lines), 80, 30, palette));
            printed.extend(means(&lines));
        }
        let [pictures, captions] = [benchmark.pictures.len(), benchmark.captions.len()];
        let questions = benchmark.questions.len();
        printed.push(format!("{questions} questions, {pictures} pictures, {captions} captions"));
        if benchmark.left_out > 0 {
            printed.push(format!("{} entries are no questions and left out", benchmark.left_out));
        }
        writeln!(out, "{}", printed.join("\n")).map_err(Error::io("standard output"))
    }

    fn judged(&self, benchmark: &Benchmark, scores: PairScores) -> Result<Vec<Judged>> {
        let lines = benchmark.judge(scores)?;
        let blind = self.train.as_ref().map(|path| {
            let captions = read_captions(path)?;
            Error::unless(!captions.is_empty(), path.display(), "at least one caption", "none")?;
            let texts = captions.iter().flat_map(|image| &image.texts).map(String::as_str);
            let blind = benchmark.blind(&Trigrams::fit(texts));
            benchmark.judge(|_, caption| blind[caption])
        });
        let mut blind = blind.transpose()?.into_iter().flatten();
        Ok(lines.into_iter().map(|model| Judged { model, blind: blind.next() }).collect())
    }
}

/// What a model must score, in a folder that is not there before it is committed.
fn list(benchmark: &Benchmark, folder: &Path) -> Result<NewFolder> {
    let picture = |BenchmarkPicture { name, file, part }: &BenchmarkPicture| {
        let part = part.map_or(String::new(), |part| part.map(|x| format!("\t{x}")).concat());
        format!("{name}\t{file}{part}\n")
    };
    let pictures: String = benchmark.pictures.iter().map(picture).collect();
    let pair = |(picture, caption): (usize, usize)| {
        format!("{}\t{}\n", benchmark.pictures[picture].name, benchmark.captions[caption])
    };
    let pairs: String = benchmark.pairs().into_iter().map(pair).collect();
    let new = NewFolder::begin(folder, Existing::Nothing("a new or empty folder"))?;
    let write = |name: &str, text: &str| write_bytes(&new.path().join(name), text.as_bytes());
    write("captions.txt", &(benchmark.captions.join("\n") + "\n"))?;
    write("pictures.tsv", &pictures)?;
    write("pairs.tsv", &pairs)?;
    Ok(new)
}

fn table(lines: &[Judged]) -> Table {
    let is_shown = |line: &&Judged| line.model.subset.is_none() || line.model.right.of >= SHOWN;
    let shown: Vec<&Judged> = lines.iter().filter(is_shown).collect();
    let mut table = Table::new("Questions that are right", "questions", {
        shown.iter().map(|line| (name(&line.model), Role::Other))
    });
    let points = |ends: [f64; 2]| interval_to(ends.map(|end| 100.0 * end), 1);
    table.column("right", shown.iter().map(|line| share(line.model.right.value)));
    table.column("95 %", shown.iter().map(|line| points(line.model.right.ci95)));
    if shown.iter().any(|line| line.blind.is_some()) {
        let blind = |line: &&Judged| or_none(line.blind.as_ref(), |b| share(b.right.value));
        table.column("blind", shown.iter().map(blind));
    }
    table.column("chance", shown.iter().map(|line| share(line.model.chance)));
    table.column("of", shown.iter().map(|line| count(line.model.right.of)));
    table.column("ties", shown.iter().map(|line| count(line.model.ties)));
    table.noted(
        "A tie is wrong. Intervals: bootstrap over images. Blind: the same questions by a trigram model of captions, which sees no picture. \
         Subsets of fewer than 25 questions are only in the JSON.",
    )
}

fn name(line: &Line) -> String {
    let of = match (line.category, &line.subset) {
        (None, _) => "all".to_owned(),
        (Some(category), None) => super::negatives::name(category),
        (Some(_), Some(subset)) => format!("  {subset}"),
    };
    match line.measure {
        Measure::Accuracy => of,
        Measure::Text => format!("{of}, text"),
        Measure::Image => format!("{of}, image"),
        Measure::Group => format!("{of}, group"),
    }
}

/// The mean over the subsets of each category, beside the share of its questions. ARO's program leaves small subsets out for attributes alone. For
/// relations it leaves a list of names out; here each relation counts.
fn means(lines: &[Judged]) -> Vec<String> {
    let mut all: BTreeMap<Category, Vec<f64>> = BTreeMap::new();
    for Line { category, subset, measure, right, .. } in lines.iter().map(|line| &line.model) {
        if let (Some(category), Some(_), Measure::Accuracy) = (*category, subset, measure)
            && (category != Category::Attribute || right.of >= SHOWN)
        {
            all.entry(category).or_default().push(right.value);
        }
    }
    all.retain(|_, values| values.len() > 1);
    let line = |(category, values): (Category, Vec<f64>)| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (n, name) = (values.len(), super::negatives::name(category));
        let least = format!(" with {SHOWN} or more questions");
        let least = if category == Category::Attribute { &least } else { "" };
        format!("Mean over the {n} subsets of {name}{least}: {}", share(mean))
    };
    all.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests;
