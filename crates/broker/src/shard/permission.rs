//! Permission: the one place that decides what clients may do.
//!
//! CONNECT, PUBLISH, SUBSCRIBE, every delivery and every will pass here and, where there are access
//! rules, ask those ([`access`](super::access)). A CONNECT may have to wait for an answer from
//! another thread: [`Shard::ask_to_connect`] hands it to its authentication method or to the
//! threads that verify passwords, and [`Shard::authenticated`] or [`Shard::logged_in`] continues it
//! when the answer comes by mail.

use tacho_codec::{Connect, ReasonCode, Version};
use tacho_net::ConnId;
use tacho_topic::Filter;

use super::output::Flow;
use super::{Net, Shard};
use crate::config::Limits;
use crate::keys::{ConnectingClient, LINK_PREFIX, User};
use crate::message::{Header, Source};
use crate::subscription::{Scope, Target};

impl Shard {
    /// Whether a client may connect at all, as far as its CONNECT tells.
    pub(super) fn may_connect(
        &self,
        conn: ConnId,
        connect: &Connect<'_>,
    ) -> Result<(), ReasonCode> {
        if self.is_stopping() {
            return Err(ReasonCode::SERVER_UNAVAILABLE);
        }
        if let Some(reason) = self.overloaded() {
            return Err(reason);
        }
        if connect.client_id.len() > self.limits().client_id_bytes_max {
            // [MQTT-3.1.3-8], [MQTT-3.1.1: 3.1.3-9]
            return Err(ReasonCode::CLIENT_IDENTIFIER_NOT_VALID);
        }
        if connect.client_id.starts_with(LINK_PREFIX) {
            return Err(ReasonCode::CLIENT_IDENTIFIER_NOT_VALID); // They are the broker's own.
        }
        if connect.will.is_some() && self.admission.queues_full() && self.is_far_over_budget() {
            return Err(ReasonCode::QUOTA_EXCEEDED);
        }
        let method = connect.properties.authentication_method;
        let listener = self.connections.listener_of(conn);
        if method.is_some_and(|name| self.auth_method(name, listener).is_none()) {
            return Err(ReasonCode::BAD_AUTHENTICATION_METHOD); // [MQTT-4.12.0-1]
        }
        if let Some(will) = &connect.will {
            may_publish(will.topic)?; // [MQTT-3.1.4-2]
        }
        let is_v5 = connect.version == Version::V5;
        if !is_v5 && connect.client_id.is_empty() && !connect.clean_start {
            return Err(ReasonCode::CLIENT_IDENTIFIER_NOT_VALID); // [MQTT-3.1.1: 3.1.3-8]
        }
        Ok(())
    }

    /// Asks for permission to connect on behalf of a client whose session this shard owns.
    /// `packet` is the whole CONNECT.
    pub(super) fn ask_to_connect(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        mut client: ConnectingClient,
    ) -> Flow {
        if connect.properties.authentication_method.is_some() {
            // The method vouches for the name, or refuses.
            client.user = connect.username.map(|name| User {
                name: name.into(),
                is_listed: false,
                rules: None,
            });
            return self.authenticate(net, conn, connect, packet, client);
        }
        self.log_in(net, conn, connect, packet, client)
    }
}

/// Whether clients may publish to a topic. `$SYS` and `$share` belong to the broker; other `$`
/// topics are the users' own.
pub(super) fn may_publish(topic: &str) -> Result<(), ReasonCode> {
    if !topic.starts_with('$') {
        return Ok(());
    }
    match topic.split('/').next().unwrap_or(topic) {
        "$SYS" | "$share" => Err(ReasonCode::NOT_AUTHORIZED),
        _ => Ok(()),
    }
}

/// Whether clients may subscribe to a filter.
pub(super) fn may_subscribe(filter: &Filter, limits: &Limits) -> Result<(), ReasonCode> {
    let pattern = filter.topic_filter();
    if !pattern.is_exact() && pattern.level_count() > limits.filter_levels_max {
        return Err(ReasonCode::QUOTA_EXCEEDED);
    }
    Ok(())
}

/// Whether a session, whose own messages have the source `receiver`, gets a message by this match.
#[inline]
pub(super) fn may_receive(target: &Target, receiver: Source, header: &Header) -> bool {
    if header.retain && header.routed_version < target.since {
        return false; // A replay brings it.
    }
    match target.scope {
        Scope::Everyone => true,
        // [MQTT-3.8.3-3]
        Scope::Others | Scope::Bridge => receiver != header.source,
        Scope::Own => receiver == header.source,
    }
}
