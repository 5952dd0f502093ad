//! Attention between words and regions in burn's own primitives. Here texts are padded too. Matrices are [items of
//! the keys, items of the queries, q, k] .

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata, get_device_settings};
use burn::tensor::{Shape, TensorData};

use super::{at_most, is_zero};
use crate::cross_attention::{Cosine, CrossSpec, KeyWeights, Negative, Norm, Pool, Side, Spreads};

/// The value of padding, below every product.
const NOTHING: f32 = -1e30;

/// Products `[words, n · r]` and Gram matrices `[n, r, r]`, `[m, l, l]` of regions `[n, r, d]` and words
/// `[words, d]`, by this product of matrices. Shorter texts are padded with the first word of the batch.
pub(crate) fn products<B: Backend>(
    regions: FloatTensor<B>,
    words: FloatTensor<B>,
    counts: &[usize],
    matmul: impl Fn(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
) -> [FloatTensor<B>; 3] {
    let [n, r, d] = regions.shape().dims();
    let (m, l) = (counts.len(), counts.iter().copied().max().unwrap_or(0));
    let rows = B::float_reshape(regions.clone(), Shape::new([n * r, d]));
    let products = matmul(words.clone(), B::float_transpose(rows));
    let texts = B::float_select(words.clone(), 0, padded_rows::<B>(counts, l, &words.device()));
    let texts = B::float_reshape(texts, Shape::new([m, l, d]));
    let gram = |x: FloatTensor<B>| matmul(x.clone(), B::float_swap_dims(x, 1, 2));
    [products, gram(regions), gram(texts)]
}

/// `S`, `[n, m]`, from products `[words, n · r]` and Gram matrices `[n, r, r]`, `[m, l, l]`.
pub(crate) fn forward<B: Backend>(
    products: FloatTensor<B>,
    region_grams: FloatTensor<B>,
    word_grams: FloatTensor<B>,
    spec: &CrossSpec,
) -> FloatTensor<B> {
    let words_ask = spec.rule.queries == Side::Words;
    let [n, r, _] = region_grams.shape().dims();
    let [m, l, _] = word_grams.shape().dims();
    let device = products.device();
    let s = B::float_select(products, 0, padded_rows::<B>(&spec.words, l, &device)); // [m·l, n·r]
    let s = B::float_reshape(s, Shape::new([m, l, n, r]));
    let order = if words_ask { [2, 0, 1, 3] } else { [0, 2, 3, 1] };
    let s = B::float_permute(s, &order);
    let (keys, queries) =
        if words_ask { (&spec.regions, &spec.words) } else { (&spec.words, &spec.regions) };
    let (of_keys, of_queries) =
        if words_ask { (region_grams, word_grams) } else { (word_grams, region_grams) };
    let [a, b, q, k] = s.shape().dims();
    let pairs = Pairs::<B> {
        real: mask::<B, 4>([a, b, q, k], |[i, j, q, k]| q < queries[j] && k < keys[i], &device),
        asks: mask::<B, 4>([a, b, q, 1], |[_, j, q, _]| q < queries[j], &device),
        t: threshold::<B>(spec, words_ask, &device),
        counts: queries.clone(),
        of_keys,
        of_queries,
    };
    let s = B::float_mul(s, pairs.real.clone());
    let mut parts = vec![];
    if let Some(negative) = &spec.rule.negative {
        parts.push(pairs.negative(s.clone(), negative));
    }
    if let Some(cosine) = &spec.rule.cosine {
        parts.push(pairs.cosine(s.clone(), cosine));
    }
    if let Some(weights) = &spec.rule.relevance {
        let w = pairs.weigh(s.clone(), weights);
        parts.push(B::float_sum_dim(B::float_mul(w, s.clone()), 3));
    }
    let nothing = B::float_mul_scalar(pairs.asks.clone(), 0.0f32.into());
    let parts = parts.into_iter().fold(nothing, B::float_add);
    let scores = pairs.pool(B::float_mul(parts, pairs.asks.clone()), &spec.rule.pool);
    let scores = B::float_reshape(scores, Shape::new([a, b]));
    if words_ask { scores } else { B::float_transpose(scores) }
}

/// All pairs of a batch.
struct Pairs<B: Backend> {
    /// 1 if query and key are real, 0 for padding.
    real: FloatTensor<B>,
    /// 1 if the query is real, `[a, b, q, 1]`.
    asks: FloatTensor<B>,
    /// `[a or 1, b or 1, 1, 1]`
    t: FloatTensor<B>,
    /// Number of queries of each item.
    counts: Vec<usize>,
    of_keys: FloatTensor<B>,
    of_queries: FloatTensor<B>,
}

impl<B: Backend> Pairs<B> {
    /// `x`, `[a, b, q, 1]`; 0 on the padding.
    fn best(&self, s: FloatTensor<B>) -> FloatTensor<B> {
        let most = B::float_max_dim(self.cut(s), 3);
        B::float_mul(B::float_sub(most, self.t.clone()), self.asks.clone())
    }

    /// The values, with padding set far below them.
    fn cut(&self, s: FloatTensor<B>) -> FloatTensor<B> {
        B::float_mask_fill(s, is_zero::<B>(&self.real), NOTHING.into())
    }

    fn negative(&self, s: FloatTensor<B>, negative: &Negative) -> FloatTensor<B> {
        let x = self.best(s);
        let (mask, value) = match &negative.spread {
            None => (x.clone(), x),
            Some(by) => {
                let mixed = self.mixed(x.clone(), by.scale);
                (mixed.clone(), if by.what == Spreads::Mask { x } else { mixed })
            }
        };
        if !negative.masked {
            return value;
        }
        let truth = get_device_settings::<B>(&mask.device()).bool_dtype;
        let others = B::float_greater_equal_elem(mask, 0.0f32.into(), truth);
        B::float_mask_fill(value, others, 0.0f32.into())
    }

    /// `x̂`; its weights are constants.
    fn mixed(&self, x: FloatTensor<B>, scale: f32) -> FloatTensor<B> {
        let [a, b, q, _] = x.shape().dims();
        let counts = &self.counts;
        let real = mask::<B, 3>([b, q, q], |[j, p, k]| p < counts[j] && k < counts[j], &x.device());
        let logits = B::float_mul_scalar(self.of_queries.clone(), scale.into());
        let logits = B::float_mask_fill(logits, is_zero::<B>(&real), NOTHING.into());
        let weights = B::float_detach(B::float_mul(softmax::<B>(logits, 2), real));
        let x = B::float_permute(B::float_reshape(x, Shape::new([a, b, q])), &[1, 2, 0]);
        let mixed = B::float_permute(B::float_matmul(weights, x), &[2, 0, 1]);
        B::float_reshape(mixed, Shape::new([a, b, q, 1]))
    }

    fn cosine(&self, s: FloatTensor<B>, cosine: &Cosine) -> FloatTensor<B> {
        let [a, b, q, k] = s.shape().dims();
        let w = self.weigh(s.clone(), &cosine.weights);
        let rows = B::float_reshape(w.clone(), Shape::new([a, b * q, k]));
        let y = B::float_matmul(rows, self.of_keys.clone());
        let y = B::float_reshape(y, Shape::new([a, b, q, k]));
        let mut squares = B::float_sum_dim(B::float_mul(w.clone(), y), 3);
        if !cosine.unit_queries {
            let eye = mask::<B, 3>([1, q, q], |[_, p, k]| p == k, &s.device());
            let lengths = B::float_sum_dim(B::float_mul(self.of_queries.clone(), eye), 2);
            squares = B::float_mul(squares, B::float_reshape(lengths, Shape::new([1, b, q, 1])));
        }
        let short = at_most::<B>(&squares, 1e-16);
        // Short norms take the root of a constant, because the mask would turn an infinite slope into NaN.
        let norm = B::float_sqrt(B::float_mask_fill(squares, short.clone(), 1.0f32.into()));
        let norm = B::float_mask_fill(norm, short, 1e-8f32.into());
        B::float_div(B::float_sum_dim(B::float_mul(w, s), 3), norm)
    }

    fn weigh(&self, s: FloatTensor<B>, weights: &KeyWeights) -> FloatTensor<B> {
        match *weights {
            KeyWeights::Above { scale } => self.above(s, scale),
            KeyWeights::Softmax { scale, leak, norm } => {
                let b = scaled::<B>(leaky::<B>(s, leak), norm);
                let logits = self.cut(B::float_mul_scalar(b, scale.into()));
                B::float_mul(softmax::<B>(logits, 3), self.real.clone())
            }
        }
    }

    fn above(&self, s: FloatTensor<B>, scale: f32) -> FloatTensor<B> {
        let best = B::float_clamp_min(B::float_detach(self.best(s.clone())), 0.0f32.into());
        let z = B::float_mul(B::float_sub(s, self.t.clone()), self.real.clone());
        let below = at_most::<B>(&z, 0.0);
        let shifted = B::float_mul_scalar(B::float_sub(z, best.clone()), scale.into());
        let e = B::float_exp(B::float_mask_fill(shifted, below.clone(), 0.0f32.into()));
        let e = B::float_mask_fill(e, below, 0.0f32.into());
        let tiny = B::float_exp(B::float_mul_scalar(best, (-scale).into()));
        let sum =
            B::float_add(B::float_sum_dim(e.clone(), 3), B::float_mul_scalar(tiny, 1e-8f32.into()));
        B::float_div(e, sum)
    }

    /// `[a, b, 1, 1]`
    fn pool(&self, parts: FloatTensor<B>, pool: &Pool) -> FloatTensor<B> {
        let b = self.counts.len();
        match *pool {
            Pool::Sum => B::float_sum_dim(parts, 2),
            Pool::Mean => {
                let shares = self.counts.iter().map(|&n| 1.0 / n as f32).collect();
                let shares = TensorData::new::<f32, _>(shares, [1, b, 1, 1]);
                let shares = B::float_from_data(shares, &parts.device());
                B::float_mul(B::float_sum_dim(parts, 2), shares)
            }
            Pool::Max => B::float_max_dim(self.asked(parts), 2),
            Pool::LogSumExp { scale } => {
                let parts = self.asked(parts);
                let most = B::float_detach(B::float_max_dim(parts.clone(), 2));
                let e = B::float_exp(B::float_mul_scalar(
                    B::float_sub(parts, most.clone()),
                    scale.into(),
                ));
                let log = B::float_log(B::float_sum_dim(e, 2));
                B::float_add(B::float_div_scalar(log, scale.into()), most)
            }
        }
    }

    /// The parts, with padded queries set far below them.
    fn asked(&self, parts: FloatTensor<B>) -> FloatTensor<B> {
        B::float_mask_fill(parts, is_zero::<B>(&self.asks), NOTHING.into())
    }
}

fn leaky<B: Backend>(s: FloatTensor<B>, leak: f32) -> FloatTensor<B> {
    let below = at_most::<B>(&s, 0.0);
    let above = B::float_mask_fill(s.clone(), below, 0.0f32.into());
    B::float_add(above.clone(), B::float_mul_scalar(B::float_sub(s, above), leak.into()))
}

fn scaled<B: Backend>(a: FloatTensor<B>, norm: Norm) -> FloatTensor<B> {
    if norm == Norm::None {
        return a;
    }
    let squares = B::float_sum_dim(B::float_mul(a.clone(), a.clone()), 2);
    let none = is_zero::<B>(&squares);
    let root = B::float_sqrt(B::float_mask_fill(squares, none.clone(), 1.0f32.into()));
    let root = B::float_mask_fill(root, none, 0.0f32.into());
    B::float_div(a, B::float_add_scalar(root, 1e-8f32.into()))
}

fn softmax<B: Backend>(logits: FloatTensor<B>, dim: usize) -> FloatTensor<B> {
    let most = B::float_detach(B::float_max_dim(logits.clone(), dim));
    let e = B::float_exp(B::float_sub(logits, most));
    B::float_div(e.clone(), B::float_sum_dim(e, dim))
}

/// 1 for places that count, else 0.
fn mask<B: Backend, const D: usize>(
    shape: [usize; D],
    counts: impl Fn([usize; D]) -> bool,
    device: &B::Device,
) -> FloatTensor<B> {
    let value = |mut at: usize| {
        let mut place = [0; D];
        for (place, size) in place.iter_mut().zip(shape).rev() {
            (*place, at) = (at % size, at / size);
        }
        f32::from(u8::from(counts(place)))
    };
    let values = (0..shape.iter().product()).map(value).collect();
    B::float_from_data(TensorData::new::<f32, _>(values, shape), device)
}

/// Row index of each word of texts padded to `l`; padding repeats row 0.
fn padded_rows<B: Backend>(words: &[usize], l: usize, device: &B::Device) -> IntTensor<B> {
    let mut rows: Vec<i64> = vec![];
    let mut first = 0;
    for &n in words {
        rows.extend((0..l).map(|k| if k < n { (first + k) as i64 } else { 0 }));
        first += n;
    }
    let n = rows.len();
    B::int_from_data(TensorData::new(rows, [n]), device)
}

fn threshold<B: Backend>(spec: &CrossSpec, words_ask: bool, device: &B::Device) -> FloatTensor<B> {
    let m = spec.thresholds.len();
    let shape = if words_ask { [1, m, 1, 1] } else { [m, 1, 1, 1] };
    B::float_from_data(TensorData::new::<f32, _>(spec.thresholds.clone(), shape), device)
}
