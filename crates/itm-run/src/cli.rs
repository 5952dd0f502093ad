//! The command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use itm_kernels::Precision;
use itm_report::command::quoted;

/// Image-text matching: train, evaluate and explain cross-modal retrieval.
#[derive(Debug, Parser)]
#[command(name = "itm", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Folder of the targets' configurations.
    #[arg(long, global = true, default_value = "configs", value_name = "DIR")]
    pub(crate) configs: PathBuf,
}

/// The runner's commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the targets: their papers, tables and figures, and whether their data are here.
    List {
        /// Folder of the data sets.
        #[arg(long, default_value = "data", value_name = "DIR")]
        data: PathBuf,
    },
    /// Train and evaluate the rows of a paper's table, and write a report.
    Reproduce(Reproduce),
    /// Show the unannotated pairs that a trained row takes for matches, with probabilities. Show also which patches of a picture
    /// its words are close to, or which regions they attend to and how they change a score.
    Explain(Explain),
    /// Say where the files of Flickr30K, Flickr8k and COCO belong; `data check DIR` checks a folder.
    Data {
        /// What to do.
        #[command(subcommand)]
        command: Option<DataCommand>,
    },
    /// Write negative captions: sentences that are false of their image, each made by one change of a true caption.
    #[cfg(feature = "negatives")]
    Negatives(crate::methods::Negatives),
    /// Write the built-in world as an ordinary data set or as two files of embeddings, or draw a contact sheet of it.
    Scenes(ScenesArgs),
    /// Turn pictures and captions into embeddings by CLIP, SigLIP, DINOv2, ViT, BERT or a sentence encoder, for `hubness` and search.
    Embed(EmbedArgs),
    /// Write a CLIP or SigLIP that a run trained as a folder for `embed`, `index`, transformers and open_clip.
    Export(ExportArgs),
    /// Index a folder of photographs, so that `search` and `serve` find them by sentences. Once more, it follows the folder.
    Index(IndexArgs),
    /// Find photographs of an index by a sentence. With neither a sentence nor a photograph: trains on Scenes, indexes them and serves
    /// the page.
    Search(SearchArgs),
    /// Serve an index as a page for a browser, and over HTTP for programs. Ctrl-C ends it.
    Serve(ServeArgs),
}

/// `itm data …`
#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Name the layout of a folder, counts, hashes, and what is wrong with it.
    Check {
        /// The folder.
        dir: PathBuf,
    },
}

/// `itm reproduce …`
#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// The target, as `itm list` names it.
    pub target: String,
    /// Which part of the target.
    #[command(flatten)]
    pub what: What,
    /// With which data and machine, and into which folder.
    #[command(flatten)]
    pub how: How,
}

/// Which part of a target is made; by default, all rows of its own table.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct What {
    /// Table of the paper by its number, or of the target by its name: the rows of `[table.N]`; the target's own table by default.
    #[arg(long, value_name = "N", conflicts_with = "figure")]
    pub table: Option<String>,
    /// Figure of the paper: the rows of `[figure.N]`, and their curve.
    #[arg(long, value_name = "N")]
    pub figure: Option<u32>,
    /// Only these rows, separated by commas.
    #[arg(long, value_name = "ROWS")]
    pub rows: Option<String>,
    /// Corrections for hubs, separated by commas: csls, is, rgm, csls+rgm, … Every trained row is also measured under each of them.
    #[arg(long, value_delimiter = ',', value_name = "METHODS")]
    pub rescore: Option<Vec<String>>,
    /// Number of seeds, from 0.
    #[arg(long, value_name = "N")]
    pub seeds: Option<u64>,
}

