//! A text encoder: word vectors, a bidirectional recurrent unit, one row of unit length per word.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use itm_kernels::{BiGru, embedding, random, uniform};

use super::TokenBatch;
use crate::Result;
use crate::data::WordVectors;

/// Encodes captions into the joint space, word by word: NAAF §3.3, SCAN.
///
/// ```text
/// u_j = (h→_j + h←_j) / 2,   h→_j = GRU(E[id_1], …, E[id_j]),   h←_j = GRU(E[id_m], …, E[id_j]),   then u_j / (‖u_j‖ + 1e-8)
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | E | `words` | `[V, e]` |
/// | GRU → and ← | `gru` | e → d each |
/// | u | result | `[b, l, d]`, zero beyond a caption's length |
#[derive(Module, Debug)]
pub struct BiGruText {
    /// `[V, e]`
    pub words: Param<Tensor<2>>,
    /// e → d in both directions
    pub gru: BiGru,
}

impl BiGruText {
    /// Draws word vectors uniformly from ±0.1 and the units as [`BiGru::seeded`]. The seed decides all values. The sizes are
    /// `[V, e, d]`. V includes the words for padding and unknown words.
    ///
    /// # Panics
    /// If a width is 0, or memory cannot hold the weights.
    pub fn new([vocabulary, word_width, hidden]: [usize; 3], seed: u64, device: &Device) -> Self {
        let words = uniform([vocabulary, word_width], 0.1, random::derive(seed, 0), device);
        let gru = BiGru::seeded(word_width, hidden, random::derive(seed, 1), device);
        Self { words: Param::from_tensor(words), gru }
    }

    /// Replaces the vectors of the words that have a ready vector. The other words keep their random vectors.
    ///
    /// # Errors
    /// If the vectors do not fit the table: `WordVectors::check`.
    pub fn with_vectors(self, vectors: &WordVectors) -> Result<Self> {
        let [vocabulary, width] = self.words.dims();
        vectors.check([vocabulary, width])?;
        let words = self.words.map(|old| {
            let device = old.device();
            let mut values = old.into_data().convert::<f32>().iter::<f32>().collect::<Vec<_>>();
            for (id, vector) in &vectors.rows {
                values[*id as usize * width..][..width].copy_from_slice(vector);
            }
            let new = Tensor::from_data(TensorData::new(values, [vocabulary, width]), &device);
            if device.is_autodiff() { new.require_grad() } else { new }
        });
        Ok(Self { words, ..self })
    }

    /// Vectors of the words, `[b·l, e]`.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary.
    pub fn vectors(&self, captions: &TokenBatch) -> Tensor<2> {
        captions.check(self.words.dims()[0]);
        embedding(self.words.val(), &captions.ids, None)
    }

    /// Rows of the words, `[b, l, d]`.
    ///
    /// # Panics
    /// If a word's number is not in the vocabulary.
    pub fn encode(&self, captions: &TokenBatch) -> Tensor<3> {
        let states = self.states(self.vectors(captions), captions);
        let [b, l, d] = states.dims();
        unit_rows(states.reshape([b * l, d])).reshape([b, l, d])
    }

    /// The rows before they are scaled to unit length, `[b, l, d]`: the mean of the states of both directions, zero
    /// beyond a caption's length. The caller may have changed the vectors of the words, for example by dropout.
    ///
    /// # Panics
    /// If there is not one vector per word of the padded batch.
    pub fn states(&self, vectors: Tensor<2>, captions: &TokenBatch) -> Tensor<3> {
        let (b, l, [rows, width]) = (captions.len(), captions.width, vectors.dims());
        captions.check_sizes();
        assert_eq!(rows, b * l, "vectors of the words of a batch");
        let states = self.gru.forward(vectors.reshape([b, l, width]), &captions.lengths);
        let d = states.dims()[2] / 2;
        let mean = (states.clone().narrow(2, 0, d) + states.narrow(2, d, d)) * 0.5;
        let real =
            captions.lengths.iter().flat_map(|&n| (0..l).map(move |j| f32::from(u8::from(j < n))));
        let real = TensorData::new(real.collect::<Vec<f32>>(), [b, l, 1]);
        let real = Tensor::<3>::from_data(real, &mean.device());
        mean * real // states are finite on padding, so the product with 0 is 0
    }
}

