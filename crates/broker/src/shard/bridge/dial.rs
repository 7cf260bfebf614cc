//! Connections to remote brokers: opening, loss, reconnection.

use std::io;

use tacho_codec::Disconnect;
use tacho_net::{Closed, ConnId};
use tacho_session::LinkEvent;
use tacho_session::server::End;

use super::{Asking, Introduction, Stage};
use crate::bridge::{BridgeMode, State};
use crate::gate::ConnectionPermits;
use crate::keys::LinkIndex;
use crate::shard::connections::Connection;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};

/// Time until the next check whether a name has been resolved.
const LOOK_UP_NS: u64 = 50_000_000;
/// Time until the next check whether other links have subscribed to their rules.
const LOOK_AT_OTHERS_NS: u64 = 500_000_000;
/// Bytes of a PUBLISH without packet identifier and payload.
const PINGREQ: [u8; 2] = [0xc0, 0x00];

impl Shard {
    /// Performs the due actions of a link and arms its timer for the next.
    pub(in crate::shard) fn link_due(&mut self, net: &mut Net, link: LinkIndex) {
        let now_ns = net.now_ns();
        while !self.is_stopping()
            && let Some(entry) = self.bridges.all.get_mut(link.index())
            && let Some(event) = entry.protocol.handle_timeout(now_ns)
        {
            match event {
                LinkEvent::Dial => self.dial(net, link),
                LinkEvent::GiveUp => {
                    self.part(net, link, "it does not answer in time");
                }
                LinkEvent::Ping => {
                    if let Some(conn) = entry.conn {
                        net.out(conn).extend_from_slice(&PINGREQ);
                    }
                }
                LinkEvent::Silent => {
                    self.part(net, link, "no packet arrived within the keep-alive");
                }
                LinkEvent::LookAtAnswers => self.look_at_answers(net, link),
            }
        }
        self.unsubscribe_there(net, link);
        self.rest_if_drained(net, link);
        self.arm_link(net, link);
    }

    /// Gives up a connection whose oldest message is unacknowledged for too long: the next one
    /// sends it again.
    fn look_at_answers(&mut self, net: &mut Net, link: LinkIndex) {
        let entry = &mut self.bridges.all[link.index()];
        let now_ns = net.now_ns();
        let bridge = self.bridges.known.at(entry.bridge);
        let (Some(conn), Some(session)) = (entry.conn, self.sessions.get(entry.slot)) else {
            return;
        };
        // The remote broker is not to blame while packets do not get through from here, and while
        // its own are left unread.
        let is_to_blame = net.output_bytes(conn) == 0 && !net.is_held_back(conn);
        let for_ns = session.machine.unanswered_ns(now_ns).filter(|_| is_to_blame).unwrap_or(0);
        if !entry.protocol.unanswered(now_ns, for_ns) {
            return;
        }
        if let Some(stats) = bridge.stats(entry.number) {
            stats.ack_timeouts.increment();
        }
        let why = format!(
            "it answers, but has not acknowledged a message for {} s (ack_timeout_s)",
            for_ns / 1_000_000_000
        );
        self.part(net, link, &why);
    }

    pub(super) fn arm_link(&mut self, net: &mut Net, link: LinkIndex) {
        let Some(entry) = self.bridges.all.get_mut(link.index()) else { return };
        if let Some(timer) = entry.timer.take() {
            net.cancel_timer(timer);
        }
        let waits = entry.stage == Stage::Up
            && entry.unsubscribing == Asking::Wanted
            && self.bridges.known.at(entry.bridge).may_others_subscribe(entry.number);
        let drains = self.bridges.known.at(entry.bridge).mode() == BridgeMode::Draining;
        let waits = waits || drains && !entry.rests;
        let look_ns = waits.then(|| net.now_ns() + LOOK_AT_OTHERS_NS);
        let due_ns = entry.protocol.next_timeout().into_iter().chain(look_ns).min();
        if let Some(deadline_ns) = due_ns {
            let token = TimerToken::Link { link };
            entry.timer = Some(net.set_timer(deadline_ns, token.encode()));
        }
    }

    fn dial(&mut self, net: &mut Net, link: LinkIndex) {
        self.drop_expired(net, link);
        let entry = &mut self.bridges.all[link.index()];
        let bridge = self.bridges.known.at(entry.bridge);
        entry.attempts = entry.attempts.wrapping_add(1);
        let connecting = match bridge.addresses.next(entry.attempts) {
            Ok(address) => {
                net.connect(address, None).map_err(|error| format!("cannot connect: {error}"))
            }
            Err(Some(why)) => Err(why),
            Err(None) => return entry.protocol.again(net.now_ns() + LOOK_UP_NS),
        };
        match connecting {
            Ok(conn) => {
                entry.conn = Some(conn);
                entry.stage = Stage::Opening;
                let socket = self.shared.sockets.take();
                self.connections.came(conn, ConnectionPermits::of_socket(socket));
                self.connections.set(conn, Connection::Bridge { id: conn, link });
            }
            Err(why) => {
                entry.protocol.lost(net.now_ns());
                self.link_down(net, link, &why);
            }
        }
    }

