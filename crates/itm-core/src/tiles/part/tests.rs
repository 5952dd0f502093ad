//! Any split into parts and any tree of joins give one pass, bit for bit; what does not fit is refused.

use std::ops::Range;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::tests::{SHAPES, grid, tiles, unit};
use super::super::top::key;
use super::super::{Tiles, Top, TopK};
use super::*;
use crate::Pairs;
use crate::eval::Ranks;

/// Cuts a rectangle at random places, across one side after the other.
fn cut(
    [rows, columns]: [Range<usize>; 2],
    depth: usize,
    rng: &mut ChaCha8Rng,
    all: &mut Vec<[Range<usize>; 2]>,
) {
    let (long, across) = if depth.is_multiple_of(2) { (&rows, false) } else { (&columns, true) };
    if depth == 0 || long.len() < 2 {
        return all.push([rows, columns]);
    }
    let at = rng.random_range(long.start + 1..long.end);
    let (before, after) = (long.start..at, at..long.end);
    let halves = match across {
        false => [[before, columns.clone()], [after, columns]],
        true => [[rows.clone(), before], [rows, after]],
    };
    halves.into_iter().for_each(|half| cut(half, depth - 1, rng, all));
}

struct Case {
    v: Vec<f32>,
    w: Vec<f32>,
    dim: usize,
    rectangles: Vec<[Range<usize>; 2]>,
}

impl Case {
    fn whole(&self) -> (usize, usize) {
        (self.v.len() / self.dim, self.w.len() / self.dim)
    }

    fn tiles(&self) -> Tiles<'_> {
        tiles(&self.v, &self.w, self.dim)
    }

    fn parts(&self, reduction: Reduction<'_>) -> Vec<Part> {
        let d = self.dim;
        let part = |[rows, columns]: &[Range<usize>; 2]| {
            let (v, w) = (
                &self.v[rows.start * d..rows.end * d],
                &self.w[columns.start * d..columns.end * d],
            );
            tiles(v, w, d).part(reduction, (rows.start, columns.start), self.whole()).unwrap()
        };
        self.rectangles.iter().map(part).collect()
    }

    /// All parts through bytes, joined in a random tree.
    fn joined(&self, reduction: Reduction<'_>, rng: &mut ChaCha8Rng) -> Part {
        let mut parts = self.parts(reduction);
        while parts.len() > 1 {
            parts.shuffle(rng);
            let [a, b] = [parts.pop().unwrap(), parts.pop().unwrap()];
            let b = Part::from_bytes("b.part", &b.to_bytes()).unwrap();
            parts.push(a.join(b).unwrap());
        }
        let all = parts.pop().unwrap();
        let read = Part::from_bytes("all.part", &all.to_bytes()).unwrap();
        assert_eq!(read, all);
        read
    }
}

fn bits(top: &TopK, queries: usize) -> Vec<(Vec<u32>, Vec<u32>)> {
    let of = |query| {
        (top.items(query).to_vec(), top.scores(query).iter().map(|s| s.to_bits()).collect())
    };
    (0..queries).map(of).collect()
}

/// Every image has a text or two; the other texts are true of none to two images.
fn judged(n: usize, m: usize) -> Pairs {
    let of_text = |t: usize| {
        if t < n { vec![n - 1 - t] } else { (0..t % 3).map(|k| (t * 5 + k * 11) % n).collect() }
    };
    Pairs::judged(n, (0..m).map(of_text).collect()).unwrap()
}

#[test]
fn any_split_and_any_tree_are_one_pass() {
    // The last is behind the coarse product, in each of its parts too.
    let shapes = SHAPES.into_iter().filter(|&(n, m, _)| n > 0 && m > 0).chain([(700, 900, 64)]);
    for (seed, (n, m, dim)) in shapes.enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        for ties in [false, true] {
            let values =
                |rows, seed| if ties { grid(rows * dim, 1, seed) } else { unit(rows, dim, seed) };
            let mut rectangles = Vec::new();
            cut([0..n, 0..m], 4, &mut rng, &mut rectangles);
            let case = Case { v: values(n, 1), w: values(m, 2), dim, rectangles };
            let all = case.tiles();
            for k in [1, 10, 200] {
                let texts = case.joined(Reduction::TopTexts(k), &mut rng).top().unwrap();
                assert_eq!(
                    bits(&texts, n),
                    bits(&all.run(&Top::new(Side::Images, k)), n),
                    "{n} × {m}, k {k}"
                );
                let images = case.joined(Reduction::TopImages(k), &mut rng).top().unwrap();
                assert_eq!(
                    bits(&images, m),
                    bits(&all.run(&Top::new(Side::Texts, k)), m),
                    "{n} × {m}, k {k}"
                );
            }
            let pairs = judged(n, m);
            let (images, texts) = pairs.list();
            let scores =
                case.joined(Reduction::PairScores(&pairs), &mut rng).pair_scores().unwrap();
            let want = all.pair_scores(images, &texts);
            assert!(scores.iter().map(|s| s.to_bits()).eq(want.iter().map(|s| s.to_bits())));
            if n <= m {
                let ranks = case.joined(Reduction::Ranks(&pairs, &scores), &mut rng);
                let want = Ranks::new(&all.scores(), &pairs).unwrap();
                assert_eq!(ranks.ranks(&pairs, &scores).unwrap(), want, "{n} × {m} × {dim}");
            }
        }
    }
}

