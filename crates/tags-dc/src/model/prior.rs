//! Closed-form CCA as a term of the match logit, so that a model scores as CCA does before it has learnt anything.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use itm_core::encoders::{TokenBatch, unit_rows};
use itm_core::start::Start;
use itm_core::{Error, Result};
use itm_kernels::{Linear, embedding, matmul};

use super::start::{first_columns, parameter};
use super::{RegionBatch, Uniter};
use crate::words::distinct;

/// γ before the first step: of two pairs whose cosines differ by 0.1, the logits differ by 1.
const SCALE: f32 = 10.0;

/// The cosine between an image and a text as closed-form CCA maps them, in a logit.
///
/// ```text
/// p(I, T) = γ cos( W′xᵀ mean_r r + b′x,  mean_w E[w] + b′y )
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | r | regions of the image | `[x]` |
/// | W′x, b′x | `image` | x → k |
/// | w | distinct words of the text with a known stem | |
/// | E, b′y | `words`, `bias` | `[words, k]`, `[k]` |
/// | γ | `scale` | `[1]` |
///
/// All of them learn. A start with columns that do not come from CCA gives only the columns of CCA.
#[derive(Module, Debug)]
pub struct Prior {
    /// x → k
    image: Linear,
    /// One row per word.
    words: Param<Tensor<2>>,
    /// `[k]`
    bias: Param<Tensor<1>>,
    /// γ
    scale: Param<Tensor<1>>,
    /// Whether a word has a known stem.
    #[module(skip)]
    known: Vec<bool>,
}

impl Prior {
    /// The maps of a start for regions of `features` values. The text map has one row per word.
    ///
    /// # Errors
    /// If a map has another shape, or a value is not finite.
    fn new(start: &Start, features: usize, device: &Device) -> Result<Self> {
        let k = start.dims();
        Error::unless(k > 0, "maps of CCA", "at least one column of CCA", 0)?;
        let [image, text] = [&start.image, &start.text].map(|map| first_columns(map, k));
        let rows = text.weight.len() / k;
        let (weight, bias) = image.parameters("map of regions", [features, k], device)?;
        let image = Linear::new(weight, bias);
        let known = text.weight.chunks(k).map(|row| row.iter().any(|&x| x != 0.0)).collect();
        let (words, bias) = text.parameters("map of words", [rows, k], device)?;
        let scale = Param::from_tensor(Tensor::from_floats([SCALE], device));
        Ok(Self { image, words, bias, scale, known })
    }

    /// The mapped mean of each image's regions at unit length, `[images, k]`.
    pub(super) fn images(&self, regions: &RegionBatch) -> Tensor<2> {
        let means = regions.means();
        let n = means.len() / regions.width;
        let device = self.bias.val().device();
        let means = Tensor::from_data(TensorData::new(means, [n, regions.width]), &device);
        unit_rows(self.image.forward(means))
    }

    /// p of texts beside images, `[b]`. `images` are rows of [`images`](Self::images), one per text.
    pub(super) fn logits(&self, texts: &TokenBatch, images: Tensor<2>) -> Tensor<1> {
        let (b, device) = (texts.len(), images.device());
        // The mean of the known words is a product with a matrix of weights: a text has few of all words of the batch.
        let rows = texts.ids.chunks(texts.width).zip(&texts.lengths);
        let own: Vec<Vec<u32>> = rows.map(|(row, &l)| self.words_of(&row[..l])).collect();
        let all = distinct(own.concat());
        let mut mean = Tensor::zeros([b, self.bias.val().dims()[0]], &device);
        if !all.is_empty() {
            let mut weights = vec![0.0f32; b * all.len()];
            for (row, own) in weights.chunks_mut(all.len()).zip(&own) {
                for word in own {
                    let at = all.binary_search(word).expect("one of all words");
                    row[at] = 1.0 / own.len() as f32;
                }
            }
            let weights = Tensor::from_data(TensorData::new(weights, [b, all.len()]), &device);
            mean = matmul(weights, embedding(self.words.val(), &all, None));
        }
        let texts = unit_rows(mean + self.bias.val().unsqueeze());
        (texts * images).sum_dim(1).squeeze_dim::<1>(1) * self.scale.val()
    }

