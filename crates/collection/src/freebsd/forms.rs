//! Unit tests that each preset must pass.

/// Calls a function that is generic over the switches with each preset.
macro_rules! each_preset {
    ($($of:ident)::+) => {{
        use $crate::freebsd::tuning;
        $($of)::+::<tuning::Current>();
        $($of)::+::<tuning::Era2014>();
        $($of)::+::<tuning::PreReadFastPath>();
        $($of)::+::<tuning::PreReadHardPath>();
        $($of)::+::<tuning::PreReadLock>();
        $($of)::+::<tuning::PreReadEverywhere>();
        $($of)::+::<tuning::Preloaded>();
        $($of)::+::<tuning::LinearBackoff2016>();
        $($of)::+::<tuning::Fcmpset2017>();
        $($of)::+::<tuning::KeptSpinner2018>();
    }};
}

/// Makes tests of functions that are generic over the switches.
macro_rules! in_all_forms {
    ($($test:ident)*) => {
        mod in_all_forms {
            $(#[test]
            fn $test() {
                each_preset!(super::$test);
            })*
        }
    };
}
