//! Bridges to remote brokers, complete and checked.

mod describe;
mod overlap;
mod raw;
mod remote;
mod secret;
mod template;

use std::collections::HashSet;

use tacho_codec::{QoS, Version};
use tacho_net::tls::{TlsClient, TlsError};
use tacho_topic::{Filter, TopicFilter};

pub use raw::{RawBridge, RawBridgeTls, RawRule, SourceText};
pub(super) use raw::{line_of_password, resolve};
pub use remote::Remote;
pub use secret::Secret;
pub use template::{Template, TemplateError, Values};

/// One bridge: the remote broker, the credentials, and the rules of both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Unique; letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The remote broker.
    pub remote: Remote,
    /// Protocol version: 3.1.1 or 5.0.
    pub version: Version,
    /// Client identifier at the remote broker, or its prefix: see [`Self::client_id_of`].
    pub client_id: String,
    /// User name at the remote broker.
    pub username: Option<String>,
    /// Password at the remote broker.
    pub password: Option<Password>,
    /// Whether the remote broker discards the session when a link connects.
    pub clean_start: bool,
    /// Seconds that the remote broker keeps a session without a connection; 5.0 only.
    pub session_expiry_s: u32,
    /// Keep alive in seconds; 0: none.
    pub keep_alive_s: u16,
    /// Seconds until a connection without CONNACK is given up.
    pub connect_timeout_s: u32,
    /// Number of links; the messages of one topic always use the same link.
    pub connections: u16,
    /// Unacknowledged QoS 1 and 2 messages per link in each direction, if the remote broker allows
    /// as many.
    pub inflight: u16,
    /// Bytes of queued messages of all links.
    pub buffer_bytes_max: u64,
    /// Seconds that a message may be queued; 0: until it expires.
    pub buffer_ttl_s: u32,
    /// Seconds before the first attempt after a connection is lost.
    pub retry_first_s: u32,
    /// Longest backoff between two attempts in seconds; the backoff doubles from the first to this.
    pub retry_longest_s: u32,
    /// Seconds without a packet from the remote broker until PINGREQ is sent, and from then until
    /// the connection is given up; 0: keep alive only.
    pub health_check_s: u32,
    /// Seconds that the remote broker may leave a message unacknowledged, although it answers
    /// PINGREQ, until the connection is given up; 0: no limit.
    pub ack_timeout_s: u32,
    /// 3.1.1: sets the bridge bit, so that the remote broker does not send back what it gets from
    /// here. A link that is refused for it connects without it.
    pub bridge_flag: bool,
    /// Client identifier, or its prefix, of a bridge from the remote broker to this one: what it
    /// publishes does not leave by this bridge.
    pub counterpart: Option<String>,
    /// Messages that have passed so many bridges do not pass this one; 0: no limit.
    pub hops_max: u32,
    /// Whether it runs when the broker starts.
    pub enabled: bool,
    /// It comes from the store of the management API, which may change it.
    pub is_stored: bool,
    /// Rules from this broker to the remote one.
    pub egress: Vec<EgressRule>,
    /// Rules from the remote broker to this one.
    pub ingress: Vec<IngressRule>,
}

/// A password and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Password {
    /// The password.
    pub secret: Secret,
    /// The file that it was read from, if any.
    pub file: Option<std::path::PathBuf>,
}

/// A rule for messages to the remote broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressRule {
    /// Topics at this broker. The filters of one bridge do not overlap.
    pub filter: TopicFilter,
    /// Mapping to the remote broker.
    pub mapping: Mapping,
}

/// A rule for messages from the remote broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressRule {
    /// Topics at the remote broker; may be a shared subscription. The filters of one bridge do not
    /// overlap.
    pub filter: Filter,
    /// Mapping to this broker.
    pub mapping: Mapping,
}

/// How a rule maps a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Topic on the target side.
    pub topic: Template,
    /// Payload on the target side.
    pub payload: Template,
    /// QoS on the target side; `None` keeps it.
    pub qos: Option<QoS>,
    /// RETAIN flag on the target side; `None` keeps it.
    pub retain: Option<bool>,
}

