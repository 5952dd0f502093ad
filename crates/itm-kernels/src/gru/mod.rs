//! A gated recurrent unit over whole sequences of different lengths.
//!
//! ```text
//! r  = σ(x W_ir + b_ir + h W_hr + b_hr)
//! z  = σ(x W_iz + b_iz + h W_hz + b_hz)
//! n  = tanh(x W_in + b_in + r ⊙ (h W_hn + b_hn))       reset gate after the hidden product, as in PyTorch
//! h′ = (1 − z) ⊙ n + z ⊙ h,   h₀ = 0
//! ```
//!
//! | symbol | here | shape |
//! |---|---|---|
//! | x | `x` | `[b, l, i]`; padded steps are never read |
//! | W_ir W_iz W_in | `w_ih` | `[i, 3h]` |
//! | W_hr W_hz W_hn | `w_hh` | `[h, 3h]` |
//! | b_ir b_iz b_in, b_hr b_hz b_hn | `b_ih`, `b_hh` | `[3h]` |
//! | h′ of every step | the result | `[b, l, h]`; a padded step does not change the state |
//!
//! Therefore padded steps repeat the last real state. The reverse direction starts at the last real step of each
//! sequence, so its padded steps hold h₀ = 0.
//!
//! The real steps are packed: the longest sequence first, and all sequences of one step side by side. So every
//! product runs over real steps only, and there are few products: one for the inputs of all steps, one per step for
//! the state, and one per weight gradient over all steps. The weights of the state are packed once, in panels. The
//! number of threads does not change a bit of the results.

mod gradients;
mod packing;

use rayon::prelude::*;

use crate::dispatch::multiversion;
use crate::math::{LANES, load, sigmoid, store, tanh};
use crate::matrix::Matrix;
use crate::panels::{self, Panels, ROWS};
use crate::product::{Threads, product_new};

use packing::Columns;

pub use gradients::{Gradients, backward};
pub(crate) use packing::Direction;
pub use packing::Packing;

/// Weights of one layer and direction; gates in the order r, z, n.
#[derive(Debug, Clone, Copy)]
pub struct GruWeights<'a> {
    /// `[i, 3h]`
    pub w_ih: &'a [f32],
    /// `[h, 3h]`
    pub w_hh: &'a [f32],
    /// `[3h]`
    pub b_ih: &'a [f32],
    /// `[3h]`
    pub b_hh: &'a [f32],
}

impl GruWeights<'_> {
    /// `(i, h)`.
    ///
    /// # Panics
    /// If a shape does not fit the shape of `b_ih`, or `x` is not `[b, l, i]`.
    fn sizes(&self, x: &[f32], packing: &Packing) -> (usize, usize) {
        let h = self.b_ih.len() / 3;
        assert!(h > 0 && self.b_ih.len() == 3 * h, "{} input biases are not 3h", self.b_ih.len());
        assert_eq!(self.b_hh.len(), 3 * h, "hidden biases beside {} input biases", 3 * h);
        let i = self.w_ih.len() / (3 * h);
        assert_eq!(self.w_ih.len(), i * 3 * h, "w_ih is not [i, {}]", 3 * h);
        assert_eq!(self.w_hh.len(), h * 3 * h, "w_hh is not [{h}, {}]", 3 * h);
        let (b, l, got) = (packing.order.len(), packing.steps, x.len());
        let values = b.checked_mul(l).and_then(|steps| steps.checked_mul(i));
        assert!(i > 0 && values == Some(got), "x has {got} values, not {b} × {l} × {i}");
        (i, h)
    }
}

/// The states of every step, `[b, l, h]`. A second unit reads in reverse; its states stand beside the first's, `[b, l, 2h]`.
///
/// # Panics
/// If a shape does not fit the others, there are not one or two units, or two units have different widths.
pub fn forward(x: &[f32], units: &[GruWeights], packing: &Packing) -> Vec<f32> {
    let h = width(units);
    let mut states = states(x, units, packing);
    let mut gates = vec![0.0; packing.step(0).len() * 4 * h]; // of the widest step
    for (weights, packing, columns) in directions(units, packing) {
        run(x, weights, &packing, &mut gates, &mut states, columns);
    }
    states
}

