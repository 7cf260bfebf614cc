//! Round trips to the brokers: a connection of its own to each, on a thread of its own, that
//! sends PINGREQ at a low rate and times PINGRESP. What the load does to its own connections and
//! threads does not reach these figures; what it does to the broker and the network does.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use tacho_codec::{Connect, Direction, Packet, Version, split_frame};
use tacho_net::{Closed, ConnId, Handler, Loop, LoopConfig, Net, Next, Remote, clock, mailboxes};

use crate::cells::Cells;
use crate::mail::{Report, ReportBody};
use crate::plan::{Plan, Target};
use crate::worker::{Common, sentence};

/// Pause before a connection is tried again.
const RETRY_NS: u64 = 1_000_000_000;

/// The running thread.
#[derive(Debug)]
pub(crate) struct RttThread {
    remote: Remote<()>,
    thread: JoinHandle<()>,
}

impl RttThread {
    /// Starts to measure, if the plan asks for it.
    pub(crate) fn start(
        common: &Arc<Common>,
        reports: &mpsc::Sender<Report>,
    ) -> io::Result<Option<Self>> {
        let Some(every_ns) = common.plan.rtt_every_ns else { return Ok(None) };
        // Invariant: one box was asked for.
        let mailbox = mailboxes(1).pop().expect("one mailbox");
        let remote = mailbox.remote();
        let event_loop = Loop::<Prober>::new(LoopConfig::default(), mailbox)?;
        let probes = probes(&common.plan, &common.cells);
        let mut prober = Prober { probes, every_ns: every_ns.max(1), reports: reports.clone() };
        let work = move || {
            if let Err(error) = event_loop.run(&mut prober) {
                prober.report(ReportBody::RttFailed(error.to_string()));
            }
        };
        let thread = Builder::new().name("load-rtt".into()).spawn(work)?;
        Ok(Some(Self { remote, thread }))
    }

    /// Says goodbye to the brokers and ends.
    pub(crate) fn stop(self) {
        // It may have ended by itself; then it has said why.
        let _ = self.remote.post(0, ());
        let _ = self.thread.join();
    }
}

/// One per broker, in the way its first client connects.
fn probes(plan: &Plan, cells: &Cells) -> Vec<Probe> {
    let mut probes: Vec<Option<Probe>> = cells.targets.iter().map(|_| None).collect();
    for (index, (group, client)) in (0..).zip(plan.clients()) {
        let number = cells.infos[cells.of(index)].target;
        let Some(target) = plan.target_of(group, index) else { continue };
        probes[number].get_or_insert_with(|| Probe {
            number,
            target: target.clone(),
            client_id: format!("tacho-rtt-{:06x}-{number}", plan.run_id & 0x00FF_FFFF),
            version: group.version,
            username: client.username.clone(),
            password: client.password.clone(),
            state: State::Down,
            due_ns: 0,
        });
    }
    probes.into_iter().flatten().collect()
}

/// One connection.
#[derive(Debug)]
struct Probe {
    number: usize,
    target: Target,
    client_id: String,
    version: Version,
    username: Option<String>,
    password: Option<Vec<u8>>,
    state: State,
    /// When to connect again, or to ask next.
    due_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Down,
    Connecting(ConnId),
    Up { conn: ConnId, asked_ns: Option<u64> },
}

impl Probe {
    const fn conn(&self) -> Option<ConnId> {
        match self.state {
            State::Down => None,
            State::Connecting(conn) | State::Up { conn, .. } => Some(conn),
        }
    }

    fn greeting(&self) -> Connect<'_> {
        Connect {
            version: self.version,
            clean_start: true,
            keep_alive_s: 0,
            client_id: &self.client_id,
            username: self.username.as_deref(),
            password: self.password.as_deref(),
            will: None,
            properties: Default::default(),
        }
    }
}

struct Prober {
    probes: Vec<Probe>,
    every_ns: u64,
    reports: mpsc::Sender<Report>,
}

impl Prober {
    fn report(&self, body: ReportBody) {
        // The controller outlives this thread unless it panicked.
        let _ = self.reports.send(Report { thread: 0, body });
    }

    fn at(&self, conn: ConnId) -> Option<usize> {
        self.probes.iter().position(|probe| probe.conn() == Some(conn))
    }

    fn fail(&mut self, net: &mut Net<Self>, at: usize, why: String) {
        let probe = &mut self.probes[at];
        if let Some(conn) = probe.conn() {
            net.abort(conn);
        }
        probe.state = State::Down;
        probe.due_ns = clock::now_ns() + RETRY_NS;
        let why = match probe.target.name.as_str() {
            "" => why,
            name => format!("{name}: {why}"),
        };
        self.report(ReportBody::RttFailed(why));
    }

