//! The memory of past momentum embeddings: two ring buffers that move together.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use itm_core::{Error, Result, host};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Id of a row that was never written. No image may have it.
pub const NEVER: i64 = -100;

/// Image and text banks M_V and M_W with the ids of their rows, first in, first out.
///
/// | symbol | here               | shape    |
/// |--------|--------------------|----------|
/// | M_V    | `images`           | `[k, d]` |
/// | M_W    | `texts`            | `[k, d]` |
/// | M_id   | `ids`              | `[k]`    |
/// |        | `captions`         | `[k]`    |
///
/// Rows start as unit-norm Gaussian vectors with id [`NEVER`]: until overwritten they act as
/// random negatives near similarity 0. A batch may have any size; one larger than the bank leaves
/// its last `k` rows. Embeddings stay on the device of the encoders, without gradients, and are overwritten in place.
///
/// # Departures
/// The released code wants `k` to be a multiple of the batch size. Caption numbers are kept beside
/// the image ids, for audits only.
#[derive(Debug, Clone)]
pub struct Bank {
    images: Tensor<2>,
    texts: Tensor<2>,
    ids: Vec<i64>,
    captions: Vec<i64>,
    cursor: usize,
}

/// Rows for [`Bank::push`], one pair each.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    /// Momentum embeddings of the images, `[b, d]`. The bank takes their values and no graph.
    pub images: Tensor<2>,
    /// Momentum embeddings of the texts, `[b, d]`. The bank takes their values and no graph.
    pub texts: Tensor<2>,
    /// Image ids, `[b]`.
    pub ids: &'a [i64],
    /// Caption numbers, `[b]`.
    pub captions: &'a [i64],
}

/// All that a [`Bank`] holds, as plain numbers: a loop that saves it and makes a bank of it again goes on with the same bits.
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
    /// Where the next pair goes.
    pub cursor: usize,
}

