//! A minimal broker: exact topics, the acknowledgements of QoS 1 and 2, no checks, no allocation
//! per message. The throughput of the generator against it is the generator's own limit.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use tacho_codec::{
    Ack, AckKind, ConnAck, Direction, EncodeError, Packet, PacketId, Publish, QoS, ReasonCode,
    SubAck, Version, split_frame,
};
use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, mailboxes};

/// Backlog of the listening socket.
const BACKLOG: u32 = 4096;
/// Limit on the topics of one connection.
const TOPICS_MAX: usize = 1024;
/// Limit on a packet; a larger one ends its connection.
const PACKET_SIZE_MAX: u32 = 16 << 20;

/// The state of a connection.
#[derive(Debug, Default)]
struct Peer {
    version: Option<Version>,
    /// The packet identifier last used towards it.
    last_id: u16,
    topics: Vec<Vec<u8>>,
}

/// The broker: its connections, and the subscribers of each topic.
#[derive(Debug, Default)]
pub struct NullBroker {
    peers: Vec<Peer>,
    subscribers: HashMap<Vec<u8>, Vec<ConnId>>,
}

/// Serves at `address` until the process ends, on one thread pinned to `cpu`.
///
/// # Errors
/// The address is not loopback or cannot be bound, or the event loop fails.
pub fn serve_null_broker(address: SocketAddr, cpu: Option<usize>) -> io::Result<()> {
    if !address.ip().is_loopback() {
        return Err(io::Error::other(format!("{address} is not a loopback address")));
    }
    tacho_net::raise_fd_limit()?;
    let listeners = vec![tacho_net::bind(address, BACKLOG)?];
    let mailbox = mailboxes(1).pop().ok_or_else(|| io::Error::other("no mailbox"))?;
    let config = LoopConfig { listeners, cpu, ..LoopConfig::default() };
    Loop::new(config, mailbox)?.run(&mut NullBroker::default())
}

impl NullBroker {
    fn publish(
        &mut self,
        net: &mut Net<Self>,
        conn: ConnId,
        publish: &Publish<'_>,
        version: Version,
    ) -> Result<(), EncodeError> {
        if let Some(packet_id) = publish.packet_id {
            let kind = match publish.qos {
                QoS::ExactlyOnce => AckKind::PubRec,
                _ => AckKind::PubAck,
            };
            let ack = Ack::new(packet_id, ReasonCode::SUCCESS);
            ack.encode(kind, version, net.out(conn).as_vec_mut())?;
        }
        let Some(targets) = self.subscribers.get(publish.topic.as_bytes()) else { return Ok(()) };
        for &target in targets {
            let peer = &mut self.peers[target.index()];
            peer.last_id = peer.last_id.checked_add(1).unwrap_or(1);
            let packet_id = publish.packet_id.and_then(|_| PacketId::new(peer.last_id));
            let version = peer.version.unwrap_or(version);
            let publish = Publish { packet_id, ..*publish };
            publish.encode(version, net.out(target).as_vec_mut())?;
        }
        Ok(())
    }

    fn handle(
        &mut self,
        net: &mut Net<Self>,
        conn: ConnId,
        packet: &Packet<'_>,
    ) -> Result<(), EncodeError> {
        let peer = &mut self.peers[conn.index()];
        if let Packet::Connect(connect) = packet {
            peer.version = Some(connect.version);
        }
        let version = peer.version.unwrap_or(Version::V5);
        let answer = match packet {
            Packet::Connect(_) => Packet::ConnAck(ConnAck::refusal(ReasonCode::SUCCESS)),
            Packet::Subscribe(subscribe) => {
                for filter in &subscribe.filters {
                    if peer.topics.len() < TOPICS_MAX {
                        let topic: Vec<u8> = filter.filter.into();
                        peer.topics.push(topic.clone());
                        self.subscribers.entry(topic).or_default().push(conn);
                    }
                }
                Packet::SubAck(SubAck {
                    packet_id: subscribe.packet_id,
                    reasons: vec![ReasonCode::granted(QoS::ExactlyOnce); subscribe.filters.len()],
                    reason_string: None,
                    user_properties: Default::default(),
                })
            }
            Packet::PingReq => Packet::PingResp,
            Packet::Disconnect(_) => {
                net.close(conn);
                return Ok(());
            }
            // QoS 2: PUBREL as the sender, PUBCOMP as the receiver.
            Packet::PubRec(ack) => {
                let next = Ack::new(ack.packet_id, ReasonCode::SUCCESS);
                return next.encode(AckKind::PubRel, version, net.out(conn).as_vec_mut());
            }
            Packet::PubRel(ack) => {
                let next = Ack::new(ack.packet_id, ReasonCode::SUCCESS);
                return next.encode(AckKind::PubComp, version, net.out(conn).as_vec_mut());
            }
            _ => return Ok(()),
        };
        answer.encode(version, net.out(conn).as_vec_mut())
    }

    fn forget(&mut self, conn: ConnId) {
        for topic in std::mem::take(&mut self.peers[conn.index()].topics) {
            if let Some(subscribers) = self.subscribers.get_mut(&topic) {
                subscribers.retain(|known| *known != conn);
                if subscribers.is_empty() {
                    self.subscribers.remove(&topic);
                }
            }
        }
    }
}

impl Handler for NullBroker {
    type Mail = ();
    type Shared = Vec<u8>;

    fn accepted(&mut self, _net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        if self.peers.len() <= conn.index() {
            self.peers.resize_with(conn.index() + 1, Peer::default);
        }
        self.peers[conn.index()] = Peer::default();
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let frame = match split_frame(&data[used..], PACKET_SIZE_MAX) {
                Ok(Some(frame)) => frame,
                Ok(None) => return used,
                Err(_) => {
                    net.close(conn);
                    return used;
                }
            };
            used += frame.total_len;
            let version = self.peers[conn.index()].version.unwrap_or(Version::V5);
            let done = match frame.type_number() {
                3 => Publish::decode(&frame, version, Direction::ToServer)
                    .map(|publish| self.publish(net, conn, &publish, version)),
                4 | 7 => continue,
                _ => Packet::decode(&frame, version, Direction::ToServer)
                    .map(|packet| self.handle(net, conn, &packet)),
            };
            if !matches!(done, Ok(Ok(()))) {
                net.close(conn);
                return used;
            }
        }
    }

    fn closed(&mut self, _net: &mut Net<Self>, conn: ConnId, _why: Closed) {
        self.forget(conn);
    }
}