/// Divides rows by their length: `x / (‖x‖ + 1e-8)`. The result is slightly shorter than 1.
///
/// # Departures
/// The root has no derivative at 0, and the released programs return NaN there. Here a row of zeros stays zero and has
/// a finite gradient.
pub fn unit_rows(x: Tensor<2>) -> Tensor<2> {
    let squares = (x.clone() * x.clone()).sum_dim(1);
    x / (squares.clamp_min(1e-30).sqrt() + 1e-8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;

    const CAPTIONS: [&[u32]; 3] = [&[2, 5], &[1, 3, 3, 4], &[4]];

    fn model(device: &Device) -> BiGruText {
        BiGruText::new([6, 3, 5], 3, device)
    }

    fn close(got: &[f32], want: &[f32]) {
        assert_eq!(got.len(), want.len());
        let error =
            got.iter().zip(want).map(|(g, w)| (g - w).abs()).max_by(f32::total_cmp).unwrap();
        assert!(error < 2e-6, "off by {error:e}");
    }

    /// The equations in f64: the backward unit begins at the last real word, and the reset gate is applied after the
    /// product.
    #[test]
    fn trap_13_rows_are_the_equations_of_the_unit() {
        let model = model(&Device::flex());
        let got = host(model.encode(&TokenBatch::new(&CAPTIONS)));
        let (words, d) = (host(model.words.val()), 5);
        for (c, caption) in CAPTIONS.iter().enumerate() {
            let x: Vec<&[f32]> = caption.iter().map(|&id| &words[id as usize * 3..][..3]).collect();
            let ahead = by_hand(&model.gru.ahead, &x);
            let backwards: Vec<&[f32]> = x.iter().rev().copied().collect();
            let reverse = by_hand(&model.gru.reverse, &backwards);
            for j in 0..4 {
                let row = &got[(c * 4 + j) * d..][..d];
                if j >= x.len() {
                    assert_eq!(row, [0.0; 5]);
                    continue;
                }
                let mean: Vec<f64> =
                    (0..d).map(|k| (ahead[j][k] + reverse[x.len() - 1 - j][k]) / 2.0).collect();
                let norm = mean.iter().map(|x| x * x).sum::<f64>().sqrt() + 1e-8;
                close(row, &mean.iter().map(|x| (x / norm) as f32).collect::<Vec<_>>());
            }
        }
    }

    /// The states of one direction.
    fn by_hand(gru: &itm_kernels::Gru, x: &[&[f32]]) -> Vec<Vec<f64>> {
        let [w_ih, w_hh] = [&gru.w_ih, &gru.w_hh].map(|w| host(w.val()));
        let [b_ih, b_hh] = [&gru.b_ih, &gru.b_hh].map(|b| host(b.val()));
        let d = b_ih.len() / 3;
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let gates = |w: &[f32], b: &[f32], x: &[f64]| -> Vec<f64> {
            let dot = |g: usize| {
                x.iter().enumerate().map(|(k, x)| x * f64::from(w[k * 3 * d + g])).sum::<f64>()
            };
            (0..3 * d).map(|g| dot(g) + f64::from(b[g])).collect()
        };
        let mut h = vec![0.0; d];
        let step = |x: &&[f32]| {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            let (a, b) = (gates(&w_ih, &b_ih, &x), gates(&w_hh, &b_hh, &h));
            for k in 0..d {
                let (r, z) = (sigmoid(a[k] + b[k]), sigmoid(a[d + k] + b[d + k]));
                let n = (a[2 * d + k] + r * b[2 * d + k]).tanh();
                h[k] = (1.0 - z) * n + z * h[k];
            }
            h.clone()
        };
        x.iter().map(step).collect()
    }

    #[test]
    fn padding_changes_no_row_and_no_gradient_is_lost() {
        let device = Device::flex().autodiff();
        let model = model(&device);
        let weights = |n, l| itm_kernels::uniform([n, l, 5], 1.0, 4, &device);
        let grads = |captions: &[&[u32]], width| {
            let rows = model.encode(&TokenBatch::padded_to(captions, width));
            let padded = weights(captions.len(), 4);
            let padded =
                Tensor::cat(vec![padded, Tensor::ones([captions.len(), width - 4, 5], &device)], 1);
            let loss = (rows.clone() * padded).sum();
            let grads = loss.backward();
            let of = |x: Tensor<2>| host(x.grad(&grads).expect("a gradient"));
            let both = [of(model.words.val()), of(model.gru.reverse.w_hh.val())].concat();
            assert!(both.iter().all(|x| x.is_finite()) && both.iter().any(|x| x.abs() > 1e-4));
            (host(rows.narrow(1, 0, 4)), both)
        };
        let (rows, gradient) = grads(&CAPTIONS, 4);
        let (wide_rows, wide_gradient) = grads(&CAPTIONS, 9);
        assert_eq!(rows, wide_rows);
        close(&wide_gradient, &gradient);
        let alone = host(model.encode(&TokenBatch::new(&CAPTIONS[2..])));
        close(&alone, &rows[2 * 20..][..5]);
    }

    #[test]
    fn trap_03_a_row_of_zeros_has_a_finite_gradient() {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::from_floats([[0.0, 0.0], [3.0, 4.0]], &device).require_grad();
        let y = unit_rows(x.clone());
        close(&host(y.clone()), &[0.0, 0.0, 0.6, 0.8]);
        let d = host(x.grad(&(y.slice([1..2, 0..2]).sum()).backward()).unwrap());
        close(&d, &[0.0, 0.0, (1.0 - 0.6 * 1.4) / 5.0, (1.0 - 0.8 * 1.4) / 5.0]);
    }

    /// Words 2 and 4 get vectors, the other words keep theirs, and all still learn.
    #[test]
    fn ready_vectors_replace_the_random_ones() {
        let device = Device::flex().autodiff();
        let model = || model(&device);
        let rows = vec![(2, vec![1.0, 2.0, 3.0]), (4, vec![4.0, 5.0, 6.0])];
        let vectors = WordVectors { width: 3, vocabulary: 6, rows };
        let with = model().with_vectors(&vectors).unwrap();
        let mut want = host(model().words.val());
        want[6..9].copy_from_slice(&[1.0, 2.0, 3.0]);
        want[12..15].copy_from_slice(&[4.0, 5.0, 6.0]);
        assert_eq!(host(with.words.val()), want);
        let loss = with.encode(&TokenBatch::new(&CAPTIONS)).sum();
        assert!(with.words.val().grad(&loss.backward()).is_some());

        let (mut rows, vector) = (vectors.rows.clone(), |id, row: &[f32]| vec![(id, row.to_vec())]);
        rows.reverse();
        let turned = WordVectors { rows, ..vectors };
        assert_eq!(host(model().with_vectors(&turned).unwrap().words.val()), want);
        for (other, line) in [
            (
                WordVectors { width: 4, ..vectors.clone() },
                ": expected width 3 for a vocabulary of 6",
            ),
            (
                WordVectors { vocabulary: 5, ..vectors.clone() },
                ": expected width 3 for a vocabulary",
            ),
            (WordVectors { rows: vector(6, &[0.0; 3]), ..vectors }, ": expected numbers of words"),
            (WordVectors { rows: vector(1, &[0.0; 2]), ..vectors }, ", word 1: expected 3 values"),
            (
                WordVectors { rows: vector(1, &[0.0, f32::NAN, 0.0]), ..vectors },
                ", word 1: expected finite",
            ),
        ] {
            let got = model().with_vectors(&other).unwrap_err().to_string();
            assert!(got.starts_with(&format!("word vectors{line}")), "{got}");
        }
    }
}
