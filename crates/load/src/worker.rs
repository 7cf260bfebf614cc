//! One generator thread: its virtual clients, their streams and subscriptions, on one event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use tacho_net::{Closed, ConnId, Handler, Net, Next, clock};

use crate::context::RunContext;
use crate::events::{ConnectError, Failure};
use crate::histogram::{Histogram, histogram};
use crate::mail::{Enter, Mail, Report, ReportBody};
use crate::plan::{ClientIndex, StreamIndex};
use crate::recorder::Recorder;
use crate::verifier::Verifier;

mod action;
mod answer;
mod client;
mod connect;
mod input;
mod intake;
mod life;
mod lifecycle;
mod login;
mod message;
mod phase;
mod probe;
mod prove;
mod rest;
mod send;
mod spin;
mod stream;
mod subscribe;

use client::VirtualClient;
use lifecycle::State;
use phase::PhaseState;
use stream::{Judgement, StreamOrigin, VirtualStream};

/// The handler of one thread's loop.
pub(crate) struct Worker {
    thread: usize,
    context: Arc<RunContext>,
    reports: mpsc::Sender<Report>,
    clients: Vec<VirtualClient>,
    streams: Vec<VirtualStream>,
    /// The client of each connection, by the index of the connection.
    client_of: Vec<u32>,
    verifier: Verifier,
    recorder: Recorder,
    intake: intake::Intake,
    phase: PhaseState,
    upcoming: VecDeque<Enter>,
    /// Next intended time of each stream that is not blocked, with the stream.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// Clients to connect, subscribe or disconnect, with the time to do so.
    pacing: VecDeque<(u64, u32)>,
    /// Streams of closed mode that may send.
    willing: VecDeque<u32>,
    /// Clients with streams that wait for the inflight window or for the socket.
    blocked: Vec<u32>,
    /// Blocked clients that may continue.
    unblocked: Vec<u32>,
    /// Clients that wait for their socket.
    congested: Vec<u32>,
    probes: probe::Probes,
    actions: action::ActionProgress,
    logins: login::LoginSchedule,
    totals: Running,
    traffic: rest::Traffic,
    spin: spin::Spin,
    /// Bytes read from and written to sockets, as of the last turn.
    bytes: (u64, u64),
    connect_latency: Histogram,
    handshake_latency: Histogram,
    suback_latency: Histogram,
}

/// Running counts for the controller.
#[derive(Debug, Default)]
struct Running {
    /// Connected clients, by cell.
    alive: Vec<u64>,
    /// Clients that have ever received CONNACK.
    connected: u64,
    /// When the last one received its first CONNACK.
    connected_ns: u64,
    /// Filters granted.
    subscribed: u64,
    /// Expected and received deliveries since the books were closed.
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
    pub(crate) fn new(
        thread: usize,
        context: Arc<RunContext>,
        reports: mpsc::Sender<Report>,
    ) -> Self {
        let members = context.placement.clients_of(thread);
        let verifier = Verifier::new(Arc::clone(&context.streams), &context.plan, &members);
        let recorder = Recorder::new(context.plan.overrun_after_ns, context.cells.len());
        let mut worker = Self {
            thread,
            reports,
            clients: Vec::with_capacity(members.len()),
            streams: Vec::new(),
            client_of: Vec::new(),
            verifier,
            recorder,
            intake: intake::Intake::new(&context),
            phase: PhaseState::default(),
            upcoming: VecDeque::new(),
            due: BinaryHeap::new(),
            pacing: VecDeque::new(),
            willing: VecDeque::new(),
            blocked: Vec::new(),
            unblocked: Vec::new(),
            congested: Vec::new(),
            probes: probe::Probes::default(),
            actions: action::ActionProgress::default(),
            logins: login::LoginSchedule::default(),
            totals: Running::new(context.cells.len()),
            traffic: rest::Traffic::new(&context.plan),
            spin: spin::Spin::new(context.plan.timing),
            bytes: (0, 0),
            connect_latency: histogram(),
            handshake_latency: histogram(),
            suback_latency: histogram(),
            context: Arc::clone(&context),
        };
        worker.add_clients(&context, &members);
        worker
    }

