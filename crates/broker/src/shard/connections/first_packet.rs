//! The first packet: CONNECT, and which shard owns the session.

use std::sync::Arc;

use tacho_codec::{
    ConnAck, Connect, Frame, Packet, ReasonCode, Version, split_frame, without_bridge_bit,
};
use tacho_net::ConnId;

use super::certificate::Certified;
use super::packet_size_max;
use super::refused_logins::LoginRefusal;
use crate::keys::{ClientKey, ConnectingClient, TenantId};
use crate::mail::{Adopted, Mail};
use crate::shard::output::{Flow, encode};
use crate::shard::{Net, Shard};

/// Bytes of the smallest CONNACK of 5.0. A client that takes no more cannot even be refused.
const REFUSAL_LEN: u32 = 5;

impl Shard {
    /// Handles the first packet of a connection. `unread` starts with it.
    pub(in crate::shard) fn first_packet(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        frame: &Frame<'_>,
        unread: &[u8],
    ) -> Flow {
        let plain = without_bridge_bit(&unread[..frame.total_len]);
        let plain = plain.as_ref().and_then(|plain| split_frame(plain, u32::MAX).ok().flatten());
        let frame = plain.as_ref().unwrap_or(frame);
        let connect = match Connect::decode(frame) {
            Ok(connect) => connect,
            Err(error) => {
                self.stats.protocol_errors_total.increment();
                // [MQTT-3.1.4-1]. A CONNACK where the bytes tell which version's; else the close.
                match Connect::reply_version(frame) {
                    Some(version) if version == Version::V5 || has_v3_code(error.reason) => {
                        self.refuse(net, conn, version, error.reason);
                    }
                    _ => self.drop_connection(net, conn),
                }
                return Flow::Stop;
            }
        };
        if packet_size_max(&connect) < REFUSAL_LEN {
            self.drop_connection(net, conn); // [MQTT-3.1.2-24]
            return Flow::Stop;
        }
        if self.refuse_drained(net, conn, &connect) {
            return Flow::Stop;
        }
        if let Some(banned) = self.ban_of_connect(net, conn, &connect) {
            self.trace_connect(net, conn, &connect);
            self.refuse_banned(net, conn, &connect, banned);
            return Flow::Stop;
        }
        if let Err(reason) = self.may_connect(conn, &connect) {
            self.trace_connect(net, conn, &connect);
            self.refuse(net, conn, connect.version, reason);
            return Flow::Stop;
        }
        let client = match self.connecting_client(net, conn, &connect) {
            Ok(client) => client,
            Err(why) => {
                self.trace_connect(net, conn, &connect);
                self.refuse_login_of(net, conn, &connect, (connect.client_id, None), why);
                return Flow::Stop;
            }
        };
        let owner = client.key.owner(net.shards());
        if owner == self.id {
            self.trace_connect(net, conn, &connect);
            if let Some(offence) = self.offence_of(net, conn, &client.key.client_id) {
                let why = LoginRefusal::Banned(offence);
                return self.refuse_login(net, conn, &connect, &client, why);
            }
            let packet = &unread[..frame.total_len];
            return self.ask_to_connect(net, conn, &connect, packet, client);
        }
        self.move_connection(net, conn, owner, unread);
        Flow::Stop
    }

    fn move_connection(&mut self, net: &mut Net, conn: ConnId, owner: usize, unread: &[u8]) {
        self.cancel_connect_timer(net, conn);
        let listener = self.connections.listener_of(conn);
        let permits = self.connection_gone(conn);
        if let (Some(detached), Some(permits)) = (net.detach(conn, unread), permits) {
            net.post(owner, Mail::Adopt(Box::new(Adopted { detached, listener, permits })));
        }
    }

    /// Who a client is, as far as its CONNECT and its certificate tell. Clients without an
    /// identifier get one of their own [MQTT-3.1.3-6], [MQTT-3.2.2-16].
    fn connecting_client(
        &self,
        net: &Net,
        conn: ConnId,
        connect: &Connect<'_>,
    ) -> Result<ConnectingClient, LoginRefusal> {
        let tenant = TenantId::DEFAULT;
        let Certified { user: certificate_user, client_id: own_id } =
            self.certified(net, conn, connect)?;
        let client = |client_id: Arc<str>, is_assigned| ConnectingClient {
            key: ClientKey { tenant, client_id },
            is_assigned,
            user: None,
            certificate_user: certificate_user.clone(),
        };
        let is_without = connect.client_id.is_empty();
        if let Some(client_id) = own_id {
            return Ok(client(client_id, is_without));
        }
        if !is_without {
            return Ok(client(connect.client_id.into(), false));
        }
        // An identifier that this shard owns saves moving the connection.
        loop {
            let client_id = format!("auto-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
            let client = client(client_id.into(), true);
            if client.key.owner(net.shards()) == self.id
                && self.sessions.find(&client.key).is_none()
            {
                return Ok(client);
            }
        }
    }

    /// A CONNACK that refuses, then the close [MQTT-3.2.2-7]. What follows the CONNECT is not
    /// processed [MQTT-3.1.4-6].
    pub(in crate::shard) fn refuse(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        version: Version,
        reason: ReasonCode,
    ) {
        self.refuse_with(net, conn, version, ConnAck::refusal(reason));
    }

    /// The same with properties.
    pub(in crate::shard) fn refuse_with(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        version: Version,
        refusal: ConnAck<'_>,
    ) {
        self.stats.packets_in_total.increment();
        self.stats.refused_connects_total.increment(refusal.reason);
        self.log_refusal(net, conn, refusal.reason);
        self.trace_refused(net, conn, refusal.reason);
        encode(&Packet::ConnAck(refusal), version, net, conn);
        self.drop_connection(net, conn);
    }
}

/// Whether a CONNECT that cannot be decoded gets a CONNACK before 5.0: only where one of the codes
/// says why [MQTT-3.1.1: 3.2.2-6], and never where the packet is malformed [MQTT-3.1.1: 3.1.4-1].
fn has_v3_code(reason: ReasonCode) -> bool {
    matches!(
        reason,
        ReasonCode::UNSUPPORTED_PROTOCOL_VERSION | ReasonCode::CLIENT_IDENTIFIER_NOT_VALID
    )
}
