//! The example trains, stops, and goes on with the same bits.

#[path = "../examples/own_loop.rs"]
#[allow(dead_code, reason = "`main` asks for the device of a feature")]
mod example;

use burn::tensor::Device;

#[test]
fn your_own_loop_resumes_with_the_same_bits() {
    let [first, last] = example::run(&Device::flex().autodiff()).unwrap();
    assert!(last < first, "{first}, then {last}");
}
