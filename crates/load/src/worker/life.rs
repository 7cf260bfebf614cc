//! Absences: clients that disconnect and reconnect, by plan or because their connection ended.

use tacho_codec::Disconnect;
use tacho_net::Net;

use super::lifecycle::{State, Subscriptions};
use super::message::Published;
use super::{Failure, Worker};
use crate::events::{PhaseKind, is_temporary};
use crate::mail::ReportBody;

/// Marks the timer of a planned absence; a timer without it is the client's own.
pub(super) const LEAVE: u64 = 1 << 32;

impl Failure {
    /// Whether a reconnect may succeed.
    const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Connect(_)
                | Self::ConnectTimeout { .. }
                | Self::SubscribeTimeout { .. }
                | Self::Disconnected(_)
                | Self::Closed
                | Self::Broken(_)
                | Self::PingTimeout
        ) || matches!(self, Self::Refused(reason) if is_temporary(*reason))
    }
}

impl Worker {
    /// Schedules the planned absences of the measured window.
    pub(super) fn plan_absences(&mut self, net: &mut Net<Self>, start_ns: u64) {
        for (local, client) in (0u64..).zip(&self.clients) {
            if let Some(offline) = &self.context.plan.groups[client.group].offline {
                net.set_timer(start_ns.saturating_add(offline.after_ns), LEAVE | local);
            }
        }
    }

    /// The planned absence of the client begins.
    pub(super) fn leave(&mut self, net: &mut Net<Self>, local: usize) {
        let Some(offline) = self.context.plan.groups[self.clients[local].group].offline else {
            return;
        };
        if self.close_connection(net, local, offline.clean) {
            self.go_away(net, local, Some(offline.for_ns));
        }
    }

    /// The client disconnects until [`Phase::Resume`](crate::Phase::Resume).
    pub(super) fn depart(&mut self, net: &mut Net<Self>, local: usize) {
        if self.close_connection(net, local, true) {
            self.go_away(net, local, None);
        }
    }

    /// Ends the client's connection, if `clean` with DISCONNECT. False without a connection.
    pub(super) fn close_connection(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        clean: bool,
    ) -> bool {
        let client = &mut self.clients[local];
        let Some(conn) = client.conn.filter(|_| client.state.is_up()) else { return false };
        if clean {
            // Invariant: a DISCONNECT without properties always fits.
            Disconnect::default()
                .encode(client.version, net.out(conn).as_vec_mut())
                .expect("an empty DISCONNECT is encodable");
            net.close(conn);
        } else {
            net.abort(conn);
        }
        client.conn = None;
        self.totals.alive[usize::from(client.cell)] -= 1;
        true
    }

    /// Schedules a reconnect instead of failing, if the plan allows it; true if so.
    pub(super) fn retry(&mut self, net: &mut Net<Self>, local: usize, why: &Failure) -> bool {
        let client = &mut self.clients[local];
        let group = &self.context.plan.groups[client.group];
        let Some(reconnect) = group.reconnect.filter(|_| why.is_retryable()) else { return false };
        if self.phase.kind() == Some(PhaseKind::Disconnect)
            || client.attempts >= reconnect.attempts_max
        {
            return false;
        }
        let doubled = reconnect.first_ns.saturating_mul(1 << client.attempts.min(32));
        client.attempts += 1;
        let persistent = group.is_persistent();
        if let Some(conn) = client.conn.take() {
            net.abort(conn);
        }
        let index = client.index;
        self.note_failed_attempt(local, why, false);
        self.note_session_end(local, persistent);
        self.go_away(net, local, Some(doubled.min(reconnect.longest_ns)));
        self.report(ReportBody::Interrupted { client: index, why: why.clone() });
        true
    }

