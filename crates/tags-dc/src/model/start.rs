//! Initial weights from closed-form CCA.

use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use itm_core::start::{LinearMap, Start};
use itm_core::{Error, Result, host};
use itm_kernels::{LayerNorm, TransformerBlock};

use super::Uniter;

/// How much of its random direction a word keeps beside CCA's direction. Otherwise all words that say nothing about images would be one
/// vector, and nothing could tell them apart where they are masked.
const OWN_SHARE: f32 = 0.5;
/// How much longer a word's vector is than a random one, so that the random vectors of positions do not drown the word.
const LARGER: f32 = 3.0;
/// The factor on the norm of the boxes: the content of a region counts for more than its place.
const BOX_SHARE: f32 = 0.3;

impl Uniter {
    /// Puts CCA's maps into the model. All other weights stay as they are.
    ///
    /// ```text
    /// E[w]      = 3 σ √d · unit( unit(W′y[w] + b′y) + 0.5 unit(r_w) )
    /// W_f, b_f  = W′x, b′x              γ of norm_p times 0.3
    /// W_k, b_k  = W_q, b_q              in every block
    /// ```
    ///
    /// | symbol | here | shape |
    /// |---|---|---|
    /// | W′y, b′y | the start's `text`, one row per word id | `[≤ vocabulary, d]`, `[d]` |
    /// | W′x, b′x | the start's `image` | `[x, d]`, `[d]` |
    /// | E, r_w | table of words after and before | `[vocabulary, d]` |
    /// | σ | [`initializer_range`](super::UniterShape::initializer_range) | |
    ///
    /// CCA gives a word and the regions that the word names the same direction. Equal W_q and W_k make the product of a query and a key a
    /// scalar product of the two states, so that such a word and region attend to each other before the first step. A row of zeros is a
    /// word without a known stem. This word keeps its random vector, and so do the marks, whose ids come after the words. A start wider than the
    /// model gives its first columns, the directions of the largest correlations.
    ///
    /// # Errors
    /// If a map is of another shape, or a value is not finite.
    pub fn with_start(mut self, start: &Start) -> Result<Self> {
        let first = |map| first_columns(map, self.shape.text.width);
        let start = &Start { image: first(&start.image), text: first(&start.text) };
        self.bert.words = words(&self.bert.words, &start.text, self.shape.initializer_range)?;
        let weight = self.regions.features.weight.val();
        let (weight, bias) =
            start.image.parameters("map of regions", weight.dims(), &weight.device())?;
        (self.regions.features.weight, self.regions.features.bias) = (weight, bias);
        self.regions.box_norm = scaled(self.regions.box_norm);
        self.bert.blocks = self.bert.blocks.into_iter().map(keys_as_queries).collect();
        Ok(self)
    }
}

/// The map without its last columns, if it has more than `width` of them.
pub(super) fn first_columns(map: &LinearMap, width: usize) -> LinearMap {
    let columns = map.bias.len();
    if columns <= width {
        return map.clone();
    }
    let rows = map.weight.chunks(columns);
    let weight = rows.flat_map(|row| &row[..width.min(row.len())]).copied().collect();
    LinearMap { weight, bias: map.bias[..width].to_vec() }
}

fn words(table: &Param<Tensor<2>>, map: &LinearMap, range: f64) -> Result<Param<Tensor<2>>> {
    let [tokens, d] = table.val().dims();
    let LinearMap { weight, bias } = map;
    let rows = weight.len() / d;
    let got = format_args!("{} values and {} biases", weight.len(), bias.len());
    let fits = bias.len() == d && weight.len() == rows * d && rows <= tokens;
    let expected = format_args!("at most {tokens} rows of {d}, and {d} biases");
    Error::unless(fits, "map of words", expected, got)?;
    if let Some(value) = weight.iter().chain(bias).find(|x| !x.is_finite()) {
        return Err(Error::invalid("map of words", "finite values", value));
    }
    let known = weight.chunks(d).enumerate().filter(|(_, row)| row.iter().any(|&x| x != 0.0));
    let length = LARGER * range as f32 * (d as f32).sqrt();
    let mut values = host(table.val());
    for (word, mapped) in known {
        let vector: Vec<f32> = mapped.iter().zip(bias).map(|(x, b)| x + b).collect();
        let row = &mut values[word * d..][..d];
        let (of_map, own) = (unit(&vector), unit(row));
        let sum: Vec<f32> = of_map.iter().zip(own).map(|(x, r)| x + OWN_SHARE * r).collect();
        row.iter_mut().zip(unit(&sum)).for_each(|(to, x)| *to = length * x);
    }
    Ok(parameter(values, table))
}

/// The vector at unit length; zeros stay.
pub(crate) fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter().map(|x| x / norm).collect()
}

/// A new parameter with these values and the shape of `of`.
pub(super) fn parameter<const D: usize>(
    values: Vec<f32>,
    of: &Param<Tensor<D>>,
) -> Param<Tensor<D>> {
    let (shape, device) = (of.val().dims(), of.val().device());
    Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &device))
}

fn scaled(norm: LayerNorm) -> LayerNorm {
    let gamma = host(norm.gamma.val()).iter().map(|x| x * BOX_SHARE).collect();
    LayerNorm { gamma: parameter(gamma, &norm.gamma), ..norm }
}

