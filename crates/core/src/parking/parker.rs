//! A token that wakes the thread it belongs to, and is never lost.
//!
//! ```text
//! word  0 no token | 1 a token | 2^32 - 1 no token, and the owner sleeps or is about to
//!
//!   0 -> 1    unpark                        1 -> 0    park takes the token
//!   0 -> -1   park finds none             * -> 1      unpark; from -1 it wakes the owner
//!  -1 -> 0    park gives up
//! ```
//! 1. Only the owner takes tokens away, so a token stays until the next park of the owner.
//! 2. The owner sleeps only while the word is -1, and comparing and falling asleep are one step. A
//!    token that is set before ends the park. A token that is set after finds -1, and wakes the
//!    owner.
//! 3. Setting the token is the last access of `unpark` to the word: the owner may then return and
//!    free the word. After that, `unpark` uses the address only.
//!
//! A token says that something has happened, but not what: many unparks make one token. Source:
//! Drepper, "Futexes Are Tricky", 2011 (a futex as an event). The token is from Java's
//! `LockSupport`.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::platform::{Atomic, AtomicInt, Park};

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const PARKED: u32 = u32::MAX;

const _: () = assert!(EMPTY.wrapping_sub(1) == PARKED && TOKEN - 1 == EMPTY);

/// The parking place of one thread. Zero bytes: no token.
///
/// The thread that parks here is the owner. There may be one owner at a time; a second one would
/// not be woken. Any number of threads may unpark it. Everything before an unpark is visible to the
/// owner after the park that took the token.
pub struct Parker<P: Park> {
    word: P::U32,
}

impl<P: Park> Parker<P> {
    /// Without a token.
    pub const fn new() -> Self {
        Self { word: Atomic::ZERO }
    }

    /// Takes the token, and sleeps until there is one.
    #[inline]
    pub fn park(&self) {
        let taken = self.park_while(|word, asleep| {
            P::park(word, asleep);
            true
        });
        debug_assert!(taken);
    }

    /// Takes the token, and calls `sleep` as long as there is none. The arguments are the word, and
    /// its value as long as no thread has unparked. `sleep` returns whether to go on. Returns
    /// whether a token was taken: the token may have been set just when `sleep` gave up.
    #[inline]
    pub fn park_while(&self, mut sleep: impl FnMut(&P::U32, u32) -> bool) -> bool {
        // Ordering: Acquire, pairs with the Release in `unpark_at`: everything before the token was
        // set is visible to us.
        if self.word.fetch_sub(1, Acquire) == TOKEN {
            return true;
        }
        while sleep(&self.word, PARKED) {
            // Ordering: Acquire, as above. Relaxed on failure: there is no token.
            if self.word.compare_exchange(TOKEN, EMPTY, Acquire, Relaxed).is_ok() {
                return true;
            }
        }
        // Ordering: Acquire, as above.
        self.word.swap(EMPTY, Acquire) == TOKEN
    }

    /// Sets the token, and wakes the owner if it sleeps.
    #[inline]
    pub fn unpark(&self) {
        // SAFETY: the reference keeps it alive.
        unsafe { Self::unpark_at(self) };
    }

    /// As [`unpark`](Self::unpark), for a parker that the owner may free as soon as it has the
    /// token. An example is a parker on the owner's stack, in a queue that the owner leaves.
    ///
    /// # Safety
    ///
    /// `parker` is alive until its token is set by this call.
    #[inline]
    pub unsafe fn unpark_at(parker: *const Self) {
        // SAFETY: a field of the parker. Only its address is used after the swap.
        let word = unsafe { &raw const (*parker).word };
        // Ordering: Release, pairs with the Acquires in `park_while`: the owner sees everything
        // that we did before.
        // SAFETY: the parker is alive until this step, as the caller guarantees.
        if unsafe { &*word }.swap(TOKEN, Release) == PARKED {
            P::unpark(word, 1);
        }
    }
}

impl<P: Park> Default for Parker<P> {
    fn default() -> Self {
        Self { word: Atomic::new(EMPTY) }
    }
}

impl<P: Park> fmt::Debug for Parker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.word.load(Relaxed) {
            EMPTY => "empty",
            TOKEN => "token",
            _ => "parked",
        };
        f.debug_tuple("Parker").field(&state).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;
    use std::format;

    type Place = Parker<Native>;

    #[test]
    fn a_token_that_is_there_is_taken_once() {
        let place = Place::new();
        place.unpark();
        place.unpark();
        assert_eq!(format!("{place:?}"), r#"Parker("token")"#);
        place.park();
        assert_eq!(format!("{place:?}"), r#"Parker("empty")"#);
        assert!(!place.park_while(|_, _| false), "two unparks made one token");
    }

    #[test]
    fn a_token_may_come_during_any_turn_of_the_sleep() {
        let place = Place::default();
        let mut turns = 0;
        let taken = place.park_while(|word, asleep| {
            assert_eq!(word.load(Relaxed), asleep);
            turns += 1;
            if turns == 3 {
                place.unpark();
            }
            true
        });
        assert!(taken && turns == 3);
    }

    #[test]
    fn a_token_that_comes_as_the_owner_gives_up_is_taken() {
        let place = Place::new();
        let taken = place.park_while(|_, _| {
            assert_eq!(format!("{place:?}"), r#"Parker("parked")"#);
            place.unpark();
            false
        });
        assert!(taken);
        assert_eq!(format!("{place:?}"), r#"Parker("empty")"#);
    }

    #[derive(Clone, Copy, Debug)]
    enum Action {
        Unpark,
        /// Gives up in sleep number `patience`, counted from 1. The token is set in sleep number
        /// `comes`, if that is not 0.
        Park {
            patience: u32,
            comes: u32,
        },
    }

    const ACTIONS: [Action; 7] = [
        Action::Unpark,
        Action::Park { patience: 1, comes: 0 },
        Action::Park { patience: 1, comes: 1 },
        Action::Park { patience: 1, comes: 2 },
        Action::Park { patience: 2, comes: 0 },
        Action::Park { patience: 2, comes: 1 },
        Action::Park { patience: 2, comes: 2 },
    ];

    /// Whether a token is taken, and after how many sleeps.
    fn seen(place: &Place, action: Action) -> Option<(bool, u32)> {
        let Action::Park { patience, comes } = action else {
            place.unpark();
            return None;
        };
        let mut sleeps = 0;
        let taken = place.park_while(|_, _| {
            sleeps += 1;
            if sleeps == comes {
                place.unpark();
            }
            sleeps < patience
        });
        Some((taken, sleeps))
    }

    /// The same for the reference.
    fn expected(token: &mut bool, action: Action) -> Option<(bool, u32)> {
        match action {
            Action::Unpark => {
                *token = true;
                None
            }
            Action::Park { .. } if std::mem::take(token) => Some((true, 0)),
            Action::Park { patience, comes } if (1..=patience).contains(&comes) => Some((true, comes)),
            Action::Park { patience, .. } => Some((false, patience)),
        }
    }

    #[test]
    fn all_sequences_of_three_do_as_a_token_that_is_there_or_not() {
        for sequence in 0..ACTIONS.len().pow(3) {
            let (place, mut token) = (Place::new(), false);
            let actions = [sequence / 49, sequence / 7 % 7, sequence % 7].map(|index| ACTIONS[index]);
            for action in actions {
                assert_eq!(seen(&place, action), expected(&mut token, action), "{actions:?}");
            }
        }
    }
}
