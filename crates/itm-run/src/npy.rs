//! `.npy` files as NumPy writes them.

/// A whole small array.
pub(crate) fn array(kind: &str, shape: &[usize], bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    header(kind, shape).into_iter().chain(bytes).collect()
}

/// The header of format 1.0. It has 128 bytes for every shape.
pub(crate) fn header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let text =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{text:<117}\n").bytes());
    bytes
}
