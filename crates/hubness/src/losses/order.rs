//! Similarity of order embeddings.

use burn::tensor::Tensor;

/// How far each text exceeds each image: 0 where the image dominates the text in every coordinate, else negative.
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
/// The root has no derivative at 0, and programs return NaN there. Here value and gradient are exactly 0.
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
    itm_kernels::order_similarity(images, texts)
}
