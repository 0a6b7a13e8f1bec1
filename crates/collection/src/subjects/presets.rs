//! Presets: algorithms with some switches in a position other than the recommended one.

use super::algorithms::ALGORITHMS;
use crate::tuning::{Position, SwitchInfo, is_same, named};

/// A preset.
#[derive(Debug)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// The name of its algorithm.
    pub algorithm: &'static str,
    /// The switches that are not in the recommended position.
    pub positions: &'static [Position],
    /// A summary in one sentence.
    pub summary: &'static str,
    /// Its origin, or the reason why it is of interest: a version, a patch, a paper.
    pub source: &'static str,
}

/// Keys of switches, each with the word for a position.
type Words = [(&'static str, &'static str)];

/// The switches of the algorithm with this name.
const fn switches_of(algorithm: &str) -> &'static [&'static SwitchInfo] {
    let mut i = 0;
    while i < ALGORITHMS.len() {
        if is_same(ALGORITHMS[i].name, algorithm) {
            return ALGORITHMS[i].switches;
        }
        i += 1;
    }
    panic!("no such algorithm")
}

/// The position that a key and a word stand for. `None` if the algorithm has no such switch, or the
/// position is the recommended one.
const fn position(switches: &'static [&'static SwitchInfo], (key, word): (&str, &str)) -> Option<Position> {
    let Some(switch) = named(switches, key) else { return None };
    let Some(value) = switch.values.parse(word) else { panic!("no position of this switch") };
    if value == switch.default { None } else { Some(Position { switch, value }) }
}

/// The number of these words for which `position` returns a position.
const fn count(switches: &'static [&'static SwitchInfo], words: &Words) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < words.len() {
        count += position(switches, words[i]).is_some() as usize;
        i += 1;
    }
    count
}

/// The positions that these words stand for.
const fn positions<const N: usize>(switches: &'static [&'static SwitchInfo], words: &Words) -> [Position; N] {
    let mut positions = [Position { switch: switches[0], value: 0 }; N];
    let (mut filled, mut i) = (0, 0);
    while i < words.len() {
        if let Some(position) = position(switches, words[i]) {
            positions[filled] = position;
            filled += 1;
        }
        i += 1;
    }
    positions
}

/// Declares the presets. A row has a name and an algorithm, then the switches, then a summary
/// sentence and a source. The switches are either listed in brackets or, after `as`, a list for a
/// family of locks. Of such a list, only the switches that the algorithm has count.
macro_rules! presets {
    ($($name:literal = $algorithm:literal $([$($key:literal = $word:literal),+])? $(as $list:ident)?,
        $summary:literal, $source:literal;)*) => {
        /// All presets. Those of one algorithm are in the order of the documentation.
        pub const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            algorithm: $algorithm,
            positions: {
                const SWITCHES: &[&SwitchInfo] = switches_of($algorithm);
                const WORDS: &Words = presets!(words $([$($key = $word),+])? $($list)?);
                const N: usize = count(SWITCHES, WORDS);
                const POSITIONS: [Position; N] = positions(SWITCHES, WORDS);
                $($(const _: () = assert!(named(SWITCHES, $key).is_some());)+)?
                &POSITIONS
            },
            summary: $summary,
            source: $source,
        },)*];
    };
    (words [$($key:literal = $word:literal),+]) => { &[$(($key, $word)),+] };
    (words $list:ident) => { $list };
}

/// The switches of all FreeBSD locks before `fcmpset`. The arguments are the positions in which
/// these locks differ: pre-reads, `cas-value` and back-off.
macro_rules! until_2016 {
    ($lock:literal, $unlock:literal, $hard:literal, $cas_value:literal, $backoff:literal) => {
        &[
            ("lock-preread", $lock),
            ("unlock-preread", $unlock),
            ("hard-preread", $hard),
            ("cas-value", $cas_value),
            ("backoff", $backoff),
            ("follow-owner", "same"),
            ("waiter-cas-fail", "restart"),
            ("release-order", "collect-first"),
            ("reader-wait", "one-pause"),
            ("spinner-bit", "cleared"),
            ("precedence", "readers"),
            ("spins", "off"),
        ]
    };
}

