//! Regularised canonical correlation analysis: the closed-form baseline on global features.

mod moments;
mod projection;
mod recalls;
mod rows;
mod search;
mod solve;
mod start;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::data::{Dataset, Features, SplitData, unit};
use crate::text::Terms;
use crate::{Error, Pairs, Result, ScoreMatrix};
use moments::PairMoments;
use rows::{SparseRow, text_row, text_rows};
use search::search;
use solve::Problem;

pub use projection::Projection;
pub use start::StartInputs;

/// All threads of the current pool.
fn parallel() -> Par {
    Par::rayon(0)
}

/// The transform of an image's features before they are scaled to unit length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageTransform {
    /// `√max(x, 0)`: for pooled features after a ReLU, which are never negative.
    Root,
    /// `sign(x) · √|x|`: for features with both signs.
    SignedRoot,
}

impl ImageTransform {
    /// [`Root`](Self::Root) if no feature is negative, else [`SignedRoot`](Self::SignedRoot). Pass only training
    /// features.
    fn suited_to(training: &Features) -> Self {
        if training.values.iter().all(|&x| x >= 0.0) { Self::Root } else { Self::SignedRoot }
    }

    /// Writes the transformed row at unit length; a row of zeros stays zero.
    fn apply(self, row: &[f32], out: &mut [f64]) {
        for (out, &x) in out.iter_mut().zip(row) {
            let x = f64::from(x);
            *out = match self {
                Self::Root if x < 0.0 => 0.0,
                Self::Root => x.sqrt(), // NaN stays NaN: scores refuse it
                Self::SignedRoot => x.abs().sqrt().copysign(x),
            };
        }
        unit(out);
    }

    /// Writes the transformed row of an image beside its given rows.
    fn image(self, part: &SplitData, image: usize, out: &mut [f64]) {
        let (own, given) = out.split_at_mut(part.features.dim);
        self.apply(part.features.row(image), own);
        let rows = part.embeddings.images.row(image);
        given.iter_mut().zip(rows).for_each(|(out, &x)| *out = f64::from(x));
    }

    fn row(self, part: &SplitData, image: usize) -> SparseRow {
        let mut out = vec![0.0; image_width(part)];
        self.image(part, image, &mut out);
        out.into_iter().enumerate().collect()
    }
}

/// The grid of [`Cca::fit`] and the options of its inputs.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CcaOptions {
    /// Least number of captions in which a term must occur.
    pub min_captions: usize,
    /// Largest number of terms. Time grows with the cube of this number, memory with its square.
    pub max_terms: usize,
    /// `rx`: ridges of the images, relative to their mean variance.
    pub ridge_image: Vec<f64>,
    /// `ry`: ridges of the texts.
    pub ridge_text: Vec<f64>,
    /// `p`: powers; the weight of a dimension is its correlation to this power.
    pub power: Vec<f64>,
    /// `d`: numbers of dimensions; numbers above the rank count as the rank.
    pub dims: Vec<usize>,
}

impl Default for CcaOptions {
    fn default() -> Self {
        Self {
            min_captions: 2,
            max_terms: 6000,
            ridge_image: vec![0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0],
            ridge_text: vec![0.1, 0.5, 1.0, 2.0, 3.0],
            power: vec![0.5, 0.75, 1.0, 1.25, 1.5],
            dims: vec![32, 48, 64, 96, 128, 160, 192, 256, 320, 384],
        }
    }
}

/// The point of the grid with the highest rSum on the validation split; among equals, the first, and the smallest width.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BestPoint {
    /// `rx`.
    pub ridge_image: f64,
    /// `ry`.
    pub ridge_text: f64,
    /// `p`.
    pub power: f64,
    /// `d`.
    pub dims: usize,
}

