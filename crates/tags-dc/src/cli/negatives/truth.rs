//! Checks with the grammar of Scenes whether negatives are false.

use std::collections::BTreeMap;

use crate::record::{Kind, Record};
use itm_core::significance::{Share, per_image};
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
    let mut by_kind: BTreeMap<Kind, Vec<(usize, Option<bool>)>> = BTreeMap::new();
    for record in records {
        let image = record.caption.split('#').next().and_then(|id| id.parse::<usize>().ok());
        let image = image.expect("images of Scenes are numbers");
        let denied = parse(&record.text).map(|said| !entails(&split.scenes[image], &said));
        by_kind.entry(record.kind).or_default().push((image, denied));
    }
    let verdicts = |(kind, all): (Kind, Vec<(usize, Option<bool>)>)| {
        let count = |denied| all.iter().filter(|one| one.1 == denied).count();
        let with_meaning = all.iter().filter_map(|&(image, denied)| Some((image, denied?)));
        let share = Share::over(&[per_image(split.len(), with_meaning)]);
        let (falsehoods, truths, unparsed) = (count(Some(true)), count(Some(false)), count(None));
        let (truly_false, ci95) = (share.map(|s| s.value), share.map(|s| s.ci95));
        (kind, Verdicts { falsehoods, truths, unparsed, truly_false, ci95 })
    };
    by_kind.into_iter().map(verdicts).collect()
}
