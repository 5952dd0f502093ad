//! The gate: new items, each judged alone against the collection.

use itm_core::tiles::{Embeddings, Tiles};
use itm_core::{Error, Result};
use serde::Serialize;

use super::{Budget, ClusterCount, Evidence, Scan};

/// Whether a new item may enter the collection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Admission {
    /// The row of the new item.
    pub item: usize,
    /// Whether its score reaches the score of an alert.
    pub refused: bool,
    /// What speaks against it.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Number of new items whose scores are in memory together.
const BATCH: usize = 64;

impl Scan {
    /// Judges new items, each as if it alone came behind the collection. `queries` are the queries of the scan.
    ///
    /// # Errors
    /// If `queries` has another number of rows, the widths differ, or as [`alerts`](Self::alerts).
    pub fn admit(
        &self,
        queries: Embeddings<'_>,
        new: Embeddings<'_>,
        budget: Budget,
    ) -> Result<Vec<Admission>> {
        let (own, got) = (self.clusters.of.len(), queries.rows());
        Error::unless(own == got, "queries", format_args!("the {own} queries of the scan"), got)?;
        let threshold = self.threshold(budget)?;
        let tiles = Tiles::new(queries, new)?;
        let mut all = Vec::with_capacity(new.rows());
        for first in (0..new.rows()).step_by(BATCH) {
            let some = first..(first + BATCH).min(new.rows());
            let scores = tiles.block(0..own, some.clone());
            for item in some {
                let score_of = |query: usize| scores.row(query)[item - first];
                let evidence = self.evidence_against(score_of);
                let refused = evidence.score >= threshold;
                all.push(Admission { item, refused, evidence });
            }
        }
        Ok(all)
    }

    /// A new item comes last, so it loses against equal scores.
    fn evidence_against(&self, score_of: impl Fn(usize) -> f32) -> Evidence {
        let none = |cluster| ClusterCount { cluster, count: 0, first: 0 };
        let mut found: Vec<_> = (0..self.clusters.sizes.len() as u32).map(none).collect();
        for (query, &cluster) in self.clusters.of.iter().enumerate() {
            let (score, present) = (score_of(query), self.nearest.scores(query));
            let enters = present.len() < self.summary.k || score > present[present.len() - 1];
            found[cluster as usize].count += u32::from(enters);
            found[cluster as usize].first += u32::from(score > present[0]);
        }
        found.retain(|found| found.count > 0);
        self.evidence(&found)
    }

    /// The verdict on a new item as a sentence.
    pub fn sentence(&self, admission: &Admission) -> String {
        let (Admission { item, refused, evidence }, of) = (admission, self.summary());
        let verdict = if *refused { "refused" } else { "admitted" };
        let (first, count) = (evidence.first, evidence.count);
        let (asked, k, high_first, high) = (of.queries, of.k, of.high_first, of.high);
        format!(
            "item {item} would be the first answer of {first} of {asked} queries, and among the first {k} of {count}; \
             of the present items the 99.9th percentile is {high_first} and {high}: {verdict}"
        )
    }
}
