//! Absences: clients that leave and come back, by plan or because their connection ended.

use tacho_codec::{Disconnect, ReasonCode};
use tacho_net::Net;

use super::client::{Published, State};
use super::{Failure, Worker};
use crate::events::PhaseKind;
use crate::mail::ReportBody;

/// Marks the timer at which a client leaves by plan; without it a timer is the client's own.
pub(super) const LEAVE: u64 = 1 << 32;

impl Failure {
    /// Is it worth trying again?
    const fn may_pass(&self) -> bool {
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

/// Does the broker refuse for now only?
const fn is_temporary(reason: ReasonCode) -> bool {
    matches!(
        reason,
        ReasonCode::SERVER_UNAVAILABLE
            | ReasonCode::SERVER_BUSY
            | ReasonCode::QUOTA_EXCEEDED
            | ReasonCode::CONNECTION_RATE_EXCEEDED
    )
}

impl Worker {
    /// The measured window begins: plans absences.
    pub(super) fn plan_absences(&mut self, net: &mut Net<Self>, start_ns: u64) {
        for (local, client) in (0u64..).zip(&self.clients) {
            if let Some(offline) = &self.common.plan.groups[client.group].offline {
                net.set_timer(start_ns.saturating_add(offline.after_ns), LEAVE | local);
            }
        }
    }

    /// The client leaves as planned.
    pub(super) fn leave(&mut self, net: &mut Net<Self>, local: usize) {
        let Some(offline) = self.common.plan.groups[self.clients[local].group].offline else {
            return;
        };
        if self.part(net, local, offline.clean) {
            self.go_away(net, local, Some(offline.for_ns));
        }
    }

    /// The client leaves until all come back.
    pub(super) fn depart(&mut self, net: &mut Net<Self>, local: usize) {
        if self.part(net, local, true) {
            self.go_away(net, local, None);
        }
    }

    /// Ends the client's connection, `clean` with DISCONNECT. False if there is none.
    pub(super) fn part(&mut self, net: &mut Net<Self>, local: usize, clean: bool) -> bool {
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

    /// Tries again instead of failing, if the plan wants that. True if it does.
    pub(super) fn retry(&mut self, net: &mut Net<Self>, local: usize, why: &Failure) -> bool {
        let client = &mut self.clients[local];
        let group = &self.common.plan.groups[client.group];
        let Some(reconnect) = group.reconnect.filter(|_| why.may_pass()) else { return false };
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
        self.leave_session(local, persistent);
        self.go_away(net, local, Some(doubled.min(reconnect.longest_ns)));
        self.report(ReportBody::Interrupted { client: index, why: why.clone() });
        true
    }

    /// The client is away for that long, or until it is called back.
    pub(super) fn go_away(&mut self, net: &mut Net<Self>, local: usize, for_ns: Option<u64>) {
        let client = &mut self.clients[local];
        client.state = State::Away;
        client.session.disconnected();
        client.subscribes = Vec::new();
        if let Some(timer) = client.timer.take() {
            net.cancel_timer(timer);
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

    /// The client's own timer: keep-alive, or the end of an absence.
    pub(super) fn client_timer(&mut self, net: &mut Net<Self>, local: usize) {
        self.clients[local].timer = None;
        match self.clients[local].state {
            State::Away => self.connect(net, local),
            _ => self.keep_alive(net, local),
        }
    }

    /// A client is connected that was away: `again` if it had been connected before, with its
    /// session `present` or not.
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
            (client.index, client.cell, self.common.plan.groups[client.group].is_persistent());
        let mut missing = client.wants_subscriptions && !(present && client.is_subscribed);
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
        let plan = &self.common.plan.groups[client.group].clients[client.rank];
        missing &= !plan.subscriptions.is_empty();
        if missing {
            self.subscribe(net, local);
        } else {
            self.settle_in(local, now_ns);
        }
    }

    /// The client has what it needs: its session, or a new one with its subscriptions.
    pub(super) fn settle_in(&mut self, local: usize, now_ns: u64) {
        self.verifier.renew(local, now_ns);
        self.note_ready(local, now_ns);
    }

    /// Goes on with the schedules of the client's streams. What was due meanwhile was dropped.
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

    /// Messages whose fate the client does not know: their session is gone.
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
            self.streams[message.stream as usize].is_lenient = true;
            self.credit_ack(message.stream, now_ns);
        }
    }
}
