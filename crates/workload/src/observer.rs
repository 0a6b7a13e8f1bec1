/// Observes one thread of a workload. By default, every method does nothing.
pub trait Observer {
    /// The thread is about to acquire the lock.
    #[inline(always)]
    fn waiting(&mut self) {}
    /// The thread has just acquired the lock.
    #[inline(always)]
    fn acquired(&mut self) {}
    /// The thread is about to release the lock.
    #[inline(always)]
    fn releasing(&mut self) {}
    /// From now on the thread uses this lock of the workload. Workloads with one lock do not call
    /// it.
    #[inline(always)]
    fn turns_to(&mut self, _lock: usize) {}
    /// The thread has just acquired the lock together with other readers.
    #[inline(always)]
    fn acquired_shared(&mut self) {}
    /// The thread is about to release what it has acquired together with other readers.
    #[inline(always)]
    fn releasing_shared(&mut self) {}
    /// The thread has done this part of a job: 1 is a whole job.
    #[inline(always)]
    fn progressed(&mut self, _jobs: f64) {}
    /// The thread has released the lock. Returns whether it continues.
    fn goes_on(&mut self) -> bool;
}
