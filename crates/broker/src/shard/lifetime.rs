//! Timers, the ends of sessions, and the broker's own end.

use tacho_codec::ReasonCode;
use tacho_net::Next;
use tacho_session::ProtocolError;
use tacho_session::server::{End, TimeoutEvent};

use super::connection::Connection;
use super::session::Body;
use super::{Net, Shard};

/// How long connections get, when the broker stops, to take what was said to them.
const STOP_LINGER_NS: u64 = 1_000_000_000;

/// What a timer is for, packed into the wheel's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerToken {
    /// A connection has not sent CONNECT, or not authenticated itself.
    Connect { connection: u32 },
    /// A session's keep-alive, expiry or will delay.
    Session { slot: u32, generation: u32 },
    /// Publishers held back are read again.
    Throttle,
    /// Retained messages have expired.
    Retained,
    /// A connection to another broker is due, late, or silent.
    Member { member: u32 },
    /// Clients wait for a commit.
    Unanswered,
}

impl TimerToken {
    pub(super) fn encode(self) -> u64 {
        match self {
            Self::Connect { connection } => u64::from(connection),
            // 31 bits of generation: a slot would have to be reused two billion times meanwhile.
            Self::Session { slot, generation } => {
                1 << 63 | u64::from(generation & 0x7fff_ffff) << 32 | u64::from(slot)
            }
            Self::Throttle => 1 << 62,
            Self::Retained => 1 << 62 | 1,
            Self::Member { member } => 1 << 62 | 1 << 32 | u64::from(member),
            Self::Unanswered => 1 << 62 | 2,
        }
    }

    fn decode(token: u64) -> Self {
        if token >> 63 == 1 {
            Self::Session { slot: token as u32, generation: (token >> 32) as u32 & 0x7fff_ffff }
        } else if token == 1 << 62 {
            Self::Throttle
        } else if token == 1 << 62 | 1 {
            Self::Retained
        } else if token >> 32 == 1 << 30 | 1 {
            Self::Member { member: token as u32 }
        } else if token == 1 << 62 | 2 {
            Self::Unanswered
        } else {
            Self::Connect { connection: token as u32 }
        }
    }
}

impl Shard {
    pub(super) fn timer_fired(&mut self, net: &mut Net, token: u64) {
        match TimerToken::decode(token) {
            TimerToken::Connect { connection } => {
                self.connect_timed_out(net, connection);
            }
            TimerToken::Session { slot, generation } => {
                let found = self.sessions.get(slot as usize);
                if found.is_some_and(|s| s.generation & 0x7fff_ffff == generation) {
                    self.sessions[slot as usize].timer = None;
                    self.session_timeout(net, slot);
                }
            }
            TimerToken::Throttle => self.read_throttled(net),
            TimerToken::Retained => self.expire_retained(net),
            TimerToken::Member { member } => self.member_due(net, member as usize),
            TimerToken::Unanswered => self.look_at_unanswered(net),
        }
    }

    fn connect_timed_out(&mut self, net: &mut Net, connection: u32) {
        match self.connections.get(connection as usize) {
            Some(&Connection::Opening { id, .. }) => {
                self.stats.connect_timeouts_total.increment();
                self.drop_connection(net, id);
            }
            Some(&Connection::Authenticating { id, .. }) => {
                self.stats.connect_timeouts_total.increment();
                self.authentication_timed_out(net, id);
            }
            Some(&Connection::Committing { session, .. }) => {
                self.stats.connect_timeouts_total.increment();
                self.end_promised_connection(net, session);
            }
            _ => {}
        }
    }

    /// Does what is due for a session.
    pub(super) fn session_timeout(&mut self, net: &mut Net, slot: u32) {
        let now_ns = net.now_ns();
        while let Some(session) = self.sessions.get_mut(slot as usize) {
            match session.machine.handle_timeout(now_ns) {
                Some(TimeoutEvent::KeepAliveExpired) => {
                    // [MQTT-3.1.2-22]; 5.0 is told why (3.14.2.1).
                    if let Some(conn) = session.connection {
                        self.say_goodbye(net, conn, ReasonCode::KEEP_ALIVE_TIMEOUT);
                    }
                    self.session_disconnected(net, slot, End::Lost);
                }
                Some(TimeoutEvent::PublishWill(will)) => {
                    if let Body::Here(will) = &will.message {
                        self.publish_will(net, will);
                    }
                    self.keep_closed(slot);
                }
                Some(TimeoutEvent::SessionExpired) => {
                    self.stats.sessions_expired_total.increment();
                    self.discard_session(net, slot);
                }
                None => break,
            }
        }
        if self.sessions.contains(slot as usize) {
            self.arm_timer(net, slot);
        }
    }

