//! How the broker ends connections: for what their clients did, or because it must.

use tacho_codec::{DecodeError, Disconnect, Packet, ReasonCode, Version};
use tacho_net::ConnId;
use tacho_session::ProtocolError;
use tacho_session::server::End;

use crate::ending::Ending;
use crate::shard::connections::Connection;
use crate::shard::output::Flow;
use crate::shard::output::encode_within;
use crate::shard::{Net, Shard};
use crate::trace::TraceKind;

/// What a client is told when the broker ends its connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct Farewell<'a> {
    pub(in crate::shard) reason: ReasonCode,
    /// A word of explanation.
    pub(in crate::shard) why: Option<&'static str>,
    /// Where it may go instead.
    pub(in crate::shard) server_reference: Option<&'a str>,
}

impl Shard {
    /// Refuses malformed input: says why where the version allows it, then closes.
    pub(in crate::shard) fn protocol_error(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        error: &DecodeError,
    ) -> Flow {
        tracing::debug!(shard = self.id, connection = conn.index(), %error, "protocol error");
        match self.connections.get(conn) {
            Connection::Active { .. } => {
                self.end_connection_because(net, conn, error.reason, error.message)
            }
            Connection::Authenticating { .. } => {
                self.stats.protocol_errors_total.increment();
                self.refuse(net, conn, Version::V5, error.reason);
                Flow::Stop
            }
            _ => {
                self.stats.protocol_errors_total.increment();
                self.drop_connection(net, conn);
                Flow::Stop
            }
        }
    }

    /// Refuses what the session's rules do not allow.
    pub(in crate::shard) fn session_error(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        error: &ProtocolError,
    ) -> Flow {
        self.end_connection_because(net, conn, error.reason(), error.sentence())
    }

    /// Ends a connection for an error: DISCONNECT with the reason on 5.0, then close; the will is
    /// published [MQTT-4.13.1-1], [MQTT-4.13.2-1].
    pub(in crate::shard) fn end_connection(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        reason: ReasonCode,
    ) -> Flow {
        self.end_connection_for(net, conn, reason, None)
    }

    /// The same, with a word of explanation to 5.0 clients.
    pub(in crate::shard) fn end_connection_because(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        reason: ReasonCode,
        why: &'static str,
    ) -> Flow {
        self.end_connection_for(net, conn, reason, Some(why))
    }

    #[cold]
    fn end_connection_for(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        reason: ReasonCode,
        why: Option<&'static str>,
    ) -> Flow {
        if let Connection::Active { session, .. } = self.connections.get(conn) {
            self.stats.protocol_errors_total.increment();
            self.count_flap(net, conn, Some(session));
            self.say_goodbye_because(net, conn, reason, why);
            self.session_disconnected(net, session, End::ProtocolError);
        } else {
            self.drop_connection(net, conn);
        }
        Flow::Stop
    }

    /// Sends DISCONNECT to a 5.0 client, and closes the connection in any case.
    pub(in crate::shard) fn say_goodbye(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        reason: ReasonCode,
    ) {
        self.say_goodbye_because(net, conn, reason, None);
    }

    pub(in crate::shard) fn say_goodbye_because(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        reason: ReasonCode,
        why: Option<&'static str>,
    ) {
        self.say_farewell(net, conn, &Farewell { reason, why, server_reference: None });
    }

    pub(in crate::shard) fn say_farewell(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        farewell: &Farewell<'_>,
    ) {
        let Farewell { reason, why, .. } = *farewell;
        if let Connection::Active { version, session, .. } = self.connections.get(conn) {
            if version == Version::V5 {
                let disconnect = Disconnect { reason_string: why, ..Disconnect::new(reason) };
                self.trace_packet(net, session, TraceKind::Out, &Packet::Disconnect(disconnect));
            }
            self.note_end(net, session, Ending::ByBroker(reason, why));
            let packet_size_max = self.sessions[session].terms().packet_size_max();
            self.stats.disconnects_by_broker_total.increment(reason);
            self.stats.disconnects_out_total.add(u64::from(version == Version::V5));
            send_disconnect(net, conn, version, farewell, packet_size_max);
        }
        // Nothing follows [MQTT-3.14.4-1], [MQTT-3.14.4-2].
        self.connections.set(conn, Connection::Closing);
        net.close(conn);
    }

    /// Closes a connection that has no session.
    pub(in crate::shard) fn drop_connection(&mut self, net: &mut Net, conn: ConnId) {
        self.cancel_connect_timer(net, conn);
        self.connections.set(conn, Connection::Closing);
        net.close(conn);
    }
}

/// Tells a client why its connection ends, where its version can.
///
/// The Reason String is allowed here even for clients that want none elsewhere [MQTT-3.1.2-29].
pub(in crate::shard) fn send_disconnect(
    net: &mut Net,
    conn: ConnId,
    version: Version,
    farewell: &Farewell<'_>,
    packet_size_max: u32,
) {
    if version != Version::V5 {
        return;
    }
    // What is too long is said without the explanation [MQTT-3.14.2-3], [MQTT-3.14.2-4], or not at
    // all [MQTT-3.1.2-24].
    let Farewell { reason, why, server_reference } = *farewell;
    let disconnect = Disconnect { reason_string: why, server_reference, ..Disconnect::new(reason) };
    let out = net.out(conn).as_vec_mut();
    encode_within(Packet::Disconnect(disconnect), version, packet_size_max, out);
}