/// With which data and machine a target is made, and into which folder.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct How {
    /// Folder of the data set.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// `cpu`, `wgpu[:i]`, `tch`, `tch-cuda[:i]` or `cuda[:i]`; `i` counts devices from 0. With a list, `cuda:0,cuda:1`, part k of a step
    /// (`train.micro_batch`) is on device k mod n, and the numbers are those of one device.
    #[arg(long, default_value = "cpu")]
    pub backend: String,
    /// `f32`, or `bf16`: the blocks of transformers (ViT, BERT, CLIP, SigLIP, UNITER) round the operands of their products to bf16, and sums stay f32. Only
    /// the backend `cpu` has bf16; processors without AVX512-BF16 compute in f32. By default as the file says.
    #[arg(long, value_parser = precision)]
    pub precision: Option<Precision>,
    /// Another value for a key of the target's file, `train.epochs=2` or `row.Full.sampler.bank_size=256`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run directory; a new one below `runs` by default.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print every table of the report, not only the recalls.
    #[arg(long)]
    pub verbose: bool,
    /// Resume an interrupted run: the run in `--out`, or the newest run of this target. The report is of the rows and seeds that this
    /// command names, and replaces the one before; without `--rows` and with all seeds it is whole again.
    #[arg(long)]
    pub resume: bool,
    /// Say what the run would take, and train nothing.
    #[arg(long)]
    pub plan: bool,
    /// Trainings at a time, each with an equal part of the threads. The results stay the same. By default one per thread on the
    /// processor, but at most four, and only as many as fit into memory: small models leave threads idle.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Bytes that the run may take in all, instead of the machine's available memory.
    #[arg(long, value_name = "BYTES")]
    pub memory_limit: Option<u64>,
}

/// `--configs` for a command line that repeats a command; none for the default.
pub(crate) fn own_configs(configs: &Path) -> Option<String> {
    (configs != Path::new("configs")).then(|| quoted(configs.display()))
}

/// The command line that repeats a command, without the options that fit only one machine.
pub(crate) fn repeated(target: &str, what: &What, how: &How, configs: &Path, seeds: u64) -> String {
    let options = [
        ("configs", own_configs(configs)),
        ("table", what.table.clone()),
        ("figure", what.figure.map(|n| n.to_string())),
        ("rows", what.rows.as_ref().map(quoted)),
        ("rescore", what.rescore.as_ref().map(|methods| methods.join(","))),
        ("data", how.data.as_ref().map(|_| "DIR".into())), // the reader has another folder
        ("precision", how.precision.map(|p| if p.is_f32() { "f32" } else { "bf16" }.into())),
        ("backend", (how.backend != "cpu").then(|| how.backend.clone())),
    ];
    let set = how.set.iter().map(|value| ("set", Some(quoted(value))));
    let option = |(name, value): (&str, Option<String>)| Some(format!(" --{name} {}", value?));
    let options: String = options.into_iter().chain(set).filter_map(option).collect();
    format!("cargo xtask reproduce {target} --seeds {seeds}{options}")
}

/// A precision by its name.
fn precision(name: &str) -> Result<Precision, &'static str> {
    match name {
        "f32" => Ok(Precision::F32),
        "bf16" => Ok(Precision::Bf16),
        _ => Err("expected f32 or bf16"),
    }
}

/// `itm explain …`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The run's method.
    pub what: String,
    /// What is explained.
    #[command(flatten)]
    pub of: RunRow,
    /// The split of the queries and candidates.
    #[arg(long, value_enum, default_value_t = ExplainedSplit::Test)]
    pub split: ExplainedSplit,
    /// Queries of each kind, spread evenly.
    #[arg(long, default_value_t = 6, value_name = "N")]
    pub queries: usize,
    /// Instead of spread queries: these images, by numbers from 0.
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    pub images: Option<Vec<usize>>,
    /// Instead of spread queries: these captions, by numbers from 0.
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    pub captions: Option<Vec<usize>>,
    /// Instead of spread queries: this image, by name or by number from 0, with a `--text`; may be repeated.
    #[arg(long, value_name = "IMAGE", requires = "text", conflicts_with_all = ["images", "captions"])]
    pub image: Vec<String>,
    /// A text, by its words or by number from 0: one for every `--image`, or one for all.
    #[arg(long, value_name = "TEXT", requires = "image")]
    pub text: Vec<String>,
    /// Words whose maps are shown; names of objects and others by default.
    #[arg(long, value_delimiter = ',', value_name = "WORDS")]
    pub words: Option<Vec<String>>,
}

/// A row of a finished run, and what opens it.
#[derive(Debug, Args)]
pub(crate) struct RunRow {
    /// A finished run.
    #[arg(long, value_name = "DIR")]
    pub run: PathBuf,
    /// The row; the file's first by default.
    #[arg(long)]
    pub row: Option<String>,
    /// The seed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder of the data set.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu")]
    pub backend: String,
}

