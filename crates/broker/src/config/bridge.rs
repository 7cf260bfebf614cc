//! Bridges: connections of the broker's own to other brokers, as they will run.

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

/// One bridge: where to, as whom, and what goes which way. Complete and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Unique; letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The other broker.
    pub remote: Remote,
    /// Protocol towards it: 3.1.1 or 5.0.
    pub version: Version,
    /// Client identifier there, or the beginning of them, see [`Self::client_id_of`].
    pub client_id: String,
    /// User name there.
    pub username: Option<String>,
    /// Password there.
    pub password: Option<Password>,
    /// Whether the other broker shall forget the session when a connection is made.
    pub clean_start: bool,
    /// Seconds that the other broker keeps a session without connection; 5.0 only.
    pub session_expiry_s: u32,
    /// Seconds of silence towards the other broker before PINGREQ; 0 = never.
    pub keep_alive_s: u16,
    /// Seconds until a connection that is not through with CONNACK is given up.
    pub connect_timeout_s: u32,
    /// Connections at once; messages of a topic always take the same one.
    pub connections: u16,
    /// Unacknowledged messages of QoS 1 and 2 per connection, either way, if the other broker
    /// allows as many.
    pub inflight: u16,
    /// Bytes of messages that may wait, over all connections.
    pub buffer_bytes_max: u64,
    /// Seconds that a message may wait; 0 = as long as it lives.
    pub buffer_ttl_s: u32,
    /// Seconds before the first attempt after a connection was lost.
    pub retry_first_s: u32,
    /// Seconds between two attempts at most; the pause doubles from the first to this.
    pub retry_longest_s: u32,
    /// Seconds without a packet from the other broker until it is asked with PINGREQ, and until
    /// the connection is given up if no answer comes; 0 = keep-alive only.
    pub health_check_s: u32,
    /// 3.1.1: tells the other broker that this is a bridge, so that it does not send back what
    /// it gets from here. Given up for a connection that is refused for it.
    pub bridge_flag: bool,
    /// Client identifier here of the other broker's own bridge to here, or the beginning of its
    /// identifiers: what it publishes does not leave by this bridge.
    pub counterpart: Option<String>,
    /// From here to there.
    pub egress: Vec<EgressRule>,
    /// From there to here.
    pub ingress: Vec<IngressRule>,
}

/// A password and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Password {
    /// Itself.
    pub secret: Secret,
    /// The file that it was read from, if it was.
    pub file: Option<std::path::PathBuf>,
}

/// What goes to the other broker, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressRule {
    /// Messages to these topics here. Filters of one bridge do not overlap.
    pub filter: TopicFilter,
    /// As what they arrive there.
    pub mapping: Mapping,
}

/// What comes from the other broker, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressRule {
    /// Messages to these topics there, perhaps shared with other subscribers. Filters of one
    /// bridge do not overlap.
    pub filter: Filter,
    /// As what they arrive here.
    pub mapping: Mapping,
}

/// What a rule makes of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Topic on the other side.
    pub topic: Template,
    /// Payload on the other side.
    pub payload: Template,
    /// `None` keeps it.
    pub qos: Option<QoS>,
    /// `None` keeps it.
    pub retain: Option<bool>,
}

impl Mapping {
    /// The QoS on the other side of a message that has `qos` on this one.
    pub fn qos(&self, qos: QoS) -> QoS {
        self.qos.unwrap_or(qos)
    }

    /// The RETAIN flag on the other side.
    pub fn retain(&self, retain: bool) -> bool {
        self.retain.unwrap_or(retain)
    }
}

impl EgressRule {
    /// A filter that matches the topics that this makes.
    fn image(&self) -> String {
        overlap::image(&self.mapping.topic, self.filter.as_str())
    }

    /// Whether what leaves by this could come back by `ingress`.
    pub(crate) fn comes_back_by(&self, ingress: &IngressRule) -> bool {
        overlap::overlap(&self.image(), ingress.filter.topic_filter().as_str())
    }
}

impl IngressRule {
    /// The QoS to subscribe with: the highest that makes a difference.
    pub fn subscription_qos(&self) -> QoS {
        self.mapping.qos.unwrap_or(QoS::ExactlyOnce)
    }
}

impl BridgeConfig {
    /// The client identifier of connection `k`, counted from 0: the configured one if there is
    /// one connection only, else `-1`, `-2` and so on behind it. Also of one that only an earlier
    /// configuration had.
    pub fn client_id_of(&self, k: u16) -> String {
        match (self.connections, k) {
            (1, 0) => self.client_id.clone(),
            _ => format!("{}-{}", self.client_id, k + 1),
        }
    }

    /// Whether this client is a connection of the other broker's own bridge to here.
    pub(crate) fn is_counterpart(&self, client_id: &str) -> bool {
        let Some(rest) = self.counterpart.as_deref().and_then(|own| client_id.strip_prefix(own))
        else {
            return false;
        };
        // As a pool of ours numbers them.
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number)
    }

    /// A client identifier that both would have at the same other broker.
    fn identifier_shared_with(&self, other: &Self) -> Option<String> {
        let place = |remote: &Remote| (remote.host.to_ascii_lowercase(), remote.port);
        if place(&self.remote) != place(&other.remote) {
            return None;
        }
        let theirs: HashSet<String> =
            (0..other.connections).map(|k| other.client_id_of(k)).collect();
        (0..self.connections).map(|k| self.client_id_of(k)).find(|id| theirs.contains(id))
    }

    /// What opens TLS to the other broker, if that is how it is reached. Reads the files.
    ///
    /// # Errors
    /// A certificate file cannot be read or used.
    pub fn open_tls(&self) -> Result<Option<TlsClient>, TlsError> {
        self.remote.tls.as_ref().map(TlsClient::new).transpose()
    }

    /// Sentences about messages that would come back from the other broker, which 3.1.1 cannot
    /// rule out for every broker.
    pub fn warnings(&self) -> Vec<String> {
        if self.version.is_v5() {
            return Vec::new();
        }
        let rules = |egress: &EgressRule, ingress: &IngressRule| {
            let there = egress.image();
            egress.comes_back_by(ingress).then(|| {
                let means = match self.bridge_flag {
                    true => "a broker that does not know bridges sends them back",
                    false => "they come back, as `bridge_flag` is false",
                };
                format!(
                    "bridge `{}`: what egress `{}` sends arrives as `{there}`, which ingress `{}` \
                     subscribes to: {means}; use version 5, or topics that do not overlap",
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
