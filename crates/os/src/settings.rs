//! The settings of locks, which belong to the process.

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::settings::Setting;

use crate::numa;

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
    /// The value that was rejected.
    pub value: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.setting.info();
        write!(f, "{} must be {} to {} ({}), not {}", info.name, info.min, info.max, info.unit, self.value)
    }
}

impl std::error::Error for OutOfRange {}

/// Changes a setting for all locks of the process, in the unit that [`Setting::info`] names. Locks
/// in use read the new value the next time they look.
///
/// # Errors
///
/// If the value is outside the setting's limits. The setting then keeps its value.
pub fn set_setting(setting: Setting, value: u64) -> Result<(), OutOfRange> {
    let info = setting.info();
    if !(info.min..=info.max).contains(&value) {
        return Err(OutOfRange { setting, value });
    }
    // Relaxed: a setting says nothing about other memory. Decisions that depend on settings are
    // notified below.
    VALUES[setting as usize].store(value, Relaxed);
    if matches!(setting, Setting::NumaMode | Setting::NumaLocality | Setting::NumaSyntheticNodes) {
        numa::settings_changed();
    }
    Ok(())
}

/// The present value of a setting.
#[inline]
pub fn setting(which: Setting) -> u64 {
    VALUES[which as usize].load(Relaxed)
}

/// Runs a test that changes settings, with all at their defaults, while no other such test runs.
#[cfg(test)]
pub fn alone_with_settings(test: impl FnOnce()) {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            for &setting in Setting::ALL {
                set_setting(setting, setting.info().default).unwrap();
            }
        }
    }
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let _restore = Restore;
    test();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_keeps_to_its_limits() {
        alone_with_settings(limits_are_kept);
    }

    fn limits_are_kept() {
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
