//! A drain as a shard sees it: no client is taken any more, and those that are here are sent away
//! when the control plane says so.

use std::sync::Arc;

use tacho_codec::{ConnAck, Connect, ReasonCode, Version};
use tacho_net::ConnId;

use super::connections::{Farewell, packet_size_max};
use super::{Net, Shard};
use crate::query::SentAway;

/// Connections looked at for one question: tens of microseconds.
const LOOKS_MAX: usize = 16_384;
/// Connections that are looked at in a microsecond.
const LOOKS_PER_UNIT: usize = 256;
/// What sending a client away costs.
const SEND_AWAY_UNITS: u32 = 4;
/// Why connections end, for their clients and the log.
const WHY: &str = "the broker is being drained";

/// What a shard knows of a drain.
pub(super) struct Draining {
    /// Where clients are sent.
    server_reference: Option<Arc<str>>,
    /// The next connection to look at.
    next: usize,
    /// A client was there since the look at the first connection.
    has_found: bool,
}

impl Shard {
    /// Takes no more clients. A drain that is under way begins again.
    pub(super) fn begin_draining(&mut self, server_reference: Option<Arc<str>>) {
        self.draining = Some(Draining { server_reference, next: 0, has_found: false });
    }

    /// Takes clients again.
    pub(super) fn end_draining(&mut self) {
        self.draining = None;
    }

    /// Ends the connections of so many clients at most; says whether none are left. A will is due
    /// as when the connection breaks: only a DISCONNECT of the client's own deletes it
    /// [MQTT-3.1.2-8]. Sessions stay as long as their expiry says.
    pub(super) fn send_away(&mut self, net: &mut Net, count: usize) -> SentAway {
        let mut sent = SentAway::default();
        let Some(mut draining) = self.draining.take() else { return sent };
        let server_reference = draining.server_reference.clone();
        let farewell = Farewell {
            reason: match server_reference {
                Some(_) => ReasonCode::USE_ANOTHER_SERVER,
                None => ReasonCode::SERVER_SHUTTING_DOWN,
            },
            why: Some(WHY),
            server_reference: server_reference.as_deref(),
        };
        for look in 1..=LOOKS_MAX {
            if draining.next >= self.connections.len() {
                sent.none_left = !draining.has_found;
                (draining.next, draining.has_found) = (0, false);
                break;
            }
            let is_client = self.connections.at(draining.next).is_client();
            draining.has_found |= is_client;
            if is_client && sent.count >= count {
                break;
            }
            if is_client {
                self.end_client(net, draining.next, &farewell);
                sent.count += 1;
            }
            draining.next += 1;
            let units =
                u32::from(look % LOOKS_PER_UNIT == 0) + u32::from(is_client) * SEND_AWAY_UNITS;
            if units > 0 && !net.charge(units) {
                break;
            }
        }
        self.draining = Some(draining);
        sent
    }

    /// Refuses a client that comes during a drain: true if it was.
    pub(super) fn refuse_drained(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
    ) -> bool {
        let Some(draining) = &self.draining else { return false };
        let server_reference = draining.server_reference.clone();
        // CONNACK knows no 0x8B. Before 5.0 both are "server unavailable".
        let reason = match server_reference {
            Some(_) => ReasonCode::USE_ANOTHER_SERVER,
            None => ReasonCode::SERVER_UNAVAILABLE,
        };
        let mut refusal = ConnAck::refusal(reason);
        if connect.version == Version::V5 {
            refusal.properties.server_reference = server_reference.as_deref();
        }
        let len = refusal.encoded_len(connect.version);
        if !len.is_ok_and(|len| len <= packet_size_max(connect) as usize) {
            refusal.properties.server_reference = None; // [MQTT-3.1.2-24]
        }
        self.refuse_with(net, conn, connect.version, refusal);
        true
    }
}
