//! Another broker that says what a test wants: for what real ones do seldom.

use std::net::{SocketAddr, TcpListener};

use tacho_codec::{
    Ack, ConnAck, ConnAckProperties, Direction, Packet, PacketId, Publish, QoS, ReasonCode, SubAck,
    UserProperties, Version, split_frame,
};

use tacho_testkit::Client;

pub(crate) struct Other {
    pub(crate) address: SocketAddr,
    listener: TcpListener,
}

/// What a CONNECT said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) client_id: String,
    pub(crate) clean_start: bool,
    pub(crate) says_bridge: bool,
}

/// A connection of the bridge, as the other broker has it: packets go the other way.
pub(crate) struct Link(Client);

/// A PUBLISH that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) topic: String,
    pub(crate) payload: String,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) packet_id: Option<PacketId>,
    pub(crate) alias: Option<u16>,
}

impl Other {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { address: listener.local_addr().unwrap(), listener }
    }

    /// The next connection, and what it asks for.
    pub(crate) fn accept(&self) -> (Link, Asked) {
        let (stream, _) = self.listener.accept().unwrap();
        let mut link = Link(Client::over(stream, Version::V5));
        let mut frame = link.frame().expect("CONNECT");
        // Behind the fixed header and the protocol's name.
        let level = frame.iter().skip(1).position(|byte| byte & 0x80 == 0).unwrap() + 8;
        let says_bridge = frame[level] & 0x80 != 0;
        frame[level] &= 0x7f;
        let parsed = split_frame(&frame, u32::MAX).unwrap().unwrap();
        let Packet::Connect(connect) =
            Packet::decode(&parsed, Version::V5, Direction::ToServer).unwrap()
        else {
            panic!("expected CONNECT, got {frame:02x?}");
        };
        link.0.version = connect.version;
        let asked = Asked {
            client_id: connect.client_id.to_owned(),
            clean_start: connect.clean_start,
            says_bridge,
        };
        (link, asked)
    }

    /// The next connection, accepted.
    pub(crate) fn accepted(&self, session_present: bool) -> Link {
        self.accepted_with(session_present, ConnAckProperties::default())
    }

    pub(crate) fn accepted_with(
        &self,
        session_present: bool,
        properties: ConnAckProperties<'_>,
    ) -> Link {
        let (mut link, _) = self.accept();
        link.greet(session_present, properties);
        link
    }
}

impl Link {
    pub(crate) fn greet(&mut self, session_present: bool, properties: ConnAckProperties<'_>) {
        let reason = ReasonCode::SUCCESS;
        self.send(&Packet::ConnAck(ConnAck { session_present, reason, properties }));
    }

    pub(crate) fn refuse(&mut self, reason: ReasonCode) {
        self.send(&Packet::ConnAck(ConnAck::refusal(reason)));
    }

    pub(crate) fn send(&mut self, packet: &Packet<'_>) {
        self.0.send(packet);
    }

    /// The next frame; `None` at the end.
    pub(crate) fn frame(&mut self) -> Option<Vec<u8>> {
        self.0.frame()
    }

    /// Answers each PINGREQ and nothing else, until the bridge closes the connection.
    pub(crate) fn answer_pings_only(&mut self) {
        while let Some(frame) = self.frame() {
            assert_eq!(frame, [0xc0, 0x00], "PINGREQ");
            self.0.send_carelessly(&[0xd0, 0x00]);
        }
    }

    pub(crate) fn expect_nothing(&mut self) {
        self.0.expect_nothing();
    }

    pub(crate) fn expect<R>(&mut self, look: impl FnOnce(&Packet<'_>) -> R) -> R {
        loop {
            let bytes = self.frame().expect("the bridge closed the connection");
            let frame = split_frame(&bytes, u32::MAX).unwrap().unwrap();
            let packet = Packet::decode(&frame, self.0.version, Direction::ToServer).unwrap();
            if let Packet::PingReq = packet {
                self.send(&Packet::PingResp);
                continue;
            }
            return look(&packet);
        }
    }

    pub(crate) fn publish(&mut self) -> Came {
        self.expect(|packet| match packet {
            Packet::Publish(publish) => Came {
                topic: publish.topic.to_owned(),
                payload: String::from_utf8(publish.payload.to_vec()).unwrap(),
                qos: publish.qos,
                retain: publish.retain,
                dup: publish.dup,
                packet_id: publish.packet_id,
                alias: publish.properties.topic_alias.map(u16::from),
            },
            other => panic!("expected PUBLISH, got {other:?}"),
        })
    }

    /// SUBSCRIBE with its filters, answered with `reason` for each.
    pub(crate) fn subscribe(&mut self, reason: ReasonCode) -> Vec<String> {
        let (packet_id, filters) = self.expect(|packet| match packet {
            Packet::Subscribe(subscribe) => {
                let filters = subscribe.filters.iter().map(|filter| filter.filter.to_owned());
                (subscribe.packet_id, filters.collect::<Vec<_>>())
            }
            other => panic!("expected SUBSCRIBE, got {other:?}"),
        });
        self.send(&Packet::SubAck(SubAck {
            packet_id,
            reasons: vec![reason; filters.len()],
            reason_string: None,
            user_properties: UserProperties::EMPTY,
        }));
        filters
    }

    pub(crate) fn pubrel(&mut self) -> PacketId {
        self.expect(|packet| match packet {
            Packet::PubRel(ack) => ack.packet_id,
            other => panic!("expected PUBREL, got {other:?}"),
        })
    }

    pub(crate) fn puback(&mut self, packet_id: Option<PacketId>, reason: ReasonCode) {
        self.send(&Packet::PubAck(Ack::new(packet_id.unwrap(), reason)));
    }

    pub(crate) fn pubrec(&mut self, packet_id: Option<PacketId>, reason: ReasonCode) {
        self.send(&Packet::PubRec(Ack::new(packet_id.unwrap(), reason)));
    }

    pub(crate) fn pubcomp(&mut self, packet_id: PacketId) {
        self.send(&Packet::PubComp(Ack::new(packet_id, ReasonCode::SUCCESS)));
    }

    /// Sends a message of QoS 2 and waits for its PUBREC.
    pub(crate) fn send_qos2(&mut self, topic: &str, payload: &[u8], id: u16, dup: bool) {
        let packet_id = PacketId::new(id);
        let (qos, retain) = (QoS::ExactlyOnce, false);
        let publish = Publish { topic, payload, qos, retain, dup, packet_id, ..Publish::default() };
        self.send(&Packet::Publish(publish));
        self.expect(|packet| match packet {
            Packet::PubRec(ack) => assert_eq!(Some(ack.packet_id), packet_id),
            other => panic!("expected PUBREC, got {other:?}"),
        });
    }
}
