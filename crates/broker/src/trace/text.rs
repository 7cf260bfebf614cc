//! Packets in words, for traces: without passwords and authentication data, and with nothing that
//! could steer a terminal.

use std::fmt::{Display, Write as _};

use serde::Serialize;
use tacho_codec::{
    Ack, AckKind, Auth, ConnAck, Connect, Disconnect, Packet, PacketId, PacketType, Publish,
    ReasonCode, SubAck, Subscribe, UnsubAck, Unsubscribe, UserProperties, Will,
};

use super::NAME_CHARS_MAX;

/// Of topics and other texts.
const TEXT_CHARS_MAX: usize = 1_024;
/// Filters, reasons and user properties of a packet that are shown.
const SHOWN_MAX: usize = 16;

/// How payloads are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PayloadForm {
    /// Only their lengths; the same of user properties.
    #[default]
    Off,
    /// Text as it is, other bytes as `\x1b`.
    Text,
    /// Two digits a byte.
    Hex,
}

/// The form, and after how many bytes a payload is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PayloadShape {
    pub(crate) form: PayloadForm,
    pub(crate) bytes_max: usize,
}

/// What an entry says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TraceText {
    /// The type of the packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// The payload is longer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    payload_cut: bool,
}

impl TraceText {
    /// A decision.
    pub(crate) fn of_words(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// A decision about a message of this topic.
    pub(crate) fn about(topic: &str, text: String) -> Self {
        Self { topic: Some(escaped(topic, TEXT_CHARS_MAX)), text, ..Self::default() }
    }

    /// A PUBLISH. Its topic may be another than the one in the packet, where an alias stands for
    /// it.
    pub(crate) fn of_publish(publish: &Publish<'_>, topic: &str, shape: &PayloadShape) -> Self {
        let (payload, payload_cut) = shape.payload(publish.payload);
        Self {
            packet: Some(PacketType::Publish.name()),
            payload,
            payload_cut,
            ..Self::about(topic, publish_words(publish, shape))
        }
    }

    /// An acknowledgement.
    pub(crate) fn of_ack(kind: AckKind, ack: &Ack<'_>) -> Self {
        let mut words = Words::default();
        words.field("id", Some(ack.packet_id.get()));
        words.word(ack.reason);
        Self { packet: Some(kind.packet_type().name()), ..Self::of_words(words.0) }
    }

    /// A packet; PUBLISH and its acknowledgements have functions of their own.
    pub(crate) fn of_packet(packet: &Packet<'_>, shape: &PayloadShape) -> Self {
        let of = |kind: PacketType, words: Words| Self {
            packet: Some(kind.name()),
            ..Self::of_words(words.0)
        };
        match packet {
            Packet::Connect(connect) => Self::of_connect(connect, connect.username, shape),
            Packet::ConnAck(connack) => of(PacketType::ConnAck, connack_words(connack, shape)),
            Packet::Publish(publish) => Self::of_publish(publish, publish.topic, shape),
            Packet::PubAck(ack) => Self::of_ack(AckKind::PubAck, ack),
            Packet::PubRec(ack) => Self::of_ack(AckKind::PubRec, ack),
            Packet::PubRel(ack) => Self::of_ack(AckKind::PubRel, ack),
            Packet::PubComp(ack) => Self::of_ack(AckKind::PubComp, ack),
            Packet::Subscribe(subscribe) => {
                of(PacketType::Subscribe, subscribe_words(subscribe, shape))
            }
            Packet::SubAck(SubAck { packet_id, reasons, reason_string, .. }) => {
                of(PacketType::SubAck, answer_words(*packet_id, reasons, *reason_string))
            }
            Packet::Unsubscribe(unsubscribe) => {
                of(PacketType::Unsubscribe, unsubscribe_words(unsubscribe))
            }
            Packet::UnsubAck(UnsubAck { packet_id, reasons, reason_string, .. }) => {
                of(PacketType::UnsubAck, answer_words(*packet_id, reasons, *reason_string))
            }
            Packet::PingReq => of(PacketType::PingReq, Words::default()),
            Packet::PingResp => of(PacketType::PingResp, Words::default()),
            Packet::Disconnect(disconnect) => {
                of(PacketType::Disconnect, disconnect_words(disconnect, shape))
            }
            Packet::Auth(auth) => of(PacketType::Auth, auth_words(auth)),
        }
    }

    /// A CONNECT, with the user name that may be shown: it may be a token.
    pub(crate) fn of_connect(
        connect: &Connect<'_>,
        username: Option<&str>,
        shape: &PayloadShape,
    ) -> Self {
        let words = connect_words(connect, username, shape);
        Self { packet: Some(PacketType::Connect.name()), ..Self::of_words(words.0) }
    }

    pub(super) fn bytes(&self) -> usize {
        let texts = [&self.topic, &self.payload].map(|text| text.as_ref().map_or(0, String::len));
        self.text.len() + texts[0] + texts[1]
    }
}

impl PayloadShape {
    /// A payload in this form, and whether it is longer.
    fn payload(&self, bytes: &[u8]) -> (Option<String>, bool) {
        let shown = &bytes[..bytes.len().min(self.bytes_max)];
        let is_cut = shown.len() < bytes.len();
        match self.form {
            PayloadForm::Off => (None, false),
            PayloadForm::Text => (Some(printable(shown)), is_cut),
            PayloadForm::Hex => {
                let mut digits = String::with_capacity(2 * shown.len());
                for byte in shown {
                    // Writing to a string never fails.
                    let _ = write!(digits, "{byte:02x}");
                }
                (Some(digits), is_cut)
            }
        }
    }
}

/// A text with what is not printable as escape sequences, cut.
pub(crate) fn escaped(text: &str, chars_max: usize) -> String {
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(at, _)| at);
    // Each quotation mark has a backslash of its own, which it does not need here.
    let shown = text[..end].escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
    if end < text.len() { shown + "..." } else { shown }
}

