//! A small broker that can lose, duplicate and reorder on purpose.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tacho_codec::{
    Ack, ConnAck, Connect, Direction, Disconnect, Packet, PacketId, Publish, PublishProperties,
    QoS, ReasonCode, SubAck, Version, split_frame,
};
use tacho_load::payload::Header;
use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, Remote, mailboxes};

/// The fault of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    Drop,
    Double,
    /// Deliver it after the next message to the same receiver.
    Swap,
    /// Change a byte.
    Damage,
    /// Close the receiver's connection instead.
    Close,
}

type Decide = Box<dyn FnMut(&Header) -> Fault + Send>;
type Hear = Box<dyn FnMut(&str, QoS) + Send>;

/// The behaviour of the broker.
pub struct Behaviour {
    pub fault: Decide,
    /// The reason in CONNACK; `None` sends no CONNACK.
    pub connack: fn(&Connect<'_>) -> Option<ReasonCode>,
    /// The reason in SUBACK, instead of the requested QoS.
    pub suback: Option<ReasonCode>,
    /// Never acknowledges a PUBLISH.
    pub mute: bool,
    /// The reason in PUBACK.
    pub puback: ReasonCode,
    /// The reason in PUBCOMP.
    pub pubcomp: ReasonCode,
    /// Messages queued for an absent session; further ones are dropped. QoS 0 is not queued.
    pub queue_max: usize,
    /// Forgets sessions when their connection ends.
    pub forgets: bool,
    /// Called with topic and QoS of every PUBLISH.
    pub hears: Hear,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            fault: Box::new(|_| Fault::None),
            connack: |_| Some(ReasonCode::SUCCESS),
            suback: None,
            mute: false,
            puback: ReasonCode::SUCCESS,
            pubcomp: ReasonCode::SUCCESS,
            queue_max: usize::MAX,
            forgets: false,
            hears: Box::new(|_, _| {}),
        }
    }
}

/// Applies `fault` to load messages only; probes are always delivered.
pub fn with_fault(mut fault: impl FnMut(&Header) -> Fault + Send + 'static) -> Behaviour {
    let fault: Decide =
        Box::new(move |header| if header.probe { Fault::None } else { fault(header) });
    Behaviour { fault, ..Behaviour::default() }
}

/// A running broker; stops when dropped.
pub struct FaultyBroker {
    pub addr: SocketAddr,
    remote: Remote<()>,
    thread: Option<JoinHandle<()>>,
}

impl FaultyBroker {
    pub fn start(behaviour: Behaviour) -> Self {
        let listener = tacho_net::bind(([127, 0, 0, 1], 0).into(), 1024).expect("bind");
        let addr = listener.local_addr().expect("address");
        let mailbox = mailboxes(1).pop().expect("one mailbox");
        let remote = mailbox.remote();
        let config = LoopConfig { listeners: vec![listener], ..LoopConfig::default() };
        let event_loop = Loop::<Responder>::new(config, mailbox).expect("loop");
        let thread = std::thread::spawn(move || {
            let mut responder = Responder {
                behaviour,
                peers: HashMap::new(),
                subscriptions: Vec::new(),
                turns: HashMap::new(),
                sessions: HashMap::new(),
                requests: HashMap::new(),
                unreleased: HashSet::new(),
            };
            event_loop.run(&mut responder).expect("loop runs");
        });
        Self { addr, remote, thread: Some(thread) }
    }
}

impl Drop for FaultyBroker {
    fn drop(&mut self) {
        self.remote.post(0, ());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the test broker does not panic");
        }
    }
}

type Message = (String, Vec<u8>, QoS);
type Request = (Option<String>, Option<Vec<u8>>);

struct Peer {
    version: Version,
    id: String,
    persistent: bool,
    will: Option<Message>,
    next_id: PacketId,
    held: Option<Message>,
    unacked: Vec<(PacketId, Message)>,
}

/// The session of an absent client.
#[derive(Default)]
struct Session {
    interests: Vec<Interest>,
    next_id: Option<PacketId>,
    queue: Vec<Message>,
}

#[derive(Clone)]
struct Interest {
    conn: ConnId,
    group: Option<String>,
    filter: String,
    qos: QoS,
}

struct Responder {
    behaviour: Behaviour,
    peers: HashMap<ConnId, Peer>,
    subscriptions: Vec<Interest>,
    turns: HashMap<String, usize>,
    sessions: HashMap<String, Session>,
    requests: HashMap<(String, Vec<u8>), Request>,
    /// Messages of QoS 2 received and not released: retransmissions are not routed again.
    unreleased: HashSet<(String, PacketId)>,
}

impl Responder {
    fn send(&mut self, net: &mut Net<Self>, conn: ConnId, packet: &Packet<'_>) {
        let version = self.peers.get(&conn).map_or(Version::V5, |peer| peer.version);
        packet.encode(version, net.out(conn).as_vec_mut()).expect("encodable");
    }

