//! The three splits of a data set.

/// A split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// What is trained on: to be explained, never to be measured.
    Train,
    /// Where epochs are chosen.
    Val,
    /// What is reported.
    Test,
}

impl Split {
    /// As lines and files name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        }
    }
}

/// One thing for each split.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Splits<T> {
    pub(crate) train: T,
    pub(crate) val: T,
    pub(crate) test: T,
}

impl<T> Splits<T> {
    /// Makes the thing of each split.
    ///
    /// # Errors
    /// The first of `make`.
    pub(crate) fn try_new<E>(make: impl Fn(Split) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self { train: make(Split::Train)?, val: make(Split::Val)?, test: make(Split::Test)? })
    }

    /// Another thing for each, made of this one.
    pub(crate) fn map<U>(self, make: impl Fn(T) -> U) -> Splits<U> {
        Splits { train: make(self.train), val: make(self.val), test: make(self.test) }
    }

    /// The part of a split.
    pub(crate) fn of(&self, split: Split) -> &T {
        match split {
            Split::Train => &self.train,
            Split::Val => &self.val,
            Split::Test => &self.test,
        }
    }

    /// All three, in order.
    pub(crate) fn all(&self) -> [&T; 3] {
        [&self.train, &self.val, &self.test]
    }
}