/// The same of bytes that may be no text.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&escaped(chunk.valid(), usize::MAX));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Words with spaces between them.
#[derive(Default)]
struct Words(String);

impl Words {
    fn word(&mut self, word: impl Display) {
        let space = if self.0.is_empty() { "" } else { " " };
        let _ = write!(self.0, "{space}{word}");
    }

    fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.word(name);
        }
    }

    fn field(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.word(format_args!("{name}={value}"));
        }
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        self.field(name, value.map(|value| format!("\"{}\"", escaped(value, NAME_CHARS_MAX))));
    }

    fn bytes(&mut self, name: &str, value: Option<&[u8]>) {
        self.field(name, value.map(|value| format!("({} bytes)", value.len())));
    }

    /// Applications put into them what they like: they are shown as payloads are.
    fn properties(&mut self, properties: &UserProperties<'_>, shape: &PayloadShape) {
        let count = properties.iter().count();
        if count == 0 {
            return;
        }
        if shape.form == PayloadForm::Off {
            return self.field("user_properties", Some(count));
        }
        for (name, value) in properties.iter().take(SHOWN_MAX) {
            let (name, value) = (escaped(name, NAME_CHARS_MAX), escaped(value, NAME_CHARS_MAX));
            self.word(format_args!("property=\"{name}: {value}\""));
        }
        self.more(count);
    }

    fn more(&mut self, count: usize) {
        if count > SHOWN_MAX {
            self.word(format_args!("and {} more", count - SHOWN_MAX));
        }
    }
}

fn connect_words(connect: &Connect<'_>, username: Option<&str>, shape: &PayloadShape) -> Words {
    let mut words = Words::default();
    words.word(format_args!("MQTT {}", connect.version));
    words.text("client_id", Some(connect.client_id));
    words.flag("clean_start", connect.clean_start);
    words.field("keep_alive_s", Some(connect.keep_alive_s));
    match username {
        None => words.flag("username=(not shown)", connect.username.is_some()),
        shown => words.text("username", shown),
    }
    words.flag("password=(not shown)", connect.password.is_some());
    let p = &connect.properties;
    words.field("session_expiry_s", p.session_expiry_s);
    words.field("receive_maximum", p.receive_maximum);
    words.field("packet_size_max", p.packet_size_max);
    words.field("topic_alias_maximum", p.topic_alias_maximum);
    words.text("authentication_method", p.authentication_method);
    words.bytes("authentication_data", p.authentication_data);
    words.properties(&p.user_properties, shape);
    if let Some(will) = &connect.will {
        will_words(&mut words, will, shape);
    }
    words
}

