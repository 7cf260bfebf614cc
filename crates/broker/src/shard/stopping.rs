//! The broker's end: every client is told, and the loop ends when all have heard it.

use tacho_codec::ReasonCode;
use tacho_net::Next;
use tacho_session::server::End;

use super::connections::Connection;
use super::{Net, Shard};

/// How long connections get, when the broker stops, to take what was said to them.
const STOP_LINGER_NS: u64 = 1_000_000_000;

/// Whether the shard runs or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Clients have been told; what was written is sent until the deadline.
    Stopping {
        deadline_ns: u64,
    },
}

impl Shard {
    pub(super) fn is_stopping(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Says goodbye to every client and ends the loop when all have heard it.
    pub(super) fn shut_down(&mut self, net: &mut Net) {
        if self.is_stopping() {
            return;
        }
        self.phase = Phase::Stopping { deadline_ns: net.now_ns() + STOP_LINGER_NS };
        net.stop_listening();
        for index in 0..self.connections.len() {
            match self.connections.at(index) {
                Connection::Active { id, session, .. } => {
                    self.say_goodbye(net, id, ReasonCode::SERVER_SHUTTING_DOWN);
                    self.session_disconnected(net, session, End::ServerShutdown);
                }
                Connection::Opening { id, .. } | Connection::Authenticating { id, .. } => {
                    self.drop_connection(net, id);
                }
                Connection::Committing { session, .. } => {
                    self.cancel_pending_connect(net, session);
                }
                Connection::Bridge { link, .. } => self.stop_link(net, link),
                Connection::Vacant | Connection::Closing => {}
            }
        }
    }

    /// The next turn of a shard that ends.
    pub(super) fn finish_stopping(net: &mut Net, deadline_ns: u64) -> Next {
        if net.connections() == 0 || net.now_ns() >= deadline_ns {
            net.stop();
            return Next::Sleep;
        }
        Next::At(deadline_ns)
    }
}
