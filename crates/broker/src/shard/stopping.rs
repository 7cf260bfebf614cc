//! The broker's end: every client is told, and the loop ends when all have heard it.

use tacho_codec::ReasonCode;
use tacho_net::Next;
use tacho_session::server::End;

use super::connections::{Connection, Farewell};
use super::{Net, Shard};

/// How long connections get, when the broker stops, to take what was said to them.
const STOP_LINGER_NS: u64 = 1_000_000_000;
/// What telling a client costs.
const GOODBYE_UNITS: u32 = 4;

/// Whether the shard runs or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// The clients are told, of all connections those below this index so far.
    Telling {
        told: usize,
    },
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
        if !self.is_stopping() {
            self.phase = Phase::Telling { told: 0 };
            net.stop_listening();
        }
    }

    /// The next turn of a shard that ends.
    pub(super) fn continue_stopping(&mut self, net: &mut Net) -> Next {
        if let Phase::Telling { told } = self.phase {
            self.tell_clients(net, told);
        }
        match self.phase {
            Phase::Stopping { deadline_ns } => Self::finish_stopping(net, deadline_ns),
            Phase::Telling { .. } | Phase::Running => Next::Again,
        }
    }

    /// Tells the clients from this connection on, as long as the turn lasts.
    fn tell_clients(&mut self, net: &mut Net, first: usize) {
        let farewell = Farewell {
            reason: ReasonCode::SERVER_SHUTTING_DOWN,
            why: None,
            server_reference: None,
        };
        for index in first..self.connections.len() {
            match self.connections.at(index) {
                Connection::Bridge { link, .. } => self.stop_link(net, link),
                _ => self.end_client(net, index, &farewell),
            }
            if !net.charge(GOODBYE_UNITS) {
                self.phase = Phase::Telling { told: index + 1 };
                return;
            }
        }
        self.phase = Phase::Stopping { deadline_ns: net.now_ns() + STOP_LINGER_NS };
    }

    /// Ends the connection of a client, or of one that wants to become one.
    pub(super) fn end_client(&mut self, net: &mut Net, index: usize, farewell: &Farewell<'_>) {
        match self.connections.at(index) {
            Connection::Active { id, session, .. } => {
                self.say_farewell(net, id, farewell);
                self.session_disconnected(net, session, End::ServerShutdown);
            }
            Connection::Opening { id, .. }
            | Connection::Authenticating { id, .. }
            | Connection::LoggingIn { id, .. }
            | Connection::Refusing { id, .. } => {
                self.drop_connection(net, id);
            }
            Connection::Committing { session, .. } => {
                self.cancel_pending_connect(net, session);
            }
            Connection::Bridge { .. } | Connection::Vacant | Connection::Closing => {}
        }
    }

    fn finish_stopping(net: &mut Net, deadline_ns: u64) -> Next {
        if net.connections() == 0 || net.now_ns() >= deadline_ns {
            net.stop();
            return Next::Sleep;
        }
        Next::At(deadline_ns)
    }
}
