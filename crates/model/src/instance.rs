//! The state that every engine keeps of the current execution on this thread of the machine.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use nearlock_collection::classic::parking_lot_mutex::ParkingLot;
use nearlock_collection::freebsd::FreeBsd;
use nearlock_collection::linux::{cna, cna_v13, osq, qspinlock};
use nearlock_core::events::LockEvent;
use nearlock_core::near::Near;
use nearlock_core::near::rwlock::lines::ReaderLine;
use nearlock_core::parking::chain::{Chain, Family};
use nearlock_core::platform::{Atomic, LentNode, LocalNodes, NodeId, SWITCHES_MAX};
use nearlock_core::settings::Setting;

use crate::engine::Engine;
use crate::on_demand::{Demand, OnDemand};

/// The number of slots of a line of readers. Writers read each slot, so few of them.
pub const READER_SLOTS: usize = 2;

/// See the [module](self).
pub struct Instance<E: Engine> {
    /// Queue nodes, [`Engine::LEVELS`] for each slot.
    pub(crate) qspin: OnDemand<[qspinlock::Node<E, ()>]>,
    pub(crate) cna: OnDemand<[cna::Node<E>]>,
    pub(crate) cna_v13: OnDemand<[cna_v13::Node<E>]>,
    pub(crate) osq: OnDemand<[osq::Node<E>]>,
    /// Tables of one chain: all locks of a family share it.
    pub(crate) near: OnDemand<Chain<E, Near>>,
    /// The attention word of that chain, and its first value.
    pub(crate) attention: OnDemand<E::U32>,
    first_attention: Cell<u32>,
    /// How many groups of locks seem to lack processors.
    shortages: Cell<u32>,
    pub(crate) freebsd: OnDemand<Chain<E, FreeBsd>>,
    pub(crate) parking_lot: OnDemand<Chain<E, ParkingLot>>,
    /// The lines of readers: one for each slot, and one without a free slot.
    lines: OnDemand<[ReaderLine<E>]>,
    full_line: OnDemand<ReaderLine<E>>,
    /// The number of readers that wait for any lock.
    waiting_readers: OnDemand<E::U32>,
    /// How many ids have been given out.
    ids: Cell<u64>,
    pub(crate) demand: Demand,
    pub(crate) now_ns: Cell<u64>,
    /// How many threads without a slot have asked for their number.
    slotless: Cell<u32>,
    /// The numbers of the threads that sleep.
    asleep: RefCell<BTreeSet<u32>>,
    settings: Cell<[u64; Setting::COUNT]>,
    switches: Cell<[u64; SWITCHES_MAX]>,
    events: Cell<[u64; LockEvent::COUNT]>,
    executions: Cell<u64>,
}

impl<E: Engine> Default for Instance<E> {
    fn default() -> Self {
        Self {
            qspin: OnDemand::default(),
            cna: OnDemand::default(),
            cna_v13: OnDemand::default(),
            osq: OnDemand::default(),
            near: OnDemand::default(),
            attention: OnDemand::default(),
            first_attention: Cell::default(),
            shortages: Cell::default(),
            freebsd: OnDemand::default(),
            parking_lot: OnDemand::default(),
            lines: OnDemand::default(),
            full_line: OnDemand::default(),
            waiting_readers: OnDemand::default(),
            ids: Cell::default(),
            demand: Demand::default(),
            now_ns: Cell::default(),
            slotless: Cell::default(),
            asleep: RefCell::default(),
            settings: Cell::new(Setting::DEFAULTS),
            switches: Cell::new([0; SWITCHES_MAX]),
            events: Cell::new([0; LockEvent::COUNT]),
            executions: Cell::default(),
        }
    }
}

impl<E: Engine> Instance<E> {
    /// Begins another execution, with fresh nodes for threads in slots below `slots`.
    pub(crate) fn begin(&self, slots: u32) {
        self.demand.begin(slots);
        self.qspin.begin(&self.demand, nodes::<E, _>);
        self.cna.begin(&self.demand, nodes::<E, _>);
        self.cna_v13.begin(&self.demand, nodes::<E, _>);
        self.osq.begin(&self.demand, nodes::<E, _>);
        self.near.begin(&self.demand, |_| Arc::default());
        self.attention.begin(&self.demand, |_| Arc::new(Atomic::new(self.first_attention.get())));
        self.freebsd.begin(&self.demand, |_| Arc::default());
        self.parking_lot.begin(&self.demand, |_| Arc::default());
        self.lines.begin(&self.demand, lines);
        self.full_line.begin(&self.demand, |_| Arc::new(ReaderLine::full()));
        self.waiting_readers.begin(&self.demand, |_| Arc::new(Atomic::new(0)));
        self.ids.set(0);
        // In the first period, a chain that has noted nothing seems to have noted that processors
        // are not short.
        self.now_ns.set(if self.shortages.get() > 0 { 1 << 24 } else { 0 });
        self.slotless.set(0);
        self.asleep.borrow_mut().clear();
        self.settings.set(Setting::DEFAULTS);
        self.executions.set(self.executions.get() + 1);
    }

