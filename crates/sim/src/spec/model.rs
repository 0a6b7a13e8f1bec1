//! Parameters of the simulator's coherence model, with their defaults: the `[model]` table of a
//! file.

use serde::Deserialize;

/// Whether a store in the store buffer requests its line before its turn.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OwnershipOverlap {
    /// Only the oldest store requests its line. The misses of buffered stores follow one another.
    None,
    /// Every buffered store requests its line at once. The stores still become visible in order.
    /// x86 processors do this.
    #[default]
    Prefetch,
}

/// The effect of a load on a line that another core has modified.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOfModified {
    /// Both cores have the line afterwards. The next core that writes it must request it.
    #[default]
    Share,
    /// The load takes the line with the right to write, since the reader of such a line mostly
    /// writes it next. A second reader shares the line. Some AMD processors do this.
    TakeOver,
}

/// Where a CPU counts how many of its queue nodes are in use.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum NodeCount {
    /// In the CPU's first node, as in Linux. A thread that has queued writes the node's line once
    /// more when it leaves the queue, and therefore owns the line when it queues next.
    #[default]
    InNode,
    /// Not in memory: counting costs nothing.
    Free,
}

/// Where a task can be preempted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Preemption {
    /// Only where the task offers its CPU. This models a kernel without preemption, in which a
    /// waiting task gets the CPU at the next return to user mode or check of `need_resched`.
    #[default]
    Voluntary,
    /// Anywhere. This models a program in user space. An access to memory ends before the task is
    /// preempted.
    Anywhere,
}

/// The CPU that a woken task gets.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum WakePlacement {
    /// The CPU on which the task ran last.
    Previous,
    /// The CPU on which the task ran last, if it is idle. Otherwise an idle CPU that shares a cache
    /// with it. If there is none, the CPU on which the task ran last.
    #[default]
    Idle,
}

/// Whether waiting tasks move to idle CPUs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// Never: a task stays where it waits.
    Off,
    /// A CPU that becomes idle takes a waiting task. At ticks a CPU that tasks wait for gives one
    /// of them to an idle CPU.
    #[default]
    Idle,
}