    /// The distinct words of a text with a known stem.
    fn words_of(&self, text: &[u32]) -> Vec<u32> {
        let known = |word: &u32| self.known.get(*word as usize).is_some_and(|&known| known);
        distinct(text.iter().copied().filter(known).collect())
    }
}

impl Uniter {
    /// The model with CCA's cosine in its match logit, and nothing else there: `w` begins as 0, and `b` as −γ/2, so that a cosine of 0.5 is a
    /// probability of 0.5. Otherwise nearly all probabilities would be 1, where a hinge has no gradient.
    ///
    /// Before the first step the model scores as closed-form CCA of the mean of the regions, with the mean of the word vectors
    /// ([`Start::of_words`]).
    ///
    /// # Errors
    /// If a map is of another shape, or a value is not finite.
    pub fn with_prior(mut self, start: &Start) -> Result<Self> {
        let device = self.rank.weight.val().device();
        self.prior = Some(Prior::new(start, self.shape.features, &device)?);
        let zeros = vec![0.0; self.shape.text.width];
        (self.rank.weight, self.rank.bias) =
            (parameter(zeros, &self.rank.weight), parameter(vec![-SCALE / 2.0], &self.rank.bias));
        Ok(self)
    }
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use itm_core::host;
    use itm_core::scored::Scored;
    use itm_core::start::LinearMap;
    use itm_kernels::Noise;

    use super::super::{UniterScores, UniterShape};
    use super::*;

    const D: usize = 4;

    /// Words 2 to 5 have a stem, words 0 and 1 have none; 6 to 8 are marks. Two of four columns come from CCA.
    fn start() -> Start {
        let wave = |n: usize, shift: f32| (0..n).map(|k| (k as f32 * 1.3 + shift).sin()).collect();
        let (image, mut text): (Vec<f32>, Vec<f32>) = (wave(3 * D, 0.2), wave(6 * D, 0.7));
        text[..2 * D].fill(0.0);
        let map =
            |weight, bias: [f32; 2]| LinearMap { weight, bias: vec![bias[0], bias[1], 0.0, 0.0] };
        Start { image: map(image, [0.3, -0.2]), text: map(text, [0.1, 0.4]) }
    }

    fn images() -> RegionBatch {
        let features = (0..9).map(|k| (k as f32 * 0.9).cos()).collect();
        RegionBatch::new(3, vec![2, 1], features, vec![0.5; 21]).unwrap()
    }

