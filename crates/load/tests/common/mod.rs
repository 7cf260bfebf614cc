//! A small test broker that can lose, duplicate and reorder on purpose, and plans for it.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use tacho_codec::{
    Ack, ConnAck, Connect, Direction, Disconnect, Packet, PacketId, Publish, PublishProperties,
    QoS, ReasonCode, SubAck, Version, split_frame,
};
use tacho_load::payload::Header;
use tacho_load::{
    CatchUp, Client, Counters, Engine, Event, Failure, Group, IntervalSnapshot, Pace, Payload,
    Phase, PhaseKind, PhasePolicy, Plan, PublishBlock, Rate, Scale, Stream, Subscription, Summary,
    Totals,
};
use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, Remote, mailboxes};

/// The fault of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
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
pub(crate) struct Behaviour {
    pub(crate) fault: Decide,
    /// The reason in CONNACK; `None` sends no CONNACK.
    pub(crate) connack: fn(&str) -> Option<ReasonCode>,
    /// The reason in SUBACK, instead of the requested QoS.
    pub(crate) suback: Option<ReasonCode>,
    /// Never acknowledges a PUBLISH.
    pub(crate) mute: bool,
    /// The reason in PUBACK.
    pub(crate) puback: ReasonCode,
    /// The reason in PUBCOMP.
    pub(crate) pubcomp: ReasonCode,
    /// Messages queued for an absent session; further ones are dropped. QoS 0 is not queued.
    pub(crate) queue_max: usize,
    /// Forgets sessions when their connection ends.
    pub(crate) forgets: bool,
    /// Called with topic and QoS of every PUBLISH.
    pub(crate) hears: Hear,
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
pub(crate) fn with_fault(mut fault: impl FnMut(&Header) -> Fault + Send + 'static) -> Behaviour {
    let fault: Decide =
        Box::new(move |header| if header.probe { Fault::None } else { fault(header) });
    Behaviour { fault, ..Behaviour::default() }
}

/// A running broker; stops when dropped.
pub(crate) struct Broker {
    pub(crate) addr: SocketAddr,
    remote: Remote<()>,
    thread: Option<JoinHandle<()>>,
}

impl Broker {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
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

impl Drop for Broker {
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
        let Some(reason) = (self.behaviour.connack)(id) else { return };
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

/// A plan of one publish block: `publishers` streams to topics `t/0..`, paced by `pace`.
pub(crate) struct Scene {
    pub(crate) publishers: usize,
    pub(crate) filters: Vec<String>,
    pub(crate) publish_qos: QoS,
    pub(crate) subscribe_qos: QoS,
    pub(crate) pace: Pace,
    pub(crate) version: Version,
    pub(crate) threads: usize,
    pub(crate) payload: Payload,
    pub(crate) inflight_max: u16,
    pub(crate) warm_up_ms: u64,
    pub(crate) measure_ms: u64,
    pub(crate) drain_ms: u64,
}

pub(crate) const fn open(per_second: u64) -> Pace {
    Pace::Open {
        rate: Rate { messages: per_second, per_ns: 1_000_000_000 },
        phase: PhasePolicy::Uniform,
        catch_up: CatchUp::CatchUp,
    }
}

impl Scene {
    /// `pairs` publishers at 100 messages per second with a subscriber each.
    pub(crate) fn pairs(pairs: usize, qos: QoS) -> Self {
        Self {
            publishers: pairs,
            filters: (0..pairs).map(|i| format!("t/{i}")).collect(),
            publish_qos: qos,
            subscribe_qos: QoS::ExactlyOnce,
            pace: open(100),
            version: Version::V5,
            threads: 1,
            payload: Payload::Random { bytes: 128 },
            inflight_max: 100,
            warm_up_ms: 200,
            measure_ms: 1_000,
            // The drain ends as soon as everything has arrived; busy machines need time.
            drain_ms: 60_000,
        }
    }

