//! A program written for `parking_lot`, over this crate: one line is all.
//!
//! ```text
//! cargo run --release -p nearlock --example channel
//! cargo run --release -p nearlock --example channel_parking_lot    (the same source over parking_lot itself)
//! ```

use nearlock as parking_lot;

include!("channel/program.rs");
