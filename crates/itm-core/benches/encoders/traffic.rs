//! Memory traffic only: a copy of the bytes that an operation reads and writes.

use rayon::prelude::*;

/// Tensors of `values` numbers. An operation reads or writes `passes` such tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traffic {
    pub(crate) values: usize,
    pub(crate) passes: usize,
}

impl Traffic {
    /// Copies half as many values as the operation touches, because a copy is a read and a write. The buffers have the
    /// size of a tensor.
    pub(crate) fn step(self) -> Box<dyn FnMut()> {
        const BLOCK: usize = 1 << 14;
        let (from, mut to) = (vec![1.0f32; self.values], vec![0.0f32; self.values]);
        Box::new(move || {
            let mut left = self.values * self.passes / 2;
            while left > 0 {
                let n = left.min(self.values);
                let blocks = to[..n].par_chunks_mut(BLOCK).zip(from[..n].par_chunks(BLOCK));
                blocks.for_each(|(to, from)| to.copy_from_slice(from));
                std::hint::black_box(&mut to);
                left -= n;
            }
        })
    }
}
