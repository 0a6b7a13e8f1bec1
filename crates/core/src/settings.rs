//! Settings of locks that may change while the locks are in use.
//!
//! The values belong to the platform instance ([`Settings`](crate::platform::Settings)). Here are
//! the names, defaults and limits.

macro_rules! settings {
    ($($variant:ident $name:literal $unit:literal default $default:literal, $min:literal to $max:expr, $doc:literal)*) => {
        /// A setting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Setting {
            $(#[doc = $doc] $variant,)*
        }
        impl Setting {
            /// All settings, in the order of their discriminants.
            pub const ALL: &[Setting] = &[$(Setting::$variant,)*];
            /// The name, the unit, and the possible values.
            pub const fn info(self) -> SettingInfo {
                match self {
                    $(Setting::$variant => SettingInfo {
                        name: $name, unit: $unit, default: $default, min: $min, max: $max, summary: $doc,
                    },)*
                }
            }
        }
    };
}

/// The name of a setting, its unit, and its possible values.
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo {
    /// `lock.key`, as on the command line.
    pub name: &'static str,
    /// The unit of the value. Or the words for the values from `min` on, with `|` between them.
    pub unit: &'static str,
    /// The value unless it is set.
    pub default: u64,
    /// The least value.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    /// A short description.
    pub summary: &'static str,
}

settings! {
    CnaThresholdNs "cna.threshold-ns" "ns" default 1_000_000, 0 to 100_000_000_000,
        "How long the secondary queue may wait before it is flushed; 0: for ever. Source: CNA v15, patch 4 (1 ms). If small, CNA is nearly FIFO; if great or 0, other nodes starve."
    CnaShuffleReduction "cna.shuffle-reduction" "bits" default 7, 0 to 32,
        "While there is no secondary queue, sort the queue with probability 2^-bits only. Source: CNA v15, patch 6. 0: always sort; 20 or more: practically never."
    CnaPriorityWaiters "cna.priority-waiters" "0|1" default 1, 0 to 1,
        "Whether urgent waiters are never moved to the secondary queue. Source: CNA v15, patch 5."
    CnaV13ThresholdNs "cna-v13.threshold-ns" "ns" default 10_000_000, 1_000 to 100_000_000_000,
        "How long the secondary queue may wait before it is flushed, rounded up to ticks. Source: CNA v13, patch 4 (10 ms; boot option 1 to 100 ms). At the minimum, CNA is nearly FIFO; at the maximum, other nodes starve."
    CnaV13TickHz "cna-v13.tick-hz" "1/s" default 1_000, 1 to 1_000_000,
        "Ticks per second of the clock in which the threshold is counted. Source: jiffies of the default x86-64 configuration."
    CnaV13ShuffleReduction "cna-v13.shuffle-reduction" "bits" default 7, 0 to 32,
        "While there is no secondary queue, sort the queue with probability 2^-bits only. Source: CNA v13, patch 6. 0: always sort; 32: practically never."
    CnaV13PriorityWaiters "cna-v13.priority-waiters" "0|1" default 1, 0 to 1,
        "Whether urgent waiters are never moved to the secondary queue. Source: CNA v13, patch 5."
    HmcsLocalPassLimit "hmcs.local-pass-limit" "hand-overs" default 800, 0 to 1_000_000_000,
        "How often in a row hmcs is handed over within a NUMA node before it must leave it. 800 keeps simulated waits under 1 ms on four NUMA nodes (docs/internals/tuning.md); published: 64 to 100. At 0 it leaves at every release; at the maximum, other nodes starve."
    CohortLocalPassLimit "cohort.local-pass-limit" "hand-overs" default 800, 0 to 1_000_000_000,
        "As hmcs.local-pass-limit, for cohort."
    SpinBudgetNs "spin.budget-ns" "ns" default 20_000, 0 to 1_000_000_000,
        "How long a waiter of a sleeping lock spins natively for an owner that may be running. 0: it sleeps at once. If great, it spins on while the owner has no processor. Default: about the cost of a sleep and a wake-up. (Simulated, it spins until its processor is needed, as in the kernel.)"
    FreebsdDelayBase "freebsd.delay-base" "pauses" default 1, 1 to 32_767,
        "The first delay of a waiter of FreeBSD's locks that spins, between two looks at the word. Source: debug.lock.delay_base. If great, a lock that becomes free is noticed late."
    FreebsdDelayMax "freebsd.delay-max" "pauses" default 0, 0 to 32_767,
        "The limit up to which the delay doubles. 0: 256 for each processor, their number rounded up to the next greater power of two. Source: debug.lock.delay_max. 1: no back-off. If great, a lock that becomes free is noticed late, after few looks."
    FreebsdSpinLimit "freebsd.spin-limit" "pauses" default 60_000_000, 1 to 1_000_000_000_000,
        "The length of a wait for a spin mutex that is reported as too long. Source: kern_mutex.c. If small, waits for a holder without a processor are reported; at the maximum, none is."
    FreebsdDelayLoops "freebsd.delay-loops" "pauses" default 0, 0 to 32_767,
        "How many pauses a waiter of an rw or sx spends on a round of spinning for readers. 0: 10,000, or the greatest delay if that is more. Source: debug.lock.delay_loops. 1: it hardly spins for them. If great, it spins on while readers sleep."
    FreebsdDelayRetries "freebsd.delay-retries" "rounds" default 10, 0 to 32_767,
        "How often such a waiter begins a round of spinning for readers before it sleeps. Source: debug.lock.delay_retries. 0: it sleeps at once."
    NearRwFencedReads "near-rwlock.fenced-reads" "reads" default 64, 0 to 4_294_967_295,
        "How many reads for each write keep a near-rwlock fenced: its readers share no cache line, and each passes a fence. With more reads it becomes fenced, with fewer it does not stay so. That is for sections of no length between two cores that share a cache. The lock measures both, and changes the number in proportion, up to four times. 0: it is fenced from its first reads on. 32,761 or more: never."
    NearRwBiasedReads "near-rwlock.biased-reads" "reads" default 512, 0 to 4_294_967_295,
        "How many reads without a write, at least, make a fenced near-rwlock biased: its readers pass no fence, and the next writer interrupts all threads of the process. 65,536 or more: never."
    NumaMode "numa.mode" "off|on|auto" default 2, 0 to 2,
        "Whether locks see on which NUMA node a thread runs. off: all threads count as on one NUMA node, so that NUMA-aware locks are first come, first served; auto: on if there are two or more."
    NumaLocality "numa.locality" "node|llc|synthetic" default 0, 0 to 2,
        "What counts as a NUMA node. node: the machine's; llc: the CPUs of a last-level cache; synthetic: made up, for tests: a thread's slot (simulated: its CPU) modulo numa.synthetic-nodes."
    NumaSyntheticNodes "numa.synthetic-nodes" "nodes" default 2, 1 to 1_024,
        "Number of NUMA nodes if numa.locality is synthetic."
}

