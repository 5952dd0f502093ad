//! The options for the input.

use clap::Args;
use itm_core::{Error, Result};

use super::location::Location;
use super::{Request, Source};
use crate::rows::Length;

/// The input: embeddings, a score matrix, or run files.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Image (or item) embeddings, one row per image: .npy, FILE.npz:ARRAY or FILE.safetensors:TENSOR; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub images: Option<Location>,
    /// Text (or query) embeddings of the same width
    #[arg(long, value_name = "FILE")]
    pub texts: Option<Location>,
    /// Instead: a precomputed score matrix; rows are images, columns are texts, larger is more similar
    #[arg(long, value_name = "FILE")]
    pub scores: Option<Location>,
    /// Instead: a TREC run whose queries are images (`qid Q0 docid rank score tag`)
    #[arg(long, value_name = "FILE")]
    pub run_i2t: Option<Location>,
    /// A TREC run whose queries are texts
    #[arg(long, value_name = "FILE")]
    pub run_t2i: Option<Location>,
    /// Which image each text belongs to: .npy integers, a row number or name per line, a JSON list, TREC qrels (*.qrels;
    /// always for run files). Without it the shapes decide, and a note says how
    #[arg(long, value_name = "FILE")]
    pub pairs: Option<Location>,
    /// Names of images, one per line, or FILE.jsonl:FIELD (one line per image or one line per text)
    #[arg(long, value_name = "FILE")]
    pub image_names: Option<Location>,
    /// Names of texts, one per line, or FILE.jsonl:FIELD
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

impl InputArgs {
    /// The request that these options make.
    ///
    /// # Errors
    /// If they name no source or more than one.
    pub fn request(self) -> Result<Request> {
        let runs = self.run_i2t.is_some() || self.run_t2i.is_some();
        let embeddings = self.images.is_some() || self.texts.is_some();
        let source = match (self.images, self.texts, self.scores) {
            (Some(images), Some(texts), None) if !runs => Source::Embeddings { images, texts },
            (None, None, Some(scores)) if !runs => Source::Matrix(scores),
            (None, None, None) if runs => Source::Runs { i2t: self.run_i2t, t2i: self.run_t2i },
            (images, texts, scores) => {
                let got = match (&images, &texts, scores.is_some() || runs) {
                    (None, None, false) => "none of them",
                    (Some(_), None, false) => "--images alone",
                    (None, Some(_), false) => "--texts alone",
                    _ if embeddings => "embeddings and another",
                    _ => "--scores and a run",
                };
                let expected = "--images and --texts, or --scores, or --run-i2t and/or --run-t2i";
                return Err(Error::invalid("options", expected, got));
            }
        };
        let length = if self.raw { Length::Raw } else { Length::Unit };
        Ok(Request {
            source,
            pairs: self.pairs,
            image_names: self.image_names,
            text_names: self.text_names,
            length,
            bank_images: self.bank_images,
            bank_texts: self.bank_texts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(options: &[&str]) -> Result<Request> {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            input: InputArgs,
        }
        let words = ["hubness"].iter().chain(options);
        <Program as clap::Parser>::try_parse_from(words).unwrap().input.request()
    }

    #[test]
    fn one_source_is_named() {
        let asked = request(&["--images", "a", "--texts", "-", "--raw"]).unwrap();
        let at = |text: &str| text.parse::<Location>().unwrap();
        assert_eq!(asked.source, Source::Embeddings { images: at("a"), texts: at("-") });
        assert_eq!(asked.length, Length::Raw);
        assert_eq!(request(&["--scores", "s"]).unwrap().length, Length::Unit);
        assert_eq!(
            request(&["--run-t2i", "r"]).unwrap().source,
            Source::Runs { i2t: None, t2i: Some(at("r")) }
        );
        for (options, got) in [
            (vec![], "none of them"),
            (vec!["--images", "a"], "--images alone"),
            (vec!["--texts", "a"], "--texts alone"),
            (vec!["--texts", "a", "--scores", "b"], "embeddings and another"),
            (vec!["--scores", "a", "--run-i2t", "b"], "--scores and a run"),
        ] {
            let want = "options: expected --images and --texts, or --scores, or --run-i2t and/or --run-t2i, got ";
            assert_eq!(request(&options).unwrap_err().to_string(), format!("{want}{got}"));
        }
    }
}
