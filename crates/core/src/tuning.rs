//! What tuning types have in common.
//!
//! A tuning trait has associated constants with the recommended value as default; an empty type that
//! changes one of them is named after the difference. Numbers that change at run time are
//! [`settings`](crate::settings) instead.

/// All recommended values, for every tuning trait.
#[derive(Debug)]
pub struct Standard;

/// How a lock writes a part of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordAccess {
    /// By a narrow store or swap ([`SplitWord`](crate::platform::SplitWord)): a release costs no
    /// locked instruction. What the kernel does.
    Split,
    /// By a read-modify-write of the whole word: what model checkers, Miri and sanitizers can see.
    Whole,
}
