//! The memory that a training will take, computed before it starts: bytes by their purpose, and whether they fit.

mod data;
mod memory;

use itm_core::{Error, Result};
use itm_report::format::bytes;

pub use data::Sizes;
pub(crate) use data::{closed_form, data, regions};
pub use memory::available;

/// Bytes of a training, by their purpose.
///
/// ```text
/// own  = parameters + momentum + optimiser + banks + max(gradients + activations, checkpoint, scores)
/// peak = data + program + max(closed form, own · trainings at a time)
/// ```
///
/// Activations are an upper estimate. The peak is an upper estimate too, except for memory that an allocator keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Trainable weights.
    pub parameters: u64,
    /// One gradient per weight.
    pub gradients: u64,
    /// Two moments per weight (Adam).
    pub optimiser: u64,
    /// The moving average of the weights, if the method has one.
    pub momentum: u64,
    /// Embeddings in memory banks.
    pub banks: u64,
    /// The most that a step keeps between its forward and its backward pass, with the temporary tensors of both passes.
    pub activations: u64,
    /// Features and captions, as loaded and as the method reads them.
    pub data: u64,
    /// What a checkpoint holds in memory while it is written.
    pub checkpoint: u64,
    /// The largest matrix of scores in an evaluation.
    pub scores: u64,
    /// What the closed-form baseline holds before the first training; 0 if there is none.
    pub closed_form: u64,
    /// Part of `data` that is in memory already.
    pub loaded: u64,
}

impl Bytes {
    /// The program, its threads' stacks and the buffers of matrix products.
    pub const PROGRAM: u64 = 64 << 20;

    /// For `count` weights under Adam: parameters, gradients and moments, and a checkpoint of them.
    ///
    /// A checkpoint is put together in memory, once as named tensors and once as a file.
    pub fn of_weights(count: u64) -> Self {
        let parameters = 4 * count;
        let optimiser = 2 * parameters;
        let checkpoint = 2 * (parameters + optimiser);
        Self { parameters, gradients: parameters, optimiser, checkpoint, ..Self::default() }
    }

    /// The memory at the largest moment: a step, a checkpoint, an evaluation, or the closed form.
    pub fn peak(&self) -> u64 {
        self.peak_of(1)
    }

    /// The peak of `trainings` such trainings at a time, all at their largest moment; data and program count once.
    pub fn peak_of(&self, trainings: usize) -> u64 {
        let moment = (self.gradients + self.activations).max(self.checkpoint).max(self.scores);
        let own = self.parameters + self.momentum + self.optimiser + self.banks + moment;
        self.data + Self::PROGRAM + (own * trainings as u64).max(self.closed_form)
    }

    /// Refuses a plan that does not fit with `trainings` at a time; `place` names the row of the plan.
    ///
    /// # Errors
    /// If the peak is above the limit. One line has all the numbers.
    pub fn check(&self, place: &str, trainings: usize, limit: Limit) -> Result<()> {
        let peak = self.peak_of(trainings);
        let (needed, most, whose) = match limit {
            Limit::Unknown => return Ok(()),
            Limit::Given(most) => (peak, most, "given"),
            Limit::Available(most) => (peak - self.loaded, most, "available"),
        };
        if needed <= most {
            return Ok(());
        }
        let expected = format!("a plan of at most {} ({most} bytes {whose})", bytes(most));
        let (times, fewer) = match trainings {
            1 => (String::new(), ""),
            n => (format!(" for {n} trainings at a time, each"), "fewer --jobs, "),
        };
        let got = format!(
            "{} ({needed} bytes){times}: {self}; {fewer}a smaller batch or micro_batch, bank or model takes less",
            bytes(needed)
        );
        Err(Error::invalid(format!("memory, {place}"), expected, got))
    }
}

impl std::fmt::Display for Bytes {
    /// Every part above zero: `parameters 12.00 MiB, gradients 12.00 MiB, …`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("parameters", self.parameters),
            ("gradients", self.gradients),
            ("optimiser", self.optimiser),
            ("momentum copy", self.momentum),
            ("banks", self.banks),
            ("activations at most", self.activations),
            ("data", self.data),
            ("program", Self::PROGRAM),
            ("for a while: a checkpoint", self.checkpoint),
            ("scores", self.scores),
            ("the closed form", self.closed_form),
        ];
        let parts = parts.iter().filter(|(_, n)| *n > 0);
        let parts: Vec<_> = parts.map(|(name, n)| format!("{name} {}", bytes(*n))).collect();
        f.write_str(&parts.join(", "))
    }
}

