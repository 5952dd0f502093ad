//! Similarity of order embeddings: minus the amount by which a text exceeds an image.
//!
//! ```text
//! s(i, t) = − √( Σ_k o_k² ),  o_k = max(0, t_k − i_k)          di = g o / √(Σ o²),  dt = −g o / √(Σ o²)
//! ```
//!
//! A text that exceeds its image nowhere has score 0. Its gradient is 0, because the root has no derivative there.

#![allow(clippy::needless_range_loop)] // lanes and registers are counted

use rayon::prelude::*;

use crate::blocks::{size, zeros};
use crate::dispatch::multiversion;
use crate::lanes::{Lanes, LanesMut, step, sum};
use crate::math::{LANES, mul_add};

/// Scores of `[n, width]` images against `[m, width]` texts, `[n, m]`.
///
/// # Panics
/// If the embeddings are not rows of `width`, or memory cannot hold the scores.
pub fn forward(images: &[f32], texts: &[f32], width: usize) -> Vec<f32> {
    let [n, m] = rows([images, texts], width);
    let mut scores = zeros(size(n, m));
    scores
        .par_chunks_exact_mut(m.max(1))
        .zip(images.par_chunks_exact(width))
        .for_each(|(scores, image)| forward_row(image, texts, scores));
    scores
}

/// Gradients of the images and of the texts from the gradient of the `scores`.
///
/// # Panics
/// If the embeddings are not rows of `width`, or if the scores or the gradient do not have n · m values.
pub fn backward(
    [images, texts]: [&[f32]; 2],
    scores: &[f32],
    grad: &[f32],
    width: usize,
) -> [Vec<f32>; 2] {
    let [n, m] = rows([images, texts], width);
    assert_eq!(scores.len(), n * m, "scores");
    assert_eq!(grad.len(), n * m, "values of the gradient");
    // A score of NaN is not 0, so it reaches the gradient.
    let slope = |s: f32, g: f32| if s == 0.0 { 0.0 } else { -g / s };
    let slopes: Vec<f32> = scores.iter().zip(grad).map(|(&s, &g)| slope(s, g)).collect();
    let turned: Vec<f32> = (0..m).flat_map(|t| slopes[t..].iter().step_by(m)).copied().collect();
    let side = |own: &[f32], others: &[f32], slopes: &[f32], sign: f32| {
        let mut to = vec![0.0; own.len()];
        let slopes = slopes.par_chunks_exact((others.len() / width).max(1));
        let rows = to.par_chunks_exact_mut(width).zip(own.par_chunks_exact(width)).zip(slopes);
        rows.for_each(|((d, own), slopes)| backward_row(own, others, slopes, sign, d));
        to
    };
    [side(images, texts, &slopes, 1.0), side(texts, images, &turned, -1.0)]
}

/// Number of rows of each side.
fn rows(sides: [&[f32]; 2], width: usize) -> [usize; 2] {
    sides.map(|values| {
        let n = values.len();
        assert!(width > 0 && n.is_multiple_of(width), "{n} values in rows of {width}");
        n / width
    })
}

multiversion! {
    fn forward_row[FMA](image: &[f32], texts: &[f32], scores: &mut [f32]) {
        let image = Lanes::<LANES>::new(image, 0.0);
        let width = texts.len() / scores.len().max(1);
        for (text, score) in texts.chunks_exact(width.max(1)).zip(scores) {
            let text = Lanes::<LANES>::new(text, 0.0);
            let mut squares = [0.0; LANES];
            for (i, t) in image.parts().into_iter().zip(text.parts()) {
                for (i, t) in i.iter().zip(t) {
                    step();
                    for k in 0..LANES {
                        let over = t[k] - i[k];
                        let over = if over <= 0.0 { 0.0 } else { over }; // a NaN stays
                        squares[k] = mul_add::<FMA>(over, over, squares[k]);
                    }
                }
            }
            *score = 0.0 - sum(squares).sqrt();
        }
    }
}

