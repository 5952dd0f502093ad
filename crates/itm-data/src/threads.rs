//! How many threads a program takes.

use std::env;
use std::num::NonZero;
use std::thread::available_parallelism;

/// Caps the number of threads that the environment asks for, `RAYON_NUM_THREADS`, at the number of cores. Called once, before any
/// parallel work. Returns a line for the reader if the number was capped.
pub fn cap() -> Option<String> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    // rayon still reads the second, its old name, where the first holds no number.
    let names = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];
    let of = |name| env::var(name).ok().filter(|text| text.parse::<usize>().is_ok());
    let (name, asked) = names.iter().find_map(|name| Some((name, of(name)?)))?;
    let (threads, line) = capped(name, &asked, cores)?;
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    built.is_ok().then_some(line)
}

fn capped(name: &str, asked: &str, cores: usize) -> Option<(usize, String)> {
    let asked = asked.parse::<usize>().ok().filter(|&asked| asked > cores)?;
    Some((cores, format!("note: {name} = {asked}: {cores} threads, one per core")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100,000 threads took nine minutes to start.
    #[test]
    fn threads_are_capped_at_the_cores() {
        let line = "note: RAYON_NUM_THREADS = 100000: 8 threads, one per core";
        let of = |asked| capped("RAYON_NUM_THREADS", asked, 8);
        assert_eq!(of("100000"), Some((8, line.into())));
        assert_eq!([of("8"), of("0"), of("many")], [None, None, None]);
    }
}