/// [`forward`], and the values that [`backward`] needs from each unit: r, z, n and h W_hn + b_hn of every packed row,
/// `[rows, 4h]`.
///
/// # Panics
/// As [`forward`].
pub fn forward_saving(
    x: &[f32],
    units: &[GruWeights],
    packing: &Packing,
) -> (Vec<f32>, Vec<Vec<f32>>) {
    let h = width(units);
    let mut states = states(x, units, packing);
    let gates = directions(units, packing).map(|(weights, packing, columns)| {
        let mut gates = vec![0.0; packing.rows() * 4 * h];
        run(x, weights, &packing, &mut gates, &mut states, columns);
        gates
    });
    let gates = gates.collect();
    (states, gates)
}

/// Width of a unit's states.
fn width(units: &[GruWeights]) -> usize {
    let n = units.len();
    assert!(matches!(n, 1 | 2), "{n} units, not one or two");
    let [first, last] = [0, n - 1].map(|unit| units[unit].b_ih.len() / 3);
    assert_eq!(first, last, "widths of the two units");
    first
}

/// Memory for the states of every step, after all shapes are checked.
fn states(x: &[f32], units: &[GruWeights], packing: &Packing) -> Vec<f32> {
    let h = width(units);
    units.iter().for_each(|unit| _ = unit.sizes(x, packing));
    vec![0.0; packing.padded(units.len() * h)]
}

/// Each unit with its direction, and its columns of the states.
fn directions<'a>(
    units: &'a [GruWeights<'a>],
    packing: &Packing,
) -> impl Iterator<Item = (&'a GruWeights<'a>, Packing, Columns)> {
    let h = width(units);
    let part = move |k| Columns { at: k * h, width: h, stride: units.len() * h };
    let packings = [Direction::Forward, Direction::Reverse].map(|d| packing.clone().towards(d));
    let each = units.iter().zip(packings).enumerate();
    each.map(move |(k, (weights, packing))| (weights, packing, part(k)))
}

/// `gates` has room for every step, or for the widest step alone. The states go to their columns of `to`.
fn run(
    x: &[f32],
    weights: &GruWeights,
    packing: &Packing,
    gates: &mut [f32],
    to: &mut [f32],
    columns: Columns,
) {
    let (i, h) = weights.sizes(x, packing);
    let (rows, first) = (packing.rows(), packing.step(0).len());
    let keep = gates.len() == rows * 4 * h;

    let packed = packing.pack(x, Columns::all(i));
    let w_ih = Matrix::new(weights.w_ih, i, 3 * h);
    let from_x = product_new(Threads::All, Matrix::new(&packed, rows, i), w_ih);

    let w_hh = (packing.steps > 1).then(|| state_panels(weights.w_hh, h));
    // h₀ comes before the states, so every step finds its previous states in the same buffer.
    let mut states = vec![0.0; (first + rows) * h];
    let mut left = vec![0.0; blocks(first) * ROWS * h]; // the states as a left operand of panels
    let mut from_h = vec![0.0; h.div_ceil(LANES) * blocks(first) * ROWS * panels::WIDTH]; // h₀ W_hh = 0
    for t in 0..packing.steps {
        let range = packing.step(t);
        let n = range.len();
        if n == 0 {
            break;
        }
        let blocks = blocks(n);
        let left = &mut left[..blocks * ROWS * h];
        let from_h = &mut from_h[..h.div_ceil(LANES) * blocks * ROWS * panels::WIDTH];
        if let (Some(w_hh), 1..) = (&w_hh, t) {
            w_hh.product(from_h, left);
        }
        let (before, after) = states.split_at_mut((first + range.start) * h);
        let previous_start = if t == 0 { 0 } else { first + packing.step(t - 1).start };
        let previous = &before[previous_start * h..][..n * h];
        let gates_start = if keep { range.start } else { 0 };
        let from_h = &*from_h;
        after[..n * h]
            .par_chunks_mut(ROWS * h)
            .zip(gates[gates_start * 4 * h..][..n * 4 * h].par_chunks_mut(ROWS * 4 * h))
            .zip(from_x[range.start * 3 * h..range.end * 3 * h].par_chunks(ROWS * 3 * h))
            .zip(previous.par_chunks(ROWS * h))
            .zip(left.par_chunks_mut(ROWS * h))
            .enumerate()
            .for_each(|(k, ((((next, gates), from_x), previous), left))| {
                let from_h = FromPanels { values: from_h, rows: blocks * ROWS, first: k * ROWS };
                step_forward(h, from_x, from_h, weights.b_ih, weights.b_hh, previous, next, gates);
                panels::block(left, next, h);
            });
    }
    packing.unpack(&states[first * h..], to, columns, |to, from| to.copy_from_slice(from));
    if packing.direction == Direction::Forward {
        packing.repeat_last(to, columns);
    }
}

