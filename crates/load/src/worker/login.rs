//! Logins by a schedule: clients that connect, stay for a while, leave, and connect again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tacho_codec::ConnAck;
use tacho_net::{ConnId, Net, clock};
use tacho_session::client::ConnAckParams;

use super::client::{LoginProgress, VirtualClient};
use super::lifecycle::{SessionHistory, State};
use super::{Failure, Worker};
use crate::events::JudgedLogin;
use crate::histogram::record;
use crate::mail::ReportBody;
use crate::plan::{Login, Plan};

/// Clients per turn, which bounds the length of a turn.
const CLIENTS_PER_TURN_MAX: usize = 64;

/// When the clients of this thread log in and leave.
#[derive(Debug, Default)]
pub(super) struct LoginSchedule {
    /// The next step of each client that does not wait for its broker: to log in, or to leave.
    steps: BinaryHeap<Reverse<(u64, u32)>>,
    /// Start of the load, and the factor on all rates.
    start_ns: u64,
    factor: f64,
}

impl LoginSchedule {
    /// When the next step is due.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.steps.peek().map_or(u64::MAX, |step| step.0.0)
    }

    fn due_ns(&self, login: &Login, progress: &LoginProgress) -> u64 {
        self.start_ns.saturating_add(login.due_ns(progress.next, self.factor))
    }
}

impl Worker {
    /// Begins the schedule of a load. A client that waits for its broker continues by it later.
    pub(super) fn plan_logins(&mut self, start_ns: u64, factor: f64) {
        self.logins = LoginSchedule { steps: BinaryHeap::new(), start_ns, factor };
        for local in 0..self.clients.len() {
            let client = &mut self.clients[local];
            let Some(progress) = client.login.as_deref_mut() else { continue };
            *progress = LoginProgress { next: client.rank as u64, ..*progress };
            if !client.state.is_on_its_way() {
                self.plan_next_login(local, start_ns);
            }
        }
    }

