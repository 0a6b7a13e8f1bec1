//! The service of requests: each line serves one request after the other, with begin, grab and
//! done.

use crate::access::{Access, Operation};
use crate::costs::{Arrival, Transfer};
use crate::engine::Engine;
use crate::events::Event;
use crate::line::{Origin, Phase, Request};
use crate::spec::LoadOfModified;

impl Engine {
    pub fn request(&mut self, request: Request) {
        let index = request.access.line();
        let line = &mut self.lines[index];
        if line.phase == Phase::Reading && line.queue.is_empty() {
            // No event has been scheduled for the moment when the line becomes free.
            if line.free_ps > self.now_ps {
                self.events.schedule(line.free_ps, Event::Free(index as u32));
            } else {
                line.phase = Phase::Idle;
            }
        }
        if line.phase == Phase::Idle {
            line.served = request;
            self.begin(index as u32, Arrival::AtOnce);
        } else {
            line.queue.push_back(request);
        }
    }

    pub fn begin_next(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        line.phase = Phase::Idle;
        let next = if self.same_socket_bypasses == 0 || line.queue.is_empty() {
            line.queue.pop_front()
        } else {
            let next = self.arbitrate(index);
            self.lines[index as usize].queue.remove(next)
        };
        if let Some(request) = next {
            self.lines[index as usize].served = request;
            self.begin(index, Arrival::Queued);
        }
    }

    /// The index of the next request. It is the oldest request from the socket that was served
    /// last, unless too many of its requests have overtaken others. Otherwise it is the oldest
    /// request.
    fn arbitrate(&mut self, index: u32) -> usize {
        let line = &mut self.lines[index as usize];
        let socket = self.costs.socket_of_core(line.served.core);
        let near = line.queue.iter().position(|request| self.costs.socket_of_core(request.core) == socket);
        match near {
            Some(near) if near > 0 && line.bypasses < self.same_socket_bypasses => {
                line.bypasses += 1;
                near
            }
            _ => {
                line.bypasses = 0;
                0
            }
        }
    }

    /// Begins to serve the request in the line's `served`.
    fn begin(&mut self, index: u32, arrival: Arrival) {
        let line = &self.lines[index as usize];
        let Request { core, task, .. } = line.served;
        let mut cost = self.costs.of(core, line, line.served.access.operation);
        match cost.transfer {
            Transfer::None => {}
            Transfer::Local => self.counters.line_transfers += 1,
            Transfer::Remote => {
                self.counters.line_transfers += 1;
                self.counters.remote_transfers += 1;
            }
        }
        if cost.transfer != Transfer::None
            && let Some(factor) = self.jitter.of_transfer(self.tasks[task as usize].sibling)
        {
            cost.latency_ps = factor.of(cost.latency_ps);
            cost.occupancy_ps = factor.of(cost.occupancy_ps).max(1);
        }
        let line = &mut self.lines[index as usize];
        line.phase = Phase::Begun;
        line.done_ps = self.now_ps + cost.latency_ps;
        line.free_ps = self.now_ps + cost.occupancy_ps;
        self.events.schedule(self.now_ps + self.costs.grab_ps(cost, arrival), Event::Grab(index));
    }

    pub fn grab(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        debug_assert_eq!(line.phase, Phase::Begun);
        let Request { access, task, core, origin } = line.served;
        if access.is_load() {
            return self.grab_to_read(index);
        }
        let done_ps = line.done_ps;
        line.give(core, self.costs.domain_of_core[usize::from(core)]);
        line.phase = Phase::Moving;
        let answer = self.write(&access);
        if origin == Origin::Thread {
            self.tasks[task as usize].answer = answer;
        }
        self.events.schedule(done_ps, Event::Done(index));
    }

    fn grab_to_read(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        let Request { access, task, core, origin } = line.served;
        let domain = self.costs.domain_of_core[usize::from(core)];
        let is_prefetch = origin == Origin::PrefetchRead;
        if is_prefetch {
            self.tasks[task as usize].fill_buffers.serve(access.line(), line.done_ps);
        }
        if line.is_modified && self.load_of_modified == LoadOfModified::TakeOver {
            let done_ps = line.done_ps;
            line.give(core, domain);
            line.phase = Phase::Moving;
            self.change(access.line());
            if !is_prefetch {
                self.tasks[task as usize].answer = self.read(&access, task);
            }
            self.events.schedule(done_ps, Event::Done(index));
            return;
        }
        if line.owner.is_none() && line.sharer_domains == 0 {
            line.give(core, domain);
        } else {
            line.share(core, domain);
        }
        line.phase = Phase::Reading;
        let (done_ps, free_ps) = (line.done_ps, line.free_ps);
        let is_free = free_ps <= self.now_ps;
        let is_wanted = !line.queue.is_empty();
        if !is_prefetch {
            self.tasks[task as usize].answer = self.read(&access, task);
            self.schedule_due(task, done_ps, Event::Resume(task));
        }
        if is_free {
            self.begin_next(index);
        } else if is_wanted {
            self.events.schedule(free_ps, Event::Free(index));
        }
    }

    pub fn done(&mut self, index: u32) -> Option<u32> {
        let line = &mut self.lines[index as usize];
        debug_assert_eq!(line.phase, Phase::Moving);
        let Request { task, origin, .. } = line.served;
        line.phase = Phase::Idle;
        let resumed = match origin {
            Origin::Thread => self.resume(task),
            Origin::Prefetch => self.drain_on(task),
            Origin::PrefetchRead => None,
            Origin::StoreBuffer => {
                let storing = &mut self.tasks[task as usize];
                storing.buffer.drain_oldest();
                storing.draining = false;
                self.drain_on(task)
            }
        };
        self.begin_next(index);
        resumed
    }

    /// Reads a word whose line is present.
    #[inline]
    pub fn read(&mut self, access: &Access, task: u32) -> u64 {
        debug_assert!(access.is_load());
        self.tasks[task as usize].seen_version = self.lines[access.line()].version;
        let load = Access { operation: Operation::Load, ..*access };
        // SAFETY: offsets come from words in the arena, which are live and aligned.
        unsafe { load.apply(self.arena.at(access.offset as usize)) }
    }

    /// Writes a word whose line is present, or at least takes the line.
    pub fn write(&mut self, access: &Access) -> u64 {
        // SAFETY: as in `read`.
        let old = unsafe { access.apply(self.arena.at(access.offset as usize)) };
        self.lines[access.line()].is_modified = true;
        self.change(access.line());
        old
    }
}
