use super::*;
use crate::tests::{
    Golden, counts, f32s, golden, on_every_instruction_set, on_every_thread_count, random, worst,
};

fn softmax_of(scale: f32, leak: f32, norm: Norm) -> KeyWeights {
    KeyWeights::Softmax { scale, leak, norm }
}

/// The rules of `tests/reference/naaf_attention.py`, with their names there.
fn negative_aware() -> Vec<(&'static str, Rule)> {
    let full = Rule {
        queries: Side::Words,
        negative: Some(Negative { masked: true, spread: None }),
        cosine: Some(Cosine { weights: KeyWeights::Above { scale: 20.0 }, unit_queries: true }),
        relevance: Some(softmax_of(20.0, 0.1, Norm::Queries)),
        pool: Pool::Mean,
    };
    let spread =
        |scale, what| Some(Negative { masked: true, spread: Some(Propagation { scale, what }) });
    let cosine = |weights| Some(Cosine { weights, unit_queries: true });
    let relevance = |scale, leak, norm| Some(softmax_of(scale, leak, norm));
    vec![
        ("full", full.clone()),
        ("intra_mask", Rule { negative: spread(5.0, Spreads::Mask), ..full.clone() }),
        (
            "intra_value_and_mask",
            Rule { negative: spread(20.0, Spreads::ValueAndMask), ..full.clone() },
        ),
        ("no_negative", Rule { negative: None, ..full.clone() }),
        (
            "no_masks",
            Rule {
                negative: Some(Negative { masked: false, spread: None }),
                cosine: cosine(softmax_of(20.0, 1.0, Norm::None)),
                ..full.clone()
            },
        ),
        ("relu", Rule { relevance: relevance(20.0, 0.0, Norm::Queries), ..full.clone() }),
        (
            "scale_nine",
            Rule {
                cosine: cosine(KeyWeights::Above { scale: 9.0 }),
                relevance: relevance(9.0, 0.1, Norm::Queries),
                ..full.clone()
            },
        ),
        ("no_relevance", Rule { relevance: None, ..full }),
    ]
}

/// The rules of `tests/reference/scan.py`, with their names there.
fn attended() -> Vec<(&'static str, Rule)> {
    let rule = |queries, weights, pool| Rule {
        queries,
        negative: None,
        cosine: Some(Cosine { weights, unit_queries: false }),
        relevance: None,
        pool,
    };
    let words = |scale, leak, norm, pool| rule(Side::Words, softmax_of(scale, leak, norm), pool);
    let regions = |leak, pool| rule(Side::Regions, softmax_of(4.0, leak, Norm::Queries), pool);
    vec![
        ("t2i_lse", words(9.0, 0.1, Norm::Queries, Pool::LogSumExp { scale: 6.0 })),
        ("t2i_mean", words(9.0, 0.1, Norm::Queries, Pool::Mean)),
        ("t2i_sum_l2norm", words(4.0, 1.0, Norm::Queries, Pool::Sum)),
        ("t2i_max_clipped", words(9.0, 0.1, Norm::None, Pool::Max)),
        ("t2i_mean_no_norm", words(9.0, 1.0, Norm::None, Pool::Mean)),
        ("t2i_mean_no_scale", words(0.0, 0.1, Norm::Queries, Pool::Mean)),
        ("i2t_lse", regions(0.1, Pool::LogSumExp { scale: 5.0 })),
        ("i2t_mean", regions(0.1, Pool::Mean)),
        ("i2t_max_l2norm", regions(1.0, Pool::Max)),
    ]
}

pub(crate) fn rules() -> Vec<(&'static str, Rule)> {
    [negative_aware(), attended()].concat()
}

/// Padded rows and their counts. Products and Gram matrices are computed from the rows in f64.
struct Batch {
    regions: Vec<f64>,
    words: Vec<f64>,
    counts: Vec<usize>,
    lengths: Vec<usize>,
    width: usize,
}

impl Batch {
    fn of(g: &Golden) -> Self {
        let (counts, lengths) = (counts(&g["counts"]), counts(&g["lengths"]));
        let width = g["regions"].len() / counts.len() / longest(&counts);
        Self { regions: g["regions"].clone(), words: g["words"].clone(), counts, lengths, width }
    }

    /// Unit rows that share one direction, so that products have both signs and some exceed a threshold.
    fn random(counts: &[usize], lengths: &[usize], width: usize, seed: u64) -> Self {
        let rows = |n: usize, seed| {
            let mut values: Vec<f64> = random(n * width, seed).into_iter().map(f64::from).collect();
            for row in values.chunks_mut(width) {
                row[0] += 0.3;
                let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.iter_mut().for_each(|x| *x = f64::from((*x / norm) as f32));
            }
            values
        };
        Self {
            regions: rows(counts.len() * longest(counts), seed),
            words: rows(lengths.len() * longest(lengths), seed + 1),
            counts: counts.to_vec(),
            lengths: lengths.to_vec(),
            width,
        }
    }

