//! Deferred acceptance: queries propose, items keep the best.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use rayon::prelude::*;

use super::Stop;
use super::candidates::{Candidates, Request};
use super::matching::{Matching, belongs, check};
use crate::edge::Edge;
use crate::{Error, Pairs, Result};

/// The most items of a query, so that no count of all edges wraps.
const MOST: usize = 1_000_000_000;

/// Greedy matchings of one `k` under smaller and smaller capacities, each derived from the one before.
///
/// Every query holds its best items. Each item holds at most `capacity` queries, the first ones in the order of the whole
/// matrix. A query that an item drops proposes to the next item of its list. An item that refuses a query would refuse it
/// under a smaller capacity too. So a lower capacity continues from the present matching, and trying all capacities costs
/// little more than trying the smallest.
///
/// ```
/// use hubness::{Candidates, Correction, Direction::I2t, GreedySweep, Plain, ScoreMatrix, Stop};
///
/// let scores = ScoreMatrix::from_rows([[0.75, 0.5, 0.25], [0.875, 0.5, 0.125]]); // text 0 is a hub
/// let none = Correction::<Plain>::none(&scores, I2t);
/// let candidates = Candidates::new(&scores, &none, 1)?;
/// let mut sweep = GreedySweep::new(&candidates, 1)?;
/// assert_eq!(sweep.largest(), 2);
/// sweep.lower(1)?;
/// assert_eq!(sweep.matching(Stop::Exhaustive).stack(), [(1, 0), (0, 1)]);
/// # Ok::<(), hubness::Error>(())
/// ```
pub struct GreedySweep<'a> {
    candidates: &'a Candidates<'a>,
    k: usize,
    capacity: usize,
    rows: Vec<QueryState>,
    columns: Vec<BinaryHeap<Reverse<Edge>>>, // what each item holds, the worst on top
    floor: Vec<Edge>,                        // the worst edge of a full item; else LAST
    work: Vec<u32>,                          // queries that may hold fewer than k
    dry: Vec<u32>,                           // queries whose list ran out before they held k
}

#[derive(Debug, Clone, Default)]
struct QueryState {
    next: usize, // place in the list
    held: usize,
    more: Option<Vec<Edge>>, // the list, once candidates ran out
    whole: bool,             // nothing can follow this list
}

impl<'a> GreedySweep<'a> {
    /// Starts without a bound: every query holds its `k` nearest items.
    ///
    /// # Errors
    /// If `k` is above 10⁹, or a list runs out, and its scores cannot be read again.
    pub fn new(candidates: &'a Candidates<'a>, k: usize) -> Result<Self> {
        Error::unless(k <= MOST, "k", format_args!("at most {MOST} items"), k)?;
        let (queries, items) = (candidates.queries, candidates.items);
        let listed = candidates.lists.k();
        let taken = k.min(listed);
        let mut held = vec![0; items];
        let plain = (0..queries as u32).flat_map(|q| (0..taken).map(move |place| (q, place)));
        let plain: Vec<_> = plain.map(|(q, place)| candidates.at(q, place)).collect();
        plain.iter().for_each(|edge| held[edge.item() as usize] += 1);
        let mut columns: Vec<_> = held.into_iter().map(Vec::with_capacity).collect();
        plain.iter().for_each(|&edge| columns[edge.item() as usize].push(Reverse(edge)));
        let row = QueryState { next: taken, held: taken, more: None, whole: listed == items };
        let mut sweep = Self {
            candidates,
            k,
            capacity: usize::MAX,
            rows: vec![row; queries],
            columns: columns.into_iter().map(BinaryHeap::from).collect(),
            floor: vec![Edge::LAST; items],
            work: if taken < k { (0..queries as u32).collect() } else { Vec::new() },
            dry: Vec::new(),
        };
        sweep.settle()?;
        Ok(sweep)
    }

    /// The largest number of queries that hold one item. A capacity of at least this number changes nothing.
    pub fn largest(&self) -> usize {
        self.columns.iter().map(BinaryHeap::len).max().unwrap_or(0)
    }

    /// Lets no item be held by more than `capacity` queries.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// If `capacity` is larger than at the last call.
    pub fn lower(&mut self, capacity: usize) -> Result<()> {
        let before = self.capacity;
        assert!(capacity <= before, "capacities go down, not from {before} to {capacity}");
        self.capacity = capacity;
        if capacity == 0 {
            self.columns.iter_mut().for_each(BinaryHeap::clear);
            self.rows.iter_mut().for_each(|row| row.held = 0);
            return Ok(()); // and no query proposes any more
        }
        for (column, floor) in self.columns.iter_mut().zip(&mut self.floor) {
            if column.len() > capacity {
                let mut edges = mem::take(column).into_vec();
                edges.select_nth_unstable(capacity - 1); // reversed: the best come first
                for Reverse(lost) in edges.drain(capacity..) {
                    self.rows[lost.query() as usize].held -= 1;
                    self.work.push(lost.query());
                }
                *column = edges.into();
            }
            if column.len() == capacity
                && let Some(Reverse(worst)) = column.peek()
            {
                *floor = *worst;
            }
        }
        self.settle()
    }

