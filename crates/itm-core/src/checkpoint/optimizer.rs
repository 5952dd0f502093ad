//! Writes and reads the moments of an optimiser.

use burn::module::Module;
use itm_kernels::{AdamMoments, AdamOptions, AdamW};

use super::{CheckpointReader, CheckpointWriter};
use crate::{Result, parameters};

/// Entry with the number of updates of each parameter.
const UPDATES: &str = "optimizer.updates";

impl CheckpointWriter {
    /// Adds the moments of an optimiser of `module`, parameter by parameter; zeros where there were no updates yet.
    ///
    /// The caller must store the number of [`steps`](AdamW::steps) itself.
    pub(crate) fn optimizer<M: Module>(&mut self, optimizer: &AdamW, module: &M) {
        let mut updates = vec![];
        for (i, (m, n)) in optimizer.moments().zip(sizes(module)).enumerate() {
            let none = || AdamMoments { steps: 0, first: vec![0.0; n], second: vec![0.0; n] };
            let m = m.unwrap_or_else(none);
            self.f32s(&format!("optimizer.{i}.first"), &[n], &m.first);
            self.f32s(&format!("optimizer.{i}.second"), &[n], &m.second);
            updates.push(m.steps as i64);
        }
        self.i64s(UPDATES, &updates);
    }
}

impl CheckpointReader {
    /// The optimiser of `module` after `steps` updates.
    ///
    /// # Errors
    /// If moments are missing or of another size, or a count of updates is negative.
    pub(crate) fn optimizer<M: Module>(
        &self,
        options: AdamOptions,
        module: &M,
        steps: u64,
    ) -> Result<AdamW> {
        // An optimiser that has made no update does not know its parameters yet.
        let sizes = if steps > 0 { sizes(module) } else { vec![] };
        let updates = self.i64s(UPDATES, sizes.len())?;
        let mut moments = vec![];
        for (i, (n, t)) in sizes.into_iter().zip(updates).enumerate() {
            let refused = |_| self.refuse(UPDATES, format!("0 to {steps} updates"), t);
            let t = u64::try_from(t).map_err(refused)?;
            let first = self.f32s(&format!("optimizer.{i}.first"), &[n])?;
            let second = self.f32s(&format!("optimizer.{i}.second"), &[n])?;
            moments.push((t > 0).then_some(AdamMoments { steps: t, first, second }));
        }
        Ok(AdamW::restore(options, module, steps, moments))
    }
}

/// Number of values of each parameter, in the order of the module.
fn sizes<M: Module>(module: &M) -> Vec<usize> {
    let mut sizes = vec![];
    parameters::visit("", module, |_, shape, _| sizes.push(shape.iter().product()));
    sizes
}
