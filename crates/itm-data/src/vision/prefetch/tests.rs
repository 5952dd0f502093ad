use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

fn ahead(workers: usize, results: usize) -> Ahead {
    Ahead { workers, results }
}

/// In each group of five jobs, the earlier jobs take longer, so that workers overtake each other.
#[test]
fn results_come_in_order_whatever_the_workers() {
    for workers in [0, 1, 2, 5] {
        for results in [0, 1, 3, 100, usize::MAX] {
            let got = Prefetch::new(0..40u64, ahead(workers, results), |job| {
                thread::sleep(Duration::from_micros(300 * (4 - job % 5)));
                Ok(job)
            });
            let got: Vec<_> = got.map(Result::unwrap).collect();
            assert_eq!(got, (0..40).collect::<Vec<_>>(), "{workers} workers, {results} results");
        }
    }
    assert!(Prefetch::new(Vec::<u64>::new(), ahead(2, 2), Ok).next().is_none());
}

#[test]
fn no_more_is_prepared_than_there_is_room_for() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = begun.clone();
    let mut results = Prefetch::new(0..100, ahead(4, 3), move |job: i32| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(job)
    });
    for taken in 0..5 {
        while begun.load(Ordering::SeqCst) < taken + 3 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20)); // time for one too many
        assert_eq!(begun.load(Ordering::SeqCst), taken + 3);
        assert_eq!(results.next().unwrap().unwrap(), taken as i32);
    }
}

/// The consumer gets the results before the error, then the error, then the end, although later jobs were ready first.
#[test]
fn the_first_error_in_order_ends_it() {
    for workers in [1, 4] {
        let results = Prefetch::new(0..100, ahead(workers, 8), |job| match job {
            5 => {
                thread::sleep(Duration::from_millis(20));
                Err(Error::invalid("five.jpg", "a picture", "none"))
            }
            7 => Err(Error::invalid("seven.jpg", "a picture", "none")),
            _ => Ok(job),
        });
        let results: Vec<_> = results.map(|r| r.map_err(|e| e.to_string())).collect();
        let mut want: Vec<_> = (0..5).map(Ok).collect();
        want.push(Err("five.jpg: expected a picture, got none".to_owned()));
        assert_eq!(results, want);
    }
}

#[test]
fn a_panic_is_an_error_in_one_line() {
    let mut results = Prefetch::new(0..10, ahead(2, 2), |job| {
        assert!(job != 1, "job is\none");
        Ok(job)
    });
    assert_eq!(results.next().unwrap().unwrap(), 0);
    let line = results.next().unwrap().unwrap_err().to_string();
    assert_eq!(line, r"job 1: expected work that ends, got a panic: job is\none");
    assert!(results.next().is_none() && results.next().is_none());
    let jobs = (0..3).inspect(|&job| assert!(job < 2, "no third job"));
    let results: Vec<_> = Prefetch::new(jobs, ahead(2, 2), Ok).collect();
    assert_eq!(results.len(), 3);
    assert!(results[2].as_ref().unwrap_err().to_string().contains("a panic: no third job"));
}

/// Four jobs of 50 ms are in progress and millions wait, for more than a day. Dropping waits for those four and leaves no worker.
#[test]
fn dropping_stops_the_workers() {
    let alive = Arc::new(());
    let held = alive.clone();
    let jobs = 0..10_000_000;
    let mut results = Prefetch::new(jobs, ahead(4, 1000), move |job: u64| {
        let _held = &held;
        thread::sleep(Duration::from_millis(50));
        Ok(job)
    });
    assert_eq!(results.next().unwrap().unwrap(), 0);
    let start = Instant::now();
    drop(results);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(Arc::strong_count(&alive), 1);
}
