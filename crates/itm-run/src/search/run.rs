//! A finished run on Scenes as the encoder of a search.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use image::DynamicImage;
use itm_core::data::{Features, decode_image, sha256_hex};
use itm_core::learn::{ImageItems, Items};
use itm_core::output::write_bytes;
use itm_core::{Error, Pairs, Result};
use itm_search::{self as search, Encoder};

use crate::model::Model;
use crate::run::Run;
use crate::split::Split;
use itm_core::scored::{EmbeddingRows, Scored, Similarity};

/// Sentences of the bank.
const BANK: usize = 5000;

/// The first row of a run's configuration, unless it has a row `Full`.
pub(super) fn row(folder: &Path, configs: &Path) -> Result<String> {
    let config = Run::open(folder, (None, "cpu"), configs, |_| Ok(()))?.config;
    config.named_row(config.rows().find(|row| *row == "Full"))
}

/// The towers of a run. They live in a thread of their own, because a training is of one thread.
pub(super) struct RunEncoder {
    ask: Mutex<Sender<Question>>,
    about: search::Model,
    /// Row and name of each picture of the test split, by the SHA-256 of its pixels.
    rows: HashMap<String, Vec<f32>>,
    pictures: Vec<(String, Vec<u8>)>,
    /// Captions of the training split: what is ordinary in this world.
    pub(super) bank: Vec<String>,
}

/// Sentences, and where their rows go.
struct Question {
    texts: Vec<String>,
    answer: Sender<Result<Vec<f32>>>,
}

/// What the thread says first.
struct Opened {
    identity: String,
    embedded: EmbeddingRows,
    pictures: Vec<(String, Vec<u8>)>,
    bank: Vec<String>,
}

impl RunEncoder {
    pub(super) fn open(folder: &Path, row: &str, backend: &str, configs: &Path) -> Result<Self> {
        let (ask, questions) = channel::<Question>();
        let (say, opened) = channel();
        let of = (folder.to_owned(), row.to_owned(), backend.to_owned(), configs.to_owned());
        thread::spawn(move || serve(&of, &say, &questions));
        let gone = || Error::invalid(folder.display(), "a model that opens", "none");
        let Opened { identity, embedded, pictures, bank } = opened.recv().map_err(|_| gone())??;
        let mut rows = HashMap::new();
        for ((name, bytes), row) in pictures.iter().zip(embedded.images.chunks_exact(embedded.dim))
        {
            let image = itm_core::data::upright_bytes(name, bytes)?;
            rows.insert(sha256_hex(image.as_raw()), row.to_vec());
        }
        let name = format!("{row} of {}", folder.display());
        let about = search::Model { name, identity, width: embedded.dim };
        Ok(Self { ask: Mutex::new(ask), about, rows, pictures, bank })
    }

    /// Writes the pictures, except those that are there.
    pub(super) fn draw(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        for (name, bytes) in &self.pictures {
            let path = folder.join(name);
            let is_there =
                decode_image(&path).is_ok_and(|i| self.rows.contains_key(&sha256_hex(i.as_raw())));
            if !is_there {
                write_bytes(&path, bytes)?;
            }
        }
        Ok(())
    }
}

impl Encoder for RunEncoder {
    fn model(&self) -> search::Model {
        self.about.clone()
    }

    fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        let (answer, row) = channel();
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        let asked =
            self.ask.lock().expect("no panic under this lock").send(Question { texts, answer });
        let gone = || Error::invalid(&self.about.name, "an answer of the model", "none");
        asked.map_err(|_| gone())?;
        row.recv().map_err(|_| gone())?
    }

    fn pictures(&self, pictures: &[DynamicImage]) -> Result<Vec<f32>> {
        let row = |picture: &DynamicImage| {
            self.rows.get(&sha256_hex(picture.to_rgb8().as_raw())).ok_or_else(|| {
                let expected = "a picture of the run's test split: the run sees features, and has none of new pictures";
                Error::invalid("picture", expected, "another")
            })
        };
        let rows = pictures.iter().map(row).collect::<Result<Vec<_>>>()?;
        Ok(rows.into_iter().flatten().copied().collect())
    }
}

/// Opens a run, says so, and answers until nobody can ask.
fn serve(
    (folder, row, backend, configs): &(PathBuf, String, String, PathBuf),
    say: &Sender<Result<Opened>>,
    questions: &Receiver<Question>,
) {
    let serve = || {
        let run = Run::open(folder, (None, backend), configs, |_| Ok(()))?;
        let model = run.trained(row, 0)?;
        _ = say.send(about(&run, &model)); // whoever asked may have gone
        for Question { texts, answer } in questions {
            _ = answer.send(embed(&model, &texts));
        }
        Ok(())
    };
    if let Err(error) = serve() {
        _ = say.send(Err(error));
    }
}

fn about(run: &Run, model: &Model<'_>) -> Result<Opened> {
    let split = Split::Test;
    let scored = model.scored(split)?;
    let embedded = rows(&*scored, model)?;
    let names = &run.source.part(split).0.images;
    let picture = |i: usize| (names[i].clone(), run.source.picture(split, i).bytes);
    let pictures: Vec<_> = (0..names.len()).map(picture).collect();
    let drawn = pictures.iter().all(|(_, bytes)| !bytes.is_empty() && run.source.is_scenes());
    Error::unless(drawn, "--run", "a run on Scenes", &run.source.title)?;
    let captions = &run.source.part(Split::Train).0.captions;
    let mut bank: Vec<String> = captions.clone();
    bank.sort();
    bank.dedup();
    let step = bank.len().div_ceil(BANK).max(1);
    let bank = bank.into_iter().step_by(step).collect();
    Ok(Opened { identity: run.hash_of_chosen(&model.row, model.seed)?, embedded, pictures, bank })
}

/// The rows behind scores that are cosines.
fn rows(scored: &dyn Scored, model: &Model<'_>) -> Result<EmbeddingRows> {
    match scored.rows() {
        Some(rows) if rows.similarity == Similarity::Cosine => Ok(rows.clone()),
        _ => {
            Err(Error::invalid("--run", "a row whose scores are cosines of embeddings", &model.row))
        }
    }
}

/// Rows of new sentences: the model embeds them beside one picture.
fn embed(model: &Model<'_>, texts: &[String]) -> Result<Vec<f32>> {
    let numbers = texts.iter().map(|text| model.reading.read(text));
    let numbers = numbers.collect::<Result<Vec<_>>>()?;
    if let Some((text, _)) = texts.iter().zip(&numbers).find(|(_, numbers)| numbers.is_empty()) {
        let expected = "a word that a caption of the training has";
        return Err(Error::invalid(format!("\"{text}\""), expected, "none"));
    }
    let items = model.inputs.items(Split::Test);
    let ImageItems::Features(all) = items.images else {
        return Err(Error::invalid("--run", "a row that sees features", &model.row));
    };
    let one = Features { dim: all.dim, values: all.row(0).to_vec() };
    let pairs = Pairs::new(1, vec![0; texts.len()])?;
    let items = Items { images: ImageItems::Features(&one), texts: &numbers, pairs: &pairs };
    Ok(rows(&*model.method.scored(items)?, model)?.texts)
}