multiversion! {
    // `sign` is 1 for an image against texts and −1 for a text against images.
    fn backward_row[FMA](own: &[f32], others: &[f32], slopes: &[f32], sign: f32, d: &mut [f32]) {
        let own = Lanes::<LANES>::new(own, 0.0);
        let width = d.len();
        let mut d = LanesMut::<LANES>::new(d, 0.0);
        for (other, &slope) in others.chunks_exact(width).zip(slopes) {
            let other = Lanes::<LANES>::new(other, 0.0);
            let each = own.parts().into_iter().zip(other.parts()).zip(d.parts());
            for ((own, other), d) in each {
                for ((own, other), d) in own.iter().zip(other).zip(d) {
                    step();
                    let mut to = *d;
                    for k in 0..LANES {
                        let over = sign * (other[k] - own[k]);
                        let over = if over <= 0.0 { 0.0 } else { over };
                        to[k] = mul_add::<FMA>(sign * slope, over, to[k]);
                    }
                    *d = to;
                }
            }
        }
        d.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{
        f32s, golden, on_every_instruction_set, on_every_thread_count, random, worst,
    };

    /// Scores and gradients in double precision, from `tests/reference/kernels.py`.
    #[test]
    fn golden_on_every_instruction_set() {
        let g = golden("kernels");
        let [images, texts, c] =
            ["order_images", "order_texts", "order_c"].map(|name| f32s(&g[name]));
        let width = g["order_sizes"][2] as usize;
        on_every_instruction_set(|| {
            let scores = forward(&images, &texts, width);
            let error = worst(&scores, &g["order_s"]);
            assert!(error < 1e-6, "scores are off by {error:e}");
            let d = backward([&images, &texts], &scores, &c, width);
            for (d, name) in d.iter().zip(["order_d_images", "order_d_texts"]) {
                let error = worst(d, &g[name]);
                assert!(error < 1e-6, "{name} is off by {error:e}");
            }
        });
    }

    /// By hand: the triangle 3-4-5, a text inside its image, and a text on the edge.
    #[test]
    fn a_text_inside_its_image_scores_zero_and_pulls_nothing() {
        on_every_instruction_set(|| {
            let (images, texts) = ([1.0, 1.0], [4.0, 5.0, 0.5, 0.0, 1.0, 1.0]);
            let scores = forward(&images, &texts, 2);
            assert_eq!(scores, [-5.0, 0.0, 0.0]);
            assert!(scores.iter().all(|s| s.is_sign_negative() == (*s != 0.0)), "no −0");
            let [images, texts] = backward([&images, &texts], &scores, &[10.0, 7.0, 7.0], 2);
            assert_eq!(images, [6.0, 8.0]);
            assert_eq!(texts, [-6.0, -8.0, 0.0, 0.0, 0.0, 0.0]);
        });
    }

    #[test]
    fn a_nan_is_not_hidden() {
        on_every_instruction_set(|| {
            let (images, texts) = ([1.0, f32::NAN], [0.0, 2.0]);
            let scores = forward(&images, &texts, 1);
            assert_eq!(scores[..2], [0.0, -1.0]);
            assert!(scores[2..].iter().all(|s| s.is_nan()));
            let [images, texts] = backward([&images, &texts], &scores, &[1.0; 4], 1);
            assert_eq!(images[0], 1.0);
            assert!(images[1].is_nan() && texts.iter().all(|d| d.is_nan()));
        });
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let (n, m, width) = (37, 50, 77);
        let (images, texts) = (random(n * width, 1), random(m * width, 2));
        on_every_thread_count(|| {
            let scores = forward(&images, &texts, width);
            let [a, b] = backward([&images, &texts], &scores, &random(n * m, 3), width);
            [scores, a, b].concat()
        });
    }

    #[test]
    fn no_texts_and_no_images() {
        assert!(forward(&[1.0, 2.0], &[], 2).is_empty());
        let [images, texts] = backward([&[], &[1.0, 2.0]], &[], &[], 2);
        assert_eq!((images.len(), texts), (0, vec![0.0; 2]));
    }

    #[test]
    #[should_panic(expected = "5 values in rows of 2")]
    fn rows_that_are_not_whole_are_refused() {
        forward(&[0.0; 4], &[0.0; 5], 2);
    }
}
