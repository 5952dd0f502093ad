//! The binary `phrases`: the scene graph of a sentence, or the phrases of a file of captions.

mod captions;
mod output;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;
use itm_core::{Error, Result};

use crate::phrases::{Duplicates, Sentence, parse, sidecar};

/// Objects, attributes and relations of captions, with the positions of their words.
#[derive(Debug, Parser)]
#[command(name = "phrases")]
pub struct Cli {
    /// A sentence.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    pub sentence: Option<String>,
    /// A file of captions, one per line. Prints their phrases as JSON lines. A line may be `id<TAB>caption`; a line without an id has its
    /// number, counted from 0, as id.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Write the JSON lines to this file instead of standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "sentence")]
    pub out: Option<PathBuf>,
    /// Print the graph of the sentence as JSON.
    #[arg(long, conflicts_with = "file")]
    pub json: bool,
    /// Keep all phrases with the same words, not only the first.
    #[arg(long, conflicts_with = "sentence")]
    pub duplicates: bool,
}

/// Runs the command line, and prints to `out`.
///
/// # Errors
/// If a file cannot be read or written, a line is not UTF-8, is blank or is too long, or an id occurs twice. Nothing is written then.
pub fn run(cli: &Cli, out: &mut impl Write) -> Result<()> {
    let Some(file) = &cli.file else {
        let sentence = cli.sentence.as_deref().unwrap_or_default();
        captions::check("the sentence", sentence)?;
        let sentence = parse(sentence);
        let shown = if cli.json { json(&sentence, out) } else { show(&sentence, out) };
        return shown.map_err(Error::io("standard output"));
    };
    let captions = captions::read(file)?; // the whole file: a bad line leaves no half result
    let duplicates = if cli.duplicates { Duplicates::Kept } else { Duplicates::Once };
    match &cli.out {
        None => write(&captions, duplicates, out).map_err(Error::io("standard output")),
        Some(path) => output::write(path, |file| write(&captions, duplicates, file)),
    }
}

fn write(
    captions: &[(String, String)],
    duplicates: Duplicates,
    out: &mut impl Write,
) -> io::Result<()> {
    for (id, caption) in captions {
        sidecar::write(id, &parse(caption).phrases(duplicates), out)?;
    }
    Ok(())
}

/// The graph as one JSON object.
fn json(sentence: &Sentence, out: &mut impl Write) -> io::Result<()> {
    let words: Vec<_> = sentence.words.iter().map(|word| &word.text).collect();
    let Sentence { objects, attributes, relations, .. } = sentence;
    let graph = serde_json::json!({
        "words": words, "objects": objects, "attributes": attributes, "relations": relations,
    });
    writeln!(out, "{graph}")
}

/// The graph as text: one line per object with its attributes, then one line per relation, with positions in brackets.
fn show(sentence: &Sentence, out: &mut impl Write) -> io::Result<()> {
    let text = |words: &[usize]| {
        let texts: Vec<_> = words.iter().map(|&at| sentence.words[at].text.as_str()).collect();
        format!("{} {words:?}", texts.join(" "))
    };
    for (k, object) in sentence.objects.iter().enumerate() {
        let of = sentence.attributes.iter().filter(|attribute| attribute.object == k);
        let attributes: Vec<_> = of.map(|attribute| text(&attribute.words)).collect();
        let colon = if attributes.is_empty() { "" } else { ": " };
        writeln!(out, "object     {}{colon}{}", text(&object.words), attributes.join(", "))?;
    }
    let name = |k: usize| &sentence.objects[k].name;
    for relation in &sentence.relations {
        let (subject, object) = (name(relation.subject), name(relation.object));
        let words = match relation.words[..] {
            [] => format!("{} (no words to mask)", relation.name),
            _ => text(&relation.words),
        };
        writeln!(out, "relation   {subject} | {words} | {object}")?;
    }
    Ok(())
}
