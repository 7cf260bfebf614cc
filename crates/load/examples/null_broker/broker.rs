//! The least a broker can do: exact topics, QoS 0 and 1, no checks, and no allocation per message.

use std::collections::HashMap;

use tacho_codec::{
    Ack, AckKind, ConnAck, Direction, Packet, PacketId, Publish, QoS, ReasonCode, SubAck, Version,
    split_frame,
};
use tacho_net::{Closed, ConnId, Handler, Net};

/// Version and next packet identifier of each connection, subscribers of each topic.
#[derive(Default)]
pub(crate) struct NullBroker {
    peers: Vec<(Option<Version>, u16)>,
    subscribers: HashMap<Vec<u8>, Vec<ConnId>>,
}

impl NullBroker {
    fn publish(
        &mut self,
        net: &mut Net<Self>,
        conn: ConnId,
        publish: &Publish<'_>,
        version: Version,
    ) {
        if let Some(packet_id) = publish.packet_id {
            let ack = Ack::new(packet_id, ReasonCode::SUCCESS);
            let kind = AckKind::PubAck;
            ack.encode(kind, version, net.out(conn).as_vec_mut()).expect("encodable");
        }
        let Some(targets) = self.subscribers.get(publish.topic.as_bytes()) else { return };
        for &target in targets {
            let (_, next_id) = &mut self.peers[target.index()];
            *next_id = next_id.checked_add(1).unwrap_or(1);
            let packet_id = publish.packet_id.and_then(|_| PacketId::new(*next_id));
            let publish = Publish { packet_id, ..*publish };
            publish.encode(version, net.out(target).as_vec_mut()).expect("encodable");
        }
    }

    fn handle(&mut self, net: &mut Net<Self>, conn: ConnId, packet: &Packet<'_>) {
        let version = match packet {
            Packet::Connect(connect) => connect.version,
            _ => self.peers[conn.index()].0.unwrap_or(Version::V5),
        };
        let answer = match packet {
            Packet::Connect(connect) => {
                self.peers[conn.index()].0 = Some(connect.version);
                Packet::ConnAck(ConnAck::refusal(ReasonCode::SUCCESS))
            }
            Packet::Subscribe(subscribe) => {
                for filter in &subscribe.filters {
                    self.subscribers.entry(filter.filter.into()).or_default().push(conn);
                }
                Packet::SubAck(SubAck {
                    packet_id: subscribe.packet_id,
                    reasons: vec![ReasonCode::granted(QoS::AtLeastOnce); subscribe.filters.len()],
                    reason_string: None,
                    user_properties: Default::default(),
                })
            }
            Packet::PingReq => Packet::PingResp,
            Packet::Disconnect(_) => return net.close(conn),
            _ => return,
        };
        answer.encode(version, net.out(conn).as_vec_mut()).expect("encodable");
    }
}

impl Handler for NullBroker {
    type Mail = ();
    type Shared = Vec<u8>;

    fn accepted(&mut self, _net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        if self.peers.len() <= conn.index() {
            self.peers.resize(conn.index() + 1, (None, 0));
        }
        self.peers[conn.index()] = (None, 0);
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let mut used = 0;
        while let Ok(Some(frame)) = split_frame(&data[used..], u32::MAX) {
            used += frame.total_len;
            let version = self.peers[conn.index()].0.unwrap_or(Version::V5);
            match frame.type_number() {
                3 => match Publish::decode(&frame, version, Direction::ToServer) {
                    Ok(publish) => self.publish(net, conn, &publish, version),
                    Err(_) => net.close(conn),
                },
                4 => {}
                _ => match Packet::decode(&frame, version, Direction::ToServer) {
                    Ok(packet) => self.handle(net, conn, &packet),
                    Err(_) => net.close(conn),
                },
            }
        }
        used
    }

    fn closed(&mut self, _net: &mut Net<Self>, _conn: ConnId, _why: Closed) {}
}