    fn add_clients(&mut self, context: &RunContext, members: &[ClientIndex]) {
        let mut positions = vec![None; context.placement.thread_of.len()];
        for (local, &client) in (0u32..).zip(members) {
            positions[client.index()] = Some(local);
        }
        let mut block_sizes: Vec<Vec<u64>> =
            context.plan.groups.iter().map(|group| vec![0; group.publish.len()]).collect();
        let (mut indexes, mut stream_indexes) = (ClientIndex::all(), StreamIndex::all());
        for (group_index, group) in context.plan.groups.iter().enumerate() {
            for ((rank, client), index) in group.clients.iter().enumerate().zip(&mut indexes) {
                let cell = context.cells.cell_of(index) as u16;
                let first_stream = self.streams.len() as u32;
                for (stream, stream_index) in client.streams.iter().zip(&mut stream_indexes) {
                    let ordinal = &mut block_sizes[group_index][stream.block];
                    if let Some(local) = positions[index.index()] {
                        self.streams.push(VirtualStream::new(&StreamOrigin {
                            index: stream_index,
                            ordinal: *ordinal,
                            local_client: local,
                            cell,
                            group,
                            client,
                            stream,
                            receivers: context.receivers[stream_index.index()],
                        }));
                    }
                    *ordinal += 1;
                }
                if positions[index.index()].is_some() {
                    let streams = first_stream..self.streams.len() as u32;
                    let place = client::ClientPlace { index, group: group_index, rank, cell };
                    self.clients.push(VirtualClient::new(place, group, streams));
                }
            }
        }
        for stream in &mut self.streams {
            let group = self.clients[stream.client as usize].group;
            stream.siblings = block_sizes[group][stream.block];
        }
    }

    fn report(&self, body: ReportBody) {
        // The controller outlives its threads unless it panicked; then reports are useless.
        let _ = self.reports.send(Report { thread: self.thread, body });
    }

    /// Sends mail to another thread; to one of another process by way of the controller.
    fn post(&self, net: &mut Net<Self>, thread: usize, mail: Mail) {
        let here = &self.context.here;
        match here.contains(&thread) {
            true => net.post(thread - here.start, mail),
            false => self.report(ReportBody::Forward { thread, mail: Box::new(mail) }),
        }
    }

    fn client_of(&self, conn: ConnId) -> Option<usize> {
        let client = *self.client_of.get(conn.index())? as usize;
        (self.clients.get(client)?.conn == Some(conn)).then_some(client)
    }

    /// The client fails, or reconnects if its group has a reconnect policy.
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
        if self.clients[client].login.is_some() {
            let conn = self.clients[client].conn.take();
            return self.login_failed(net, client, conn, why);
        }
        if self.retry(net, client, &why) {
            return;
        }
        self.note_failed_attempt(client, &why, true);
        self.abort_replaced(net, client);
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
            stream.judgement = Judgement::Failed;
        }
        self.phase.dead.extend(std::mem::take(&mut self.clients[client].waiting));
        self.report(ReportBody::Failed { client: index, why });
        self.waive_probes(net, client);
    }

    /// The source address of the client, if the plan has source addresses.
    fn source_of(&self, index: ClientIndex) -> Option<SocketAddr> {
        let sources = &self.context.plan.sources;
        let count = sources.len().max(1);
        sources.get(index.index() % count).map(|ip| (*ip, 0).into())
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
                self.fail(net, client, Failure::Connect(ConnectError::from(&error)));
            }
        }
    }

    fn ready(&mut self, net: &mut Net<Self>, conn: ConnId) {
        if let Some(client) = self.client_of(conn) {
            self.transport_ready(net, client, conn);
        }
    }

    fn input(&mut self, net: &mut Net<Self>, conn: ConnId, data: &[u8]) -> usize {
        self.handle_input(net, conn, data)
    }

    fn closed(&mut self, net: &mut Net<Self>, conn: ConnId, why: Closed) {
        self.intake.forget(conn);
        let Some(client) = self.client_of(conn) else { return self.replaced_closed(conn) };
        self.clients[client].conn = None;
        if self.clients[client].state == State::Closing {
            self.clients[client].state = State::Closed;
            return;
        }
        let why = self.failure_of(client, why);
        self.fail(net, client, why);
    }

    fn timer(&mut self, net: &mut Net<Self>, token: u64) {
        let local = (token & (life::LEAVE - 1)) as usize;
        match token & !(life::LEAVE - 1) {
            0 => self.client_timer(net, local),
            prove::RENEW => self.renew(net, local),
            _ => self.leave(net, local),
        }
    }

    fn mail(&mut self, net: &mut Net<Self>, _from: usize, mail: Mail) {
        match mail {
            Mail::Enter(enter) => self.announce(enter),
            Mail::Cut(at_ns) => self.cut(at_ns),
            Mail::GiveUp { timeout_ns } => self.give_up(net, timeout_ns),
            Mail::ReportStatus => self.report(ReportBody::Status(self.status())),
            Mail::ReportEnds => self.report_ends(),
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
        self.run_paced(net, now_ns);
        let more_probes = self.send_probes(net, now_ns);
        let more_actions = self.run_actions(net, now_ns);
        let more_logins = self.run_logins(net, now_ns);
        let again = self.send_due(net) || more_probes || more_actions || more_logins;
        self.spin.note_turn(now_ns, counters.reads + counters.writes, counters.polled_rest_ns);
        let next = if again { Next::Again } else { self.next_wake_up() };
        let next = self.rest(next, now_ns);
        self.spin.wait(next, now_ns)
    }
}
