//! Encoders, their operations and their matrix products: one row in a process of its own, one line of JSON.
//!
//! ```text
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- --list
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- vit-224 ours --threads 2 --seconds 4
//! ```
//!
//! `cargo xtask performance` runs all of them beside PyTorch's, which `tests/reference/performance.py` measures in the same
//! way. Variants: `ours`; `ours-bf16`, whose products have bf16 operands, on processors that have them; and what the row cannot do without, by itself:
//! `products`, its matrix products, or `traffic`, a copy of the bytes that the operation reads and writes.

#[path = "../process/mod.rs"]
mod process;
mod products;
mod rows;
mod traffic;

use std::process::ExitCode;

use itm_kernels::bf16;
use process::{Listed, Step};
use rows::{Row, rows};

fn main() -> ExitCode {
    let variants = |row: &Row| {
        let bf16 = row.bf16.is_some() && bf16::supported();
        let all = [Some("ours"), bf16.then_some("ours-bf16"), Some(row.floor.name())];
        all.into_iter().flatten().collect()
    };
    let listed: Vec<Listed> = rows().iter().map(|row| (row.name.clone(), variants(row))).collect();
    process::main(&listed, step_of, || Ok(()))
}

fn step_of(name: &str, variant: &str) -> Result<Step, String> {
    let row = rows().into_iter().find(|row| row.name == name).ok_or(format!("no row {name}"))?;
    let mut step = match variant {
        "ours" => (row.ours)(),
        "ours-bf16" => row.bf16.ok_or(format!("no bf16 in {name}"))?(),
        floor if floor == row.floor.name() => row.floor.step(),
        other => return Err(format!("no variant {other} of {name}")),
    };
    Ok(Box::new(move || {
        step();
        Ok(())
    }))
}