/// The values of [`Setting::NumaMode`], in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaMode {
    /// All threads count as on one NUMA node.
    Off,
    /// [`NumaLocality`] says on which NUMA node a thread is.
    On,
    /// On if there are several NUMA nodes.
    Auto,
}

/// The values of [`Setting::NumaLocality`], in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaLocality {
    /// The NUMA nodes of the machine.
    Node,
    /// The CPUs of a last-level cache are a NUMA node.
    LastLevelCache,
    /// Synthetic NUMA nodes, as many as [`Setting::NumaSyntheticNodes`] says.
    Synthetic,
}

impl NumaMode {
    /// The mode that a value of the setting means.
    pub const fn of(value: u64) -> Self {
        match value {
            0 => Self::Off,
            1 => Self::On,
            _ => Self::Auto,
        }
    }
}

impl NumaLocality {
    /// The locality that a value of the setting means.
    pub const fn of(value: u64) -> Self {
        match value {
            0 => Self::Node,
            1 => Self::LastLevelCache,
            _ => Self::Synthetic,
        }
    }
}

impl SettingInfo {
    /// The words for the values from `min` on, if the setting takes words instead of numbers.
    #[inline]
    pub fn words(&self) -> Option<impl Iterator<Item = &'static str> + Clone + use<>> {
        self.unit.as_bytes().contains(&b'|').then(|| self.unit.split('|'))
    }
}

impl Setting {
    /// The number of settings.
    pub const COUNT: usize = Self::ALL.len();

    /// All settings at their defaults, indexed by discriminant.
    pub const DEFAULTS: [u64; Self::COUNT] = {
        let mut values = [0; Self::COUNT];
        let mut i = 0;
        while i < Self::COUNT {
            values[i] = Self::ALL[i].info().default;
            i += 1;
        }
        values
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_lie_within_their_limits_and_in_order() {
        for (i, setting) in Setting::ALL.iter().enumerate() {
            let info = setting.info();
            assert_eq!(*setting as usize, i);
            assert!((info.min..=info.max).contains(&info.default), "{}", info.name);
            assert_eq!(Setting::DEFAULTS[i], info.default);
            if let Some(words) = info.words() {
                assert_eq!(words.count() as u64, info.max - info.min + 1, "{}", info.name);
            }
        }
    }

    #[test]
    fn words_stand_for_the_values_in_order() {
        let words = |setting: Setting| setting.info().words().unwrap();
        for (value, word) in words(Setting::NumaMode).enumerate() {
            let mode = NumaMode::of(value as u64);
            assert_eq!(word, ["off", "on", "auto"][mode as usize]);
        }
        for (value, word) in words(Setting::NumaLocality).enumerate() {
            let locality = NumaLocality::of(value as u64);
            assert_eq!(word, ["node", "llc", "synthetic"][locality as usize]);
        }
        assert!(Setting::NumaSyntheticNodes.info().words().is_none());
    }
}