    /// Rows of all real words.
    fn packed(&self) -> Vec<&[f64]> {
        let texts = self.words.chunks_exact(longest(&self.lengths) * self.width);
        let rows =
            texts.zip(&self.lengths).flat_map(|(text, &n)| text.chunks_exact(self.width).take(n));
        rows.collect()
    }

    fn products(&self) -> [Vec<f32>; 3] {
        let d = self.width;
        let dots = |a: &[f64], b: &[f64]| -> Vec<f32> {
            let dot =
                |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() as f32;
            a.chunks_exact(d).flat_map(|a| b.chunks_exact(d).map(move |b| dot(a, b))).collect()
        };
        let grams = |values: &[f64], counts: &[usize]| {
            let items = values.chunks_exact(longest(counts) * d);
            items.flat_map(|item| dots(item, item)).collect()
        };
        let words: Vec<f64> = self.packed().concat();
        [
            dots(&words, &self.regions),
            grams(&self.regions, &self.counts),
            grams(&self.words, &self.lengths),
        ]
    }

    fn with<T>(&self, f: impl Fn(&Inputs) -> T) -> T {
        let [products, region_grams, word_grams] = self.products();
        f(&Inputs {
            products: &products,
            region_grams: &region_grams,
            word_grams: &word_grams,
            regions: &self.counts,
            words: &self.lengths,
        })
    }

    /// Gradients of the rows of both sides.
    fn gradients(&self, rule: &Rule, thresholds: &[f32], grad: &[f32]) -> [Vec<f32>; 2] {
        let plain = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let (regions, words) = (plain(&self.regions), plain(&self.packed().concat()));
        self.with(|inputs| backward(inputs, [&regions, &words], rule, thresholds, grad))
    }

    /// Values of the words of all texts, padded with zeros as in the reference.
    fn padded(&self, words: &[f32]) -> Vec<f32> {
        let (mut rest, full) = (words, longest(&self.lengths) * self.width);
        let text = |&n: &usize| {
            let (text, after) = rest.split_at(n * self.width);
            rest = after;
            [text, &vec![0.0; full - text.len()]].concat()
        };
        self.lengths.iter().flat_map(text).collect()
    }
}

fn check_golden(name: &str, rules: &[(&str, Rule)]) {
    let g = golden(name);
    let batch = Batch::of(&g);
    let thresholds = g.get("t").map_or(vec![0.0; 4], |t| f32s(t));
    for (name, rule) in rules {
        let grad = f32s(&g["grad"]);
        let scores = batch.with(|inputs| forward(inputs, rule, &thresholds));
        let error = worst(&scores, &g[*name]);
        assert!(error < 3e-6, "{name}: scores are off by {error:e}");
        let [regions, words] = batch.gradients(rule, &thresholds, &grad);
        for (what, got) in [("d_regions", regions), ("d_words", batch.padded(&words))] {
            let error = worst(&got, &g[&format!("{name}.{what}")]);
            assert!(error < 3e-5, "{name}.{what} is off by {error:e}");
        }
    }
}

/// Scores by loops over attended vectors, and gradients by complex steps: `tests/reference/{naaf_attention,scan}.py`.
#[test]
fn golden_on_every_instruction_set() {
    let check = || {
        check_golden("naaf_attention", &negative_aware());
        check_golden("scan", &attended());
    };
    check();
    on_every_instruction_set(check);
}

#[test]
fn every_rule_gives_scores_of_its_own() {
    let batch = Batch::of(&golden("naaf_attention"));
    let t = f32s(&golden("naaf_attention")["t"]);
    let all: Vec<_> =
        rules().iter().map(|(_, rule)| batch.with(|x| forward(x, rule, &t))).collect();
    for (k, a) in all.iter().enumerate() {
        assert!(all[..k].iter().all(|b| a != b), "{} is another rule too", rules()[k].0);
    }
}

/// Counts beyond a register and a block of queries.
fn large() -> Batch {
    Batch::random(&[36, 20, 33, 36, 1], &[12, 25, 3, 1, 17, 9], 24, 5)
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let batch = large();
    let t = vec![0.2; batch.lengths.len()];
    let all = random(batch.counts.len() * batch.lengths.len(), 3);
    let few: Vec<f32> = all.iter().map(|&g| if g > 0.4 { g } else { 0.0 }).collect();
    for (_, rule) in [&rules()[1], &rules()[14]] {
        on_every_thread_count(|| {
            let scores = batch.with(|x| forward(x, rule, &t));
            let [a, b] = [&all, &few].map(|grad| batch.gradients(rule, &t, grad).concat());
            [scores, a, b].concat()
        });
    }
}

