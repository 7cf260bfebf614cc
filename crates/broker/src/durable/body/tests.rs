use super::*;
use crate::keys::{ClientKey, TenantId};
use crate::message::Intake;

const NOW_NS: u64 = 5_000_000_000;

fn wall() -> WallClock {
    WallClock::new(NOW_NS, 1_800_000_000_000_000_000)
}

fn id() -> MessageId {
    MessageId::new(77).expect("not zero")
}

fn source() -> Source {
    Source::for_client(&ClientKey { tenant: TenantId::DEFAULT, client_id: "grün".into() })
}

fn received(publish: &Publish<'_>) -> Message {
    received_from(None, publish)
}

fn received_from(user: Option<&Arc<str>>, publish: &Publish<'_>) -> Message {
    let source = source();
    let intake = Intake { now_ns: NOW_NS, routed_version: 4, source, retained_version: 0, user };
    Message::from_publish(publish.topic.into(), publish, intake)
}

/// The bytes that the journal returns after a restart.
fn stored(message: &Message) -> Vec<u8> {
    let mut bytes = vec![9; 3];
    encode_head(message, wall(), &mut bytes);
    bytes.extend_from_slice(message.payload());
    bytes
}

fn assert_same(message: &Message, again: &Message, now_ns: u64) {
    assert_eq!(again.as_publish(now_ns), message.as_publish(now_ns));
    assert_eq!(again.header().source, message.header().source);
    assert_eq!(again.header().user, message.header().user);
    assert_eq!(again.header().expires_at_ns, message.header().expires_at_ns);
    assert_eq!(again.size_bytes(), message.size_bytes());
}

#[test]
fn messages_round_trip() {
    let mut user = UserPropertiesBuf::default();
    user.push("name", "value").unwrap();
    user.push("name", "").unwrap();
    let rich = PublishProperties {
        payload_format_utf8: Some(true),
        message_expiry_s: Some(60),
        response_topic: Some("answers/here"),
        correlation_data: Some(b"\0\xff"),
        content_type: Some("text/plain"),
        user_properties: user.view(),
        ..PublishProperties::default()
    };
    let plain = PublishProperties::default();
    let binary = PublishProperties { payload_format_utf8: Some(false), ..plain };
    let some = PublishProperties { content_type: Some(""), user_properties: user.view(), ..plain };
    for properties in [plain, rich, binary, some] {
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
            for (topic, payload) in [("a", &b""[..]), ("building/7/größe", &[7; 5_000])] {
                let retain = payload.is_empty();
                let publish =
                    Publish { topic, qos, retain, payload, properties, ..Publish::default() };
                for user in [None, Some("änn".into()), Some("".into())] {
                    let message = received_from(user.as_ref(), &publish);
                    let bytes = stored(&message);
                    let again = decode(&bytes, wall(), id()).expect("it was encoded");
                    assert_same(&message, &again, NOW_NS + 1_000_000_000);
                    assert_eq!(again.header().user, user);
                    assert_eq!(again.stored(), Some(id()));
                    assert_eq!(message.stored(), None);
                    // Nothing that was cut off in front of the payload is taken for a message.
                    for len in 0..bytes.len() - payload.len() {
                        assert!(decode(&bytes[..len], wall(), id()).is_none(), "{len}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_expiry_goes_on_while_the_broker_is_off() {
    let properties = PublishProperties { message_expiry_s: Some(60), ..Default::default() };
    let message = received(&Publish { topic: "t", properties, ..Publish::default() });
    let bytes = stored(&message);
    // Started again 20 s later, with another clock of its loops.
    let later = WallClock::new(9_000_000_000_000, 1_800_000_020_000_000_000);
    let again = decode(&bytes, later, id()).expect("it was encoded");
    assert_eq!(again.as_publish(9_000_000_000_000).properties.message_expiry_s, Some(40));
    assert!(!again.is_expired(9_000_000_000_000));
    // And 70 s later it has expired.
    let later = WallClock::new(1_000_000_000_000, 1_800_000_070_000_000_000);
    assert!(decode(&bytes, later, id()).expect("it was encoded").is_expired(1_000_000_000_000));
}

#[test]
fn the_expiry_of_a_will_begins_when_it_is_published() {
    let properties =
        tacho_codec::WillProperties { message_expiry_s: Some(9), ..Default::default() };
    let will = tacho_codec::Will {
        qos: QoS::AtLeastOnce,
        retain: true,
        topic: "w",
        payload: b"gone",
        properties,
    };
    let user = "ann".into();
    let message = Message::from_will(&will, source(), Some(&user));
    let mut bytes = Vec::new();
    encode_head_of_will(&message, &mut bytes);
    bytes.extend_from_slice(message.payload());
    let later = WallClock::new(7_000_000_000, 1_900_000_000_000_000_000);
    let again = decode(&bytes, later, id()).expect("it was encoded");
    let intake = Intake {
        now_ns: 7_000_000_000,
        routed_version: 1,
        source: source(),
        retained_version: 0,
        user: again.header().user.as_ref(),
    };
    let published = again.will_published(intake);
    assert_eq!(published.header().user.as_deref(), Some("ann"));
    assert_eq!(published.as_publish(7_000_000_000).properties.message_expiry_s, Some(9));
    assert_eq!((published.payload(), published.header().retain), (&b"gone"[..], true));
    assert_eq!(published.stored(), None);
}

/// Written by a release that knew no users: QoS 1 and RETAIN, from `grün`.
#[test]
fn messages_without_a_user_are_anonymous() {
    let mut bytes = vec![1, 0b101];
    bytes.extend_from_slice(&source().key().to_le_bytes());
    bytes.extend_from_slice(b"\x03a/bkept");
    let message = decode(&bytes, wall(), id()).expect("an old record");
    let header = message.header();
    assert_eq!((message.topic(), message.payload()), ("a/b", &b"kept"[..]));
    assert_eq!((header.user.as_ref(), header.qos, header.retain), (None, QoS::AtLeastOnce, true));
    assert_eq!(stored(&message), bytes);
}

#[test]
fn bodies_of_an_unknown_form_are_refused() {
    for bytes in [&[][..], &[2, 0], &[3, 0], &[VERSION, 3], &[0; 40], &[VERSION; 10], &[0xff; 40]] {
        assert!(decode(bytes, wall(), id()).is_none(), "{bytes:?}");
    }
}
