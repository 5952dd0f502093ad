//! The binary `phrases`: the scene graph of a sentence, or the phrases of a file of captions.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

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
    /// Captions, one a line: JSON lines of their phrases. A line may be `id<TAB>caption`; else its number from 0 is its name.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Where the JSON lines go, instead of standard output.
    #[arg(long, value_name = "FILE", requires = "file")]
    pub out: Option<PathBuf>,
    /// The graph of the sentence as JSON.
    #[arg(long, conflicts_with = "file")]
    pub json: bool,
    /// Keep phrases with the same words as often as they are there.
    #[arg(long)]
    pub duplicates: bool,
}

/// Does what the command line asks for. A file is written whole or not at all.
///
/// # Errors
/// If a file cannot be read or written, a line is no text or has no word, or a name is there twice.
pub fn run(cli: &Cli, out: &mut impl Write) -> Result<()> {
    let duplicates = if cli.duplicates { Duplicates::Kept } else { Duplicates::Once };
    let standard = Error::io("standard output");
    match (&cli.sentence, &cli.file, &cli.out) {
        (Some(text), ..) => {
            let sentence = parse(text);
            if sentence.words.is_empty() {
                return Err(Error::invalid("the sentence", "a word", "none"));
            }
            let shown = if cli.json { json(&sentence, out) } else { show(&sentence, out) };
            shown.map_err(standard)
        }
        (None, Some(file), None) => out.write_all(&of_file(file, duplicates)?).map_err(standard),
        (None, Some(file), Some(path)) => replace(path, &of_file(file, duplicates)?),
        (None, None, _) => Err(Error::invalid("phrases", "a sentence or --file", "neither")),
    }
}

/// Writes a file beside its place and then moves it there.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let mut file = made.map_err(Error::io(path))?;
    file.write_all(bytes).map_err(Error::io(path))?;
    file.persist(path).map_err(|e| Error::io(path)(e.error))?;
    Ok(())
}

/// The JSON lines of a file of captions.
fn of_file(file: &Path, duplicates: Duplicates) -> Result<Vec<u8>> {
    let reader = BufReader::new(File::open(file).map_err(Error::io(file))?);
    let (mut lines, mut names) = (Vec::new(), HashSet::new());
    for (k, line) in reader.lines().enumerate() {
        let place = || format!("{} line {}", file.display(), k + 1);
        let line = line.map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => {
                Error::invalid(place(), "a caption in UTF-8", "other bytes")
            }
            _ => Error::io(file)(e),
        })?;
        let line = line.trim_start_matches('\u{feff}'); // a mark that some editors write first
        let number = k.to_string();
        let (name, caption) = line.split_once('\t').unwrap_or((&number, line));
        let sentence = parse(caption);
        if sentence.words.is_empty() {
            return Err(Error::invalid(place(), "a caption", "an empty line"));
        }
        if !names.insert(name.to_owned()) {
            return Err(Error::invalid(place(), "each name once", format!("`{name}` again")));
        }
        let written = sidecar::write(name, &sentence.phrases(duplicates), &mut lines);
        written.map_err(Error::io(file))?;
    }
    Ok(lines)
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

/// The graph, a line for each object with its attributes, then one for each relation; positions in brackets.
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
