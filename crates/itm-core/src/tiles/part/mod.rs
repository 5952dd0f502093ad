//! Parts of a pass: rectangles of the scores that other processes or machines have seen, joined in any order.
//!
//! ```text
//!          texts ▸            each process       Tiles::part    a rectangle: header and state
//!        ┌──────┬───────┐     any two, any order Part::join     the union, and nothing twice
//! images │ part │ part  │     one process        Part::top, …   the result of one pass, bit for bit
//!   ▾    ├──────┴───────┤
//!        │     part     │     between them       Part::to_bytes, Part::from_bytes
//!        └──────────────┘
//! ```
//!
//! Counts and lists may be cut anywhere. Sums in floating point are cut at multiples of 4096 images and texts, the grid of [`cells`]; beyond one
//! cell they differ from the sums of `Tiles::run` in the last bits.
//!
//! A join refuses parts of other reductions, settings, shapes or kernels, and any score that both have seen: an engine that runs a
//! task twice must not count it twice. It compares rows only of equal ranges; [`Part::with_input`] says what the whole input is,
//! and then a join compares that too. A result refuses holes.

mod bytes;
mod cells;
mod reduce;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Side;
use crate::{Error, Result};
pub use reduce::Reduction;
use slots::Slots;

/// What some rectangles of a whole matrix of scores give.
///
/// ```
/// use itm_core::tiles::{Embeddings, Reduction::TopTexts, Tiles};
///
/// let (v, w) = ([1.0, 0.0, 0.0, 1.0], [0.8, 0.6, 1.0, 0.0, 0.6, 0.8]);
/// let images = Embeddings::new("images", 2, 2, &v)?;
/// let texts = |rows: usize, values| Embeddings::new("texts", rows, 2, values);
/// let whole = (2, 3);
/// // Two processes, each with all images and some of the texts.
/// let first = Tiles::new(images, texts(1, &w[..2])?)?.part(TopTexts(2), (0, 0), whole)?;
/// let second = Tiles::new(images, texts(2, &w[2..])?)?.part(TopTexts(2), (0, 1), whole)?;
/// let top = second.join(first)?.top()?;
/// assert_eq!((top.items(0), top.scores(1)), (&[1, 0][..], &[0.8, 0.6][..]));
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    header: Header,
    images: Slots,
    texts: Slots,
}

/// What parts must share to be joined, and what they have seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    kind: PartKind,
    whole: [usize; 2],
    kernel: Kernel,
    covered: Vec<[Range<usize>; 2]>,
    inputs: BTreeMap<String, String>, // SHA-256 of rows, by side and range; what `with_input` says of the whole
}

/// A reduction with its settings; pairs and scores by their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum PartKind {
    TopTexts { k: usize },
    TopImages { k: usize },
    PairScores { pairs: String, count: usize },
    Standings { pairs: String, scores: String },
    ExpSums { of: Side, beta: u64 }, // the bits of β
    Moments { of: Side },
}

/// How a processor adds a product: the bits of a score depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kernel {
    /// One rounding for product and sum.
    Fused,
    /// Two.
    Separate,
}

/// The version of the header and of the state.
const FORMAT: u32 = 1;

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TopTexts { k } => write!(f, "the {k} best texts of every image"),
            Self::TopImages { k } => write!(f, "the {k} best images of every text"),
            Self::PairScores { pairs, .. } => write!(f, "the scores of the pairs {pairs:.8}"),
            Self::Standings { pairs, scores } => {
                write!(f, "counts for ranks of the pairs {pairs:.8} with the scores {scores:.8}")
            }
            Self::ExpSums { of, beta } => {
                let (one, beta) = (of.of("image", "text"), f64::from_bits(*beta));
                write!(f, "log Σ exp({beta}·s) of every {one}")
            }
            Self::Moments { of } => {
                write!(f, "mean and deviation of every {}", of.of("image", "text"))
            }
        }
    }
}

fn invalid<T>(expected: impl fmt::Display, got: impl fmt::Display) -> Result<T> {
    Err(Error::invalid("part", expected, got))
}

fn unless(holds: bool, expected: impl fmt::Display, got: impl fmt::Display) -> Result<()> {
    Error::unless(holds, "part", expected, got)
}

