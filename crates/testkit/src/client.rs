//! A plain blocking client, for tests that look at packets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tacho_codec::{
    Ack, ConnAck, Connect, ConnectProperties, Direction, Packet, PacketId, Publish, QoS,
    ReasonCode, SubAck, Subscribe, SubscribeFilter, SubscribeOptions, UnsubAck, Unsubscribe,
    Version, Will, WillProperties, split_frame,
};

use crate::notation;
use crate::wait::{PATIENCE, QUIET};

pub const VERSIONS: [Version; 3] = [Version::V31, Version::V311, Version::V5];
pub const ALL_QOS: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

/// The bytes of a packet written in the notation of the codec's tests.
pub fn packet(packet: &str) -> Vec<u8> {
    notation::bytes(packet)
}

/// A CONNECT with clean start and nothing else; tests change what they are about.
pub fn connect(client_id: &str, version: Version) -> Connect<'_> {
    Connect {
        version,
        clean_start: true,
        keep_alive_s: 0,
        client_id,
        username: None,
        password: None,
        will: None,
        properties: ConnectProperties::default(),
    }
}

/// A will at QoS 0 without properties.
pub fn will<'a>(topic: &'a str, payload: &'a [u8]) -> Will<'a> {
    let (qos, retain) = (QoS::AtMostOnce, false);
    Will { topic, payload, qos, retain, properties: WillProperties::default() }
}

/// An owned copy of what arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub topic: String,
    pub payload: Vec<u8>,
    pub qos: QoS,
    pub retain: bool,
    pub dup: bool,
    pub packet_id: Option<PacketId>,
    pub subscription_ids: Vec<u32>,
    pub message_expiry_s: Option<u32>,
    pub topic_alias: Option<u16>,
    pub user_properties: Vec<(String, String)>,
    pub response_topic: Option<String>,
    pub content_type: Option<String>,
    pub correlation_data: Option<Vec<u8>>,
    pub payload_format_utf8: Option<bool>,
}

/// Nothing came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

/// One connection.
pub struct Client {
    pub stream: TcpStream,
    pub version: Version,
    buffer: Vec<u8>,
    next_id: u16,
}

impl Client {
    pub fn open(address: SocketAddr, version: Version) -> Self {
        Self::over(TcpStream::connect(address).unwrap(), version)
    }

