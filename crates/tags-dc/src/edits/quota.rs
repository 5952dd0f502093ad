//! Negatives of a whole set of captions, as records.

use std::collections::BTreeMap;

use super::read::Captions;
use super::{CaptionLemmas, Edits, choose};
use crate::phrases::{Sentence, parse};
use crate::random::Purpose;
use crate::record::{Kind, Record};

/// Counts of captions and records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of all captions.
    pub captions: usize,
    /// Number of captions without any variant.
    pub without: usize,
    /// Number of records of each kind.
    pub records: BTreeMap<Kind, usize>,
}

/// How many negatives a caption gets, and the kinds of the negatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Seed of all draws.
    pub seed: u64,
    /// Negatives per caption, all with different texts; fewer if the caption has fewer variants.
    pub per_caption: usize,
    /// Kinds from which one is drawn for each negative.
    pub kinds: Vec<Kind>,
}

/// The negatives of each caption, caption after caption.
///
/// First a kind is drawn uniformly among the kinds with a variant left, then one of its variants. Each caption has its own random stream,
/// which depends on the caption's number in the whole set.
pub fn negatives(images: &[Captions], edits: &Edits, wanted: &Quota) -> (Vec<Record>, Counts) {
    let (mut records, mut counts) = (vec![], Counts::default());
    for image in images {
        let sentences: Vec<Sentence> = image.texts.iter().map(|text| parse(text)).collect();
        let told = CaptionLemmas::of(&sentences);
        for (k, sentence) in sentences.iter().enumerate() {
            let number = counts.captions as u64;
            let mut rng = Purpose::Edits.stream(wanted.seed, number);
            counts.captions += 1;
            let mut left = edits.of(sentence, &told, &mut rng);
            left.retain(|edit| wanted.kinds.contains(&edit.kind));
            counts.without += usize::from(left.is_empty());
            for _ in 0..wanted.per_caption {
                let Some(at) = choose(&left, &mut rng) else { break };
                let edit = left.swap_remove(at);
                left.retain(|other| other.text != edit.text);
                *counts.records.entry(edit.kind).or_default() += 1;
                records.push(edit.record(format!("{}#{k}", image.id), wanted.seed));
            }
        }
    }
    (records, counts)
}
