//! Quotas of processor time.

use crate::text::number;

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
        let (quota_us, rest) = number(text.as_bytes())?;
        let (period_us, _) = number(rest.trim_ascii_start())?;
        Self::of(quota_us, period_us)
    }

    /// A quota and its period, in microseconds; `None` if one of them is 0.
    pub fn of(quota_us: u64, period_us: u64) -> Option<Self> {
        (quota_us > 0 && period_us > 0).then_some(Self { quota_us, period_us })
    }
}
