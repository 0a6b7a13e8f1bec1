//! Quotas of processor time.

/// A quota: this much processor time in each period, for all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// Processor time, in microseconds; more than 0.
    pub quota_us: u64,
    /// Period, in microseconds; more than 0.
    pub period_us: u64,
}

impl CpuQuota {
    /// The quota as a number of CPUs.
    pub fn cpus(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// The number of whole CPUs in the quota, but at least one.
    pub fn whole_cpus(&self) -> usize {
        usize::try_from(self.quota_us / self.period_us).unwrap_or(usize::MAX).max(1)
    }

    /// The quota in the text of a file `cpu.max`. `max 100000` is no quota.
    pub fn of_cpu_max(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        Self::of(words.next()?, words.next()?)
    }

    /// A quota from two decimal numbers; `None` if there is no quota.
    pub fn of(quota: &str, period: &str) -> Option<Self> {
        let quota = Self { quota_us: quota.parse().ok()?, period_us: period.parse().ok()? };
        (quota.quota_us > 0 && quota.period_us > 0).then_some(quota)
    }
}