    fn connect(&mut self, net: &mut Net<Self>, at: usize) {
        match net.connect(self.probes[at].target.addr, None) {
            Ok(conn) => self.probes[at].state = State::Connecting(conn),
            Err(error) => self.fail(net, at, sentence(&error)),
        }
    }

    fn greet(&mut self, net: &mut Net<Self>, at: usize, conn: ConnId) {
        if let Err(error) = self.probes[at].greeting().encode(net.out(conn).as_vec_mut()) {
            self.fail(net, at, error.to_string());
        }
    }

    /// Takes one packet; an error ends the connection.
    fn handle(&mut self, at: usize, packet: &Packet<'_>, now_ns: u64) -> Result<(), String> {
        let probe = &mut self.probes[at];
        match (probe.state, packet) {
            (State::Connecting(_), Packet::ConnAck(connack)) if connack.reason.is_error() => {
                Err(format!("the broker refused the connection: {}", connack.reason))
            }
            (State::Connecting(conn), Packet::ConnAck(_)) => {
                probe.state = State::Up { conn, asked_ns: None };
                probe.due_ns = now_ns;
                Ok(())
            }
            (State::Up { conn, asked_ns: Some(asked_ns) }, Packet::PingResp) => {
                probe.state = State::Up { conn, asked_ns: None };
                let target = probe.number;
                let took_ns = now_ns.saturating_sub(asked_ns);
                self.report(ReportBody::Rtt { target, at_ns: now_ns, took_ns });
                Ok(())
            }
            (_, Packet::Disconnect(disconnect)) => {
                Err(format!("the broker disconnected the client: {}", disconnect.reason))
            }
            (_, other) => Err(format!("an unexpected {}", other.packet_type().name())),
        }
    }
}

impl Handler for Prober {
    type Mail = ();
    type Shared = Vec<u8>;

    fn accepted(&mut self, net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        // There are no listeners.
        net.abort(conn);
    }

    fn connected(&mut self, net: &mut Net<Self>, conn: ConnId, result: io::Result<()>) {
        let Some(at) = self.at(conn) else { return };
        if let Err(error) = result {
            self.probes[at].state = State::Down;
            return self.fail(net, at, sentence(&error));
        }
        match self.probes[at].target.transport.filter() {
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
            let frame = match split_frame(&data[used..], u32::MAX) {
                Ok(Some(frame)) => frame,
                Ok(None) => return used,
                Err(error) => {
                    self.fail(net, at, error.to_string());
                    return data.len();
                }
            };
            used += frame.total_len;
            let taken = Packet::decode(&frame, self.probes[at].version, Direction::ToClient)
                .map_err(|error| error.to_string())
                .and_then(|packet| self.handle(at, &packet, now_ns));
            if let Err(why) = taken {
                self.fail(net, at, why);
                return data.len();
            }
        }
    }

    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, why: Closed) {
        if let Some(at) = self.at(conn) {
            self.probes[at].state = State::Down;
            let why = match why {
                Closed::Error(error) => error.to_string(),
                Closed::ByPeer | Closed::ByUs => "the broker closed the connection".to_owned(),
            };
            self.fail(net, at, why);
        }
    }

    fn mail(&mut self, net: &mut Net<Self>, _from: usize, _mail: ()) {
        for probe in &mut self.probes {
            if let State::Up { conn, .. } = probe.state {
                let goodbye = tacho_codec::Disconnect::default();
                // Invariant: a DISCONNECT without properties always fits.
                goodbye
                    .encode(probe.version, net.out(conn).as_vec_mut())
                    .expect("an empty DISCONNECT is encodable");
                net.close(conn);
            }
            probe.state = State::Down;
        }
        net.stop();
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        let now_ns = clock::now_ns();
        let mut next_ns = u64::MAX;
        for at in 0..self.probes.len() {
            let probe = &mut self.probes[at];
            if probe.due_ns <= now_ns {
                match probe.state {
                    State::Down => self.connect(net, at),
                    State::Up { conn, asked_ns: None } => {
                        net.out(conn).extend_from_slice(&[0xC0, 0]);
                        probe.state = State::Up { conn, asked_ns: Some(clock::now_ns()) };
                        // A round trip that takes longer than the pause leaves pauses out.
                        let missed = (now_ns - probe.due_ns) / self.every_ns;
                        probe.due_ns += (missed + 1) * self.every_ns;
                    }
                    State::Connecting(_) | State::Up { .. } => continue,
                }
            }
            let probe = &self.probes[at];
            if !matches!(probe.state, State::Connecting(_) | State::Up { asked_ns: Some(_), .. }) {
                next_ns = next_ns.min(probe.due_ns);
            }
        }
        if next_ns == u64::MAX { Next::Sleep } else { Next::At(next_ns) }
    }
}