/// The gradient is linear in the gradient of the scores. So the gradient of a few pairs, computed block by block,
/// equals the gradient of all pairs minus the gradient of the other pairs, both computed by products of all pairs.
#[test]
fn a_few_pairs_by_themselves_are_their_share_of_all() {
    let batch = large();
    let t = vec![0.2; batch.lengths.len()];
    let all = random(batch.counts.len() * batch.lengths.len(), 3);
    let few: Vec<f32> = (0..30).map(|k| if k % 7 == 2 { all[k] } else { 0.0 }).collect();
    let rest: Vec<f32> = all.iter().zip(&few).map(|(all, few)| all - few).collect();
    for (name, rule) in rules() {
        let [all, few, rest] =
            [&all, &few, &rest].map(|grad| batch.gradients(&rule, &t, grad).concat());
        let want: Vec<f64> =
            all.iter().zip(&rest).map(|(&a, &b)| f64::from(a) - f64::from(b)).collect();
        let error = worst(&few, &want);
        assert!(error < 2e-5, "{name}: {error:e}");
    }
}

/// The score of a pair has the same bits alone and in a batch.
#[test]
fn a_pair_alone_has_the_same_bits() {
    let batch = large();
    for (name, rule) in rules() {
        let t = vec![0.2; batch.lengths.len()];
        let all = batch.with(|x| forward(x, &rule, &t));
        for (i, c) in [(0, 0), (1, 4), (4, 1), (2, 3)] {
            let d = batch.width;
            let part = |values: &[f64], size: usize, k: usize| {
                values[k * size * d..(k + 1) * size * d].to_vec()
            };
            let mut alone = Batch {
                regions: part(&batch.regions, 36, i),
                words: part(&batch.words, 25, c),
                counts: vec![batch.counts[i]],
                lengths: vec![batch.lengths[c]],
                width: d,
            };
            alone.regions.truncate(alone.counts[0] * d);
            alone.words.truncate(alone.lengths[0] * d);
            let got = alone.with(|x| forward(x, &rule, &t[..1]));
            assert_eq!(got[0].to_bits(), all[i * 6 + c].to_bits(), "{name}: image {i}, text {c}");
        }
    }
}

fn rows(batch: &Batch) -> [ItemRows; 2] {
    let d = batch.width;
    let regions = batch.regions.chunks_exact(longest(&batch.counts) * d).zip(&batch.counts);
    let regions = regions.flat_map(|(item, &n)| &item[..n * d]).map(|&x| x as f32).collect();
    let words = batch.packed().concat().into_iter().map(|x| x as f32).collect();
    [ItemRows::new(regions, d, &batch.counts), ItemRows::new(words, d, &batch.lengths)]
}

/// Tiles give the same scores as products in f64. Any range of images and texts has the same bits.
#[test]
fn tiles_change_nothing() {
    let check = || {
        let batch = large();
        let [images, texts] = rows(&batch);
        let (n, m) = (images.items(), texts.items());
        for (name, rule) in rules() {
            let want = batch.with(|x| forward(x, &rule, &vec![0.2; m]));
            let all = scores(&images, &texts, [0..n, 0..m], 0.2, &rule);
            let want: Vec<f64> = want.into_iter().map(f64::from).collect();
            let error = worst(&all, &want);
            assert!(error < 5e-5, "{name}: {error:e}");
            for (i, c) in [(0..1, 0..1), (1..4, 2..5), (4..5, 0..6), (0..5, 5..6), (2..2, 0..6)] {
                let got = scores(&images, &texts, [i.clone(), c.clone()], 0.2, &rule);
                let want = i.flat_map(|i| all[i * m..(i + 1) * m][c.clone()].to_vec());
                assert_eq!(got, want.collect::<Vec<_>>(), "{name}");
            }
        }
    };
    check();
    on_every_instruction_set(check);
}

/// More words and regions than a tile holds: several tiles give one result.
#[test]
fn several_tiles_are_one_result() {
    let (counts, lengths) = (vec![700; 9], vec![200; 6]);
    let batch = Batch::random(&counts, &lengths, 3, 7);
    let [images, texts] = rows(&batch);
    let rule = &rules()[0].1;
    let all = scores(&images, &texts, [0..9, 0..6], 0.1, rule);
    for (i, c) in [(0, 0), (6, 2), (8, 5)] {
        assert_eq!(scores(&images, &texts, [i..i + 1, c..c + 1], 0.1, rule), [all[i * 6 + c]]);
    }
}

