//! Parameters of the simulator's model of coherence, with their defaults: the `[model]` table of a
//! file.

use serde::Deserialize;

/// Whether a store that waits in the store buffer asks for its line before its turn.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OwnershipOverlap {
    /// Only the oldest store asks: the misses of buffered stores follow one another.
    None,
    /// Every buffered store asks at once; they still become visible in order. What x86 processors
    /// do.
    #[default]
    Prefetch,
}

/// What a load does to a line that another core has modified.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOfModified {
    /// Both have it afterwards, and whoever writes it next must ask for it.
    #[default]
    Share,
    /// It takes the line with the right to write, since whoever reads such a line mostly writes it
    /// next; a second reader shares it. So do some AMD processors.
    TakeOver,
}

/// Where a CPU counts how many of its queue nodes are in use.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum NodeCount {
    /// In its first node, as Linux does: whoever has queued writes its line once more when it
    /// leaves, and so owns it when it queues next.
    #[default]
    InNode,
    /// Nowhere: counting costs nothing.
    Free,
}

/// Where a CPU can be taken from a task that would go on.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Preemption {
    /// Only where the task offers it: what runs is a kernel without preemption, in which a waiting
    /// task gets the CPU at the next return to user mode or look at `need_resched`.
    #[default]
    Voluntary,
    /// Wherever it is: what runs is a program in user space. The end of an access to memory is
    /// waited for.
    Anywhere,
}

/// Which CPU a task gets that is woken.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum WakePlacement {
    /// The one on which it ran last.
    Previous,
    /// The one on which it ran last if that is idle, else an idle one that shares a cache with it,
    /// else that one.
    #[default]
    Idle,
}

/// Whether waiting tasks go to CPUs that have nothing to do.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// Never: a task stays where it waits.
    Off,
    /// A CPU that becomes idle takes a waiting task, and at ticks a CPU for which tasks wait gives
    /// one to an idle CPU.
    #[default]
    Idle,
}

/// Parameters of the simulator's model: properties that no table of latencies gives.
///
/// The defaults, which [`ModelParameters::default`] holds, are assumptions unless a source is
/// named.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ModelParameters {
    /// Factor on all latencies of other sockets, their memory included. Default 1.
    pub cross_socket_scale: f64,
    /// Factor on all latencies within the socket, its memory included. Default 1.
    pub same_socket_scale: f64,
    /// Fraction of a transfer's latency after which the old holder loses the line. Default 0.5.
    pub grab_fraction: f64,
    /// The same for a request that had to wait for its turn at the line. Default 0.1: it is at the
    /// directory already, which asks the old holder as soon as that has the line.
    pub queued_grab_fraction: f64,
    /// Fraction of the latency for which a read of a modified line keeps that line from others.
    /// Default 0.5.
    pub read_occupancy_modified: f64,
    /// Time for which a read of a shared line keeps that line from others, in nanoseconds. Default
    /// 5.
    pub read_occupancy_shared_ns: f64,
    /// How many requests from the holder's socket may be served in a row ahead of others that asked
    /// before. Default 0: requests for a line are served in the order in which they come.
    pub same_socket_bypasses: usize,
    /// Relative width of the random deviation of each transfer's latency: 0.1 is +-10 %. Default
    /// 0.1.
    ///
    /// Without any, a few threads lock into resonances that no real machine has.
    pub jitter: f64,
    /// Whether buffered stores ask for their lines ahead of their turn. Default `"prefetch"`.
    pub ownership_overlap: OwnershipOverlap,
    /// Where a CPU counts how many of its queue nodes are in use. Default `"in-node"`.
    pub node_count: NodeCount,
    /// What a load does to a line that another core has modified. Default `"share"`.
    pub load_of_modified: LoadOfModified,
    /// Stores that a hardware thread can hold back; 1 blocks at every store until it is done.
    /// Default 42, as Haswell (Intel 64 and IA-32 Optimization Manual).
    pub store_buffer_entries: usize,
    /// Added to a transfer between domains if the line's home is neither's socket, in nanoseconds.
    /// Default 0.
    ///
    /// A transfer within a domain is the shared cache's affair: the home has no part in it.
    pub home_extra_ns: f64,
    /// Added per further remote socket that must give up its shared copy, in nanoseconds. Default
    /// 0.
    pub sharer_extra_ns: f64,
    /// Factor on the latency of transfers while the core's other hardware thread is busy. Default
    /// 1.
    pub smt_miss_scale: f64,
    /// Speed of each of two busy hardware threads of a core, a lone one being 1. Default 1.
    pub smt_speed: f64,
    /// What leaving a spin loop costs a thread that has waited in it, in nanoseconds: a
    /// mispredicted branch, and on some processors all that it had executed ahead. Default 0.
    pub spin_exit_ns: f64,
    /// What a call of the futex costs the caller, in nanoseconds. Default 130: a wake-up of nobody,
    /// measured in a virtual Xeon of two processors.
    pub futex_call_ns: f64,
    /// From the end of the call that wakes a sleeper to the moment at which the sleeper runs, in
    /// nanoseconds. Default 3500: a hand-over by futex from core to core there took 3630.
    pub wake_latency_ns: f64,
    /// From the moment at which a task leaves a CPU to the moment at which the next one runs there,
    /// in nanoseconds. Default 1000: a switch of two threads through a pipe on one CPU took
    /// 1070 ns in a public measurement, calls of the pipe included (<https://ddumbying.vercel.app/experiments/ctx-switch-overhead>).
    pub context_switch_ns: f64,
    /// Where a CPU can be taken from a task. Default `"voluntary"`: a kernel without preemption, as
    /// distributions for servers have it.
    pub preemption: Preemption,
    /// Which CPU a woken task gets. Default `"idle"`: as Linux, which looks no farther than the
    /// last-level cache.
    pub wake_placement: WakePlacement,
    /// Whether waiting tasks go to idle CPUs. Default `"idle"`: as Linux.
    pub balance: Balance,
    /// What a heavy fence costs the caller, besides waiting for others' stores, in nanoseconds.
    /// Default 1600: a `membarrier` there that interrupts one other processor.
    pub heavy_fence_ns: f64,
    /// How often the timer interrupts a busy CPU, in 1/s; 0: never. Default 1000: the default
    /// configuration of Linux for x86-64.
    pub tick_hz: f64,
    /// How long such an interrupt keeps the CPU from its thread, in nanoseconds. Default 2000: an
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
