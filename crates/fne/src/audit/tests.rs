use itm_core::Relevance;
use itm_core::audit::{Candidates, Draws, PairIds};
use itm_core::tiles::Side;

use super::*;
use crate::statistics::Moments;

/// Caption 10 belongs to image 1, caption 20 to image 2, and so on. Caption 20 is true of image 1 too.
fn truth() -> Relevance {
    Relevance::new(41, vec![vec![], vec![10, 20], vec![20], vec![30], vec![40]])
}

/// One anchor per direction: image 1 or its caption. The candidates are of images 1 to 4; the second is drawn.
fn negatives(side: Side) -> NegativeSet {
    let pair = |image| PairIds { image, caption: 10 * image };
    NegativeSet {
        side,
        anchors: vec![pair(1)],
        candidates: (1..=4).map(|image| Some(pair(image))).collect(),
        scores: vec![0.8, 0.7, 0.65, 0.5],
        positive: vec![0.8],
        excluded: vec![true, false, false, false],
        weights: vec![0.0, 1.0, 0.0, 0.0],
        margin: 0.2,
        others: vec![],
        log_ratios: vec![],
    }
}

/// μ⁺ = 0.8, μ⁻ = 0.2; both σ are 0.1.
fn observed(count: u64) -> [NegativeSet; 2] {
    let moments = |mean: f64| Moments {
        count,
        sum: mean * count as f64,
        mean,
        squares: 0.01 * (count - 1) as f64,
    };
    let statistics = Snapshot { positive: moments(0.8), negative: moments(0.2) };
    let of = |side| with_posterior(negatives(side), &statistics, 200);
    [Side::Images, Side::Texts].map(of)
}

/// By hand: logit P(s) = −9.2102 + 60 s − 30, so P = 0.94212, 0.44763 and 0.0001 at s = 0.7, 0.65 and 0.5.
///
/// ```text
/// official (τ = 0.5, λ = 0.001, cut at 0.6)   exp(−0.47106) = 0.62434   exp(−0.22382) = 0.79946   cut
/// paper    (τ = 1,   λ = 0.01)                exp(−0.94212) = 0.38980   exp(−0.44763) = 0.63914   exp(−0.045) = 0.95600
/// ```
///
/// Caption 20 is true of image 1, so the first candidate is a false negative of the image. Caption 10 is not true of image 2,
/// so the caption has no false negative. 0.62434 / 1.42380 = 0.43850, 0.38980 / 1.98494 = 0.19638.
#[test]
fn golden_shares_of_the_presets() {
    let draws = Draws::of(&observed(201), &truth());
    assert_eq!((draws.anchors, draws.others_anchors, draws.drawn), (2.0, 2.0, 1.0));
    let [official, paper] = PRESETS.map(|(name, _)| draws.others[name]);
    assert!((official - 0.438_50).abs() < 1e-5, "{official}");
    assert!((paper - 0.196_38).abs() < 1e-5, "{paper}");
    let shares = draws.shares().unwrap();
    assert!((shares.uniform - 1.0 / 6.0).abs() < 1e-12 && shares.hardest == 0.5, "{shares:?}");
    let early = Draws::of(&observed(200), &truth());
    assert!(early.others.is_empty() && early.others_anchors == 0.0, "no posterior at n⁺ = 200");
}

/// The candidates above the cut 0.6, as soon as there is a posterior. One of the two flagged candidates is true.
#[test]
fn candidates_survive_the_cut_and_have_their_ratio() {
    let found = Candidates::of(&observed(201), &truth());
    assert_eq!((found.count(), found.base_rate()), (4, Some(0.25)));
    // P(0.7) = 0.94 and P(0.65) = 0.45 in both directions: one candidate of each is above 0.5, and one of the two is true.
    let detection = found.detection(1e-4, 0.5).unwrap();
    assert_eq!((detection.precision, detection.recall), (Some(0.5), Some(1.0)));
    assert_eq!(found.detection(1e-4, 0.4).unwrap().flagged, 1.0);
    assert_eq!(Candidates::of(&observed(200), &truth()).count(), 0);
}

/// The hardest candidate of an audit is the candidate that the row "w/o FNE" takes.
#[test]
fn hardest_is_the_samplers() {
    let mut o = negatives(Side::Images);
    for (scores, margin) in [
        ([0.8, 0.7, 0.65, 0.5], 0.2),
        ([0.8, 0.1, 0.65, 0.65], 0.2),
        ([0.8, 0.1, 0.2, 0.3], 0.2),
        ([0.9, 0.1, 0.2, 0.3], 0.9),
    ] {
        (o.scores, o.margin) = (scores.into(), margin);
        let (positive, excluded) = (&o.positive, &o.excluded);
        let pool = CandidatePool { scores: &o.scores, positive, excluded };
        assert_eq!(o.hardest(), pool.hardest(margin).unwrap(), "{scores:?}");
    }
}
