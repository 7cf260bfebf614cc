//! One turn of a loop, real or simulated.

use crate::budget::Part;
use crate::net::{Handler, Net, Next};
use crate::reading::ReadBuffer;

/// What serving a newcomer or accepting one costs: enough for a look at the clock.
pub(crate) const NEWCOMER_UNITS: u32 = 32;
const READ_UNITS: u32 = 2;
const END_UNITS: u32 = 4;

impl<H: Handler> Net<H> {
    /// The steps of a turn after its events were recorded. `accept` accepts new connections.
    #[inline]
    pub(crate) fn turn(
        &mut self,
        handler: &mut H,
        buffer: &mut ReadBuffer,
        accept: impl FnOnce(&mut Self, &mut H),
    ) -> Next {
        self.turns_again = false;
        self.budget.begin_part(Part::Mail);
        self.deliver_mail(handler);
        let timers_first = !self.catch_up.is_under_way();
        if timers_first {
            self.fire_timers(handler);
        }
        self.budget.begin_part(Part::Reads);
        let served = self.serve_ready(handler, buffer);
        self.budget.begin_part(Part::Leavers);
        self.serve_leavers(handler, buffer);
        self.budget.begin_part_of(self.limits.newcomers_budget_ns);
        let served_newcomers = self.serve_newcomers(handler, buffer);
        accept(self, handler);
        if !timers_first && self.catch_up.served(served, served_newcomers) {
            self.fire_timers(handler);
        }
        self.report_ended(handler);
        self.budget.begin_part(Part::Work);
        let mut next = handler.turn(self);
        if self.report_ended(handler) {
            // The calls of `closed` may have left work.
            next = Next::Again;
        }
        // Mail before output: a peer that reads an answer can rely on the mail of the same turn.
        self.mail.send();
        self.flush(handler);
        self.expire_lingering();
        // Mail that the handler posted in `drained`.
        self.mail.send();
        handler.turn_ended(self);
        next
    }

    /// Whether there is work that no event will report.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !self.ready.is_empty()
            || !self.newcomers.is_empty()
            || !self.leavers.is_empty()
            || !self.dirty.is_empty()
            || !self.later.is_empty()
            || !self.drained.is_empty()
            || !self.ending.is_empty()
            || self.catch_up.is_under_way()
            || self.turns_again
    }

    /// When the next turn must begin; `u64::MAX` if nothing is scheduled.
    #[inline]
    pub(crate) fn deadline_ns(&self, next: Next) -> u64 {
        let wanted_ns = match next {
            Next::Again => return 0,
            Next::At(deadline_ns) => deadline_ns,
            Next::Sleep => u64::MAX,
            Next::Rest { at_ns, .. } => at_ns,
        };
        let lingering_ns = self.lingering.front().map_or(u64::MAX, |&(until_ns, _)| until_ns);
        wanted_ns.min(lingering_ns).min(self.wheel.next_ns())
    }

    fn deliver_mail(&mut self, handler: &mut H) {
        if !self.mail.has_mail() {
            return;
        }
        let count = self.mail.collect().min(self.limits.mails_per_turn_max);
        let mut taken = 0;
        while taken < count {
            if let Some((from, mail)) = self.mail.take() {
                handler.mail(self, from, mail);
            }
            taken += 1;
            if !self.budget.charge(1) {
                break;
            }
        }
        self.mail.delivered(taken);
    }

    fn fire_timers(&mut self, handler: &mut H) {
        self.budget.begin_part(Part::Timers);
        let due = self.wheel.advance(self.now_ns);
        for _ in 0..due.min(self.limits.timers_per_turn_max) {
            if let Some(token) = self.wheel.pop() {
                handler.timer(self, token);
            }
            if !self.budget.charge(1) {
                return;
            }
        }
    }

    /// Serves every connection that is ready now once, in order, up to the bounds of a turn.
    /// Returns how many were served.
    fn serve_ready(&mut self, handler: &mut H, buffer: &mut ReadBuffer) -> usize {
        let ready = self.ready.len();
        let count = ready.min(self.limits.connections_per_turn_max);
        let mut served = 0;
        while served < count {
            if let Some(id) = self.ready.pop_front() {
                self.serve(handler, id, buffer);
            }
            served += 1;
            if !self.budget.charge(READ_UNITS) {
                break;
            }
        }
        self.turns_due = (ready - served) / served.max(1);
        served
    }

    /// Serves connections whose peers have closed them, each once: what they sent before is read,
    /// and then their end.
    fn serve_leavers(&mut self, handler: &mut H, buffer: &mut ReadBuffer) {
        for _ in 0..self.leavers.len().min(self.limits.connections_per_turn_max) {
            if let Some(id) = self.leavers.pop_front() {
                self.serve(handler, id, buffer);
            }
            if !self.budget.charge(READ_UNITS) {
                return;
            }
        }
    }

    /// Serves connections that are not established, at least one, within the turn's budget for
    /// newcomers. The rest of the budget is for accepting more. Returns how many were served.
    fn serve_newcomers(&mut self, handler: &mut H, buffer: &mut ReadBuffer) -> usize {
        if !self.newcomers.is_empty() {
            // Starts the budget.
            self.budget.look();
        }
        let mut served = 0;
        for _ in 0..self.newcomers.len() {
            if let Some(id) = self.newcomers.pop_front() {
                self.serve(handler, id, buffer);
            }
            served += 1;
            if !self.budget.charge(NEWCOMER_UNITS) {
                break;
            }
        }
        served
    }

    /// Calls `closed` for connections that are over, in order, up to the bounds of a turn. False if
    /// there was none.
    fn report_ended(&mut self, handler: &mut H) -> bool {
        if self.ending.is_empty() {
            return false;
        }
        self.budget.begin_part(Part::Ends);
        while let Some((id, why)) = self.ending.pop_front() {
            handler.closed(self, id, why);
            self.end_reported(id);
            if !self.budget.charge(END_UNITS) {
                break;
            }
        }
        true
    }
}
