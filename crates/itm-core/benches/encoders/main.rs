//! Times encoders, their operations and their matrix products. One process measures one row and prints one line of
//! JSON.
//!
//! ```text
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- --list
//! cargo bench -p itm-core --bench encoders --features burn,itm-kernels/flex -- vit-224 ours --threads 2 --seconds 4
//! ```
//!
//! `python tests/performance.py` runs all rows beside the same rows in PyTorch, which `tests/reference/performance.py`
//! measures in the same way. The variants are `ours`, `ours-bf16` and a floor. `ours-bf16` has products with bf16
//! operands, on processors that support bf16. The floor is the work that the row cannot avoid: `products`, only its
//! matrix products, or `traffic`, a copy of the bytes that the operation reads and writes.

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
