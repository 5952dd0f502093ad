//! Encoders, their operations and their matrix products: one row in a process of its own, one line of JSON.
//!
//! ```text
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- --list
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- vit-224 ours --threads 2 --seconds 4
//! ```
//!
//! `cargo xtask performance` runs all of them beside PyTorch's, which `tests/reference/performance.py` measures in the same
//! way. Variants: `ours`; and what the row cannot do without, by itself:
//! `products`, its matrix products, or `traffic`, a copy of as many bytes as it reads and writes.

#[path = "../process/mod.rs"]
mod process;
mod products;
mod rows;
mod traffic;

use std::process::ExitCode;

use process::{Listed, Step};
use rows::rows;

fn main() -> ExitCode {
    let listed: Vec<Listed> =
        rows().into_iter().map(|row| (row.name, vec!["ours", row.floor.name()])).collect();
    process::main(&listed, step_of, || Ok(()))
}

fn step_of(name: &str, variant: &str) -> Result<Step, String> {
    let row = rows().into_iter().find(|row| row.name == name).ok_or(format!("no row {name}"))?;
    let mut step = match variant {
        "ours" => (row.ours)(),
        floor if floor == row.floor.name() => row.floor.step(),
        other => return Err(format!("no variant {other} of {name}")),
    };
    Ok(Box::new(move || {
        step();
        Ok(())
    }))
}
