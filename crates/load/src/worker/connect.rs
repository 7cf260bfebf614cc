//! Connect, keep-alive and disconnect.

use tacho_codec::{
    Ack, ConnAck, ConnAckProperties, Connect, ConnectProperties, Disconnect, QoS, ReasonCode,
    WillProperties,
};
use tacho_net::{Closed, ConnId, Net};
use tacho_session::client::{ConnAckParams, TimeoutEvent};

use super::client::VirtualClient;
use super::lifecycle::{SessionHistory, State};
use super::stream::VirtualStream;
use super::{Failure, Worker};
use crate::authentication::Prover;
use crate::events::{ConnectError, PhaseKind};
use crate::histogram::record;
use crate::mail::ReportBody;
use crate::plan::{Group, LoginKind, Target};

/// Paced clients per turn, which bounds the length of a turn.
const CLIENTS_PER_TURN_MAX: usize = 64;

impl Worker {
    /// Schedules the connects: client `i` of a group is due `i / rate` after the start.
    pub(super) fn plan_connects(&mut self, start_ns: u64) {
        let is_idle =
            |client: &VirtualClient| client.state == State::Idle && client.login.is_none();
        self.plan_pacing(start_ns, is_idle, |group| group.connects_per_s);
    }

    /// Schedules the disconnects in the same way.
    pub(super) fn plan_disconnects(&mut self, start_ns: u64) {
        self.plan_pacing(start_ns, |_| true, |group| group.disconnects_per_s);
    }

    /// Schedules the disconnects of clients that are absent during the load.
    pub(super) fn plan_departures(&mut self, start_ns: u64) {
        let context = std::sync::Arc::clone(&self.context);
        let leaves = |client: &VirtualClient| {
            client.state.is_up() && context.plan.groups[client.group].absent
        };
        self.plan_pacing(start_ns, leaves, |group| group.disconnects_per_s);
    }

    /// Schedules their reconnects. A client that lost its connection by itself has a timer instead.
    pub(super) fn plan_returns(&mut self, start_ns: u64) {
        let returns =
            |client: &VirtualClient| client.state == State::Away && client.timer.is_none();
        self.plan_pacing(start_ns, returns, |group| group.connects_per_s);
    }

    fn plan_pacing(
        &mut self,
        start_ns: u64,
        is_concerned: impl Fn(&VirtualClient) -> bool,
        rate_of: impl Fn(&Group) -> Option<f64>,
    ) {
        let mut pacing: Vec<(u64, u32)> = (0..)
            .zip(&self.clients)
            .filter(|(_, client)| is_concerned(client))
            .map(|(local, client)| {
                let rate = rate_of(&self.context.plan.groups[client.group]);
                let after_ns = rate.map_or(0.0, |rate| client.rank as f64 * 1e9 / rate);
                (start_ns + after_ns as u64, local)
            })
            .collect();
        pacing.sort_unstable();
        self.pacing = pacing.into();
    }

    /// Connects, subscribes or disconnects the clients that are due.
    pub(super) fn run_paced(&mut self, net: &mut Net<Self>, now_ns: u64) {
        for _ in 0..CLIENTS_PER_TURN_MAX {
            let Some((_, local)) = self.pacing.pop_front_if(|(due_ns, _)| *due_ns <= now_ns) else {
                break;
            };
            match self.phase.kind() {
                Some(PhaseKind::Connect | PhaseKind::Resume) => self.connect(net, local as usize),
                Some(PhaseKind::Offline) => self.depart(net, local as usize),
                Some(PhaseKind::Subscribe) => self.subscribe(net, local as usize),
                Some(PhaseKind::Disconnect) => self.disconnect(net, local as usize),
                _ => {}
            }
        }
        self.report_if_done();
    }

    /// Reports once to the controller that this thread has finished the phase.
    pub(super) fn report_if_done(&mut self) {
        if !self.phase.is_unfinished() {
            return;
        }
        let done = self.pacing.is_empty()
            && match self.phase.kind() {
                Some(PhaseKind::Connect) => {
                    !self.clients.iter().any(|client| client.state.is_on_its_way())
                }
                Some(PhaseKind::Resume) => !self.clients.iter().any(|client| {
                    client.state.is_on_its_way()
                        || matches!(client.state, State::Subscribing { .. })
                }),
                Some(PhaseKind::Offline) => true,
                Some(PhaseKind::Subscribe) => !self
                    .clients
                    .iter()
                    .any(|client| matches!(client.state, State::Subscribing { .. } | State::Away)),
                Some(PhaseKind::Disconnect) => {
                    !self.clients.iter().any(|client| client.state == State::Closing)
                }
                Some(PhaseKind::Probe) => self.probes.is_complete(),
                _ => false,
            };
        if done && let Some(index) = self.phase.take_unfinished() {
            self.report(ReportBody::Done { index });
        }
    }

