//! What a product is added to.

/// What a product is added to.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// Nothing.
    Zero,
    /// The same row for each row of the product, `[n]`: a bias.
    Row(&'a [f32]),
}

/// What the sums of a pass are added to.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    /// The start; what stands in the destination is not read.
    New(Start<'a>),
    /// The values in the destination. There must be some: who makes this answers for it.
    Held,
}

impl Base<'_> {
    /// The same for the columns from one on.
    pub(super) fn at_column(self, column: usize) -> Self {
        match self {
            Self::New(Start::Row(row)) => Self::New(Start::Row(&row[column..])),
            base => base,
        }
    }
}
