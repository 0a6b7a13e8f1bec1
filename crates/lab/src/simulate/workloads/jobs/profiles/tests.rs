use super::*;

impl Jobs {
    /// The users with this name.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|jobs| jobs.name == name).expect("users of this name")
    }
}

#[test]
fn a_job_takes_what_its_source_says() {
    // Ten CPUs, one minute, 126036 jobs.
    let high_systime_ns = 600_000_000_000 / 126_036;
    for (profile, published_ns) in [
        ("aim7-high-systime", high_systime_ns),
        ("aim7-high-systime-forks", high_systime_ns),
        ("aim7-alltests", 9_980_000),
        ("aim7-custom", 7_800_000),
        ("aim7-shared", 9_650_000),
        ("aim7-disk", 340_000),
        ("aim7-short", 330_000),
    ] {
        let Constants {
            locking_percent,
            rounds,
            round_ns,
            sections,
            root_sections,
            section_ns,
            long_every,
            long_section_ns,
            steps,
            step_ns,
            spinlock_ns,
            ..
        } = Jobs::named(profile).constants;
        let updates = Jobs::named(profile).constants.updates_among(1500);
        let long_ns = long_section_ns.checked_div(long_every).unwrap_or(0);
        let section_ns = (sections + root_sections) * (section_ns + long_ns);
        // An update of the counter moves its line: 56 ns within a socket of `westmere-ex-8s`.
        let locking_ns = rounds * (round_ns + section_ns + spinlock_ns + updates * 56);
        let quiet_ns = steps * (step_ns + spinlock_ns);
        let mean_ns = (locking_percent * locking_ns + (100 - locking_percent) * quiet_ns) / 100;
        assert!(mean_ns.abs_diff(published_ns) < published_ns / 10, "{profile}: {mean_ns} {published_ns}");
    }
}

#[test]
fn a_mean_job_of_high_systime_has_the_forks_of_its_workfile() {
    let Constants { locking_percent, rounds, sections, .. } = Jobs::named("aim7-high-systime").constants;
    assert_eq!((locking_percent, sections), (100, 1), "each round of each job has one section");
    // Of 260 hits exec has 20, fork 10, shell 40. They fork 5, 100 and 10 times.
    let forks = (20.0 * 5.0 + 10.0 * 100.0 + 40.0 * 10.0) / 260.0;
    let per_fork = rounds as f64 / forks;
    assert!((per_fork - 3.0 * 3.0).abs() < 1.0, "three sections for each of three mappings: {per_fork}");
}

#[test]
fn updates_grow_with_the_users() {
    let of = |profile, users| Jobs::named(profile).constants.updates_among(users);
    assert_eq!([64, 65, 1500].map(|users| of("aim7-high-systime", users)), [23, 24, 2 * 23]);
    assert_eq!(of("aim7-high-systime-forks", 1500), 0, "without any there are none more");
}

#[test]
fn shares_are_those_of_the_workfiles() {
    // The jobs of a list, rounded test by test as reaim does, or for all tests together.
    let percent = |hits: &[u64], of: u64| hits.iter().map(|n| (n * 100 + of / 2) / of).sum::<u64>();
    for (profile, hits, of) in [
        ("aim7-alltests", &[10, 20, 20, 10, 10][..], 1000),
        ("aim7-custom", &[10], 410),
        ("aim7-disk", &[], 400),
        ("aim7-high-systime-forks", &[10, 20, 20, 10, 10], 260),
        ("aim7-shared", &[10, 20, 20], 780),
        ("aim7-short", &[], 340),
        ("aim7-fserver", &[60], 595),
        ("aim7-new-fserver", &[60], 580),
        ("aim7-compute", &[10], 820),
    ] {
        assert_eq!(Jobs::named(profile).constants.locking_percent, percent(hits, of), "{profile}");
    }
}
