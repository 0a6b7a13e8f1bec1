//! Calls: threads in loops of system calls, as in will-it-scale. The kernel's part is the workload.

use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::raw::RawLock;
use nearlock_os::Os;
use nearlock_workload::sections::WorkLength;
use nearlock_workload::will_it_scale::lock2::Lock2;
use nearlock_workload::will_it_scale::open1::{self, Open1};
use nearlock_workload::will_it_scale::{Caller, Calls, Params, Testcase};

use super::crew::Members;
use super::sample::Outcome;
use super::throughput::{Done, Life, with};

const _: () = assert!(super::mode::THREADS_MAX <= open1::THREADS_MAX, "each has a descriptor");

/// One run of one lock. `call` is the work of a call outside its sections, and `section` the work
/// inside.
pub fn measure<W: Wait, L: RawLock>(
    calls: Calls,
    members: Members,
    (section, call): (WorkLength, WorkLength),
    window: Duration,
) -> Outcome {
    let params = Params { call, section, lines: calls.constants().lines as usize };
    match calls {
        Calls::Open1 => of::<W, L, Open1<Os<W>, L>>(members, params, window),
        Calls::Lock2 => of::<W, L, Lock2<Os<W>, L>>(members, params, window),
    }
}

fn of<W: Wait, L: RawLock, T: Testcase<Os<W>, L>>(
    members: Members,
    params: Params,
    window: Duration,
) -> Outcome {
    let each: Vec<T::Each> = (0..members.threads()).map(|_| T::Each::default()).collect();
    let test = T::default();
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| {
            let mut node = L::Node::default();
            let caller = Caller::<L>::new(thread, &mut node, params, thread as u64);
            Done { faults: caller.run::<Os<W>, T>(&test, &each, witness), ..Done::default() }
        });
    });
    with(members, window, life, &|| 0)
}
