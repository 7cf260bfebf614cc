//! Messages, with what MQTT 5.0 says about them.

use tacho_codec::{
    EncodeError, PacketId, Publish, PublishProperties, QoS, UserPropertiesBuf, Version,
};

/// A message to publish, or one that was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Without wildcards.
    pub topic: String,
    /// Any bytes.
    pub payload: Vec<u8>,
    /// Of the publication, or of the delivery.
    pub qos: QoS,
    /// Keep it for later subscribers; of a received one: it was kept.
    pub retain: bool,
    /// Empty before 5.0.
    pub properties: MessageProperties,
}

/// The properties of a message (MQTT 5.0, 3.3.2.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageProperties {
    /// Whether the payload is declared as UTF-8 text.
    pub payload_format_utf8: Option<bool>,
    /// Seconds until it expires.
    pub message_expiry_s: Option<u32>,
    /// The topic to send a response to.
    pub response_topic: Option<String>,
    /// Identifies the request that a response belongs to.
    pub correlation_data: Option<Vec<u8>>,
    /// The content type of the payload.
    pub content_type: Option<String>,
    /// In their order.
    pub user_properties: Vec<(String, String)>,
    /// Identifiers of the subscriptions that it was received by.
    pub subscription_ids: Vec<u32>,
}

/// A message from the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// With QoS 1 and 2.
    pub packet_id: Option<PacketId>,
    /// It may have come before.
    pub dup: bool,
}

impl MessageProperties {
    /// Whether there are any that a publisher can give.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Message {
    /// Appends its PUBLISH.
    pub(crate) fn encode(
        &self,
        version: Version,
        (packet_id, dup): (Option<PacketId>, bool),
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let own = &self.properties;
        let user_properties = user_properties(&own.user_properties)?;
        let properties = PublishProperties {
            payload_format_utf8: own.payload_format_utf8,
            message_expiry_s: own.message_expiry_s,
            response_topic: own.response_topic.as_deref(),
            correlation_data: own.correlation_data.as_deref(),
            content_type: own.content_type.as_deref(),
            user_properties: user_properties.view(),
            ..PublishProperties::default()
        };
        let (topic, payload) = (&*self.topic, &*self.payload);
        let (qos, retain) = (self.qos, self.retain);
        Publish { dup, qos, retain, topic, packet_id, properties, payload }.encode(version, out)
    }

    /// Of a PUBLISH whose topic is `topic`.
    pub(crate) fn of(publish: &Publish<'_>, topic: &str) -> Self {
        let properties = &publish.properties;
        let pairs = properties.user_properties.iter();
        Self {
            topic: topic.to_owned(),
            payload: publish.payload.to_vec(),
            qos: publish.qos,
            retain: publish.retain,
            properties: MessageProperties {
                payload_format_utf8: properties.payload_format_utf8,
                message_expiry_s: properties.message_expiry_s,
                response_topic: properties.response_topic.map(str::to_owned),
                correlation_data: properties.correlation_data.map(<[u8]>::to_vec),
                content_type: properties.content_type.map(str::to_owned),
                user_properties: pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect(),
                subscription_ids: properties.subscription_ids.iter().collect(),
            },
        }
    }
}

/// Pairs in the form of the codec.
pub(crate) fn user_properties(
    pairs: &[(String, String)],
) -> Result<UserPropertiesBuf, EncodeError> {
    let mut buffer = UserPropertiesBuf::new();
    for (name, value) in pairs {
        buffer.push(name, value)?;
    }
    Ok(buffer)
}
