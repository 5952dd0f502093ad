//! Negatives of a whole set of captions, as records.

use std::collections::BTreeMap;
use std::io::Write;

use itm_core::Result;

use super::read::Captions;
use super::{Edits, Told, choose};
use crate::phrases::{Sentence, parse};
use crate::random::{Purpose, Streams};
use crate::record::{Kind, Record, Writer};

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// All captions.
    pub captions: usize,
    /// Those without any variant.
    pub without: usize,
    /// Records of each kind.
    pub records: BTreeMap<Kind, usize>,
}

/// Writes up to `per_caption` negatives of each caption, all of them different.
///
/// A kind is drawn uniformly among those with a variant left, then one of its variants. A caption draws from a stream of its own, by its number
/// in the whole set.
///
/// # Errors
/// Of the writer.
pub fn write_all(
    images: &[Captions],
    edits: &Edits,
    seed: u64,
    per_caption: usize,
    out: &mut Writer<impl Write>,
) -> Result<Counts> {
    let mut counts = Counts::default();
    for image in images {
        let sentences: Vec<Sentence> = image.texts.iter().map(|text| parse(text)).collect();
        let told = Told::of(&sentences);
        for (k, sentence) in sentences.iter().enumerate() {
            let mut rng = Streams { seed, round: 0 }.of(Purpose::Edits, counts.captions as u64);
            counts.captions += 1;
            let mut left = edits.of(sentence, &told, &mut rng);
            counts.without += usize::from(left.is_empty());
            for _ in 0..per_caption {
                let Some(at) = choose(&left, &mut rng) else { break };
                let edit = left.swap_remove(at);
                *counts.records.entry(edit.kind).or_default() += 1;
                out.write(&Record {
                    caption: format!("{}#{k}", image.id),
                    seed,
                    kind: edit.kind,
                    positions: edit.positions,
                    old: edit.old,
                    new: edit.new,
                    text: edit.text,
                    score: None,
                })?;
            }
        }
    }
    Ok(counts)
}
