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
    /// The thread has released the lock. Whether it shall go on.
    fn goes_on(&mut self) -> bool;
}