/// Four parts of 2 × 3 scores of a whole of 4 × 6.
fn quarters(reduction: Reduction<'_>) -> Vec<Part> {
    let rectangles = [[0..2, 0..3], [0..2, 3..6], [2..4, 0..3], [2..4, 3..6]].to_vec();
    Case { v: unit(4, 5, 1), w: unit(6, 5, 2), dim: 5, rectangles }.parts(reduction)
}

fn all(parts: impl IntoIterator<Item = Part>) -> Result<Part> {
    parts.into_iter().map(Ok).reduce(|a, b| a?.join(b?)).unwrap()
}

fn line<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_part_twice_and_a_part_missing_are_found() {
    let parts = quarters(Reduction::TopTexts(2));
    let twice = all(parts.iter().cloned().chain([parts[3].clone()]));
    assert_eq!(line(twice), "part: expected every score once, got image 2, text 3 twice");
    for (missing, place) in [
        (0, "image 0, text 0"),
        (1, "image 0, text 3"),
        (2, "image 2, text 0"),
        (3, "image 2, text 3"),
    ] {
        let rest = parts.iter().enumerate().filter(|&(at, _)| at != missing);
        let rest = all(rest.map(|(_, part)| part.clone())).unwrap();
        assert_eq!(line(rest.top()), format!("part: expected every score once, got {place} never"));
    }
    assert!(all(parts).unwrap().top().is_ok());
}

#[test]
fn parts_of_other_work_are_refused() {
    let pairs = Pairs::uniform(2, 3);
    let [one, other] = [2, 3].map(|k| quarters(Reduction::TopTexts(k)));
    let refused = |other: Part| line(one[0].clone().join(other));
    let want =
        "part: expected the 2 best texts of every image, got the 3 best texts of every image";
    assert_eq!(refused(other[1].clone()), want);
    let images = quarters(Reduction::TopImages(2)).remove(1);
    assert!(refused(images).ends_with("got the 2 best images of every text"));
    let changed = |change: &dyn Fn(&mut Header)| {
        let mut part = one[1].clone();
        change(&mut part.header);
        refused(part)
    };
    assert_eq!(changed(&|h| h.whole = [4, 7]), "part: expected 4 × 6 scores, got 4 × 7 scores");
    let foreign =
        if one[0].header.kernel == Kernel::Fused { Kernel::Separate } else { Kernel::Fused };
    assert!(changed(&|h| h.kernel = foreign).contains("scores of processors of one kind"));
    // The whole input, where both parts say it: rows of other ranges are not compared.
    let file = |part: &Part, hash: &str| part.clone().with_input("images", hash);
    let read = Part::from_bytes("a.part", &file(&one[1], "b").to_bytes()).unwrap();
    assert_eq!(read.input("images"), Some("b"));
    let want = "part: expected the same images as other parts, got others";
    assert_eq!(line(file(&one[0], "a").join(read.clone())), want);
    assert!(file(&one[0], "b").join(read.clone()).is_ok() && one[0].clone().join(read).is_ok());
    let raw = |part: &Part, is: &str| file(part, is).with_input("setting of --raw", is);
    let want = "part: expected the same setting of --raw as other parts, got others";
    assert_eq!(line(raw(&one[0], "a").join(raw(&one[1], "b"))), want, "before the files");
    let w = unit(6, 5, 2);
    let v = unit(4, 5, 9);
    let part = tiles(&v[..10], &w[15..], 5).part(Reduction::TopTexts(2), (0, 3), (4, 6)).unwrap();
    assert_eq!(refused(part), "part: expected the same images 0 to 1 as other parts, got others");

    let all = tiles(&v, &w, 5);
    let fails = |reduction, origin, whole| line(all.part(reduction, origin, whole));
    assert_eq!(
        fails(Reduction::TopTexts(0), (0, 0), (4, 6)),
        "part: expected lists of at least 1 item, got 0"
    );
    let want = "part: expected a part of 4 × 6 scores, got 4 × 6 from 1, 0";
    assert_eq!(fails(Reduction::TopTexts(1), (1, 0), (4, 6)), want);
    assert!(
        fails(Reduction::TopTexts(1), (usize::MAX, 0), (4, 6)).contains("a part of 4 × 6 scores")
    );
    let want = "part: expected pairs of 4 images and 6 texts, got 2 and 6";
    assert_eq!(fails(Reduction::PairScores(&pairs), (0, 0), (4, 6)), want);
    let pairs = Pairs::new(4, vec![0, 1, 2, 3, 0, 0]).unwrap();
    let want = "part: expected a number for each of 6 true pairs, got 1 scores";
    assert_eq!(fails(Reduction::Ranks(&pairs, &[0.5]), (0, 0), (4, 6)), want);
    let (images, texts) = pairs.list();
    let mut scores = all.pair_scores(images, &texts);
    let ranks = all.part(Reduction::Ranks(&pairs, &scores), (0, 0), (4, 6)).unwrap();
    assert!(ranks.ranks(&pairs, &scores).is_ok());
    assert!(line(ranks.top()).starts_with("part: expected lists of the best items, got counts"));
    scores[0] = 0.0;
    assert_eq!(
        line(ranks.ranks(&pairs, &scores)),
        "part: expected the pairs and scores that it was made with, got others"
    );
    let strange = all.part(Reduction::Ranks(&pairs, &scores), (0, 0), (4, 6)).unwrap();
    assert!(line(strange.ranks(&pairs, &scores)).contains("the score of the true item of"));
}