impl Mapping {
    /// The mapped QoS.
    pub fn qos(&self, qos: QoS) -> QoS {
        self.qos.unwrap_or(qos)
    }

    /// The mapped RETAIN flag.
    pub fn retain(&self, retain: bool) -> bool {
        self.retain.unwrap_or(retain)
    }
}

impl EgressRule {
    /// A filter that matches all mapped topics.
    fn image(&self) -> String {
        overlap::image(&self.mapping.topic, self.filter.as_str())
    }

    /// Whether messages that leave by this rule could come back by `ingress`.
    pub(crate) fn comes_back_by(&self, ingress: &IngressRule) -> bool {
        overlap::overlap(&self.image(), ingress.filter.topic_filter().as_str())
    }
}

impl IngressRule {
    /// The QoS of the subscription: a higher one would make no difference.
    pub fn subscription_qos(&self) -> QoS {
        self.mapping.qos.unwrap_or(QoS::ExactlyOnce)
    }
}

impl BridgeConfig {
    /// The client identifier of link `k`, counted from 0: the configured one if there is one link,
    /// otherwise with the suffix `-1`, `-2` and so on. Also for links that only an earlier
    /// configuration had.
    pub fn client_id_of(&self, k: u16) -> String {
        match (self.connections, k) {
            (1, 0) => self.client_id.clone(),
            _ => format!("{}-{}", self.client_id, k + 1),
        }
    }

    /// Whether this client is a link of the bridge from the remote broker to this one.
    pub(crate) fn is_counterpart(&self, client_id: &str) -> bool {
        let Some(rest) = self.counterpart.as_deref().and_then(|own| client_id.strip_prefix(own))
        else {
            return false;
        };
        // Numbered like our own links.
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number)
    }

    /// Why both cannot be bridges of one broker.
    pub(crate) fn conflict_with(&self, other: &Self) -> Option<String> {
        if self.name == other.name {
            return Some(format!("there is a bridge `{}` already", self.name));
        }
        let id = self.identifier_shared_with(other)?;
        Some(format!(
            "bridge `{}` uses the client identifier `{id}` at the same broker, so they would \
             disconnect each other: set another `client_id`",
            other.name
        ))
    }

    /// A client identifier that both would use at the same remote broker.
    fn identifier_shared_with(&self, other: &Self) -> Option<String> {
        let place = |remote: &Remote| (remote.host.to_ascii_lowercase(), remote.port);
        if place(&self.remote) != place(&other.remote) {
            return None;
        }
        let theirs: HashSet<String> =
            (0..other.connections).map(|k| other.client_id_of(k)).collect();
        (0..self.connections).map(|k| self.client_id_of(k)).find(|id| theirs.contains(id))
    }

    /// The TLS client for the remote broker, if TLS is configured. Reads the certificate files.
    ///
    /// # Errors
    /// A certificate file cannot be read or used.
    pub fn open_tls(&self) -> Result<Option<TlsClient>, TlsError> {
        self.remote.tls.as_ref().map(TlsClient::new).transpose()
    }

    /// Warnings about messages that may come back from the remote broker: 3.1.1 cannot prevent this
    /// with every broker.
    pub fn warnings(&self) -> Vec<String> {
        if self.version.is_v5() {
            return Vec::new();
        }
        let rules = |egress: &EgressRule, ingress: &IngressRule| {
            let there = egress.image();
            egress.comes_back_by(ingress).then(|| {
                let means = match self.bridge_flag {
                    true => "a broker that does not know the bridge bit sends them back",
                    false => "they come back because `bridge_flag` is false",
                };
                format!(
                    "bridge `{}`: messages sent by egress `{}` arrive as `{there}`, which ingress \
                     `{}` subscribes to: {means}; use version 5, or topics that do not overlap",
                    self.name, egress.filter, ingress.filter
                )
            })
        };
        let all = self.egress.iter().flat_map(|e| self.ingress.iter().map(move |i| (e, i)));
        all.filter_map(|(egress, ingress)| rules(egress, ingress)).collect()
    }
}

#[cfg(test)]
mod tests;
