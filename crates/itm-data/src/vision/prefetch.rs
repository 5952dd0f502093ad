//! Prepares results ahead of their consumer, in order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::{Error, Result};

/// The number of threads and the number of results that are prepared ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// Worker threads; 0 counts as 1.
    pub workers: usize,
    /// Results that may be ready or in progress but not yet taken. This number bounds the memory. 0 counts as 1.
    pub results: usize,
}

/// The results of `jobs` in order, prepared by worker threads while the consumer does something else.
///
/// The results do not depend on the number of workers. The first error in the order of the jobs ends the iterator: the
/// results before the error come first, then the error, then nothing. A panic of a worker becomes such an error.
/// Dropping the iterator stops each worker after its current job.
///
/// ```
/// use itm_data::vision::{Ahead, Prefetch};
///
/// let jobs = (0..100).collect::<Vec<u64>>();
/// let ahead = Ahead { workers: 2, results: 4 };
/// let squares = Prefetch::new(jobs, ahead, |job| Ok(job * job));
/// assert_eq!(squares.map(|r| r.unwrap()).take(4).collect::<Vec<_>>(), [0, 1, 4, 9]);
/// ```
pub struct Prefetch<T> {
    shared: Arc<Queue<T>>,
    workers: Vec<JoinHandle<()>>,
}

struct Queue<T> {
    state: Mutex<State<T>>,
    /// Wakes the workers when a result was taken or the end has come.
    room: Condvar,
    /// Wakes the consumer when a result is ready.
    ready: Condvar,
}

struct State<T> {
    begun: usize,
    taken: usize,
    /// Jobs from this number on do not begin. Set when the jobs run out or an error occurs.
    end: usize,
    done: BTreeMap<usize, Result<T>>,
}

impl<T> Queue<T> {
    /// No job runs while the lock is held, so the state is whole even after a panic.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Prefetch<T> {
    /// Starts the workers.
    pub fn new<J: Send + 'static>(
        jobs: impl IntoIterator<Item = J, IntoIter: Send + 'static>,
        ahead: Ahead,
        prepare: impl Fn(J) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        let state = State { begun: 0, taken: 0, end: usize::MAX, done: BTreeMap::new() };
        let (state, room, ready) = (Mutex::new(state), Condvar::new(), Condvar::new());
        let shared = Arc::new(Queue { state, room, ready });
        let jobs = Arc::new(Mutex::new(jobs.into_iter()));
        let prepare = Arc::new(prepare);
        let workers = (0..ahead.workers.max(1)).map(|_| {
            let (shared, jobs, prepare) = (shared.clone(), jobs.clone(), prepare.clone());
            thread::spawn(move || work(&shared, &jobs, ahead.results.max(1), &*prepare))
        });
        let workers = workers.collect();
        Self { shared, workers }
    }
}

fn work<T, J>(
    shared: &Queue<T>,
    jobs: &Mutex<impl Iterator<Item = J>>,
    results: usize,
    prepare: &impl Fn(J) -> Result<T>,
) {
    loop {
        let mut state = shared.lock();
        while state.begun < state.end && state.begun >= state.taken.saturating_add(results) {
            state = shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.begun >= state.end {
            return;
        }
        // One lock covers number and job, so jobs and results have the same order.
        let number = state.begun;
        let place = format!("job {number}");
        let job = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        let next = caught(&place, || Ok(job()));
        state.begun += 1;
        let result = match next {
            Ok(None) => {
                state.end = number;
                None
            }
            Ok(Some(job)) => {
                drop(state);
                let result = caught(&place, || prepare(job));
                state = shared.lock();
                Some(result)
            }
            Err(error) => Some(Err(error)),
        };
        if let Some(result) = result {
            if result.is_err() {
                state.end = state.end.min(number + 1);
            }
            state.done.insert(number, result);
        }
        drop(state);
        shared.room.notify_all();
        shared.ready.notify_all();
    }
}

impl<T> Iterator for Prefetch<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let mut state = self.shared.lock();
        loop {
            let number = state.taken;
            if number >= state.end {
                return None;
            }
            if let Some(result) = state.done.remove(&number) {
                state.taken += 1;
                drop(state);
                self.shared.room.notify_all();
                return Some(result);
            }
            state = self.shared.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        self.shared.lock().end = 0;
        self.shared.room.notify_all();
        for worker in self.workers.drain(..) {
            _ = worker.join(); // the worker catches panics itself
        }
    }
}

/// Runs `work`; a panic becomes an error at `place`.
pub(super) fn caught<T>(
    place: impl std::fmt::Display,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let got = format!("a panic: {}", text.unwrap_or("without a message"));
        Err(Error::invalid(place, "work that ends", got))
    })
}

#[cfg(test)]
mod tests;
