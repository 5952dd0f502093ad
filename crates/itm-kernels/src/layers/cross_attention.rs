//! Attention between words and regions on burn tensors.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::{check_lengths, embedding, host};
use crate::composed;
use crate::cross_attention::{CrossSpec, Inputs, Rule, check_thresholds, column};
use crate::ops::{CrossAttentionOps, CrossTensors, LinearOps};

/// Products of all words and all regions of a batch, and the Gram matrices. Scores are computed from them. Equations:
/// [`crate::cross_attention`].
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Distribution, Tensor};
/// use itm_kernels::CrossProducts;
/// use itm_kernels::cross_attention::{Cosine, Pool, Rule, Side, KeyWeights};
///
/// let device = Device::flex();
/// let random = |shape| Tensor::<3>::random(shape, Distribution::Default, &device);
/// let (regions, texts) = (random([2, 5, 8]), random([3, 4, 8]));
/// let products = CrossProducts::new(regions, &[5, 5], texts, &[4, 2, 1]);
/// let weights = KeyWeights::Above { scale: 20.0 };
/// let cosine = Some(Cosine { weights, unit_queries: true });
/// let rule = Rule { queries: Side::Words, negative: None, cosine, relevance: None, pool: Pool::Mean };
/// assert_eq!(products.scores(&rule, &[0.0, 0.1, 0.1]).dims(), [2, 3]); // one threshold per text
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CrossProducts {
    /// The products and Gram matrices have no gradient of their own.
    of: CrossTensors<Dispatch>,
    regions: Vec<usize>,
    words: Vec<usize>,
}

impl CrossProducts {
    /// Images `[n, r, d]` with a count of regions per image, and texts `[m, l, d]` with a count of words per text.
    /// Rows beyond a count change neither scores nor gradients; for gradients they must be finite.
    ///
    /// # Panics
    /// If there is no image or no text, a count is 0 or too large, or the widths differ or are 0.
    pub fn new(regions: Tensor<3>, counts: &[usize], texts: Tensor<3>, lengths: &[usize]) -> Self {
        check_lengths(regions.dims(), counts);
        check_lengths(texts.dims(), lengths);
        let (n, m) = (counts.len(), lengths.len());
        assert!(n > 0 && m > 0, "{n} images and {m} texts, not at least one of each");
        let (regions, texts) = (narrowed(regions, counts), narrowed(texts, lengths));
        let (shape, other) = (regions.dims(), texts.dims());
        let ([_, _, d], [_, l, e]) = (shape, other);
        assert!(d > 0, "images of shape {shape:?} have no value");
        assert_eq!(d, e, "images of shape {shape:?} against texts of shape {other:?}");
        let taken = lengths.iter().enumerate().flat_map(|(c, &n)| c * l..c * l + n);
        let taken: Vec<u32> = taken.map(|row| row as u32).collect();
        let words = embedding(texts.clone().reshape([m * l, d]), &taken, None); // [words, d]
        let [products, region_grams, word_grams] = composed::cross_attention::products::<Dispatch>(
            regions.clone().detach().into_dispatch(),
            words.clone().detach().into_dispatch(),
            lengths,
            <Dispatch as LinearOps>::matmul_threaded,
        );
        let (regions, words) = (regions.into_dispatch(), words.into_dispatch());
        let of = CrossTensors { regions, words, products, region_grams, word_grams };
        Self { of, regions: counts.to_vec(), words: lengths.to_vec() }
    }

    /// Scores of every image with every text, `[n, m]`, with one threshold per text.
    ///
    /// # Panics
    /// If the number of thresholds differs from the number of texts, or a threshold is not finite.
    pub fn scores(&self, rule: &Rule, thresholds: &[f32]) -> Tensor<2> {
        check_thresholds(thresholds, self.words.len());
        let spec = CrossSpec {
            rule: rule.clone(),
            regions: self.regions.clone(),
            words: self.words.clone(),
            thresholds: thresholds.to_vec(),
        };
        let of = self.of.clone();
        Tensor::from_dispatch(<Dispatch as CrossAttentionOps>::cross_scores(of, spec))
    }

