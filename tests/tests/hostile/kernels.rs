//! Vector halves of the kernels, on slices.

use itm_kernels::activation::Activation;
use itm_kernels::attention::{self, Heads};
use itm_kernels::bag::{self, Bags};
use itm_kernels::bf16::{LeftOperand, RightOperand, product_new};
use itm_kernels::cross_attention::{self, Inputs, ItemRows, Pool, Rule, Side, parts, scores};
use itm_kernels::dropout::Mask;
use itm_kernels::gru::{self, GruWeights, Packing};
use itm_kernels::int16::{self, PackedColumns, PackedRows};
use itm_kernels::layer_norm::{self, Norm};
use itm_kernels::linear;
use itm_kernels::update::{AdamStep, adam, ema};
use itm_kernels::{Matrix, Precision, embedding, order, rows};

use crate::HUGE;

fn heads(heads: usize, keys: &[usize]) -> Heads {
    Heads { heads, keys: keys.to_vec(), causal: false, dropout: None, precision: Precision::F32 }
}

fn dropped(rate: f32) -> Heads {
    Heads { dropout: Some((rate, 7)), ..heads(1, &[1]) }
}

fn one_bag(id: u32) -> Bags {
    let mut bags = Bags::default();
    bags.push([(id, 1.0)]);
    bags
}

fn operands() -> (LeftOperand, RightOperand) {
    let ones = [1.0f32; 9];
    (LeftOperand::pack(Matrix::new(&ones, 3, 3)), RightOperand::pack(Matrix::new(&ones, 3, 3)))
}

const RULE: Rule =
    Rule { queries: Side::Words, negative: None, cosine: None, relevance: None, pool: Pool::Mean };

fn inputs<'a>(products: &'a [f32], regions: &'a [usize], words: &'a [usize]) -> Inputs<'a> {
    Inputs { products, region_grams: &[1.0], word_grams: &[1.0], regions, words }
}

const UNIT: GruWeights =
    GruWeights { w_ih: &[0.1; 3], w_hh: &[0.1; 3], b_ih: &[0.1; 3], b_hh: &[0.1; 3] };

const WIDE: GruWeights =
    GruWeights { w_ih: &[0.1; 6], w_hh: &[0.1; 12], b_ih: &[0.1; 6], b_hh: &[0.1; 6] };

