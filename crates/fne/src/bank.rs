//! The memory of past momentum embeddings: two ring buffers that move together.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use itm_core::{Error, Result, host};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::checks::{self, NEVER};

/// Image and text banks M_V and M_W with the ids of their rows, first in, first out.
///
/// | symbol | here               | shape    |
/// |--------|--------------------|----------|
/// | M_V    | `images`           | `[k, d]` |
/// | M_W    | `texts`            | `[k, d]` |
/// | M_id   | `ids`              | `[k]`    |
/// |        | `captions`         | `[k]`    |
///
/// Each row starts as a random vector of unit length with the id [`NEVER`]. Until the bank overwrites it, it acts as a random
/// negative: its similarity to everything is near 0. A batch may have any size; if it is larger than the bank, its last `k`
/// rows stay. The embeddings stay on the device of the encoders, without gradients. The bank overwrites them in place.
///
/// # Departures
/// The released code requires `k` to be a multiple of the batch size. This bank keeps a caption number beside each image id,
/// for audits and for [`Exclude::Truth`](crate::Exclude::Truth).
#[derive(Debug, Clone)]
pub struct Bank {
    images: Tensor<2>,
    texts: Tensor<2>,
    ids: Vec<i64>,
    captions: Vec<i64>,
    pub(crate) cursor: usize,
}

/// Rows for [`Bank::push`], one pair each.
#[derive(Debug, Clone)]
pub struct BankRows<'a> {
    /// Momentum embeddings of the images, `[b, d]`, rows of unit length. The bank takes their values without a graph.
    pub images: Tensor<2>,
    /// Momentum embeddings of the texts, `[b, d]`, rows of unit length. The bank takes their values without a graph.
    pub texts: Tensor<2>,
    /// Image ids, `[b]`: any numbers except [`NEVER`]. Pairs of one image have one id.
    pub ids: &'a [i64],
    /// Caption numbers, `[b]`: any numbers. Only audits and [`Exclude::Truth`](crate::Exclude::Truth) read them.
    pub captions: &'a [i64],
}

/// The contents of a [`Bank`], as plain numbers. A bank made from a saved state continues with the same bits.
///
/// ```
/// use fne::{Bank, BankState, Device};
///
/// let bank = Bank::new(8, 4, 7, &Device::flex());
/// let state: BankState = bank.state();
/// let again = Bank::of_state(state, 4, &Device::flex())?;
/// assert_eq!(again.state(), bank.state());
/// # Ok::<(), fne::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BankState {
    /// M_V, `[k, d]`.
    pub images: Vec<f32>,
    /// M_W, `[k, d]`.
    pub texts: Vec<f32>,
    /// M_id, `[k]`.
    pub ids: Vec<i64>,
    /// Caption numbers, `[k]`.
    pub captions: Vec<i64>,
    /// The row that the next pair overwrites.
    pub cursor: usize,
}

impl Bank {
    /// A bank of `capacity` random rows of `width` values, each of unit length. The same seed gives the same rows. The rows are
    /// on `device`, without autodiff.
    ///
    /// # Panics
    /// If `width` is 0, or memory cannot hold the rows.
    pub fn new(capacity: usize, width: usize, seed: u64, device: &Device) -> Self {
        let bank = Self::within(capacity, width, seed, device);
        bank.unwrap_or_else(|| panic!("a bank of {capacity} rows of {width} values"))
    }

    /// [`new`](Self::new); `None` instead of a panic.
    pub(crate) fn within(
        capacity: usize,
        width: usize,
        seed: u64,
        device: &Device,
    ) -> Option<Self> {
        let size = capacity.checked_mul(width).filter(|_| width > 0)?;
        Vec::<f32>::new().try_reserve_exact(size).ok()?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut rows = || {
            let values: Vec<f32> = (0..capacity).flat_map(|_| unit_row(width, &mut rng)).collect();
            table(values, width, device)
        };
        let (images, texts) = (rows(), rows());
        let (ids, captions) = (vec![NEVER; capacity], vec![NEVER; capacity]);
        Some(Self { images, texts, ids, captions, cursor: 0 })
    }

    /// The bank that had this state, with rows of this width.
    ///
    /// # Errors
    /// If a part has another size than k rows of the width, a value is NaN or infinite, or the cursor is not a row.
    pub fn of_state(state: BankState, width: usize, device: &Device) -> Result<Self> {
        let BankState { images, texts, ids, captions, cursor } = state;
        let k = ids.len();
        for (what, values) in [("images", images.len()), ("texts", texts.len())] {
            let fits = width > 0 && k.checked_mul(width) == Some(values);
            let expected = format_args!("{k} rows of {width} values");
            Error::unless(fits, format_args!("{what} of the bank"), expected, values)?;
        }
        let expected = format_args!("{k}, one per row");
        Error::unless(captions.len() == k, "captions of the bank", expected, captions.len())?;
        let expected = format_args!("a row below {k}");
        Error::unless(cursor < k.max(1), "cursor of the bank", expected, cursor)?;
        checks::finite_values("images of the bank", &images, width)?;
        checks::finite_values("texts of the bank", &texts, width)?;
        let [images, texts] = [images, texts].map(|rows| table(rows, width, device));
        Ok(Self { images, texts, ids, captions, cursor })
    }