    pub(super) fn connect(&mut self, net: &mut Net<Self>, local: usize) {
        let addr = self.target_of(local).addr;
        let client = &mut self.clients[local];
        let index = client.index;
        client.state = State::Connecting { since_ns: tacho_net::clock::now_ns() };
        match net.connect(addr, self.source_of(index)) {
            Ok(conn) => {
                net.newcomer(conn);
                self.clients[local].conn = Some(conn);
                if self.client_of.len() <= conn.index() {
                    self.client_of.resize(conn.index() + 1, u32::MAX);
                }
                self.client_of[conn.index()] = local as u32;
            }
            Err(error) => self.fail(net, local, Failure::Connect(ConnectError::from(&error))),
        }
    }

    /// The target of the client.
    fn target_of(&self, local: usize) -> &Target {
        let client = &self.clients[local];
        let plan = &self.context.plan;
        // Invariant: `Plan::check` refuses groups without targets.
        plan.target_of(&plan.groups[client.group], client.index).expect("a group has targets")
    }

    /// The TCP connection is established: starts TLS or WebSocket, or sends CONNECT.
    pub(super) fn begin(&mut self, net: &mut Net<Self>, local: usize, conn: ConnId) {
        let client = &self.clients[local];
        let own = &self.context.plan.groups[client.group].clients[client.rank].identity;
        match self.target_of(local).transport.filter_as(own.as_ref()) {
            Ok(None) => self.send_connect(net, local, conn),
            Ok(Some(filter)) => {
                self.clients[local].opened_ns = tacho_net::clock::now_ns();
                net.set_filter(conn, filter);
            }
            Err(error) => {
                self.fail(net, local, Failure::Connect(ConnectError::other(error.to_string())))
            }
        }
    }

    /// The handshakes of TLS and WebSocket are complete.
    pub(super) fn transport_ready(&mut self, net: &mut Net<Self>, local: usize, conn: ConnId) {
        let took_ns = tacho_net::clock::now_ns().saturating_sub(self.clients[local].opened_ns);
        record(&mut self.handshake_latency, took_ns);
        self.send_connect(net, local, conn);
    }

    /// The failure that describes an unexpected end of a connection.
    pub(super) fn failure_of(&self, local: usize, why: Closed) -> Failure {
        let client = &self.clients[local];
        let opening = matches!(client.state, State::Connecting { .. });
        let greeting = matches!(client.state, State::Greeting { .. });
        match why {
            Closed::ByPeer | Closed::ByUs if opening => Failure::Connect(ConnectError::other(
                "the broker closed the connection during the handshake",
            )),
            Closed::ByPeer | Closed::ByUs => Failure::Closed,
            // TLS 1.3 reports a rejected client certificate only after the handshake.
            Closed::Error(error)
                if opening || (greeting && error.kind() == std::io::ErrorKind::InvalidData) =>
            {
                Failure::Connect(ConnectError::other(error.to_string()))
            }
            Closed::Error(error) => Failure::Broken(error.to_string()),
        }
    }