#[test]
fn sizes_that_do_not_fit() {
    panics! {
        "a 9223372036854775808 × 2 matrix in 0 values": Matrix::new(&[], HUGE, 2),
        "a 9223372036854775808 × 0 matrix in 0 values": Matrix::new(&[], HUGE, 0),
        "a 2 × 2 matrix in 3 values": Matrix::new(&[1.0; 3], 2, 2),
        "a 9223372036854775808 × 9223372036854775808 matrix:": Matrix::strided(&[1.0; 3], [HUGE, HUGE], [1, 1]),
        "a 9223372036854775808 × 9223372036854775808 matrix:": Matrix::strided(&[1.0], [HUGE, HUGE], [0, 0]),
        "the last of 1 × 1 is value 0 of 0": Matrix::strided(&[], [1, 1], [0, 0]),
        "0 heads for 1": attention::forward(&[1.0; 3], 1, &heads(0, &[1])),
        "2 heads for 1": attention::forward(&[1.0; 3], 1, &heads(2, &[1])),
        "row 0: 0 keys, not 1 to 1": attention::forward(&[1.0; 3], 1, &heads(1, &[0])),
        "row 0: 2 keys, not 1 to 1": attention::forward(&[1.0; 3], 1, &heads(1, &[2])),
        "row 0: 18446744073709551615 keys, not 1 to 1": attention::forward(&[1.0; 3], 1, &heads(1, &[usize::MAX])),
        "3 values for queries, keys and values of 1 rows of 3 × 0": attention::forward(&[1.0; 3], 0, &heads(1, &[1])),
        "3 values for queries, keys and values of 1 rows of 0 ×": attention::forward(&[1.0; 3], HUGE, &heads(1, &[1])),
        "3 values for queries, keys and values of 2 rows of 0 ×": attention::forward(&[1.0; 3], HUGE, &heads(1, &[1, 1])),
        "4 values for queries, keys and values of 1 rows of 1 × 1": attention::forward(&[1.0; 4], 1, &heads(1, &[1])),
        "3 values for queries, keys and values of 0 rows of 3 × 1": attention::forward(&[1.0; 3], 1, &heads(1, &[])),
        "dropout NaN, not in 0 to 1": attention::forward(&[1.0; 3], 1, &dropped(f32::NAN)),
        "dropout 1, not in 0 to 1": attention::forward(&[1.0; 3], 1, &dropped(1.0)),
        "dropout -1, not in 0 to 1": attention::forward(&[1.0; 3], 1, &dropped(-1.0)),
        "values of the gradient": attention::backward(&[1.0; 3], 1, &[1.0; 2], &heads(1, &[1])),
        "id 0 is row 2 of a table of 2": bag::forward(&[1.0; 4], 2, &one_bag(2)),
        "id 0 is row 4294967295 of a table of 2": bag::forward(&[1.0; 4], 2, &one_bag(u32::MAX)),
        "id 0 is row 0 of a table of 0": bag::forward(&[1.0; 4], HUGE, &one_bag(0)),
        "id 0 is row 2 of a table of 0": bag::forward(&[1.0; 4], usize::MAX, &one_bag(2)),
        "row 3 of a table of 3": bag::backward(&[1.0; 2], 2, &one_bag(3), 3),
        "gradients of 1 bags of 2": bag::backward(&[1.0; 3], 2, &one_bag(0), 3),
        "no memory for 9223372036854775808 rows of 2 values": bag::backward(&[1.0; 2], 2, &one_bag(0), HUGE),
        "no memory for 1 rows of 9223372036854775808 values": bag::backward(&[], HUGE, &one_bag(0), 2),
        "dropout 1, not in 0 to 1": Mask::new(1.0, 7),
        "dropout -0.1, not in 0 to 1": Mask::new(-0.1, 7),
        "dropout NaN, not in 0 to 1": Mask::new(f64::NAN, 7),
        "values of the two summands": Mask::new(0.5, 7).apply_and_add(&mut [1.0; 3], &[1.0; 2]),
        "id 0 is row 2 of a table of 2": embedding::forward(&[1.0; 4], 2, &[2]),
        "id 0 is row 0 of a table of 0": embedding::forward(&[1.0; 4], HUGE, &[0, 1]),
        "id 0 is row 1 of a table of 0": embedding::forward(&[1.0; 4], usize::MAX, &[1]),
        "4 values in rows of 0": layer_norm::forward(&[1.0; 4], Norm { gamma: &[], beta: &[], epsilon: 1e-5 }),
        "4 values in rows of 3": layer_norm::forward(&[1.0; 4], Norm { gamma: &[1.0; 3], beta: &[1.0; 3], epsilon: 1e-5 }),
        "widths of γ and β": layer_norm::forward(&[1.0; 4], Norm { gamma: &[1.0; 2], beta: &[1.0; 3], epsilon: 1e-5 }),
        "ε of a norm: NaN, not a number from 0": layer_norm::forward(&[1.0; 4], Norm { gamma: &[1.0; 2], beta: &[1.0; 2], epsilon: f32::NAN }),
        "ε of a norm: -1, not a number from 0": layer_norm::forward(&[1.0; 4], Norm { gamma: &[1.0; 2], beta: &[1.0; 2], epsilon: -1.0 }),
        "statistics": layer_norm::backward(&[1.0; 4], &[1.0; 2], &[1.0; 5], &mut [1.0; 4]),
        "values of the gradient": layer_norm::backward(&[1.0; 4], &[1.0; 2], &[1.0; 6], &mut [1.0; 3]),
        "4 weights for 0 outputs": linear::forward(&[1.0; 4], &[1.0; 4], &[]),
        "4 inputs in rows of 0": linear::forward(&[1.0; 4], &[], &[1.0]),
        "3 weights for 2 outputs": linear::forward(&[1.0; 4], &[1.0; 3], &[1.0; 2]),
        "3 inputs in rows of 2": linear::forward(&[1.0; 3], &[1.0; 4], &[1.0; 2]),
        "a map to 0 outputs": linear::input_gradient(&[1.0; 4], &[1.0; 4], 0),
        "a 1 × 2 matrix in 3 values": linear::input_gradient(&[1.0; 3], &[1.0; 4], 2),
        "a 0 × 18446744073709551615 matrix in 3 values": linear::input_gradient(&[1.0; 3], &[1.0; 4], usize::MAX),
        "a map to 0 outputs": linear::weight_gradient(&[1.0; 4], &[1.0; 4], 0),
        "a 2 × 2 matrix in 5 values": linear::weight_gradient(&[1.0; 5], &[1.0; 4], 2),
        "a 0 × 0 matrix in 5 values": linear::weight_gradient(&[1.0; 5], &[1.0; 4], usize::MAX),
        "4 values in rows of 0": linear::bias_gradient(&[1.0; 4], 0),
        "4 values in rows of 3": linear::bias_gradient(&[1.0; 4], 3),
        "4 values in rows of 0": order::forward(&[1.0; 4], &[1.0; 4], 0),
        "3 values in rows of 2": order::forward(&[1.0; 4], &[1.0; 3], 2),
        "no memory for 70368744177664 values": order::forward(&vec![0.0; 1 << 23], &vec![0.0; 1 << 23], 1),
        "scores": order::backward([&[1.0; 4], &[1.0; 4]], &[1.0; 3], &[1.0; 4], 2),
        "values of the gradient": order::backward([&[1.0; 4], &[1.0; 4]], &[1.0; 4], &[1.0; 3], 2),
        "4 values in rows of 0": rows::normalize(&[1.0; 4], 0),
        "4 values in rows of 3": rows::normalize(&[1.0; 4], 3),
        "4 values in rows of 18446744073709551615": rows::normalize(&[1.0; 4], usize::MAX),
        "3 norms for 4 values": rows::normalize_backward(&[1.0; 4], &[1.0; 3], &[1.0; 4]),
        "0 norms for 4 values": rows::normalize_backward(&[1.0; 4], &[], &[1.0; 4]),
        "values of the gradient": rows::normalize_backward(&[1.0; 4], &[1.0; 2], &[1.0; 3]),
        "0 sequences of width 2": rows::masked_mean(&[1.0; 4], &[], 2),
        "1 sequences of width 0": rows::masked_mean(&[1.0; 4], &[1], 0),
        "sequence 0: length 0, not 1 to 2": rows::masked_mean(&[1.0; 4], &[0], 2),
        "sequence 0: length 3, not 1 to 2": rows::masked_mean(&[1.0; 4], &[3], 2),
        "values of 2 sequences": rows::masked_mean(&[1.0; 4], &[1, 1], HUGE),
        "values of 2 sequences": rows::masked_mean(&[1.0; 5], &[1, 1], 2),
        "0 sequences of width 4": rows::masked_mean_backward(&[1.0; 4], &[], 2),
        "sequence 0: length 1, not 1 to 0": rows::masked_mean_backward(&[1.0; 4], &[1, 1], 0),
        "9223372036854775808 steps, not at most 16777216": rows::masked_mean_backward(&[1.0; 4], &[1, 1], HUGE),
        "1152921504606846976 steps, not at most 16777216": rows::masked_mean_backward(&[1.0; 4], &[1, 1], 1 << 60),
        "no memory for 70368744177664 values": rows::masked_mean_backward(&vec![0.0; 1 << 22], &[1], 1 << 24),
        "5 gradients of 2 sequences": rows::masked_mean_backward(&[1.0; 5], &[1, 1], 2),
        "β₁ of Adam: 1, not in 0 to 1e0": AdamStep::new([1.0, 0.999], 1e-8, 0.0, 1e-3, 1.0, 1),
        "β₂ of Adam: NaN, not in 0 to 1e0": AdamStep::new([0.9, f64::NAN], 1e-8, 0.0, 1e-3, 1.0, 1),
        "β₁ of Adam: -0.9, not in 0 to 1e0": AdamStep::new([-0.9, 0.999], 1e-8, 0.0, 1e-3, 1.0, 1),
        "update 0 at the rate 0.001": AdamStep::new([0.9, 0.999], 1e-8, 0.0, 1e-3, 1.0, 0),
        "ε of Adam: NaN, not in 0 to 1.7976931348623157e308": AdamStep::new([0.9, 0.999], f64::NAN, 0.0, 1e-3, 1.0, 1),
        "λ of Adam: inf, not in 0 to 1.7976931348623157e308": AdamStep::new([0.9, 0.999], 1e-8, f64::INFINITY, 1e-3, 1.0, 1),
        "c of Adam: NaN, not in 0 to 1.7976931348623157e308": AdamStep::new([0.9, 0.999], 1e-8, 0.0, 1e-3, f64::NAN, 1),
        "c of Adam: -1, not in 0 to 1.7976931348623157e308": AdamStep::new([0.9, 0.999], 1e-8, 0.0, 1e-3, -1.0, 1),
        "update 1 at the rate NaN": AdamStep::new([0.9, 0.999], 1e-8, 0.0, f64::NAN, 1.0, 1),
        "gradient and moments of a parameter of 2 values": adam(&mut [1.0; 2], &[1.0], &mut [0.0; 2], &mut [0.0; 2], &AdamStep::new([0.9, 0.999], 1e-8, 0.0, 1e-3, 1.0, 1)),
        "values of a parameter and of its average": ema(&mut [1.0; 2], &[1.0], 0.9),
        "momentum NaN, not in 0 to 1": ema(&mut [1.0; 2], &[1.0; 2], f64::NAN),
        "momentum 2, not in 0 to 1": ema(&mut [1.0; 2], &[1.0; 2], 2.0),
        "a batch needs at least one sequence": Packing::new(&[], 2),
        "sequence 0: length 0, not 1 to 2": Packing::new(&[0], 2),
        "sequence 0: length 3, not 1 to 2": Packing::new(&[3], 2),
        "9223372036854775808 steps, not at most 16777216": Packing::new(&[1], HUGE),
        "0 units, not one or two": gru::forward(&[1.0; 2], &[], &Packing::new(&[2], 2)),
        "3 units, not one or two": gru::forward(&[1.0; 2], &[UNIT, UNIT, UNIT], &Packing::new(&[2], 2)),
        "x has 3 values, not 1 × 2 × 1": gru::forward(&[1.0; 3], &[UNIT], &Packing::new(&[2], 2)),
        "0 input biases are not 3h": gru::forward(&[1.0; 2], &[GruWeights { b_ih: &[], ..UNIT }], &Packing::new(&[2], 2)),
        "hidden biases beside 3 input biases": gru::forward(&[1.0; 2], &[GruWeights { b_hh: &[], ..UNIT }], &Packing::new(&[2], 2)),
        "x has 2 values, not 1 × 2 × 0": gru::forward(&[1.0; 2], &[GruWeights { w_ih: &[], ..UNIT }], &Packing::new(&[2], 2)),
        "w_hh is not [1, 3]": gru::forward(&[1.0; 2], &[GruWeights { w_hh: &[], ..UNIT }], &Packing::new(&[2], 2)),
        "widths of the two units": gru::forward(&[1.0; 2], &[UNIT, WIDE], &Packing::new(&[2], 2)),
        "widths of the two units": gru::backward(&[1.0], &[WIDE, UNIT], &Packing::new(&[1], 1), &[1.0; 4], &[&[1.0; 8], &[1.0; 4]], &[1.0; 4]),
        "values of the output": gru::backward(&[1.0; 2], &[UNIT], &Packing::new(&[2], 2), &[1.0; 1], &[&[1.0; 8]], &[1.0; 2]),
        "values of the gates of 2 rows": gru::backward(&[1.0; 2], &[UNIT], &Packing::new(&[2], 2), &[1.0; 2], &[&[1.0; 7]], &[1.0; 2]),
        "units with gates": gru::backward(&[1.0; 2], &[UNIT], &Packing::new(&[2], 2), &[1.0; 2], &[], &[1.0; 2]),
        "values of the output's gradient": gru::backward(&[1.0; 2], &[UNIT], &Packing::new(&[2], 2), &[1.0; 2], &[&[1.0; 8]], &[1.0; 1]),
        "1 values for rows of 3": product_new(Some(&[1.0]), &operands().0, &operands().1),
        "product of 3 × 3 and 2 × 1": product_new(None, &operands().0, &RightOperand::pack(Matrix::new(&[1.0; 2], 2, 1))),
        "no memory for 70368744177664 values": product_new(None, &LeftOperand::pack(Matrix::new(&[], 1 << 23, 0)), &RightOperand::pack(Matrix::new(&[], 0, 1 << 23))),
        "whole rows of 2 values": PackedRows::default().fill(&[1.0; 3], 2, 1.0),
        "whole rows of 0 values": PackedRows::default().fill(&[1.0; 3], 0, 1.0),
        "rows of 18446744073709551615 values at most 16777216,": PackedRows::default().fill(&[], usize::MAX, 1.0),
        "whole rows of 2 values": PackedColumns::default().fill(&[1.0; 3], 2, 1.0),
        "whole rows of 0 values": PackedColumns::default().fill(&[1.0; 3], 0, 1.0),
        "rows of 18446744073709551615 values at most 16777216,": PackedColumns::default().fill(&[], usize::MAX, 1.0),
        "pairs of values in a row and in a column": int16_product(2, 3, 0..1),
        "rows 0..9 of 2": int16_product(2, 2, 0..9),
        "rows 9223372036854775808..9223372036854775809 of 2": int16_product(2, 2, HUGE..HUGE + 1),
        "0 rows of 0 in 0 values": ItemRows::new(vec![], 0, &[]),
        "an item without a row": ItemRows::new(vec![1.0], 1, &[1, 0]),
        "2 rows of 1 in 1 values": ItemRows::new(vec![1.0], 1, &[2]),
        "as many rows as memory can hold": ItemRows::new(vec![1.0], 1, &[HUGE, HUGE]),
        "2 rows of 9223372036854775808 in 0 values": ItemRows::new(vec![], HUGE, &[1, 1]),
        "widths of regions and words": scores(&ItemRows::new(vec![1.0], 1, &[1]), &ItemRows::new(vec![1.0; 2], 2, &[1]), [0..1, 0..1], 0.0, &RULE),
        "images 0..2 of 1": scores(&ItemRows::new(vec![1.0], 1, &[1]), &ItemRows::new(vec![1.0; 2], 1, &[2]), [0..2, 0..1], 0.0, &RULE),
        "texts 0..2 of 1": scores(&ItemRows::new(vec![1.0], 1, &[1]), &ItemRows::new(vec![1.0; 2], 1, &[2]), [0..1, 0..2], 0.0, &RULE),
        "images 9223372036854775808..18446744073709551615 of 1": scores(&ItemRows::new(vec![1.0], 1, &[1]), &ItemRows::new(vec![1.0; 2], 1, &[2]), [HUGE..usize::MAX, 0..1], 0.0, &RULE),
        "rows of 0 values": parts(&[1.0], &[1.0], 0, 0.0, &RULE),
        "a 1 × 2 matrix in 3 values": parts(&[1.0; 2], &[1.0; 3], 2, 0.0, &RULE),
        "image 0 has nothing to compare": parts(&[], &[1.0], 1, 0.0, &RULE),
        "1 products of 2 words and 1 images": cross_attention::forward(&inputs(&[1.0], &[1], &[2]), &RULE, &[0.0]),
        "thresholds of the texts": cross_attention::forward(&inputs(&[1.0], &[1], &[1]), &RULE, &[]),
        "1 Gram values: 1 images of regions, at most 0": cross_attention::forward(&inputs(&[], &[0], &[1]), &RULE, &[0.0]),
        "0 products of 2 words and 2 images": cross_attention::forward(&inputs(&[], &[HUGE, 1], &[2]), &RULE, &[0.0]),
        "as many rows as memory can hold": cross_attention::forward(&inputs(&[], &[1], &[HUGE, HUGE]), &RULE, &[0.0; 2]),
        "values side by side": Activation::Gelu.backward(&[1.0; 2], &mut [1.0; 3]),
    }
}

fn int16_product(dim: usize, other: usize, some: std::ops::Range<usize>) {
    let (mut rows, mut columns) = (PackedRows::default(), PackedColumns::default());
    rows.fill(&vec![1.0; 2 * dim], dim, 1.0);
    columns.fill(&vec![1.0; 2 * other], other, 1.0);
    int16::product(&rows, some, &columns, &mut Vec::new());
}
