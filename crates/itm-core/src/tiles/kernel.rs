//! The product of one tile: all `unsafe` code of the engine.
#![allow(unsafe_code)] // `gemm` takes pointers

use std::ops::Range;
use std::sync::OnceLock;

use gemm::Parallelism;

use super::{Embeddings, widest};
use crate::{Error, Result};

/// Tiles begin, and panels are padded, at multiples of this: a multiple of every kernel's micro-panel.
pub(super) const ALIGN: usize = 64;

/// Above this inner dimension `gemm` cuts the sum, at a place that depends on the caches and the shape.
const DEPTH: usize = 512;

/// Texts laid out for the kernel: `[dim, width]`, the texts contiguous, padded with zeros.
#[derive(Debug, Default)]
pub(super) struct Panel {
    dim: usize,
    width: usize,
    values: Vec<f32>,
}

impl Panel {
    /// Takes in some texts.
    pub(super) fn pack(&mut self, texts: &Embeddings<'_>, range: Range<usize>) {
        self.pack_rows(texts.block(range.clone()), range.len(), texts.dim());
    }

    /// Takes in `texts` contiguous rows.
    pub(super) fn pack_rows(&mut self, rows: &[f32], texts: usize, dim: usize) {
        const BLOCK: usize = 16; // both sides of the transposition stay in the first-level cache
        assert_eq!(rows.len(), texts * dim, "{texts} rows of {dim} values");
        let width = texts.next_multiple_of(ALIGN);
        self.values.clear();
        self.values.resize(dim * width, 0.0);
        (self.dim, self.width) = (dim, width);
        for j0 in (0..texts).step_by(BLOCK) {
            for k0 in (0..dim).step_by(BLOCK) {
                for j in j0..(j0 + BLOCK).min(texts) {
                    for k in k0..(k0 + BLOCK).min(dim) {
                        self.values[k * width + j] = rows[j * dim + k];
                    }
                }
            }
        }
    }

    /// The values of a text.
    pub(super) fn text(&self, text: usize) -> Vec<f32> {
        self.values.iter().skip(text).step_by(self.width.max(1)).copied().collect()
    }

    /// Distance between two rows of the tile that [`product`] writes.
    pub(super) fn width(&self) -> usize {
        self.width
    }
}

