//! Queries that come at the same time share one pass over the rows.

use std::mem;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use itm_core::Result;
use itm_core::tiles::{Embeddings, Tiles, scores_of_rows};

/// Queries that wait while a pass runs. The next pass takes them all: reading the rows costs more than multiplying them, so twenty
/// queries take little longer than one.
#[derive(Default)]
pub(crate) struct Pass {
    waiting: Mutex<Vec<Waiting>>,
    turn: Mutex<()>,
}

struct Waiting {
    query: Vec<f32>,
    answer: Sender<Result<Vec<f32>>>,
}

impl Pass {
    /// The scores of a query with all rows, with the bits of [`scores_of_rows`], whoever comes with it.
    ///
    /// # Errors
    /// If a row is not finite.
    pub(crate) fn scores(&self, query: Vec<f32>, rows: &[f32]) -> Result<Vec<f32>> {
        let (answer, scores) = channel();
        lock(&self.waiting).push(Waiting { query, answer });
        let _turn = lock(&self.turn);
        if let Ok(scores) = scores.try_recv() {
            return scores; // of the pass that has just ended
        }
        let all = mem::take(&mut *lock(&self.waiting));
        let (queries, answers): (Vec<Vec<f32>>, Vec<_>) =
            all.into_iter().map(|waiting| (waiting.query, waiting.answer)).unzip();
        match of_all(&queries, rows) {
            Ok(scores) => {
                answers.iter().zip(scores).for_each(|(to, scores)| _ = to.send(Ok(scores)))
            }
            // One of them may be at fault, so each is asked alone, and hears of its own.
            Err(_) => answers.iter().zip(&queries).for_each(|(to, query)| {
                _ = to.send(of_all(std::slice::from_ref(query), rows).map(|mut one| one.remove(0)));
            }),
        }
        scores.recv().expect("a query is in the pass that it has made")
    }
}

/// The scores of each query.
fn of_all(queries: &[Vec<f32>], rows: &[f32]) -> Result<Vec<Vec<f32>>> {
    let [first, _, ..] = queries else {
        return Ok(queries.iter().map(|query| scores_of_rows(query, rows)).collect());
    };
    let (width, m) = (first.len(), queries.len());
    let pictures = Embeddings::new("pictures", rows.len() / width, width, rows)?;
    let queries = queries.concat();
    let scores = Tiles::new(pictures, Embeddings::new("queries", m, width, &queries)?)?.scores();
    let column = |query: usize| scores.values().iter().skip(query).step_by(m).copied().collect();
    Ok((0..m).map(column).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::testing::{DIM, Numbers};

    /// Sixteen threads ask at once, many times: each hears its own scores, bit for bit, alone or with others.
    #[test]
    fn each_query_hears_its_own_scores() {
        let rows: Vec<f32> = (0..70).flat_map(Numbers::picture).collect();
        let (pass, start) = (Pass::default(), Barrier::new(16));
        thread::scope(|scope| {
            for at in 0..16 {
                let (rows, pass, start) = (&rows, &pass, &start);
                scope.spawn(move || {
                    let query = Numbers::text(&format!("sentence {at}"));
                    let want = scores_of_rows(&query, rows);
                    start.wait();
                    for _ in 0..50 {
                        assert_eq!(pass.scores(query.clone(), rows).unwrap(), want);
                    }
                });
            }
        });
        let both = of_all(&[rows[..DIM].to_vec(), rows[DIM..2 * DIM].to_vec()], &rows).unwrap();
        assert_eq!(both[1], scores_of_rows(&rows[DIM..2 * DIM], &rows));
    }
}
