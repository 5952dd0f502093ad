//! The rows by judgements beyond the annotated pairs: ECCV Caption, CxC, plausible matches.

use std::collections::{BTreeMap, BTreeSet};

use itm_core::Result;
use itm_core::eval::{MultiEvaluation, MultiMetrics};
use itm_report::format::points;
use itm_report::table::Table;
use serde::{Deserialize, Serialize};

use super::{BySeed, Measure, Trial};
use crate::report::{Report, Section, mean, of_rows};

/// The rows by each set of judgements that the data have.
#[derive(Debug, Default)]
pub(crate) struct Judgements {
    seeds: BySeed<BTreeMap<String, MultiEvaluation>>,
}

impl Measure for Judgements {
    fn look(&self, trial: &Trial) -> Result<()> {
        let mut found = BTreeMap::new();
        for set in &trial.source.judgements {
            // Each direction has queries of its own.
            let i2t = trial.scores.evaluate_multi(&set.i2t)?.i2t;
            let t2i = trial.scores.evaluate_multi(&set.t2i)?.t2i;
            found.insert(set.name.clone(), MultiEvaluation { i2t, t2i });
        }
        self.seeds.put(trial, found);
        Ok(())
    }

    fn section(&self, report: &mut Report) -> Result<Section> {
        let mut section = Section::new("Judgements beyond the annotated pairs");
        let rows = self.seeds.rows(report, RowJudgements::over);
        section.add_rows(report, |row| &mut row.more, &rows)?;
        let names = rows.iter().flatten().flat_map(|row| row.judgements.keys());
        let names: BTreeSet<_> = names.collect();
        section.tables = names.iter().map(|name| table(report, &rows, name)).collect();
        Ok(section)
    }
}

/// A row by every set of judgements, means over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RowJudgements {
    judgements: BTreeMap<String, MultiEvaluation>,
}

impl RowJudgements {
    fn over(seeds: &[&BTreeMap<String, MultiEvaluation>]) -> Option<Self> {
        let of = |name: &String| {
            let side = |of: fn(&MultiEvaluation) -> MultiMetrics| {
                let all = seeds.iter().filter_map(|seed| Some(of(seed.get(name)?)));
                mean_metrics(&all.collect::<Vec<_>>())
            };
            Some((name.clone(), MultiEvaluation { i2t: side(|e| e.i2t)?, t2i: side(|e| e.t2i)? }))
        };
        let judgements: BTreeMap<_, _> = seeds.first()?.keys().filter_map(of).collect();
        (!judgements.is_empty()).then_some(Self { judgements })
    }
}

fn mean_metrics(seeds: &[MultiMetrics]) -> Option<MultiMetrics> {
    let of = |value: fn(&MultiMetrics) -> f64| mean(seeds.iter().map(value));
    Some(MultiMetrics {
        map_at_r: of(|m| m.map_at_r)?,
        r_precision: of(|m| m.r_precision)?,
        r1: of(|m| m.r1)?,
        r5: of(|m| m.r5)?,
        r10: of(|m| m.r10)?,
        ..*seeds.first()?
    })
}

/// A number of a direction.
type Value = fn(&MultiMetrics) -> f64;

const COLUMNS: [(&str, Value); 5] = [
    ("mAP@R", |m| m.map_at_r),
    ("R-P", |m| m.r_precision),
    ("R@1", |m| m.r1),
    ("R@5", |m| m.r5),
    ("R@10", |m| m.r10),
];

fn table(report: &Report, rows: &[Option<RowJudgements>], name: &str) -> Table {
    let of = || rows.iter().map(|row| row.as_ref()?.judgements.get(name));
    let queries = of().flatten().next().map_or(String::new(), |judged| {
        let [i2t, t2i] = [judged.i2t.queries, judged.t2i.queries];
        format!("{i2t} images and {t2i} texts are queries; all images and texts are items. ")
    });
    let note = format!("{queries}R@K: any true item among the first K. R-P: R-precision.");
    let mut t = of_rows(report, name).noted(note);
    type Side = fn(&MultiEvaluation) -> &MultiMetrics;
    let sides: [(_, Side); 2] = [("image → text", |e| &e.i2t), ("text → image", |e| &e.t2i)];
    for (group, side) in sides {
        for (head, value) in COLUMNS {
            let values = of().map(|judged| Some(value(side(judged?))));
            t.best(head, values, points).under(group, "");
        }
    }
    t
}