const ERA_2014: &Words = until_2016!("off", "off", "off", "reread", "none");
const HARD_PREREAD: &Words = until_2016!("off", "off", "on", "reread", "none");
const LOCK_PREREAD: &Words = until_2016!("on", "off", "on", "reread", "none");
const FAST_PREREAD: &Words = until_2016!("on", "on", "off", "reread", "none");
const PREREAD: &Words = until_2016!("on", "on", "on", "reread", "none");
const PRELOADED: &Words = until_2016!("on", "on", "on", "kept", "none");
const LINEAR: &Words = until_2016!("on", "on", "on", "reread", "linear");

/// FreeBSD of March 2017: the fast paths write at once, and waiters use the value that a failed
/// write has returned.
const FCMPSET: &Words = &[
    ("waiter-cas-fail", "restart"),
    ("release-order", "collect-first"),
    ("reader-wait", "one-pause"),
    ("spinner-bit", "cleared"),
    ("precedence", "readers"),
    ("spins", "off"),
];

presets! {
    "ttas-no-preread" = "ttas" ["preread" = "off"],
        "ttas that tries before it reads, and reads only between attempts",
        "the baseline of the pre-read";
    "mcs-self-granted" = "mcs" ["grants-itself" = "on"],
        "mcs whose holder grants itself the lock that it finds free, as Linux did until 2014",
        "Linux until January 2014 (5faeb8adb956)";
    "parking-lot-0.12-protocol" = "parking-lot-0.13-protocol" ["unlock" = "at-bucket", "first-pauses" = "2"],
        "protocol of parking_lot 0.12's mutex: waiters yield, then sleep in a table; a hand-over now and then",
        "parking_lot 0.12";
    "qspinlock-whole-word" = "qspinlock" ["access" = "whole"],
        "qspinlock that writes its word only as a whole", "the baseline of the byte release";
    "qspinlock-steal-once" = "qspinlock" ["stealing" = "once"],
        "qspinlock whose newcomers try once to take the lock ahead of the queue", "Linux 4.4, paravirtual";
    "qspinlock-steal" = "qspinlock" ["stealing" = "hybrid"],
        "qspinlock whose newcomers take the lock ahead of a queue whose head does not look",
        "Linux 4.15, paravirtual";
    "qspinlock-park" = "qspinlock" ["park-turns" = "128", "park-head" = "on"],
        "qspinlock whose waiters sleep after a while", "Linux 4.2, paravirtual";
    "qspinlock-preemptible" = "qspinlock" ["stealing" = "hybrid", "park-turns" = "128", "park-head" = "on"],
        "qspinlock for more threads than processors: newcomers steal, waiters sleep", "Linux 4.15, paravirtual";
    "qspinlock-preemptible-late" = "qspinlock"
        ["stealing" = "hybrid", "park-turns" = "128", "park-head" = "on", "wait-early" = "off"],
        "qspinlock-preemptible whose waiters do not sleep as soon as their predecessor does",
        "the baseline of waiting early";
    "qspinlock-preemptible-head" = "qspinlock" ["stealing" = "hybrid", "park-turns" = "128"],
        "qspinlock-preemptible whose head does not sleep", "the baseline of a head that sleeps";
    "cna-preemptible" = "cna" ["stealing" = "hybrid", "park-turns" = "128", "park-head" = "on"],
        "CNA for more threads than processors: newcomers steal, waiters sleep",
        "CNA v15 with the switches of qspinlock-preemptible";
    "cna-v13-no-sro" = "cna-v13" ["reduction" = "off"],
        "cna-v13 without the shuffle reduction", "CNA v13 without patch 6";
    "linux-counter-mutex-no-preread" = "linux-counter-mutex"
        ["waiter-preread" = "off", "spinner-preread" = "off"],
        "linux-counter-mutex that swaps before it reads: 3.7.10 as it was", "Linux 3.7.10";
    "linux-counter-mutex-spinner-preread" = "linux-counter-mutex" ["waiter-preread" = "off"],
        "linux-counter-mutex with the pre-read of spinners only", "a half of the patch of April 2013";
    "linux-counter-mutex-waiter-preread" = "linux-counter-mutex" ["spinner-preread" = "off"],
        "linux-counter-mutex with the pre-read of waiters only", "the other half of the patch of April 2013";
    "linux-counter-mutex-marked-preread" = "linux-counter-mutex" ["waiter-preread" = "marked"],
        "linux-counter-mutex whose waiters omit the swap at -1 only",
        "the patch of April 2013 for any processor";
    "linux-counter-mutex-exchange" = "linux-counter-mutex"
        ["fast-path" = "exchange", "waiter-preread" = "marked"],
        "linux-counter-mutex for processors that cannot count", "Linux' mutex-xchg.h";
    "linux-counter-mutex-unlock-first" = "linux-counter-mutex" ["unlocks-first" = "on", "wakes-last" = "on"],
        "linux-counter-mutex whose unlock does not wait for the queue's lock",
        "Linux 4.6, without its queue of spinners";
    "linux-counter-mutex-queue-no-preread" = "linux-counter-mutex-queue"
        ["waiter-preread" = "off", "spinner-preread" = "off"],
        "linux-counter-mutex-queue that swaps before it reads: what the queue does by itself",
        "Linux 3.10 without the pre-reads";
    "linux-counter-mutex-queue-held-no-preread" = "linux-counter-mutex-queue-held"
        ["waiter-preread" = "off", "spinner-preread" = "off"],
        "linux-counter-mutex-queue-held that swaps before it reads", "Linux 3.12 without the pre-reads";
    "rwsem-xadd-base" = "rwsem-xadd"
        ["try-preread" = "off", "wake-preread" = "off", "writer-spin" = "never", "single-waker" = "off"],
        "rwsem-xadd without the series: Linux 3.10", "Linux 3.10 to 3.12";
    "rwsem-xadd-preread" = "rwsem-xadd" ["writer-spin" = "never", "single-waker" = "off"],
        "rwsem-xadd-base whose writers and wakers read before they write", "the series' pre-reads alone";
    "rwsem-xadd-spin" = "rwsem-xadd"
        ["try-preread" = "off", "wake-preread" = "off", "single-waker" = "off"],
        "rwsem-xadd-base whose writers spin before they queue", "the series' spinning alone";
    "rwsem-xadd-single-waker" = "rwsem-xadd"
        ["try-preread" = "off", "wake-preread" = "off", "writer-spin" = "never"],
        "rwsem-xadd-base in which one release wakes at a time", "the series' single waker alone";
    "rwsem-xadd-preread-spin" = "rwsem-xadd" ["single-waker" = "off"],
        "rwsem-xadd without the single waker", "the series without its single waker";
    "rwsem-xadd-preread-spin-queued" = "rwsem-xadd" ["writer-spin" = "queued", "single-waker" = "off"],
        "rwsem-xadd-preread-spin whose writers spin in the queue", "version 4 of the series";
    "rwsem-xadd-no-preread" = "rwsem-xadd" ["try-preread" = "off", "wake-preread" = "off"],
        "rwsem-xadd whose writers and wakers write before they read", "the series without its pre-reads";
    "rwsem-xadd-no-spin" = "rwsem-xadd" ["writer-spin" = "never"],
        "rwsem-xadd whose writers sleep at once", "the series without its spinning";
    "rwsem-xadd-self-granted" = "rwsem-xadd" ["self-granted-spinners" = "on"],
        "rwsem-xadd whose first spinner writes its own node: the MCS lock until January 2014",
        "the series on Linux' MCS lock of 2013";
    "rwsem-xadd-owner-known" = "rwsem-xadd" ["spins-without-owner" = "off"],
        "rwsem-xadd whose writers spin only for writers: the kernel since July 2014", "Linux 3.16";
    "linux-mutex-no-handoff" = "linux-mutex" ["handoff" = "off"],
        "linux-mutex that is never handed over: others may take it for ever", "Linux before 4.10";
    "linux-mutex-no-waiter-spin" = "linux-mutex" ["waiter-spins" = "off"],
        "linux-mutex whose waiters do not spin any more once they have slept", "Linux before 4.9";
    "linux-mutex-no-osq" = "linux-mutex" ["spinner-queue" = "off"],
        "linux-mutex whose newcomers all spin on its word", "the baseline of the queue of spinners";
    "linux-mutex-heedless" = "linux-mutex" ["spinning" = "always"],
        "linux-mutex whose waiters spin whether the owner sleeps or not", "the baseline of looking at the owner";
    "linux-mutex-no-spin" = "linux-mutex" ["spinning" = "never"],
        "linux-mutex whose waiters sleep at once", "Linux without CONFIG_MUTEX_SPIN_ON_OWNER";
    "rwsem-no-spin" = "rwsem" ["writer-spin" = "off", "handoff-spin" = "off"],
        "rwsem whose writers sleep at once", "Linux without CONFIG_RWSEM_SPIN_ON_OWNER";
    "rwsem-no-handoff" = "rwsem" ["handoff-ns" = "off"],
        "rwsem whose waiters may be overtaken for ever", "Linux before 5.3";
    "rwsem-leading-readers" = "rwsem" ["readers-past-writers" = "off"],
        "rwsem whose readers come in up to the next writer only", "Linux until 5.2";
    "rwsem-no-reader-steal" = "rwsem" ["reader-steal" = "off"],
        "rwsem whose readers queue if there are sleepers", "Linux 5.3 to 5.10 without its reader spinning";
    "rwsem-reader-spin" = "rwsem" ["reader-spin" = "on", "reader-steal" = "off"],
        "rwsem whose readers spin too: Linux 5.3 to 5.10", "Linux 5.3 to 5.10";
    "rwsem-no-spin-for-readers" = "rwsem" ["reader-owned-spin" = "off"],
        "rwsem whose writers spin for a writer only", "Linux before 5.3";
    "freebsd-mtx-no-preread" = "freebsd-mtx" as ERA_2014,
        "freebsd-mtx of FreeBSD 10.1: its waiters write before they read, and do not back off", "FreeBSD 10.1";
    "freebsd-mtx-hard-preread" = "freebsd-mtx" as HARD_PREREAD,
        "freebsd-mtx-no-preread whose waiters read before they write", "a part of the patch of November 2015";
    "freebsd-mtx-lock-preread" = "freebsd-mtx" as LOCK_PREREAD,
        "freebsd-mtx-hard-preread whose lock reads before it writes, while its unlock does not",
        "the patch of November 2015 without its unlock";
    "freebsd-mtx-fast-preread" = "freebsd-mtx" as FAST_PREREAD,
        "freebsd-mtx-no-preread whose fast paths read before they write",
        "a part of the patch of November 2015";
    "freebsd-mtx-preread" = "freebsd-mtx" as PREREAD,
        "freebsd-mtx-no-preread with all pre-reads: the patch of November 2015", "the patch of November 2015";
    "freebsd-mtx-preloaded" = "freebsd-mtx" as PRELOADED,
        "freebsd-mtx-preread whose waiters keep the value read, and sleep after a lost race",
        "the form of the patch before that of November 2015";
    "freebsd-mtx-linear-backoff" = "freebsd-mtx" as LINEAR,
        "freebsd-mtx-preread with the random back-off of August 2016", "FreeBSD of August 2016";
    "freebsd-mtx-fcmpset" = "freebsd-mtx" as FCMPSET,
        "freebsd-mtx of 2017: no pre-read, a failed write returns the value found", "FreeBSD of March 2017";
    "freebsd-mtx-no-spin" = "freebsd-mtx" ["adaptive" = "off"],
        "freebsd-mtx whose waiters sleep at once", "FreeBSD with NO_ADAPTIVE_MUTEXES";
    "freebsd-spin-mtx-no-preread" = "freebsd-spin-mtx" as ERA_2014,
        "freebsd-spin-mtx of FreeBSD 10.1: no pre-read, no back-off", "FreeBSD 10.1";
    "freebsd-spin-mtx-hard-preread" = "freebsd-spin-mtx" as HARD_PREREAD,
        "freebsd-spin-mtx-no-preread whose waiters read before they write",
        "a part of the patch of November 2015";
    "freebsd-spin-mtx-fast-preread" = "freebsd-spin-mtx" as FAST_PREREAD,
        "freebsd-spin-mtx-no-preread whose fast path reads before it writes",
        "a part of the patch of November 2015";
    "freebsd-spin-mtx-preread" = "freebsd-spin-mtx" as PREREAD,
        "freebsd-spin-mtx-no-preread with the pre-reads of November 2015", "the patch of November 2015";
    "freebsd-spin-mtx-fcmpset" = "freebsd-spin-mtx" as FCMPSET,
        "freebsd-spin-mtx of 2017: no pre-read, a failed write returns the value found", "FreeBSD of March 2017";
    "freebsd-rw-no-preread" = "freebsd-rw" as ERA_2014,
        "freebsd-rw of FreeBSD 10.1: its writers write before they read; no back-off", "FreeBSD 10.1";
    "freebsd-rw-hard-preread" = "freebsd-rw" as HARD_PREREAD,
        "freebsd-rw-no-preread whose waiting writers read before they write",
        "a part of the patch of November 2015";
    "freebsd-rw-lock-preread" = "freebsd-rw" as LOCK_PREREAD,
        "freebsd-rw-hard-preread whose writers read before they write, except to unlock",
        "the patch of November 2015 without its unlock";
    "freebsd-rw-fast-preread" = "freebsd-rw" as FAST_PREREAD,
        "freebsd-rw-no-preread whose writers' fast paths read before they write",
        "a part of the patch of November 2015";
    "freebsd-rw-preread" = "freebsd-rw" as PREREAD,
        "freebsd-rw-no-preread with all pre-reads: the patch of November 2015", "the patch of November 2015";
    "freebsd-rw-fcmpset" = "freebsd-rw" as FCMPSET,
        "freebsd-rw of 2017: no pre-read, a failed write returns the value found", "FreeBSD of March 2017";
    "freebsd-sx-no-preread" = "freebsd-sx" as ERA_2014,
        "freebsd-sx of FreeBSD 10.1: writers write before they read, and readers go first", "FreeBSD 10.1";
    "freebsd-sx-hard-preread" = "freebsd-sx" as HARD_PREREAD,
        "freebsd-sx-no-preread whose waiting writers read before they write",
        "a part of the patch of November 2015";
    "freebsd-sx-lock-preread" = "freebsd-sx" as LOCK_PREREAD,
        "freebsd-sx-hard-preread whose writers read before they write, except to unlock",
        "the patch of November 2015 without its unlock";
    "freebsd-sx-fast-preread" = "freebsd-sx" as FAST_PREREAD,
        "freebsd-sx-no-preread whose writers' fast paths read before they write",
        "a part of the patch of November 2015";
    "freebsd-sx-preread" = "freebsd-sx" as PREREAD,
        "freebsd-sx-no-preread with all pre-reads: the patch of November 2015", "the patch of November 2015";
    "freebsd-sx-fcmpset" = "freebsd-sx" as FCMPSET,
        "freebsd-sx of 2017: no pre-read, a failed write returns the value found", "FreeBSD of March 2017";
    "freebsd-lockmgr-no-preread" = "freebsd-lockmgr" as ERA_2014,
        "freebsd-lockmgr of FreeBSD 10.1: exclusive waiters write before they read; no spinning",
        "FreeBSD 10.1";
    "freebsd-lockmgr-preread" = "freebsd-lockmgr" as PREREAD,
        "freebsd-lockmgr-no-preread with the pre-reads of November 2015, all of them in its loops",
        "the patch of November 2015";
    "freebsd-lockmgr-fcmpset" = "freebsd-lockmgr" as FCMPSET,
        "freebsd-lockmgr of 2017: it writes at once, and a failed write returns the value found",
        "FreeBSD of March 2017";
    "freebsd-lockmgr-no-adaptive" = "freebsd-lockmgr" ["adaptive" = "off"],
        "freebsd-lockmgr whose waiters sleep at once, as until 2020", "FreeBSD before July 2020";
    "near-condvar-all" = "near-condvar" ["notifies" = "all"],
        "near-condvar whose unlock notifies all waiters", "the other way to notify";
}