/// Lists are as long as there are items, whatever is asked: a huge k took memory for k items of every query.
#[test]
fn k_is_a_number_of_items() {
    for (huge, fitting) in [
        (Reduction::TopTexts(usize::MAX), Reduction::TopTexts(6)),
        (Reduction::TopImages(u32::MAX as usize), Reduction::TopImages(4)),
    ] {
        let [huge_parts, parts] = [huge, fitting].map(quarters);
        assert_eq!(huge_parts, parts);
        let part = all(huge_parts).unwrap();
        assert!(part.check_reduction(huge).is_ok() && part.top().is_ok());
    }
}

/// A file may hold any numbers: sums do not wrap, and rows far apart are an error before memory is taken.
#[test]
fn numbers_of_strangers_neither_wrap_nor_abort() {
    let slots = |first, values: &[u64]| Slots { first, width: 1, values: values.to_vec() };
    let counts = PartKind::Standings { pairs: String::new(), scores: String::new() };
    let mut own = slots(0, &[u64::MAX, 1]);
    own.join(&slots(0, &[7, 2]), &counts).unwrap();
    assert_eq!(own.values, [u64::MAX, 3]);
    let far = slots(usize::MAX / 4, &[1]);
    assert!(line(own.join(&far, &counts)).starts_with("part: expected parts whose union"));
    assert_eq!(own.values, [u64::MAX, 3]);
}

