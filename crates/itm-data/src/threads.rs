//! How many threads a program takes.

use std::env;
use std::num::NonZero;
use std::thread::available_parallelism;

/// Caps the number of threads that the environment asks for, `RAYON_NUM_THREADS`, at the number of cores. Called once, before any
/// parallel work. Returns a line for the reader if the number was capped.
pub fn cap() -> Option<String> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let (threads, line) = capped(&env::var("RAYON_NUM_THREADS").ok()?, cores)?;
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    built.is_ok().then_some(line)
}

fn capped(asked: &str, cores: usize) -> Option<(usize, String)> {
    let asked = asked.parse::<usize>().ok().filter(|&asked| asked > cores)?;
    Some((cores, format!("note: RAYON_NUM_THREADS = {asked}: {cores} threads, one per core")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100,000 threads took nine minutes to start.
    #[test]
    fn threads_are_capped_at_the_cores() {
        let line = "note: RAYON_NUM_THREADS = 100000: 8 threads, one per core";
        assert_eq!(capped("100000", 8), Some((8, line.into())));
        assert_eq!([capped("8", 8), capped("0", 8), capped("many", 8)], [None, None, None]);
    }
}