impl Bank {
    /// `capacity` random unit rows of `width`; the same seed gives the same rows. They stand on the device without autodiff.
    pub fn new(capacity: usize, width: usize, seed: u64, device: &Device) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut rows = || {
            let values: Vec<f32> = (0..capacity).flat_map(|_| unit_row(width, &mut rng)).collect();
            table(values, width, device)
        };
        let (images, texts) = (rows(), rows());
        let (ids, captions) = (vec![NEVER; capacity], vec![NEVER; capacity]);
        Self { images, texts, ids, captions, cursor: 0 }
    }

    /// The bank that had this state, with rows of this width.
    ///
    /// # Errors
    /// If the parts have another size than k rows of the width, or the cursor is not below k.
    pub fn of_state(state: BankState, width: usize, device: &Device) -> Result<Self> {
        let BankState { images, texts, ids, captions, cursor } = state;
        let k = ids.len();
        for (what, values) in [("images", images.len()), ("texts", texts.len())] {
            if values != k * width {
                let expected = format!("{k} rows of {width} values");
                return Err(Error::invalid(format!("{what} of the bank"), expected, values));
            }
        }
        if captions.len() != k {
            let expected = format!("{k}, one a row");
            return Err(Error::invalid("captions of the bank", expected, captions.len()));
        }
        if cursor >= k.max(1) {
            let expected = format!("a row below {k}");
            return Err(Error::invalid("cursor of the bank", expected, cursor));
        }
        let [images, texts] = [images, texts].map(|rows| table(rows, width, device));
        Ok(Self { images, texts, ids, captions, cursor })
    }

    /// The `n` rows that are overwritten next, all if there are fewer.
    pub(crate) fn oldest(&self, n: usize) -> BankState {
        let k = self.capacity();
        let first = n.min(k - self.cursor); // the others stand at the start
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

    /// Undoes what was pushed since these rows were the [`oldest`](Self::oldest), if they are all that was overwritten.
    pub(crate) fn restore(&mut self, rows: BankState) {
        let (width, device) = (self.width(), self.images.device());
        let [images, texts] = [rows.images, rows.texts].map(|rows| table(rows, width, &device));
        self.cursor = rows.cursor;
        self.overwrite(Entries { images, texts, ids: &rows.ids, captions: &rows.captions });
        self.cursor = rows.cursor;
    }

    /// Everything in it, read from the device.
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
    pub fn width(&self) -> usize {
        self.images.dims()[1]
    }

    /// Where the next pair goes.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// M_V, `[k, d]`. A bank whose table is held elsewhere is copied when it is next written.
    pub fn images(&self) -> Tensor<2> {
        self.images.clone()
    }

    /// M_W, `[k, d]`. A bank whose table is held elsewhere is copied when it is next written.
    pub fn texts(&self) -> Tensor<2> {
        self.texts.clone()
    }

    /// M_id; [`NEVER`] where nothing was written.
    pub fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// Caption number of each row; [`NEVER`] where nothing was written.
    pub fn captions(&self) -> &[i64] {
        &self.captions
    }

    /// Overwrites the oldest rows.
    ///
    /// # Errors
    /// If an id is [`NEVER`]; nothing is written then.
    ///
    /// # Panics
    /// If the parts differ in their number of rows, or have another width.
    pub fn push(&mut self, entries: Entries) -> Result<()> {
        let (b, d, k) = (entries.ids.len(), self.width(), self.capacity());
        assert_eq!(entries.captions.len(), b, "one caption number a pair");
        assert_eq!(entries.images.dims(), [b, d], "images");
        assert_eq!(entries.texts.dims(), [b, d], "texts");
        check_ids(entries.ids)?;
        if k > 0 {
            let [images, texts] = [entries.images, entries.texts].map(plain);
            self.overwrite(Entries { images, texts, ..entries });
        }
        Ok(())
    }

    /// As long as there are rows.
    fn overwrite(&mut self, entries: Entries) {
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

/// The values alone: a row with a graph would keep that graph alive as long as the bank.
fn plain(rows: Tensor<2>) -> Tensor<2> {
    if rows.device().is_autodiff() { rows.inner() } else { rows }
}

/// Rows of a table from `at` on, in place if nobody else holds it.
fn write(table: &mut Tensor<2>, at: usize, rows: Tensor<2>) {
    let [n, d] = rows.dims();
    let whole = std::mem::replace(table, rows.clone()); // or it would be held twice
    *table = whole.slice_assign([at..at + n, 0..d], rows);
}

/// Rows on a device, without gradients.
fn table(rows: Vec<f32>, width: usize, device: &Device) -> Tensor<2> {
    let shape = [rows.len() / width.max(1), width];
    Tensor::from_data(TensorData::new(rows, shape), &device.clone().inner())
}

/// Refuses the id that marks unwritten rows.
pub(crate) fn check_ids(ids: &[i64]) -> Result<()> {
    match ids.iter().position(|&id| id == NEVER) {
        Some(row) => Err(Error::invalid(
            format!("batch row {row}"),
            "an image id",
            format!("{NEVER}, which marks bank rows never written"),
        )),
        None => Ok(()),
    }
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
mod tests {
    use std::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::golden::{floats, golden, integers};

    fn new(capacity: usize, width: usize, seed: u64) -> Bank {
        Bank::new(capacity, width, seed, &Device::flex())
    }

    fn push(bank: &mut Bank, ids: &[i64]) {
        let values: Vec<f32> = ids.iter().map(|&id| id as f32).collect();
        let texts: Vec<f32> = values.iter().map(|x| -x).collect();
        let captions: Vec<i64> = ids.iter().map(|id| 10 * id).collect();
        let [images, texts] = [values, texts].map(|rows| table(rows, 1, &Device::flex()));
        bank.push(Entries { images, texts, ids, captions: &captions }).unwrap();
    }

    /// `tests/reference/fne.py`, `ring`: B = 5 does not divide K = 12; four steps.
    #[test]
    fn trap_11_ring_wraps_around() {
        let golden = &golden()["ring"];
        let mut bank = new(12, 1, 0);
        for step in golden.as_array().unwrap() {
            push(&mut bank, &integers(&step["push"]));
            assert_eq!(bank.cursor() as u64, step["cursor"].as_u64().unwrap());
            assert_eq!(bank.ids(), integers(&step["ids"]));
            let BankState { images, texts, .. } = bank.state();
            for (j, want) in floats(&step["ids"]).into_iter().enumerate() {
                if bank.ids()[j] != NEVER {
                    assert_eq!((images[j], texts[j]), (want, -want));
                    assert_eq!(bank.captions()[j], 10 * bank.ids()[j]);
                }
            }
        }
    }

    /// A loop of one's own gives tensors of the differentiating device: values are kept, no graph, and the tables stay plain.
    #[test]
    fn rows_come_without_their_graph() {
        let device = Device::flex().autodiff();
        let mut bank = Bank::new(4, 1, 0, &device);
        let rows = Tensor::<2>::from_floats([[1.0], [2.0]], &device).require_grad();
        let entries = Entries {
            images: rows.clone() * 3.0,
            texts: rows * 5.0,
            ids: &[7, 8],
            captions: &[0, 1],
        };
        bank.push(entries).unwrap();
        assert!(!bank.images().device().is_autodiff() && !bank.texts().device().is_autodiff());
        let BankState { images, texts, .. } = bank.state();
        assert_eq!((&images[..2], &texts[..2]), (&[3.0, 6.0][..], &[5.0, 10.0][..]));
    }

    #[test]
    fn a_saved_bank_goes_on_and_a_damaged_one_is_refused() {
        let mut bank = new(5, 1, 3);
        push(&mut bank, &[1, 2, 3]);
        let text = serde_json::to_string(&bank.state()).unwrap();
        let of = |state: BankState| Bank::of_state(state, 1, &Device::flex());
        let mut again = of(serde_json::from_str(&text).unwrap()).unwrap();
        for bank in [&mut bank, &mut again] {
            push(bank, &[4, 5, 6]);
        }
        assert_eq!(again.state(), bank.state());
        let refused = |change: &dyn Fn(&mut BankState)| {
            let mut state = bank.state();
            change(&mut state);
            of(state).unwrap_err().to_string()
        };
        let short = |values: &mut Vec<f32>| _ = values.pop();
        assert_eq!(
            refused(&|s| short(&mut s.images)),
            "images of the bank: expected 5 rows of 1 values, got 4"
        );
        assert_eq!(
            refused(&|s| short(&mut s.texts)),
            "texts of the bank: expected 5 rows of 1 values, got 4"
        );
        let few = |s: &mut BankState| _ = s.captions.pop();
        assert_eq!(refused(&few), "captions of the bank: expected 5, one a row, got 4");
        assert_eq!(refused(&|s| s.cursor = 5), "cursor of the bank: expected a row below 5, got 5");
    }

    #[test]
    fn trap_06_the_unwritten_id_is_refused() {
        let mut bank = new(4, 1, 0);
        let before = bank.state();
        let rows = table(vec![1.0, 2.0], 1, &Device::flex());
        let entries =
            Entries { images: rows.clone(), texts: rows, ids: &[3, -100], captions: &[0, 1] };
        let message = bank.push(entries).unwrap_err().to_string();
        assert!(message.contains("row 1") && message.contains("-100"), "{message}");
        assert_eq!(bank.state(), before);
    }

    /// Whatever was pushed is undone, wherever the ring stands and however many rows it has.
    #[test]
    fn what_was_pushed_is_undone() {
        for (k, b) in [(12, 5), (3, 5), (5, 5), (1, 2)] {
            let mut bank = new(k, 1, 0);
            for ids in [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]] {
                let before = bank.state();
                let rows = bank.oldest(b);
                assert_eq!(rows.ids.len(), b.min(k));
                push(&mut bank, &vec![77; b]);
                assert_ne!(bank.state(), before, "{k} rows");
                bank.restore(rows);
                assert_eq!(bank.state(), before, "{k} rows");
                push(&mut bank, &ids);
            }
        }
    }

    #[test]
    fn a_batch_larger_than_the_bank_leaves_its_last_rows() {
        let mut bank = new(3, 1, 0);
        push(&mut bank, &[1, 2, 3, 4, 5]);
        assert_eq!((bank.ids(), bank.cursor()), (&[4, 5, 3][..], 2));
        let mut none = new(0, 1, 0);
        push(&mut none, &[1, 2]);
        assert_eq!(none.capacity(), 0);
    }

    /// No copy of a bank a step: the tables stay where they are, and one that is held elsewhere keeps its values.
    #[test]
    fn rows_are_overwritten_in_place() {
        use burn::backend::Flex;
        let address = |x: Tensor<2>| x.try_into_primitive::<Flex>().unwrap().bytes().as_ptr();
        let mut bank = new(12, 1, 0);
        let at = address(bank.images());
        for _ in 0..4 {
            push(&mut bank, &[1, 2, 3, 4, 5]);
            assert_eq!(address(bank.images()), at);
        }
        let held = bank.images();
        let before = host(held.clone());
        push(&mut bank, &[6, 7, 8, 9, 10]);
        assert_eq!(host(held), before);
        assert_ne!(bank.state().images, before);
    }

    #[test]
    fn start_rows_are_random_unit_vectors_of_the_seed() {
        let bank = new(400, 16, 7).state();
        assert_eq!(bank, new(400, 16, 7).state());
        assert_ne!(bank, new(400, 16, 8).state());
        assert_ne!(bank.images, bank.texts);
        assert!(bank.ids.iter().chain(&bank.captions).all(|&id| id == NEVER));
        let mut mean = [0.0f64; 16];
        for row in bank.images.chunks(16) {
            let norm: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
            assert!((norm - 1.0).abs() < 1e-5);
            mean.iter_mut().zip(row).for_each(|(m, &x)| *m += f64::from(x) / 400.0);
        }
        // Each coordinate has deviation 1/4, its mean over 400 rows 1/80: five deviations.
        assert!(mean.iter().all(|m| m.abs() < 5.0 / 80.0), "{mean:?}");
    }

    proptest! {
        /// The bank is the queue of the last k pairs.
        #[test]
        fn is_a_queue(k in 1usize..9, batches in vec(vec(0i64..1000, 0..12), 0..6)) {
            let mut bank = new(k, 1, 0);
            let mut queue = VecDeque::from(vec![NEVER; k]);
            for ids in batches {
                push(&mut bank, &ids);
                for id in ids { queue.push_back(id); queue.pop_front(); }
            }
            let mut ids = bank.ids().to_vec();
            ids.rotate_left(bank.cursor());
            prop_assert_eq!(ids, Vec::from(queue));
        }
    }
}
