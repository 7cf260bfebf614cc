//! Connections to other brokers: opened, lost, opened again.

use std::io;

use tacho_codec::Disconnect;
use tacho_net::{Closed, ConnId};
use tacho_session::LinkEvent;
use tacho_session::server::End;

use super::{Asking, Stage};
use crate::bridge::State;
use crate::shard::connections::Connection;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};

/// Until the next look whether a name is known.
const LOOK_UP_NS: u64 = 50_000_000;
/// Until the next look whether other members have subscribed to their rules.
const LOOK_AT_OTHERS_NS: u64 = 500_000_000;
/// Without identifier and payload.
const PINGREQ: [u8; 2] = [0xc0, 0x00];

impl Shard {
    /// Does what is due for a member, and arms its timer for what is next.
    pub(in crate::shard) fn member_due(&mut self, net: &mut Net, member: usize) {
        let now_ns = net.now_ns();
        while !self.is_stopping()
            && let Some(entry) = self.bridges.all.get_mut(member)
            && let Some(event) = entry.link.handle_timeout(now_ns)
        {
            match event {
                LinkEvent::Dial => self.dial(net, member),
                LinkEvent::GiveUp => {
                    self.part(net, member, "it does not answer in time");
                }
                LinkEvent::Ping => {
                    if let Some(conn) = entry.conn {
                        net.out(conn).extend_from_slice(&PINGREQ);
                    }
                }
                LinkEvent::Silent => {
                    self.part(net, member, "nothing came from it any more");
                }
            }
        }
        self.unsubscribe_there(net, member);
        self.arm_member(net, member);
    }

    pub(super) fn arm_member(&mut self, net: &mut Net, member: usize) {
        let Some(entry) = self.bridges.all.get_mut(member) else { return };
        if let Some(timer) = entry.timer.take() {
            net.cancel_timer(timer);
        }
        let waits = entry.stage == Stage::Up && entry.unsubscribing == Asking::Wanted;
        let look_ns = waits.then(|| net.now_ns() + LOOK_AT_OTHERS_NS);
        let due_ns = entry.link.next_timeout().into_iter().chain(look_ns).min();
        if let Some(deadline_ns) = due_ns {
            let token = TimerToken::Link { link: member as u32 };
            entry.timer = Some(net.set_timer(deadline_ns, token.encode()));
        }
    }

    fn dial(&mut self, net: &mut Net, member: usize) {
        self.drop_expired(net, member);
        let entry = &mut self.bridges.all[member];
        let bridge = self.shared.bridges.at(entry.bridge);
        entry.attempts = entry.attempts.wrapping_add(1);
        let connecting = match bridge.addresses.next(entry.attempts) {
            Ok(address) => {
                net.connect(address, None).map_err(|error| format!("cannot connect: {error}"))
            }
            Err(Some(why)) => Err(why),
            Err(None) => return entry.link.again(net.now_ns() + LOOK_UP_NS),
        };
        match connecting {
            Ok(conn) => {
                entry.conn = Some(conn);
                entry.stage = Stage::Opening;
                self.connections.came(conn, self.shared.sockets.take());
                self.connections.set(conn, Connection::Bridge { id: conn, link: member as u32 });
            }
            Err(why) => {
                entry.link.lost(net.now_ns());
                self.member_down(net, member, &why);
            }
        }
    }

    /// Nothing else looks at the queue of a member that cannot connect.
    fn drop_expired(&mut self, net: &Net, member: usize) {
        let slot = self.bridges.all[member].slot;
        let Some(session) = self.sessions.get_mut(slot) else { return };
        self.durability.act(slot, session, |machine, recorder| {
            machine.drop_expired(net.now_ns(), recorder);
        });
        self.count_expired(slot);
        self.count_places(slot);
        self.note_member(member);
    }

    /// TCP is there, or not.
    pub(in crate::shard) fn bridge_connected(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        result: io::Result<()>,
    ) {
        let Some(member) = self.member_of(conn) else { return };
        match result {
            Ok(()) => self.greet(net, member, conn),
            Err(error) => {
                // The connection does not exist any more.
                self.connection_gone(conn);
                self.bridges.all[member].conn = None;
                self.break_off(net, member, &format!("cannot connect: {error}"));
            }
        }
    }