/// Number of blocks for some rows.
fn blocks(rows: usize) -> usize {
    rows.div_ceil(ROWS)
}

/// W_hh with the three gates of 16 units side by side: r, z, n of units 0 to 15, then of the next 16.
fn state_panels(w_hh: &[f32], h: usize) -> Panels {
    Panels::new(h, h.div_ceil(LANES), |p, panel| {
        let (j, n) = (p * LANES, LANES.min(h - p * LANES));
        for (to, from) in panel.iter_mut().zip(w_hh.chunks_exact(3 * h)) {
            for gate in 0..3 {
                let part = load(&from[gate * h + j..][..n], 0);
                store(&mut to[gate * LANES..][..LANES], 0, part);
            }
        }
    })
}

/// The result of [`Panels::product`], `[panels, rows, 48]`, from row `first` on.
#[derive(Clone, Copy)]
struct FromPanels<'a> {
    values: &'a [f32],
    rows: usize,
    first: usize,
}

impl FromPanels<'_> {
    /// Sixteen columns of a row: part 0, 1 or 2 of a panel.
    #[inline(always)]
    fn part(&self, row: usize, panel: usize, part: usize) -> [f32; LANES] {
        let at = (panel * self.rows + self.first + row) * panels::WIDTH;
        load(&self.values[at..][..panels::WIDTH], part * LANES)
    }
}

multiversion! {
    /// The gates and the next state of some rows.
    fn step_forward[FMA](
        h: usize,
        from_x: &[f32],
        from_h: crate::gru::FromPanels<'_>,
        b_ih: &[f32],
        b_hh: &[f32],
        previous: &[f32],
        next: &mut [f32],
        gates: &mut [f32],
    ) {
        for (row, next) in next.chunks_exact_mut(h).enumerate() {
            let from_x = &from_x[row * 3 * h..][..3 * h];
            let previous = &previous[row * h..][..h];
            let (gate_r, rest) = gates[row * 4 * h..][..4 * h].split_at_mut(h);
            let (gate_z, rest) = rest.split_at_mut(h);
            let (gate_n, gate_hn) = rest.split_at_mut(h);
            // Local arrays of whole registers: so the compiler need not prove that twelve slices do not overlap.
            for j in (0..h).step_by(LANES) {
                let part = |m: &[f32], gate: usize| load(&m[gate * h..][..h], j);
                let (xr, xz, xn) = (part(from_x, 0), part(from_x, 1), part(from_x, 2));
                let [hr, hz, hn] = [0, 1, 2].map(|gate| from_h.part(row, j / LANES, gate));
                let (br, bz, bn) = (part(b_ih, 0), part(b_ih, 1), part(b_ih, 2));
                let (cr, cz, cn) = (part(b_hh, 0), part(b_hh, 1), part(b_hh, 2));
                let old = load(previous, j);
                let [mut r, mut z, mut n, mut hidden, mut new] = [[0.0f32; LANES]; 5];
                for k in 0..LANES {
                    r[k] = sigmoid::<FMA>(xr[k] + br[k] + hr[k] + cr[k]);
                }
                for k in 0..LANES {
                    z[k] = sigmoid::<FMA>(xz[k] + bz[k] + hz[k] + cz[k]);
                }
                for k in 0..LANES {
                    hidden[k] = hn[k] + cn[k];
                    n[k] = tanh::<FMA>(xn[k] + bn[k] + r[k] * hidden[k]);
                    new[k] = (1.0 - z[k]) * n[k] + z[k] * old[k];
                }
                store(gate_r, j, r);
                store(gate_z, j, z);
                store(gate_n, j, n);
                store(gate_hn, j, hidden);
                store(next, j, new);
            }
        }
    }
}

#[cfg(test)]
mod tests;
