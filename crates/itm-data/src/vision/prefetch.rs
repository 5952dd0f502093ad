//! Prepares results ahead of their consumer, in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::files::panic_text;
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
    /// None after the end.
    consumer: Option<ConsumerSide<T>>,
    workers: Vec<JoinHandle<()>>,
}

/// What the consumer holds.
struct ConsumerSide<T> {
    /// The results of the jobs that have begun, in their order.
    results: Receiver<Receiver<Result<T>>>,
    /// Tells the workers of each result that was taken.
    taken: Sender<()>,
}

/// Where the result of a job goes.
type ResultSender<T> = Sender<Result<T>>;

/// The workers' side. A worker that waits for room keeps the others waiting, too.
struct Queue<J, T> {
    jobs: J,
    room: usize,
    taken: Receiver<()>,
    begun: Sender<Receiver<Result<T>>>,
}

impl<T, J: Iterator> Queue<J, T> {
    /// Takes the next job when there is room, with the place of its result; none after the last and when the consumer has gone.
    fn next(&mut self) -> Option<(Result<J::Item>, ResultSender<T>)> {
        match self.room.checked_sub(1) {
            Some(room) => self.room = room,
            None => self.taken.recv().ok()?,
        }
        let Some(job) = caught("the next job", || Ok(self.jobs.next())).transpose() else {
            self.room = usize::MAX; // nobody waits for room after the end
            return None;
        };
        let (sender, result) = channel();
        self.begun.send(result).ok()?;
        Some((job, sender))
    }
}

impl<T: Send + 'static> Prefetch<T> {
    /// Starts the workers.
    pub fn new<J: Send + 'static>(
        jobs: impl IntoIterator<Item = J, IntoIter: Send + 'static>,
        ahead: Ahead,
        prepare: impl Fn(J) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        let ((begun, results), (sender, taken)) = (channel(), channel());
        let jobs = jobs.into_iter().enumerate().fuse();
        let queue = Queue { jobs, room: ahead.results.max(1), taken, begun };
        let (queue, prepare) = (Arc::new(Mutex::new(queue)), Arc::new(prepare));
        let workers = (0..ahead.workers.max(1)).map(|_| {
            let (queue, prepare) = (queue.clone(), prepare.clone());
            thread::spawn(move || {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some((job, sender)) = next() {
                    let prepared = |(number, job)| caught(format!("job {number}"), || prepare(job));
                    _ = sender.send(job.and_then(prepared)); // the consumer may have gone
                }
            })
        });
        let workers = workers.collect();
        Self { consumer: Some(ConsumerSide { results, taken: sender }), workers }
    }
}

impl<T> Iterator for Prefetch<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let ConsumerSide { results, taken } = self.consumer.as_ref()?;
        let result = results.recv().ok().and_then(|result| result.recv().ok());
        match &result {
            Some(Ok(_)) => _ = taken.send(()), // the workers may have ended
            _ => self.consumer = None,
        }
        result
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        self.consumer = None;
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
        Err(Error::invalid(place, "work that ends", format!("a panic: {}", panic_text(&*panic))))
    })
}

#[cfg(test)]
mod tests;
