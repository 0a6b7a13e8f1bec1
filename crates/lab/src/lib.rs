//! The laboratory: simulated workloads, and published tables with their reproductions.
//!
//! | module | contents |
//! |---|---|
//! | [`simulate`] | one simulated cell |
//! | [`sweep`] | many cells, spread over the processors |
//! | [`published`], [`reproduce`] | a published table, and its simulation |
//! | [`cache`] | results of earlier simulations |
//! | [`band`] | the uncertainty of a simulated figure: the parameters that are moved |
//! | [`mechanisms`] | the mechanisms of the model, to be changed one by one |
//! | [`plot`] | pictures of results |
//! | [`evidence`] | all reproduced tables on one page |
//! | [`lockstat`] | statistics of waits for locks and of holds |
//! | [`settings`] | `NAME.KEY=VALUE` |
//! | [`description`] | the word, the waiters, the fairness and the source of each lock |
//! | [`locks`] | `NAME[KEY=VALUE,...]` |
//! | [`names`] | look-up by name |
//! | [`quantity`] | numbers with units |

pub mod band;
pub mod cache;
pub mod description;
pub mod evidence;
pub mod locks;
pub mod lockstat;
pub mod mechanisms;
pub mod names;
pub mod plot;
pub mod published;
pub mod quantity;
pub mod reproduce;
pub mod settings;
pub mod simulate;
pub mod sweep;

pub use nearlock_collection::subjects::{ALGORITHMS, Algorithm, Family, PRESETS, SUBJECTS, Subject};
pub use nearlock_core::events::LockEvent;
pub use nearlock_core::settings::Setting;
pub use nearlock_sim::spec::{Confidence, MachineSpec, SpecError};

/// The compiler that built this crate.
pub const COMPILER: &str = env!("NEARLOCK_RUSTC");
