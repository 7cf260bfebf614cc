//! One generator thread: its virtual clients, their streams and subscriptions, on one event
//! loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use tacho_net::{Closed, ConnId, Handler, Net, Next, clock};

use crate::cells::Cells;
use crate::events::{Failure, Histogram, histogram};
use crate::mail::{Enter, Mail, Report, ReportBody};
use crate::placement::Placement;
use crate::plan::{ClientIndex, Plan, Timing};
use crate::recorder::{Recorder, Scope};
use crate::verifier::{Streams, Verifier, Window};

mod act;
mod answer;
mod client;
mod connect;
mod input;
mod life;
mod phase;
mod probe;
mod rest;
mod send;
mod stream;
mod subscribe;

use client::{State, VirtualClient};
pub(crate) use connect::sentence;
use phase::PhaseState;
use stream::VirtualStream;

/// What all threads share, read-only.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) plan: Plan,
    pub(crate) streams: Arc<Streams>,
    pub(crate) placement: Placement,
    pub(crate) cells: Cells,
    pub(crate) homes: Vec<StreamHome>,
    /// Routes of each stream: the deliveries that one message causes.
    pub(crate) receivers: Vec<u32>,
    /// Streams whose messages the broker keeps.
    pub(crate) retained: Vec<bool>,
    /// Receivers of each client's will; empty unless clients break off by plan.
    pub(crate) will_receivers: Vec<u32>,
    /// Groups that subscribe by an action only.
    pub(crate) subscribes_later: Vec<bool>,
}

/// Where a stream lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamHome {
    pub(crate) thread: u16,
    /// Group and broker of its client.
    pub(crate) cell: u16,
    /// Closed mode at QoS 0: the publisher waits for deliveries.
    pub(crate) wants_credit: bool,
    /// Its number on that thread.
    pub(crate) local: u32,
}

/// The handler of one thread's loop.
pub(crate) struct Worker {
    thread: usize,
    common: Arc<Common>,
    reports: mpsc::Sender<Report>,
    clients: Vec<VirtualClient>,
    streams: Vec<VirtualStream>,
    /// Client of each connection, by its index.
    client_of: Vec<u32>,
    verifier: Verifier,
    recorder: Recorder,
    phase: PhaseState,
    upcoming: VecDeque<Enter>,
    /// Next due time of every open stream that is not waiting for something else.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// Clients to connect, subscribe or disconnect, with the time at which to do so.
    pacing: VecDeque<(u64, u32)>,
    /// Streams of closed mode that may send.
    willing: VecDeque<u32>,
    /// Clients with streams that wait for their window or for the socket.
    blocked: Vec<u32>,
    /// Clients among them that may go on.
    unblocked: Vec<u32>,
    /// Clients that wait for their socket to take output.
    congested: Vec<u32>,
    probes: probe::Probes,
    acts: act::Acts,
    totals: Running,
    traffic: rest::Traffic,
    /// Read from and written to sockets, as the loop counted when it last looked.
    bytes: (u64, u64),
    connect_latency: Histogram,
    handshake_latency: Histogram,
    suback_latency: Histogram,
}

/// Counts that the controller asks for.
#[derive(Debug, Default)]
struct Running {
    /// Clients up, by cell.
    alive: Vec<u64>,
    /// Clients that reached CONNACK, ever.
    connected: u64,
    /// When the last one did.
    connected_ns: u64,
    /// Filters granted.
    subscribed: u64,
    /// Since the books were closed.
    expected: u64,
    received: u64,
    /// Messages taken from schedules, dropped ones included, by cell.
    taken: Vec<u64>,
    /// Messages of QoS 1 and 2 without their last acknowledgement.
    unacked: u64,
}

impl Running {
    fn new(cells: usize) -> Self {
        Self { alive: vec![0; cells], taken: vec![0; cells], ..Self::default() }
    }
}