    /// The products and Gram matrices on the host, for loops over single texts.
    pub fn host(&self) -> HostProducts {
        let CrossTensors { products, region_grams, word_grams, .. } = self.of.clone();
        let grams = |grams| host(Tensor::<3>::from_dispatch(grams));
        HostProducts {
            products: host(Tensor::<2>::from_dispatch(products)),
            region_grams: grams(region_grams),
            word_grams: grams(word_grams),
            regions: self.regions.clone(),
            words: self.words.clone(),
        }
    }
}

/// [`CrossProducts`] as plain numbers, without a gradient.
#[derive(Debug, Clone)]
pub struct HostProducts {
    products: Vec<f32>,
    region_grams: Vec<f32>,
    word_grams: Vec<f32>,
    regions: Vec<usize>,
    words: Vec<usize>,
}

impl HostProducts {
    /// Scores of one text with every image, with this threshold: one column of [`CrossProducts::scores`].
    ///
    /// # Panics
    /// If there is no such text, or the threshold is not finite.
    pub fn column(&self, rule: &Rule, text: usize, threshold: f32) -> Vec<f32> {
        let inputs = Inputs {
            products: &self.products,
            region_grams: &self.region_grams,
            word_grams: &self.word_grams,
            regions: &self.regions,
            words: &self.words,
        };
        column(&inputs, rule, text, threshold)
    }

    /// Products of each word of a text with the regions of an image.
    ///
    /// # Panics
    /// If there is no such image or text.
    pub fn pair(&self, image: usize, text: usize) -> impl Iterator<Item = &[f32]> {
        let (n, m) = (self.regions.len(), self.words.len());
        assert!(image < n && text < m, "image {image} of {n}, text {text} of {m}");
        let width = self.products.len() / self.words.iter().sum::<usize>();
        let first: usize = self.words[..text].iter().sum();
        let at = image * (width / self.regions.len());
        let rows = self.products.chunks_exact(width).skip(first).take(self.words[text]);
        rows.map(move |row| &row[at..at + self.regions[image]])
    }
}

