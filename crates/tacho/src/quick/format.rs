//! How `tacho sub` shows messages: the format of mosquitto_sub's `-F`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tacho_client::Received;
use tacho_record::Timestamp;

/// A format: text and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Field(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Topic,
    Payload,
    PayloadHex { upper: bool },
    PayloadLen,
    Qos,
    Retain,
    PacketId,
    Json { parses_payload: bool },
    IsoTime,
    UnixTime,
    ContentType,
    CorrelationData,
    ExpiryS,
    FormatIndicator,
    UserProperties,
    ResponseTopic,
    SubscriptionIds,
}

/// By the letter behind `%`.
const FIELDS: [(char, Field); 18] = [
    ('t', Field::Topic),
    ('p', Field::Payload),
    ('x', Field::PayloadHex { upper: false }),
    ('X', Field::PayloadHex { upper: true }),
    ('l', Field::PayloadLen),
    ('q', Field::Qos),
    ('r', Field::Retain),
    ('m', Field::PacketId),
    ('j', Field::Json { parses_payload: false }),
    ('J', Field::Json { parses_payload: true }),
    ('I', Field::IsoTime),
    ('U', Field::UnixTime),
    ('C', Field::ContentType),
    ('D', Field::CorrelationData),
    ('E', Field::ExpiryS),
    ('F', Field::FormatIndicator),
    ('P', Field::UserProperties),
    ('R', Field::ResponseTopic),
];
/// Identifiers of subscriptions.
const SUBSCRIPTIONS: char = 'S';

impl Format {
    /// Parses `%t %p`; `%%` is a percent sign, `\n`, `\t`, `\\` and `\0` are what they are in C.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '%' => match characters.next() {
                    Some('%') => plain.push('%'),
                    Some(letter) => {
                        let field = field(letter).ok_or_else(|| unknown(letter))?;
                        if !plain.is_empty() {
                            pieces.push(Piece::Text(std::mem::take(&mut plain)));
                        }
                        pieces.push(Piece::Field(field));
                    }
                    None => return Err("the format ends with '%': write %%".to_owned()),
                },
                '\\' => match characters.next() {
                    Some('n') => plain.push('\n'),
                    Some('t') => plain.push('\t'),
                    Some('r') => plain.push('\r'),
                    Some('0') => plain.push('\0'),
                    Some('\\') => plain.push('\\'),
                    _ => return Err("'\\' is followed by n, t, r, 0 or \\".to_owned()),
                },
                other => plain.push(other),
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }

    /// The payload, with its topic before it where that is wanted.
    pub(super) fn plain(with_topic: bool) -> Self {
        let topic = [Piece::Field(Field::Topic), Piece::Text(" ".to_owned())];
        let topic = topic.into_iter().filter(|_| with_topic);
        Self(topic.chain([Piece::Field(Field::Payload)]).collect())
    }

    /// Appends a message that arrived at `time`.
    pub(super) fn write(&self, received: &Received, time: Timestamp, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Field(Field::Payload) => out.extend_from_slice(&received.message.payload),
                Piece::Field(Field::CorrelationData) => {
                    let data = received.message.properties.correlation_data.as_deref();
                    out.extend_from_slice(data.unwrap_or_default());
                }
                Piece::Field(field) => {
                    out.extend_from_slice(field.text(received, time).as_bytes());
                }
            }
        }
    }
}

fn field(letter: char) -> Option<Field> {
    if letter == SUBSCRIPTIONS {
        return Some(Field::SubscriptionIds);
    }
    FIELDS.iter().find(|(known, _)| *known == letter).map(|(_, field)| *field)
}

fn unknown(letter: char) -> String {
    let known: Vec<String> = FIELDS.iter().map(|(letter, _)| format!("%{letter}")).collect();
    format!("there is no %{letter}; there are {}, %{SUBSCRIPTIONS} and %%", known.join(", "))
}

