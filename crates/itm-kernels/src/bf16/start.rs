//! The values that a product is added to.

/// The values that a product is added to.
#[derive(Debug, Clone, Copy)]
pub enum Addend<'a> {
    /// Nothing.
    Zero,
    /// The same row for each row of the product, `[n]`: a bias.
    Row(&'a [f32]),
}

/// The values that the sums of a pass are added to.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// The start; the destination is not read.
    New(Addend<'a>),
    /// The values in the destination. Code that makes this must make sure that they are initialised.
    Held,
}

impl Base<'_> {
    /// The same base for the columns from `column` on.
    pub(super) fn at_column(self, column: usize) -> Self {
        match self {
            Self::New(Addend::Row(row)) => Self::New(Addend::Row(&row[column..])),
            base => base,
        }
    }
}
