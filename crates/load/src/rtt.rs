//! Round trips to the brokers: a dedicated connection to each, on a dedicated thread, that sends
//! PINGREQ at a low rate and times PINGRESP. These figures exclude delays of the generator's own
//! connections and threads, and include delays of broker and network under load.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use tacho_codec::{
    Announced, Auth, Connect, ConnectProperties, Direction, Packet, ReasonCode, Version,
    split_frame,
};
use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, Next, Remote, clock, mailboxes};

use crate::authentication::Prover;
use crate::cells::Cells;
use crate::context::RunContext;
use crate::events::ConnectError;
use crate::mail::{Report, ReportBody, RoundTrip};
use crate::plan::{Authentication, Client, ClientIndex, LoginKind, Plan, Target};

/// Delay before a reconnect.
const RETRY_NS: u64 = 1_000_000_000;

/// Limit on what a broker sends here, which is CONNACK and PINGRESP.
const PACKET_BYTES_MAX: u32 = Plan::PACKET_BYTES_ACCEPTED;

/// The running thread.
#[derive(Debug)]
pub(crate) struct RttThread {
    remote: Remote<()>,
    thread: JoinHandle<()>,
}

impl RttThread {
    /// Starts measuring, if the plan requests it.
    pub(crate) fn start(
        context: &Arc<RunContext>,
        reports: &mpsc::Sender<Report>,
    ) -> io::Result<Option<Self>> {
        let Some(every_ns) = context.plan.rtt_every_ns else { return Ok(None) };
        // Invariant: one mailbox was requested.
        let mailbox = mailboxes(1).pop().expect("one mailbox");
        let remote = mailbox.remote();
        let event_loop = Loop::<RttWorker>::new(LoopConfig::default(), mailbox)?;
        let cpus = context.plan.cpus.clone();
        let connections = connections(&context.plan, &context.cells);
        let mut worker =
            RttWorker { connections, every_ns: every_ns.max(1), reports: reports.clone() };
        let work = move || {
            // The thread that started this one may run elsewhere.
            if !cpus.is_empty() {
                let _ = tacho_net::bind_to_cpus(&cpus);
            }
            if let Err(error) = event_loop.run(&mut worker) {
                worker.report(ReportBody::RttFailed(error.to_string()));
            }
        };
        let thread = Builder::new().name("load-rtt".into()).spawn(work)?;
        Ok(Some(Self { remote, thread }))
    }

    /// Disconnects from the brokers and ends.
    pub(crate) fn stop(self) {
        // If the thread has ended by itself, it has reported why.
        let _ = self.remote.post(0, ());
        let _ = self.thread.join();
    }
}

/// One connection per broker, with the parameters of its first client.
fn connections(plan: &Plan, cells: &Cells) -> Vec<PingConnection> {
    let mut connections: Vec<Option<PingConnection>> = cells.targets.iter().map(|_| None).collect();
    for (index, (group, client)) in ClientIndex::all().zip(plan.clients()) {
        let number = cells.infos[cells.cell_of(index)].target;
        let Some(target) = plan.target_of(group, index) else { continue };
        connections[number].get_or_insert_with(|| PingConnection {
            number,
            target: target.clone(),
            client_id: format!("tacho-rtt-{:06x}-{number}", plan.run_id & 0x00FF_FFFF),
            version: group.version,
            how: group.authentication.clone(),
            client: Client {
                username: client.username.clone(),
                password: client.password.clone(),
                claims: client.claims.clone(),
                identity: client.identity.clone(),
                ..Client::default()
            },
            prover: Prover::default(),
            state: PingState::Down,
            due_ns: 0,
        });
    }
    connections.into_iter().flatten().collect()
}

/// One connection.
#[derive(Debug)]
struct PingConnection {
    number: usize,
    target: Target,
    client_id: String,
    version: Version,
    /// How it proves who it is, and its credentials.
    how: Authentication,
    client: Client,
    prover: Prover,
    state: PingState,
    /// When to reconnect, or to send the next PINGREQ.
    due_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PingState {
    Down,
    Connecting(ConnId),
    Up { conn: ConnId, asked_ns: Option<u64> },
}

impl PingConnection {
    const fn conn(&self) -> Option<ConnId> {
        match self.state {
            PingState::Down => None,
            PingState::Connecting(conn) | PingState::Up { conn, .. } => Some(conn),
        }
    }

