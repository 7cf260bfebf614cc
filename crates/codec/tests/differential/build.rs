//! Encodes our packets with `mqtt-protocol-core`.

use mqtt_protocol_core::mqtt::packet::{
    self as theirs, Properties, Property, Qos, SubEntry, SubOpts, v3_1_1, v5_0,
};
use mqtt_protocol_core::mqtt::result_code::*;
use tacho_codec::{
    Ack, Auth, ConnAck, ConnAckProperties, Connect, ConnectProperties, Disconnect, Packet, Publish,
    PublishProperties, QoS, SubscribeFilter, UserProperties, Version, WillProperties,
};

/// The bytes that `mqtt-protocol-core` encodes for our packet.
pub(crate) fn build(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    if version.is_v5() { v5(packet) } else { v311(packet) }
}

macro_rules! push {
    ($properties:ident, $property:ident, $value:expr) => {
        if let Some(value) = $value {
            let property = theirs::$property::new(value).unwrap();
            $properties.push(Property::$property(property));
        }
    };
}

fn their_qos(qos: QoS) -> Qos {
    Qos::try_from(u8::from(qos)).unwrap()
}

fn payload_format(utf8: bool) -> theirs::PayloadFormat {
    if utf8 { theirs::PayloadFormat::String } else { theirs::PayloadFormat::Binary }
}

fn push_user_properties(properties: &mut Properties, ours: UserProperties<'_>) {
    for (name, value) in ours {
        properties.push(Property::UserProperty(theirs::UserProperty::new(name, value).unwrap()));
    }
}

fn reason_properties(reason_string: Option<&str>, ours: UserProperties<'_>) -> Properties {
    let mut properties = Properties::new();
    push_user_properties(&mut properties, ours);
    push!(properties, ReasonString, reason_string);
    properties
}

fn connect_properties(ours: &ConnectProperties<'_>) -> Properties {
    let mut properties = Properties::new();
    push_user_properties(&mut properties, ours.user_properties);
    push!(properties, AuthenticationData, ours.authentication_data.map(<[u8]>::to_vec));
    push!(properties, AuthenticationMethod, ours.authentication_method);
    push!(properties, RequestProblemInformation, ours.request_problem_information.map(u8::from));
    push!(properties, RequestResponseInformation, ours.request_response_information.map(u8::from));
    push!(properties, TopicAliasMaximum, ours.topic_alias_maximum);
    push!(properties, MaximumPacketSize, ours.packet_size_max);
    push!(properties, ReceiveMaximum, ours.receive_maximum);
    push!(properties, SessionExpiryInterval, ours.session_expiry_s);
    properties
}

fn will_properties(ours: &WillProperties<'_>) -> Properties {
    let mut properties = Properties::new();
    push!(properties, CorrelationData, ours.correlation_data.map(<[u8]>::to_vec));
    push!(properties, ResponseTopic, ours.response_topic);
    push!(properties, ContentType, ours.content_type);
    push_user_properties(&mut properties, ours.user_properties);
    push!(properties, MessageExpiryInterval, ours.message_expiry_s);
    push!(properties, PayloadFormatIndicator, ours.payload_format_utf8.map(payload_format));
    push!(properties, WillDelayInterval, ours.delay_s);
    properties
}

fn connack_properties(ours: &ConnAckProperties<'_>) -> Properties {
    let mut properties = Properties::new();
    push!(properties, AuthenticationData, ours.authentication_data.map(<[u8]>::to_vec));
    push!(properties, AuthenticationMethod, ours.authentication_method);
    push!(properties, ServerReference, ours.server_reference);
    push!(properties, ResponseInformation, ours.response_information);
    push!(properties, ServerKeepAlive, ours.server_keep_alive_s);
    push!(
        properties,
        SharedSubscriptionAvailable,
        ours.shared_subscription_available.map(u8::from)
    );
    push!(
        properties,
        SubscriptionIdentifierAvailable,
        ours.subscription_id_available.map(u8::from)
    );
    push!(
        properties,
        WildcardSubscriptionAvailable,
        ours.wildcard_subscription_available.map(u8::from)
    );
    push_user_properties(&mut properties, ours.user_properties);
    push!(properties, ReasonString, ours.reason_string);
    push!(properties, TopicAliasMaximum, ours.topic_alias_maximum);
    push!(properties, AssignedClientIdentifier, ours.assigned_client_id);
    push!(properties, MaximumPacketSize, ours.packet_size_max);
    push!(properties, RetainAvailable, ours.retain_available.map(u8::from));
    push!(properties, MaximumQos, ours.maximum_qos.map(u8::from));
    push!(properties, ReceiveMaximum, ours.receive_maximum);
    push!(properties, SessionExpiryInterval, ours.session_expiry_s);
    properties
}

