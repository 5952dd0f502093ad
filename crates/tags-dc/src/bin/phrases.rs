//! `phrases`: the scene graph of a sentence.
fn main() {}