/// Parameters of the simulator's model: properties that are not in a table of latencies.
///
/// The defaults, which [`ModelParameters::default`] holds, are assumptions unless a source is
/// named.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ModelParameters {
    /// Factor on all latencies to other sockets, including their memory. Default 1.
    pub cross_socket_scale: f64,
    /// Factor on all latencies within the socket, including its memory. Default 1.
    pub same_socket_scale: f64,
    /// Fraction of a transfer's latency after which the old holder loses the line. Default 0.5.
    pub grab_fraction: f64,
    /// The same fraction for a request that had to wait in the line's queue. Default 0.1. Such a
    /// request is already at the directory, which asks the old holder as soon as that has the line.
    pub queued_grab_fraction: f64,
    /// Fraction of the latency for which a read of a modified line keeps the line from others.
    /// Default 0.5.
    pub read_occupancy_modified: f64,
    /// Time for which a read of a shared line keeps the line from others, in nanoseconds. Default
    /// 5.
    pub read_occupancy_shared_ns: f64,
    /// How many requests from the holder's socket may be served in a row ahead of earlier requests
    /// from other sockets. Default 0: requests for a line are served in order of arrival.
    pub same_socket_bypasses: usize,
    /// Relative width of the random deviation of each transfer's latency: 0.1 is +-10 %. Default
    /// 0.1.
    ///
    /// Without jitter, a few threads lock into resonances that no real machine has.
    pub jitter: f64,
    /// Whether buffered stores request their lines before their turn. Default `"prefetch"`.
    pub ownership_overlap: OwnershipOverlap,
    /// Where a CPU counts how many of its queue nodes are in use. Default `"in-node"`.
    pub node_count: NodeCount,
    /// The effect of a load on a line that another core has modified. Default `"share"`.
    pub load_of_modified: LoadOfModified,
    /// The number of stores that a hardware thread can hold back. With 1, every store blocks until
    /// it is done. Default 42, as in Haswell (Intel 64 and IA-32 Optimization Manual).
    pub store_buffer_entries: usize,
    /// Added to a transfer between two domains if the line's home is the socket of neither, in
    /// nanoseconds. Default 0.
    ///
    /// The shared cache handles a transfer within a domain, without the home.
    pub home_extra_ns: f64,
    /// Added for each further remote socket that must give up its shared copy, in nanoseconds.
    /// Default 0.
    pub sharer_extra_ns: f64,
    /// Factor on the latency of transfers while the core's other hardware thread is busy. Default
    /// 1.
    pub smt_miss_scale: f64,
    /// Speed of each of two busy hardware threads of a core. A lone thread has speed 1. Default 1.
    pub smt_speed: f64,
    /// The cost of leaving a spin loop for a thread that has waited in it, in nanoseconds. It comes
    /// from a mispredicted branch, and on some processors from all instructions that were executed
    /// ahead. Default 0.
    pub spin_exit_ns: f64,
    /// The cost of a futex call for the caller, in nanoseconds. Default 130, the cost of a wake-up
    /// call without a sleeper, measured in a virtual Xeon with two processors.
    pub futex_call_ns: f64,
    /// Time from the end of the call that wakes a sleeper until the sleeper runs, in nanoseconds.
    /// Default 3500: in the same virtual machine, a hand-over by futex from core to core took 3630.
    pub wake_latency_ns: f64,
    /// Time from the moment at which a task leaves a CPU until the next task runs there, in
    /// nanoseconds. Default 1000. In a public measurement, a switch between two threads through a
    /// pipe on one CPU took 1070 ns, including calls of the pipe
    /// (<https://ddumbying.vercel.app/experiments/ctx-switch-overhead>).
    pub context_switch_ns: f64,
    /// Where a task can be preempted. Default `"voluntary"`: a kernel without preemption, as in
    /// server distributions.
    pub preemption: Preemption,
    /// The CPU that a woken task gets. Default `"idle"`: as in Linux, which looks no farther than
    /// the last-level cache.
    pub wake_placement: WakePlacement,
    /// Whether waiting tasks move to idle CPUs. Default `"idle"`: as in Linux.
    pub balance: Balance,
    /// The cost of a heavy fence for the caller, in addition to waiting for the stores of others,
    /// in nanoseconds. Default 1600: in the same virtual machine, a `membarrier` that interrupts
    /// one other processor.
    pub heavy_fence_ns: f64,
    /// How often the timer interrupts a busy CPU, in 1/s. 0 means never. Default 1000, the default
    /// configuration of Linux for x86-64.
    pub tick_hz: f64,
    /// How long such an interrupt keeps the CPU from its thread, in nanoseconds. Default 2000, an
    /// estimate.
    pub tick_ns: f64,
}

impl Default for ModelParameters {
    fn default() -> Self {
        Self {
            cross_socket_scale: 1.0,
            same_socket_scale: 1.0,
            grab_fraction: 0.5,
            queued_grab_fraction: 0.1,
            read_occupancy_modified: 0.5,
            read_occupancy_shared_ns: 5.0,
            same_socket_bypasses: 0,
            jitter: 0.1,
            ownership_overlap: OwnershipOverlap::Prefetch,
            node_count: NodeCount::InNode,
            load_of_modified: LoadOfModified::Share,
            store_buffer_entries: 42,
            home_extra_ns: 0.0,
            sharer_extra_ns: 0.0,
            smt_miss_scale: 1.0,
            smt_speed: 1.0,
            spin_exit_ns: 0.0,
            futex_call_ns: 130.0,
            wake_latency_ns: 3500.0,
            context_switch_ns: 1000.0,
            preemption: Preemption::Voluntary,
            wake_placement: WakePlacement::Idle,
            balance: Balance::Idle,
            heavy_fence_ns: 1600.0,
            tick_hz: 1000.0,
            tick_ns: 2000.0,
        }
    }
}
