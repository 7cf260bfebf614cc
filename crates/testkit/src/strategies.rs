//! Arbitrary legal packets. Their texts are leaked, which short tests can afford.

use std::num::NonZeroU16;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use tacho_codec::{
    Ack, AckKind, Auth, ConnAck, ConnAckProperties, Connect, ConnectProperties, Direction,
    Disconnect, Packet, PacketId, Publish, PublishProperties, QoS, ReasonCode, RetainHandling,
    SubAck, Subscribe, SubscribeFilter, SubscribeOptions, SubscriptionIds, SubscriptionIdsBuf,
    UnsubAck, Unsubscribe, UserProperties, UserPropertiesBuf, VARINT_MAX, Version, Will,
    WillProperties,
};

fn leak(text: String) -> &'static str {
    text.leak()
}

/// Text without control characters.
pub fn text() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => "\\PC{0,12}", 1 => "[a-z]{120,140}"].prop_map(leak)
}

pub fn data() -> impl Strategy<Value = &'static [u8]> {
    vec(any::<u8>(), 0..40).prop_map(|bytes| &*bytes.leak())
}

pub fn topic() -> impl Strategy<Value = &'static str> {
    "[a-zA-Z0-9/$ éß€😀]{1,24}".prop_map(leak)
}

fn filter() -> impl Strategy<Value = &'static str> {
    "[a-z/+#é$]{1,16}".prop_map(leak)
}

pub fn packet_id() -> impl Strategy<Value = PacketId> {
    any::<NonZeroU16>().prop_map(PacketId::from)
}

pub fn qos() -> impl Strategy<Value = QoS> {
    proptest::sample::select(&QoS::ALL)
}

pub fn version() -> impl Strategy<Value = Version> {
    proptest::sample::select(&Version::ALL)
}

pub fn user_properties() -> impl Strategy<Value = UserProperties<'static>> {
    vec((text(), text()), 0..4).prop_map(|pairs| {
        let mut buf = UserPropertiesBuf::new();
        for (name, value) in pairs {
            buf.push(name, value).unwrap();
        }
        Box::leak(Box::new(buf)).view()
    })
}

fn subscription_ids() -> impl Strategy<Value = SubscriptionIds<'static>> {
    vec(1..=VARINT_MAX, 0..4).prop_map(|ids| {
        let mut buf = SubscriptionIdsBuf::new();
        for id in ids {
            buf.push(id).unwrap();
        }
        Box::leak(Box::new(buf)).view()
    })
}

fn code(values: &'static [u8]) -> impl Strategy<Value = ReasonCode> {
    proptest::sample::select(values).prop_map(|value| ReasonCode::from_u8(value).unwrap())
}

prop_compose! {
    fn will_properties()(
        delay_s in of(any::<u32>()),
        payload_format_utf8 in of(any::<bool>()),
        message_expiry_s in of(any::<u32>()),
        content_type in of(text()),
        response_topic in of(topic()),
        correlation_data in of(data()),
        user_properties in user_properties(),
    ) -> WillProperties<'static> {
        WillProperties {
            delay_s, payload_format_utf8, message_expiry_s, content_type, response_topic,
            correlation_data, user_properties,
        }
    }
}

prop_compose! {
    fn will(version: Version)(
        topic in topic(),
        payload in data(),
        qos in qos(),
        retain in any::<bool>(),
        properties in will_properties(),
    ) -> Will<'static> {
        let properties = if version.is_v5() { properties } else { WillProperties::default() };
        Will { topic, payload, qos, retain, properties }
    }
}

prop_compose! {
    fn connect_properties()(
        session_expiry_s in of(any::<u32>()),
        receive_maximum in of(1..=u16::MAX),
        packet_size_max in of(1..=u32::MAX),
        topic_alias_maximum in of(any::<u16>()),
        request_response_information in of(any::<bool>()),
        request_problem_information in of(any::<bool>()),
        authentication in of((text(), of(data()))),
        user_properties in user_properties(),
    ) -> ConnectProperties<'static> {
        ConnectProperties {
            session_expiry_s, receive_maximum, packet_size_max, topic_alias_maximum,
            request_response_information, request_problem_information,
            authentication_method: authentication.map(|(method, _)| method),
            authentication_data: authentication.and_then(|(_, data)| data),
            user_properties,
        }
    }
}

prop_compose! {
    fn connect(version: Version)(
        clean_start in any::<bool>(),
        keep_alive_s in any::<u16>(),
        client_id in topic(),
        no_client_id in any::<bool>(),
        username in of(text()),
        password in of(data()),
        will in of(will(version)),
        properties in connect_properties(),
    ) -> Packet<'static> {
        let may_be_empty = version.is_v5() || (version == Version::V311 && clean_start);
        Packet::Connect(Connect {
            version,
            clean_start,
            keep_alive_s,
            client_id: if no_client_id && may_be_empty { "" } else { client_id },
            username,
            password: password.filter(|_| version.is_v5() || username.is_some()),
            will,
            properties: if version.is_v5() { properties } else { ConnectProperties::default() },
        })
    }
}

