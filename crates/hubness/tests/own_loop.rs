//! The example trains, stops, and resumes with the same bits.

#[path = "../examples/own_loop.rs"]
mod example;

#[test]
fn your_own_loop_resumes_with_the_same_bits() {
    example::main().unwrap();
}