    /// The member that a connection is of.
    pub(super) fn member_of(&self, conn: ConnId) -> Option<usize> {
        match self.connections.get(conn) {
            Connection::Bridge { id, link } if id == conn => Some(link as usize),
            _ => None,
        }
    }

    /// The connection is over, and not by us.
    pub(in crate::shard) fn bridge_lost(&mut self, net: &mut Net, member: usize, why: &Closed) {
        let entry = &mut self.bridges.all[member];
        entry.conn = None;
        if entry.says_bridge && matches!(entry.stage, Stage::Greeting { .. }) {
            // Some refuse what they do not understand without a word.
            entry.says_bridge = false;
        }
        let why = match why {
            Closed::Error(error) => format!("the connection broke: {error}"),
            Closed::ByPeer | Closed::ByUs => match entry.stage {
                Stage::Up => "it closed the connection".to_owned(),
                _ => "it closed the connection before it answered".to_owned(),
            },
        };
        self.break_off(net, member, &why);
    }

    /// Closes a connection that is of no use; when to try again is known already.
    pub(super) fn part(&mut self, net: &mut Net, member: usize, why: &str) {
        if let Some(conn) = self.bridges.all[member].conn.take() {
            self.connections.set(conn, Connection::Closing);
            net.abort(conn);
        }
        self.member_down(net, member, why);
    }

    /// The same for what the other broker did, which may have closed it: it is tried again after
    /// a pause.
    pub(super) fn break_off(&mut self, net: &mut Net, member: usize, why: &str) {
        self.bridges.all[member].link.lost(net.now_ns());
        if let Some(conn) = self.bridges.all[member].conn.take() {
            self.drop_connection(net, conn);
        }
        self.member_down(net, member, why);
        self.arm_member(net, member);
    }

    /// There is no connection: its session waits for the next one.
    pub(super) fn member_down(&mut self, net: &mut Net, member: usize, why: &str) {
        let entry = &mut self.bridges.all[member];
        entry.stage = Stage::Apart;
        let slot = entry.slot;
        let bridge = self.shared.bridges.at(entry.bridge);
        if let Some(stats) = bridge.stats(entry.number) {
            stats.set_down(net.now_ns(), why.to_owned());
        }
        let (name, number) = (&*bridge.config().name, entry.number);
        if bridge.is_news(State::Down) {
            tracing::warn!(bridge = name, connection = number + 1, "no connection: {why}");
        } else {
            tracing::debug!(bridge = name, connection = number + 1, "still no connection: {why}");
        }
        if self.sessions.get(slot).is_some_and(|session| session.connection.is_some()) {
            self.session_disconnected(net, slot, End::Lost);
        }
        self.note_member(member);
    }

    /// DISCONNECT if the other broker has heard of us, and the close.
    pub(super) fn say_bye(&mut self, net: &mut Net, member: usize) {
        let entry = &mut self.bridges.all[member];
        let (stage, slot) = (std::mem::replace(&mut entry.stage, Stage::Apart), entry.slot);
        let Some(conn) = entry.conn.take() else { return };
        if stage == Stage::Up {
            let version = self.sessions[slot].version;
            let said = Disconnect::default().encode(version, net.out(conn).as_vec_mut());
            debug_assert!(said.is_ok(), "a DISCONNECT without properties is always encodable");
        }
        self.drop_connection(net, conn);
    }

    /// The broker stops.
    pub(in crate::shard) fn stop_member(&mut self, net: &mut Net, member: usize) {
        self.say_bye(net, member);
        let entry = &mut self.bridges.all[member];
        entry.link.close();
        let slot = entry.slot;
        if let Some(timer) = entry.timer.take() {
            net.cancel_timer(timer);
        }
        if self.sessions.get(slot).is_some_and(|session| session.connection.is_some()) {
            self.session_disconnected(net, slot, End::ServerShutdown);
        }
    }
}