    /// The client is away for `for_ns`, or until a phase reconnects it.
    pub(super) fn go_away(&mut self, net: &mut Net<Self>, local: usize, for_ns: Option<u64>) {
        let client = &mut self.clients[local];
        client.state = State::Away;
        client.session.disconnected();
        client.pending_subscribes = Vec::new();
        if let Some(timer) = client.timer.take() {
            net.cancel_timer(timer);
        }
        if let Some(renewal) = client.renewal.take() {
            net.cancel_timer(renewal);
        }
        client.timer =
            for_ns.map(|for_ns| net.set_timer(net.now_ns().saturating_add(for_ns), local as u64));
        let waiting = std::mem::take(&mut client.waiting);
        for stream in &waiting {
            self.streams[*stream as usize].is_willing = false;
        }
        self.phase.dead.extend(waiting);
        self.verifier.set_away(local);
    }

    /// The client's own timer fired: keep-alive, or the end of an absence.
    pub(super) fn client_timer(&mut self, net: &mut Net<Self>, local: usize) {
        self.clients[local].timer = None;
        match self.clients[local].state {
            State::Away => self.connect(net, local),
            _ => self.keep_alive(net, local),
        }
    }

    /// An absent client is connected: `again` if it had been connected before, with its session
    /// `present` or not.
    pub(super) fn come_back(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        again: bool,
        present: bool,
    ) {
        let now_ns = net.now_ns();
        let client = &mut self.clients[local];
        let (index, cell, persistent) =
            (client.index, client.cell, self.context.plan.groups[client.group].is_persistent());
        let mut missing = match client.subscriptions {
            Subscriptions::Unwanted => false,
            Subscriptions::Wanted => true,
            Subscriptions::Made => !present,
        };
        self.recorder.cell(cell).reconnects += u64::from(again);
        self.note_connected(local, now_ns);
        if present {
            self.verifier.set_back(local, now_ns);
        } else if persistent && again {
            let why = Failure::SessionLost;
            self.report(ReportBody::Failed { client: index, why });
            self.verifier.set_back(local, now_ns);
        }
        self.revive(local, now_ns);
        let client = &self.clients[local];
        let plan = &self.context.plan.groups[client.group].clients[client.rank];
        missing &= !plan.subscriptions.is_empty();
        if missing {
            self.subscribe(net, local);
        } else {
            self.settle_in(local, now_ns);
        }
    }

    /// The client is ready: it has its session, or a new one with its subscriptions.
    pub(super) fn settle_in(&mut self, local: usize, now_ns: u64) {
        self.verifier.renew(local, now_ns);
        self.note_ready(local, now_ns);
    }

    /// Resumes the schedules of the client's streams; messages due meanwhile are dropped.
    fn revive(&mut self, local: usize, now_ns: u64) {
        self.drop_dead(now_ns.min(self.phase.load_end_ns));
        let streams = self.clients[local].streams();
        let mut revived = Vec::new();
        self.phase.dead.retain(|stream| {
            let mine = streams.contains(&(*stream as usize));
            if mine {
                revived.push(*stream);
            }
            !mine
        });
        for stream in revived {
            let next_ns = self.streams[stream as usize].next_ns();
            if next_ns < u64::MAX {
                self.due.push(std::cmp::Reverse((next_ns, stream)));
            }
        }
        for stream in streams {
            self.make_willing(stream as u32);
        }
    }

    /// Gives up unacknowledged messages whose session is gone.
    pub(super) fn abandon(&mut self, local: usize, published: &[Published], now_ns: u64) {
        let cell = self.clients[local].cell;
        for published in published {
            let message = match published {
                Published::Message(message) => message,
                Published::Answer(number) => {
                    self.answered(local, *number, true);
                    continue;
                }
            };
            self.totals.unacked -= 1;
            self.recorder.cell(cell).unanswered += 1;
            self.recorder.not_acked(message.intended_ns, message.sent_ns, now_ns);
            self.streams[message.stream as usize].relax_judgement();
            self.credit_ack(message.stream, now_ns);
        }
    }
}