/// Regularised CCA of global image features and tf-idf texts, fitted in closed form.
///
/// ```text
/// x = unit(√x) − mean over images          y = unit(tf-idf) − mean over captions
/// Cxx = XᵀX / N   Cyy = YᵀY / M   Cxy = XᵀȲ / N,   Ȳ: the mean of an image's captions
/// (Cxx + rx · tr(Cxx)/dx · I)^(−1/2) · Cxy · (Cyy + ry · tr(Cyy)/dy · I)^(−1/2) = U · diag(s) · Vᵀ
/// Wx = (Cxx + …)^(−1/2) · U · diag(sᵖ)     Wy = (Cyy + …)^(−1/2) · V · diag(sᵖ)     first d columns
/// s(v, w) = cos(Wxᵀ x, Wyᵀ y)
/// ```
///
/// Given rows ([`Embeddings`](crate::data::Embeddings)) stand beside both: `x = [unit(√x); given]`, `y = [unit(tf-idf); given]`. Either
/// side may have given rows alone.
///
/// | symbol     | here                                       | shape        |
/// |------------|--------------------------------------------|--------------|
/// | N, M       | images and captions of the training split  |              |
/// | rx, ry     | [`BestPoint::ridge_image`], [`BestPoint::ridge_text`] |         |
/// | p, d       | [`BestPoint::power`], [`BestPoint::dims`]        |              |
/// | s          | [`Cca::correlations`]                      | `[d]`        |
/// | Wxᵀ x      | [`Cca::image_embeddings`], unit rows       | `[rows, d]`  |
/// | Wyᵀ y      | [`Cca::text_embeddings`], unit rows        | `[texts, d]` |
///
/// It learns from the training split, chooses `rx, ry, p, d` by the rSum of the validation split, and never reads the
/// test split. It is a baseline: training must give a better rSum to be worth anything.
///
/// # Departures
/// Hotelling (1936) has no ridge and no weights; the weights come from Gong et al. (IJCV 2014). If there are more than
/// [`CcaOptions::max_terms`] terms, the rarest are dropped; a truncated SVD of the texts would keep a part of them.
///
/// ```
/// use itm_core::Pairs;
/// use itm_core::cca::{Cca, CcaOptions};
/// use itm_core::data::{Dataset, Features, SplitData};
///
/// let part = |n: usize| SplitData {
///     features: Features { dim: 2, values: [[9.0, 1.0], [2.0, 5.0]].repeat(n / 2).concat() },
///     images: (0..n).map(|i| format!("{i}.jpg")).collect(),
///     captions: ["Two dogs running.", "A red car."].repeat(n / 2).into_iter().map(String::from).collect(),
///     pairs: Pairs::uniform(n, 1),
///     ..SplitData::default()
/// };
/// let (train, val, test) = (part(8), part(4), part(2));
/// let data = Dataset { name: "toy".into(), train, val, test, sha256: String::new() };
///
/// let cca = Cca::fit(&data, &CcaOptions::default())?;
/// let scores = cca.scores(&data.test)?;
/// assert_eq!([0, 1].map(|image| scores.ranking(image)[0]), [0, 1]);
/// assert_eq!(cca.dims(), 1); // the rank of two kinds of images
/// # Ok::<(), itm_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cca {
    /// Width of the features; given rows stand behind them.
    features: usize,
    transform: ImageTransform,
    terms: Terms,
    image: Projection,
    text: Projection,
    /// Canonical correlations under the ridges, in descending order.
    pub correlations: Vec<f64>,
    /// The parameters that validation chose.
    pub chosen: BestPoint,
    /// rSum of the chosen parameters on the validation split. It is optimistic, because the parameters were chosen on
    /// this split.
    pub validation_rsum: f64,
}

