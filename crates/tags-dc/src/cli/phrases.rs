//! `tags-dc phrases`: the scene graph of a sentence, or the phrases of a file of captions.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use itm_core::{Error, Result, output};

use super::{captions, no_input};
use crate::phrases::{Duplicates, Sentence, parse, sidecar};

/// `tags-dc phrases …`
#[derive(Debug, Args)]
pub(super) struct Phrases {
    /// A sentence.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sentence: Option<String>,
    /// A file of captions, one per line. Prints their phrases as JSON lines. A line may be `id<TAB>caption`; a line without an id has its
    /// number, counted from 0, as id.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write the JSON lines to this file instead of standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "sentence")]
    out: Option<PathBuf>,
    /// Print the graph of the sentence as JSON.
    #[arg(long, conflicts_with = "file")]
    json: bool,
    /// Keep all phrases with the same words, not only the first.
    #[arg(long, conflicts_with = "sentence")]
    duplicates: bool,
}

impl Phrases {
    /// Runs the command, and prints to `out`.
    ///
    /// # Errors
    /// If a file cannot be read or written, a line is not UTF-8, is blank or is too long, an id occurs twice, or the output is the input. Nothing is written then.
    pub(super) fn run(&self, out: &mut impl Write) -> Result<()> {
        let printed = Error::io("standard output");
        let Some(file) = &self.file else {
            let sentence = self.sentence.as_deref().unwrap_or_default();
            captions::check("the sentence", sentence)?;
            let sentence = parse(sentence);
            let shown = if self.json { json(&sentence, out) } else { show(&sentence, out) };
            return shown.map_err(printed);
        };
        self.out.iter().try_for_each(|out| no_input(out, [file]))?;
        let captions = captions::read(file)?; // the whole file: a bad line leaves no half result
        let duplicates = if self.duplicates { Duplicates::Kept } else { Duplicates::Once };
        match &self.out {
            None => write(&captions, duplicates, out).map_err(printed),
            Some(path) => output::write(path, |file| {
                write(&captions, duplicates, file).map_err(Error::io(path))
            }),
        }
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