/// Splits that can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainedSplit {
    /// The training data.
    Train,
    /// The data of the reported numbers.
    Test,
}

/// `itm scenes …`
#[derive(Debug, Args)]
pub(crate) struct ScenesArgs {
    /// Write the data set here: pictures, captions, features, regions, truth.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Draw a contact sheet (PNG); `scenes.png` without a name.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "scenes.png")]
    pub sheet: Option<PathBuf>,
    /// Write two files of embeddings of the test split, image.npy and text.npy, by closed-form CCA of the training split.
    #[arg(long, value_name = "DIR")]
    pub embeddings: Option<PathBuf>,
    /// Seed of the world.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Training images.
    #[arg(long, default_value_t = 2000)]
    pub train: usize,
    /// Validation images.
    #[arg(long, default_value_t = 500)]
    pub val: usize,
    /// Test images.
    #[arg(long, default_value_t = 1000)]
    pub test: usize,
    /// Width and height of an image.
    #[arg(long, default_value_t = 96)]
    pub pixels: u32,
}

/// `itm embed …`
#[derive(Debug, Args)]
pub(crate) struct EmbedArgs {
    /// Folder of the model, or its name on the hub: `openai/clip-vit-base-patch32`.
    #[arg(long, value_name = "DIR|NAME")]
    pub model: String,
    /// Folder of a LoRA adapter of PEFT for it: of a training with `train.parts = { lora = {} }`, or of another program.
    #[arg(long, value_name = "DIR")]
    pub adapter: Option<PathBuf>,
    /// Folder of the pictures (JPEG, PNG, WebP), or a list of file names beside it, one per line.
    #[arg(long, value_name = "DIR|LIST")]
    pub images: Option<PathBuf>,
    /// A caption per line, alone or after the name of its picture and a tab.
    #[arg(long, value_name = "FILE")]
    pub captions: Option<PathBuf>,
    /// Write image.npy, image_ids.txt, text.npy, captions.txt, text_to_image.npy and embed.json here. After a kill, the same command goes on.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only part i of n, as image/0000i.npy and so on.
    #[arg(long, value_name = "I/N", value_parser = Shard::read)]
    pub shard: Option<Shard>,
    /// `f32`, or `bf16` as in `reproduce`.
    #[arg(long, value_parser = precision, default_value = "f32")]
    pub precision: Precision,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu")]
    pub backend: String,
    /// Pictures or captions that the model reads at a time.
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub batch: usize,
    /// Write the rows of the patches too, `grid.npy` of shape `[pictures, patches, width]`: regions for `naaf`.
    #[arg(long)]
    pub patches: bool,
    /// Turn pictures as their EXIF orientation says. The published programs do not.
    #[arg(long)]
    pub upright: bool,
    /// List pictures that cannot be read and continue without them; by default the first is an error.
    #[arg(long)]
    pub skip_bad: bool,
}

/// `itm export …`
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// What is written. Both towers of the row are one published model.
    #[command(flatten)]
    pub of: RunRow,
    /// A new folder for configuration, weights, word pieces and the preparation of pictures.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// `itm index …`
#[derive(Debug, Default, Args)]
pub(crate) struct IndexArgs {
    /// CLIP or SigLIP, or with `--text-model` a model of pictures (DINOv2, ViT): its folder, or its name on the hub.
    #[arg(long, value_name = "DIR|NAME", required_unless_present = "run", conflicts_with = "run")]
    pub model: Option<String>,
    /// The folder of the photographs, with all folders below; `scenes` with `--run`.
    #[arg(long, value_name = "DIR")]
    pub images: PathBuf,
    /// The folder of the index; by default the name of the photographs' folder and `.index`.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Your own ordinary queries, one on each line, instead of the 5,000 that come with the program, or with `--run` of captions of its training.
    #[arg(long, value_name = "FILE")]
    pub bank: Option<PathBuf>,
    /// A model of sentences (sentence-transformers, BERT) beside a model of pictures: CCA joins them.
    #[arg(long, value_name = "DIR|NAME", requires = "captions")]
    pub text_model: Option<String>,
    /// Captions of some of these photographs, for CCA: name, tab, caption.
    #[arg(long, value_name = "FILE", requires = "text_model")]
    pub captions: Option<PathBuf>,
    /// A finished run on Scenes instead of `--model`: the pictures of its test split.
    #[arg(long, value_name = "DIR", conflicts_with = "text_model")]
    pub run: Option<PathBuf>,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu")]
    pub backend: String,
}

