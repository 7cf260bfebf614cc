//! The start of a connection to a remote broker: CONNECT and CONNACK.

use tacho_codec::{
    ConnAck, Connect, ConnectProperties, QoS, ReasonCode, UserPropertiesBuf, Version,
    set_bridge_bit,
};
use tacho_net::ConnId;
use tacho_session::server::ConnectParams;

use super::{Asking, Granted, Introduction, PeerSession, Stage};
use crate::bridge::{Bridge, LINK_EXPIRY_S, State};
use crate::hops;
use crate::keys::LinkIndex;
use crate::shard::output::Flow;
use crate::shard::sessions::PeerTerms;
use crate::shard::{Net, Shard};

impl Shard {
    /// The TCP connection is established: sends CONNECT, after the TLS handshake if there is one.
    pub(super) fn greet(&mut self, net: &mut Net, link: LinkIndex, conn: ConnId) {
        let entry = &mut self.bridges.all[link.index()];
        let bridge = self.bridges.known.at(entry.bridge);
        let config = bridge.config();
        match bridge.tls.as_ref().map(|tls| tls.filter()).transpose() {
            Ok(None) => {}
            Ok(Some(filter)) => net.set_filter(conn, Box::new(filter)),
            Err(error) => return self.break_off(net, link, &error.to_string()),
        }
        let clean = config.clean_start || entry.peer == PeerSession::ToBeForgotten;
        entry.stage = Stage::Greeting { clean };
        let client_id = config.client_id_of(entry.number);
        let mut says_bridge = UserPropertiesBuf::new();
        // Invariant: both are short texts without control characters.
        let _ = says_bridge.push(hops::BRIDGE, &config.name);
        let limits = &*self.limits;
        let connect = Connect {
            version: config.version,
            clean_start: clean,
            keep_alive_s: config.keep_alive_s,
            client_id: &client_id,
            username: config.username.as_deref(),
            password: config.password.as_ref().map(|p| p.secret.reveal().as_bytes()),
            will: None,
            properties: match config.version.is_v5() {
                true => ConnectProperties {
                    session_expiry_s: Some(config.session_expiry_s).filter(|s| *s > 0),
                    receive_maximum: Some(config.inflight),
                    packet_size_max: Some(limits.packet_size_max),
                    topic_alias_maximum: Some(limits.topic_alias_maximum).filter(|max| *max > 0),
                    user_properties: says_bridge.view(),
                    ..ConnectProperties::default()
                },
                false => ConnectProperties::default(),
            },
        };
        let introduction = entry.introduction;
        let out = net.out(conn).as_vec_mut();
        let start = out.len();
        if let Err(error) = connect.encode(out) {
            let why = format!("CONNECT cannot be written: {error}");
            return self.break_off(net, link, &why);
        }
        if introduction == Introduction::Bridge {
            set_bridge_bit(&mut out[start..]);
        }
    }

    /// Handles CONNACK: the session continues, at both ends or at this one only.
    pub(super) fn greeted(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        link: LinkIndex,
        connack: &ConnAck<'_>,
    ) -> Flow {
        let entry = &self.bridges.all[link.index()];
        let Stage::Greeting { clean } = entry.stage else {
            self.break_off(net, link, "it sent CONNACK without a CONNECT");
            return Flow::Stop;
        };
        if connack.reason.is_error() {
            return self.greeting_refused(net, link, connack);
        }
        if connack.session_present && clean {
            self.break_off(net, link, "it has a session although a clean one was asked for");
            return Flow::Stop;
        }
        if self.needs_another_greeting(link, connack.session_present) {
            self.bridges.all[link.index()].stage = Stage::Up;
            return self.greet_again(net, link);
        }
        let bridge = self.bridges.known.at(self.bridges.all[link.index()].bridge);
        let qos_max = connack.properties.maximum_qos.unwrap_or(QoS::ExactlyOnce);
        if qos_max == QoS::AtMostOnce && !sends_qos0_only(bridge) {
            let why = "it takes QoS 0 only: set `qos = 0` in every [[bridges.egress]]";
            self.break_off(net, link, why);
            return Flow::Stop;
        }
        self.link_up(net, link, connack, qos_max);
        self.connect_link_session(net, conn, link, connack, qos_max);
        self.arm_link(net, link);
        self.subscribe_there(net, link);
        Flow::Continue
    }

    /// Handles CONNACK with an error.
    fn greeting_refused(&mut self, net: &mut Net, link: LinkIndex, connack: &ConnAck<'_>) -> Flow {
        let entry = &mut self.bridges.all[link.index()];
        if entry.introduction == Introduction::Bridge
            && connack.reason == ReasonCode::UNSUPPORTED_PROTOCOL_VERSION
        {
            entry.introduction = Introduction::Client;
            entry.stage = Stage::Disconnected;
            return self.greet_again(net, link);
        }
        let text = connack.properties.reason_string;
        let why = format!("it refused the connection: {}{}", connack.reason, said(text));
        self.break_off(net, link, &why);
        Flow::Stop
    }

