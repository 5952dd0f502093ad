//! How unequal the counts are. `N_j` are the counts of all `m` items and `N̄` is their mean. Every measure is 0 for equal
//! counts, except the share of the maximum.

use serde::{Deserialize, Serialize};

use super::Counts;

/// The measures of one set of counts that reports show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HubMeasures {
    /// The `k` of `N_k`.
    pub k: u64,
    /// [`Counts::skewness`].
    pub skewness: f64,
    /// [`Counts::robin_hood`].
    pub robin_hood: f64,
    /// [`Counts::gini`].
    pub gini: f64,
    /// [`Counts::atkinson`] with `e = 0.5`.
    pub atkinson: f64,
    /// [`Counts::anti_hubs`].
    pub anti_hub_share: f64,
    /// [`Counts::hub_occurrence`].
    pub hub_occurrence: f64,
    /// [`Counts::hubs`].
    pub hubs: u64,
    /// [`Counts::maximum`].
    pub max: f64,
}

impl HubMeasures {
    /// All measures.
    pub fn new(counts: &Counts) -> Self {
        Self {
            k: counts.k as u64,
            skewness: counts.skewness(),
            robin_hood: counts.robin_hood(),
            gini: counts.gini(),
            atkinson: counts.atkinson(0.5),
            anti_hub_share: counts.anti_hubs(),
            hub_occurrence: counts.hub_occurrence(),
            hubs: counts.hubs() as u64,
            max: counts.maximum(),
        }
    }
}

impl Counts {
    /// Skewness, HAL Eq. (7), with population moments; 0 for equal counts.
    ///
    /// ```text
    /// E[(N − N̄)³] / Var(N)^(3/2)        both divided by m
    /// ```
    pub fn skewness(&self) -> f64 {
        let all_equal = self.values.windows(2).all(|pair| pair[0] == pair[1]);
        if all_equal { 0.0 } else { self.moment(3) / self.moment(2).powf(1.5) }
    }

    /// Robin Hood index: the share of all answers that must move until all items have the same count.
    ///
    /// ```text
    /// Σ_j |N_j − N̄| / (2 Σ_j N_j)        0 … 1 − 1/m
    /// ```
    pub fn robin_hood(&self) -> f64 {
        let mean = self.mean();
        let distance: f64 = self.each().map(|count| (count - mean).abs()).sum();
        self.of_total(distance / 2.0)
    }

    /// Gini coefficient, with `N_(r)` ascending, `r = 1 … m`.
    ///
    /// ```text
    /// 2 Σ_r r N_(r) / (m Σ N) − (m + 1)/m  =  Σ_i Σ_j |N_i − N_j| / (2 m Σ N)
    /// ```
    pub fn gini(&self) -> f64 {
        let m = self.values.len() as f64;
        let mut sorted = self.values.to_vec();
        sorted.sort_unstable();
        // Σ (2r − m − 1) N_(r): whole numbers, so that equal counts give exactly 0.
        let weighted: f64 =
            (1..).zip(&sorted).map(|(r, &n)| (2.0 * f64::from(r) - m - 1.0) * f64::from(n)).sum();
        if m > 0.0 { self.of_total(weighted / m) } else { 0.0 }
    }

    /// Atkinson index with aversion `e` to inequality; the usual `e` is 0.5.
    ///
    /// ```text
    /// 1 − ( mean N^(1−e) )^(1/(1−e)) / N̄        e = 1:  1 − exp(mean ln N) / N̄,  which is 1 if any N = 0
    /// ```
    ///
    /// # Panics
    /// If `e` is negative or not finite.
    ///
    /// # Departures
    /// scikit-hubness multiplies the counts for `e = 1`, which overflows; here logarithms are added.
    pub fn atkinson(&self, e: f64) -> f64 {
        assert!(e >= 0.0 && e.is_finite(), "an aversion of 0 or more, got {e}");
        let mean = self.mean();
        if mean == 0.0 {
            return 0.0;
        }
        let least = self.each().fold(f64::INFINITY, f64::min);
        if e >= 1.0 && least == 0.0 {
            return 1.0;
        }
        // Relative to the least count no negative power overflows.
        let unit = if e > 1.0 { least } else { mean };
        let average = |f: &dyn Fn(f64) -> f64| {
            self.each().map(|count| f((count / unit).ln())).sum::<f64>() / self.values.len() as f64
        };
        // Powers near 1 keep their digits as differences from 1.
        let log = match 1.0 - e {
            0.0 => average(&|x| x),
            power => average(&|x| (power * x).exp_m1()).ln_1p() / power,
        };
        (1.0 - log.exp() * (unit / mean)).max(0.0)
    }

    /// Share of items that no query has: `#{ N_j = 0 } / m`. 0 if no query has any item.
    pub fn anti_hubs(&self) -> f64 {
        let never = self.each().filter(|&count| count == 0.0).count() as f64;
        if self.total() == 0 { 0.0 } else { never / self.values.len() as f64 }
    }

    /// Share of all answers that are hubs, items with at least [twice the mean count](Self::threshold).
    ///
    /// ```text
    /// Σ_{N_j ≥ t} N_j / Σ_j N_j        t = 2 N̄
    /// ```
    ///
    /// # Departures
    /// scikit-hubness divides by `n · k`, which is the same for full lists, and takes `t = 2k`. That is sensible only if there are
    /// as many queries as items: with five captions per image, most images would be hubs, but hardly any caption.
    pub fn hub_occurrence(&self) -> f64 {
        let t = self.threshold();
        self.of_total(self.each().filter(|&count| count >= t).sum())
    }

    /// Number of hubs. 0 if no query has any item.
    pub fn hubs(&self) -> usize {
        let t = self.threshold();
        if self.total() == 0 { 0 } else { self.each().filter(|&count| count >= t).count() }
    }

    /// The count `t` from which on an item is a hub: twice the mean.
    pub fn threshold(&self) -> f64 {
        2.0 * self.mean()
    }

    /// Largest share of queries that have one item: `max_j N_j / n`; 1 if one item answers every query.
    pub fn maximum(&self) -> f64 {
        let largest = self.values.iter().copied().max().unwrap_or(0);
        if self.queries == 0 { 0.0 } else { f64::from(largest) / self.queries as f64 }
    }

    fn each(&self) -> impl Iterator<Item = f64> {
        self.values.iter().map(|&count| f64::from(count))
    }

    /// Population moment about the mean.
    fn moment(&self, power: i32) -> f64 {
        let mean = self.mean();
        self.each().map(|count| (count - mean).powi(power)).sum::<f64>() / self.values.len() as f64
    }

    /// `part` divided by the sum of the counts; 0 if the sum is 0.
    fn of_total(&self, part: f64) -> f64 {
        let total = self.total();
        // An empty sum is −0.
        if total == 0 { 0.0 } else { part / total as f64 + 0.0 }
    }
}
