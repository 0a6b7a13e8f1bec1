//! Spin locks from the literature: the family that the Linux locks are compared with.

pub mod clh;
pub mod cohort;
pub mod hmcs;
pub mod mcs;
mod per_node;
pub mod tas;
pub mod ticket;
pub mod ttas;
