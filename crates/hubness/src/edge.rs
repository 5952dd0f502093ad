//! One entry of the score matrix, with its place in the order of all entries.

/// An entry of the matrix queries × items; the greater edge comes first in the order of the whole matrix. In a list of one
/// query, the query is 0.
///
/// ```text
/// key = (score as ordered bits, !query, !item)      higher score, then smaller query, then smaller item
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge(u128);

impl Edge {
    /// Before any entry.
    pub(crate) const FIRST: Self = Self(u128::MAX);
    /// After any entry.
    pub(crate) const LAST: Self = Self(0);

    /// # Panics
    /// If the score is NaN.
    #[inline]
    pub(crate) fn new(score: f64, query: u32, item: u32) -> Self {
        assert!(!score.is_nan(), "query {query}, item {item}: the score is not a number");
        let bits = (score + 0.0).to_bits(); // −0 + 0 = +0: the two are tied
        let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
        Self(u128::from(ordered) << 64 | u128::from(!query) << 32 | u128::from(!item))
    }

    #[inline]
    pub(crate) fn query(self) -> u32 {
        !((self.0 >> 32) as u32)
    }

    #[inline]
    pub(crate) fn item(self) -> u32 {
        !(self.0 as u32)
    }

    pub(crate) fn score(self) -> f64 {
        let ordered = (self.0 >> 64) as u64;
        f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_ordered_by_score_then_query_then_item() {
        let scores = [f64::INFINITY, 1.0, 1.0 - 1e-16, 1e-310, 0.0, -1e-310, -2.0, -f64::INFINITY];
        for pair in scores.windows(2) {
            assert!(Edge::new(pair[0], 9, 9) > Edge::new(pair[1], 0, 0), "{pair:?}");
        }
        assert!(Edge::new(0.5, 1, 9) > Edge::new(0.5, 2, 0));
        assert!(Edge::new(0.5, 1, 3) > Edge::new(0.5, 1, 4));
        assert_eq!(Edge::new(-0.0, 1, 2), Edge::new(0.0, 1, 2));
        let (first, last) = (Edge::new(f64::INFINITY, 0, 0), Edge::new(-f64::INFINITY, !0, !0));
        assert!(Edge::FIRST > first && last > Edge::LAST);
        let edge = Edge::new(-3.5, 70_000, 80_000);
        assert_eq!((edge.query(), edge.item(), edge.score()), (70_000, 80_000, -3.5));
    }

    #[test]
    #[should_panic(expected = "query 3, item 4: the score is not a number")]
    fn nan_has_no_place_in_the_order() {
        Edge::new(f64::NAN, 3, 4);
    }
}
