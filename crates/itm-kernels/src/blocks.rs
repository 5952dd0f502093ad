//! Element-wise work in blocks of a fixed size, on all threads.

use std::hint::black_box;
use std::mem::MaybeUninit;

use rayon::prelude::*;

/// Values per block: they fit in the first-level cache. The number does not depend on the thread count.
pub(crate) const BLOCK: usize = 1024;

/// Smallest number of blocks that is worth another thread.
const AT_LEAST: usize = 4;

/// A copy, changed by `change(index of the block, its values)`.
pub(crate) fn changed(from: &[f32], change: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let copy = |k: usize, to: &mut [MaybeUninit<f32>]| {
        to.write_copy_of_slice(&from[k * BLOCK..][..to.len()]);
    };
    made(from.len(), BLOCK, copy, || (), |(), k, to| change(k, to))
}

/// `rows` of `width` values.
///
/// # Panics
/// If they are more than memory can hold.
pub(crate) fn size(rows: usize, width: usize) -> usize {
    let values = rows.checked_mul(width).filter(|&n| n <= isize::MAX as usize / 4);
    values.unwrap_or_else(|| panic!("no memory for {rows} rows of {width} values"))
}

/// Room for `n` values.
///
/// # Panics
/// If memory cannot hold them.
pub(crate) fn room(n: usize) -> Vec<f32> {
    let mut values = Vec::new();
    assert!(values.try_reserve_exact(n).is_ok(), "no memory for {n} values");
    values
}

/// `n` zeros, whose pages the system clears when they are used.
///
/// # Panics
/// If memory cannot hold them.
pub(crate) fn zeros(n: usize) -> Vec<f32> {
    drop(black_box(room(n))); // where this panics, `vec!` would end the process
    vec![0.0; n]
}

/// `n` new values in blocks of `block`, filled by `write(index of the block, its values)`. Before the call they are 0.
///
/// The thread that fills a block also writes its zeros, in its own cache. `vec![0.0; n]` would go through memory once
/// more, on one thread.
pub(crate) fn written(
    n: usize,
    block: usize,
    write: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    written_with(n, block, || (), |(), k, to| write(k, to))
}

/// [`written`] with memory that one block leaves to a later one. No result may depend on what is in it.
pub(crate) fn written_with<S>(
    n: usize,
    block: usize,
    scratch: impl Fn() -> S + Sync + Send,
    write: impl Fn(&mut S, usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let zeros = |_: usize, to: &mut [MaybeUninit<f32>]| to.fill(MaybeUninit::new(0.0));
    made(n, block, zeros, scratch, write)
}

/// `n` new values in blocks of `block`: `begin` must write every place of a block, then `change` changes its values.
#[allow(unsafe_code)] // memory that is written before it is read
fn made<S>(
    n: usize,
    block: usize,
    begin: impl Fn(usize, &mut [MaybeUninit<f32>]) + Sync,
    scratch: impl Fn() -> S + Sync + Send,
    change: impl Fn(&mut S, usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let mut values = room(n);
    let blocks = values.spare_capacity_mut()[..n].par_chunks_mut(block.max(1)).enumerate();
    let at_least = (AT_LEAST * BLOCK).div_ceil(block.max(1));
    blocks.with_min_len(at_least).for_each_init(scratch, |scratch, (k, part)| {
        begin(k, part);
        // SAFETY: the functions above pass a `begin` that writes every place.
        change(scratch, k, unsafe { part.assume_init_mut() });
    });
    // SAFETY: the blocks cover the first n values, there is room for n values, and each was written above.
    unsafe { values.set_len(n) };
    values
}

/// `to += from`.
///
/// # Panics
/// If the sizes differ.
pub(crate) fn add(to: &mut [f32], from: &[f32]) {
    assert_eq!(to.len(), from.len(), "values of the two summands");
    change(to, |k, block| {
        block.iter_mut().zip(&from[k * BLOCK..]).for_each(|(to, from)| *to += from);
    });
}

/// [`changed`] in place.
pub(crate) fn change(values: &mut [f32], change: impl Fn(usize, &mut [f32]) + Sync) {
    let blocks = values.par_chunks_mut(BLOCK).enumerate().with_min_len(AT_LEAST);
    blocks.for_each(|(k, block)| change(k, block));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every block is whole, in its place, and zero at first, even in memory that was used before.
    #[test]
    fn new_values_are_zero_until_they_are_written() {
        for (n, block) in [(0, 3), (1, 3), (10, 3), (100_000, 7), (5, 0)] {
            drop(vec![f32::NAN; n]); // memory that the allocator may give out again
            let got = written(n, block, |k, values| {
                assert!(values.iter().all(|v| v.to_bits() == 0));
                values[0] = k as f32 + 1.0;
            });
            let first = |k: usize| {
                if k.is_multiple_of(block.max(1)) { (k / block.max(1)) as f32 + 1.0 } else { 0.0 }
            };
            assert_eq!(got, (0..n).map(first).collect::<Vec<_>>());
        }
    }

    /// A panic with these words, not the end of the process: more bytes than addresses, and more than can be counted.
    #[test]
    fn what_memory_cannot_hold_is_refused() {
        let says = |n: usize, make: fn(usize) -> Vec<f32>| {
            let panic = std::panic::catch_unwind(|| make(n)).unwrap_err();
            assert_eq!(*panic.downcast::<String>().unwrap(), format!("no memory for {n} values"));
        };
        for n in [1 << 46, usize::MAX] {
            says(n, room);
            says(n, zeros);
        }
    }

    #[test]
    fn every_value_is_changed_once_whatever_the_length() {
        for n in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 9 * BLOCK + 17] {
            let from: Vec<f32> = (0..n).map(|k| k as f32).collect();
            let add = |k: usize, block: &mut [f32]| {
                block.iter_mut().for_each(|v| *v += 0.25 + k as f32);
            };
            let want: Vec<f32> =
                from.iter().enumerate().map(|(k, v)| v + 0.25 + (k / BLOCK) as f32).collect();
            assert_eq!(changed(&from, add), want);
            let mut values = from.clone();
            change(&mut values, add);
            assert_eq!(values, want);
        }
    }
}