    pub(crate) fn set(&self, which: Setting, value: u64) {
        let mut values = self.settings.get();
        values[which as usize] = value;
        self.settings.set(values);
    }

    pub(crate) fn setting(&self, which: Setting) -> u64 {
        self.settings.get()[which as usize]
    }

    /// The switches of all locks until others are set. They outlast an execution.
    pub(crate) fn set_switches(&self, stored: [u64; SWITCHES_MAX]) {
        self.switches.set(stored);
    }

    /// The first value of the attention word, until another is set. It outlasts an execution.
    pub(crate) fn set_attention(&self, first: u32) {
        self.first_attention.set(first);
    }

    /// How many groups of locks seem to lack processors, until another number is set. It outlasts
    /// an execution.
    pub(crate) fn set_shortages(&self, groups: u32) {
        self.shortages.set(groups);
    }

    pub(crate) fn shortages(&self) -> u32 {
        self.shortages.get()
    }

    /// If processors are short, all threads seem to run on the same one.
    pub(crate) fn processor(&self) -> Option<u32> {
        (self.shortages.get() > 0).then_some(0)
    }

    pub(crate) fn switch(&self, index: usize) -> u64 {
        self.switches.get()[index]
    }

    /// A number for a thread without a slot, above the numbers of threads with slots.
    pub(crate) fn number(&self) -> u32 {
        self.slotless.set(self.slotless.get() + 1);
        NodeId::SLOTS + self.slotless.get()
    }

    /// Whether the thread of this number sleeps.
    pub(crate) fn is_asleep(&self, number: u32) -> bool {
        self.asleep.borrow().contains(&number)
    }

    /// The chain of this table. It does not move until the next execution.
    pub(crate) fn chain<F: Family>(&self, table: &OnDemand<Chain<E, F>>) -> *const Chain<E, F> {
        Arc::as_ptr(&table.get(&self.demand, |_| Arc::default()))
    }

    /// The attention word. It does not move until the next execution.
    pub(crate) fn attention(&self) -> *const E::U32 {
        let first = self.first_attention.get();
        Arc::as_ptr(&self.attention.get(&self.demand, |_| Arc::new(Atomic::new(first))))
    }

    /// The line of readers of the thread in this slot. It does not move until the next execution.
    pub(crate) fn reader_line(&self, slot: Option<u32>) -> *const ReaderLine<E> {
        match slot {
            // SAFETY: within the table.
            Some(slot) => unsafe { self.reader_lines().cast::<ReaderLine<E>>().add(slot as usize) },
            None => Arc::as_ptr(&self.full_line.get(&self.demand, |_| Arc::new(ReaderLine::full()))),
        }
    }

    /// The lines of readers of all slots. They do not move until the next execution.
    pub(crate) fn reader_lines(&self) -> *const [ReaderLine<E>] {
        Arc::as_ptr(&self.lines.get(&self.demand, lines))
    }

    /// The number of waiting readers. It does not move until the next execution.
    pub(crate) fn waiting_readers(&self) -> *const E::U32 {
        Arc::as_ptr(&self.waiting_readers.get(&self.demand, |_| Arc::new(Atomic::new(0))))
    }

    /// The id of a lock.
    pub(crate) fn new_id(&self) -> u64 {
        self.ids.set(self.ids.get() + 1);
        self.ids.get()
    }

    /// The node with this name. It does not move until the next execution.
    pub(crate) fn node<N: Default>(&self, table: &OnDemand<[N]>, id: NodeId) -> *const N {
        let table = table.get(&self.demand, nodes::<E, _>);
        let index = (id.slot * E::LEVELS + id.level) as usize;
        assert!(id.level < E::LEVELS && index < table.len(), "a name of no node");
        // SAFETY: within the table.
        unsafe { Arc::as_ptr(&table).cast::<N>().add(index) }
    }

    pub(crate) fn count(&self, event: LockEvent) {
        let mut events = self.events.get();
        events[event as usize] += 1;
        self.events.set(events);
    }