impl Worker {
    pub(crate) fn new(thread: usize, common: Arc<Common>, reports: mpsc::Sender<Report>) -> Self {
        let members = common.placement.clients_of(thread);
        let verifier = Verifier::new(Arc::clone(&common.streams), &common.plan, &members);
        let recorder = Recorder::new(common.plan.overrun_after_ns, common.cells.len());
        let mut worker = Self {
            thread,
            reports,
            clients: Vec::with_capacity(members.len()),
            streams: Vec::new(),
            client_of: Vec::new(),
            verifier,
            recorder,
            phase: PhaseState::default(),
            upcoming: VecDeque::new(),
            due: BinaryHeap::new(),
            pacing: VecDeque::new(),
            willing: VecDeque::new(),
            blocked: Vec::new(),
            unblocked: Vec::new(),
            congested: Vec::new(),
            probes: probe::Probes::default(),
            acts: act::Acts::default(),
            totals: Running::new(common.cells.len()),
            traffic: rest::Traffic::new(&common.plan),
            bytes: (0, 0),
            connect_latency: histogram(),
            handshake_latency: histogram(),
            suback_latency: histogram(),
            common: Arc::clone(&common),
        };
        worker.add_clients(&common, &members);
        worker
    }

    fn add_clients(&mut self, common: &Common, members: &[ClientIndex]) {
        let mut positions = vec![None; common.placement.thread_of.len()];
        for (local, &client) in (0u32..).zip(members) {
            positions[client as usize] = Some(local);
        }
        let mut block_sizes: Vec<Vec<u64>> =
            common.plan.groups.iter().map(|group| vec![0; group.publish.len()]).collect();
        let (mut index, mut stream_index) = (0, 0);
        for (group_index, group) in common.plan.groups.iter().enumerate() {
            for (rank, client) in group.clients.iter().enumerate() {
                let cell = common.cells.of(index) as u16;
                let first_stream = self.streams.len() as u32;
                for stream in &client.streams {
                    let ordinal = &mut block_sizes[group_index][stream.block];
                    if let Some(local) = positions[index as usize] {
                        self.streams.push(VirtualStream::new(
                            (local, cell),
                            stream_index,
                            *ordinal,
                            stream,
                            (group, client, &group.publish[stream.block]),
                            common.receivers[stream_index as usize],
                        ));
                    }
                    *ordinal += 1;
                    stream_index += 1;
                }
                if positions[index as usize].is_some() {
                    let streams = first_stream..self.streams.len() as u32;
                    let group = (group, cell);
                    let client = VirtualClient::new(index, group_index, rank, group, streams);
                    self.clients.push(client);
                }
                index += 1;
            }
        }
        for stream in &mut self.streams {
            let group = self.clients[stream.client as usize].group;
            stream.siblings = block_sizes[group][stream.block];
        }
    }

    fn report(&self, body: ReportBody) {
        // The controller outlives its threads unless it panicked; then nobody wants reports.
        let _ = self.reports.send(Report { thread: self.thread, body });
    }

    fn spin(&self) -> bool {
        self.common.plan.timing == Timing::Spin
    }

    fn client_of(&self, conn: ConnId) -> Option<usize> {
        let client = *self.client_of.get(conn.index())? as usize;
        (self.clients.get(client)?.conn == Some(conn)).then_some(client)
    }

