//! Queries that come at the same time share one pass over the rows.

use std::mem;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use itm_core::tiles::{Embeddings, Panels};
use itm_core::{Result, ScoreMatrix};

/// Queries that wait while a pass runs. The next pass takes them all: reading the rows costs more than multiplying them, so twenty
/// queries take little longer than one.
#[derive(Default)]
pub(crate) struct Pass {
    line: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Whether somebody makes a pass, or was given the turn to.
    busy: bool,
    waiting: Vec<Waiting>,
}

struct Waiting {
    query: Vec<f32>,
    to: Sender<Message>,
}

/// What one who waits hears.
enum Message {
    /// The pass is his to make, for all who wait.
    Turn,
    Scores(Result<Vec<f32>>),
}

impl Pass {
    /// The scores of a query with all rows, whoever comes with it.
    ///
    /// # Errors
    /// If a value is so large that a score could overflow.
    pub(crate) fn scores(&self, query: Vec<f32>, rows: &Panels) -> Result<Vec<f32>> {
        let (to, word) = channel();
        let first = {
            let mut line = self.line();
            line.waiting.push(Waiting { query, to });
            !mem::replace(&mut line.busy, true)
        };
        if !first {
            match word.recv() {
                Ok(Message::Turn) => (),
                Ok(Message::Scores(scores)) => return scores,
                Err(_) => panic!("the pass of this query ended in a panic"),
            }
        }
        let _next = Next(self);
        let all = mem::take(&mut self.line().waiting);
        let (queries, askers): (Vec<Vec<f32>>, Vec<_>) =
            all.into_iter().map(|waiting| (waiting.query, waiting.to)).unzip();
        match of_all(&queries, rows) {
            Ok(scores) => {
                let each = askers.iter().enumerate();
                each.for_each(|(at, to)| _ = to.send(Message::Scores(Ok(scores.row(at).to_vec()))));
            }
            // One of them may be at fault, so each is asked alone, and hears of its own.
            Err(_) => askers.iter().zip(&queries).for_each(|(to, query)| {
                let alone = of_all(std::slice::from_ref(query), rows);
                _ = to.send(Message::Scores(alone.map(|scores| scores.row(0).to_vec())));
            }),
        }
        match word.recv() {
            Ok(Message::Scores(scores)) => scores,
            _ => unreachable!("a query is in the pass that it has made"),
        }
    }

    fn line(&self) -> MutexGuard<'_, Queue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the turn on when a pass has ended, also if it ended in a panic.
struct Next<'a>(&'a Pass);

impl Drop for Next<'_> {
    fn drop(&mut self) {
        let mut line = self.0.line();
        line.busy = line.waiting.first().is_some_and(|first| first.to.send(Message::Turn).is_ok());
    }
}

/// The scores of each query, a row each.
fn of_all(queries: &[Vec<f32>], rows: &Panels) -> Result<ScoreMatrix> {
    rows.scores(&Embeddings::new("queries", queries.len(), rows.dim(), &queries.concat())?)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use itm_core::tiles::Tiles;

    use super::*;
    use crate::fakes::{DIM, Numbers};

    /// Sixteen threads ask at once, many times: each hears its own scores, bit for bit, alone or with others.
    #[test]
    fn each_query_hears_its_own_scores() {
        let rows: Vec<f32> = (0..70).flat_map(Numbers::picture).collect();
        let rows = Embeddings::new("rows", 70, DIM, &rows).unwrap();
        let panels = Panels::new(&rows);
        let (pass, start) = (Pass::default(), Barrier::new(16));
        thread::scope(|scope| {
            for at in 0..16 {
                let (rows, panels, pass, start) = (&rows, &panels, &pass, &start);
                scope.spawn(move || {
                    let query = Numbers::text(&format!("sentence {at}"));
                    let alone = Embeddings::new("query", 1, DIM, &query).unwrap();
                    let want = Tiles::new(*rows, alone).unwrap().scores().values().to_vec();
                    start.wait();
                    for _ in 0..50 {
                        assert_eq!(pass.scores(query.clone(), panels).unwrap(), want);
                    }
                });
            }
        });
    }
}
