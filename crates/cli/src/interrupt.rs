//! Ctrl-C. The first one ends a command with the results so far. A second one ends the process at
//! once.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The exit status of a command that was ended by SIGINT, as shells have it: 128 and the signal's
/// number.
pub const EXIT_STATUS: u8 = 130;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(false)));

/// Catches SIGINT from now on.
///
/// # Errors
///
/// If the system refuses.
pub fn watch() -> io::Result<()> {
    // In this order: the first signal finds the flag still down.
    flag::register_conditional_shutdown(SIGINT, EXIT_STATUS.into(), Arc::clone(&INTERRUPTED))?;
    flag::register(SIGINT, Arc::clone(&INTERRUPTED))?;
    Ok(())
}

/// Whether there was a SIGINT since [`watch`].
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Relaxed)
}

/// Breaks after a SIGINT.
pub fn check() -> ControlFlow<()> {
    if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Breaks after a SIGINT, if fewer than all parts of the work are done.
pub fn check_before_end(done: usize, all: usize) -> ControlFlow<()> {
    if done < all { check() } else { ControlFlow::Continue(()) }
}
