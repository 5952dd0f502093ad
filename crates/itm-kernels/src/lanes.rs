//! Slices as whole registers, the last one filled up: a loop over them has one body, and no branch on its loads and stores.

/// A slice in arrays of `N`.
pub(crate) struct Lanes<'a, const N: usize> {
    whole: &'a [[f32; N]],
    /// What is left over, then the filling.
    last: [f32; N],
    len: usize,
}

impl<'a, const N: usize> Lanes<'a, N> {
    #[inline(always)]
    pub(crate) fn new(from: &'a [f32], fill: f32) -> Self {
        let (whole, rest) = from.as_chunks();
        let mut last = [fill; N];
        if !rest.is_empty() {
            last[..rest.len()].copy_from_slice(rest);
        }
        Self { whole, last, len: from.len().div_ceil(N) }
    }

    /// Number of arrays.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(crate) fn get(&self, k: usize) -> [f32; N] {
        *self.whole.get(k).unwrap_or(&self.last)
    }
}

/// [`Lanes`] that can be changed. What is left over is written back by [`LanesMut::finish`].
pub(crate) struct LanesMut<'a, const N: usize> {
    whole: &'a mut [[f32; N]],
    rest: &'a mut [f32],
    last: [f32; N],
}

impl<'a, const N: usize> LanesMut<'a, N> {
    #[inline(always)]
    pub(crate) fn new(from: &'a mut [f32], fill: f32) -> Self {
        let (whole, rest) = from.as_chunks_mut();
        let mut last = [fill; N];
        if !rest.is_empty() {
            last[..rest.len()].copy_from_slice(rest);
        }
        Self { whole, rest, last }
    }

    /// Number of arrays.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.whole.len() + usize::from(!self.rest.is_empty())
    }

    #[inline(always)]
    pub(crate) fn get(&self, k: usize) -> [f32; N] {
        *self.whole.get(k).unwrap_or(&self.last)
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, k: usize, values: [f32; N]) {
        *self.whole.get_mut(k).unwrap_or(&mut self.last) = values;
    }

    #[inline(always)]
    pub(crate) fn finish(self) {
        if !self.rest.is_empty() {
            self.rest.copy_from_slice(&self.last[..self.rest.len()]);
        }
    }
}

/// The sum, halves added to halves: a fixed order. `N` is a power of two.
#[inline(always)]
pub(crate) fn sum<const N: usize>(mut values: [f32; N]) -> f32 {
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            values[k] += values[k + half];
        }
        half /= 2;
    }
    values[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every length: what is read is the slice and then the filling; what is written back is the slice alone.
    #[test]
    fn a_slice_is_read_and_written_whole() {
        for n in 0..50usize {
            let from: Vec<f32> = (0..n).map(|k| k as f32).collect();
            let mut to = from.clone();
            let lanes = Lanes::<16>::new(&from, -1.0);
            let mut changed = LanesMut::<16>::new(&mut to, -1.0);
            assert_eq!((lanes.len(), changed.len()), (n.div_ceil(16), n.div_ceil(16)));
            let mut read = Vec::new();
            for k in 0..lanes.len() {
                assert_eq!(lanes.get(k), changed.get(k));
                read.extend(lanes.get(k));
                changed.set(k, lanes.get(k).map(|v| v + 0.5));
            }
            changed.finish();
            assert_eq!(read[..n], from);
            assert!(read[n..].iter().all(|&v| v == -1.0));
            assert!(to.iter().zip(&from).all(|(t, f)| *t == f + 0.5));
        }
    }

    #[test]
    fn a_sum_has_every_value_once() {
        let values: [f32; 32] = std::array::from_fn(|k| (1u32 << (k % 24)) as f32);
        assert_eq!(sum(values), ((1u32 << 24) - 1 + (1 << 8) - 1) as f32);
    }
}
