//! Tests over all crates are in `tests/`, independent references in Python in `reference/`.
//!
//! The Rust blocks of the README and of the book run as doctests of this crate.

/// The Rust blocks of a page.
macro_rules! page {
    ($name:ident, $path:literal) => {
        #[cfg(doctest)]
        #[doc = include_str!(concat!("../../", $path))]
        struct $name;
    };
}

page!(Readme, "README.md");
page!(Embed, "docs/embed.md");
page!(Fne, "docs/fne.md");
page!(Hubness, "docs/hubness.md");
page!(Naaf, "docs/naaf.md");
page!(TagsDc, "docs/tags-dc.md");
