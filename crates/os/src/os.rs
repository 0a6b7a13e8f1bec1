//! The platform's type.

use core::marker::PhantomData;

use nearlock_core::native::Wait;

use crate::SpinThenYield;

/// The operating system: the words of [`Native`](nearlock_core::native::Native), waiting policy
/// `W`, and every capability.
///
/// All `Os<W>` share the process' nodes, settings and counters, whatever their `W`.
#[derive(Debug)]
pub struct Os<W: Wait = SpinThenYield>(PhantomData<W>);