#[test]
fn damaged_bytes_are_refused_in_one_line() {
    let part = quarters(Reduction::TopTexts(2)).remove(0);
    let bytes = part.to_bytes();
    let refused = |bytes: &[u8]| line(Part::from_bytes("a.part", bytes));
    for length in 0..bytes.len() {
        assert!(refused(&bytes[..length]).starts_with("a.part: expected "), "{length} bytes");
    }
    let edited = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|some| some == from.as_bytes()).unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        refused(&bytes)
    };
    assert_eq!(
        edited(r#"format\":1"#, r#"format\":2"#),
        "a.part: expected a part of format 1, got 2"
    );
    assert_eq!(
        edited(r#"\"k\":2"#, r#"\"k\":3"#),
        "a.part: expected a state that fits its header, got another"
    );
    assert!(
        edited(r#"end\":2"#, r#"end\":9"#).ends_with("a state that fits its header, got another")
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.part");
    part.write(&path).unwrap();
    assert_eq!(Part::read(&path).unwrap(), part);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A file's state may hold any numbers: none of them may end the process.
#[test]
fn counts_that_cannot_be_are_refused() {
    let (v, w) = (unit(4, 5, 1), unit(6, 5, 2));
    let all = tiles(&v, &w, 5);
    let pairs = Pairs::new(4, vec![0, 1, 2, 3, 0, 0]).unwrap();
    let (images, texts) = pairs.list();
    let scores = all.pair_scores(images, &texts);
    let part = all.part(Reduction::Ranks(&pairs, &scores), (0, 0), (4, 6)).unwrap();
    for (at, count) in [(0, 6), (0, u64::MAX), (1, 1), (1, 1 << 32), (2, 0), (2, u64::MAX)] {
        let mut part = part.clone();
        part.images.values[at] = count;
        let want = "part: expected the score of the true item of image 0, got another";
        assert_eq!(line(part.ranks(&pairs, &scores)), want, "{at}: {count}");
    }
    for key in [0, key(f32::NAN, 0), key(0.5, 6)] {
        let mut part = all.part(Reduction::TopTexts(2), (0, 0), (4, 6)).unwrap();
        part.images.values[3] = key;
        let want = "part: expected lists of 2 items below 6, got another item";
        assert_eq!(line(part.top()), want);
    }
    for bits in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(f32::to_bits) {
        for score in [0, bits.into(), 1 << 32 | u64::from(bits)] {
            let mut part = all.part(Reduction::PairScores(&pairs), (0, 0), (4, 6)).unwrap();
            part.texts.values[3] = score;
            let want = "part: expected the score of every pair, got a part without one";
            assert_eq!(line(part.pair_scores()), want);
        }
    }
}

/// 2¹⁴ lists of 2³² − 1 items are more than any address space. They were filled until the process ended.
#[test]
fn lists_that_no_memory_holds_are_refused() {
    let (n, items) = (1 << 14, u32::MAX as usize);
    let (many, one) = (vec![1.0; n], [1.0]);
    let want = "part: expected lists that fit the memory, got 16384 lists of 4294967295 items";
    let texts = tiles(&many, &one, 1).part(Reduction::TopTexts(items), (0, 0), (n, items));
    assert_eq!(line(texts), want);
    let images = tiles(&one, &many, 1).part(Reduction::TopImages(items), (0, 0), (items, n));
    assert_eq!(line(images), want);
}

/// The lists of one best text, seen by these rectangles.
fn seen_by(covered: Vec<[Range<usize>; 2]>, whole: [usize; 2]) -> Part {
    let mut part = quarters(Reduction::TopTexts(1)).remove(0);
    let end = covered.iter().map(|[rows, _]| rows.end).max().unwrap();
    part.images = Slots { first: 0, width: 1, values: vec![key(0.5, 0); end] };
    (part.header.covered, part.header.whole) = (covered, whole);
    part
}

/// Against a matrix of counts: what rectangles see twice, and the first score that none has seen.
#[test]
fn rectangles_are_compared_as_sets_of_scores() {
    let (n, m) = (5, 6);
    let (mut apart, mut whole) = (0, 0);
    for seed in 0..2000 {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let mut rectangles = vec![];
        match seed % 2 {
            0 => cut([0..n, 0..m], 3, rng, &mut rectangles),
            _ => rectangles.push([0..1, 0..m]),
        }
        rectangles.shuffle(rng);
        rectangles.truncate(rng.random_range(1..=8));
        let mut range = |most: usize| {
            let start = rng.random_range(0..most);
            start..rng.random_range(start + 1..=most)
        };
        let more = (seed % 4) as usize;
        rectangles.extend((0..more).map(|_| [range(n), range(m)]));
        let mut counts = vec![0; n * m];
        for [rows, columns] in &rectangles {
            rows.clone().for_each(|r| columns.clone().for_each(|c| counts[r * m + c] += 1));
        }
        match seen_twice(rectangles.iter()) {
            Some((image, text)) => assert!(counts[image * m + text] > 1, "{rectangles:?}"),
            None => {
                assert!(counts.iter().all(|&count| count < 2), "{rectangles:?}");
                let never = counts.iter().position(|&count| count == 0);
                let got = seen_by(rectangles, [n, m]).check_whole().map_err(|e| e.to_string());
                let want = "part: expected every score once, got";
                let place = |at| format!("{want} image {}, text {} never", at / m, at % m);
                assert_eq!(got.err(), never.map(place));
                (apart, whole) = (apart + 1, whole + usize::from(never.is_none()));
            }
        }
    }
    assert!(apart > 300 && whole > 30 && apart < 1700, "{apart} apart, {whole} whole");
}

/// A header of a stranger: each rectangle was compared with every other.
#[test]
fn many_rectangles_are_read_and_joined() {
    let n = 300_000;
    let rows = |odd: usize| (0..n).skip(odd).step_by(2).map(|i| [i..i + 1, 0..1]).collect();
    let [even, mut odd] = [0, 1].map(|odd| seen_by(rows(odd), [n, 1]));
    let place = "part: expected every score once, got image 1, text 0 never";
    assert_eq!(line(even.check_whole()), place);
    odd.images = Slots { first: 1, width: 1, values: odd.images.values[1..].to_vec() };
    let read = Part::from_bytes("a.part", &odd.to_bytes()).unwrap();
    assert!(even.join(read).unwrap().check_whole().is_ok());
}
