//! The capabilities of a platform on which all locks of the list run.

use crate::classic::parking_lot_mutex::ParkingLot;
use crate::freebsd::FreeBsd;
use crate::linux::{cna, cna_v13, osq, qspinlock};
use crate::near::Near;
use crate::near::attention::AttentionTable;
use crate::near::rwlock::lines::ReaderLines;
use crate::parking::chain::Chains;
use crate::platform::{AsymFence, LocalNodes, ParkTimeout, Priority, Random, Settings, Switches, Topology};
use crate::schedule::{Schedule, Sections};
use crate::shared_holds::SharedHolds;

/// Declares a trait with these supertraits, and implements it for every type that has them all.
macro_rules! all_of {
    ($(#[$attribute:meta])* $name:ident: $($capability:path),+ $(,)?) => {
        $(#[$attribute])*
        pub trait $name: $($capability +)+ {}

        impl<P> $name for P where P: $($capability +)+ {}
    };
}

all_of! {
    /// A platform with every capability that some lock of the list requires.
    EveryCapability:
    Topology,
    Priority,
    Random,
    Settings,
    Switches,
    ParkTimeout,
    Schedule,
    Sections,
    LocalNodes<qspinlock::Node<Self, ()>>,
    LocalNodes<cna::Node<Self>>,
    LocalNodes<cna_v13::Node<Self>>,
    LocalNodes<osq::Node<Self>>,
    AttentionTable,
    Chains<Near>,
    Chains<FreeBsd>,
    Chains<ParkingLot>,
    SharedHolds,
    AsymFence,
    ReaderLines,
}