impl Cca {
    /// Fits the training split and chooses from the grid on the validation split.
    ///
    /// ```text
    /// values held = dx² + dy² + dx·dy + a² + max(b² + a·b + 2·a², a² + (n + m)·a + threads · (5·a² + 2·(n + m)·d))
    /// ```
    ///
    /// Memory is about 8 bytes per value held, plus the data. `a` is the smaller and `b` the larger of `dx` and `dy`;
    /// `n` and `m` are the numbers of images and captions of validation; `d` is the largest width of the grid.
    /// `threads` is at most the number of ridges of the smaller side. Nothing grows with the square of the number of
    /// images.
    ///
    /// # Errors
    /// - If a list of the grid is empty or holds a value that is out of range.
    /// - If the training or validation split has no caption, no true pair, or a feature that is not finite.
    /// - If features or captions do not fit the pairs, or the splits differ in width.
    /// - If a side has neither inputs of its own nor given rows, or images do not vary together with their captions.
    pub fn fit(data: &Dataset, options: &CcaOptions) -> Result<Self> {
        check_options(options)?;
        let (train, val) = (&data.train, &data.val);
        for (name, part) in [("train", train), ("val", val)] {
            let (place, width) = (format!("{}, {name}", data.name), train.features.dim);
            check_pairs(&place, width, &part.features, &part.captions, &part.pairs)?;
            let (given, wanted) = (&part.embeddings, &train.embeddings);
            let (images, texts) = (part.pairs.images(), part.pairs.texts());
            for (what, rows, width, count) in [
                ("images", &given.images, wanted.images.dim, images),
                ("captions", &given.texts, wanted.texts.dim, texts),
            ] {
                check_rows(&format!("{place}, rows of {what}"), width, rows, count)?;
            }
            let any = (0..images).any(|image| !part.pairs.texts_of(image).is_empty());
            Error::unless(any, place, "at least one true pair", "none")?;
        }
        let has_images = image_width(train) > 0;
        Error::unless(has_images, &data.name, "features or given rows of images", "none")?;
        let transform = ImageTransform::suited_to(&train.features);
        let (min, max) = (options.min_captions, options.max_terms);
        let terms = Terms::fit(&train.captions, min, max);
        let has_texts = !terms.is_empty() || train.embeddings.texts.dim > 0;
        let place = format!("{}, train", data.name);
        let expected = format_args!("a term of at least {min} captions");
        Error::unless(has_texts, &place, expected, "none")?;

        let row = |image: usize, out: &mut [f64]| transform.image(train, image, out);
        let text_rows =
            |part: &SplitData| text_rows(&terms, &part.captions, &part.embeddings.texts);
        let texts = text_rows(train);
        let widths = [image_width(train), terms.len() + train.embeddings.texts.dim];
        let moments = PairMoments::new(widths, row, &texts, &train.pairs);
        drop(texts);
        let problem = Problem::new(&moments)?;
        let images: Vec<_> = (0..val.pairs.images()).map(|i| transform.row(val, i)).collect();
        let rows = [images, text_rows(val)];
        let means = [&moments.mean_x[..], &moments.mean_y[..]];
        let validation = (rows, means, &val.pairs);
        let Some((validation_rsum, chosen)) = search(&problem, validation, options)? else {
            let expected = "images that vary together with their captions";
            return Err(Error::invalid(place, expected, "no correlation"));
        };
        let ridges = [chosen.ridge_image, chosen.ridge_text];
        let (s, [image, text]) = problem.solve(ridges, chosen.dims)?;
        let weights = weights(&s, chosen.power);
        Ok(Self {
            image: Projection::new(image.as_ref(), &moments.mean_x, &weights),
            text: Projection::new(text.as_ref(), &moments.mean_y, &weights),
            correlations: s,
            features: train.features.dim,
            transform,
            terms,
            chosen,
            validation_rsum,
        })
    }

    /// Width of an embedding.
    pub fn dims(&self) -> usize {
        self.image.width
    }

    /// The maps of images and of texts into the common space. The inputs of an image are its transformed features and its given row, the
    /// inputs of a text its terms and its given row.
    pub fn projections(&self) -> [&Projection; 2] {
        [&self.image, &self.text]
    }

    /// Image embeddings of unit length, `[rows, dims]` row-major. The score of a pair is a dot product.
    ///
    /// # Panics
    /// If the features and given rows are not as wide as in training, or fewer than the images.
    pub fn image_embeddings(&self, part: &SplitData) -> Vec<f32> {
        let (inputs, width) = (self.image.inputs(), image_width(part));
        assert_eq!(width, inputs, "features and given rows of width {width}, not {inputs}");
        let (own, dim) = (self.features, part.features.dim);
        assert_eq!(dim, own, "features of width {dim} beside given rows, not {own}");
        self.image.embed(part.pairs.images(), |i| self.transform.row(part, i))
    }

