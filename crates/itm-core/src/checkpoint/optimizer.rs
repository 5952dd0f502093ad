//! Writes and reads the moments of an optimiser.

use burn::module::Module;
use itm_kernels::{AdamMoments, AdamOptions, AdamW};

use super::{CheckpointReader, CheckpointWriter};
use crate::{Result, parameters};

/// Entry with the number of updates of each parameter.
const UPDATES: &str = "optimizer.updates";

impl CheckpointWriter {
    /// Adds the moments of an optimiser of `module`, parameter by parameter; none where there were no updates.
    ///
    /// The caller must store the number of [`steps`](AdamW::steps) itself.
    pub(crate) fn optimizer<M: Module>(&mut self, optimizer: &AdamW, module: &M) {
        let mut updates = vec![];
        for (i, (m, n)) in optimizer.moments().zip(sizes(module)).enumerate() {
            let Some(m) = m else {
                updates.push(0);
                continue;
            };
            self.values(&format!("optimizer.{i}.first"), &[n], &m.first);
            self.values(&format!("optimizer.{i}.second"), &[n], &m.second);
            updates.push(m.steps as i64);
        }
        self.values(UPDATES, &[updates.len()], &updates);
    }
}

impl CheckpointReader {
    /// The optimiser of `module` after `steps` updates.
    ///
    /// # Errors
    /// If moments of an updated parameter are missing, moments have another size, or a count of updates is not from 0 to `steps`.
    pub(crate) fn optimizer<M: Module>(
        &self,
        options: AdamOptions,
        module: &M,
        steps: u64,
    ) -> Result<AdamW> {
        // An optimiser that has made no update does not know its parameters yet.
        let sizes = if steps > 0 { sizes(module) } else { vec![] };
        let updates = self.values::<i64>(UPDATES, &[sizes.len()])?;
        let mut moments = vec![];
        for (i, (n, t)) in sizes.into_iter().zip(updates).enumerate() {
            let refused = || self.refuse(UPDATES, format!("0 to {steps} updates"), t);
            let t = u64::try_from(t).ok().filter(|t| *t <= steps).ok_or_else(refused)?;
            let [first, second] = ["first", "second"].map(|part| format!("optimizer.{i}.{part}"));
            // Older files have zeros where there were no updates.
            if t == 0 && !self.has(&first) {
                moments.push(None);
                continue;
            }
            let place = second.clone();
            let (first, second) =
                (self.values::<f32>(&first, &[n])?, self.values::<f32>(&second, &[n])?);
            let fits = first.iter().all(|x| x.is_finite())
                && second.iter().all(|&x| x.is_finite() && x >= 0.0);
            if !fits {
                return Err(self.refuse(&place, "finite moments, these at least 0", "others"));
            }
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
