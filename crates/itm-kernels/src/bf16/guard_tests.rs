//! Packing and products in bf16 access no value outside of their slices. Each slice borders a page without access rights.

use std::ptr;
use std::slice;

use super::tests::product_by;
use super::tile::Base;
use super::*;
use crate::matrix::Matrix;
use crate::tests::random;

/// Values between two forbidden pages, at one end of the room between them.
struct Guarded {
    map: *mut libc::c_void,
    bytes: usize,
    first: *mut f32,
    len: usize,
}

/// Which forbidden page the values touch.
#[derive(Clone, Copy)]
enum Touch {
    Before,
    After,
}

impl Guarded {
    fn new(values: &[f32], touch: Touch) -> Self {
        // SAFETY: this only asks the system for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let room = size_of_val(values).next_multiple_of(page);
        let bytes = room + 2 * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: the map is fresh memory that nothing else uses.
        let map = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        assert!(map != libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        let begin = map.wrapping_byte_add(page);
        // SAFETY: whole pages inside of the map.
        let opened = unsafe { libc::mprotect(begin, room, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        let skipped = match touch {
            Touch::Before => 0,
            Touch::After => room - size_of_val(values),
        };
        let first = begin.wrapping_byte_add(skipped).cast::<f32>();
        let mut new = Self { map, bytes, first, len: values.len() };
        new.values().copy_from_slice(values);
        new
    }

    fn values(&mut self) -> &mut [f32] {
        // SAFETY: `len` values are inside the open pages, aligned and initialised with zeros; only this borrow
        // reaches them.
        unsafe { slice::from_raw_parts_mut(self.first, self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: this value owns the map, and no borrow of the map is left.
        unsafe { libc::munmap(self.map, self.bytes) };
    }
}

/// An access outside of a slice ends the process.
#[test]
fn nothing_outside_the_slices_is_touched() {
    let sizes = [1, 2, 7, 8, 15, 16, 17, 31, 33, 47, 48, 49, 95, 130];
    for touch in [Touch::Before, Touch::After] {
        for (round, m) in sizes.into_iter().enumerate() {
            for (k, n) in [
                (sizes[(round * 5 + 3) % 14], sizes[(round * 3 + 1) % 14]),
                (1, m),
                (m, 1),
                (16, 48),
            ] {
                let mut a = Guarded::new(&random(m * k, 1), touch);
                let mut b = Guarded::new(&random(k * n, 2), touch);
                let (rows, cols) = (Matrix::new(a.values(), m, k), Matrix::new(b.values(), k, n));
                let (packed, columns) = (LeftOperand::pack(rows), RightOperand::pack(cols));
                _ = (LeftOperand::pack(rows.t()), RightOperand::pack(cols.t()));
                let _: (LeftOperand, LeftOperand) = pack_both(rows); // an input
                let _: (LeftOperand, RightOperand) = pack_both(rows); // a gradient
                let _: (RightOperand, RightOperand) = pack_both(cols.t()); // a weight
                let mut to = Guarded::new(&vec![7.0; m * n], touch);
                product_by(Engine::best(), to.values(), Base::Zero, &packed, &columns);
                product_by(Engine::best(), to.values(), Base::Held, &packed, &columns);
                let want: f32 =
                    2.0 * (0..k).map(|j| a.values()[j] * b.values()[j * n]).sum::<f32>();
                let got = to.values()[0];
                assert!((got - want).abs() < 0.02 * k as f32, "{m} × {k} × {n}: {got}, {want}");
            }
        }
    }
}
