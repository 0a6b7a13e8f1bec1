//! The lines that a thread has requested for loads that follow.
//!
//! A load of such a line waits until the line arrives. So a thread that requests several lines
//! waits for them at the same time, and not for one after the other.

/// How many lines a core can request at a time. A request beyond that is dropped, as if the thread
/// had not made it.
///
/// Intel's optimization reference manual states 10 line fill buffers for Haswell. Later cores have
/// more. No table of the calibration depends on the value: of all locks, only `near-rwlock`
/// requests lines for loads.
const FILL_BUFFERS: usize = 10;

/// The arrival of a line whose request has not been served.
const UNKNOWN: u64 = u64::MAX;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct FillBuffers {
    requests: Vec<Filling>,
}

/// A line on its way.
#[derive(Clone, Copy, Debug)]
struct Filling {
    line: usize,
    /// In ps.
    arrives_ps: u64,
}

impl FillBuffers {
    /// Notes a request for a line. Returns false, and notes nothing, if the line is on its way, or
    /// if no buffer is free.
    pub fn begin(&mut self, line: usize, now_ps: u64) -> bool {
        self.requests.retain(|filling| filling.arrives_ps > now_ps);
        let can = self.requests.len() < FILL_BUFFERS && self.requests.iter().all(|other| other.line != line);
        if can {
            self.requests.push(Filling { line, arrives_ps: UNKNOWN });
        }
        can
    }

    /// Notes when a requested line arrives.
    pub fn serve(&mut self, line: usize, arrives_ps: u64) {
        if let Some(filling) = self.requests.iter_mut().find(|filling| filling.line == line) {
            filling.arrives_ps = arrives_ps;
        }
    }

    /// When this line arrives, if that is known, and later than now.
    #[inline(always)]
    pub fn arrival(&self, line: usize, now_ps: u64) -> Option<u64> {
        if self.requests.is_empty() {
            return None;
        }
        let filling = self.requests.iter().find(|filling| filling.line == line)?;
        Some(filling.arrives_ps).filter(|at_ps| *at_ps > now_ps && *at_ps != UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_waits_for_a_line_that_is_on_its_way() {
        let mut buffers = FillBuffers::default();
        assert!(buffers.begin(7, 0));
        assert_eq!(buffers.arrival(7, 0), None, "nothing has served the request");
        buffers.serve(7, 100);
        assert_eq!((buffers.arrival(7, 99), buffers.arrival(7, 100)), (Some(100), None));
        assert_eq!(buffers.arrival(8, 0), None);
    }

    #[test]
    fn a_line_is_requested_once_until_it_arrives() {
        let mut buffers = FillBuffers::default();
        assert!(buffers.begin(7, 0));
        buffers.serve(7, 100);
        assert!(!buffers.begin(7, 99));
        assert!(buffers.begin(7, 100));
    }

    #[test]
    fn requests_beyond_the_buffers_are_dropped() {
        let mut buffers = FillBuffers::default();
        assert!((0..FILL_BUFFERS).all(|line| buffers.begin(line, 0)));
        assert!(!buffers.begin(FILL_BUFFERS, 0));
        buffers.serve(0, 100);
        assert!(buffers.begin(FILL_BUFFERS, 100), "the buffer of the first is free");
    }
}