/// Scores of `images` (contiguous rows) against a panel of texts.
///
/// ```text
/// out[i, j] = Σₖ images[i, k] · texts[j, k]        out: [images, width]
/// ```
///
/// **One score has one value** in every tile. `gemm`'s micro-kernels give every element its own accumulator. It starts
/// at zero and adds the terms in ascending `k`, each with one multiply-add (fused where the machine can fuse). The place
/// of an element in a micro-panel does not matter.
///
/// Two things would matter: where the sum over `k` is cut, and the special kernels for single vectors and small
/// products. So this function makes the cuts itself: above [`DEPTH`], into equal parts that depend only on `dim`. And
/// `gemm` never chooses a special kernel: panels are padded to [`ALIGN`] texts with `k` outermost, and a single image is
/// computed twice. (For `dim ≤ 2` `gemm` takes one plain loop for every shape.)
pub(super) fn product(images: &[f32], panel: &Panel, out: &mut Vec<f32>) {
    let Panel { dim, width, .. } = *panel;
    let n = images.len() / dim;
    assert_eq!(images.len(), n * dim, "images of {dim} values");
    // A single image: stride 0 shows it to `gemm` twice, and the tile has room for both.
    let (rows, stride) = if n == 1 { (2, 0) } else { (n, dim) };
    out.resize(out.len().max(rows * width), 0.0);
    if n == 0 || width == 0 {
        return;
    }
    let fused = is_fused();
    if fused != gemm_fuses() {
        return match fused {
            true => plain::<true>(images, panel, out),
            false => plain::<false>(images, panel, out),
        };
    }
    let parts = dim.div_ceil(DEPTH);
    for part in 0..parts {
        let (start, end) = (part * dim / parts, (part + 1) * dim / parts);
        assert!(start * width < panel.values.len() && rows * width <= out.len());
        // SAFETY: for j < width, k < end − start, i < rows, `gemm` touches three slices.
        // - `panel.values` at `(start + k) · width + j`, at most `end · width − 1`. This is below `dim · width`, the length
        //   of the slice (`pack_rows` resizes it to that; the field is private to this module).
        // - `images` at `i · stride + start + k`, at most `(rows − 1) · stride + end − 1`. This is below `n · dim`, the
        //   length of the slice (asserted; for n = 1 the stride is 0).
        // - `out` at `i · width + j`, at most `rows · width − 1`. This is within the slice (asserted).
        // `out` is borrowed mutably, so it overlaps neither input. Every element of `out` is initialised, and `gemm` reads
        // it only in parts after the first.
        unsafe {
            gemm::gemm(
                width,
                rows,
                end - start,
                out.as_mut_ptr(),
                width as isize,
                1,
                part > 0,
                panel.values.as_ptr().add(start * width),
                width as isize,
                1,
                images.as_ptr().add(start),
                stride as isize,
                1,
                1.0, // alpha: parts after the first add to the values of `out`
                1.0,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

/// [`product`] by loops, with the roundings that `gemm` has on other processors.
fn plain<const FUSED: bool>(images: &[f32], panel: &Panel, out: &mut [f32]) {
    let Panel { dim, width, .. } = *panel;
    let parts = dim.div_ceil(DEPTH);
    let mut sums = vec![0.0; width];
    widest(
        #[inline(always)]
        || {
            for (image, out) in images.chunks(dim).zip(out.chunks_mut(width)) {
                for part in 0..parts {
                    sums.fill(0.0);
                    let range = part * dim / parts..(part + 1) * dim / parts;
                    let columns = panel.values[range.start * width..].chunks(width);
                    for (v, texts) in image[range].iter().zip(columns) {
                        for (sum, w) in sums.iter_mut().zip(texts) {
                            *sum = if FUSED { v.mul_add(*w, *sum) } else { *sum + v * w };
                        }
                    }
                    for (out, sum) in out.iter_mut().zip(&sums) {
                        *out = if part == 0 { *sum } else { *out + sum };
                    }
                }
            }
        },
    );
}

/// The most roundings that a term of a score passes through: the additions within its part, one addition per part, and
/// the rounding of the product where it is not fused.
pub(super) fn roundings(dim: usize) -> usize {
    let parts = dim.div_ceil(DEPTH);
    dim.div_ceil(parts) + parts + 1
}

/// Scores of `N` pairs of an image and a text, side by side. Rows of at least 3 values give the bits of [`product`].
///
/// # Panics
/// If the rows differ in length.
pub(super) fn chains<const N: usize>(pairs: [[&[f32]; 2]; N]) -> [f32; N] {
    let dim = pairs[0][0].len();
    let parts = dim.div_ceil(DEPTH);
    let mut scores = [0.0; N];
    for part in 0..parts {
        let range = part * dim / parts..(part + 1) * dim / parts;
        let pairs = pairs.map(|[v, w]| {
            assert_eq!([v.len(), w.len()], [dim; 2], "rows of one length");
            [&v[range.clone()], &w[range.clone()]]
        });
        let sums = widest(
            #[inline(always)]
            || if is_fused() { sums::<N, true>(pairs) } else { sums::<N, false>(pairs) },
        );
        scores.iter_mut().zip(sums).for_each(|(score, sum)| *score += sum);
    }
    scores
}

/// The variable that forces one or two roundings: for parts of processors of different kinds. What a processor does not have is slow.
const FUSED: &str = "ITM_FUSED";

/// What [`FUSED`] forces: 1 for one rounding of product and sum, 0 for two.
///
/// # Errors
/// If the variable is anything else.
pub(super) fn forced() -> Result<Option<bool>> {
    static FORCED: OnceLock<Option<String>> = OnceLock::new();
    let text = FORCED.get_or_init(|| {
        let value = std::env::var_os(FUSED).filter(|value| !value.is_empty());
        value.map(|value| value.to_string_lossy().into_owned())
    });
    match text.as_deref() {
        None => Ok(None),
        Some("0") => Ok(Some(false)),
        Some("1") => Ok(Some(true)),
        Some(other) => Err(Error::invalid(FUSED, "0 or 1", other)),
    }
}

/// Whether scores have one rounding for product and sum.
pub(super) fn is_fused() -> bool {
    forced().ok().flatten().unwrap_or_else(gemm_fuses)
}

/// Whether `gemm` fuses multiplication and addition on this processor.
fn gemm_fuses() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// One sum per pair, over the terms in ascending order.
#[inline(always)]
fn sums<const N: usize, const FUSED: bool>(pairs: [[&[f32]; 2]; N]) -> [f32; N] {
    let length = pairs[0][0].len();
    let pairs = pairs.map(|[v, w]| [&v[..length], &w[..length]]);
    let mut sums = [0.0f32; N];
    for k in 0..length {
        for (sum, [v, w]) in sums.iter_mut().zip(&pairs) {
            *sum = if FUSED { v[k].mul_add(w[k], *sum) } else { *sum + v[k] * w[k] };
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// With this processor's roundings the loops give the bits of `gemm`; with the others they give other bits, of the same numbers.
    #[test]
    fn loops_are_the_product() {
        for (n, m, dim) in [(1, 1, 3), (5, 70, 64), (64, 64, 513), (3, 65, 1100)] {
            let (images, texts) = (values(n * dim, 1), values(m * dim, 2));
            let (mut panel, mut want) = (Panel::default(), Vec::new());
            panel.pack_rows(&texts, m, dim);
            product(&images, &panel, &mut want);
            let (mut fused, mut apart) = (vec![0.0; n * panel.width], vec![0.0; n * panel.width]);
            plain::<true>(&images, &panel, &mut fused);
            plain::<false>(&images, &panel, &mut apart);
            let own = if gemm_fuses() { &fused } else { &apart };
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(own), bits(&want[..own.len()]), "{n} × {m} × {dim}");
            assert!(fused.iter().zip(&apart).all(|(a, b)| (a - b).abs() < 1e-4 * dim as f32));
            assert!(dim < 64 || fused != apart);
        }
    }

    fn values(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    fn tile(images: &[f32], texts: &[f32], dim: usize) -> Vec<Vec<f32>> {
        let (mut panel, mut out) = (Panel::default(), Vec::new());
        let m = texts.len() / dim;
        panel.pack_rows(texts, m, dim);
        product(images, &panel, &mut out);
        out.chunks(panel.width()).take(images.len() / dim).map(|row| row[..m].to_vec()).collect()
    }

    /// The engine rests on this: one element has the same bits in every tile that holds it.
    #[test]
    fn a_score_has_the_same_bits_in_every_tile() {
        for dim in [1, 2, 3, 5, 31, 300, 511, 512, 513, 1000, 1025, 2048] {
            let (n, m) = (150, 200);
            let (images, texts) = (values(n * dim, 1), values(m * dim, 2));
            let whole = tile(&images, &texts, dim);
            for (rows, cols) in [(1, 1), (2, 3), (7, 64), (48, 65), (49, 128), (97, 16), (1, 200)] {
                for (i0, j0) in [(0, 0), (13, 57), (n - rows, m - cols)] {
                    let j0 = j0.min(m - cols);
                    let a = &images[i0 * dim..(i0 + rows) * dim];
                    let b = &texts[j0 * dim..(j0 + cols) * dim];
                    for (i, row) in tile(a, b, dim).iter().enumerate() {
                        assert_eq!(row, &whole[i0 + i][j0..j0 + cols], "{rows} × {cols} × {dim}");
                    }
                }
            }
        }
    }

    /// Products of small integers are exact, so a fault in layout, padding, cuts or strides shows at once. A write past
    /// the tile shows too, because the buffer is longer than the tile and filled with NaN.
    #[test]
    fn small_integers_are_exact_and_nothing_else_is_written() {
        for (n, m, dim) in [(1, 1, 1), (1, 5, 2), (3, 7, 3), (1, 70, 600), (65, 130, 1030)] {
            let integers = |k: usize, seed| -> Vec<f32> {
                values(k, seed).into_iter().map(|v| (v * 4.0).round()).collect()
            };
            let (images, texts) = (integers(n * dim, 3), integers(m * dim, 4));
            let mut panel = Panel::default();
            panel.pack_rows(&texts, m, dim);
            let rows = n.max(2);
            let mut out = vec![f32::NAN; rows * panel.width() + 100];
            product(&images, &panel, &mut out);
            for i in 0..n {
                for j in 0..panel.width() {
                    let term = |k| images[i * dim + k] * texts[j * dim + k];
                    let want: f32 = if j < m { (0..dim).map(term).sum() } else { 0.0 };
                    assert_eq!(out[i * panel.width() + j], want, "{n} × {m} × {dim} at {i}, {j}");
                }
            }
            assert!(out[rows * panel.width()..].iter().all(|v| v.is_nan()));
        }
    }

    /// Single pairs against whole tiles, for one part and for several.
    #[test]
    fn chains_have_the_bits_of_the_product() {
        for dim in [3, 5, 31, 64, 300, 511, 512, 513, 768, 1000, 1025, 2048] {
            let (n, m) = (9, 8);
            let (images, texts) = (values(n * dim, 6), values(m * dim, 7));
            let whole = tile(&images, &texts, dim);
            for (i, v) in images.chunks(dim).enumerate() {
                let pairs = std::array::from_fn(|j| [v, &texts[j * dim..(j + 1) * dim]]);
                let got = chains::<8>(pairs);
                assert_eq!(got[..], whole[i][..], "image {i}, {dim} values");
            }
        }
    }

    #[test]
    #[should_panic(expected = "images of 4 values")]
    fn images_of_another_width_are_refused() {
        let mut panel = Panel::default();
        panel.pack_rows(&[0.0; 8], 2, 4);
        product(&[0.0; 6], &panel, &mut Vec::new());
    }

    #[test]
    fn nothing_times_nothing() {
        let mut panel = Panel::default();
        panel.pack_rows(&[], 0, 4);
        product(&[0.0; 8], &panel, &mut Vec::new());
        panel.pack_rows(&[0.0; 4], 1, 4);
        product(&[], &panel, &mut Vec::new());
    }

    #[test]
    fn every_instruction_set_gives_one_result() {
        let data = values(1000, 5);
        let sum = widest(
            #[inline(always)]
            || data.iter().fold(0.0f32, |sum, &v| sum * 0.5 + v),
        );
        assert_eq!(sum, data.iter().fold(0.0, |sum, &v| sum * 0.5 + v));
    }
}