/// How much memory there is for a training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The system does not report it, or a device has memory of its own.
    Unknown,
    /// `--memory-limit`: for the whole plan.
    Given(u64),
    /// The machine's available memory: for the part of the plan that is not loaded yet.
    Available(u64),
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => f.write_str("available unknown"),
            Self::Given(n) => write!(f, "limit {}", bytes(*n)),
            Self::Available(n) => write!(f, "available {}", bytes(*n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Bytes = Bytes {
        parameters: 100 << 20,
        gradients: 100 << 20,
        optimiser: 200 << 20,
        momentum: 100 << 20,
        banks: 10 << 20,
        activations: 300 << 20,
        data: 50 << 20,
        checkpoint: 600 << 20,
        scores: 20 << 20,
        closed_form: 0,
        loaded: 30 << 20,
    };

    /// By hand: 100 + 100 + 200 + 10 + 50 + 64 held, and the largest of 100 + 300, 600 and 20.
    #[test]
    fn the_peak_is_of_the_largest_moment() {
        assert_eq!(PLAN.peak(), 1124 << 20);
        assert_eq!(Bytes { activations: 501 << 20, ..PLAN }.peak(), 1125 << 20);
        assert_eq!(Bytes { scores: 700 << 20, ..PLAN }.peak(), 1224 << 20);
    }

    /// By hand: each training has 1,010 MiB of the 1,124 for itself; 114 are data and program.
    #[test]
    fn several_at_a_time_share_data_and_program() {
        assert_eq!(PLAN.peak_of(1), PLAN.peak());
        assert_eq!(PLAN.peak_of(3), (114 + 3 * 1010) << 20);
        // The closed form is fitted once, before the trainings.
        let large = Bytes { closed_form: 2000 << 20, ..PLAN };
        assert_eq!(large.peak_of(1), (114 + 2000) << 20);
        assert_eq!(large.peak_of(3), PLAN.peak_of(3));
        PLAN.check("row.Full", 3, Limit::Given(3144 << 20)).unwrap();
        let line = PLAN.check("row.Full", 3, Limit::Given((3144 << 20) - 1)).unwrap_err();
        let line = line.to_string();
        assert!(line.contains("got 3.07 GiB (3296722944 bytes) for 3 trainings at a time, each: "));
        assert!(line.contains("; fewer --jobs, a smaller batch"), "{line}");
    }

    /// 1,000 weights: 4 kB each of values and gradients, 8 kB of moments, twice the 12 kB that a checkpoint keeps.
    #[test]
    fn weights_come_with_their_gradients_and_moments() {
        let plan = Bytes::of_weights(1000);
        assert_eq!((plan.parameters, plan.gradients, plan.optimiser), (4000, 4000, 8000));
        assert_eq!(plan.checkpoint, 24_000);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let peak = PLAN.peak();
        PLAN.check("row.Full", 1, Limit::Unknown).unwrap();
        PLAN.check("row.Full", 1, Limit::Given(peak)).unwrap();
        PLAN.check("row.Full", 1, Limit::Available(peak - PLAN.loaded)).unwrap();
        PLAN.check("row.Full", 1, Limit::Available(peak - PLAN.loaded - 1)).unwrap_err();
        let line = PLAN.check("row.Full", 1, Limit::Given(1 << 30)).unwrap_err().to_string();
        assert_eq!(
            line,
            "memory, row.Full: expected a plan of at most 1.00 GiB (1073741824 bytes given), got 1.10 GiB (1178599424 bytes): \
             parameters 100.00 MiB, gradients 100.00 MiB, optimiser 200.00 MiB, momentum copy 100.00 MiB, banks 10.00 MiB, \
             activations at most 300.00 MiB, data 50.00 MiB, program 64.00 MiB, for a while: a checkpoint 600.00 MiB, scores 20.00 MiB; \
             a smaller batch or micro_batch, bank or model takes less"
        );
    }
}
