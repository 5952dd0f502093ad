//! How long training will take, in words.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::HumanDuration;
use itm_report::format::bytes;

use crate::system;

/// Says once, soon after the start, how long the row and all rows will take.
pub(crate) struct Estimate {
    /// Steps so far, and the start of the clock. The clock stops after the line.
    clock: Mutex<(usize, Option<Instant>)>,
    steps: usize,
    jobs: usize,
}

impl Estimate {
    /// Number of steps before the clock starts.
    const SKIP: usize = 5;
    /// Number of steps to measure. After the time `LONG`, `FEW` steps are enough.
    const MEASURE: usize = 40;
    const LONG: Duration = Duration::from_secs(10);
    const FEW: usize = 3;

    /// For `steps` steps in all, with `jobs` trainings at a time.
    pub(crate) fn new(steps: usize, jobs: usize) -> Self {
        Self { clock: Mutex::default(), steps, jobs }
    }

    /// Counts a step of a row that has `row` steps. Returns the estimate once, when enough steps are measured.
    pub(crate) fn step(&self, row: usize) -> Option<String> {
        let (done, started) = &mut *self.clock.lock().expect("no panic while locked");
        *done += 1;
        if *done == Self::SKIP {
            *started = Some(Instant::now());
            return None;
        }
        let (time, measured) = ((*started)?.elapsed(), *done - Self::SKIP);
        let enough = measured >= Self::MEASURE || measured >= Self::FEW && time >= Self::LONG;
        enough.then(|| {
            *started = None;
            self.line(time.as_secs_f64() / measured as f64, row)
        })
    }

    /// The line if a step ends every `every` seconds over all running trainings.
    fn line(&self, every: f64, row: usize) -> String {
        let memory = system::peak_memory_bytes().map_or("unknown".into(), bytes);
        let step = every * self.jobs as f64;
        let lasting = |seconds: f64| HumanDuration(Duration::from_secs_f64(seconds));
        format!(
            "estimate by the first steps, without validations: {} per step, {} for this row and seed, {} for the table; memory so far {memory}",
            if step < 1.0 { format!("{:.1} ms", 1000.0 * step) } else { format!("{step:.1} s") },
            lasting(step * row as f64),
            lasting(every * self.steps as f64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_comes_once_and_is_of_all_steps() {
        let estimate = Estimate::new(400_000, 1);
        let before = Instant::now();
        let lines: Vec<_> = (0..Estimate::SKIP + 3 * Estimate::MEASURE)
            .filter_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                estimate.step(200_000)
            })
            .collect();
        assert_eq!(lines.len(), 1);
        let ms: f64 =
            lines[0].split_once(": ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
        assert!(ms >= 1.0 && ms < before.elapsed().as_secs_f64() * 1000.0, "{}", lines[0]);
        // 200,000 steps of a millisecond are 200 seconds: rounded to minutes.
        let minutes = |part: &str| -> f64 {
            let before = lines[0].split(part).next().unwrap();
            before.rsplit(' ').next().unwrap().parse().unwrap()
        };
        for (part, steps) in [(" minutes for this row", 2e5), (" minutes for the table", 4e5)] {
            let want = ms / 1000.0 * steps / 60.0;
            let rounding = 0.5 + 0.05 / 1000.0 * steps / 60.0; // of minutes, and of ms to tenths
            assert!(ms > 10.0 || (minutes(part) - want).abs() <= rounding, "{}", lines[0]);
        }
    }

    /// Two trainings at a time end steps twice as often: a row takes the same time, the table half the time.
    #[test]
    fn several_trainings_share_the_table() {
        let line = Estimate::new(1200, 2).line(0.5, 300);
        assert!(
            line.starts_with(
                "estimate by the first steps, without validations: 1.0 s per step, 5 minutes for this row and seed, 10 minutes for the table"
            ),
            "{line}"
        );
    }
}
