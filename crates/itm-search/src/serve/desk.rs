//! A bounded queue: work that computes or reads runs on few threads, and what would wait too long is refused at once.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::refusal::Refusal;

/// Places of work, and of waiting for it.
#[derive(Debug)]
pub(crate) struct Desk {
    places: Arc<Semaphore>,
    workers: Arc<Semaphore>,
}

impl Desk {
    pub(crate) fn new(places: usize, workers: usize) -> Self {
        let [places, workers] = [places, workers].map(|n| Arc::new(Semaphore::new(n)));
        Self { places, workers }
    }

    /// Runs `work` on a thread of its own when a worker is free. The place is free again when the work has ended, also if nobody waits
    /// for the answer any more.
    ///
    /// # Errors
    /// If no place is left (503), and those of `work`. A panic of `work` is 500.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| Refusal::busy())?;
        let worker = self.workers.clone().acquire_owned().await.map_err(|_| Refusal::busy())?;
        let done = tokio::task::spawn_blocking(move || {
            let _held = (place, worker);
            work()
        });
        let line = "The search has failed. The terminal says why.";
        done.await.map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, line))?
    }
}
