//! A program that was written for `parking_lot`, with this crate instead. Only one line is
//! different.
//!
//! ```text
//! cargo run --release -p nearlock --example channel
//! cargo run --release -p nearlock --example channel_parking_lot    (over parking_lot itself)
//! ```

use nearlock as parking_lot;

include!("channel/program.rs");
