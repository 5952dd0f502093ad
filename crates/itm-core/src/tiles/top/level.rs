//! The numbers that lists rank their items by, and the key of an item.

/// The number by which lists rank their items: an f32 score, or an integer that replaces it.
pub trait Level: Copy + PartialOrd + Send {
    /// No number is below.
    const LOWEST: Self;
    /// No number is above.
    const HIGHEST: Self;

    /// Bits in the order of the numbers.
    fn ordered(self) -> u32;

    /// The number with these ordered bits; a zero is always +0.
    fn of_ordered(ordered: u32) -> Self;

    /// The number minus `slack`: two numbers closer than `slack` may be in the wrong order.
    fn lowered(self, slack: i32) -> Self;
}

impl Level for f32 {
    const LOWEST: Self = f32::NEG_INFINITY;
    const HIGHEST: Self = f32::INFINITY;

    fn ordered(self) -> u32 {
        let bits = (self + 0.0).to_bits(); // −0 + 0 = +0: the two are tied
        if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
    }

    fn of_ordered(ordered: u32) -> Self {
        f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
    }

    /// Scores are exact: lists of scores have no slack.
    fn lowered(self, _slack: i32) -> Self {
        self
    }
}

impl Level for i32 {
    const LOWEST: Self = i32::MIN;
    const HIGHEST: Self = i32::MAX;

    fn ordered(self) -> u32 {
        self.cast_unsigned() ^ 1 << 31
    }

    fn of_ordered(ordered: u32) -> Self {
        (ordered ^ 1 << 31).cast_signed()
    }

    fn lowered(self, slack: i32) -> Self {
        self.saturating_sub(slack)
    }
}

/// Score and index in one number that is larger for the better item: no two items are equal.
pub(in crate::tiles) fn key<T: Level>(score: T, item: usize) -> u64 {
    u64::from(score.ordered()) << 32 | u64::from(!(item as u32))
}

pub(in crate::tiles) fn score_of<T: Level>(key: u64) -> T {
    T::of_ordered((key >> 32) as u32)
}

pub(in crate::tiles) fn item_of(key: u64) -> u32 {
    !(key as u32)
}