fn will_words(words: &mut Words, will: &Will<'_>, shape: &PayloadShape) {
    words.text("will", Some(will.topic));
    words.field("will_qos", Some(will.qos as u8));
    words.flag("will_retain", will.retain);
    words.field("will_delay_s", will.properties.delay_s);
    let (payload, is_cut) = shape.payload(will.payload);
    let dots = if is_cut { "..." } else { "" };
    match payload {
        None => words.bytes("will_payload", Some(will.payload)),
        Some(payload) => words.word(format_args!("will_payload=\"{payload}{dots}\"")),
    }
    words.properties(&will.properties.user_properties, shape);
}

fn connack_words(connack: &ConnAck<'_>, shape: &PayloadShape) -> Words {
    let mut words = Words::default();
    words.word(connack.reason);
    words.flag("session_present", connack.session_present);
    let p = &connack.properties;
    words.text("assigned_client_id", p.assigned_client_id);
    words.field("session_expiry_s", p.session_expiry_s);
    words.field("keep_alive_s", p.server_keep_alive_s);
    words.field("receive_maximum", p.receive_maximum);
    words.field("packet_size_max", p.packet_size_max);
    words.field("maximum_qos", p.maximum_qos.map(|qos| qos as u8));
    words.field("topic_alias_maximum", p.topic_alias_maximum);
    words.flag("retain_not_available", p.retain_available == Some(false));
    words.text("reason_string", p.reason_string);
    words.text("server_reference", p.server_reference);
    words.text("response_information", p.response_information);
    words.text("authentication_method", p.authentication_method);
    words.bytes("authentication_data", p.authentication_data);
    words.properties(&p.user_properties, shape);
    words
}

fn publish_words(publish: &Publish<'_>, shape: &PayloadShape) -> String {
    let mut words = Words::default();
    words.field("qos", Some(publish.qos as u8));
    words.field("id", publish.packet_id.map(tacho_codec::PacketId::get));
    words.flag("retain", publish.retain);
    words.flag("dup", publish.dup);
    words.word(format_args!("{} bytes", publish.payload.len()));
    let p = &publish.properties;
    words.field("topic_alias", p.topic_alias);
    words.field("expiry_s", p.message_expiry_s);
    words.text("content_type", p.content_type);
    words.text("response_topic", p.response_topic);
    words.bytes("correlation_data", p.correlation_data);
    for id in p.subscription_ids.iter().take(SHOWN_MAX) {
        words.field("subscription_id", Some(id));
    }
    words.properties(&p.user_properties, shape);
    words.0
}

fn subscribe_words(subscribe: &Subscribe<'_>, shape: &PayloadShape) -> Words {
    let mut words = Words::default();
    words.field("id", Some(subscribe.packet_id.get()));
    words.field("subscription_id", subscribe.subscription_id);
    for filter in subscribe.filters.iter().take(SHOWN_MAX) {
        words.text("filter", Some(filter.filter));
        let options = &filter.options;
        words.field("qos", Some(options.qos as u8));
        words.flag("no_local", options.no_local);
        words.flag("retain_as_published", options.retain_as_published);
    }
    words.more(subscribe.filters.len());
    words.properties(&subscribe.user_properties, shape);
    words
}

/// Of an answer with a reason code for each filter.
fn answer_words(id: PacketId, reasons: &[ReasonCode], reason_string: Option<&str>) -> Words {
    let mut words = Words::default();
    words.field("id", Some(id.get()));
    for reason in reasons.iter().take(SHOWN_MAX) {
        words.word(reason);
    }
    words.more(reasons.len());
    words.text("reason_string", reason_string);
    words
}

fn unsubscribe_words(unsubscribe: &Unsubscribe<'_>) -> Words {
    let mut words = Words::default();
    words.field("id", Some(unsubscribe.packet_id.get()));
    for filter in unsubscribe.filters.iter().take(SHOWN_MAX) {
        words.text("filter", Some(filter));
    }
    words.more(unsubscribe.filters.len());
    words
}

