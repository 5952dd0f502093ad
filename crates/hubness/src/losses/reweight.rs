//! Eq. 4: scores reweighted by how crowded their neighbourhoods are.

use burn::tensor::{Bool, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::select::{index, largest};

/// Which scores are reweighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReweightScope {
    /// All scores, positives included (as printed).
    #[default]
    All,
    /// Only negatives; `S′_ii = S_ii`.
    Negatives,
}

/// What the neighbourhoods of an entry leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exclusion {
    /// The entry itself: `K₁ = kNN(i, T∖{t})`, `K₂ = kNN(t, I∖{i})` (as printed).
    #[default]
    Pair,
    /// The true pair: row `i` leaves out its own text, column `t` its own image. Then `W_it = exp(u_i + v_t)`.
    Positive,
}

/// Options of Eq. 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HubOptions {
    /// k: 3 in the paper, 1 in row 2.23.
    pub neighbours: usize,
    /// Which scores are reweighted.
    pub reweight: ReweightScope,
    /// What the neighbourhoods of an entry leave out.
    pub exclude: Exclusion,
    /// Whether the gradient treats the factors as constants. The paper never says so; the AAAI loss does it.
    pub detach: bool,
}

impl Default for HubOptions {
    /// The values of the paper.
    fn default() -> Self {
        Self {
            neighbours: 3,
            reweight: ReweightScope::All,
            exclude: Exclusion::Pair,
            detach: false,
        }
    }
}

/// `S′` of Eq. 4: every score times the factor of its neighbourhoods.
///
/// ```text
/// s′(i, t) = s(i, t) · W_it,   W_it = exp( mean_{u ∈ K₁} s(i, u) + mean_{v ∈ K₂} s(v, t) )
/// K₁ = kNN(i, T∖{t}, k),   K₂ = kNN(t, I∖{i}, k),   |K| = min(k, b − 1)
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | s | `scores` | `[b, b]`, images × texts |
/// | W | [`hub_factors`] | `[b, b]` |
/// | s′ | result | `[b, b]` |
///
/// Neighbours come from the batch. The choice of neighbours has no gradient; the factors have one, unless `detach`.
///
/// # Panics
/// If `scores` is not square, or k is 0.
///
/// # Departures
/// The printed exponent has image symbols where it sums over texts. Neighbours by increasing distance are
/// neighbours by decreasing similarity, because `|x − y|² = 2 − 2⟨x, y⟩`. The similarity also chooses for order
/// embeddings, which have no metric. A negative score gets *more* negative in a crowd, as in Eq. 4.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use hubness::losses::{HubOptions, reweighted};
///
/// //                                        text 0, a hub
/// let s = Tensor::<2>::from_floats([[0.5, 0.1, 0.0], // image 0
///                                   [0.5, 0.2, 0.0],
///                                   [0.5, 0.0, 0.3]], &Device::flex());
/// let options = HubOptions { neighbours: 1, ..HubOptions::default() };
/// let s = reweighted(s, &options).into_data().try_to_vec::<f32>().unwrap();
/// // Image 1 and text 0: the nearest other text 0.2, the nearest other image 0.5.
/// assert!((s[3] - 0.5 * 0.7f32.exp()).abs() < 1e-6);
/// # }
/// ```
pub fn reweighted(scores: Tensor<2>, options: &HubOptions) -> Tensor<2> {
    let factors = hub_factors(scores.clone(), options);
    scores * factors
}

/// W of Eq. 4, `[b, b]`: see [`reweighted`]. O(b²): two selections of k + 1, no gathering of b² neighbourhoods.
///
/// ```text
/// A_i, A⁺_i   sums of the k and the k + 1 largest of row i
/// mean over K₁ = (A⁺_i − S_it) / k  where t is among the k largest,  A_i / k  elsewhere
/// ```
///
/// # Panics
/// If `scores` is not square, or k is 0.
pub fn hub_factors(scores: Tensor<2>, options: &HubOptions) -> Tensor<2> {
    let [b, n] = scores.dims();
    assert_eq!(b, n, "in-batch scores of shape [{b}, {n}] are not square");
    assert!(options.neighbours > 0, "neighbours: expected at least 1, got 0");
    let k = options.neighbours.min(b.saturating_sub(1));
    if k == 0 {
        return scores.ones_like(); // no neighbour: an empty sum
    }
    let crowd = match options.exclude {
        Exclusion::Pair => without_entry,
        Exclusion::Positive => without_positive,
    };
    let rows = crowd(scores.clone(), k).expand([b, b]);
    let columns = crowd(scores.transpose(), k).expand([b, b]).transpose();
    let mut exponent = rows + columns;
    if options.reweight == ReweightScope::Negatives {
        exponent = without_diagonal(exponent);
    }
    let factors = exponent.exp();
    if options.detach { factors.detach() } else { factors }
}

/// Mean of the k largest of each row without the entry itself, `[b, b]`.
fn without_entry(scores: Tensor<2>, k: usize) -> Tensor<2> {
    let (b, device) = (scores.dims()[0], scores.device());
    let columns = largest(&scores, k + 1, |_, _| false);
    let top = scores.clone().gather(1, index(&columns, k + 1, &device)); // [b, k + 1]
    let all = top.clone().sum_dim(1); // A⁺
    let first = top.narrow(1, 0, k).sum_dim(1); // A
    let mut inside = vec![false; b * b];
    for (row, columns) in columns.chunks_exact(k + 1).enumerate() {
        columns[..k].iter().for_each(|&j| inside[row * b + j] = true);
    }
    let inside = Tensor::<2, Bool>::from_data(TensorData::new(inside, [b, b]), &device);
    let without = all.expand([b, b]) - scores;
    first.expand([b, b]).mask_where(inside, without) / k as f64
}

/// Mean of the k largest of each row without the diagonal, `[b, 1]`.
fn without_positive(scores: Tensor<2>, k: usize) -> Tensor<2> {
    let columns = largest(&scores, k, |i, j| i == j);
    let device = scores.device();
    scores.gather(1, index(&columns, k, &device)).mean_dim(1)
}

/// The values with zeros on the diagonal, `[b, b]`.
pub(super) fn without_diagonal(values: Tensor<2>) -> Tensor<2> {
    let own = Tensor::<2, Bool>::diag_mask(values.dims(), 0, &values.device()).bool_not();
    values.mask_fill(own, 0.0)
}