    /// Text embeddings of unit length, `[texts, dims]` row-major. Without given rows, all texts without a known term have the same
    /// embedding.
    ///
    /// # Panics
    /// If the given rows are not as wide as in training, or fewer than the captions.
    pub fn text_embeddings(&self, part: &SplitData) -> Vec<f32> {
        let rows = &part.embeddings.texts;
        let (inputs, width) = (self.text.inputs(), self.terms.len() + rows.dim);
        assert_eq!(width, inputs, "terms and given rows of width {width}, not {inputs}");
        let row = |k: usize| text_row(&self.terms, &part.captions[k], rows.row(k));
        self.text.embed(part.captions.len(), row)
    }

    /// Scores of all images of a split against all its texts.
    ///
    /// # Errors
    /// If features, given rows and captions are not as many as the images and texts of the pairs, or a value is not finite.
    ///
    /// # Panics
    /// If the features or given rows are not as wide as in training.
    pub fn scores(&self, part: &SplitData) -> Result<ScoreMatrix> {
        let SplitData { features, captions, pairs, embeddings, .. } = part;
        check_pairs("a split", features.dim, features, captions, pairs)?;
        for (rows, count) in
            [(&embeddings.images, pairs.images()), (&embeddings.texts, pairs.texts())]
        {
            check_rows("a split, given rows", rows.dim, rows, count)?;
        }
        let (images, texts) = (self.image_embeddings(part), self.text_embeddings(part));
        let (n, m, d) = (part.pairs.images(), part.captions.len(), self.dims());
        let mut values = vec![0.0; n * m]; // row-major [n, m] = column-major [m, n]
        let products = MatMut::from_column_major_slice_mut(&mut values, m, n);
        let texts = MatRef::from_row_major_slice(&texts, m, d);
        let images = MatRef::from_column_major_slice(&images, d, n);
        matmul(products, Accum::Replace, texts, images, 1.0, parallel());
        ScoreMatrix::new(n, m, values)
    }
}

/// Width of an image's inputs.
fn image_width(part: &SplitData) -> usize {
    part.features.dim + part.embeddings.images.dim
}

/// `sᵖ`. Both sides have this weight, so a dimension has the weight `s²ᵖ` in a score.
fn weights(s: &[f64], power: f64) -> Vec<f64> {
    s.iter().map(|s| s.powf(power)).collect()
}

fn check_options(options: &CcaOptions) -> Result<()> {
    let place = |field: &str| format!("CCA options, {field}");
    for (field, values) in [
        ("ridge_image", &options.ridge_image),
        ("ridge_text", &options.ridge_text),
        ("power", &options.power),
    ] {
        let fits = !values.is_empty() && values.iter().all(|v| v.is_finite() && *v >= 0.0);
        Error::unless(fits, place(field), "numbers from 0", format_args!("{values:?}"))?;
    }
    let dims = &options.dims;
    let fits = !dims.is_empty() && !dims.contains(&0);
    Error::unless(fits, place("dims"), "numbers from 1", format_args!("{dims:?}"))
}

/// Checks that features and captions fit the pairs and that features have the width, which may be 0. `place` begins every error.
fn check_pairs(
    place: &str,
    width: usize,
    features: &Features,
    captions: &[String],
    pairs: &Pairs,
) -> Result<()> {
    Error::unless(!captions.is_empty(), place, "at least one caption", "none")?;
    for (what, expected, got) in [
        ("width of the features", width, features.dim),
        ("rows of features", if width > 0 { pairs.images() } else { 0 }, features.rows()),
        ("values of features", features.rows() * features.dim, features.values.len()),
        ("captions", pairs.texts(), captions.len()),
    ] {
        Error::unless(expected == got, format_args!("{place}, {what}"), expected, got)?;
    }
    let of = |at| format!("{place}, image {}, feature {}", at / features.dim, at % features.dim);
    Error::unless_finite(&features.values, of, "a finite number")
}

/// Checks given rows: width, count and values. Rows of width 0 are no rows.
fn check_rows(place: &str, width: usize, rows: &Features, count: usize) -> Result<()> {
    let all = count.saturating_mul(width);
    let fits = rows.dim == width && rows.values.len() == all;
    let got = format!("width {}, {} values", rows.dim, rows.values.len());
    Error::unless(fits, place, format_args!("{count} rows of width {width}"), got)?;
    let of = |at| format!("{place}, row {}", at / width);
    Error::unless_finite(&rows.values, of, "finite numbers")
}

#[cfg(test)]
mod tests;