    pub(crate) fn plan(&self, target: SocketAddr) -> Plan {
        let stream = |i: usize| Stream::new(format!("t/{i}"), 0);
        let publishers = (0..self.publishers)
            .map(|i| Client {
                id: format!("pub-{i}"),
                streams: vec![stream(i)],
                ..Client::default()
            })
            .collect();
        let subscribers = (0..)
            .zip(&self.filters)
            .map(|(i, filter): (usize, _)| Client {
                id: format!("sub-{i}"),
                subscriptions: vec![Subscription::new(filter, self.subscribe_qos)],
                ..Client::default()
            })
            .collect();
        let group = |name: &str, publish: Vec<PublishBlock>, clients: Vec<Client>| Group {
            name: name.into(),
            version: self.version,
            inflight_max: self.inflight_max,
            publish,
            clients,
            ..Group::default()
        };
        let block = PublishBlock {
            qos: self.publish_qos,
            retain: false,
            payload: self.payload.clone(),
            pace: self.pace.clone(),
        };
        let ms = 1_000_000;
        let mut plan = Plan {
            run_id: 0x00AB_CDEF,
            seed: 42,
            threads: self.threads,
            targets: vec![target.into()],
            groups: vec![
                group("publishers", vec![block], publishers),
                group("subscribers", Vec::new(), subscribers),
            ],
            phases: vec![
                Phase::Connect { timeout_ns: 60_000 * ms },
                Phase::Subscribe { timeout_ns: 60_000 * ms },
                Phase::Probe { timeout_ns: 60_000 * ms },
                Phase::WarmUp { duration_ns: self.warm_up_ms * ms, scale: Scale::ONE },
                Phase::Measure { duration_ns: self.measure_ms * ms, scale: Scale::ONE },
                Phase::Drain { timeout_ns: self.drain_ms * ms },
                Phase::Disconnect,
            ],
            ..Plan::default()
        };
        plan.routes = plan.derive_routes();
        plan
    }
}

/// The reports of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) phases: Vec<&'static str>,
    pub(crate) intervals: Vec<IntervalSnapshot>,
    pub(crate) failures: Vec<(u32, Failure)>,
    pub(crate) interruptions: Vec<(u32, Failure)>,
    /// Started actions, with their affected clients.
    pub(crate) acted: Vec<(usize, u64)>,
    pub(crate) totals: Vec<Totals>,
    pub(crate) summary: Summary,
}

impl Outcome {
    pub(crate) fn only(&self) -> &Totals {
        assert_eq!(self.totals.len(), 1, "{self:?}");
        &self.totals[0]
    }

    /// Sum of all counters of a run without warm-up. Counters go by the time of the event: on a
    /// busy machine the last messages of the window are sent, or acknowledged, only during the
    /// drain.
    pub(crate) fn counted(&self) -> Counters {
        let (mut window, mut all) = (Counters::default(), Counters::default());
        for interval in &self.intervals {
            all.add(&interval.counters);
            if interval.phase == PhaseKind::Measure {
                window.add(&interval.counters);
            }
        }
        assert_eq!(self.only().counters, window, "the totals are what the window's intervals say");
        all
    }
}

/// Runs a plan to its end.
pub(crate) fn run(plan: Plan) -> Outcome {
    collect(&Engine::start(plan).expect("the plan is good"))
}

pub(crate) fn collect(engine: &Engine) -> Outcome {
    let (mut phases, mut intervals) = (Vec::new(), Vec::new());
    let (mut failures, mut totals) = (Vec::new(), Vec::new());
    let (mut interruptions, mut acted) = (Vec::new(), Vec::new());
    loop {
        match engine.next_event(Duration::from_secs(120)).expect("events until the end") {
            Event::Phase { kind, .. } => phases.push(kind.name()),
            Event::Interval(interval) => intervals.push(*interval),
            Event::Failed { client, why } => failures.push((client, why)),
            Event::Interrupted { client, why } => interruptions.push((client, why)),
            Event::ActionStarted { action, clients, .. } => acted.push((action, clients)),
            Event::Measured(measured) => totals.push(*measured),
            Event::Finished(summary) => {
                return Outcome {
                    phases,
                    intervals,
                    failures,
                    interruptions,
                    acted,
                    totals,
                    summary: *summary,
                };
            }
        }
    }
}