    /// Sends CONNECT.
    fn send_connect(&mut self, net: &mut Net<Self>, local: usize, conn: ConnId) {
        let state = &mut self.clients[local];
        let State::Connecting { since_ns } = state.state else { return };
        state.state = State::Greeting { since_ns };
        let group = &self.context.plan.groups[state.group];
        let client = &group.clients[state.rank];
        let kind = state.login.as_deref().map_or(LoginKind::Right, |login| login.kind);
        let mut plain = Prover::default();
        let prover = state.prover.as_deref_mut().unwrap_or(&mut plain);
        let presented = match prover.present(&group.authentication, client, kind) {
            Ok(presented) => presented,
            Err(why) => {
                return self.fail(net, local, Failure::Connect(ConnectError::other(why)));
            }
        };
        let properties = ConnectProperties {
            authentication_method: presented.method,
            authentication_data: presented.data.as_deref(),
            session_expiry_s: Some(group.session_expiry_s).filter(|expiry_s| *expiry_s > 0),
            packet_size_max: group.packet_size_max,
            ..ConnectProperties::default()
        };
        let properties = if group.version.is_v5() { properties } else { Default::default() };
        let will = group.will.as_ref().zip(client.will_topic.as_deref());
        let connect = Connect {
            version: group.version,
            clean_start: is_clean(group, state),
            keep_alive_s: group.keep_alive_s,
            client_id: &client.id,
            username: presented.username.as_deref(),
            password: presented.password.as_deref(),
            will: will.map(|(will, topic)| tacho_codec::Will {
                topic,
                payload: &will.payload,
                qos: will.qos,
                retain: will.retain,
                properties: WillProperties {
                    delay_s: Some(will.delay_s)
                        .filter(|delay_s| *delay_s > 0 && group.version.is_v5()),
                    ..WillProperties::default()
                },
            }),
            properties,
        };
        if let Err(error) = connect.encode(net.out(conn).as_vec_mut()) {
            self.fail(net, local, Failure::Connect(ConnectError::other(error.to_string())));
        }
    }

    pub(super) fn handle_connack(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        connack: &ConnAck<'_>,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let client = &mut self.clients[local];
        let State::Greeting { since_ns } = client.state else {
            return Err(Failure::Protocol("CONNACK without CONNECT".into()));
        };
        if connack.reason.is_error() {
            return Err(Failure::Refused(connack.reason));
        }
        if let Some(prover) = client.prover.as_deref_mut() {
            let proof = connack.properties.authentication_data;
            prover.accepted(proof).map_err(Failure::Protocol)?;
        }
        if client.login.is_some() {
            self.logged_in(net, local, connack, since_ns, now_ns);
            return Ok(());
        }
        let group = &self.context.plan.groups[client.group];
        if connack.session_present && is_clean(group, client) {
            return Err(Failure::Protocol(
                "session present although a clean session was requested".into(),
            ));
        }
        if needs_wipe(group, client) {
            self.reconnect_after_wipe(net, local);
            return Ok(());
        }
        let properties = &connack.properties;
        check_limits(&self.streams[client.streams()], properties)?;
        let keep_alive_s = properties.server_keep_alive_s.unwrap_or(group.keep_alive_s);
        let abandoned = client.session.connack(
            now_ns,
            ConnAckParams {
                session_present: connack.session_present,
                receive_maximum: properties.receive_maximum.unwrap_or(u16::MAX),
                keep_alive_s,
                ping_timeout_s: keep_alive_s,
                ..ConnAckParams::new(client.version)
            },
        );
        client.state = State::Up;
        client.attempts = 0;
        if let Some(conn) = client.conn {
            net.established(conn);
        }
        let again = std::mem::replace(&mut client.history, SessionHistory::Established)
            == SessionHistory::Established;
        self.totals.alive[usize::from(client.cell)] += 1;
        self.totals.connected += u64::from(!again);
        let took_ns = now_ns.saturating_sub(since_ns);
        record(&mut self.connect_latency, took_ns);
        self.recorder.sample.connect.note(true, took_ns);
        if !again {
            self.totals.connected_ns = self.totals.connected_ns.max(now_ns);
        }
        if let Some(deadline_ns) = client.session.next_timeout() {
            client.timer = Some(net.set_timer(deadline_ns, local as u64));
        }
        self.plan_renewal(net, local);
        self.abandon(local, &abandoned, now_ns);
        if again || self.clients[local].subscriptions.are_wanted() {
            self.come_back(net, local, again, connack.session_present);
        }
        Ok(())
    }

    /// A client's keep-alive timer fired.
    pub(super) fn keep_alive(&mut self, net: &mut Net<Self>, local: usize) {
        let client = &mut self.clients[local];
        let Some(conn) = client.conn.filter(|_| client.state.is_up()) else { return };
        match client.session.handle_timeout(net.now_ns()) {
            Some(TimeoutEvent::SendPingReq) => net.out(conn).extend_from_slice(&[0xC0, 0]),
            Some(TimeoutEvent::PingTimeout) => return self.fail(net, local, Failure::PingTimeout),
            None => {}
        }
        if let Some(deadline_ns) = client.session.next_timeout() {
            client.timer = Some(net.set_timer(deadline_ns, local as u64));
        }
    }