impl Part {
    /// The union of two parts. Order does not matter.
    ///
    /// # Errors
    /// If the union does not fit the memory, or the parts differ in reduction, settings, shape of the whole or kernel, were made from other rows of the same range or
    /// other whole inputs, or have both seen a score.
    pub fn join(mut self, other: Self) -> Result<Self> {
        let (own, new) = (&self.header, &other.header);
        unless(own.kind == new.kind, &own.kind, &new.kind)?;
        let shape = |[n, m]: [usize; 2]| format!("{n} × {m} scores");
        unless(own.whole == new.whole, shape(own.whole), shape(new.whole))?;
        let expected = format_args!("scores of processors of one kind, {:?}", own.kernel);
        unless(own.kernel == new.kernel, expected, format_args!("{:?}", new.kernel))?;
        if let Some((image, text)) = seen_twice(own.covered.iter().chain(&new.covered)) {
            return invalid("every score once", format!("image {image}, text {text} twice"));
        }
        let differs = |(rows, hash): &(&String, &String)| {
            own.inputs.get(*rows).is_some_and(|own| own != *hash)
        };
        // With another setting the same files have another hash, so the setting is named first.
        let different = new.inputs.iter().filter(differs);
        if let Some((rows, _)) = different.max_by_key(|(what, _)| what.starts_with("setting")) {
            return invalid(format!("the same {rows} as other parts"), "others");
        }
        self.header.covered.extend(other.header.covered);
        self.header.covered.sort_by_key(|[rows, columns]| (rows.start, columns.start));
        self.header.inputs.extend(other.header.inputs);
        self.images.join(&other.images, &self.header.kind)?;
        self.texts.join(&other.texts, &self.header.kind)?;
        Ok(self)
    }

    /// Says what the whole input is: `what` names it (`images`), and `is` is its hash or setting. A join refuses a part that says
    /// something else of the same name.
    pub fn with_input(mut self, what: &str, is: impl Into<String>) -> Self {
        self.header.inputs.insert(what.into(), is.into());
        self
    }

    /// What [`with_input`](Self::with_input) said.
    pub fn input(&self, what: &str) -> Option<&str> {
        self.header.inputs.get(what).map(String::as_str)
    }

    /// The numbers of images and texts of the whole.
    pub fn whole(&self) -> [usize; 2] {
        self.header.whole
    }

    /// Whether the part counts for [ranks](Self::ranks).
    pub fn has_ranks(&self) -> bool {
        matches!(self.header.kind, PartKind::Standings { .. })
    }

    /// Images and texts of the rectangles that were seen.
    pub fn covered(&self) -> &[[Range<usize>; 2]] {
        &self.header.covered
    }

    /// # Errors
    /// Names the first score that no part has seen.
    fn check_whole(&self) -> Result<()> {
        let Header { covered, whole: [n, m], .. } = &self.header;
        // How many more texts are seen of an image than of the image before; rectangles do not overlap.
        let mut changes = BTreeMap::from([(0, 0)]);
        for [rows, columns] in covered {
            *changes.entry(rows.start).or_default() += columns.len() as i64;
            *changes.entry(rows.end).or_default() -= columns.len() as i64;
        }
        let mut seen = 0;
        let lacks = |&(image, change): &(usize, i64)| {
            seen += change;
            image < *n && seen < *m as i64
        };
        let Some((image, _)) = changes.into_iter().find(lacks) else { return Ok(()) };
        let of_image = covered.iter().filter(|[rows, _]| rows.contains(&image));
        let mut of_image: Vec<_> = of_image.map(|[_, columns]| columns).collect();
        of_image.sort_by_key(|columns| columns.start);
        let next = |text, columns: &Range<usize>| {
            if columns.start == text { columns.end } else { text }
        };
        let text = of_image.into_iter().fold(0, next);
        invalid("every score once", format!("image {image}, text {text} never"))
    }
}

/// A score that two rectangles have: its image and its text.
fn seen_twice<'a>(
    rectangles: impl Iterator<Item = &'a [Range<usize>; 2]>,
) -> Option<(usize, usize)> {
    // At an image, rectangles end before others begin.
    let sides = |[rows, columns]: &'a [Range<usize>; 2]| {
        [(rows.end, false, columns), (rows.start, true, columns)]
    };
    let mut sides: Vec<_> = rectangles.flat_map(sides).collect();
    sides.sort_by_key(|&(image, begins, columns)| (image, begins, columns.start));
    // The texts that rectangles have of the image, end by start.
    let mut open = BTreeMap::new();
    for (image, begins, &Range { start, end }) in sides {
        if !begins {
            open.remove(&start);
            continue;
        }
        if let Some((&first, &last)) = open.range(..end).next_back()
            && last > start
        {
            return Some((image, start.max(first)));
        }
        open.insert(start, end);
    }
    None
}
