/// Watches one thread of a workload. Every method is empty unless implemented.
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
    /// From here on the thread is at this one of the workload's locks. Workloads with one lock do
    /// not say.
    #[inline(always)]
    fn turns_to(&mut self, _lock: usize) {}
    /// The thread has just acquired the lock together with other readers.
    #[inline(always)]
    fn acquired_shared(&mut self) {}
    /// The thread is about to release what it has acquired so.
    #[inline(always)]
    fn releasing_shared(&mut self) {}
    /// The thread has done so much more of a job: 1 is a whole one.
    #[inline(always)]
    fn progressed(&mut self, _jobs: f64) {}
    /// The thread has released the lock. Whether it shall go on.
    fn goes_on(&mut self) -> bool;
}