/// `itm search …`
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What to find: words, photographs of the index, or a sum of both, `2:beach + a/photo.jpg - people`.
    pub query: Option<String>,
    /// The folder of the index.
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Photographs like this one: a file, or a path in the index.
    #[arg(long, value_name = "PHOTO", conflicts_with = "query")]
    pub like: Option<PathBuf>,
    /// The most photographs.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub top: usize,
    /// The least score; `auto` for what half of the ordinary queries reach.
    #[arg(long, value_name = "auto|NUMBER", allow_hyphen_values = true, requires = "index")]
    pub threshold: Option<String>,
    /// Rank by the cosine alone, without the correction for hubs.
    #[arg(long, requires = "index")]
    pub no_correction: bool,
    /// Print paths alone, for other programs.
    #[arg(short = 'f', long, conflicts_with = "json", requires = "index")]
    pub files: bool,
    /// Print one JSON object.
    #[arg(long, requires = "index")]
    pub json: bool,
    /// Only photographs taken then or later: 2024, 2024-05, 2024-05-01T12:30.
    #[arg(long, value_name = "DATE", requires = "index")]
    pub after: Option<String>,
    /// Only photographs taken earlier.
    #[arg(long, value_name = "DATE", requires = "index")]
    pub before: Option<String>,
    /// Only photographs below this folder of the photographs.
    #[arg(long, value_name = "FOLDER", requires = "index")]
    pub folder: Option<String>,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu")]
    pub backend: String,
}

/// `itm serve …`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The folder of the index.
    #[arg(long, value_name = "DIR")]
    pub index: PathBuf,
    /// Where to listen. An address that other machines reach needs `--token`; port 0 is any free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    pub listen: SocketAddr,
    /// What every request must bring: at least 16 letters, digits, `-` and `_`.
    #[arg(long, env = "ITM_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// As in `reproduce`.
    #[arg(long, default_value = "cpu")]
    pub backend: String,
}

/// One of several equal parts of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Which part, from 1.
    pub number: usize,
    /// Number of parts.
    pub of: usize,
}

impl Shard {
    /// `I/N`.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        let shard = text.split_once('/').and_then(|(number, of)| {
            Some(Self { number: number.parse().ok()?, of: of.parse().ok()? })
        });
        let fits = |shard: &Self| (1..=shard.of).contains(&shard.number) && shard.of <= 99_999;
        shard.filter(fits).ok_or("expected I/N with 1 ≤ I ≤ N ≤ 99999")
    }

    /// The items of this part.
    #[cfg(feature = "published")]
    pub(crate) fn part(self, items: usize) -> std::ops::Range<usize> {
        let end = |number: usize| (number as u128 * items as u128 / self.of as u128) as usize;
        end(self.number - 1)..end(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell reads the command line as it was given, but for what fits one machine only.
    #[test]
    fn a_command_line_repeats_itself() {
        let given = [
            "itm",
            "reproduce",
            "t",
            "--rows",
            "A,w/ paper's filter",
            "--data",
            "/here",
            "--jobs",
            "2",
            "--set",
            "target.embeddings=[\"a\"]",
            "--set",
            "train.epochs=1",
            "--configs",
            "my configs",
        ];
        let cli = Cli::try_parse_from(given).unwrap();
        let Command::Reproduce(Reproduce { target, what, how }) = cli.command else {
            panic!("{given:?}")
        };
        assert_eq!(
            repeated(&target, &what, &how, &cli.configs, 3),
            r#"cargo xtask reproduce t --seeds 3 --configs 'my configs' --rows 'A,w/ paper'\''s filter' --data DIR --set 'target.embeddings=["a"]' --set train.epochs=1"#
        );
    }
}