    /// The session of an earlier run is discarded: reconnects with the session of this run.
    fn reconnect_after_wipe(&mut self, net: &mut Net<Self>, local: usize) {
        let client = &mut self.clients[local];
        client.history = SessionHistory::Wiped;
        if let Some(conn) = client.conn.take() {
            // Invariant: a DISCONNECT without properties always fits.
            Disconnect::default()
                .encode(client.version, net.out(conn).as_vec_mut())
                .expect("an empty DISCONNECT is encodable");
            net.close(conn);
        }
        self.connect(net, local);
    }

    fn disconnect(&mut self, net: &mut Net<Self>, local: usize) {
        self.abort_replaced(net, local);
        let client = &mut self.clients[local];
        let was_up = client.state.is_up();
        let Some(conn) = client.conn else {
            if client.state == State::Away {
                self.totals.unacked -= client.session.inflight_len() as u64;
            }
            if matches!(client.state, State::Idle | State::Away) {
                client.state = State::Closed;
            }
            return;
        };
        self.totals.alive[usize::from(client.cell)] -= u64::from(was_up);
        client.state = State::Closing;
        self.totals.unacked -= client.session.inflight_len() as u64;
        client.session.disconnected();
        if was_up {
            let disconnect = Disconnect { reason: ReasonCode::SUCCESS, ..Disconnect::default() };
            // Invariant: a DISCONNECT without properties always fits.
            disconnect
                .encode(client.version, net.out(conn).as_vec_mut())
                .expect("an empty DISCONNECT is encodable");
        }
        net.close(conn);
    }

    /// Gives up clients that have waited longer than `timeout_ns` for CONNACK or SUBACK.
    pub(super) fn give_up(&mut self, net: &mut Net<Self>, timeout_ns: u64) {
        let now_ns = net.now_ns();
        for local in 0..self.clients.len() {
            let state = self.clients[local].state;
            let (State::Connecting { since_ns }
            | State::Greeting { since_ns }
            | State::Subscribing { since_ns, .. }) = state
            else {
                continue;
            };
            let waited_ns = now_ns.saturating_sub(since_ns);
            if waited_ns < timeout_ns {
                continue;
            }
            let waited_ms = waited_ns / 1_000_000;
            let why = if state.is_up() {
                Failure::SubscribeTimeout { waited_ms }
            } else {
                Failure::ConnectTimeout { waited_ms }
            };
            self.fail(net, local, why);
        }
    }

    /// Appends an acknowledgement.
    #[inline]
    pub(super) fn encode_ack(
        kind: tacho_codec::AckKind,
        ack: Ack<'_>,
        version: tacho_codec::Version,
        out: &mut Vec<u8>,
    ) {
        // Invariant: an acknowledgement without properties always fits.
        ack.encode(kind, version, out).expect("an acknowledgement is encodable");
    }
}

/// Whether the broker takes what the client is to publish.
fn check_limits(
    streams: &[VirtualStream],
    properties: &ConnAckProperties<'_>,
) -> Result<(), Failure> {
    let qos_max = properties.maximum_qos.unwrap_or(QoS::ExactlyOnce);
    if streams.iter().any(|stream| stream.qos > qos_max) {
        return Err(Failure::Protocol(format!("it allows at most QoS {qos_max}")));
    }
    if properties.retain_available == Some(false) && streams.iter().any(|stream| stream.retain) {
        return Err(Failure::Protocol("it does not allow retained messages".into()));
    }
    let size_max = properties.packet_size_max.unwrap_or(u32::MAX) as usize;
    if streams.iter().any(|stream| stream.packet_bytes_max > size_max) {
        return Err(Failure::Protocol(format!("it accepts no packets above {size_max} bytes")));
    }
    Ok(())
}

/// Whether this CONNECT requests a clean session.
fn is_clean(group: &Group, client: &VirtualClient) -> bool {
    match client.was_up() {
        // It returns to its session.
        true => !group.is_persistent(),
        false if group.version.is_v5() => group.clean_start,
        false => !group.is_persistent() || needs_wipe(group, client),
    }
}

/// 3.x cannot request a persistent session that begins clean: an old one must be discarded first.
fn needs_wipe(group: &Group, client: &VirtualClient) -> bool {
    group.clean_start
        && group.session_expiry_s > 0
        && !group.version.is_v5()
        && client.history == SessionHistory::Unknown
}