    /// Records the state of the remote session from CONNACK. True if another CONNECT must follow.
    fn needs_another_greeting(&mut self, link: LinkIndex, session_present: bool) -> bool {
        let entry = &mut self.bridges.all[link.index()];
        let config = self.bridges.known.at(entry.bridge).config();
        if session_present && entry.peer == PeerSession::Unknown && !config.egress.is_empty() {
            // A session from an earlier start of this broker: identifiers could collide
            // [MQTT-3.2.2-4].
            entry.peer = PeerSession::ToBeForgotten;
            return true;
        }
        let before = entry.peer;
        if before != PeerSession::Used {
            entry.peer = PeerSession::Known;
        }
        // In 3.1.1 a clean session ends with this connection.
        before == PeerSession::ToBeForgotten && config.version != Version::V5 && !config.clean_start
    }

    /// The link is connected: records the limits of the remote broker and the subscriptions to
    /// make.
    fn link_up(&mut self, net: &Net, link: LinkIndex, connack: &ConnAck<'_>, qos_max: QoS) {
        let now_ns = net.now_ns();
        let entry = &mut self.bridges.all[link.index()];
        let bridge = self.bridges.known.at(entry.bridge);
        let (config, properties) = (bridge.config(), &connack.properties);
        let keep_alive_s = properties.server_keep_alive_s.unwrap_or(config.keep_alive_s);
        entry.protocol.accepted(now_ns, keep_alive_s);
        entry.stage = Stage::Up;
        entry.attempts = 0;
        entry.granted = Granted { qos_max, retain: properties.retain_available.unwrap_or(true) };
        let is_again = std::mem::replace(&mut entry.peer, PeerSession::Used) == PeerSession::Used;
        let has_rules = bridge.ingress_of(entry.number).next().is_some();
        // With 5.0 subscribing again is free; in 3.1.1 it would replay all retained messages.
        let is_subscribed = connack.session_present
            && is_again
            && entry.subscribing == Asking::Done
            && !config.version.is_v5();
        entry.subscribing = Asking::wanted_if(has_rules && !is_subscribed);
        let is_tidy = is_again && entry.unsubscribing == Asking::Done;
        entry.unsubscribing = Asking::wanted_if(connack.session_present && !is_tidy);
        if let Some(stats) = bridge.stats(entry.number) {
            stats.reconnects.add(u64::from(is_again));
            stats.set_up(now_ns, None);
        }
        let (name, connection) = (&*config.name, entry.number + 1);
        let resumed = connack.session_present;
        if bridge.is_news(State::Up) {
            tracing::info!(bridge = name, connection, resumed, "connected");
            self.tell_bridge(now_ns, name, None);
        } else {
            tracing::debug!(bridge = name, connection, resumed, "connected");
        }
    }

    /// Resumes the session of a link on this connection.
    fn connect_link_session(
        &mut self,
        net: &Net,
        conn: ConnId,
        link: LinkIndex,
        connack: &ConnAck<'_>,
        qos_max: QoS,
    ) {
        let (entry, limits) = (&self.bridges.all[link.index()], &*self.limits);
        let version = self.bridges.known.at(entry.bridge).config().version;
        let properties = &connack.properties;
        let aliases_max = properties.topic_alias_maximum.unwrap_or(0);
        let params = ConnectParams {
            version,
            clean_start: false,
            receive_maximum: properties.receive_maximum.unwrap_or(u16::MAX),
            topic_alias_maximum_in: limits.topic_alias_maximum,
            topic_alias_maximum_out: aliases_max.min(limits.outgoing_topic_aliases_max),
            keep_alive_s: 0,
            session_expiry_s: LINK_EXPIRY_S,
            will: None,
        };
        let slot = entry.slot;
        if !connack.session_present {
            self.act(slot, |machine, recorder| machine.forgotten_by_peer(recorder));
        }
        let session = &mut self.sessions[slot];
        if qos_max < QoS::ExactlyOnce {
            session.machine.limit_qos(qos_max);
        }
        let terms = PeerTerms::of_broker(version, properties.packet_size_max.unwrap_or(u32::MAX));
        session.link_connected(net.now_ns(), params, terms);
        self.sessions.connect(slot, conn);
    }

    /// Closes the connection in favour of a new one with a different CONNECT.
    fn greet_again(&mut self, net: &mut Net, link: LinkIndex) -> Flow {
        self.say_bye(net, link);
        self.bridges.all[link.index()].protocol.again(net.now_ns());
        self.arm_link(net, link);
        Flow::Stop
    }
}

fn sends_qos0_only(bridge: &Bridge) -> bool {
    bridge.config().egress.iter().all(|rule| rule.mapping.qos == Some(QoS::AtMostOnce))
}

/// The reason string of the remote broker.
pub(super) fn said(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(" ({text})"))
}
