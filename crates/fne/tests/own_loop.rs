//! The example trains, stops, and goes on with the same bits.

#[path = "../examples/own_loop.rs"]
mod example;

#[test]
fn a_loop_of_ones_own_resumes_with_the_same_bits() {
    example::main().unwrap();
}
