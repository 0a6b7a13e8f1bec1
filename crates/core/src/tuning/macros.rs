//! The macros that declare switches, and types with values for them.

/// An enumeration whose values are the words of a switch.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// Their names on the command line.
            pub const WORDS: &[&str] = &[$($word,)*];
        }
    };
}

/// Declares a tuning trait, with a function for each switch. A switch has a key, a kind of storage
/// (`flag`, `word`, `number` or `optional`, with its limits), and a default.
/// [`Standard`](crate::tuning::Standard) and [`Switched`](crate::tuning::Switched) implement the
/// trait. The second line names the list of the switches, and the index of the first switch among
/// all switches.
#[macro_export]
macro_rules! switches {
    (
        $(#[$trait_doc:meta])* pub trait $trait:ident;
        $list:ident from $base:literal;
        $(
            $(#[doc = $doc:literal])+
            fn $name:ident($key:literal) -> $type:ty as $kind:ident $(($($limit:expr),+))? = $default:expr;
        )+
    ) => {
        $(#[$trait_doc])*
        ///
        /// # Safety
        ///
        /// Each function returns the same value in every call, as long as there is a lock with this
        /// tuning. (This holds for a type that [`tuning!`](crate::tuning!) declares.)
        // clippy does not see the documentation that a macro of another crate makes.
        #[allow(clippy::missing_safety_doc)]
        pub unsafe trait $trait: Send + Sync + 'static {
            /// Tells `tuning!` that this macro has declared the trait.
            #[doc(hidden)]
            fn declared_by_switches(_: $crate::tuning::DeclaredBySwitches) {}

            $(
                $(#[doc = $doc])+
                #[inline(always)]
                fn $name() -> $type {
                    $default
                }
            )+
        }

        /// The switches, in the order of the functions.
        pub const $list: &[&$crate::tuning::SwitchInfo] = &{
            let mut index = $base;
            [$(&$crate::tuning::SwitchInfo {
                key: $key,
                values: $crate::stored!(values $kind $type $(, $($limit),+)?),
                default: $crate::stored!(encode $kind $type, $default),
                summary: concat!($($doc),+),
                index: { index += 1; index - 1 },
            },)+]
        };

        // SAFETY: the defaults are constants.
        unsafe impl $trait for $crate::tuning::Standard {}

        // SAFETY: switches do not change as long as a lock uses them (`Switches`).
        unsafe impl<P: $crate::platform::Switches> $trait for $crate::tuning::Switched<P> {
            $(
                #[inline(always)]
                fn $name() -> $type {
                    const SWITCH: &$crate::tuning::SwitchInfo = match $crate::tuning::named($list, $key) {
                        Some(switch) => switch,
                        None => unreachable!(),
                    };
                    let value = SWITCH.of::<P>();
                    $crate::stored!(decode $kind $type, value)
                }
            )+
        }
    };
}

/// How the values of a switch of some kind are stored as numbers.
#[doc(hidden)]
#[macro_export]
macro_rules! stored {
    (values flag $type:ty) => {
        $crate::tuning::Values::Words($crate::tuning::OFF_ON)
    };
    (values word $type:ty) => {
        $crate::tuning::Values::Words(<$type>::WORDS)
    };
    (values number $type:ty, $min:expr, $max:expr) => {
        $crate::tuning::Values::Number { min: $min, max: $max }
    };
    (values optional $type:ty, $max:expr) => {
        $crate::tuning::Values::OffOrNumber { max: $max }
    };
    (encode optional $type:ty, $value:expr) => {
        match {
            const VALUE: $type = $value;
            VALUE
        } {
            Some(number) => number as u64,
            None => $crate::tuning::OFF,
        }
    };
    (encode $kind:ident $type:ty, $value:expr) => {
        $value as u64
    };
    (decode flag $type:ty, $stored:expr) => {
        $stored != 0
    };
    (decode word $type:ty, $stored:expr) => {
        <$type>::ALL[$stored as usize]
    };
    (decode number $type:ty, $stored:expr) => {
        $stored as $type
    };
    (decode optional $type:ty, $stored:expr) => {
        if $stored == $crate::tuning::OFF { None } else { Some($stored as _) }
    };
}

/// Declares a type with its own values for some switches: constants. A number must be within the
/// limits of its switch, which is not checked. Exclusion does not depend on any number. But a
/// number beyond the limits may cost fairness or progress, or make a lock panic.
///
/// ```
/// use nearlock_core::near::condvar::monitor::{MonitorTuning, Notifies};
///
/// nearlock_core::tuning! {
///     /// Notifies all waiters.
///     pub struct Broadcasts: MonitorTuning {
///         notifies: Notifies = Notifies::All;
///     }
/// }
/// assert_eq!(Broadcasts::notifies(), Notifies::All);
/// ```
///
/// It implements no other unsafe trait:
///
/// ```compile_fail,E0576
/// /// # Safety
/// ///
/// /// More than constants can promise.
/// unsafe trait Wraps {}
///
/// nearlock_core::tuning! {
///     struct Careless: Wraps {}
/// }
/// ```
#[macro_export]
macro_rules! tuning {
    ($(#[$doc:meta])* $vis:vis struct $name:ident: $trait:path { $($switch:ident: $type:ty = $value:expr;)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name;

        // Only a trait of `switches!` has this function. Another unsafe trait could ask for more
        // than values that do not change.
        const _: fn($crate::tuning::DeclaredBySwitches) = <$name as $trait>::declared_by_switches;

        // SAFETY: a trait of `switches!` requires only that the values do not change. These are
        // constants.
        unsafe impl $trait for $name {
            $(
                #[inline(always)]
                fn $switch() -> $type {
                    const { $value }
                }
            )*
        }
    };
}
