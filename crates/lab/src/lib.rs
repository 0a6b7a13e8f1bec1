//! The laboratory: simulated workloads, tables published and reproduced.
//!
//! | module | what |
//! |---|---|
//! | [`simulate`] | one simulated cell |
//! | [`sweep`] | many of them, spread over the processors |
//! | [`published`], [`reproduce`] | a published table, and the same table simulated |
//! | [`cache`] | what has been simulated before |
//! | [`band`] | how far a simulated figure is uncertain: the parameters that are moved |
//! | [`mechanisms`] | what the model is made of, to be changed one by one |
//! | [`plot`] | pictures of results |
//! | [`evidence`] | all reproduced tables on one page |
//! | [`lockstat`] | how long locks were waited for and held |
//! | [`settings`] | `NAME.KEY=VALUE` |
//! | [`locks`] | `NAME[KEY=VALUE,...]` |
//! | [`names`] | what can be asked for by name |

pub mod band;
pub mod cache;
pub mod evidence;
pub mod locks;
pub mod lockstat;
pub mod mechanisms;
pub mod names;
pub mod plot;
pub mod published;
pub mod reproduce;
pub mod settings;
pub mod simulate;
pub mod sweep;

pub use nearlock_collection::subjects::{ALGORITHMS, Algorithm, Family, PRESETS, SUBJECTS, Subject};
pub use nearlock_core::events::LockEvent;
pub use nearlock_core::settings::Setting;
pub use nearlock_sim::spec::{Confidence, MachineSpec, SpecError};

/// The compiler that has built this crate.
pub const COMPILER: &str = env!("NEARLOCK_RUSTC");
