//! The process' settings of locks.

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::settings::Setting;

/// Indexed by discriminant.
static VALUES: [AtomicU64; Setting::COUNT] = {
    let mut values = [const { AtomicU64::new(0) }; Setting::COUNT];
    let mut i = 0;
    while i < Setting::COUNT {
        values[i] = AtomicU64::new(Setting::DEFAULTS[i]);
        i += 1;
    }
    values
};

/// A value that a setting may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The setting.
    pub setting: Setting,
    /// What it was to be set to.
    pub value: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.setting.info();
        write!(f, "{} must be {} to {} ({}), not {}", info.name, info.min, info.max, info.unit, self.value)
    }
}

impl std::error::Error for OutOfRange {}

/// Changes a setting for all locks of the process, in the unit that [`Setting::info`] names. Locks in use
/// take it up at their next look.
///
/// # Errors
///
/// If the value is outside the setting's limits; the setting then keeps its value.
pub fn set_setting(setting: Setting, value: u64) -> Result<(), OutOfRange> {
    let info = setting.info();
    if !(info.min..=info.max).contains(&value) {
        return Err(OutOfRange { setting, value });
    }
    // Relaxed: a setting says nothing about other memory.
    VALUES[setting as usize].store(value, Relaxed);
    Ok(())
}

/// The present value.
#[inline]
pub fn setting(which: Setting) -> u64 {
    VALUES[which as usize].load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_keeps_to_its_limits() {
        for &which in Setting::ALL {
            let info = which.info();
            assert_eq!(setting(which), info.default, "{}", info.name);
            for value in [info.min, info.max] {
                assert_eq!(set_setting(which, value), Ok(()));
                assert_eq!(setting(which), value);
            }
            set_setting(which, info.default).unwrap();
            let outside = [info.min.checked_sub(1), info.max.checked_add(1)];
            for value in outside.into_iter().flatten() {
                assert_eq!(set_setting(which, value), Err(OutOfRange { setting: which, value }));
                assert_eq!(setting(which), info.default);
            }
        }
    }

    #[test]
    fn the_error_says_what_is_allowed() {
        let error = set_setting(Setting::CnaV13ShuffleReduction, 33).unwrap_err();
        assert_eq!(error.to_string(), "cna-v13.shuffle-reduction must be 0 to 32 (bits), not 33");
    }
}