    /// The client is of no use any more.
    fn fail(&mut self, net: &mut Net<Self>, client: usize, why: Failure) {
        let state = &mut self.clients[client];
        if matches!(state.state, State::Failed | State::Closing | State::Closed) {
            return;
        }
        let now_ns = net.now_ns();
        let cell = usize::from(state.cell);
        match state.state {
            State::Connecting { since_ns } | State::Greeting { since_ns } => {
                let took_ns = now_ns.saturating_sub(since_ns);
                self.recorder.sample.connect.note(false, took_ns);
            }
            State::Subscribing { since_ns, .. } => {
                let took_ns = now_ns.saturating_sub(since_ns);
                self.recorder.sample.subscribe.note(false, took_ns);
            }
            _ => {}
        }
        if state.state.is_up() {
            self.totals.alive[cell] -= 1;
            self.recorder.cell(cell as u16).disconnects += 1;
        }
        if self.retry(net, client, &why) {
            return;
        }
        self.note_failed_attempt(client, &why, true);
        self.drop_old(net, client);
        let state = &mut self.clients[client];
        self.recorder.cell(cell as u16).unanswered += state.session.inflight_len() as u64;
        self.totals.unacked -= state.session.inflight_len() as u64;
        state.state = State::Failed;
        state.session.disconnected();
        if let Some(timer) = state.timer.take() {
            net.cancel_timer(timer);
        }
        if let Some(conn) = state.conn.take() {
            net.abort(conn);
        }
        let index = state.index;
        self.verifier.set_failed(client);
        for stream in &mut self.streams[self.clients[client].streams()] {
            stream.failed = true;
        }
        self.phase.dead.extend(std::mem::take(&mut self.clients[client].waiting));
        self.report(ReportBody::Failed { client: index, why });
        self.waive_probes(net, client);
    }

    /// The address that the client connects from, if the plan has a choice of them.
    fn source_of(&self, index: ClientIndex) -> Option<SocketAddr> {
        let sources = &self.common.plan.sources;
        let count = sources.len().max(1);
        sources.get(index as usize % count).map(|ip| (*ip, 0).into())
    }
}

impl Handler for Worker {
    type Mail = Mail;
    type Shared = Vec<u8>;

    fn accepted(&mut self, net: &mut Net<Self>, conn: ConnId, _listener: usize) {
        // There are no listeners.
        net.abort(conn);
    }

    fn connected(&mut self, net: &mut Net<Self>, conn: ConnId, result: io::Result<()>) {
        let Some(client) = self.client_of(conn) else { return };
        match result {
            Ok(()) => self.begin(net, client, conn),
            Err(error) => {
                self.clients[client].conn = None;
                self.fail(net, client, Failure::Connect(connect::sentence(&error)));
            }
        }
    }

    fn ready(&mut self, net: &mut Net<Self>, conn: ConnId) {
        if let Some(client) = self.client_of(conn) {
            self.carried(net, client, conn);
        }
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        self.handle_input(net, conn, data)
    }

    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, why: Closed) {
        let Some(client) = self.client_of(conn) else { return self.old_closed(conn) };
        self.clients[client].conn = None;
        if self.clients[client].state == State::Closing {
            self.clients[client].state = State::Closed;
            return;
        }
        let why = self.end_of(client, why);
        self.fail(net, client, why);
    }

    fn timer(&mut self, net: &mut Net<Self>, token: u64) {
        let local = (token & (life::LEAVE - 1)) as usize;
        match token & life::LEAVE {
            0 => self.client_timer(net, local),
            _ => self.leave(net, local),
        }
    }

    fn mail(&mut self, net: &mut Net<Self>, _from: usize, mail: Mail) {
        match mail {
            Mail::Enter(enter) => self.announce(enter),
            Mail::Cut(at_ns) => self.cut(at_ns),
            Mail::GiveUp { timeout_ns } => self.give_up(net, timeout_ns),
            Mail::Tell => self.report(ReportBody::Status(self.status())),
            Mail::TellEnds => self.tell_ends(),
            Mail::Settle(ends) => self.settle(&ends),
            Mail::Stop => self.stop(net),
            Mail::Credit { stream, deliveries } => self.credit(stream, deliveries),
            Mail::Probed { stream, receiver } => self.probed(stream, receiver),
        }
    }

    fn turn(&mut self, net: &mut Net<Self>) -> Next {
        let now_ns = clock::now_ns();
        let counters = net.counters();
        self.bytes = (counters.read_bytes, counters.written_bytes);
        self.advance(net, now_ns);
        self.work_off_pacing(net, now_ns);
        let more_probes = self.send_probes(net, now_ns);
        let more_acts = self.act(net, now_ns);
        let again = self.send_due(net) || more_probes || more_acts;
        self.note_idle(net, now_ns);
        let next = if again { Next::Again } else { self.next_wake_up() };
        self.rest(next, now_ns)
    }
}