    /// The next `n` rows to be overwritten, or all rows if there are fewer.
    pub(crate) fn oldest(&self, n: usize) -> BankState {
        let k = self.capacity();
        let first = n.min(k - self.cursor); // the other rows are at the start
        let runs = [self.cursor..self.cursor + first, 0..n.min(k) - first];
        let rows = |table: &Tensor<2>| -> Vec<f32> {
            let run = |run: &Range<usize>| host(table.clone().narrow(0, run.start, run.len()));
            runs.iter().filter(|run| !run.is_empty()).flat_map(run).collect()
        };
        let numbers =
            |all: &[i64]| runs.iter().flat_map(|run| &all[run.clone()]).copied().collect();
        BankState {
            images: rows(&self.images),
            texts: rows(&self.texts),
            ids: numbers(&self.ids),
            captions: numbers(&self.captions),
            cursor: self.cursor,
        }
    }

    /// Undoes the pushes since [`oldest`](Self::oldest) returned these rows, if the pushes overwrote no other row.
    pub(crate) fn restore(&mut self, rows: BankState) {
        let (width, device) = (self.width(), self.images.device());
        let [images, texts] = [rows.images, rows.texts].map(|rows| table(rows, width, &device));
        self.cursor = rows.cursor;
        self.overwrite(BankRows { images, texts, ids: &rows.ids, captions: &rows.captions });
        self.cursor = rows.cursor;
    }

    /// The contents of the bank, copied to the host.
    pub fn state(&self) -> BankState {
        BankState {
            images: host(self.images.clone()),
            texts: host(self.texts.clone()),
            ids: self.ids.clone(),
            captions: self.captions.clone(),
            cursor: self.cursor,
        }
    }

    /// Number of rows, written or not.
    pub fn capacity(&self) -> usize {
        self.ids.len()
    }

    /// Width d of a row.
    pub(crate) fn width(&self) -> usize {
        self.images.dims()[1]
    }

    /// M_V, `[k, d]`. If you still hold this tensor at the next push, the push copies the table.
    pub fn images(&self) -> Tensor<2> {
        self.images.clone()
    }

    /// M_W, `[k, d]`. If you still hold this tensor at the next push, the push copies the table.
    pub fn texts(&self) -> Tensor<2> {
        self.texts.clone()
    }

    /// M_id; [`NEVER`] where nothing was written.
    pub(crate) fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// Caption number of each row; [`NEVER`] where nothing was written.
    pub(crate) fn captions(&self) -> &[i64] {
        &self.captions
    }

    /// Overwrites the oldest rows.
    ///
    /// # Errors
    /// If the parts differ in their number of rows or have another width than the bank, if an id is [`NEVER`], or if an embedding
    /// holds a NaN or an infinity. The bank is then unchanged.
    ///
    /// # Panics
    /// If the embeddings are on a device of another backend than the bank.
    pub fn push(&mut self, entries: BankRows) -> Result<()> {
        let shape = [entries.ids.len(), self.width()];
        checks::shape("images of the batch", shape, &entries.images)?;
        checks::shape("texts of the batch", shape, &entries.texts)?;
        checks::count("caption numbers", shape[0], "one per pair", entries.captions.len())?;
        checks::ids("batch row", entries.ids)?;
        checks::finite("images of the batch", &entries.images)?;
        checks::finite("texts of the batch", &entries.texts)?;
        self.enqueue(entries);
        Ok(())
    }

    /// [`push`](Self::push) without checks, for entries that fit. They may hold a NaN if [`restore`](Self::restore) follows.
    pub(crate) fn enqueue(&mut self, entries: BankRows) {
        if self.capacity() > 0 {
            // Without their graph, because the bank would keep it alive.
            let [images, texts] = [entries.images, entries.texts].map(Tensor::inner);
            self.overwrite(BankRows { images, texts, ..entries });
        }
    }

    /// Writes the entries into the ring. The bank must have at least one row.
    fn overwrite(&mut self, entries: BankRows) {
        let (b, k) = (entries.ids.len(), self.capacity());
        let mut next = 0;
        while next < b {
            let (at, n) = (self.cursor, (b - next).min(k - self.cursor));
            write(&mut self.images, at, entries.images.clone().narrow(0, next, n));
            write(&mut self.texts, at, entries.texts.clone().narrow(0, next, n));
            self.ids[at..at + n].copy_from_slice(&entries.ids[next..next + n]);
            self.captions[at..at + n].copy_from_slice(&entries.captions[next..next + n]);
            (self.cursor, next) = ((at + n) % k, next + n);
        }
    }
}

/// Overwrites the rows of a table from `at` on, in place if nothing else holds the table.
fn write(table: &mut Tensor<2>, at: usize, rows: Tensor<2>) {
    let [n, d] = rows.dims();
    let whole = std::mem::replace(table, rows.clone()); // otherwise the table is held twice
    *table = whole.slice_assign([at..at + n, 0..d], rows);
}

/// Rows on a device, without gradients.
fn table(rows: Vec<f32>, width: usize, device: &Device) -> Tensor<2> {
    let shape = [rows.len() / width.max(1), width];
    Tensor::from_data(TensorData::new(rows, shape), &device.clone().inner())
}

/// A direction uniform on the sphere: Gaussian coordinates (Box–Muller), divided by their norm.
fn unit_row(width: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
    loop {
        let mut row = Vec::with_capacity(width + 1);
        while row.len() < width {
            let (u, v): (f64, f64) = (rng.random(), rng.random());
            let radius = (-2.0 * (1.0 - u).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * v).sin_cos();
            row.extend([radius * cos, radius * sin]);
        }
        row.truncate(width);
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 1e-6 || width == 0 {
            return row.into_iter().map(|x| (x / norm) as f32).collect();
        }
    }
}

#[cfg(test)]
mod tests;
