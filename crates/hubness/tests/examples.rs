//! The examples run.

#[path = "../examples/rgm.rs"]
mod rgm;
#[path = "../examples/service.rs"]
mod service;

#[test]
fn greedy_matching_over_embeddings_of_ones_own() {
    rgm::main().unwrap();
}

#[test]
fn a_saved_correction_serves_single_queries() {
    service::main().unwrap();
}
