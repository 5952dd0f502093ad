//! The targets of `fuzz` without a fuzzer: each reads the files of its corpus, and copies of them that are changed, cut and joined.
//! `cargo xtask fuzz` runs them for longer, and follows their branches. A failure names the input's number, which makes the same input again.
#![allow(unused_attributes, unused_imports, reason = "`no_main` and the import are for libFuzzer")]
#![allow(clippy::unwrap_used)] // helpers of tests

use std::panic::catch_unwind;
use std::path::Path;

extern crate self as libfuzzer_sys; // which the targets import

/// A target as a function.
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        pub(crate) fn read($bytes: &[u8]) $body
    };
}
pub(crate) use fuzz_target;

macro_rules! targets {
    ($($name:ident)*) => {
        #[path = "../../fuzz/fuzz_targets"]
        mod targets {
            $(pub(crate) mod $name;)*
        }

        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), targets::$name::read)),*];
    };
}

targets! {
    archive database embeddings folder judgements npy pairs part picture qrels records regions run safetensors sentence sidecar tokenizer
    training vectors weights
}

/// Inputs of each target.
const INPUTS: u64 = 100;

#[test]
fn no_target_panics() {
    for &(name, read) in TARGETS {
        let corpus = corpus(name);
        for number in 0..INPUTS {
            let input = changed(&corpus, number);
            assert!(catch_unwind(|| read(&input)).is_ok(), "{name}, input {number}: {input:?}");
        }
    }
}

/// A target without this line in `targets!` would be built by nobody.
#[test]
fn every_target_is_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    assert_eq!(found, TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

/// The committed inputs of a target, by name.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has no corpus");
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Numbers at which sizes wrap, and signs of the formats.
const ODD: [&[u8]; 14] = [
    &[0; 8],
    &[0xff; 8],
    &[0, 0, 0, 0x80],
    &[0xff, 0xff, 0xff, 0x7f],
    b"18446744073709551615",
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"\"\\u0000\"",
    b"[[[[",
    b"{\"a\":",
    b"\t\r\n",
    "\u{feff}\u{202e}é".as_bytes(),
];

/// An input: the corpus itself first, then its files with up to eight changes.
fn changed(corpus: &[Vec<u8>], number: u64) -> Vec<u8> {
    if let Some(whole) = corpus.get(number as usize) {
        return whole.clone();
    }
    let mut state = number;
    // SplitMix64.
    let mut below = move |limit: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % limit.max(1) as u64) as usize
    };
    let mut bytes = corpus[below(corpus.len())].clone();
    for _ in 0..=below(8) {
        let at = below(bytes.len() + 1);
        let end = at + below((bytes.len() - at).min(64) + 1);
        match below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                bytes.splice(at..at, ODD[below(ODD.len())].iter().copied());
            }
            4 => {
                let odd = ODD[below(ODD.len())];
                let end = bytes.len().min(at + odd.len());
                bytes.splice(at..end, odd.iter().copied());
            }
            5 => {
                let other = &corpus[below(corpus.len())];
                let from = below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend(&other[from..]);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = if below(2) == 0 { below(256) as u8 } else { *byte ^ (1 << below(8)) };
                }
            }
        }
        bytes.truncate(1 << 16);
    }
    bytes
}