    pub fn over(stream: TcpStream, version: Version) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, version, buffer: Vec::new(), next_id: 0 }
    }

    pub fn send(&mut self, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        packet.encode(self.version, &mut bytes).unwrap();
        self.send_raw(&bytes);
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends what the broker may refuse to read to its end.
    pub fn send_carelessly(&mut self, bytes: &[u8]) {
        self.stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a packet written in the notation of the codec's tests.
    pub fn send_notation(&mut self, packet: &str) {
        self.send_raw(&notation::bytes(packet));
    }

    /// Waits for one whole frame; `None` when the broker closed, panics when nothing comes.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        match self.frame_within(PATIENCE) {
            Ok(frame) => frame,
            Err(TimedOut) => panic!("nothing came within {PATIENCE:?}"),
        }
    }

    /// `Err` when nothing came in time, `Ok(None)` when the broker closed.
    pub fn frame_within(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, TimedOut> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(frame) = split_frame(&self.buffer, u32::MAX).unwrap() {
                let bytes = self.buffer[..frame.total_len].to_vec();
                self.buffer.drain(..bytes.len());
                return Ok(Some(bytes));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TimedOut);
            }
            self.stream.set_read_timeout(Some(left)).unwrap();
            let mut chunk = [0; 65536];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(TimedOut);
                }
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(e) => panic!("{e}"),
            }
        }
    }

    /// Whether a whole frame is there in time; it is left to be received.
    pub fn has_frame_within(&mut self, patience: Duration) -> bool {
        let frame = match self.frame_within(patience) {
            Ok(frame) => frame.expect("the broker closed"),
            Err(TimedOut) => return false,
        };
        self.buffer.splice(..0, frame);
        true
    }

    /// Acknowledges whatever is there, as far as it has come, and forgets it.
    pub fn acknowledge_what_came(&mut self) {
        while let Ok(Some(frame)) = self.frame_within(Duration::from_millis(1)) {
            let parsed = split_frame(&frame, u32::MAX).unwrap().unwrap();
            let answer = match Packet::decode(&parsed, self.version, Direction::ToClient).unwrap() {
                Packet::Publish(p) => match (p.qos, p.packet_id) {
                    (QoS::AtLeastOnce, Some(id)) => {
                        Packet::PubAck(Ack::new(id, ReasonCode::SUCCESS))
                    }
                    (QoS::ExactlyOnce, Some(id)) => {
                        Packet::PubRec(Ack::new(id, ReasonCode::SUCCESS))
                    }
                    _ => continue,
                },
                Packet::PubRel(a) => Packet::PubComp(Ack::new(a.packet_id, ReasonCode::SUCCESS)),
                _ => continue,
            };
            self.send(&answer);
        }
    }

    /// Hands the next packet to `look`.
    pub fn expect<R>(&mut self, look: impl FnOnce(&Packet<'_>) -> R) -> R {
        let bytes = self.frame().expect("the broker closed");
        let frame = split_frame(&bytes, u32::MAX).unwrap().unwrap();
        look(&Packet::decode(&frame, self.version, Direction::ToClient).unwrap())
    }

    pub fn expect_closed(&mut self) {
        assert_eq!(self.frame(), None, "the broker should have closed");
    }

    /// The reason of the DISCONNECT that must come, then the close.
    pub fn expect_disconnect(&mut self) -> ReasonCode {
        let reason = self.expect(|packet| match packet {
            Packet::Disconnect(d) => d.reason,
            other => panic!("expected DISCONNECT, got {other:?}"),
        });
        self.expect_closed();
        reason
    }

    pub fn expect_nothing(&mut self) {
        if let Ok(frame) = self.frame_within(QUIET) {
            panic!("expected nothing, got {frame:02x?}");
        }
    }

    /// Sends CONNECT; returns CONNACK's session present flag and reason.
    pub fn connect(&mut self, connect: &Connect<'_>) -> (bool, ReasonCode) {
        self.connect_with(connect, |connack| (connack.session_present, connack.reason))
    }

    pub fn connect_with<R>(
        &mut self,
        connect: &Connect<'_>,
        look: impl FnOnce(&ConnAck<'_>) -> R,
    ) -> R {
        self.send(&Packet::Connect(connect.clone()));
        self.expect(|packet| match packet {
            Packet::ConnAck(connack) => look(connack),
            other => panic!("expected CONNACK, got {other:?}"),
        })
    }

    /// The identifier that was used last.
    pub fn last_id(&self) -> u16 {
        self.next_id
    }

    pub fn id(&mut self) -> PacketId {
        self.next_id += 1;
        PacketId::new(self.next_id).unwrap()
    }

    pub fn subscribe(&mut self, filter: &str, qos: QoS) -> ReasonCode {
        let options = SubscribeOptions { qos, ..SubscribeOptions::default() };
        self.subscribe_with(filter, options, None)
    }

    pub fn subscribe_with(
        &mut self,
        filter: &str,
        options: SubscribeOptions,
        subscription_id: Option<u32>,
    ) -> ReasonCode {
        let packet_id = self.id();
        self.send(&Packet::Subscribe(Subscribe {
            packet_id,
            subscription_id,
            filters: vec![SubscribeFilter { filter, options }],
            user_properties: Default::default(),
        }));
        self.expect(|packet| match packet {
            Packet::SubAck(SubAck { packet_id: id, reasons, .. }) => {
                assert_eq!(*id, packet_id);
                reasons[0]
            }
            other => panic!("expected SUBACK, got {other:?}"),
        })
    }

    pub fn unsubscribe(&mut self, filter: &str) -> Option<ReasonCode> {
        let (packet_id, filters) = (self.id(), vec![filter]);
        let user_properties = Default::default();
        self.send(&Packet::Unsubscribe(Unsubscribe { packet_id, filters, user_properties }));
        self.expect(|packet| match packet {
            Packet::UnsubAck(UnsubAck { packet_id: id, reasons, .. }) => {
                assert_eq!(*id, packet_id);
                reasons.first().copied()
            }
            other => panic!("expected UNSUBACK, got {other:?}"),
        })
    }

    /// Subscribes without waiting for the answer.
    pub fn send_subscribe(&mut self, filter: &str, qos: QoS) {
        let options = SubscribeOptions { qos, ..SubscribeOptions::default() };
        let packet_id = self.id();
        self.send(&Packet::Subscribe(Subscribe {
            packet_id,
            subscription_id: None,
            filters: vec![SubscribeFilter { filter, options }],
            user_properties: Default::default(),
        }));
    }

    /// Unsubscribes without waiting for the answer.
    pub fn send_unsubscribe(&mut self, filter: &str) {
        let (packet_id, filters) = (self.id(), vec![filter]);
        let user_properties = Default::default();
        self.send(&Packet::Unsubscribe(Unsubscribe { packet_id, filters, user_properties }));
    }

    /// Publishes with RETAIN at QoS 0.
    pub fn send_retained(&mut self, topic: &str, payload: &[u8]) {
        let publish = Publish { topic, payload, retain: true, ..Publish::default() };
        self.send(&Packet::Publish(publish));
    }

    /// Publishes without waiting for the answer.
    pub fn send_publish(&mut self, topic: &str, payload: &[u8], qos: QoS) {
        let packet_id = (qos != QoS::AtMostOnce).then(|| self.id());
        let publish = Publish { topic, payload, qos, packet_id, ..Publish::default() };
        self.send(&Packet::Publish(publish));
    }

    /// A round trip: everything sent before was handled, and nothing came in between.
    pub fn ping(&mut self) {
        self.send(&Packet::PingReq);
        self.expect(|packet| assert!(matches!(packet, Packet::PingResp), "{packet:?}"));
    }

    /// DISCONNECT 0x00, and waits for the close.
    pub fn disconnect(mut self) {
        self.send(&Packet::Disconnect(Default::default()));
        self.expect_closed();
    }

    /// Publishes and goes through the whole handshake.
    pub fn publish(&mut self, topic: &str, payload: &[u8], qos: QoS, retain: bool) {
        let packet_id = (qos != QoS::AtMostOnce).then(|| self.id());
        let publish = Publish { topic, payload, qos, retain, packet_id, ..Publish::default() };
        self.publish_packet(&publish);
    }

    pub fn publish_packet(&mut self, publish: &Publish<'_>) {
        self.send(&Packet::Publish(*publish));
        let Some(packet_id) = publish.packet_id else { return };
        if publish.qos == QoS::AtLeastOnce {
            assert_eq!(self.expect_ack(0x40), packet_id);
        } else {
            assert_eq!(self.expect_ack(0x50), packet_id);
            self.send(&Packet::PubRel(Ack::new(packet_id, ReasonCode::SUCCESS)));
            assert_eq!(self.expect_ack(0x70), packet_id);
        }
    }

    /// Sends PUBLISH and returns the reason of the first answer, PUBACK or PUBREC.
    pub fn try_publish(&mut self, topic: &str, payload: &[u8], qos: QoS) -> ReasonCode {
        let packet_id = Some(self.id());
        let publish = Publish { topic, payload, qos, packet_id, ..Publish::default() };
        self.send(&Packet::Publish(publish));
        self.expect(|packet| match packet {
            Packet::PubAck(ack) | Packet::PubRec(ack) => {
                assert_eq!(Some(ack.packet_id), packet_id);
                ack.reason
            }
            other => panic!("expected PUBACK or PUBREC, got {other:?}"),
        })
    }

    /// Waits for an acknowledgement that starts with `first_byte`.
    pub fn expect_ack(&mut self, first_byte: u8) -> PacketId {
        let bytes = self.frame().expect("the broker closed");
        assert_eq!(bytes[0], first_byte, "{bytes:02x?}");
        PacketId::new(u16::from_be_bytes([bytes[2], bytes[3]])).unwrap()
    }

    /// Receives one message without acknowledging it.
    pub fn receive(&mut self) -> Received {
        self.expect(|packet| match packet {
            Packet::Publish(p) => received(p),
            other => panic!("expected PUBLISH, got {other:?}"),
        })
    }

    /// Waits for a PUBREL; what comes before it is left to be received.
    fn await_pubrel(&mut self, packet_id: PacketId) {
        let [high, low] = packet_id.get().to_be_bytes();
        let mut before = Vec::new();
        loop {
            let frame = self.frame().expect("the broker closed");
            if frame[0] == 0x62 && frame[2..4] == [high, low] {
                break;
            }
            before.extend(frame);
        }
        self.buffer.splice(..0, before);
    }

    /// Receives one message and goes through the whole handshake.
    pub fn receive_and_ack(&mut self) -> Received {
        let message = self.receive();
        let Some(packet_id) = message.packet_id else { return message };
        if message.qos == QoS::AtLeastOnce {
            self.send(&Packet::PubAck(Ack::new(packet_id, ReasonCode::SUCCESS)));
        } else {
            self.send(&Packet::PubRec(Ack::new(packet_id, ReasonCode::SUCCESS)));
            self.await_pubrel(packet_id);
            self.send(&Packet::PubComp(Ack::new(packet_id, ReasonCode::SUCCESS)));
        }
        message
    }
}

fn received(p: &Publish<'_>) -> Received {
    let own = |s: &str| s.to_owned();
    Received {
        topic: p.topic.to_owned(),
        payload: p.payload.to_vec(),
        qos: p.qos,
        retain: p.retain,
        dup: p.dup,
        packet_id: p.packet_id,
        subscription_ids: p.properties.subscription_ids.iter().collect(),
        message_expiry_s: p.properties.message_expiry_s,
        topic_alias: p.properties.topic_alias.map(Into::into),
        user_properties: p
            .properties
            .user_properties
            .iter()
            .map(|(k, v)| (own(k), own(v)))
            .collect(),
        response_topic: p.properties.response_topic.map(own),
        content_type: p.properties.content_type.map(own),
        correlation_data: p.properties.correlation_data.map(<[u8]>::to_vec),
        payload_format_utf8: p.properties.payload_format_utf8,
    }
}