    fn route(&mut self, net: &mut Net<Self>, publish: &Publish<'_>) {
        self.keep(publish);
        let mut targets = Vec::new();
        let mut groups: HashMap<String, Vec<(ConnId, QoS)>> = HashMap::new();
        for interest in &self.subscriptions {
            if tacho_topic::matches(&interest.filter, publish.topic) {
                let target = (interest.conn, interest.qos.min(publish.qos));
                match &interest.group {
                    None => targets.push(target),
                    Some(group) => groups.entry(group.clone()).or_default().push(target),
                }
            }
        }
        for (group, members) in groups {
            let turn = self.turns.entry(group).or_default();
            targets.push(members[*turn % members.len()]);
            *turn += 1;
        }
        for (conn, qos) in targets {
            let header = Header::decode(publish.payload)
                .or_else(|| Header::find_printable(publish.payload, &mut 0));
            // Wills have no header.
            match header.map_or(Fault::None, |header| (self.behaviour.fault)(&header)) {
                Fault::Drop => {}
                Fault::None => self.deliver(net, conn, publish.topic, publish.payload, qos),
                Fault::Double => {
                    self.deliver(net, conn, publish.topic, publish.payload, qos);
                    self.deliver(net, conn, publish.topic, publish.payload, qos);
                }
                Fault::Swap => {
                    if let Some(peer) = self.peers.get_mut(&conn) {
                        peer.held = Some((publish.topic.into(), publish.payload.into(), qos));
                    }
                }
                Fault::Damage => {
                    let mut payload = publish.payload.to_vec();
                    *payload.last_mut().expect("is not empty") ^= 0x01;
                    self.deliver(net, conn, publish.topic, &payload, qos);
                }
                Fault::Close => net.abort(conn),
            }
        }
    }

    /// Queues the message for absent sessions.
    fn keep(&mut self, publish: &Publish<'_>) {
        for session in self.sessions.values_mut() {
            let interest = session
                .interests
                .iter()
                .find(|interest| tacho_topic::matches(&interest.filter, publish.topic));
            if let Some(qos) = interest.map(|interest| interest.qos.min(publish.qos))
                && qos > QoS::AtMostOnce
                && session.queue.len() < self.behaviour.queue_max
            {
                session.queue.push((publish.topic.into(), publish.payload.into(), qos));
            }
        }
    }

    fn deliver(
        &mut self,
        net: &mut Net<Self>,
        conn: ConnId,
        topic: &str,
        payload: &[u8],
        qos: QoS,
    ) {
        let Some(peer) = self.peers.get_mut(&conn) else { return };
        let packet_id = (qos != QoS::AtMostOnce).then_some(peer.next_id);
        peer.next_id = peer.next_id.next();
        let held = peer.held.take();
        if let Some(packet_id) = packet_id {
            peer.unacked.push((packet_id, (topic.into(), payload.into(), qos)));
        }
        let request = self.requests.get(&(topic.to_owned(), payload.to_owned()));
        let (response, correlation) = request.cloned().unwrap_or_default();
        let properties = PublishProperties {
            response_topic: response.as_deref(),
            correlation_data: correlation.as_deref(),
            ..PublishProperties::default()
        };
        let publish = Publish { qos, topic, packet_id, payload, properties, ..Publish::default() };
        self.send(net, conn, &Packet::Publish(publish));
        if let Some((topic, payload, qos)) = held {
            self.deliver(net, conn, &topic, &payload, qos);
        }
    }

    fn handle(&mut self, net: &mut Net<Self>, conn: ConnId, packet: &Packet<'_>) {
        let done = |packet_id| Ack::new(packet_id, ReasonCode::SUCCESS);
        match packet {
            Packet::Publish(publish) => {
                (self.behaviour.hears)(publish.topic, publish.qos);
                let PublishProperties { response_topic, correlation_data, .. } = publish.properties;
                if correlation_data.is_some() {
                    let key = (publish.topic.to_owned(), publish.payload.to_owned());
                    let response = response_topic.map(str::to_owned);
                    self.requests.insert(key, (response, correlation_data.map(<[u8]>::to_vec)));
                }
                if let Some(packet_id) = publish.packet_id.filter(|_| !self.behaviour.mute) {
                    let answer = match publish.qos {
                        QoS::ExactlyOnce => Packet::PubRec(done(packet_id)),
                        _ => Packet::PubAck(Ack::new(packet_id, self.behaviour.puback)),
                    };
                    self.send(net, conn, &answer);
                }
                let key = publish.packet_id.filter(|_| publish.qos == QoS::ExactlyOnce);
                let key =
                    key.and_then(|packet_id| Some((self.peers.get(&conn)?.id.clone(), packet_id)));
                if key.is_none_or(|key| self.unreleased.insert(key)) {
                    self.route(net, publish);
                }
            }
            Packet::PubRel(ack) => {
                if let Some(peer) = self.peers.get(&conn) {
                    self.unreleased.remove(&(peer.id.clone(), ack.packet_id));
                }
                let pubcomp = Ack::new(ack.packet_id, self.behaviour.pubcomp);
                self.send(net, conn, &Packet::PubComp(pubcomp));
            }
            Packet::PubRec(ack) => {
                self.acknowledge(conn, ack.packet_id);
                self.send(net, conn, &Packet::PubRel(done(ack.packet_id)));
            }
            Packet::PubAck(ack) => self.acknowledge(conn, ack.packet_id),
            Packet::Subscribe(subscribe) => {
                let mut reasons = Vec::new();
                for filter in &subscribe.filters {
                    let qos = filter.options.qos;
                    reasons.push(self.behaviour.suback.unwrap_or_else(|| ReasonCode::granted(qos)));
                    let shared = filter.filter.strip_prefix("$share/");
                    let (group, filter) = match shared.and_then(|rest| rest.split_once('/')) {
                        Some((group, filter)) => (Some(group.to_owned()), filter),
                        None => (None, filter.filter),
                    };
                    self.subscriptions.push(Interest { conn, group, filter: filter.into(), qos });
                }
                let suback = SubAck {
                    packet_id: subscribe.packet_id,
                    reasons,
                    reason_string: None,
                    user_properties: Default::default(),
                };
                self.send(net, conn, &Packet::SubAck(suback));
            }
            Packet::PingReq => self.send(net, conn, &Packet::PingResp),
            Packet::Disconnect(_) => {
                if let Some(peer) = self.peers.get_mut(&conn) {
                    peer.will = None;
                }
                net.close(conn);
            }
            _ => {}
        }
    }

