//! One turn of a loop, whoever reports events and brings new connections.

use crate::reading::ReadBuffer;
use crate::{Handler, Net, Next, clock};

impl<H: Handler> Net<H> {
    /// What a turn does after its events were noted. `accept` takes new connections in.
    #[inline]
    pub(crate) fn turn(
        &mut self,
        handler: &mut H,
        buffer: &mut ReadBuffer,
        accept: impl FnOnce(&mut Self, &mut H),
    ) -> Next {
        self.deliver_mail(handler);
        self.fire_timers(handler);
        self.serve_ready(handler, buffer);
        self.newcomers_until_ns = 0;
        self.serve_newcomers(handler, buffer);
        accept(self, handler);
        self.report_ended(handler);
        let mut next = handler.turn(self);
        if self.report_ended(handler) {
            // Their ends may have left work to do.
            next = Next::Again;
        }
        // Mail before output: who reads an answer can rely on what it tells other loops.
        self.mail.send();
        self.flush(handler);
        self.expire_lingering();
        // What the handler posted while it learnt that output was drained.
        self.mail.send();
        handler.turn_ended(self);
        next
    }

    /// Whether there is work that no event will tell of.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !self.ready.is_empty()
            || !self.newcomers.is_empty()
            || !self.dirty.is_empty()
            || !self.ending.is_empty()
    }

    /// When the next turn must begin, `u64::MAX` if nothing is planned.
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
        for _ in 0..count {
            if let Some((from, mail)) = self.mail.take() {
                handler.mail(self, from, mail);
            }
        }
        self.mail.delivered(count);
    }

    fn fire_timers(&mut self, handler: &mut H) {
        let due = self.wheel.advance(self.now_ns);
        for _ in 0..due.min(self.limits.timers_per_turn_max) {
            if let Some(token) = self.wheel.pop() {
                handler.timer(self, token);
            }
        }
    }

    /// Serves every connection that is ready now once, in order, up to the bound of a turn.
    fn serve_ready(&mut self, handler: &mut H, buffer: &mut ReadBuffer) {
        let count = self.ready.len().min(self.limits.connections_per_turn_max);
        for _ in 0..count {
            if let Some(id) = self.ready.pop_front() {
                self.serve(handler, id, buffer);
            }
        }
    }

    /// Serves connections that are not established, at least one of them, while the turn has time
    /// for them. What is left of it is for accepting more.
    fn serve_newcomers(&mut self, handler: &mut H, buffer: &mut ReadBuffer) {
        if !self.newcomers.is_empty() {
            // The time begins to run.
            self.has_time();
        }
        for _ in 0..self.newcomers.len() {
            if let Some(id) = self.newcomers.pop_front() {
                self.serve(handler, id, buffer);
            }
            if !self.has_time() {
                return;
            }
        }
    }

    /// Whether this turn may do more for newcomers. Simulated turns take no time.
    pub(crate) fn has_time(&mut self) -> bool {
        let budget_ns = self.limits.newcomers_budget_ns;
        if budget_ns == 0 || self.is_simulated() {
            return true;
        }
        let now_ns = clock::now_ns();
        if self.newcomers_until_ns == 0 {
            self.newcomers_until_ns = now_ns + budget_ns;
        }
        now_ns < self.newcomers_until_ns
    }
}
