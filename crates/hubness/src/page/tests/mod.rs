//! What the tests of the pages share.

pub(crate) mod sample;
