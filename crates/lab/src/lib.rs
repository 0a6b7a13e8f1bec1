//! The laboratory: workloads run natively and simulated, tables published and reproduced.

pub mod simulate;
