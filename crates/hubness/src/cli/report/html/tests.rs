use super::super::sample;
use super::*;

/// Writes the made-up report as a page where `HUBNESS_PAGE` says, to be looked at.
#[test]
fn a_page_to_look_at() {
    if let Some(path) = std::env::var_os("HUBNESS_PAGE") {
        std::fs::write(path, render(&sample::report())).unwrap();
    }
}
