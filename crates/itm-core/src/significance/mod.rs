//! How sure a number is: bootstrap intervals, paired randomisation, several comparisons, several seeds.
//!
//! The unit is the **image**: its i2t query and the t2i queries of its texts are one block, because captions of an image are
//! correlated and resampling them one by one makes intervals too short. The gallery stays fixed: ranks are computed once on
//! the full matrix and only hits are resampled; resampling items too would duplicate them and change R@K.
//!
//! ```
//! use itm_core::eval::{Protocol, TiePolicy};
//! use itm_core::significance::{Hits, bootstrap, paired_randomisation};
//! use itm_core::{Pairs, ScoreMatrix};
//!
//! let scores = ScoreMatrix::from_rows([[0.9, 0.3, 0.2], [0.7, 0.6, 0.1], [0.8, 0.2, 0.7]]);
//! let ranks = Protocol::Full.ranks(&scores, &Pairs::uniform(3, 1))?;
//! let hits = [Hits::new(&ranks, TiePolicy::Index)?];
//! let rsum = bootstrap(&hits, 1000, 0)?.rsum;
//! assert!(rsum.lo < hits[0].recalls().rsum && rsum.hi <= 600.0);
//! assert_eq!(paired_randomisation(&hits, &hits, 1000, 0)?.p, 1.0);
//! # Ok::<(), itm_core::Error>(())
//! ```

mod bootstrap;
mod hits;
mod randomisation;
mod seeds;

use serde::{Deserialize, Serialize};

pub use bootstrap::{bootstrap, bootstrap_difference};
pub use hits::{Hits, ImageHits};
pub use randomisation::{Randomisation, holm, paired_randomisation};
pub use seeds::seed_interval;

/// An interval that covers 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// One thing for each of the six recalls (at 1, 5, 10) and for their sum.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Measures<T> {
    /// R@1, R@5, R@10 of images as queries.
    pub i2t: [T; 3],
    /// R@1, R@5, R@10 of texts as queries.
    pub t2i: [T; 3],
    /// The sum of the six.
    pub rsum: T,
}

impl<T> Measures<T> {
    /// Applies a function to each.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Measures<U> {
        Measures { i2t: self.i2t.map(&mut f), t2i: self.t2i.map(&mut f), rsum: f(self.rsum) }
    }
}

impl Measures<f64> {
    /// From six recalls.
    pub fn of_recalls(i2t: [f64; 3], t2i: [f64; 3]) -> Self {
        Self { rsum: i2t.iter().chain(&t2i).sum(), i2t, t2i }
    }
}
