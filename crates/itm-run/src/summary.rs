//! What is printed before training starts: what was resolved, and what it will take.

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::reproduce::Planned;
use crate::system;

/// Data, backend, rows and seeds, how many steps that is, what it takes in memory, and where it goes.
pub(crate) fn resolved(job: &Planned, out: Option<&Path>) -> String {
    let mut text = String::new();
    if let Some(line) = &job.source.substitution {
        _ = writeln!(text, "{line}");
    }
    let data = &job.source.dataset;
    let seeds: Vec<_> = job.seeds.iter().map(u64::to_string).collect();
    let size = |part: &itm_core::data::Part| {
        format!("{} images, {} captions", part.pairs.images(), part.pairs.texts())
    };
    for (key, value) in [
        ("target", format!("{} ({} of {})", job.asked.name, job.shown, job.asked.target.paper)),
        ("config", job.used.path.display().to_string()),
        ("data", format!("{} (sha256 {})", job.source.title, &data.sha256[..12])),
        ("train", size(&data.train)),
        ("val", size(&data.val)),
        ("test", format!("{}, protocol {}", size(&data.test), job.protocol().name())),
        ("backend", format!("{}, {} threads", job.backend, system::threads())),
        ("jobs", format!("{} at a time", job.jobs)),
        ("rows", job.view.rows.join(" | ")),
        ("seeds", seeds.join(" ")),
        ("steps", format!("{} in all", job.steps)),
        ("memory", memory(job)),
        ("out", out.map_or("nothing: this is the plan".into(), |out| out.display().to_string())),
    ] {
        _ = writeln!(text, "{key:>8}  {value}");
    }
    text
}

/// A line for each plan that is another than the row's before it.
fn memory(job: &Planned) -> String {
    let mut lines = vec![job.limit.to_string()];
    let mut last = None;
    for (row, plan) in job.view.rows.iter().zip(&job.memory) {
        if last.replace(plan) != Some(plan) {
            let times =
                if job.jobs > 1 { format!(" for {} at a time", job.jobs) } else { String::new() };
            lines.push(format!("{row}: at most {}{times}; {plan}", bytes(plan.peak_of(job.jobs))));
        }
    }
    lines.join("\n          ")
}

/// Tells once, soon after the start, how long the row and all rows will take.
pub(crate) struct Estimate {
    measured: Mutex<Measured>,
    steps: usize,
    jobs: usize,
}

#[derive(Debug, Default)]
struct Measured {
    started: Option<Instant>,
    done: usize,
    told: bool,
}

impl Estimate {
    /// Steps before the clock starts, and those it then measures: fewer where they take long.
    const SKIP: usize = 5;
    const MEASURE: usize = 40;
    const LONG: Duration = Duration::from_secs(10);
    const FEW: usize = 3;

    /// Of so many steps in all, by so many trainings at a time.
    pub(crate) fn new(steps: usize, jobs: usize) -> Self {
        Self { measured: Mutex::default(), steps, jobs }
    }

    /// Counts a step of a row that has so many; the estimate, once enough steps are measured.
    pub(crate) fn step(&self, row: usize) -> Option<String> {
        let mut at = self.measured.lock().expect("nobody panics with it");
        at.done += 1;
        if at.done == Self::SKIP {
            at.started = Some(Instant::now());
            return None;
        }
        let (time, measured) = (at.started?.elapsed(), at.done - Self::SKIP);
        let enough = measured >= Self::MEASURE || measured >= Self::FEW && time >= Self::LONG;
        (enough && !std::mem::replace(&mut at.told, true))
            .then(|| self.line(time.as_secs_f64() / measured as f64, row))
    }

    /// The line for a step every so many seconds, over all trainings that run.
    fn line(&self, every: f64, row: usize) -> String {
        let memory = system::peak_memory_bytes().map_or("unknown".into(), bytes);
        let step = every * self.jobs as f64;
        format!(
            "estimate: {} a step, {} for this row and seed, {} for the table; memory so far {memory}",
            if step < 1.0 { format!("{:.1} ms", 1000.0 * step) } else { format!("{step:.1} s") },
            duration(step * row as f64),
            duration(every * self.steps as f64)
        )
    }
}

/// A length of time as a person says it.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{:.1} min", s as f64 / 60.0),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

/// A number of bytes as a person says it.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 / f64::from(1 << 20) {
        mib if mib < 1.0 => format!("{:.0} KiB", 1024.0 * mib),
        mib if mib < 1024.0 => format!("{mib:.0} MiB"),
        mib => format!("{:.1} GiB", mib / 1024.0),
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
        let ms: f64 = lines[0]["estimate: ".len()..].split(' ').next().unwrap().parse().unwrap();
        assert!(ms >= 1.0 && ms < before.elapsed().as_secs_f64() * 1000.0, "{}", lines[0]);
        let of = |part: &str| lines[0].contains(part);
        assert!(of(" min for this row") && of(" min for the table") || ms > 15.0, "{}", lines[0]);
        let half = |part: &str| -> f64 {
            let before = lines[0].split(part).next().unwrap().trim_end_matches(" min");
            before.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let ratio = half(" for this row") / half(" for the table");
        assert!((ratio - 0.5).abs() < 0.04 || ms > 15.0, "{}", lines[0]);
    }

    /// Steps come twice as often from two trainings at a time: one takes as long, the table half.
    #[test]
    fn several_trainings_share_the_table() {
        let line = Estimate::new(1200, 2).line(0.5, 300);
        assert!(
            line.starts_with(
                "estimate: 1.0 s a step, 5.0 min for this row and seed, 10.0 min for the table"
            ),
            "{line}"
        );
    }

    #[test]
    fn amounts_read_well() {
        assert_eq!([5.4, 90.0, 150.0, 7200.0].map(duration), ["5 s", "90 s", "2.5 min", "2.0 h"]);
        assert_eq!([5 << 10, 1 << 20, 3 << 29].map(bytes), ["5 KiB", "1 MiB", "1.5 GiB"]);
    }
}
