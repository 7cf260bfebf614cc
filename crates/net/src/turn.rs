//! One turn of a loop, real or simulated.

use crate::clock;
use crate::net::{Handler, Net, Next};
use crate::reading::ReadBuffer;

impl<H: Handler> Net<H> {
    /// The steps of a turn after its events were recorded. `accept` accepts new connections.
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
            || !self.dirty.is_empty()
            || !self.ending.is_empty()
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

    /// Serves connections that are not established, at least one, within the turn's budget for
    /// newcomers. The rest of the budget is for accepting more.
    fn serve_newcomers(&mut self, handler: &mut H, buffer: &mut ReadBuffer) {
        if !self.newcomers.is_empty() {
            // Starts the budget.
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

    /// Whether the turn's budget for newcomers lasts. Simulated turns take no time.
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
