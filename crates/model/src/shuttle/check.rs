//! How Shuttle runs a model: in schedules drawn from a seed. A failure can be run again.

use std::cell::RefCell;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use ::shuttle::scheduler::{
    PctScheduler, RandomScheduler, ReplayScheduler, Schedule, Scheduler, Task, TaskId,
};
use ::shuttle::{Config, MaxSteps, Runner};

use super::Shuttle;
use crate::engine::Engine;
use crate::model::Model;

/// The name of the environment variable that multiplies the number of schedules.
pub const SCHEDULES: &str = "NEARLOCK_MODEL_SCHEDULES";
/// The name of the environment variable that makes the run try one schedule and no other:
/// `MODEL=SCHEDULE`, the model's name and the string that Shuttle printed at the failure.
pub const REPLAY: &str = "NEARLOCK_MODEL_REPLAY";

/// Steps after which an execution is taken to be endless: a livelock, or spinning forever.
const STEPS_MAX: usize = 200_000;
/// Bytes of a thread's stack. Interrupts are nested.
const STACK: usize = 0x2_0000;
/// Changes of priority in a schedule of Shuttle's PCT.
const PCT_DEPTH: usize = 4;
/// The seed from which schedules are drawn.
const SEED: u64 = 0x6e65_6172;

/// How an execution failed.
#[derive(Debug)]
pub struct Failure {
    /// The text of the panic.
    pub message: String,
    /// The thread of each step, for [`Model::failure_again`].
    pub schedule: Schedule,
}

impl Model<Shuttle> {
    /// Tries `schedules` random ones, and as many with few changes of priority (PCT), or those that
    /// [`SCHEDULES`] or [`REPLAY`] request.
    ///
    /// # Panics
    ///
    /// If an execution fails, deadlocks or does not end. Then the schedule is printed.
    pub fn check(&self, schedules: usize) {
        if let Ok(text) = env::var(REPLAY) {
            let (name, schedule) = text.split_once('=').expect("MODEL=SCHEDULE");
            if name == self.name {
                self.check_with(ReplayScheduler::new_from_encoded(schedule));
            }
            return;
        }
        let times = env::var(SCHEDULES).map_or(1, |text| text.parse().expect("how many times as many"));
        let schedules = schedules * times;
        self.check_with(RandomScheduler::new_from_seed(SEED, schedules));
        self.check_with(PctScheduler::new_from_seed(SEED, PCT_DEPTH, schedules));
    }

    /// Tries the schedules of `scheduler`.
    ///
    /// # Panics
    ///
    /// As [`check`](Self::check).
    pub fn check_with(&self, scheduler: impl Scheduler + 'static) {
        let failed = catch_unwind(AssertUnwindSafe(|| self.run(scheduler)));
        if let Err(failure) = failed {
            let name = &self.name;
            eprintln!(
                "{name} failed. To see it again: {REPLAY}='{name}=STRING' cargo test -p nearlock-model,"
            );
            eprintln!("with the failing schedule above for STRING.");
            resume_unwind(failure);
        }
    }

    fn run(&self, scheduler: impl Scheduler + 'static) {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
        config.stack_size = STACK;
        Shuttle::set_switches(self.switches);
        Shuttle::set_attention(self.attention);
        Shuttle::set_shortages(self.shortages);
        let body = self.body.clone();
        Runner::new(scheduler, config).run(move || body());
    }

    /// Tries the schedules of `scheduler` until one fails.
    pub fn failure(&self, scheduler: impl Scheduler + 'static) -> Option<Failure> {
        let schedule = Rc::new(RefCell::new(Schedule::default()));
        let recorder = Recorder { inner: scheduler, schedule: schedule.clone() };
        let payload = catch_unwind(AssertUnwindSafe(|| self.run(recorder))).err()?;
        let message = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_else(|| "a panic without text".to_string());
        Some(Failure { message, schedule: schedule.take() })
    }

    /// Tries the schedule of a failure again.
    pub fn failure_again(&self, failure: &Failure) -> Option<Failure> {
        self.failure(ReplayScheduler::new_from_schedule(failure.schedule.clone()))
    }
}

/// Records the choices of another scheduler.
struct Recorder<S> {
    inner: S,
    schedule: Rc<RefCell<Schedule>>,
}

impl<S: Scheduler> Scheduler for Recorder<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        let schedule = self.inner.new_execution()?;
        self.schedule.replace(schedule.clone());
        Some(schedule)
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let chosen = self.inner.next_task(runnable, current, is_yielding)?;
        self.schedule.borrow_mut().push_task(chosen);
        Some(chosen)
    }

    fn next_u64(&mut self) -> u64 {
        self.schedule.borrow_mut().push_random();
        self.inner.next_u64()
    }
}
