//! The program of the example `channel`, over `parking_lot` itself: that source is the same.
//!
//! ```text
//! cargo run --release -p nearlock --example channel_parking_lot
//! ```

include!("channel/program.rs");
