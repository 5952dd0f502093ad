//! The binary `hubness`.

fn main() {}