    fn acknowledge(&mut self, conn: ConnId, packet_id: PacketId) {
        if let Some(peer) = self.peers.get_mut(&conn) {
            peer.unacked.retain(|(id, _)| *id != packet_id);
        }
    }

    /// Another connection with this client identifier is disconnected (session taken over).
    fn displace(&mut self, net: &mut Net<Self>, id: &str) {
        let old = self.peers.iter().find(|(_, peer)| peer.id == id).map(|(conn, _)| *conn);
        if let Some(old) = old {
            let reason = ReasonCode::SESSION_TAKEN_OVER;
            let farewell = Disconnect { reason, ..Disconnect::default() };
            self.send(net, old, &Packet::Disconnect(farewell));
            self.gone(net, old);
            net.close(old);
        }
    }

    /// The connection ends, and its session too unless it is persistent.
    fn gone(&mut self, net: &mut Net<Self>, conn: ConnId) {
        let Some(peer) = self.peers.remove(&conn) else { return };
        let (interests, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.subscriptions)
            .into_iter()
            .partition(|interest| interest.conn == conn);
        self.subscriptions = others;
        if peer.persistent && !self.behaviour.forgets {
            let queue = peer.unacked.into_iter().map(|(_, message)| message).collect();
            let session = Session { interests, next_id: Some(peer.next_id), queue };
            self.sessions.insert(peer.id, session);
        }
        if let Some((topic, payload, qos)) = peer.will {
            let will = Publish { qos, topic: &topic, payload: &payload, ..Publish::default() };
            self.route(net, &will);
        }
    }

    fn greet(&mut self, net: &mut Net<Self>, conn: ConnId, connect: &Connect<'_>) {
        let id = connect.client_id;
        self.displace(net, id);
        let session = self.sessions.remove(id).filter(|_| !connect.clean_start);
        if session.is_none() {
            self.unreleased.retain(|(owner, _)| owner != id);
        }
        let persistent = match connect.version.is_v5() {
            true => connect.properties.session_expiry_s.is_some(),
            false => !connect.clean_start,
        };
        let will = connect.will.map(|will| (will.topic.into(), will.payload.into(), will.qos));
        let next_id = session.as_ref().and_then(|session| session.next_id);
        let peer = Peer {
            version: connect.version,
            id: id.into(),
            persistent,
            will,
            next_id: next_id.unwrap_or(PacketId::FIRST),
            held: None,
            unacked: Vec::new(),
        };
        self.peers.insert(conn, peer);
        let Some(reason) = (self.behaviour.connack)(connect) else { return };
        let session_present = session.is_some();
        self.send(
            net,
            conn,
            &Packet::ConnAck(ConnAck { session_present, ..ConnAck::refusal(reason) }),
        );
        if let Some(session) = session {
            let interests = session.interests.into_iter();
            self.subscriptions.extend(interests.map(|interest| Interest { conn, ..interest }));
            for (topic, payload, qos) in session.queue {
                self.deliver(net, conn, &topic, &payload, qos);
            }
        }
        if reason.is_error() {
            net.close(conn);
        }
    }
}

impl Handler for Responder {
    type Mail = ();
    type Shared = Vec<u8>;

    fn accepted(&mut self, _net: &mut Net<Self>, _conn: ConnId, _listener: usize) {}

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let mut used = 0;
        while let Some(frame) = split_frame(&data[used..], u32::MAX).expect("frames") {
            used += frame.total_len;
            let version = self.peers.get(&conn).map_or(Version::V5, |peer| peer.version);
            let packet = Packet::decode(&frame, version, Direction::ToServer).expect("packets");
            match packet {
                Packet::Connect(connect) => self.greet(net, conn, &connect),
                other => self.handle(net, conn, &other),
            }
        }
        used
    }

    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, _why: Closed) {
        self.gone(net, conn);
    }

    fn mail(&mut self, net: &mut Net<Self>, _from: usize, _mail: ()) {
        net.stop();
    }
}