    pub(crate) fn events(&self) -> [u64; LockEvent::COUNT] {
        self.events.get()
    }

    pub(crate) fn executions(&self) -> u64 {
        self.executions.get()
    }
}

/// Calls `sleep`. Meanwhile the calling thread counts as asleep.
pub(crate) fn while_asleep<E: Engine>(sleep: impl FnOnce()) {
    let number = E::thread_id().get();
    E::with_instance(|i| i.asleep.borrow_mut().insert(number));
    sleep();
    E::with_instance(|i| i.asleep.borrow_mut().remove(&number));
}

fn lines<E: Engine>(slots: u32) -> Arc<[ReaderLine<E>]> {
    (0..slots).map(|slot| ReaderLine::numbered(slot + 1)).collect()
}

/// Queue nodes of one type, for this many slots.
fn nodes<E: Engine, N: Default>(slots: u32) -> Arc<[N]> {
    (0..slots * E::LEVELS).map(|_| N::default()).collect()
}

/// Lends the calling thread a node, if it has one left.
pub(crate) fn lend<E: Engine + LocalNodes<N>, N, R>(f: impl FnOnce(Option<LentNode<N>>) -> R) -> R {
    let level = E::with_nodes_in_use(Cell::get);
    let Some(slot) = E::thread().slot.filter(|_| level < E::LEVELS) else {
        return f(None);
    };
    E::with_nodes_in_use(|nodes| nodes.set(level + 1));
    let id = NodeId { slot, level };
    let r = f(Some(LentNode { id, node: <E as LocalNodes<N>>::node(id) }));
    E::with_nodes_in_use(|nodes| nodes.set(level));
    r
}