fn keys_as_queries(mut block: TransformerBlock) -> TransformerBlock {
    let qkv = &mut block.attention.qkv;
    let copied = |mut values: Vec<f32>| {
        let d = qkv.weight.val().dims()[0];
        values.chunks_mut(3 * d).for_each(|row| row.copy_within(..d, d));
        values
    };
    let weight = parameter(copied(host(qkv.weight.val())), &qkv.weight);
    let bias = parameter(copied(host(qkv.bias.val())), &qkv.bias);
    (qkv.weight, qkv.bias) = (weight, bias);
    block
}

#[cfg(test)]
#[cfg(feature = "flex")]
mod tests {
    use burn::tensor::Device;
    use itm_core::encoders::TokenBatch;
    use itm_kernels::Noise;

    use super::*;
    use crate::model::{RegionBatch, UniterShape};

    const D: usize = 4;

    fn model() -> Uniter {
        let shape = UniterShape { features: 2, ..UniterShape::of_width(D, 2, 2, 6) };
        Uniter::seeded(&shape, 5, &Device::flex().autodiff())
    }

    /// Words 2 and 3 have a stem.
    fn start() -> Start {
        let mut text = LinearMap { weight: vec![0.0; 4 * D], bias: vec![0.0, 0.0, 0.0, 1.0] };
        text.weight[2 * D..][..D].copy_from_slice(&[3.0, 4.0, 0.0, -1.0]);
        text.weight[3 * D..][..D].copy_from_slice(&[1.0, 0.0, 0.0, -1.0]);
        let image = LinearMap { weight: (0..8).map(|x| x as f32).collect(), bias: vec![0.5; D] };
        Start { image, text }
    }

    #[test]
    fn golden_weights() {
        let (before, after) = (model(), model().with_start(&start()).unwrap());
        let [old, new] = [&before, &after].map(|m| host(m.bert.words.val()));
        // By hand, σ = 0.02: (3, 4, 0, 0) / 5 and (1, 0, 0, 0) plus half of the random direction, at length 0.06 · 2.
        for (word, of_map) in [(2, [0.6, 0.8, 0.0, 0.0]), (3, [1.0, 0.0, 0.0, 0.0])] {
            let [own, row] = [&old, &new].map(|table| &table[word * D..][..D]);
            let norm = |row: &[f32]| row.iter().map(|x| x * x).sum::<f32>().sqrt();
            let sum: Vec<f32> =
                of_map.iter().zip(own).map(|(x, r)| x + 0.5 * r / norm(own)).collect();
            let want = sum.iter().map(|x| 0.12 * x / norm(&sum));
            assert!(row.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{row:?}");
        }
        assert_eq!(new[..2 * D], old[..2 * D], "no word, no stem");
        assert_eq!(new[4 * D..], old[4 * D..], "marks");
        assert_eq!(host(after.regions.features.weight.val()), start().image.weight);
        assert_eq!(host(after.regions.features.bias.val()), start().image.bias);
        assert_eq!(host(after.regions.box_norm.gamma.val()), [0.3; D]);
        for (block, own) in after.bert.blocks.iter().zip(&before.bert.blocks) {
            let [w, before] = [block, own].map(|b| host(b.attention.qkv.weight.val()));
            for (row, before) in w.chunks(3 * D).zip(before.chunks(3 * D)) {
                assert_eq!((&row[..D], &row[D..2 * D]), (&before[..D], &before[..D]));
                assert_eq!(row[2 * D..], before[2 * D..], "values stay as they are");
            }
        }
        assert!(
            after.bert.words.val().is_require_grad()
                && after.regions.box_norm.gamma.val().is_require_grad()
        );
    }

    #[test]
    fn a_wide_start_gives_its_first_columns() {
        let wide = |map: LinearMap| LinearMap {
            weight: map.weight.chunks(D).flat_map(|row| [row, &[9.0, 9.0]].concat()).collect(),
            bias: [&map.bias[..], &[9.0, 9.0]].concat(),
        };
        let Start { image, text } = start();
        let wide = model().with_start(&Start { image: wide(image), text: wide(text) }).unwrap();
        let narrow = model().with_start(&start()).unwrap();
        let of = |model: Uniter| {
            [host(model.bert.words.val()), host(model.regions.features.weight.val())]
        };
        assert_eq!(of(wide), of(narrow));
    }

    /// A word attends to a region of its own CCA direction, so that the score differs from the random model's.
    #[test]
    fn scores_change() {
        let image = RegionBatch::new(2, vec![2], vec![0.5, 0.1, -0.2, 0.9], vec![0.5; 14]).unwrap();
        let texts = TokenBatch::new(&[&[4, 2, 3, 5][..]]);
        let score = |model: Uniter| {
            let regions = model.embed_regions(&image);
            host(model.match_logits(&model.join(&texts, &regions, &[0], Noise::Off)))
        };
        assert_ne!(score(model()), score(model().with_start(&start()).unwrap()));
    }

    #[test]
    fn other_maps_are_refused() {
        let refused = |change: &dyn Fn(&mut Start)| {
            let mut start = start();
            change(&mut start);
            model().with_start(&start).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&|s| s.text.weight.truncate(7)),
            "map of words: expected at most 6 rows of 4, and 4 biases, got 7 values and 4 biases"
        );
        let line = refused(&|s| s.text.weight.resize(7 * D, 0.0));
        assert!(line.ends_with("got 28 values and 4 biases"), "{line}");
        assert_eq!(
            refused(&|s| s.text.bias[1] = f32::NAN),
            "map of words: expected finite values, got NaN"
        );
        let line = refused(&|s| s.image.weight.truncate(4));
        assert!(line.starts_with("map of regions: expected 2 inputs and 4 outputs"), "{line}");
    }
}