prop_compose! {
    fn connack_properties()(
        numbers in (
            of(any::<u32>()), of(1..=u16::MAX), of(1..=u32::MAX), of(any::<u16>()),
            of(any::<u16>()), of(proptest::sample::select(&[QoS::AtMostOnce, QoS::AtLeastOnce])),
        ),
        flags in (of(any::<bool>()), of(any::<bool>()), of(any::<bool>()), of(any::<bool>())),
        texts in (of(text()), of(text()), of(text()), of(text())),
        authentication in of((text(), of(data()))),
        user_properties in user_properties(),
    ) -> ConnAckProperties<'static> {
        ConnAckProperties {
            session_expiry_s: numbers.0,
            receive_maximum: numbers.1,
            packet_size_max: numbers.2,
            topic_alias_maximum: numbers.3,
            server_keep_alive_s: numbers.4,
            maximum_qos: numbers.5,
            retain_available: flags.0,
            wildcard_subscription_available: flags.1,
            subscription_id_available: flags.2,
            shared_subscription_available: flags.3,
            assigned_client_id: texts.0,
            reason_string: texts.1,
            response_information: texts.2,
            server_reference: texts.3,
            authentication_method: authentication.map(|(method, _)| method),
            authentication_data: authentication.and_then(|(_, data)| data),
            user_properties,
        }
    }
}

prop_compose! {
    fn connack(version: Version)(
        session_present in any::<bool>(),
        reason in code(if version.is_v5() {
            &[0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90,
              0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F]
        } else {
            &[0x00, 0x84, 0x85, 0x86, 0x87, 0x88]
        }),
        properties in connack_properties(),
    ) -> Packet<'static> {
        Packet::ConnAck(ConnAck {
            session_present: session_present && !reason.is_error() && version != Version::V31,
            reason,
            properties: if version.is_v5() { properties } else { ConnAckProperties::default() },
        })
    }
}

prop_compose! {
    fn publish_properties(direction: Direction)(
        payload_format_utf8 in of(any::<bool>()),
        message_expiry_s in of(any::<u32>()),
        topic_alias in of(any::<NonZeroU16>()),
        response_topic in of(topic()),
        correlation_data in of(data()),
        content_type in of(text()),
        subscription_ids in subscription_ids(),
        user_properties in user_properties(),
    ) -> PublishProperties<'static> {
        let to_client = direction == Direction::ToClient;
        PublishProperties {
            payload_format_utf8, message_expiry_s, topic_alias, response_topic, correlation_data,
            content_type,
            subscription_ids: if to_client { subscription_ids } else { SubscriptionIds::EMPTY },
            user_properties,
        }
    }
}

prop_compose! {
    pub fn publish(version: Version, direction: Direction)(
        dup in any::<bool>(),
        qos in qos(),
        retain in any::<bool>(),
        topic in topic(),
        no_topic in any::<bool>(),
        packet_id in packet_id(),
        properties in publish_properties(direction),
        no_properties in any::<bool>(),
        payload in data(),
    ) -> Publish<'static> {
        let no_properties = no_properties || !version.is_v5();
        let properties = if no_properties { PublishProperties::default() } else { properties };
        let no_topic = no_topic && properties.topic_alias.is_some();
        Publish {
            dup: dup && qos != QoS::AtMostOnce,
            qos,
            retain,
            topic: if no_topic { "" } else { topic },
            packet_id: (qos != QoS::AtMostOnce).then_some(packet_id),
            properties,
            payload,
        }
    }
}

prop_compose! {
    fn ack(version: Version)(
        kind in proptest::sample::select(&AckKind::ALL),
        packet_id in packet_id(),
        received in code(&[0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]),
        released in code(&[0x00, 0x92]),
        reason_string in of(text()),
        user_properties in user_properties(),
    ) -> Packet<'static> {
        let reason = match kind {
            AckKind::PubAck | AckKind::PubRec => received,
            AckKind::PubRel | AckKind::PubComp => released,
        };
        let ack = if version.is_v5() {
            Ack { packet_id, reason, reason_string, user_properties }
        } else {
            Ack::new(packet_id, ReasonCode::SUCCESS)
        };
        match kind {
            AckKind::PubAck => Packet::PubAck(ack),
            AckKind::PubRec => Packet::PubRec(ack),
            AckKind::PubRel => Packet::PubRel(ack),
            AckKind::PubComp => Packet::PubComp(ack),
        }
    }
}

prop_compose! {
    fn subscribe_filter(version: Version)(
        filter in filter(),
        qos in qos(),
        no_local in any::<bool>(),
        retain_as_published in any::<bool>(),
        retain_handling in proptest::sample::select(
            &[RetainHandling::Always, RetainHandling::IfNew, RetainHandling::Never]
        ),
    ) -> SubscribeFilter<'static> {
        let options = if version.is_v5() {
            SubscribeOptions { qos, no_local, retain_as_published, retain_handling }
        } else {
            SubscribeOptions::new(qos)
        };
        SubscribeFilter { filter, options }
    }
}