    fn login_of<'p>(plan: &'p Plan, client: &VirtualClient) -> Option<(&'p Login, u64)> {
        let group = &plan.groups[client.group];
        group.login.as_ref().map(|login| (login, group.clients.len() as u64))
    }

    /// Schedules the client's next login, from `earliest_ns` on.
    fn plan_next_login(&mut self, local: usize, earliest_ns: u64) {
        let client = &self.clients[local];
        let Some((login, _)) = Self::login_of(&self.context.plan, client) else { return };
        let Some(progress) = client.login.as_deref() else { return };
        let at_ns = self.logins.due_ns(login, progress).max(earliest_ns);
        self.logins.steps.push(Reverse((at_ns, local as u32)));
    }

    /// Runs the steps that are due; true if more are due immediately.
    #[inline]
    pub(super) fn run_logins(&mut self, net: &mut Net<Self>, now_ns: u64) -> bool {
        self.logins.next_ns() <= now_ns && self.run_login_steps(net, now_ns)
    }

    #[cold]
    fn run_login_steps(&mut self, net: &mut Net<Self>, now_ns: u64) -> bool {
        for _ in 0..CLIENTS_PER_TURN_MAX {
            let next = self.logins.steps.peek().map(|step| step.0);
            let Some((_, local)) = next.filter(|(at_ns, _)| *at_ns <= now_ns) else {
                return false;
            };
            self.logins.steps.pop();
            match self.clients[local as usize].state {
                State::Up => self.log_off(net, local as usize, now_ns),
                State::Idle => self.log_in(net, local as usize, now_ns),
                _ => {}
            }
        }
        self.logins.next_ns() <= now_ns
    }

    /// The client's next login begins, unless the load is over.
    fn log_in(&mut self, net: &mut Net<Self>, local: usize, now_ns: u64) {
        let context = std::sync::Arc::clone(&self.context);
        let client = &mut self.clients[local];
        let Some((login, clients)) = Self::login_of(&context.plan, client) else { return };
        let Some(progress) = client.login.as_deref_mut() else { return };
        let intended_ns = self.logins.due_ns(login, progress);
        if intended_ns > now_ns {
            // Its connection broke while it stayed.
            return self.plan_next_login(local, intended_ns);
        }
        if intended_ns >= self.phase.load_end_ns {
            return;
        }
        progress.intended_ns = intended_ns;
        progress.kind = login.kind(progress.next);
        progress.next += clients;
        let possible_ns = intended_ns.max(progress.free_ns);
        self.recorder.login_began(intended_ns, possible_ns, now_ns);
        self.connect(net, local);
    }

    /// The broker has accepted the login.
    pub(super) fn logged_in(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        connack: &ConnAck<'_>,
        since_ns: u64,
        now_ns: u64,
    ) {
        let context = std::sync::Arc::clone(&self.context);
        let client = &mut self.clients[local];
        let Some((login, _)) = Self::login_of(&context.plan, client) else { return };
        client.state = State::Up;
        let known = std::mem::replace(&mut client.history, SessionHistory::Established);
        self.totals.alive[usize::from(client.cell)] += 1;
        self.totals.connected += u64::from(known != SessionHistory::Established);
        let took_ns = now_ns.saturating_sub(since_ns);
        record(&mut self.connect_latency, took_ns);
        self.recorder.sample.connect.note(true, took_ns);
        self.note_login(local, None, now_ns);
        if login.stay_ns == 0 {
            return self.log_off(net, local, now_ns);
        }
        let client = &mut self.clients[local];
        let group = &context.plan.groups[client.group];
        let keep_alive_s = connack.properties.server_keep_alive_s.unwrap_or(group.keep_alive_s);
        client.session.connack(
            now_ns,
            ConnAckParams {
                session_present: connack.session_present,
                keep_alive_s,
                ping_timeout_s: keep_alive_s,
                ..ConnAckParams::new(client.version)
            },
        );
        if let Some(deadline_ns) = client.session.next_timeout() {
            client.timer = Some(net.set_timer(deadline_ns, local as u64));
        }
        self.plan_renewal(net, local);
        self.logins.steps.push(Reverse((now_ns.saturating_add(login.stay_ns), local as u32)));
    }

    /// The client leaves until its next login.
    fn log_off(&mut self, net: &mut Net<Self>, local: usize, now_ns: u64) {
        self.close_connection(net, local, true);
        self.rest_until_login(net, local);
        self.login_ended(local, now_ns);
    }

    fn rest_until_login(&mut self, net: &mut Net<Self>, local: usize) {
        self.go_away(net, local, None);
        self.clients[local].state = State::Idle;
    }

    fn login_ended(&mut self, local: usize, now_ns: u64) {
        if let Some(progress) = self.clients[local].login.as_deref_mut() {
            progress.free_ns = now_ns;
        }
        self.plan_next_login(local, now_ns);
    }

    /// The connection of a client that logs in by a schedule failed: before the broker accepted
    /// it, or later.
    pub(super) fn login_failed(
        &mut self,
        net: &mut Net<Self>,
        local: usize,
        conn: Option<ConnId>,
        why: Failure,
    ) {
        let now_ns = clock::now_ns();
        let was_up = self.clients[local].state.is_up();
        if let Some(conn) = conn {
            net.abort(conn);
        }
        self.rest_until_login(net, local);
        if was_up {
            // The step that would have ended its stay begins its next login.
            let client = self.clients[local].index;
            self.report(ReportBody::Interrupted { client, why });
            return;
        }
        self.note_login(local, Some(why), now_ns);
        self.login_ended(local, now_ns);
    }

    fn note_login(&mut self, local: usize, why: Option<Failure>, now_ns: u64) {
        let client = &self.clients[local];
        let Some(progress) = client.login.as_deref() else { return };
        let login = JudgedLogin { client: client.index, kind: progress.kind, why };
        self.recorder.login_ended(login, progress.intended_ns, now_ns);
    }

    /// Clients whose logins of the load are not over.
    pub(super) fn logins_outstanding(&self) -> u64 {
        let end_ns = self.phase.load_end_ns;
        let is_outstanding = |client: &&VirtualClient| {
            let Some(progress) = client.login.as_deref() else { return false };
            let Some((login, _)) = Self::login_of(&self.context.plan, client) else { return false };
            client.state.is_on_its_way() && progress.intended_ns < end_ns
                || self.logins.due_ns(login, progress) < end_ns
        };
        self.clients.iter().filter(is_outstanding).count() as u64
    }

    /// The drain is over: counts the logins that have not ended.
    pub(super) fn abandon_logins(&mut self) {
        let context = std::sync::Arc::clone(&self.context);
        let end_ns = self.phase.load_end_ns;
        self.logins.steps.retain(|step| self.clients[step.0.1 as usize].state == State::Up);
        for client in &mut self.clients {
            let Some((login, clients)) = Self::login_of(&context.plan, client) else { continue };
            let Some(progress) = client.login.as_deref_mut() else { continue };
            if client.state.is_on_its_way() {
                self.recorder.login_unfinished(progress.kind, progress.intended_ns);
                // Its end belongs to no window.
                progress.intended_ns = 0;
            }
            loop {
                let due_ns = self.logins.due_ns(login, progress);
                if due_ns >= end_ns {
                    break;
                }
                self.recorder.login_unfinished(login.kind(progress.next), due_ns);
                progress.next += clients;
            }
        }
    }
}
