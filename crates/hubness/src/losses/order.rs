//! Similarity of order embeddings.

use burn::tensor::Tensor;

/// How far texts stick out of images: 0 where the image dominates its text in every coordinate, else negative.
///
/// ```text
/// s(i, t) = − √( Σ_j max(0, t_j − i_j)² )
/// ```
///
/// | symbol | here | shape |
/// |---|---|---|
/// | i | `images` | `[n, d]`, not negative |
/// | t | `texts` | `[m, d]`, not negative |
/// | s | result | `[n, m]` |
///
/// # Panics
/// If the widths differ.
///
/// # Departures
/// The root has no derivative at 0, where programs return NaN: here value and gradient are 0, exactly.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use hubness::losses::order_similarity;
///
/// let images = Tensor::<2>::from_floats([[0.5, 0.9], [0.2, 0.5]], &Device::flex());
/// let text = Tensor::<2>::from_floats([[0.5, 0.9]], &Device::flex());
/// let s = order_similarity(images, text).into_data().try_to_vec::<f32>().unwrap();
/// assert_eq!(s[0], 0.0);
/// assert!((s[1] + 0.5).abs() < 1e-6); // −√(0.3² + 0.4²)
/// # }
/// ```
pub fn order_similarity(images: Tensor<2>, texts: Tensor<2>) -> Tensor<2> {
    let ([n, d], [m, e]) = (images.dims(), texts.dims());
    assert_eq!(d, e, "images of shape [{n}, {d}] against texts of shape [{m}, {e}]");
    let images = images.reshape([n, 1, d]).expand([n, m, d]);
    let texts = texts.reshape([1, m, d]).expand([n, m, d]);
    let over = texts - images;
    let inside = over.clone().lower_equal_elem(0.0);
    let over = over.mask_fill(inside, 0.0); // [n, m, d]
    let squares = (over.clone() * over).sum_dim(2).reshape([n, m]);
    let dominated = squares.clone().equal_elem(0.0);
    // The root of a constant there: its derivative is finite, and the mask makes both 0.
    squares.mask_fill(dominated.clone(), 1.0).sqrt().neg().mask_fill(dominated, 0.0)
}
