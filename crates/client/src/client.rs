//! The client itself.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tacho_codec::{
    Ack, AckKind, Direction, Disconnect, Packet, PacketId, QoS, ReasonCode, Subscribe,
    SubscribeFilter, UserProperties, split_frame,
};
use tacho_net::clock;
use tacho_session::client::{
    ClientLimits, ConnAckParams, Publish as Published, Session, TimeoutEvent,
};
use tacho_session::{Inbound, Transmit};

use crate::error::ClientError;
use crate::link::{EVENTS_MAX, Event, Link};
use crate::message::{Message, Received};
use crate::packets::{Accepted, Hello, OwnPacket};
use crate::settings::{ClientSettings, Subscription};

/// How often a wait looks at the stop flag.
const LOOK: Duration = Duration::from_millis(100);
/// How long the broker may take for PINGRESP.
const PING_TIMEOUT_S: u16 = 20;
/// Packets that are written at once, in bytes.
const WRITE_BYTES: usize = 64 * 1024;

/// What happened to a client.
#[derive(Debug)]
pub enum Happened {
    /// A message came; it is acknowledged.
    Message(Box<Received>),
    /// A message of QoS 1 or 2 is done with, successfully or not.
    Acknowledged {
        /// The message.
        message: Arc<Message>,
        /// What the broker says of it.
        reason: ReasonCode,
    },
    /// The answer to a SUBSCRIBE: one reason per filter.
    Subscribed(Vec<ReasonCode>),
    /// A piece of input that was asked for; `None` is its end.
    Input(io::Result<Option<Vec<u8>>>),
    /// The connection has ended. [`Client::connect`] may be tried again.
    Lost(ClientError),
}

/// A client with at most one connection.
pub struct Client {
    settings: ClientSettings,
    session: Session<Arc<Message>>,
    link: Option<Link>,
    links: u64,
    was_connected: bool,
    /// Messages that a broker without their session has never acknowledged.
    abandoned: VecDeque<Arc<Message>>,
    events: Receiver<Event>,
    teller: SyncSender<Event>,
    input: Option<SyncSender<()>>,
    /// Input that came while the client was connecting; one piece, since one is asked for.
    early_input: Option<io::Result<Option<Vec<u8>>>>,
    /// Packets to write.
    out: Vec<u8>,
}

impl Client {
    /// A client that is not connected yet.
    pub fn new(settings: ClientSettings) -> Self {
        let (teller, events) = sync_channel(EVENTS_MAX);
        let limits = ClientLimits {
            receive_maximum: settings.receive_maximum.unwrap_or(u16::MAX),
            ..ClientLimits::default()
        };
        Self {
            settings,
            session: Session::new(limits),
            link: None,
            links: 0,
            was_connected: false,
            abandoned: VecDeque::new(),
            events,
            teller,
            input: None,
            early_input: None,
            out: Vec::new(),
        }
    }

