//! What client and broker agree on, and CONNACK.

use tacho_access::ClientLimits;
use tacho_codec::{ConnAck, Connect, QoS, ReasonCode, Version};

use crate::config::Limits;
use crate::shard::Shard;

/// What the broker grants; CONNACK says what differs from what the client asked for.
pub(in crate::shard) struct Agreed {
    pub(in crate::shard) keep_alive_s: u16,
    pub(in crate::shard) session_expiry_s: u32,
    /// Of the client's roles.
    pub(in crate::shard) limits: ClientLimits,
}

impl Shard {
    /// CONNACK, but for what only the session knows.
    pub(in crate::shard) fn connack<'a>(
        &self,
        connect: &Connect<'a>,
        agreed: &Agreed,
        assigned_client_id: Option<&'a str>,
        response_information: Option<&'a str>,
    ) -> ConnAck<'a> {
        let mut connack = ConnAck { reason: ReasonCode::SUCCESS, ..ConnAck::default() };
        if connect.version == Version::V5 {
            // [MQTT-3.1.3-7]: the assigned identifier; [MQTT-3.2.2-22]: no keep alive but the
            // client's, unless it is said.
            let limits = self.limits();
            let p = &mut connack.properties;
            // Said only where they differ from what the client asked for or from the default.
            p.assigned_client_id = assigned_client_id;
            let asked_expiry_s = connect.properties.session_expiry_s.unwrap_or(0);
            p.session_expiry_s =
                (agreed.session_expiry_s != asked_expiry_s).then_some(agreed.session_expiry_s);
            p.server_keep_alive_s =
                (agreed.keep_alive_s != connect.keep_alive_s).then_some(agreed.keep_alive_s);
            p.receive_maximum =
                (limits.receive_maximum != u16::MAX).then_some(limits.receive_maximum);
            let own = &agreed.limits;
            let packet_size_max = own.packet_size_max.unwrap_or(u32::MAX);
            p.packet_size_max = Some(limits.packet_size_max.min(packet_size_max));
            // [MQTT-3.2.2-9]; 2 is said by leaving it out.
            let qos_max = own.qos_max.and_then(QoS::from_u8);
            p.maximum_qos = qos_max.filter(|&max| max != QoS::ExactlyOnce);
            p.retain_available = own.retain.filter(|may_retain| !may_retain);
            p.topic_alias_maximum =
                (limits.topic_alias_maximum > 0).then_some(limits.topic_alias_maximum);
            p.response_information = response_information;
            // [MQTT-4.12.0-5], [MQTT-4.12.0-6]
            p.authentication_method = connect.properties.authentication_method;
            p.authentication_data = connect.properties.authentication_data;
        }
        connack
    }

    /// Whether the client takes the CONNACK: nothing in it may be left out, so who cannot take it
    /// cannot connect [MQTT-3.1.2-24].
    pub(in crate::shard) fn takes_connack(
        &self,
        connect: &Connect<'_>,
        agreed: &Agreed,
        assigned_client_id: Option<&str>,
    ) -> bool {
        let len_max = packet_size_max(connect);
        if len_max == u32::MAX {
            return true;
        }
        let client_id = assigned_client_id.unwrap_or(connect.client_id);
        let response_information = self.response_information(connect, client_id);
        let response_information = response_information.as_deref();
        let connack = self.connack(connect, agreed, assigned_client_id, response_information);
        let len = connack.encoded_len(connect.version);
        !len.is_ok_and(|len| len > len_max as usize)
    }

    /// Where the client shall let answers go to, if it asks [MQTT-3.1.2-28] and we are told.
    pub(in crate::shard) fn response_information(
        &self,
        connect: &Connect<'_>,
        client_id: &str,
    ) -> Option<String> {
        if connect.properties.request_response_information != Some(true) {
            return None;
        }
        let text = self.shared.response_information.as_deref()?;
        let text = text.replace("{client_id}", client_id);
        // No client can publish to a topic name that contains wildcards.
        tacho_codec::is_valid_topic_name(&text).then_some(text)
    }
}

/// The client's Maximum Packet Size.
pub(in crate::shard) fn packet_size_max(connect: &Connect<'_>) -> u32 {
    connect.properties.packet_size_max.unwrap_or(u32::MAX)
}

pub(in crate::shard) fn agree(connect: &Connect<'_>, limits: &Limits, own: ClientLimits) -> Agreed {
    let v5 = connect.version == Version::V5;
    let asked_s = if v5 {
        connect.properties.session_expiry_s.unwrap_or(0)
    } else if connect.clean_start {
        0
    } else {
        u32::MAX
    };
    // Only a 5.0 client can be told of another keep-alive.
    let max_s = limits.keep_alive_max_s;
    let lower = v5 && max_s > 0 && (connect.keep_alive_s == 0 || connect.keep_alive_s > max_s);
    let expiry_max_s = own.session_expiry_max_s.unwrap_or(u32::MAX);
    let expiry_max_s = expiry_max_s.min(limits.session_expiry_max_s);
    Agreed {
        keep_alive_s: if lower { max_s } else { connect.keep_alive_s },
        session_expiry_s: asked_s.min(expiry_max_s),
        limits: own,
    }
}