    /// Drops expired messages in the queue of a link that cannot connect: no other code visits it.
    fn drop_expired(&mut self, net: &Net, link: LinkIndex) {
        let slot = self.bridges.all[link.index()].slot;
        let Some(session) = self.sessions.get_mut(slot) else { return };
        self.durability.act(slot, session.subject(), |machine, recorder| {
            machine.drop_expired(net.now_ns(), recorder);
        });
        self.count_dropped(net, slot);
        self.sessions.count_places(slot);
        self.report_link(link);
    }

    /// The TCP connection is established, or has failed.
    pub(in crate::shard) fn bridge_connected(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        result: io::Result<()>,
    ) {
        let Some(link) = self.link_of(conn) else { return };
        match result {
            Ok(()) => self.greet(net, link, conn),
            Err(error) => {
                // The connection no longer exists.
                self.connection_gone(conn);
                self.bridges.all[link.index()].conn = None;
                self.break_off(net, link, &format!("cannot connect: {error}"));
            }
        }
    }

    /// The link of a connection.
    pub(super) fn link_of(&self, conn: ConnId) -> Option<LinkIndex> {
        match self.connections.get(conn) {
            Connection::Bridge { id, link } if id == conn => Some(link),
            _ => None,
        }
    }

    /// The remote end or the network closed the connection.
    pub(in crate::shard) fn bridge_lost(&mut self, net: &mut Net, link: LinkIndex, why: &Closed) {
        let entry = &mut self.bridges.all[link.index()];
        entry.conn = None;
        if matches!(entry.stage, Stage::Greeting { .. }) {
            // Some brokers refuse an unsupported CONNECT without a reason.
            entry.introduction = Introduction::Client;
        }
        let why = match why {
            Closed::Error(error) => format!("the connection broke: {error}"),
            Closed::ByPeer | Closed::ByUs => match entry.stage {
                Stage::Up => "it closed the connection".to_owned(),
                _ => "it closed the connection before it answered".to_owned(),
            },
        };
        self.break_off(net, link, &why);
    }

    /// Closes a useless connection; the time of the next attempt is already set.
    pub(super) fn part(&mut self, net: &mut Net, link: LinkIndex, why: &str) {
        if let Some(conn) = self.bridges.all[link.index()].conn.take() {
            self.connections.set(conn, Connection::Closing);
            net.abort(conn);
        }
        self.link_down(net, link, why);
    }

    /// The same after an action of the remote broker, which may have closed it: the link retries
    /// after a pause.
    pub(super) fn break_off(&mut self, net: &mut Net, link: LinkIndex, why: &str) {
        self.bridges.all[link.index()].protocol.lost(net.now_ns());
        if let Some(conn) = self.bridges.all[link.index()].conn.take() {
            self.drop_connection(net, conn);
        }
        self.link_down(net, link, why);
        self.arm_link(net, link);
    }

    /// The connection is lost: its session waits for the next one.
    pub(super) fn link_down(&mut self, net: &mut Net, link: LinkIndex, why: &str) {
        let entry = &mut self.bridges.all[link.index()];
        entry.stage = Stage::Disconnected;
        let slot = entry.slot;
        let bridge = self.bridges.known.at(entry.bridge);
        if let Some(stats) = bridge.stats(entry.number) {
            stats.set_down(net.now_ns(), why.to_owned());
        }
        let (name, number) = (&*bridge.config().name, entry.number);
        if bridge.is_news(State::Down) {
            tracing::warn!(bridge = name, connection = number + 1, "no connection: {why}");
            self.tell_bridge(net.now_ns(), name, Some(why));
        } else {
            tracing::debug!(bridge = name, connection = number + 1, "still no connection: {why}");
        }
        if self.sessions.get(slot).is_some_and(|session| session.connection().is_some()) {
            self.session_disconnected(net, slot, End::Lost);
        }
        self.report_link(link);
    }

    /// Sends DISCONNECT if CONNECT was sent, and closes the connection.
    pub(super) fn say_bye(&mut self, net: &mut Net, link: LinkIndex) {
        let entry = &mut self.bridges.all[link.index()];
        let (stage, slot) = (std::mem::replace(&mut entry.stage, Stage::Disconnected), entry.slot);
        let Some(conn) = entry.conn.take() else { return };
        if stage == Stage::Up {
            let version = self.sessions[slot].version();
            let said = Disconnect::default().encode(version, net.out(conn).as_vec_mut());
            debug_assert!(said.is_ok(), "a DISCONNECT without properties is always encodable");
        }
        self.drop_connection(net, conn);
    }

    /// The broker is stopping.
    pub(in crate::shard) fn stop_link(&mut self, net: &mut Net, link: LinkIndex) {
        self.say_bye(net, link);
        let entry = &mut self.bridges.all[link.index()];
        entry.protocol.close();
        let slot = entry.slot;
        if let Some(timer) = entry.timer.take() {
            net.cancel_timer(timer);
        }
        if self.sessions.get(slot).is_some_and(|session| session.connection().is_some()) {
            self.session_disconnected(net, slot, End::ServerShutdown);
        }
    }
}