fn publish_properties(ours: &PublishProperties<'_>) -> Properties {
    let mut properties = Properties::new();
    push_user_properties(&mut properties, ours.user_properties);
    for subscription_id in ours.subscription_ids {
        push!(properties, SubscriptionIdentifier, Some(subscription_id));
    }
    push!(properties, ContentType, ours.content_type);
    push!(properties, CorrelationData, ours.correlation_data.map(<[u8]>::to_vec));
    push!(properties, ResponseTopic, ours.response_topic);
    push!(properties, TopicAlias, ours.topic_alias.map(u16::from));
    push!(properties, MessageExpiryInterval, ours.message_expiry_s);
    push!(properties, PayloadFormatIndicator, ours.payload_format_utf8.map(payload_format));
    properties
}

macro_rules! connect {
    ($module:ident, $connect:expr) => {{
        let connect: &Connect<'_> = $connect;
        let mut builder = $module::Connect::builder().client_id(connect.client_id).unwrap();
        builder = builder.keep_alive(connect.keep_alive_s);
        if let Some(will) = &connect.will {
            builder = builder
                .will_message(will.topic, will.payload.to_vec(), their_qos(will.qos), will.retain)
                .unwrap();
        }
        if let Some(username) = connect.username {
            builder = builder.user_name(username).unwrap();
        }
        if let Some(password) = connect.password {
            builder = builder.password(password.to_vec()).unwrap();
        }
        builder
    }};
}

macro_rules! publish {
    ($module:ident, $publish:expr) => {{
        let publish: &Publish<'_> = $publish;
        let mut builder = $module::Publish::builder()
            .qos(their_qos(publish.qos))
            .dup(publish.dup)
            .retain(publish.retain)
            .payload(publish.payload.to_vec());
        if !publish.topic.is_empty() {
            builder = builder.topic_name(publish.topic).unwrap();
        }
        if let Some(packet_id) = publish.packet_id {
            builder = builder.packet_id(packet_id.get());
        }
        builder
    }};
}

macro_rules! written {
    ($builder:expr) => {
        $builder.build().unwrap().to_continuous_buffer()
    };
}

macro_rules! ack_v5 {
    ($packet:ident, $reason:ident, $ack:expr) => {{
        let Ack { packet_id, reason, reason_string, user_properties } = *$ack;
        written!(
            v5_0::$packet::builder()
                .packet_id(packet_id.get())
                .reason_code($reason::try_from(reason.value()).unwrap())
                .props(reason_properties(reason_string, user_properties))
        )
    }};
}

