//! Encoders, their operations and their matrix products: one row in a process of its own, one line of JSON.
//!
//! ```text
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- --list
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- vit-224 ours --threads 2 --seconds 4
//! ```
//!
//! `cargo xtask performance` runs all of them beside PyTorch's, which `tests/reference/performance.py` measures in the same
//! way. Freed memory is kept and steps run on a thread of the pool, as `itm` does. Variants: `ours`; and what the row cannot do without, by itself:
//! `products`, its matrix products, or `traffic`, a copy of as many bytes as it reads and writes.

#![allow(clippy::print_stdout)] // a benchmark prints its result

mod products;
mod rows;
mod traffic;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use rows::rows;

fn main() -> ExitCode {
    itm_kernels::memory::keep_freed(); // as `itm`
    // `cargo bench` adds a flag of its own; `cargo test --benches` starts it with nothing, and has no use for timings.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [] => Ok(()),
        ["--list"] => {
            for row in rows() {
                println!("{} ours {}", row.name, row.floor.name());
            }
            Ok(())
        }
        [row, variant, "--threads", threads, "--seconds", seconds] => {
            start(threads).and_then(|()| rayon::scope(|_| run(row, variant, seconds))) // as `itm`
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

fn run(name: &str, variant: &str, seconds: &str) -> Result<(), String> {
    let seconds = Duration::from_secs(number(seconds)? as u64);
    let row = rows().into_iter().find(|row| row.name == name).ok_or(format!("no row {name}"))?;
    let start_bytes = peak_bytes();
    let mut step = match variant {
        "ours" => (row.ours)(),
        floor if floor == row.floor.name() => row.floor.step(),
        other => return Err(format!("no variant {other} of {name}")),
    };
    let mut times = measure(&mut step, seconds);
    times.sort_by(f64::total_cmp);
    let line = json!({
        "row": name, "variant": variant, "best": times[0], "median": times[times.len() / 2], "calls": times.len(),
        "peak_bytes": peak_bytes(), "start_bytes": start_bytes, "threads": rayon::current_num_threads(),
        "isa": instructions(),
    });
    println!("{line}");
    Ok(())
}

/// Seconds of every call: at least three, and until `time` has passed; a warm-up before.
fn measure(step: &mut dyn FnMut(), time: Duration) -> Vec<f64> {
    let start = Instant::now();
    step();
    while start.elapsed() < time.min(Duration::from_millis(500)) {
        step();
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || start.elapsed() < time {
        let before = Instant::now();
        step();
        times.push(before.elapsed().as_secs_f64());
    }
    times
}

/// Largest resident memory of this process; `None` where the system does not tell.
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
