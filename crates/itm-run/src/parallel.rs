//! Several trainings at a time, with their results in order.

use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use itm_core::{Error, Result};

use crate::cli::How;
use crate::config::within;

/// A larger number is a mistake.
const MOST_JOBS: u64 = 256;

/// Most trainings at a time without `--jobs`: each training holds a model, and the first row's result comes later.
const MOST_UNASKED: usize = 4;

/// Number of trainings at a time: several only if they share the processor.
///
/// Without `--jobs`, the largest number that `fits`, but at most [`MOST_UNASKED`] and one per thread; 1 if none fits.
///
/// # Errors
/// If the number is 0 or above [`MOST_JOBS`], or if the trainings would share a device other than the processor.
pub(crate) fn jobs(how: &How, trainings: usize, fits: impl Fn(usize) -> bool) -> Result<usize> {
    let Some(asked) = how.jobs else {
        let threads = if how.backend == "cpu" { rayon::current_num_threads() } else { 1 };
        let most = threads.min(MOST_UNASKED).min(trainings);
        return Ok((2..=most).rev().find(|&n| fits(n)).unwrap_or(1));
    };
    within("--jobs".into(), asked as u64, 1..=MOST_JOBS)?;
    let expected = format_args!("1 on {}: only cpu trains several at a time", how.backend);
    Error::unless(asked <= 1 || how.backend == "cpu", "--jobs", expected, asked)?;
    Ok(asked.min(trainings))
}

