//! One value for each split of a data set.

pub(crate) use itm_core::data::Split;

/// One value per split.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Splits<T> {
    pub(crate) train: T,
    pub(crate) val: T,
    pub(crate) test: T,
}

impl<T> Splits<T> {
    /// Makes the value of each split.
    ///
    /// # Errors
    /// The first error of `make`.
    pub(crate) fn try_new<E>(make: impl Fn(Split) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self { train: make(Split::Train)?, val: make(Split::Val)?, test: make(Split::Test)? })
    }

    /// Makes another value of each split's value.
    pub(crate) fn map<U>(self, make: impl Fn(T) -> U) -> Splits<U> {
        Splits { train: make(self.train), val: make(self.val), test: make(self.test) }
    }

    /// The value of a split.
    pub(crate) fn of(&self, split: Split) -> &T {
        match split {
            Split::Train => &self.train,
            Split::Val => &self.val,
            Split::Test => &self.test,
        }
    }
}
