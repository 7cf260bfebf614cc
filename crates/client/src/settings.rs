//! What a client is, and how it reaches its broker.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tacho_codec::{
    Connect, ConnectProperties, EncodeError, SubscribeOptions, Version, Will, WillProperties,
};

use crate::link::FilterSource;
use crate::message::{Message, user_properties};

/// The settings of a client.
#[derive(Clone)]
pub struct ClientSettings {
    /// The addresses of the broker, tried in this order; at least one.
    pub addresses: Vec<SocketAddr>,
    /// TLS, WebSocket, or nothing, for each connection.
    pub filter: FilterSource,
    /// Protocol version.
    pub version: Version,
    /// May be empty where the version allows it.
    pub client_id: String,
    /// Begin with a new session. With 5.0, later connections of this client resume it.
    pub clean_start: bool,
    /// Seconds that the session outlives its connection; 5.0 only.
    pub session_expiry_s: Option<u32>,
    /// 0 is off.
    pub keep_alive_s: u16,
    /// Unacknowledged messages that the broker may send; 5.0 only.
    pub receive_maximum: Option<u16>,
    /// User name.
    pub username: Option<String>,
    /// Never shown.
    pub password: Option<Vec<u8>>,
    /// Published by the broker when the connection breaks.
    pub will: Option<Message>,
    /// Seconds that the broker waits before it does; 5.0 only.
    pub will_delay_s: Option<u32>,
    /// Of CONNECT; 5.0 only.
    pub user_properties: Vec<(String, String)>,
    /// The largest packet that the broker may send, in bytes.
    pub packet_bytes_max: u32,
    /// How long a connection may take to each address, and the broker for CONNACK.
    pub timeout: Duration,
    /// Ends every wait when it becomes true.
    pub stop: Arc<AtomicBool>,
}

/// A filter to subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// A topic filter.
    pub filter: String,
    /// How to deliver.
    pub options: SubscribeOptions,
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("addresses", &self.addresses)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl ClientSettings {
    /// Appends the CONNECT of the client's first connection, or of a later one.
    pub(crate) fn write_connect(
        &self,
        is_first: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let own = user_properties(&self.user_properties)?;
        let none = Message::default();
        let will = self.will.as_ref().unwrap_or(&none);
        let of_will = user_properties(&will.properties.user_properties)?;
        let properties = &will.properties;
        let will = Will {
            topic: &will.topic,
            payload: &will.payload,
            qos: will.qos,
            retain: will.retain,
            properties: WillProperties {
                delay_s: self.will_delay_s,
                payload_format_utf8: properties.payload_format_utf8,
                message_expiry_s: properties.message_expiry_s,
                content_type: properties.content_type.as_deref(),
                response_topic: properties.response_topic.as_deref(),
                correlation_data: properties.correlation_data.as_deref(),
                user_properties: of_will.view(),
            },
        };
        let connect = Connect {
            version: self.version,
            // In 3.x it would also leave a session behind, for ever.
            clean_start: self.clean_start && (is_first || !self.version.is_v5()),
            keep_alive_s: self.keep_alive_s,
            client_id: &self.client_id,
            username: self.username.as_deref(),
            password: self.password.as_deref(),
            will: self.will.is_some().then_some(will),
            properties: ConnectProperties {
                session_expiry_s: self.session_expiry_s,
                receive_maximum: self.receive_maximum,
                user_properties: own.view(),
                ..ConnectProperties::default()
            },
        };
        connect.encode(out)
    }
}