/// Makes the result of each task `0..tasks`, `workers` at a time, and passes the results to `take` in the order of the tasks.
///
/// A worker takes the next task when it has finished one. Each worker has an equal part of the pool's threads. A single
/// worker is the calling thread, with all threads. After an error of a task or of `take`, no new task begins, but running
/// tasks end first.
///
/// # Errors
/// The error of the first failed task in order, or of `take`; or if threads cannot be started.
pub(crate) fn in_order<T: Send>(
    tasks: usize,
    workers: usize,
    make: impl Fn(usize) -> Result<T> + Sync,
    mut take: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let workers = workers.min(tasks);
    if workers < 2 {
        return (0..tasks).try_for_each(|task| take(task, make(task)?));
    }
    let threads = (rayon::current_num_threads() / workers).max(1);
    let pools = (0..workers).map(|_| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map_err(|e| Error::invalid("--jobs", "threads for each job", e))
    });
    let pools = pools.collect::<Result<Vec<_>>>()?;
    let (senders, results): (Vec<_>, Vec<_>) = (0..tasks).map(|_| channel()).unzip();
    let queue = Mutex::new(senders.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let stop = || while next().is_some() {};
    let (next, stop, make) = (&next, &stop, &make);
    std::thread::scope(|scope| {
        for pool in &pools {
            scope.spawn(move || {
                while let Some((task, sender)) = next() {
                    let result = pool.install(|| make(task));
                    if result.is_err() {
                        stop();
                    }
                    _ = sender.send(result); // `take` may have refused a result
                }
            });
        }
        let taken = || {
            for (task, result) in results.into_iter().enumerate() {
                let Ok(result) = result.recv() else { break }; // its worker has panicked
                take(task, result?)?;
            }
            Ok(())
        };
        taken().inspect_err(|_| stop())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::cli;

    fn how(rest: &[&str]) -> How {
        let args = [&["itm", "reproduce", "x"], rest].concat();
        match cli::Cli::try_parse_from(args).unwrap().command {
            cli::Command::Reproduce(args) => args.how,
            _ => unreachable!(),
        }
    }

    #[test]
    fn several_only_on_the_processor() {
        let jobs = |rest: &[&str]| jobs(&how(rest), 7, |_| true).map_err(|e| e.to_string());
        assert_eq!(jobs(&["--jobs", "5"]), Ok(5));
        assert_eq!(jobs(&["--jobs", "9"]), Ok(7), "no more than trainings");
        assert_eq!(jobs(&["--backend", "wgpu"]), Ok(1));
        let line = jobs(&["--jobs", "2", "--backend", "wgpu:1"]).unwrap_err();
        assert_eq!(line, "--jobs: expected 1 on wgpu:1: only cpu trains several at a time, got 2");
        assert!(jobs(&["--jobs", "0"]).unwrap_err().starts_with("--jobs: expected 1 to 256"));
    }

    #[test]
    fn nobody_asked_for_a_number() {
        let unasked = |threads: usize, trainings: usize, most: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| jobs(&how(&[]), trainings, |n| n <= most).unwrap())
        };
        assert_eq!(unasked(1, 9, 9), 1, "one thread");
        assert_eq!(unasked(2, 9, 9), 2);
        assert_eq!(unasked(16, 9, 9), MOST_UNASKED);
        assert_eq!(unasked(16, 3, 9), 3, "three trainings");
        assert_eq!(unasked(16, 9, 2), 2, "memory for two");
        assert_eq!(unasked(16, 9, 0), 1, "memory for none is an error of the plan");
    }

    #[test]
    fn results_come_in_order_however_long_they_take() {
        for workers in [1, 2, 3, 9] {
            let mut got = Vec::new();
            let make = |task| {
                std::thread::sleep(Duration::from_millis([30, 1, 15, 0, 5][task]));
                Ok(task * task)
            };
            in_order(5, workers, make, |task, square| {
                got.push((task, square));
                Ok(())
            })
            .unwrap();
            assert_eq!(got, [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)], "{workers} workers");
        }
        in_order(0, 2, |_| Ok(()), |_, ()| panic!("there are no tasks")).unwrap();
    }

    /// Three tasks that wait for each other end only if they run at once; each pool has an equal part of the threads.
    #[test]
    fn workers_run_at_once_on_pools_of_their_own() {
        let together = Barrier::new(3);
        let all = rayon::current_num_threads();
        let make = |_| {
            together.wait();
            Ok(rayon::current_num_threads())
        };
        in_order(3, 3, make, |_, threads| {
            assert_eq!(threads, (all / 3).max(1));
            Ok(())
        })
        .unwrap();
        let alone = |_| Ok(rayon::current_num_threads());
        in_order(1, 4, alone, |_, threads| {
            assert_eq!(threads, all, "one task has them all");
            Ok(())
        })
        .unwrap();
    }

    /// Task 1 fails while task 0 still runs: task 0 is taken, the error is task 1's, and no new task begins afterwards.
    #[test]
    fn the_first_error_ends_it_and_what_runs_is_taken() {
        let begun = AtomicUsize::new(0);
        let mut taken = vec![];
        let failing = |task| {
            begun.fetch_add(1, Ordering::SeqCst);
            match task {
                1 => Err(Error::invalid("task 1", "luck", "none")),
                0 => {
                    std::thread::sleep(Duration::from_millis(50));
                    Ok(())
                }
                _ => {
                    std::thread::sleep(Duration::from_millis(10));
                    Ok(())
                }
            }
        };
        let error = in_order(100, 2, failing, |task, ()| {
            taken.push(task);
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "task 1: expected luck, got none");
        assert_eq!(taken, [0]);
        assert!(begun.load(Ordering::SeqCst) < 100, "not all have begun");
        for workers in [1, 2] {
            begun.store(0, Ordering::SeqCst);
            let make = |_| {
                std::thread::sleep(Duration::from_millis(5));
                begun.fetch_add(1, Ordering::SeqCst);
                Ok(())
            };
            let refuse = |task: usize, ()| Err(Error::invalid("disk", "room", task));
            let error = in_order(100, workers, make, refuse).unwrap_err();
            assert_eq!(error.to_string(), "disk: expected room, got 0");
            assert!(begun.load(Ordering::SeqCst) < 100, "{workers}: not all have begun");
        }
    }
}
