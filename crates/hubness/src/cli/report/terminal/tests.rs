use super::super::sample;
use super::*;

#[test]
fn dump() {
    for w in [60, 80, 100, 140, 200] {
        println!("{}\n{}", "=".repeat(w), render(&sample::report(), w, Palette::Plain));
    }
}