fn narrowed(x: Tensor<3>, counts: &[usize]) -> Tensor<3> {
    let longest = counts.iter().copied().max().unwrap_or(0);
    if x.dims()[1] == longest { x } else { x.narrow(1, 0, longest) }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use burn::tensor::Device;

    use super::super::uniform;
    use super::*;
    use crate::cross_attention::{KeyWeights, Negative, Pool, Side};
    use crate::tests::{close, values};

    const REGIONS: [usize; 3] = [5, 3, 4];
    const WORDS: [usize; 4] = [4, 2, 1, 6];

    fn batch(device: &Device) -> [Tensor<3>; 2] {
        let unit = |x: Tensor<3>| x.clone() / x.powf_scalar(2.0).sum_dim(2).sqrt();
        [unit(uniform([3, 5, 7], 1.0, 1, device)), unit(uniform([4, 6, 7], 1.0, 2, device))]
    }

    /// Scores and gradients of both sides, weighted over all pairs and over two pairs: the kernel against burn's
    /// differentiation.
    #[test]
    fn agrees_with_composed_and_autodiff() {
        let device = Device::flex().autodiff();
        let all = uniform([3, 4], 1.0, 3, &device);
        let few = all.clone()
            * Tensor::from_floats([[0.; 4], [0., 1., 0., 0.], [0., 0., 0., 1.]], &device);
        for (name, rule) in crate::cross_attention::tests::rules() {
            for weights in [&all, &few] {
                let leaves = || batch(&device).map(Tensor::require_grad);
                let made = |[v, u]: &[Tensor<3>; 2]| {
                    CrossProducts::new(v.clone(), &REGIONS, u.clone(), &WORDS)
                };
                let (ours, theirs) = (leaves(), leaves()); // a graph is differentiated once
                let thresholds = vec![0.1, 0.25, -0.1, 0.2];
                let fused = made(&ours).scores(&rule, &thresholds);
                let spec = CrossSpec {
                    rule: rule.clone(),
                    regions: REGIONS.into(),
                    words: WORDS.into(),
                    thresholds,
                };
                let [s, g, h] = composed::cross_attention::products::<Dispatch>(
                    made(&theirs).of.regions,
                    made(&theirs).of.words,
                    &WORDS,
                    <Dispatch as LinearOps>::matmul_threaded,
                );
                let composed = composed::cross_attention::forward::<Dispatch>(s, g, h, &spec);
                let composed = Tensor::<2>::from_dispatch(composed);
                close(&format!("{name}: scores"), fused.clone(), composed.clone());
                let got = (fused * weights.clone()).sum().backward();
                let want = (composed * weights.clone()).sum().backward();
                for (side, (a, b)) in ["regions", "texts"].iter().zip(ours.iter().zip(&theirs)) {
                    close(
                        &format!("{name}: {side}"),
                        a.grad(&got).unwrap(),
                        b.grad(&want).unwrap(),
                    );
                }
            }
        }
    }

    /// Rows beyond the counts change no score.
    #[test]
    fn padding_changes_nothing() {
        let device = Device::flex();
        let rule = &crate::cross_attention::tests::rules()[0].1;
        let [regions, texts] = batch(&device);
        let thresholds = [0.1; 4];
        let want = values(
            CrossProducts::new(regions.clone(), &REGIONS, texts.clone(), &WORDS)
                .scores(rule, &thresholds),
        );
        let wide = |x: Tensor<3>| {
            let [n, _, d] = x.dims();
            Tensor::cat(vec![x, Tensor::<3>::full([n, 2, d], 9.0, &device)], 1)
        };
        let got = CrossProducts::new(wide(regions), &REGIONS, wide(texts), &WORDS)
            .scores(rule, &thresholds);
        assert_eq!(values(got), want);
    }

    #[test]
    fn a_column_on_the_host_is_that_of_the_scores() {
        let device = Device::flex();
        let [regions, texts] = batch(&device);
        let made = CrossProducts::new(regions.clone(), &REGIONS, texts.clone(), &WORDS);
        for (_, rule) in crate::cross_attention::tests::rules() {
            let thresholds = [0.1, 0.2, 0.3, 0.4];
            let all = values(made.scores(&rule, &thresholds));
            for (text, &t) in thresholds.iter().enumerate() {
                let want: Vec<f32> = all[text..].iter().step_by(4).copied().collect();
                assert_eq!(made.host().column(&rule, text, t), want);
            }
        }
        let host = made.host();
        let word: Vec<&[f32]> = host.pair(2, 3).collect();
        assert_eq!((word.len(), word[5].len()), (6, 4));
        let want = regions.slice([2..3, 3..4]) * texts.slice([3..4, 5..6]);
        assert!((word[5][3] - values(want).iter().sum::<f32>()).abs() < 1e-6);
    }

    #[test]
    #[should_panic(expected = "thresholds of the texts")]
    fn a_missing_threshold_is_refused() {
        let [regions, texts] = batch(&Device::flex());
        let rule = Rule {
            queries: Side::Words,
            negative: Some(Negative { masked: true, spread: None }),
            cosine: None,
            relevance: Some(KeyWeights::Above { scale: 1.0 }),
            pool: Pool::Mean,
        };
        CrossProducts::new(regions, &REGIONS, texts, &WORDS).scores(&rule, &[0.1; 3]);
    }

    #[test]
    #[should_panic(expected = "3 images and 0 texts, not at least one of each")]
    fn a_side_without_items_is_refused() {
        let device = Device::flex();
        let [regions, _] = batch(&device);
        CrossProducts::new(regions, &REGIONS, Tensor::zeros([0, 6, 7], &device), &[]);
    }
}