/// The further traits of an engine, implemented with its [`Instance`] and
/// [`Thread`](crate::engine::Thread).
macro_rules! capabilities {
    ($engine:ty) => {
        impl nearlock_core::platform::Priority for $engine {
            fn is_priority() -> bool {
                Self::thread().urgent
            }
            fn set_priority(urgent: bool) {
                Self::become_thread(Thread { urgent, ..Self::thread() });
            }
        }

        /// A thread is known to sleep while it sleeps in [`Park::park`]; otherwise it runs.
        // SAFETY: no two threads have the same slot or number.
        unsafe impl nearlock_core::schedule::Schedule for $engine {
            fn thread_id() -> nearlock_core::schedule::ThreadId {
                let mut thread = Self::thread();
                if thread.number == 0 {
                    thread.number =
                        thread.slot.map_or_else(|| Self::with_instance(Instance::number), |slot| slot + 1);
                    Self::become_thread(thread);
                }
                nearlock_core::schedule::ThreadId::new(thread.number).expect("not 0")
            }
            // A thread has its number in its mark from the beginning. It may be too short to set
            // it.
            fn mark() -> nearlock_core::schedule::Mark {
                let set = Self::thread().mark;
                set.unwrap_or_else(|| nearlock_core::schedule::Mark::new(Self::thread_id(), None))
            }
            fn set_mark(mark: nearlock_core::schedule::Mark) {
                let thread = Self::thread();
                Self::become_thread($crate::engine::Thread { mark: Some(mark), ..thread });
            }
            fn owner_state(
                thread: nearlock_core::schedule::ThreadId,
            ) -> nearlock_core::schedule::OwnerState {
                match Self::with_instance(|i| i.is_asleep(thread.get())) {
                    true => nearlock_core::schedule::OwnerState::Asleep,
                    false => nearlock_core::schedule::OwnerState::Running,
                }
            }
            fn note_shortage(_period: u32) -> u32 {
                Self::with_instance(Instance::shortages)
            }
            fn processor() -> Option<u32> {
                Self::with_instance(Instance::processor)
            }
            fn processors() -> u32 {
                1
            }
            /// A turn in which other threads may run.
            fn give_way() {
                <Self as nearlock_core::platform::Platform>::cpu_relax(0);
            }
            fn should_give_way(spin: &mut nearlock_core::schedule::Spin) -> bool {
                spin.turns += 1;
                !Self::thread().is_patient && Self::has_spun(spin.turns)
            }
        }

        impl nearlock_core::shared_holds::SharedHolds for $engine {
            fn with_shared_holds<R>(
                of: nearlock_core::shared_holds::SharedLock,
                f: impl FnOnce(&Cell<u32>) -> R,
            ) -> R {
                let mut thread = Self::thread();
                let holds = Cell::new(thread.shared_holds[of as usize]);
                let r = f(&holds);
                thread.shared_holds[of as usize] = holds.get();
                Self::become_thread(thread);
                r
            }
        }

        impl nearlock_core::schedule::Sections for $engine {
            fn enter_section() {
                let thread = Self::thread();
                Self::become_thread(Thread { sections: thread.sections + 1, ..thread });
            }
            fn leave_section() {
                let thread = Self::thread();
                Self::become_thread(Thread { sections: thread.sections - 1, ..thread });
            }
            fn section_depth() -> u32 {
                Self::thread().sections
            }
        }

        impl nearlock_core::platform::Settings for $engine {
            fn setting(which: Setting) -> u64 {
                Self::with_instance(|i| i.setting(which))
            }
        }

        // SAFETY: the switches are set between models, and a lock ends with its model.
        unsafe impl nearlock_core::platform::Switches for $engine {
            fn switch(index: usize) -> u64 {
                Self::with_instance(|i| i.switch(index))
            }
        }

        // SAFETY: the word does not move until the next execution.
        unsafe impl nearlock_core::near::attention::AttentionTable for $engine {
            fn attention(_lock: *const ()) -> *const Self::U32 {
                Self::with_instance(|i| i.attention())
            }
        }

        // SAFETY: no two threads have the same slot. The lines do not move until the next
        // execution. Ids begin again then, as locks do.
        unsafe impl nearlock_core::near::rwlock::lines::ReaderLines for $engine {
            type Slots = [Self::U64; $crate::instance::READER_SLOTS];

            fn slots_of(value: u64) -> Self::Slots {
                std::array::from_fn(|_| Atomic::new(value))
            }
            fn line<'a>() -> &'a nearlock_core::near::rwlock::lines::ReaderLine<Self> {
                let line = Self::with_instance(|i| i.reader_line(Self::thread().slot));
                // SAFETY: as above.
                unsafe { &*line }
            }
            fn register_line() {}
            fn lines<'a>() -> impl Iterator<Item = &'a nearlock_core::near::rwlock::lines::ReaderLine<Self>> {
                let lines = Self::with_instance(Instance::reader_lines);
                // SAFETY: as above.
                unsafe { &*lines }.iter()
            }
            fn new_id() -> u64 {
                Self::with_instance(Instance::new_id)
            }
            fn waiting_readers<'a>(_id: u64) -> &'a Self::U32 {
                let number = Self::with_instance(Instance::waiting_readers);
                // SAFETY: as above.
                unsafe { &*number }
            }
        }

        $crate::instance::capabilities!(@chain $engine, nearlock_core::near::Near, near);
        $crate::instance::capabilities!(@chain $engine, nearlock_collection::freebsd::FreeBsd, freebsd);
        $crate::instance::capabilities!(
            @chain $engine, nearlock_collection::classic::parking_lot_mutex::ParkingLot, parking_lot
        );
        $crate::instance::capabilities!(@nodes $engine, nearlock_collection::linux::qspinlock::Node<$engine, ()>, qspin);
        $crate::instance::capabilities!(@nodes $engine, nearlock_collection::linux::cna::Node<$engine>, cna);
        $crate::instance::capabilities!(@nodes $engine, nearlock_collection::linux::cna_v13::Node<$engine>, cna_v13);
        $crate::instance::capabilities!(@nodes $engine, nearlock_collection::linux::osq::Node<$engine>, osq);
    };
    (@chain $engine:ty, $family:ty, $table:ident) => {
        // SAFETY: the chain does not move until the next execution.
        unsafe impl nearlock_core::parking::chain::Chains<$family> for $engine {
            fn chain(
                _lock: *const (),
            ) -> *const nearlock_core::parking::chain::Chain<Self, $family> {
                Self::with_instance(|i| i.chain(&i.$table))
            }

            // The address may be another one in another execution.
            fn place_in_chain(_lock: *const ()) -> u32 {
                0
            }
        }
    };
    (@nodes $engine:ty, $node:ty, $table:ident) => {
        // SAFETY: each slot has a node per level in its table, and each level is lent once at a
        // time. The nodes do not move until the next execution.
        unsafe impl nearlock_core::platform::LocalNodes<$node> for $engine {
            fn with_node<R>(
                f: impl FnOnce(Option<nearlock_core::platform::LentNode<$node>>) -> R,
            ) -> R {
                $crate::instance::lend::<Self, _, _>(f)
            }
            fn node(id: nearlock_core::platform::NodeId) -> *const $node {
                Self::with_instance(|i| i.node(&i.$table, id))
            }
        }
    };
}
pub(crate) use capabilities;
