//! Calls that a stranger may make with any number: an error or a documented panic, never a silent answer, an abort or undefined behaviour.

#![allow(clippy::unwrap_used)] // helpers of tests

#[macro_use]
mod table;
mod kernels;
mod layers;
mod measuring;
mod methods;

use std::panic::catch_unwind;

use hubness::{Direction, HeldOutBank, Nnn};
use itm_core::contrastive::{Temperature, info_nce};
use itm_core::significance::Interval;
use itm_core::{Pairs, Relevance, ScoreMatrix, Siblings};
use itm_kernels::Matrix;
use naaf::{CrossScores, NaafConfig, Preset};

pub(crate) const HUGE: usize = 1 << 63;

/// The message of a panic.
fn panics<T>(call: impl FnOnce() -> T + std::panic::UnwindSafe) -> String {
    let Err(panic) = catch_unwind(call) else { panic!("an answer in place of a panic") };
    let text = panic.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).to_owned())
}

#[test]
fn sizes_whose_product_wraps_are_refused() {
    let line = ScoreMatrix::new(HUGE, 2, vec![]).unwrap_err().to_string();
    assert!(line.ends_with("too many values, got 0"), "{line}");
    assert!(panics(|| Matrix::new(&[], HUGE, 2)).contains("matrix in 0 values"));
    let attention = NaafConfig::preset(Preset::Default).attention;
    for (width, counts) in [(HUGE, &[2][..]), (1, &[HUGE, HUGE]), (HUGE, &[1, 1])] {
        let line = CrossScores::new((vec![], counts), (vec![], counts), width, 0.5, &attention);
        let line = line.err().unwrap().to_string();
        assert!(line.starts_with("regions: expected "), "{line}");
    }
}

#[test]
fn numbers_beyond_the_data_are_no_answers() {
    let relevance = Relevance::new(3, vec![vec![1], vec![0, 2]]);
    for (image, text) in [(0, (1 << 32) + 1), (2, 0), (0, 3)] {
        assert!(
            panics(move || { Relevance::new(3, vec![vec![1], vec![0, 2]]).contains(image, text) })
                .starts_with("no image")
        );
    }
    assert!(relevance.contains(0, 1));
    assert!(Pairs::judged(2, vec![vec![usize::MAX]]).is_err());
}

#[test]
fn what_is_not_finite_is_named() {
    assert!(panics(|| Interval::percentile(vec![0.0, f64::NAN])).ends_with("got NaN"));
    assert!(
        panics(|| drop(hubness::rows::unit(2, &[1.0, f32::NAN])))
            .starts_with("row 0, column 1: NaN")
    );
    let [up, down] = [f32::INFINITY, f32::NEG_INFINITY].map(|s| ScoreMatrix::from_rows([[s, 0.0]]));
    let line = ScoreMatrix::average(&[up, down]).unwrap_err().to_string();
    assert_eq!(line, "ensemble, image 0, text 0: expected scores with a sum, got ∞ and −∞");
    let bank = ScoreMatrix::from_rows([[0.1, 0.2], [0.3, 0.4]]);
    let nnn = Nnn { alpha: 1e300, k: 1 }.fit(&HeldOutBank(&bank), Direction::I2t);
    assert_eq!(nnn.unwrap_err().to_string(), "α of NNN: expected at most 1e6, got 1e300");
    for tau in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let device = burn::tensor::Device::flex();
        let message = panics(move || {
            let scores = burn::tensor::Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &device);
            info_nce(scores, &Temperature::Fixed(tau), Siblings::Negatives)
        });
        assert!(message.starts_with("a temperature above 0, got "), "{message}");
    }
}
