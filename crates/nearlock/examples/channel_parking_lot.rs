//! The program of the example `channel` with `parking_lot` itself. The source is the same.
//!
//! ```text
//! cargo run --release -p nearlock --example channel_parking_lot
//! ```

include!("channel/program.rs");