    /// The matching under the present capacity.
    pub fn matching(&self, stop: Stop) -> Matching {
        let mut edges: Vec<_> = self.edges().collect();
        edges.par_sort_unstable_by(|a, b| b.cmp(a));
        edges.truncate(self.budget(stop));
        Matching::new(self.candidates.direction, self.rows.len(), self.columns.len(), &edges)
    }

    /// The place of each query's first true item in its list, as in `Matching::places`, but without making the lists.
    ///
    /// # Panics
    /// If `pairs` have other numbers of images and texts.
    pub(crate) fn places(&self, stop: Stop, pairs: &Pairs) -> Vec<Option<usize>> {
        let direction = self.candidates.direction;
        check(pairs, direction, self.rows.len(), self.columns.len());
        let last = self.last(stop);
        let pushed = || self.edges().filter(|&edge| edge >= last);
        let mut first = vec![Edge::LAST; self.rows.len()];
        for edge in pushed().filter(|e| belongs(pairs, direction, e.query(), e.item())) {
            let first = &mut first[edge.query() as usize];
            *first = edge.max(*first);
        }
        let mut place = vec![0; first.len()];
        pushed()
            .for_each(|e| place[e.query() as usize] += usize::from(e > first[e.query() as usize]));
        let found = first.into_iter().zip(place);
        found.map(|(first, place)| (first > Edge::LAST).then_some(place)).collect()
    }

    fn edges(&self) -> impl Iterator<Item = Edge> {
        self.columns.iter().flatten().map(|&Reverse(edge)| edge)
    }

    /// The largest number of edges to push.
    fn budget(&self, stop: Stop) -> usize {
        match stop {
            Stop::Exhaustive => usize::MAX,
            Stop::Literal => self.rows.len().min(self.columns.len()).saturating_mul(self.k),
        }
    }

    /// The last edge that is pushed, or one after it.
    fn last(&self, stop: Stop) -> Edge {
        let budget = self.budget(stop);
        if self.columns.iter().map(BinaryHeap::len).sum::<usize>() <= budget {
            return Edge::LAST;
        }
        let mut edges: Vec<_> = self.edges().collect();
        match budget.checked_sub(1) {
            Some(last) => *edges.select_nth_unstable_by(last, |a, b| b.cmp(a)).1,
            None => Edge::FIRST,
        }
    }

    /// Makes proposals until every query holds `k` items or has no item left. The order of the proposals changes nothing.
    fn settle(&mut self) -> Result<()> {
        loop {
            while let Some(query) = self.work.pop() {
                self.propose(query);
            }
            if self.dry.is_empty() {
                return Ok(());
            }
            self.refill()?;
        }
    }

    fn propose(&mut self, query: u32) {
        let q = query as usize;
        while self.rows[q].held < self.k {
            let Some(edge) = self.next(query) else {
                if !self.rows[q].whole {
                    self.dry.push(query);
                }
                return;
            };
            let item = edge.item() as usize;
            if edge < self.floor[item] {
                continue;
            }
            let column = &mut self.columns[item];
            if column.len() < self.capacity {
                column.push(Reverse(edge));
            } else if let Some(mut worst) = column.peek_mut() {
                let Reverse(lost) = mem::replace(&mut *worst, Reverse(edge));
                self.rows[lost.query() as usize].held -= 1;
                self.work.push(lost.query());
            }
            if column.len() == self.capacity
                && let Some(Reverse(worst)) = column.peek()
            {
                self.floor[item] = *worst;
            }
            self.rows[q].held += 1;
        }
    }

    /// The next item of a query's list.
    #[inline]
    fn next(&mut self, query: u32) -> Option<Edge> {
        let row = &mut self.rows[query as usize];
        let edge = match &row.more {
            Some(list) => list.get(row.next).copied(),
            None => {
                (row.next < self.candidates.lists.k()).then(|| self.candidates.at(query, row.next))
            }
        };
        row.next += usize::from(edge.is_some());
        edge
    }

    /// Makes new lists for the queries whose lists ran out. Floors only rise, so an edge below its floor stays refused.
    fn refill(&mut self) -> Result<()> {
        self.dry.sort_unstable();
        self.dry.dedup(); // a query may have lost another item while it waited
        let requests: Vec<_> = self
            .dry
            .drain(..)
            .map(|query| {
                let (row, listed) = (&self.rows[query as usize], self.candidates.lists.k());
                let (below, before) = match &row.more {
                    Some(list) => (list[list.len() - 1], list.len()),
                    None => (self.candidates.at(query, listed - 1), 0),
                };
                // Each list is longer than the one before, so a query needs only a few refills.
                let want = (2 * before).max(2 * self.k).max(32);
                Request { query, below, want }
            })
            .collect();
        let lists = self.candidates.refill(&requests, &self.floor)?;
        for (request, list) in requests.iter().zip(lists) {
            let row = &mut self.rows[request.query as usize];
            row.whole = list.len() < request.want;
            row.next = 0;
            row.more = Some(list);
            self.work.push(request.query);
        }
        Ok(())
    }
}