    /// Where pieces of input come from: `next` is called on a thread of its own, once for each
    /// [`Client::ask`]; `None` is the end.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn read_from(
        &mut self,
        mut next: impl FnMut() -> io::Result<Option<Vec<u8>>> + Send + 'static,
    ) -> io::Result<()> {
        let (ask, asked) = sync_channel(1);
        let teller = self.teller.clone();
        let work = move || {
            while asked.recv().is_ok() {
                if teller.send(Event::Input(next())).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("client-input".into()).spawn(work)?;
        self.input = Some(ask);
        Ok(())
    }

    /// Asks for the next piece of input; it [happens](Happened::Input) later.
    pub fn ask(&self) {
        if let Some(input) = &self.input {
            // Full: it was asked before.
            let _ = input.try_send(());
        }
    }

    /// Connects and waits for the broker's consent. Messages that it has not acknowledged on
    /// earlier connections are sent again.
    ///
    /// # Errors
    /// No address takes the connection, the broker refuses the client or does not answer in time.
    pub fn connect(&mut self) -> Result<Accepted, ClientError> {
        self.drop_link();
        let mut last = ClientError::Silent;
        for address in self.settings.addresses.clone() {
            self.links += 1;
            let opened = (self.settings.filter)().and_then(|filter| {
                let (timeout, teller) = (self.settings.timeout, self.teller.clone());
                Link::open(self.links, address, filter, timeout, teller)
            });
            let tried = match opened {
                Ok(link) => {
                    self.link = Some(link);
                    self.greet()
                }
                Err(error) => Err(ClientError::Connect { address, error }),
            };
            match tried {
                Err(error) if error.is_passing() => last = error,
                other => return other,
            }
            self.drop_link();
            self.check_stop()?;
        }
        Err(last)
    }

    /// Publishes. With QoS 1 and 2 the answer [happens](Happened::Acknowledged) later.
    ///
    /// # Errors
    /// There is no connection, or it ends, or the message cannot be sent. A message of QoS 1 or 2
    /// whose connection ends is sent again on the next one.
    pub fn publish(&mut self, message: Arc<Message>) -> Result<(), ClientError> {
        // A message that cannot be sent must not stay in the session.
        let identifier = (message.qos > QoS::AtMostOnce).then_some(PacketId::FIRST);
        message.encode(self.settings.version, (identifier, false), &mut Vec::new())?;
        match self.session.publish(clock::now_ns(), message.qos, message) {
            Published::Send(transmit) => self.write(transmit)?,
            Published::Queued => {}
            Published::Blocked(message) if message.qos > QoS::AtMostOnce => {
                self.abandoned.push_back(message);
            }
            Published::Blocked(_) => {
                return Err(ClientError::Lost("there is no connection".into()));
            }
        }
        self.flush()
    }

    /// Messages of QoS 1 and 2 that are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.session.inflight_len() + self.abandoned.len()
    }

    /// Whether a message of QoS 1 or 2 can be sent now.
    pub fn can_publish(&self) -> bool {
        self.session.can_publish() && self.abandoned.is_empty()
    }

    /// Subscribes; the answer [happens](Happened::Subscribed) later.
    ///
    /// # Errors
    /// There is no connection, or the SUBSCRIBE cannot be sent.
    pub fn subscribe(
        &mut self,
        subscriptions: &[Subscription],
        subscription_id: Option<u32>,
    ) -> Result<(), ClientError> {
        let packet_id = self.session.reserve_id().ok_or(ClientError::NoIdentifier)?;
        let filters = subscriptions
            .iter()
            .map(|wanted| SubscribeFilter { filter: &wanted.filter, options: wanted.options });
        let subscribe = Subscribe {
            packet_id,
            subscription_id,
            user_properties: UserProperties::EMPTY,
            filters: filters.collect(),
        };
        subscribe.encode(self.settings.version, &mut self.out)?;
        self.flush()
    }

    /// The next thing that happens; `None` when `until` has passed.
    ///
    /// # Errors
    /// The stop flag was raised.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<Option<Happened>, ClientError> {
        if let Some(input) = self.early_input.take() {
            return Ok(Some(Happened::Input(input)));
        }
        loop {
            match self.handle_received() {
                Ok(Some(happened)) => return Ok(Some(happened)),
                Ok(None) => {}
                Err(error) => return Ok(Some(self.lost(error))),
            }
            if let Err(error) = self.work() {
                return Ok(Some(self.lost(error)));
            }
            self.check_stop()?;
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return Ok(None);
            }
            match self.next_event(until.map_or(LOOK, |until| LOOK.min(until - now))) {
                Some(Event::Input(input)) => return Ok(Some(Happened::Input(input))),
                Some(other) => {
                    if let Err(error) = self.take(other) {
                        return Ok(Some(self.lost(error)));
                    }
                }
                None => {}
            }
        }
    }

    /// Waits for a time.
    ///
    /// # Errors
    /// The stop flag was raised.
    pub fn sleep(&self, time: Duration) -> Result<(), ClientError> {
        let until = Instant::now() + time;
        loop {
            self.check_stop()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(LOOK.min(left));
        }
    }

    /// Says goodbye and closes the connection. Whether the broker hears it does not matter.
    pub fn disconnect(mut self) {
        let goodbye = Disconnect::new(ReasonCode::SUCCESS);
        if self.link.is_some() && goodbye.encode(self.settings.version, &mut self.out).is_ok() {
            let _ = self.flush();
        }
        self.drop_link();
    }

    fn check_stop(&self) -> Result<(), ClientError> {
        match self.settings.stop.load(Ordering::Relaxed) {
            true => Err(ClientError::Stopped),
            false => Ok(()),
        }
    }

    fn drop_link(&mut self) {
        self.out.clear();
        if self.link.take().is_some() {
            self.session.disconnected();
        }
    }

    fn lost(&mut self, error: ClientError) -> Happened {
        self.drop_link();
        Happened::Lost(error)
    }

    /// Sends CONNECT on a new connection, and waits for CONNACK.
    fn greet(&mut self) -> Result<Accepted, ClientError> {
        let deadline = Instant::now() + self.settings.timeout;
        let mut is_greeted = false;
        loop {
            let is_ready = self.link.as_ref().is_some_and(Link::is_ready);
            if is_ready && !is_greeted {
                self.settings.write_connect(!self.was_connected, &mut self.out)?;
                self.flush()?;
                is_greeted = true;
            }
            let connack = |packet: &Packet<'_>| match packet {
                Packet::ConnAck(connack) => Some(Hello::of(connack)),
                _ => None,
            };
            if let Some(answer) = self.next_packet(connack)? {
                let hello = answer.ok_or_else(|| out_of_place("before CONNACK"))?;
                return self.accepted(&hello);
            }
            self.check_stop()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ClientError::Silent);
            }
            if let Some(event) = self.next_event(LOOK.min(left)) {
                self.take(event)?;
            }
        }
    }

    fn accepted(&mut self, hello: &Hello) -> Result<Accepted, ClientError> {
        if hello.reason.is_error() {
            let text = hello.text.clone();
            return Err(ClientError::Refused { reason: hello.reason, text });
        }
        let params = ConnAckParams {
            session_present: hello.accepted.session_present,
            receive_maximum: hello.receive_maximum,
            keep_alive_s: hello.keep_alive_s.unwrap_or(self.settings.keep_alive_s),
            ping_timeout_s: PING_TIMEOUT_S,
            ..ConnAckParams::new(self.settings.version)
        };
        let abandoned = self.session.connack(clock::now_ns(), params);
        for message in abandoned.into_iter().rev() {
            self.abandoned.push_front(message);
        }
        self.was_connected = true;
        Ok(hello.accepted)
    }

    /// The next event, if one comes in time.
    fn next_event(&self, time: Duration) -> Option<Event> {
        // Invariant: the client has a sender of its own, so that an error means that time is over.
        self.events.recv_timeout(time).ok()
    }

    /// Takes an event of a connection.
    fn take(&mut self, event: Event) -> Result<(), ClientError> {
        if let Event::Input(input) = event {
            self.early_input = Some(input);
            return Ok(());
        }
        let Some(link) = &mut self.link else { return Ok(()) };
        match event {
            Event::Bytes { link: number, bytes } if number == link.number => {
                link.take(&bytes).map_err(|error| ClientError::Lost(error.to_string()))
            }
            Event::Closed { link: number, error } if number == link.number => {
                let why = error.map_or_else(
                    || "the broker has closed the connection".to_owned(),
                    |error| format!("the connection broke: {error}"),
                );
                Err(ClientError::Lost(why))
            }
            // Of an earlier connection.
            Event::Bytes { .. } | Event::Closed { .. } | Event::Input(_) => Ok(()),
        }
    }

    /// Takes the next whole packet, if there is one.
    fn next_packet<T>(
        &mut self,
        read: impl FnOnce(&Packet<'_>) -> T,
    ) -> Result<Option<T>, ClientError> {
        let version = self.settings.version;
        let bytes_max = self.settings.packet_bytes_max;
        let Some(link) = &mut self.link else { return Ok(None) };
        let wrong = |error: tacho_codec::DecodeError| {
            ClientError::Lost(format!("the broker does not speak MQTT {version}: {error}"))
        };
        let Some(frame) = split_frame(&link.received, bytes_max).map_err(wrong)? else {
            return Ok(None);
        };
        let packet = Packet::decode(&frame, version, Direction::ToClient).map_err(wrong)?;
        let result = read(&packet);
        let len = frame.total_len;
        link.received.drain(..len);
        Ok(Some(result))
    }

    /// Handles packets until one of them makes something happen.
    fn handle_received(&mut self) -> Result<Option<Happened>, ClientError> {
        while let Some(packet) = self.next_packet(OwnPacket::of)? {
            if let Some(happened) = self.handle(packet)? {
                return Ok(Some(happened));
            }
        }
        Ok(None)
    }

    fn handle(&mut self, packet: OwnPacket) -> Result<Option<Happened>, ClientError> {
        let wrong = |error: tacho_session::ProtocolError| ClientError::Lost(error.to_string());
        let session = &mut self.session;
        match packet {
            OwnPacket::Message(received) => {
                let (qos, packet_id) = (received.message.qos, received.packet_id);
                let inbound = session.handle_publish(qos, packet_id).map_err(wrong)?;
                Ok((inbound == Inbound::New).then_some(Happened::Message(received)))
            }
            OwnPacket::Ack(kind, packet_id, reason) => {
                let done = match kind {
                    AckKind::PubAck => session.handle_puback(packet_id, reason),
                    AckKind::PubRec => session.handle_pubrec(packet_id, reason),
                    AckKind::PubComp => session.handle_pubcomp(packet_id, reason),
                    AckKind::PubRel => session.handle_pubrel(packet_id).map(|()| None),
                };
                let done = done.map_err(wrong)?;
                Ok(done.map(|message| Happened::Acknowledged { message, reason }))
            }
            OwnPacket::Subscribed(packet_id, reasons) => {
                session.release_id(packet_id);
                Ok(Some(Happened::Subscribed(reasons)))
            }
            OwnPacket::Pong => {
                session.handle_pingresp();
                Ok(None)
            }
            OwnPacket::Disconnect(reason) => {
                Err(ClientError::Lost(format!("the broker ends the connection: {reason}")))
            }
            OwnPacket::Other(name) => Err(out_of_place(name)),
        }
    }

    /// Sends what the session and the keep-alive have to send.
    fn work(&mut self) -> Result<(), ClientError> {
        if self.link.is_none() {
            return Ok(());
        }
        let now_ns = clock::now_ns();
        while let Some(transmit) = self.session.poll_transmit(now_ns) {
            self.write(transmit)?;
        }
        while self.session.can_publish() {
            let Some(message) = self.abandoned.pop_front() else { break };
            if let Published::Send(transmit) = self.session.publish(now_ns, message.qos, message) {
                self.write(transmit)?;
            }
        }
        match self.session.handle_timeout(now_ns) {
            Some(TimeoutEvent::SendPingReq) => {
                Packet::PingReq.encode(self.settings.version, &mut self.out)?;
            }
            Some(TimeoutEvent::PingTimeout) => return Err(ClientError::Silent),
            None => {}
        }
        self.flush()
    }

    fn write(&mut self, transmit: Transmit<Arc<Message>>) -> Result<(), ClientError> {
        let version = self.settings.version;
        let out = &mut self.out;
        match transmit {
            Transmit::Publish { delivery, packet_id, dup } => {
                delivery.message.encode(version, (packet_id, dup), out)?;
            }
            Transmit::Ack { kind, packet_id, reason } => {
                Ack::new(packet_id, reason).encode(kind, version, out)?;
            }
            Transmit::PubRel { packet_id, reason } => {
                Ack::new(packet_id, reason).encode(AckKind::PubRel, version, out)?;
            }
        }
        if self.out.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        let Some(link) = &mut self.link else { return Ok(()) };
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = link.send(&self.out);
        self.out.clear();
        sent.map_err(|error| ClientError::Lost(format!("the connection broke: {error}")))
    }
}

fn out_of_place(what: &str) -> ClientError {
    ClientError::Lost(format!("the broker sent a packet that is out of place: {what}"))
}