impl Field {
    fn text(self, received: &Received, time: Timestamp) -> String {
        let message = &received.message;
        let properties = &message.properties;
        let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
        match self {
            Self::Topic => message.topic.clone(),
            // They are bytes.
            Self::Payload | Self::CorrelationData => String::new(),
            Self::PayloadHex { upper } => hex(&message.payload, upper),
            Self::PayloadLen => message.payload.len().to_string(),
            Self::Qos => (message.qos as u8).to_string(),
            Self::Retain => u8::from(message.retain).to_string(),
            Self::PacketId => received.packet_id.map_or(0, |id| id.get()).to_string(),
            Self::Json { parses_payload } => as_json(received, time, parses_payload).to_string(),
            Self::IsoTime => time.rfc3339(),
            Self::UnixTime => {
                let unix_ns = time.unix_ns();
                format!("{}.{:09}", unix_ns / 1_000_000_000, unix_ns % 1_000_000_000)
            }
            Self::ContentType => properties.content_type.clone().unwrap_or_default(),
            Self::ExpiryS => number(properties.message_expiry_s),
            Self::FormatIndicator => number(properties.payload_format_utf8.map(u32::from)),
            Self::UserProperties => {
                let pairs = properties.user_properties.iter();
                let pairs: Vec<String> = pairs.map(|(a, b)| format!("{a}:{b}")).collect();
                pairs.join(" ")
            }
            Self::ResponseTopic => properties.response_topic.clone().unwrap_or_default(),
            Self::SubscriptionIds => {
                let ids = properties.subscription_ids.iter().map(u32::to_string);
                ids.collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// A message as JSON, with the names of mosquitto_sub. A payload that is not UTF-8 is in hex, as
/// `payload_hex`.
fn as_json(received: &Received, time: Timestamp, parses_payload: bool) -> Value {
    let message = &received.message;
    let mut all = Map::new();
    all.insert("tst".to_owned(), json!(time.rfc3339()));
    all.insert("topic".to_owned(), json!(message.topic));
    all.insert("qos".to_owned(), json!(message.qos as u8));
    all.insert("retain".to_owned(), json!(u8::from(message.retain)));
    all.insert("payloadlen".to_owned(), json!(message.payload.len()));
    if let Some(packet_id) = received.packet_id {
        all.insert("mid".to_owned(), json!(packet_id.get()));
    }
    let parsed = || serde_json::from_slice(&message.payload).ok();
    let (name, payload) = match (parses_payload.then(parsed).flatten(), &message.payload) {
        (Some(parsed), _) => ("payload", parsed),
        (None, payload) => match std::str::from_utf8(payload) {
            Ok(text) => ("payload", json!(text)),
            Err(_) => ("payload_hex", json!(hex(payload, false))),
        },
    };
    let properties = properties(received);
    if !properties.is_empty() {
        all.insert("properties".to_owned(), Value::Object(properties));
    }
    all.insert(name.to_owned(), payload);
    Value::Object(all)
}

fn properties(received: &Received) -> Map<String, Value> {
    let own = &received.message.properties;
    let pairs = own.user_properties.iter();
    let correlation = own.correlation_data.as_deref();
    let all = [
        ("payload-format-indicator", own.payload_format_utf8.map(|utf8| json!(u8::from(utf8)))),
        ("message-expiry-interval", own.message_expiry_s.map(|value| json!(value))),
        ("content-type", own.content_type.as_ref().map(|value| json!(value))),
        ("response-topic", own.response_topic.as_ref().map(|value| json!(value))),
        ("correlation-data", correlation.map(|data| json!(String::from_utf8_lossy(data)))),
        (
            "user-properties",
            (!own.user_properties.is_empty())
                .then(|| Value::Array(pairs.map(|(a, b)| json!({ a: b })).collect())),
        ),
        (
            "subscription-identifiers",
            (!own.subscription_ids.is_empty()).then(|| json!(own.subscription_ids)),
        ),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = match upper {
            true => write!(text, "{byte:02X}"),
            false => write!(text, "{byte:02x}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use tacho_client::{Message, MessageProperties};
    use tacho_codec::{PacketId, QoS};

    use super::*;

    fn shown(format: &str, payload: &[u8]) -> String {
        let received = Received {
            message: Message {
                topic: "a/b".into(),
                payload: payload.to_vec(),
                qos: QoS::AtLeastOnce,
                retain: true,
                properties: MessageProperties {
                    content_type: Some("text/plain".into()),
                    user_properties: vec![("k".into(), "v".into()), ("l".into(), "w".into())],
                    subscription_ids: vec![3, 4],
                    ..MessageProperties::default()
                },
            },
            packet_id: Some(PacketId::FIRST),
            dup: false,
        };
        let mut out = Vec::new();
        let time = Timestamp::from_unix_ns(1_700_000_000_123_456_789);
        Format::parse(format).expect(format).write(&received, time, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn fields_are_filled_in() {
        for (format, expected) in [
            ("%t %p", "a/b hi"),
            ("%q%r %l %m", "11 2 1"),
            ("%x %X", "6869 6869"),
            ("100%%\\t%C\\n", "100%\ttext/plain\n"),
            ("%P %S", "k:v l:w 3,4"),
            ("%U", "1700000000.123456789"),
            ("[%R%E%F%D]", "[]"),
        ] {
            assert_eq!(shown(format, b"hi"), expected, "{format}");
        }
        for wrong in ["%", "%z", "\\q", "\\"] {
            assert!(Format::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_has_the_payload_as_text_as_json_or_in_hex() {
        let parse = |format: &str, payload: &[u8]| -> Value {
            serde_json::from_str(&shown(format, payload)).expect("JSON")
        };
        assert_eq!(parse("%j", b"{\"a\":1}")["payload"], json!("{\"a\":1}"));
        assert_eq!(parse("%J", b"{\"a\":1}")["payload"]["a"], json!(1));
        assert_eq!(parse("%J", b"plain")["payload"], json!("plain"));
        assert_eq!(parse("%j", &[0xFF, 1])["payload_hex"], json!("ff01"));
        let all = parse("%j", b"x");
        assert_eq!(all["properties"]["user-properties"][1]["l"], json!("w"));
        assert_eq!((&all["topic"], &all["qos"]), (&json!("a/b"), &json!(1)));
    }
}
