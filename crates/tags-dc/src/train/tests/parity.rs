//! The five losses and their gradients against `tests/reference/tags_dc_losses.py`, to 1e-5.

use super::*;

use crate::model::tests::{check_gradients, golden_of, open, split_regions};
use crate::{Masking, Negative};

const MASK: u32 = 49;

fn marks() -> Marks {
    Marks::of_words(47).unwrap()
}

fn texts() -> Vec<Vec<u32>> {
    vec![vec![17, 11, 31, 44, 8], vec![9, 17], vec![5, 9, 21]]
}

fn anchors() -> Anchors {
    let of = |image, text, negatives| Anchor { image, text, negatives };
    Anchors(vec![
        of(0, 0, vec![(1, 0)]),
        of(1, 1, vec![(0, 1)]),
        of(1, 2, vec![(1, 0)]),
        of(0, 0, vec![(0, 1), (0, 2)]),
    ])
}

/// A masked text, with the original words at some of its positions.
fn masked(words: &[u32], labels: &[(usize, u32)]) -> Masking {
    let ids = marks().around(words);
    let label = |at| labels.iter().find(|(position, _)| *position == at).map(|&(_, word)| word);
    Masking { labels: (0..ids.len()).map(label).collect(), ids }
}

fn maskings() -> Vec<TextMaskings> {
    let first = vec![
        masked(&[MASK, 11, 31, 44, 8], &[(1, 17)]),
        masked(&[17, MASK, 5, 44, 8], &[(2, 11), (3, 31)]),
    ];
    let second = vec![masked(&[MASK, 17], &[(1, 9)]), masked(&[9, 17], &[(2, 17)])];
    vec![
        TextMaskings { number: 0, image: 0, text: 0, rows: first },
        TextMaskings { number: 1, image: 1, text: 1, rows: second },
    ]
}

fn pools() -> Vec<Pool> {
    let negative = |words: &[u32], at: &[usize]| {
        let tokens = marks().around(words);
        let masked = (0..tokens.len()).map(|k| at.contains(&k)).collect();
        Negative { masked, tokens, score: 0.0 }
    };
    let of = |image, text: usize, negatives| Pool {
        image,
        positive: marks().around(&texts()[text]),
        negatives,
    };
    let first = vec![negative(&[20, 11, 31, 44, 8], &[1]), negative(&[17, 11, 32, 44, 8], &[2, 3])];
    vec![of(0, 0, first), of(1, 1, vec![negative(&[9, 40], &[2])]), of(1, 2, vec![])]
}

/// The golden's weights of the losses.
fn weights() -> LossConfig {
    LossConfig { itm: 1.0, mlm: 0.7, istm: 0.5, wod: 0.3, woc: 0.2, ..config().loss }
}

/// Each loss, as logged, and the weighted sum of all losses.
fn losses(
    model: &Uniter,
    config: &LossConfig,
    (share, released): (bool, bool),
) -> (std::collections::BTreeMap<String, f64>, Tensor<1>) {
    let (regions, texts, pairs) = (split_regions(), texts(), Pairs::new(2, vec![0, 1, 1]).unwrap());
    let items = Items { images: ImageItems::Regions(&regions), texts: &texts, pairs: &pairs };
    let mut losses = Losses::default();
    let data = (&regions, marks(), &items);
    losses.retrieved(model, &anchors(), data, config, Noise::Off).unwrap();
    losses.masked(model, &maskings(), Some(&regions), config.mlm, Noise::Off).unwrap();
    let ways = (share, released);
    losses.synthetic(model, &pools(), &regions, config, ways, [Noise::Off; 2]).unwrap();
    let named = losses.numbers.means().map(|(name, mean)| (name.to_owned(), mean));
    (named.collect(), losses.value.unwrap())
}

fn close(got: f64, want: f32, name: &str) {
    assert!(
        (got - f64::from(want)).abs() < 1e-5 * f64::from(want.max(1.0)),
        "{name}: {got} {want}"
    );
}

#[test]
fn golden_losses_and_gradients() {
    let (g, device) = (golden_of("losses.safetensors"), Device::flex().autodiff());
    let model = open("full.safetensors", &device);
    for share in [true, false] {
        let (named, loss) = losses(&model, &weights(), (share, false));
        for name in ["itm", "mlm", "istm", "wod", "woc"] {
            close(named[name], g[name][0], name);
        }
        check_gradients(&model, &loss.backward(), &g);
    }
}

/// With a margin of 1 every hinge of probabilities is open, so the loss of one pool is 1 + the logged gap: negative minus caption.
#[test]
fn the_gap_is_the_negatives_score_minus_the_captions() {
    let model = open("full.safetensors", &Device::flex());
    let config = LossConfig { margin: 1.0, ..weights() };
    let mut losses = Losses::default();
    let (one, noise) = (&pools()[..1], [Noise::Off; 2]);
    losses.synthetic(&model, one, &split_regions(), &config, (true, false), noise).unwrap();
    let named: std::collections::BTreeMap<_, _> = losses.numbers.means().collect();
    assert!(named["istm_gap"].abs() > 1e-4 && named["istm_active"] == 1.0);
    close(named["istm"], (1.0 + named["istm_gap"]) as f32, "1 + gap");
}

/// Departures 4, 6 and 7. Trap 21: weights of 1 give the plain mean, and the mean is not divided by the sum of the weights.
#[test]
fn golden_options_of_the_losses() {
    let (g, device) = (golden_of("losses.safetensors"), Device::flex());
    let model = open("full.safetensors", &device);
    let of = |config: LossConfig, released, name: &str| {
        losses(&model, &config, (true, released)).0[name]
    };
    close(
        of(LossConfig { wod_weights: [1.0; 2], ..weights() }, false, "wod"),
        g["wod.plain"][0],
        "wod.plain",
    );
    for (which, name) in
        [(CorrectionTargets::Changed, "woc.changed"), (CorrectionTargets::All, "woc.all")]
    {
        close(of(LossConfig { woc_targets: which, ..weights() }, false, "woc"), g[name][0], name);
    }
    close(of(weights(), true, "istm"), g["istm.released"][0], "istm.released");
    let among = LossConfig { ranking: RankingLoss::CrossEntropy, ..weights() };
    close(of(among.clone(), false, "itm"), g["itm.among"][0], "itm.among");
    close(of(among, false, "istm"), g["istm.among"][0], "istm.among");
}

/// Trap 16: pools without sentences give no loss, and no NaN.
#[test]
fn empty_pools_are_no_loss() {
    let model = open("full.safetensors", &Device::flex());
    let (mut losses, pools) = (Losses::default(), &pools()[2..]);
    let noise = [Noise::Off; 2];
    losses.synthetic(&model, pools, &split_regions(), &weights(), (true, false), noise).unwrap();
    assert!(losses.value.is_none());
}
