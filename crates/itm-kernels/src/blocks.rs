//! Element-wise work in blocks of a fixed size, on all threads.

use rayon::prelude::*;

/// Values of one block: in the first cache, and no function of the thread count.
pub(crate) const BLOCK: usize = 1024;

/// Fewest blocks that are worth handing to another thread.
const AT_LEAST: usize = 4;

/// A changed copy: `change(index of the block, its values)`.
///
/// Blocks are changed on the stack and moved to their place: the result is written once, not first filled with zeros.
pub(crate) fn changed(from: &[f32], change: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let block = |(k, from): (usize, &[f32])| {
        let mut block = [0.0; BLOCK];
        let values = &mut block[..from.len()];
        values.copy_from_slice(from);
        change(k, values);
        block
    };
    let blocks = from.par_chunks(BLOCK).enumerate().with_min_len(AT_LEAST).map(block);
    let mut to = blocks.collect::<Vec<_>>().into_flattened();
    to.truncate(from.len());
    to
}

/// [`changed`] in place.
pub(crate) fn change(values: &mut [f32], change: impl Fn(usize, &mut [f32]) + Sync) {
    let blocks = values.par_chunks_mut(BLOCK).enumerate().with_min_len(AT_LEAST);
    blocks.for_each(|(k, block)| change(k, block));
}

/// [`change`] with the values of `beside` at the same places.
///
/// # Panics
/// If there are not as many.
pub(crate) fn change_beside(
    values: &mut [f32],
    beside: &[f32],
    change: impl Fn(&mut [f32], &[f32]) + Sync,
) {
    assert_eq!(values.len(), beside.len(), "values side by side");
    let blocks = values.par_chunks_mut(BLOCK).zip(beside.par_chunks(BLOCK)).with_min_len(AT_LEAST);
    blocks.for_each(|(values, beside)| change(values, beside));
}

#[cfg(test)]
mod tests {
    use super::*;

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
            change_beside(&mut values, &from, |values, beside| {
                values.iter_mut().zip(beside).for_each(|(v, b)| *v -= b);
            });
            assert!(values.iter().enumerate().all(|(k, v)| *v == 0.25 + (k / BLOCK) as f32));
        }
    }
}
