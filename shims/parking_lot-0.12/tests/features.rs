//! The tests of the features, which both versions have in common.

#[path = "../../features.rs"]
mod features;
