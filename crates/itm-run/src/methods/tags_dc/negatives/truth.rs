//! Checks with the grammar of Scenes whether negatives are false.

use std::collections::BTreeMap;

use itm_core::scenes::{Split, entails, parse};
use serde::Serialize;
use tags_dc::record::{Kind, Record};

use crate::ratio::{Counts, Share};

/// Negatives of a kind, compared with the truth.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Judged {
    /// Sentences with a meaning that is false of the scene.
    pub(super) falsehoods: usize,
    /// Sentences with a meaning that is true of the scene.
    pub(super) truths: usize,
    /// Texts that are no sentences of the world's grammar, so that their truth is unknown.
    pub(super) unparsed: usize,
    /// Share of false sentences among the sentences with a meaning.
    pub(super) truly_false: Option<f64>,
    /// 95 % interval of this share: bootstrap over images.
    pub(super) ci95: Option<[f64; 2]>,
}

/// Judges the records by kind. A record's caption is `image#number`.
pub(super) fn judge(split: &Split, records: &[Record]) -> BTreeMap<Kind, Judged> {
    let mut by_kind: BTreeMap<Kind, (Judged, Vec<Counts>)> = BTreeMap::new();
    for record in records {
        let image = record.caption.split('#').next().and_then(|id| id.parse::<usize>().ok());
        let image = image.expect("images of Scenes are numbers");
        let none = || (Judged::default(), vec![[0; 2]; split.len()]);
        let (judged, of_images) = by_kind.entry(record.kind).or_insert_with(none);
        match parse(&record.text) {
            None => judged.unparsed += 1,
            Some(said) if entails(&split.scenes[image], &said) => {
                judged.truths += 1;
                of_images[image][1] += 1;
            }
            Some(_) => {
                judged.falsehoods += 1;
                of_images[image][0] += 1;
                of_images[image][1] += 1;
            }
        }
    }
    let with_interval = |(kind, (judged, of_images)): (Kind, (Judged, Vec<Counts>))| {
        let share = Share::over(&[&of_images]);
        let (truly_false, ci95) = (share.map(|s| s.value), share.map(|s| s.ci95));
        (kind, Judged { truly_false, ci95, ..judged })
    };
    by_kind.into_iter().map(with_interval).collect()
}
