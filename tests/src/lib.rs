//! Tests over all crates: `tests/`. Independent references in Python: `reference/`.
