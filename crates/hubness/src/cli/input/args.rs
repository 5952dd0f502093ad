//! The options for the input.

use std::path::Path;

use clap::Args;
use itm_core::{Error, Result};

use super::location::Location;
use crate::rows::Length;

/// The input: embeddings, a score matrix, or run files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Image (or item) embeddings, one row per image: .npy, FILE.npz:ARRAY, FILE.safetensors:TENSOR, FILE.parquet:COLUMN, FILE.pt, or a folder
    /// of numbered .npy files; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub images: Option<Location>,
    /// Text (or query) embeddings of the same width
    #[arg(long, value_name = "FILE")]
    pub texts: Option<Location>,
    /// Instead: a precomputed score matrix; rows are images, columns are texts, larger is more similar
    #[arg(long, value_name = "FILE")]
    pub scores: Option<Location>,
    /// Instead: a TREC run whose queries are images (`qid Q0 docid rank score tag`). Pairs that a run lacks come last; corrections are fitted
    /// on a number 5 % of the run's range below its least score
    #[arg(long, value_name = "FILE")]
    pub run_i2t: Option<Location>,
    /// A TREC run whose queries are texts, likewise
    #[arg(long, value_name = "FILE")]
    pub run_t2i: Option<Location>,
    /// Which texts are true of which images. One image for each text: .npy integers, a row number or name per line, a JSON list.
    /// Any number: a JSON list of the text rows of each image, a JSON object of names, TREC qrels (*.qrels; always for run
    /// files). Without it the shapes decide, and a note says how; `rescore` and `export` then need no pairs and take every row
    #[arg(long, value_name = "FILE")]
    pub pairs: Option<Location>,
    /// Names of images, one per line, or FILE.jsonl:FIELD, FILE.parquet:COLUMN or FOLDER:COLUMN of numbered tables (one line per image or
    /// one line per text; `rescore` and `export` take one line per text only with --pairs). A report over clip-retrieval's img_emb takes the column image_path of its metadata
    #[arg(long, value_name = "FILE")]
    pub image_names: Option<Location>,
    /// Names of texts, likewise. A report over clip-retrieval's text_emb takes the column caption of its metadata
    #[arg(long, value_name = "FILE")]
    pub text_names: Option<Location>,
    /// Leave rows as they are: inner products instead of cosines
    #[arg(long)]
    pub raw: bool,
    /// Held-out images (from training data), for corrections that use a bank
    #[arg(long, value_name = "FILE")]
    pub bank_images: Option<Location>,
    /// Held-out texts (from training data), for corrections that use a bank
    #[arg(long, value_name = "FILE")]
    pub bank_texts: Option<Location>,
}

/// Where scores come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// One row per image, one row per text.
    Embeddings { images: &'a Location, texts: &'a Location },
    /// A matrix: rows are images, columns are texts.
    Matrix(&'a Location),
    /// One TREC run per direction, at least one.
    Runs { i2t: Option<&'a Location>, t2i: Option<&'a Location> },
}

impl InputArgs {
    /// Where scores come from.
    ///
    /// # Errors
    /// If the options name no source or more than one.
    pub(crate) fn source(&self) -> Result<Source<'_>> {
        let (i2t, t2i) = (self.run_i2t.as_ref(), self.run_t2i.as_ref());
        let runs = i2t.is_some() || t2i.is_some();
        match (&self.images, &self.texts, &self.scores) {
            (Some(images), Some(texts), None) if !runs => Ok(Source::Embeddings { images, texts }),
            (None, None, Some(scores)) if !runs => Ok(Source::Matrix(scores)),
            (None, None, None) if runs => Ok(Source::Runs { i2t, t2i }),
            (images, texts, scores) => {
                let got = match (images, texts, scores.is_some() || runs) {
                    (None, None, false) => "none of them",
                    (Some(_), None, false) => "--images alone",
                    (None, Some(_), false) => "--texts alone",
                    (None, None, true) => "--scores and a run",
                    _ => "embeddings and another",
                };
                let expected = "--images and --texts, or --scores, or --run-i2t and/or --run-t2i";
                Err(Error::invalid("options", expected, got))
            }
        }
    }

    /// The files and folders that the options name.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let Self { images, texts, scores, run_i2t, run_t2i, pairs, .. } = self;
        let Self { image_names, text_names, bank_images, bank_texts, .. } = self;
        let scored = [images, texts, scores, run_i2t, run_t2i];
        let beside = [pairs, image_names, text_names, bank_images, bank_texts];
        scored.into_iter().chain(beside).filter_map(|at| at.as_ref()?.path.as_deref())
    }

    /// Whether embeddings are scaled to unit length; matrices and runs stay as they are.
    pub(crate) fn length(&self) -> Length {
        if self.raw { Length::Raw } else { Length::Unit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(options: &[&str]) -> InputArgs {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            input: InputArgs,
        }
        let words = ["hubness"].iter().chain(options);
        <Program as clap::Parser>::try_parse_from(words).unwrap().input
    }

    #[test]
    fn one_source_is_named() {
        let at = |text: &str| text.parse::<Location>().unwrap();
        let (a, stdin, run) = (at("a"), at("-"), at("r"));
        let embeddings = input(&["--images", "a", "--texts", "-", "--raw"]);
        let want = Source::Embeddings { images: &a, texts: &stdin };
        assert_eq!((embeddings.source().unwrap(), embeddings.length()), (want, Length::Raw));
        assert_eq!(input(&["--scores", "s"]).length(), Length::Unit);
        let want = Source::Runs { i2t: None, t2i: Some(&run) };
        assert_eq!(input(&["--run-t2i", "r"]).source().unwrap(), want);
        for (options, got) in [
            (vec![], "none of them"),
            (vec!["--images", "a"], "--images alone"),
            (vec!["--texts", "a"], "--texts alone"),
            (vec!["--texts", "a", "--scores", "b"], "embeddings and another"),
            (vec!["--scores", "a", "--run-i2t", "b"], "--scores and a run"),
        ] {
            let want = "options: expected --images and --texts, or --scores, or --run-i2t and/or --run-t2i, got ";
            assert_eq!(input(&options).source().unwrap_err().to_string(), format!("{want}{got}"));
        }
    }
}