fn disconnect_words(disconnect: &Disconnect<'_>, shape: &PayloadShape) -> Words {
    let mut words = Words::default();
    words.word(disconnect.reason);
    words.field("session_expiry_s", disconnect.session_expiry_s);
    words.text("reason_string", disconnect.reason_string);
    words.text("server_reference", disconnect.server_reference);
    words.properties(&disconnect.user_properties, shape);
    words
}

fn auth_words(auth: &Auth<'_>) -> Words {
    let mut words = Words::default();
    words.word(auth.reason);
    words.text("method", auth.method);
    words.bytes("data", auth.data);
    words
}

#[cfg(test)]
mod tests {
    use tacho_codec::{ConnectProperties, PacketId, QoS, ReasonCode, Version};

    use super::*;

    const TEXT: PayloadShape = PayloadShape { form: PayloadForm::Text, bytes_max: 5 };

    fn connect() -> Connect<'static> {
        Connect {
            version: Version::V5,
            clean_start: true,
            keep_alive_s: 60,
            client_id: "a\u{1b}[2J\"b",
            username: Some("ann"),
            password: Some(b"hunter2"),
            will: None,
            properties: ConnectProperties {
                authentication_method: Some("SCRAM"),
                authentication_data: Some(b"proof"),
                ..ConnectProperties::default()
            },
        }
    }

    #[test]
    fn a_connect_shows_no_secrets_and_steers_no_terminal() {
        let text = TraceText::of_connect(&connect(), Some("ann"), &TEXT);
        let words = "MQTT 5.0 client_id=\"a\\u{1b}[2J\"b\" clean_start keep_alive_s=60 \
                     username=\"ann\" password=(not shown) authentication_method=\"SCRAM\" \
                     authentication_data=(5 bytes)";
        assert_eq!((text.packet, &*text.text), (Some("CONNECT"), words));
        let hidden = TraceText::of_connect(&connect(), None, &TEXT).text;
        assert!(hidden.contains("username=(not shown)") && !hidden.contains("ann"), "{hidden}");
    }

    #[test]
    fn a_payload_is_left_out_or_cut_or_hexadecimal() {
        let publish = Publish {
            qos: QoS::AtLeastOnce,
            packet_id: PacketId::new(7),
            retain: true,
            payload: b"12\n\xff56",
            ..Publish::default()
        };
        let of = |form| TraceText::of_publish(&publish, "t/\u{7}", &PayloadShape { form, ..TEXT });
        let off = of(PayloadForm::Off);
        assert_eq!((off.packet, &*off.text), (Some("PUBLISH"), "qos=1 id=7 retain 6 bytes"));
        assert_eq!(
            (off.topic.as_deref(), off.payload, off.payload_cut),
            (Some("t/\\u{7}"), None, false)
        );
        let text = of(PayloadForm::Text);
        assert_eq!((text.payload.as_deref(), text.payload_cut), (Some("12\\n\\xff5"), true));
        assert_eq!(of(PayloadForm::Hex).payload.as_deref(), Some("31320aff35"));
    }

    #[test]
    fn acknowledgements_and_long_requests_are_short() {
        let id = PacketId::new(9).expect("is no zero");
        let ack = Ack::new(id, ReasonCode::QUOTA_EXCEEDED);
        let text = TraceText::of_ack(AckKind::PubAck, &ack);
        assert_eq!(text.packet, Some("PUBACK"));
        assert!(text.text.starts_with("id=9 ") && text.text.ends_with("(0x97)"), "{}", text.text);
        let request = Unsubscribe {
            packet_id: id,
            user_properties: UserProperties::EMPTY,
            filters: vec!["a"; 20],
        };
        let text = TraceText::of_packet(&Packet::Unsubscribe(request), &TEXT).text;
        assert!(text.ends_with("filter=\"a\" and 4 more"), "{text}");
        assert_eq!(escaped(&"\u{fc}".repeat(9), 4), "\u{fc}\u{fc}\u{fc}\u{fc}...");
    }
}