    /// Appends the CONNECT.
    fn write_connect(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let presented = self.prover.present(&self.how, &self.client, LoginKind::Right)?;
        let properties = ConnectProperties {
            authentication_method: presented.method,
            authentication_data: presented.data.as_deref(),
            ..ConnectProperties::default()
        };
        let connect = Connect {
            version: self.version,
            clean_start: true,
            keep_alive_s: 0,
            client_id: &self.client_id,
            username: presented.username.as_deref(),
            password: presented.password.as_deref(),
            will: None,
            properties,
        };
        connect.encode(out).map_err(|error| error.to_string())
    }
}

struct RttWorker {
    connections: Vec<PingConnection>,
    every_ns: u64,
    reports: mpsc::Sender<Report>,
}

impl RttWorker {
    fn report(&self, body: ReportBody) {
        // The controller outlives this thread unless it panicked.
        let _ = self.reports.send(Report { thread: 0, body });
    }

    fn at(&self, conn: ConnId) -> Option<usize> {
        self.connections.iter().position(|connection| connection.conn() == Some(conn))
    }

    fn fail(&mut self, net: &mut Net<Self>, at: usize, why: String) {
        let connection = &mut self.connections[at];
        if let Some(conn) = connection.conn() {
            net.abort(conn);
        }
        connection.state = PingState::Down;
        connection.due_ns = clock::now_ns() + RETRY_NS;
        let why = match connection.target.name.as_str() {
            "" => why,
            name => format!("{name}: {why}"),
        };
        self.report(ReportBody::RttFailed(why));
    }

    fn connect(&mut self, net: &mut Net<Self>, at: usize) {
        match net.connect(self.connections[at].target.addr, None) {
            Ok(conn) => self.connections[at].state = PingState::Connecting(conn),
            Err(error) => self.fail(net, at, ConnectError::from(&error).message),
        }
    }

    fn greet(&mut self, net: &mut Net<Self>, at: usize, conn: ConnId) {
        let out = net.out(conn).as_vec_mut();
        if let Err(why) = self.connections[at].write_connect(out) {
            self.fail(net, at, why);
        }
    }

    /// Takes one packet; an error ends the connection.
    fn handle(
        &mut self,
        net: &mut Net<Self>,
        at: usize,
        packet: &Packet<'_>,
        now_ns: u64,
    ) -> Result<(), String> {
        let connection = &mut self.connections[at];
        match (connection.state, packet) {
            (PingState::Connecting(_), Packet::ConnAck(connack)) if connack.reason.is_error() => {
                Err(format!("the broker refused the connection: {}", connack.reason))
            }
            (PingState::Connecting(conn), Packet::Auth(auth)) => {
                let answer = connection.prover.answer(&connection.client, auth.data)?;
                let reason = ReasonCode::CONTINUE_AUTHENTICATION;
                let answer =
                    Auth { reason, method: auth.method, data: Some(&answer), ..Auth::default() };
                let out = net.out(conn).as_vec_mut();
                answer.encode(connection.version, out).map_err(|error| error.to_string())
            }
            (PingState::Connecting(conn), Packet::ConnAck(connack)) => {
                connection.prover.accepted(connack.properties.authentication_data)?;
                connection.state = PingState::Up { conn, asked_ns: None };
                connection.due_ns = now_ns;
                Ok(())
            }
            (PingState::Up { conn, asked_ns: Some(asked_ns) }, Packet::PingResp) => {
                connection.state = PingState::Up { conn, asked_ns: None };
                let target = connection.number;
                let took_ns = now_ns.saturating_sub(asked_ns);
                self.report(ReportBody::Rtt(RoundTrip { target, at_ns: now_ns, took_ns }));
                Ok(())
            }
            (_, Packet::Disconnect(disconnect)) => {
                Err(format!("the broker disconnected the client: {}", disconnect.reason))
            }
            (_, other) => Err(format!("unexpected {}", other.packet_type().name())),
        }
    }
}

impl Handler for RttWorker {
    type Mail = ();
    type Shared = Vec<u8>;