prop_compose! {
    fn subscribe(version: Version)(
        packet_id in packet_id(),
        subscription_id in of(1..=VARINT_MAX),
        user_properties in user_properties(),
        filters in vec(subscribe_filter(version), 1..5),
    ) -> Packet<'static> {
        let is_v5 = version.is_v5();
        Packet::Subscribe(Subscribe {
            packet_id,
            subscription_id: subscription_id.filter(|_| is_v5),
            user_properties: if is_v5 { user_properties } else { UserProperties::EMPTY },
            filters,
        })
    }
}

prop_compose! {
    fn suback(version: Version)(
        packet_id in packet_id(),
        reasons in vec(code(if version.is_v5() {
            &[0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2]
        } else {
            &[0, 1, 2, 0x80]
        }), 1..6),
        reason_string in of(text()),
        user_properties in user_properties(),
    ) -> Packet<'static> {
        let is_v5 = version.is_v5();
        Packet::SubAck(SubAck {
            packet_id,
            reasons,
            reason_string: reason_string.filter(|_| is_v5),
            user_properties: if is_v5 { user_properties } else { UserProperties::EMPTY },
        })
    }
}

prop_compose! {
    fn unsubscribe(version: Version)(
        packet_id in packet_id(),
        user_properties in user_properties(),
        filters in vec(filter(), 1..5),
    ) -> Packet<'static> {
        let is_v5 = version.is_v5();
        let user_properties = if is_v5 { user_properties } else { UserProperties::EMPTY };
        Packet::Unsubscribe(Unsubscribe { packet_id, user_properties, filters })
    }
}

prop_compose! {
    fn unsuback(version: Version)(
        packet_id in packet_id(),
        reasons in vec(code(&[0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91]), 1..6),
        reason_string in of(text()),
        user_properties in user_properties(),
    ) -> Packet<'static> {
        let is_v5 = version.is_v5();
        Packet::UnsubAck(UnsubAck {
            packet_id,
            reasons: if is_v5 { reasons } else { Vec::new() },
            reason_string: reason_string.filter(|_| is_v5),
            user_properties: if is_v5 { user_properties } else { UserProperties::EMPTY },
        })
    }
}

prop_compose! {
    fn disconnect(version: Version, direction: Direction)(
        reason in code(match direction {
            Direction::ToServer => {
                &[0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x97, 0x98, 0x99]
            }
            Direction::ToClient => {
                &[0x00, 0x80, 0x82, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x93, 0x97, 0x9D, 0xA2]
            }
        }),
        session_expiry_s in of(any::<u32>()),
        reason_string in of(text()),
        server_reference in of(text()),
        user_properties in user_properties(),
    ) -> Packet<'static> {
        let to_server = direction == Direction::ToServer;
        Packet::Disconnect(if version.is_v5() {
            Disconnect {
                reason,
                session_expiry_s: session_expiry_s.filter(|_| to_server),
                reason_string,
                server_reference: server_reference.filter(|_| !to_server),
                user_properties,
            }
        } else {
            Disconnect::default()
        })
    }
}

prop_compose! {
    fn auth(direction: Direction)(
        reason in code(match direction {
            Direction::ToServer => &[0x18, 0x19],
            Direction::ToClient => &[0x00, 0x18],
        }),
        method in text(),
        data in of(data()),
        reason_string in of(text()),
        user_properties in user_properties(),
    ) -> Packet<'static> {
        Packet::Auth(Auth { reason, method: Some(method), data, reason_string, user_properties })
    }
}

/// A packet that may travel in this direction in this version.
pub fn packet(version: Version, direction: Direction) -> BoxedStrategy<Packet<'static>> {
    let both = prop_oneof![
        2 => publish(version, direction).prop_map(Packet::Publish),
        1 => ack(version),
    ];
    match direction {
        Direction::ToServer => {
            let to_server = prop_oneof![
                3 => both,
                1 => connect(version),
                1 => subscribe(version),
                1 => unsubscribe(version),
                1 => disconnect(version, direction),
                1 => Just(Packet::PingReq),
            ];
            if version.is_v5() {
                prop_oneof![8 => to_server, 1 => auth(direction)].boxed()
            } else {
                to_server.boxed()
            }
        }
        Direction::ToClient => {
            let to_client = prop_oneof![
                3 => both,
                1 => connack(version),
                1 => suback(version),
                1 => unsuback(version),
                1 => Just(Packet::PingResp),
            ];
            if version.is_v5() {
                let disconnect = disconnect(version, direction);
                prop_oneof![8 => to_client, 1 => auth(direction), 1 => disconnect].boxed()
            } else {
                to_client.boxed()
            }
        }
    }
}

/// A packet with the version and direction that it belongs to.
pub fn any_packet() -> impl Strategy<Value = (Version, Direction, Packet<'static>)> {
    let direction = prop_oneof![Just(Direction::ToServer), Just(Direction::ToClient)];
    (version(), direction).prop_flat_map(|(version, direction)| {
        packet(version, direction).prop_map(move |packet| (version, direction, packet))
    })
}
