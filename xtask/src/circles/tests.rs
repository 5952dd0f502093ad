use super::*;

/// The findings of a crate `a` with these files below `src`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let path = |name| format!("crates/a/src/{name}");
    let files = files.iter().map(|(name, text)| (path(name), text.to_string())).collect();
    let lines =
        check(&files, "crates/a").into_iter().map(|f| format!("{}: {}", f.place, f.message));
    lines.map(|line| line.replace("crates/a/src/", "")).collect()
}

/// A crate of two modules; `y` imports `x`.
fn with(x: &str) -> Vec<String> {
    let root = "mod x;\nmod y;\npub use y::Y;\nuse y::Y as Other;\npub struct Own;";
    let y = "use crate::x::X;\npub struct Y;\npub mod below { pub struct Z; }";
    found(&[("lib.rs", root), ("x.rs", x), ("y/mod.rs", y)])
}

#[test]
fn a_circle_is_named_with_a_place_for_each_arrow() {
    let want = "crates/a: x → y → x: x names y at x.rs:2, y names x at y/mod.rs:1";
    assert_eq!(with("// why\nuse crate::y::Y;"), [want]);
    let twice = with("use crate::y::Y;\nfn f(y: crate::y::Y) {}");
    assert_eq!(twice, [want.replace("x.rs:2", "x.rs:1 and 1 more")]);
}

#[test]
fn every_way_to_name_a_module_is_an_arrow() {
    for arrow in [
        "use super::y::Y;",
        "use self::super::y::Y;",
        "use crate::y;",
        "use crate::y::below::Z as Q;",
        "use crate::{Own, y::{self, below::{Z}}};",
        "use crate::Y;",     // what the root re-exports
        "use crate::Other;", // or only imports
        "pub(in crate::y) struct X;",
        "fn f() { super::y::g() }",
        "fn f() -> impl Into<crate::Y> { 1 }",
        "macro_rules! m { () => { $crate::y::f() } }",
        "fn f() { println!(\"{}\", crate::y::f()) }",
        "mod inside { use super::super::y::Y; }",
        "mod inside { fn f() { crate::y::f() } }",
        "#[cfg(not(test))] use crate::y::Y;",
        "#[cfg(any(test, unix))] use crate::y::Y;",
        "#[cfg(test)] use a::b; use crate::y::Y;",
        "#[cfg(test)] fn f<A, B>() { g() } use crate::y::Y;",
        "#[cfg(test)] const fn f() {} use crate::y::Y;",
        "#[cfg(test)] const A: B = B { c: 1 }; use crate::y::Y;",
        "struct S { #[cfg(test)] a: u8, b: crate::Y }",
        "fn f() { match 1 { #[cfg(test)] 1 => {} _ => crate::y::f() } }",
        "fn f() { #[cfg(test)] g(1, 2); crate::y::f() }",
    ] {
        assert_eq!(with(arrow).len(), 1, "{arrow}");
    }
}

#[test]
fn what_is_no_code_of_the_module_is_no_arrow() {
    for none in [
        "// use crate::y::Y;",
        "/// [`crate::y::Y`]\nstruct X;",
        "//! [`Y`](crate::y::Y)",
        "const NAME: &str = \"crate::y::Y\";",
        "#[serde(default = \"crate::y::f\")] struct X;",
        "#[cfg(test)] use crate::y::Y;",
        "#[cfg(test)] mod tests { use crate::y::Y; }",
        "#[cfg(all(test, unix))] #[allow(unused)] pub(crate) fn f<A, B>(y: crate::y::Y) {}",
        "#[cfg(test)] const A: B = B { c: crate::y::C };",
        "#[cfg(test)] impl crate::y::T for X { fn f() {} }",
        "fn f() { #[cfg(test)] crate::y::f(); }",
        "use crate::Own;", // of the root
        "use ::y::Y;",     // of another crate
        "use y::Y;",       // of another crate too: not below `x`
        "use serde::{y::Y, de};\nfn f() { de::y::f(); a.y::<u8>() }",
        "use de::de; fn f() { de::y() }",
        "impl X { fn f(self) { Self::y::f() } }",
        "use super::x::X;", // itself
        "fn f() -> impl A + use<'_> { 1 }",
    ] {
        assert_eq!(with(none), [] as [&str; 0], "{none}");
    }
}

#[test]
fn circles_of_a_folder_are_found_and_parents_are_none() {
    let files = |two: &'static str| {
        [
            ("lib.rs", "mod f;"),
            ("f.rs", "mod one;\nmod two;\npub use one::One;\nuse two::Two;\npub struct F;"),
            ("f/one.rs", "use super::{F, Two};\npub struct One;"),
            ("f/two.rs", two),
        ]
    };
    for fine in ["pub struct Two(super::F);", "pub struct Two(crate::f::F);"] {
        assert_eq!(found(&files(fine)), [] as [&str; 0]);
    }
    for bad in ["use super::One;", "use crate::f::One;", "use crate::f; fn g() { f::one::h() }"] {
        let want =
            "crates/a f: one → two → one: one names two at f/one.rs:1, two names one at f/two.rs:1";
        assert_eq!(found(&files(bad)), [want]);
    }
}

/// x → y → z → x and x → z → x share the arrow z → x. The shorter circle is named first, and both are named until none is left.
#[test]
fn a_knot_is_named_until_it_is_open() {
    let root = ("main.rs", "mod x; mod y; mod z;");
    let knot =
        |x| [root, ("x.rs", x), ("y.rs", "use crate::z::Z;"), ("z.rs", "use crate::x::{X, A, B};")];
    let long = "crates/a: x → y → z → x: x names y at x.rs:1, y names z at y.rs:1, z names x at z.rs:1 and 2 more";
    assert_eq!(found(&knot("use crate::y::Y;")), [long]);
    let both = found(&knot("use crate::{y::Y, z::Z};"));
    assert_eq!(both.len(), 2);
    assert!(both[0].starts_with("crates/a: x → z → x: ") && both[1] == long, "{both:?}");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    assert_eq!(with("use super::*;"), ["x.rs:1: super::*: name what is imported"]);
    assert_eq!(
        with("use crate::y::{below::*};"),
        [
            "x.rs:1: crate::y::below::*: name what is imported",
            "crates/a: x → y → x: x names y at x.rs:1, y names x at y/mod.rs:1"
        ]
    );
    assert_eq!(with("use rayon::prelude::*;\nfn f() { use Kind::*; }"), [] as [&str; 0]);
    assert_eq!(found(&[("lib.rs", "mod gone;")]), ["gone.rs: no such module file"]);
    assert!(found(&[("lib.rs", "fn f( {}")])[0].starts_with("lib.rs: no Rust: "));
}