    fn accepted(&mut self, net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        // There are no listeners.
        net.abort(conn);
    }

    fn connected(&mut self, net: &mut Net<Self>, conn: ConnId, result: io::Result<()>) {
        let Some(at) = self.at(conn) else { return };
        if let Err(error) = result {
            self.connections[at].state = PingState::Down;
            return self.fail(net, at, ConnectError::from(&error).message);
        }
        let connection = &self.connections[at];
        match connection.target.transport.filter_as(connection.client.identity.as_ref()) {
            Ok(None) => self.greet(net, at, conn),
            Ok(Some(filter)) => net.set_filter(conn, filter),
            Err(error) => self.fail(net, at, error.to_string()),
        }
    }

    fn ready(&mut self, net: &mut Net<Self>, conn: ConnId) {
        if let Some(at) = self.at(conn) {
            self.greet(net, at, conn);
        }
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        let now_ns = clock::now_ns();
        let Some(at) = self.at(conn) else { return data.len() };
        let mut used = 0;
        loop {
            let frame = match split_frame(&data[used..], PACKET_BYTES_MAX) {
                Ok(Some(frame)) => frame,
                Ok(None) => return used,
                Err(error) => {
                    let packet = Announced::read(&data[used..]);
                    let packet = packet.filter(|_| error.reason == ReasonCode::PACKET_TOO_LARGE);
                    let why = packet.map_or_else(
                        || error.to_string(),
                        |packet| {
                            let (name, bytes) = (packet.name(), packet.total_len);
                            format!("the broker sent {name} of {bytes} bytes")
                        },
                    );
                    self.fail(net, at, why);
                    return data.len();
                }
            };
            used += frame.total_len;
            let taken = Packet::decode(&frame, self.connections[at].version, Direction::ToClient)
                .map_err(|error| error.to_string())
                .and_then(|packet| self.handle(net, at, &packet, now_ns));
            if let Err(why) = taken {
                self.fail(net, at, why);
                return data.len();
            }
        }
    }

    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, why: Closed) {
        if let Some(at) = self.at(conn) {
            self.connections[at].state = PingState::Down;
            let why = match why {
                Closed::Error(error) => error.to_string(),
                Closed::ByPeer | Closed::ByUs => "the broker closed the connection".to_owned(),
            };
            self.fail(net, at, why);
        }
    }

    fn mail(&mut self, net: &mut Net<Self>, _from: usize, _mail: ()) {
        for connection in &mut self.connections {
            if let PingState::Up { conn, .. } = connection.state {
                let goodbye = tacho_codec::Disconnect::default();
                // Invariant: a DISCONNECT without properties always fits.
                goodbye
                    .encode(connection.version, net.out(conn).as_vec_mut())
                    .expect("an empty DISCONNECT is encodable");
                net.close(conn);
            }
            connection.state = PingState::Down;
        }
        net.stop();
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        let now_ns = clock::now_ns();
        let mut next_ns = u64::MAX;
        for at in 0..self.connections.len() {
            let connection = &mut self.connections[at];
            if connection.due_ns <= now_ns {
                match connection.state {
                    PingState::Down => self.connect(net, at),
                    PingState::Up { conn, asked_ns: None } => {
                        net.out(conn).extend_from_slice(&[0xC0, 0]);
                        connection.state = PingState::Up { conn, asked_ns: Some(clock::now_ns()) };
                        // A round trip longer than the interval skips ticks.
                        let missed = (now_ns - connection.due_ns) / self.every_ns;
                        connection.due_ns += (missed + 1) * self.every_ns;
                    }
                    PingState::Connecting(_) | PingState::Up { .. } => continue,
                }
            }
            let connection = &self.connections[at];
            if !matches!(
                connection.state,
                PingState::Connecting(_) | PingState::Up { asked_ns: Some(_), .. }
            ) {
                next_ns = next_ns.min(connection.due_ns);
            }
        }
        if next_ns == u64::MAX { Next::Sleep } else { Next::At(next_ns) }
    }
}