    /// Makes sure a timer fires no later than the session's next deadline. A timer that fires too
    /// early is armed again: activity need not touch the wheel.
    pub(super) fn arm_timer(&mut self, net: &mut Net, slot: u32) {
        let session = &mut *self.sessions[slot as usize];
        let Some(deadline_ns) = session.machine.next_timeout() else { return };
        if let Some((timer, armed_ns)) = session.timer {
            if armed_ns <= deadline_ns {
                return;
            }
            net.cancel_timer(timer);
        }
        let token = TimerToken::Session { slot, generation: session.generation };
        session.timer = Some((net.set_timer(deadline_ns, token.encode()), deadline_ns));
    }

    /// A session's connection is over, for whatever reason. The socket is the caller's.
    /// An error says that the client's DISCONNECT itself broke the protocol.
    pub(super) fn session_disconnected(
        &mut self,
        net: &mut Net,
        slot: u32,
        end: End,
    ) -> Option<ProtocolError> {
        let now_ns = net.now_ns();
        self.members_connected(net, slot, false);
        let session = &mut *self.sessions[slot as usize];
        if session.connection.take().is_some() {
            self.stats.sessions_connected.decrement();
        }
        session.promises = None;
        let effects = session.machine.disconnect(now_ns, end);
        if let Some(Body::Here(will)) = effects.publish_will.map(|will| will.message) {
            self.publish_will(net, &will);
        }
        if effects.session_ended {
            self.discard_session(net, slot);
        } else {
            self.pass_on_unsent(net, slot);
            self.arm_timer(net, slot);
            self.keep_closed(slot);
            self.unload(slot);
        }
        effects.error
    }

    /// Ends a session: its subscriptions and queues are gone.
    pub(super) fn discard_session(&mut self, net: &mut Net, slot: u32) {
        self.close_promised_connection(net, slot);
        let undelivered = self.take_undelivered_of_groups(slot);
        self.remove_all_subscriptions(net, slot);
        let mut session = self.sessions.remove(slot as usize);
        self.forget_places(&session);
        self.forget_lent(&session);
        if let Some((timer, _)) = session.timer.take() {
            net.cancel_timer(timer);
        }
        self.by_client.remove(&session.key);
        self.count_sessions();
        self.redistribute(net, undelivered);
        self.drop_from_journal(session.key, session.kept);
    }

    /// Says goodbye to every client and ends the loop when all have heard it.
    pub(super) fn shut_down(&mut self, net: &mut Net) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        self.stop_deadline_ns = net.now_ns() + STOP_LINGER_NS;
        net.stop_listening();
        for index in 0..self.connections.len() {
            match self.connections[index] {
                Connection::Active { id, session, .. } => {
                    self.say_goodbye(net, id, ReasonCode::SERVER_SHUTTING_DOWN);
                    self.session_disconnected(net, session, End::ServerShutdown);
                }
                Connection::Opening { id, .. } | Connection::Authenticating { id, .. } => {
                    self.drop_connection(net, id);
                }
                Connection::Committing { session, .. } => {
                    self.end_promised_connection(net, session);
                }
                Connection::Bridge { member, .. } => self.stop_member(net, member as usize),
                Connection::Vacant | Connection::Closing => {}
            }
        }
    }

    pub(super) fn finish_stopping(&mut self, net: &mut Net) -> Next {
        if net.connections() == 0 || net.now_ns() >= self.stop_deadline_ns {
            net.stop();
            return Next::Sleep;
        }
        Next::At(self.stop_deadline_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::TimerToken;

    #[test]
    fn tokens_survive_packing() {
        for token in [
            TimerToken::Connect { connection: u32::MAX },
            TimerToken::Session { slot: u32::MAX, generation: 0x7fff_ffff },
            TimerToken::Session { slot: 0, generation: 0 },
            TimerToken::Throttle,
            TimerToken::Retained,
            TimerToken::Member { member: 0 },
            TimerToken::Member { member: u32::MAX },
            TimerToken::Unanswered,
        ] {
            assert_eq!(TimerToken::decode(token.encode()), token);
        }
    }
}