    /// The law of a start: before the first step the score is ten times CCA's cosine less a half, here in double precision from the maps, whatever the
    /// blocks say. A word twice counts once, a word without a stem does not count.
    #[test]
    fn before_the_first_step_the_score_is_ccas() {
        let shape = UniterShape { features: 3, ..UniterShape::of_width(D, 2, 2, 9) };
        let model = Uniter::seeded(&shape, 5, &Device::flex().autodiff());
        let model = model.with_start(&start()).unwrap().with_prior(&start()).unwrap();
        let texts: [&[u32]; 4] = [&[6, 2, 0, 5, 2, 7], &[6, 3, 7], &[6, 1, 7], &[6, 4, 3, 2, 5, 7]];
        let words: [&[usize]; 4] = [&[2, 5], &[3], &[], &[2, 3, 4, 5]];
        let Start { image, text } = start();
        let mapped = |map: &LinearMap, mean: &[f64]| -> [f64; 2] {
            let of = |c: usize| {
                let rows = mean.iter().zip(map.weight.chunks(D));
                rows.map(|(x, row)| x * f64::from(row[c])).sum::<f64>() + f64::from(map.bias[c])
            };
            [of(0), of(1)]
        };
        let unit = |[x, y]: [f64; 2]| [x / x.hypot(y), y / x.hypot(y)];
        let scores = UniterScores::new(&model, [Ok(images())], texts.map(<[u32]>::to_vec).into());
        let scores = scores.unwrap().matrix().unwrap();
        let f: Vec<f64> = (0..9).map(|k| f64::from((k as f32 * 0.9).cos())).collect();
        let means =
            [[(f[0] + f[3]) / 2.0, (f[1] + f[4]) / 2.0, (f[2] + f[5]) / 2.0], [f[6], f[7], f[8]]];
        for (i, mean) in means.iter().enumerate() {
            let v = unit(mapped(&image, mean));
            for (t, words) in words.iter().enumerate() {
                let share =
                    |w: usize| if words.contains(&w) { 1.0 / words.len() as f64 } else { 0.0 };
                let w = unit(mapped(&text, &(0..6).map(share).collect::<Vec<_>>()));
                let want = 10.0 * (v[0] * w[0] + v[1] * w[1] - 0.5);
                let got = f64::from(scores.row(i)[t]);
                assert!((got - want).abs() < 1e-4, "image {i}, text {t}: {got}, by hand {want}");
            }
        }
        // The same in a batch for training, where every part of the prior learns, and the head too.
        let regions = model.embed_regions(&images());
        let joint = model.join(&TokenBatch::new(&texts[..2]), &regions, &[1, 0], Noise::Seeded(1));
        let logits = model.match_logits(&joint);
        let got = host(logits.clone().inner());
        assert!(
            (got[0] - scores.row(1)[0]).abs() < 1e-5 && (got[1] - scores.row(0)[1]).abs() < 1e-5
        );
        let gradients = logits.powi_scalar(2).sum().backward();
        let prior = model.prior.as_ref().unwrap();
        let learns = [&prior.image.weight, &prior.words, &model.rank.weight]
            .map(|p| p.val().grad(&gradients).is_some_and(|g| host(g).iter().any(|&x| x != 0.0)));
        assert_eq!(learns, [true; 3]);
        assert!(
            prior.scale.val().grad(&gradients).is_some()
                && prior.bias.val().grad(&gradients).is_some()
        );
    }

    /// UNITER's files have no names for it.
    #[test]
    fn a_model_with_a_prior_is_not_saved_as_a_uniter() {
        let shape = UniterShape { features: 3, ..UniterShape::of_width(D, 2, 2, 9) };
        let model = Uniter::seeded(&shape, 5, &Device::flex()).with_prior(&start()).unwrap();
        let line = model.save("/nowhere/u").unwrap_err().to_string();
        assert!(line.starts_with("/nowhere/u: expected a UNITER without a prior"), "{line}");
    }

    #[test]
    fn other_maps_are_refused() {
        let device = Device::flex();
        let line =
            |start: Start, features| Prior::new(&start, features, &device).unwrap_err().to_string();
        assert_eq!(
            line(start(), 2),
            "map of regions: expected 2 inputs and 2 outputs, got 3 and 2"
        );
        let changed = |change: &dyn Fn(&mut Start)| {
            let mut start = start();
            change(&mut start);
            line(start, 3)
        };
        let words = changed(&|start| start.text.weight[9] = f32::INFINITY);
        assert!(words.starts_with("map of words") && words.ends_with("got inf"), "{words}");
        let narrow = changed(&|start| {
            (start.text.bias, start.text.weight) = (vec![0.1], vec![0.5; 6]);
        });
        assert_eq!(narrow, "map of words: expected 3 inputs and 2 outputs, got 6 and 1");
        let none = changed(&|start| {
            start.image.bias.fill(0.0);
            start.text.bias.fill(0.0);
        });
        assert_eq!(none, "maps of CCA: expected at least one column of CCA, got 0");
    }
}