fn entries(filters: &[SubscribeFilter<'_>], version: Version) -> Vec<SubEntry> {
    filters
        .iter()
        .map(|entry| {
            let options = SubOpts::from_u8(entry.options.to_u8(version)).unwrap();
            SubEntry::new(entry.filter, options).unwrap()
        })
        .collect()
}

fn v5(packet: &Packet<'_>) -> Vec<u8> {
    match packet {
        Packet::Connect(connect) => {
            let mut builder = connect!(v5_0, connect)
                .clean_start(connect.clean_start)
                .props(connect_properties(&connect.properties));
            if let Some(will) = &connect.will {
                builder = builder.will_props(will_properties(&will.properties));
            }
            written!(builder)
        }
        Packet::ConnAck(ConnAck { session_present, reason, properties }) => written!(
            v5_0::Connack::builder()
                .session_present(*session_present)
                .reason_code(ConnectReasonCode::try_from(reason.value()).unwrap())
                .props(connack_properties(properties))
        ),
        Packet::Publish(publish) => {
            written!(publish!(v5_0, publish).props(publish_properties(&publish.properties)))
        }
        Packet::PubAck(ack) => ack_v5!(Puback, PubackReasonCode, ack),
        Packet::PubRec(ack) => ack_v5!(Pubrec, PubrecReasonCode, ack),
        Packet::PubRel(ack) => ack_v5!(Pubrel, PubrelReasonCode, ack),
        Packet::PubComp(ack) => ack_v5!(Pubcomp, PubcompReasonCode, ack),
        Packet::Subscribe(subscribe) => {
            let mut properties = Properties::new();
            push_user_properties(&mut properties, subscribe.user_properties);
            push!(properties, SubscriptionIdentifier, subscribe.subscription_id);
            written!(
                v5_0::Subscribe::builder()
                    .packet_id(subscribe.packet_id.get())
                    .entries(entries(&subscribe.filters, Version::V5))
                    .props(properties)
            )
        }
        Packet::SubAck(suback) => {
            let codes = suback.reasons.iter().map(|reason| reason.value().try_into().unwrap());
            written!(
                v5_0::Suback::builder()
                    .packet_id(suback.packet_id.get())
                    .reason_codes(codes.collect())
                    .props(reason_properties(suback.reason_string, suback.user_properties))
            )
        }
        Packet::Unsubscribe(unsubscribe) => written!(
            v5_0::Unsubscribe::builder()
                .packet_id(unsubscribe.packet_id.get())
                .entries(unsubscribe.filters.iter().copied())
                .unwrap()
                .props(reason_properties(None, unsubscribe.user_properties))
        ),
        Packet::UnsubAck(unsuback) => {
            let codes = unsuback.reasons.iter().map(|reason| reason.value().try_into().unwrap());
            written!(
                v5_0::Unsuback::builder()
                    .packet_id(unsuback.packet_id.get())
                    .reason_codes(codes.collect())
                    .props(reason_properties(unsuback.reason_string, unsuback.user_properties))
            )
        }
        Packet::PingReq => written!(v5_0::Pingreq::builder()),
        Packet::PingResp => written!(v5_0::Pingresp::builder()),
        Packet::Disconnect(Disconnect {
            reason,
            session_expiry_s,
            reason_string,
            server_reference,
            user_properties,
        }) => {
            let mut properties = reason_properties(*reason_string, *user_properties);
            push!(properties, SessionExpiryInterval, *session_expiry_s);
            push!(properties, ServerReference, *server_reference);
            written!(
                v5_0::Disconnect::builder()
                    .reason_code(DisconnectReasonCode::try_from(reason.value()).unwrap())
                    .props(properties)
            )
        }
        Packet::Auth(Auth { reason, method, data, reason_string, user_properties }) => {
            let mut properties = reason_properties(*reason_string, *user_properties);
            push!(properties, AuthenticationData, data.map(<[u8]>::to_vec));
            push!(properties, AuthenticationMethod, *method);
            written!(
                v5_0::Auth::builder()
                    .reason_code(AuthReasonCode::try_from(reason.value()).unwrap())
                    .props(properties)
            )
        }
    }
}

fn v311(packet: &Packet<'_>) -> Vec<u8> {
    match packet {
        Packet::Connect(connect) => {
            written!(connect!(v3_1_1, connect).clean_session(connect.clean_start))
        }
        Packet::ConnAck(ConnAck { session_present, reason, .. }) => written!(
            v3_1_1::Connack::builder()
                .session_present(*session_present)
                .return_code(ConnectReturnCode::try_from(reason.to_connack_v3()).unwrap())
        ),
        Packet::Publish(publish) => written!(publish!(v3_1_1, publish)),
        Packet::PubAck(ack) => written!(v3_1_1::Puback::builder().packet_id(ack.packet_id.get())),
        Packet::PubRec(ack) => written!(v3_1_1::Pubrec::builder().packet_id(ack.packet_id.get())),
        Packet::PubRel(ack) => written!(v3_1_1::Pubrel::builder().packet_id(ack.packet_id.get())),
        Packet::PubComp(ack) => written!(v3_1_1::Pubcomp::builder().packet_id(ack.packet_id.get())),
        Packet::Subscribe(subscribe) => written!(
            v3_1_1::Subscribe::builder()
                .packet_id(subscribe.packet_id.get())
                .entries(entries(&subscribe.filters, Version::V311))
        ),
        Packet::SubAck(suback) => {
            let codes = suback.reasons.iter().map(|reason| reason.value().try_into().unwrap());
            written!(
                v3_1_1::Suback::builder()
                    .packet_id(suback.packet_id.get())
                    .return_codes(codes.collect())
            )
        }
        Packet::Unsubscribe(unsubscribe) => written!(
            v3_1_1::Unsubscribe::builder()
                .packet_id(unsubscribe.packet_id.get())
                .entries(unsubscribe.filters.iter().copied())
                .unwrap()
        ),
        Packet::UnsubAck(unsuback) => {
            written!(v3_1_1::Unsuback::builder().packet_id(unsuback.packet_id.get()))
        }
        Packet::PingReq => written!(v3_1_1::Pingreq::builder()),
        Packet::PingResp => written!(v3_1_1::Pingresp::builder()),
        Packet::Disconnect(_) => written!(v3_1_1::Disconnect::builder()),
        Packet::Auth(_) => unreachable!("3.1.1 has no AUTH"),
    }
}