/// Keys come in pairs that nearly cancel, and queries point along the small rest: in f32 the quadratic form would be
/// rounding error only.
#[test]
fn keys_that_nearly_cancel_are_summed_in_double() {
    let d = 512;
    let mut batch = Batch::random(&[36], &[4], d, 9);
    let rest = |c: usize| (c % 7) as f64 - 3.0;
    for pair in batch.regions.chunks_exact_mut(2 * d) {
        let (a, b) = pair.split_at_mut(d);
        for (c, (a, b)) in a.iter().zip(b).enumerate() {
            *b = f64::from((-a + 4e-5 * rest(c)) as f32);
        }
    }
    for (at, word) in batch.words.iter_mut().enumerate() {
        *word = f64::from((rest(at % d) / 45.0) as f32);
    }
    let rule = Rule {
        queries: Side::Words,
        negative: None,
        cosine: Some(Cosine { weights: softmax_of(0.0, 1.0, Norm::None), unit_queries: true }),
        relevance: None,
        pool: Pool::Mean,
    };
    let mean = |c| batch.regions[c..].iter().step_by(d).sum::<f64>() / 36.0;
    let mean: Vec<f64> = (0..d).map(mean).collect();
    let norm = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert!(norm < 2e-3, "{norm}");
    let want = mean.iter().zip(&batch.words).map(|(a, b)| a * b).sum::<f64>() / norm;
    let got = batch.with(|x| forward(x, &rule, &[0.0]));
    let error = (f64::from(got[0]) - want).abs();
    assert!(error < 5e-3 && want > 0.9, "{} for {want}", got[0]);
}

/// No key above the threshold, a key that no query likes, a query of zeros.
#[test]
fn gradients_are_finite_where_nothing_is_found() {
    let mut batch = Batch::random(&[5, 3], &[4, 1, 2], 6, 11);
    batch.words[..6].fill(0.0); // a word of zeros
    for (name, rule) in rules() {
        for t in [1.0, 0.0, -1.0] {
            let grad = [1.0, -2.0, 0.5, 1.5, 1.0, -1.0];
            let scores = batch.with(|x| forward(x, &rule, &[t; 3]));
            let gradients = batch.gradients(&rule, &[t; 3], &grad);
            let finite = |values: &[f32]| values.iter().all(|x| x.is_finite());
            assert!(finite(&scores) && gradients.iter().all(|g| finite(g)), "{name}, t = {t}");
        }
    }
    let masked = Rule { negative: None, relevance: None, ..negative_aware().remove(0).1 };
    let none = batch.with(|x| forward(x, &masked, &[1.0; 3]));
    assert_eq!(none, [0.0; 6], "a query without a key above the threshold has no weights");
}

#[test]
#[should_panic(expected = "text 1 has nothing to compare")]
fn a_text_without_words_is_refused() {
    Batch::random(&[2], &[3, 1], 4, 1).with(|x| {
        let products = vec![0.0; 3 * 2];
        let lengths = [3, 0];
        forward(&Inputs { products: &products, words: &lengths, ..*x }, &rules()[0].1, &[0.0; 2])
    });
}

#[test]
#[should_panic(expected = "products of 7 words and 3 images")]
fn products_of_another_size_are_refused() {
    let words = [4, 2, 1];
    let inputs = Inputs {
        products: &[0.0; 5],
        region_grams: &[0.0; 27],
        word_grams: &[0.0; 48],
        regions: &[3; 3],
        words: &words,
    };
    forward(&inputs, &rules()[0].1, &[0.0; 3]);
}

/// Wherever it stands, whatever the branch: two words and some regions, in one register and in three.
#[test]
fn the_largest_part_does_not_hide_a_nan() {
    let none = Rule {
        queries: Side::Words,
        negative: None,
        cosine: None,
        relevance: None,
        pool: Pool::Max,
    };
    let relevance = Some(softmax_of(1.0, 1.0, Norm::None));
    let negative = |masked| Some(Negative { masked, spread: None });
    let rules = [
        Rule { relevance, ..none.clone() },
        Rule { negative: negative(true), ..none.clone() },
        Rule { negative: negative(false), ..none },
    ];
    on_every_instruction_set(|| {
        for (rule, r) in rules.iter().flat_map(|rule| [1, 5, 40].map(|r| (rule, r))) {
            for at in 0..2 * r {
                let mut products = vec![0.5; 2 * r];
                products[at] = f32::NAN;
                let inputs = Inputs {
                    products: &products,
                    region_grams: &vec![1.0; r * r],
                    word_grams: &[1.0, 0.0, 0.0, 1.0],
                    regions: &[r],
                    words: &[2],
                };
                let score = forward(&inputs, rule, &[0.0])[0];
                assert!(score.is_nan(), "{score}: value {at} of 2 · {r}, {rule:?}");
            }
        }
    });
}
