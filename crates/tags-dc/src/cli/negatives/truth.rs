//! Checks with the grammar of Scenes whether negatives are false.

use std::collections::BTreeMap;

use crate::record::{Kind, Record};
use itm_core::significance::Share;
use scenes::{ScenesSplit, entails, parse};
use serde::Serialize;

/// Negatives of a kind, compared with the truth.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Verdicts {
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

/// The verdicts on the records of each kind. A record's caption is `image#number`.
pub(super) fn verdicts(split: &ScenesSplit, records: &[Record]) -> BTreeMap<Kind, Verdicts> {
    let mut by_kind: BTreeMap<Kind, (Verdicts, Vec<[u64; 2]>)> = BTreeMap::new();
    for record in records {
        let image = record.caption.split('#').next().and_then(|id| id.parse::<usize>().ok());
        let image = image.expect("images of Scenes are numbers");
        let none = || (Verdicts::default(), vec![[0; 2]; split.len()]);
        let (verdicts, of_images) = by_kind.entry(record.kind).or_insert_with(none);
        let Some(said) = parse(&record.text) else {
            verdicts.unparsed += 1;
            continue;
        };
        let denied = !entails(&split.scenes[image], &said);
        verdicts.falsehoods += usize::from(denied);
        verdicts.truths += usize::from(!denied);
        of_images[image][0] += u64::from(denied);
        of_images[image][1] += 1;
    }
    let with_interval = |(kind, (verdicts, of_images)): (Kind, (Verdicts, Vec<[u64; 2]>))| {
        let share = Share::over(&[&of_images]);
        let (truly_false, ci95) = (share.map(|s| s.value), share.map(|s| s.ci95));
        (kind, Verdicts { truly_false, ci95, ..verdicts })
    };
    by_kind.into_iter().map(with_interval).collect()
}
