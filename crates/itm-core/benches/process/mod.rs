//! The part that all benchmarks of `python tests/performance.py` share: one process measures one row and prints one line of
//! JSON.
//!
//! ```text
//! … --list                                       rows, each with its variants
//! … ROW VARIANT --threads N --seconds S          one measurement
//! ```
//!
//! `tests/reference/performance.py` measures in the same way. As in `itm`, freed memory is kept and steps run on a
//! thread of the pool. Without an argument, as under `cargo test --benches`, the program only tries out something tiny.

#![allow(clippy::print_stdout)] // a benchmark prints its result

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

/// One call is one step.
pub(crate) type Step = Box<dyn FnMut() -> Result<(), String>>;

/// The name of a row and the variants that are measured.
pub(crate) type Listed = (String, Vec<&'static str>);

/// A step that takes at least this long has no separate warm-up and is not repeated.
const LONG: Duration = Duration::from_secs(30);

/// Reads the arguments, then measures or lists. `step_of` builds a row in a variant, also a row that is not listed.
pub(crate) fn main(
    rows: &[Listed],
    step_of: impl Fn(&str, &str) -> Result<Step, String> + Send,
    try_out: impl FnOnce() -> Result<(), String>,
) -> ExitCode {
    itm_kernels::memory::keep_freed();
    // `cargo bench` adds the flag `--bench`; `cargo test --benches` needs no timings.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [] => try_out(),
        ["--list"] => {
            rows.iter().for_each(|(name, variants)| println!("{name} {}", variants.join(" ")));
            Ok(())
        }
        [row, variant, "--threads", threads, "--seconds", seconds] => {
            start(threads).and_then(|()| rayon::scope(|_| run((row, variant), seconds, step_of)))
        }
        _ => Err("expected --list or ROW VARIANT --threads N --seconds S".to_owned()),
    };
    outcome.map_or_else(
        |reason| {
            eprintln!("{reason}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|&n| n > 0);
    number.ok_or(format!("expected a number, got {text}"))
}

fn start(threads: &str) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(number(threads)?);
    pool.build_global().map_err(|error| error.to_string())
}

fn run(
    (row, variant): (&str, &str),
    seconds: &str,
    step_of: impl Fn(&str, &str) -> Result<Step, String>,
) -> Result<(), String> {
    let seconds = Duration::from_secs(number(seconds)? as u64);
    let start_bytes = peak_bytes();
    let mut times = measure(&mut step_of(row, variant)?, seconds)?;
    times.sort_by(f64::total_cmp);
    let line = json!({
        "row": row, "variant": variant, "best": times[0], "median": times[times.len() / 2], "calls": times.len(),
        "peak_bytes": peak_bytes(), "start_bytes": start_bytes, "threads": rayon::current_num_threads(),
        "isa": instructions(),
    });
    println!("{line}");
    Ok(())
}

/// Seconds of every call. After a warm-up there are at least three calls, and more until `time` has passed. A long step
/// is called once.
fn measure(step: &mut Step, time: Duration) -> Result<Vec<f64>, String> {
    let start = Instant::now();
    step()?;
    if start.elapsed() >= LONG {
        return Ok(vec![start.elapsed().as_secs_f64()]);
    }
    while start.elapsed() < time.min(Duration::from_millis(500)) {
        step()?;
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || start.elapsed() < time {
        let before = Instant::now();
        step()?;
        times.push(before.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// Largest resident memory of this process; `None` where the system does not report it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The widest instructions of this processor that the kernels have code for.
fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "AVX2 with FMA";
        }
    }
    if cfg!(target_arch = "aarch64") { "NEON" } else { "the baseline" }
}
