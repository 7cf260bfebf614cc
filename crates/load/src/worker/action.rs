//! Timed actions on the clients of this thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use tacho_codec::{Direction, Packet, ReasonCode, split_frame};
use tacho_net::{ConnId, Net, clock};

use super::lifecycle::State;
use super::{Failure, Worker};
use crate::events::{ActionCounts, ActionTotals};
use crate::histogram::record;
use crate::mail::ReportBody;
use crate::plan::{Action, ActionKind, ClientIndex, StreamIndex};

/// Steps per turn, which bounds the length of a turn: one that ends a connection takes about 40 us.
const STEPS_PER_TURN_MAX: usize = 32;

/// One step of an action at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    at_ns: u64,
    action: u32,
    kind: StepKind,
}

/// What a step does. Clients are numbered on this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StepKind {
    /// Schedules the steps of the affected clients.
    Begin,
    /// Carries the action out on a client.
    Apply { client: u32 },
    /// Ends the pause of a client.
    EndPause { client: u32 },
}

/// The state of all actions on one thread.
#[derive(Debug, Default)]
pub(super) struct ActionProgress {
    steps: BinaryHeap<Reverse<Step>>,
    /// Start of the measured window.
    start_ns: u64,
    /// By action.
    totals: Vec<ActionTotals>,
    /// Retained messages received so far, by action.
    retained: Vec<u64>,
    /// The counts last reported, by action.
    reported: Vec<ActionCounts>,
    /// Wills received: action, receiver on this thread, client of the will.
    wills: HashSet<(usize, u32, ClientIndex)>,
}

/// The last action on a client, and its consequences so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActionEffect {
    action: u32,
    at_ns: u64,
    /// The connection replaced by the current one, until it ends.
    replaced: Option<ConnId>,
    stage: Stage,
    /// Retained messages received, and when the last one was.
    retained: u64,
    retained_ns: u64,
}

/// How far a client has recovered from an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Waits for its CONNACK.
    Disconnected,
    /// Has its CONNACK, and waits for its session or its subscriptions.
    Connected,
    /// Does not read its socket.
    Paused,
    /// Has its session or its subscriptions.
    Ready,
}

impl Stage {
    /// The stage right after an action of this kind.
    const fn after(kind: ActionKind) -> Self {
        match kind {
            ActionKind::Disconnect { .. } | ActionKind::TakeOver => Self::Disconnected,
            ActionKind::Pause { .. } => Self::Paused,
            ActionKind::Subscribe => Self::Connected,
        }
    }
}

impl ActionProgress {
    /// When the next step is due.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.steps.peek().map_or(u64::MAX, |step| step.0.at_ns)
    }

    fn totals_of(&mut self, action: u32) -> &mut ActionTotals {
        &mut self.totals[action as usize]
    }

    /// The changes since the last call, by action.
    pub(super) fn take_changes(&mut self) -> Vec<(usize, ActionCounts)> {
        let now = self.totals.iter().zip(&self.retained).map(|(of, came)| of.counts(*came));
        let both = now.zip(&mut self.reported).enumerate();
        both.filter_map(|(action, (now, reported))| {
            let change = now.since(reported)?;
            *reported = now;
            Some((action, change))
        })
        .collect()
    }
}

impl Worker {
    /// Schedules all actions; the measured window begins at `start_ns`.
    pub(super) fn plan_actions(&mut self, start_ns: u64) {
        let actions = &self.context.plan.actions;
        self.actions.start_ns = start_ns;
        self.actions.totals = vec![ActionTotals::default(); actions.len()];
        self.actions.retained = vec![0; actions.len()];
        self.actions.reported = vec![ActionCounts::default(); actions.len()];
        self.actions.wills.clear();
        let begin = |(number, action): (usize, &Action)| {
            let at_ns = start_ns.saturating_add(action.after_ns);
            Reverse(Step { at_ns, action: number as u32, kind: StepKind::Begin })
        };
        self.actions.steps = actions.iter().enumerate().map(begin).collect();
    }

    /// Cancels all steps that are still due.
    pub(super) fn cancel_actions(&mut self) {
        self.actions.steps.clear();
    }

    /// Runs the steps that are due; true if more are due immediately.
    #[inline]
    pub(super) fn run_actions(&mut self, net: &mut Net<Self>, now_ns: u64) -> bool {
        self.actions.next_ns() <= now_ns && self.run_steps(net, now_ns)
    }

    #[cold]
    fn run_steps(&mut self, net: &mut Net<Self>, now_ns: u64) -> bool {
        for _ in 0..STEPS_PER_TURN_MAX {
            let next = self.actions.steps.peek().map(|step| step.0);
            let Some(step) = next.filter(|step| step.at_ns <= now_ns) else { return false };
            self.actions.steps.pop();
            match step.kind {
                StepKind::Begin => self.begin_action(step),
                StepKind::Apply { client } => self.apply_action(net, step, client),
                StepKind::EndPause { client } => self.end_pause(net, step.action, client),
            }
        }
        self.actions.next_ns() <= now_ns
    }

    /// Schedules a step for each affected client.
    fn begin_action(&mut self, step: Step) {
        let action = self.context.plan.actions[step.action as usize];
        let all = self.context.plan.groups[action.group].clients.len();
        let gap_ns = action.over_ns / u64::from(action.clients.max(1));
        let mut count = 0;
        for (client, state) in (0..).zip(&self.clients) {
            if state.group != action.group {
                continue;
            }
            if let Some(position) = action.position(state.rank, all) {
                let at_ns = step.at_ns + position * gap_ns;
                let kind = StepKind::Apply { client };
                self.actions.steps.push(Reverse(Step { at_ns, kind, ..step }));
                count += u64::from(state.state == State::Up);
            }
        }
        self.report(ReportBody::ActionStarted { action: step.action, clients: count });
    }

    fn apply_action(&mut self, net: &mut Net<Self>, step: Step, client: u32) {
        let local = client as usize;
        let context = Arc::clone(&self.context);
        let action = &context.plan.actions[step.action as usize];
        let client = &mut self.clients[local];
        let Some(conn) = client.conn.filter(|_| client.state == State::Up) else { return };
        let group = &context.plan.groups[client.group];
        let index = client.index;
        if let Some(replaced) = client.effect.take().and_then(|effect| effect.replaced) {
            net.abort(replaced);
        }
        let mut effect = ActionEffect {
            action: step.action,
            at_ns: step.at_ns,
            replaced: None,
            stage: Stage::after(action.kind),
            retained: 0,
            retained_ns: 0,
        };
        self.actions.totals_of(step.action).clients += 1;
        match action.kind {
            ActionKind::Disconnect { clean } => {
                if !clean {
                    let wills = context.will_receivers.get(index.index()).copied().unwrap_or(0);
                    self.actions.totals_of(step.action).wills_expected += u64::from(wills);
                }
                self.close_connection(net, local, clean);
                self.note_session_end(local, group.is_persistent());
                self.clients[local].effect = Some(Box::new(effect));
                self.go_away(net, local, group.reconnect.map(|reconnect| reconnect.first_ns));
            }
            ActionKind::Pause { for_ns } => {
                net.pause_read(conn);
                client.effect = Some(Box::new(effect));
                let at_ns = step.at_ns.saturating_add(for_ns);
                let kind = StepKind::EndPause { client: local as u32 };
                self.actions.steps.push(Reverse(Step { at_ns, kind, ..step }));
                self.verifier.set_away(local);
            }
            ActionKind::TakeOver => {
                effect.replaced = Some(conn);
                client.conn = None;
                self.totals.alive[usize::from(client.cell)] -= 1;
                client.effect = Some(Box::new(effect));
                self.note_session_end(local, group.is_persistent());
                self.go_away(net, local, None);
                self.connect(net, local);
            }
            ActionKind::Subscribe => {
                client.subscriptions.want();
                effect.at_ns = clock::now_ns();
                client.effect = Some(Box::new(effect));
                self.subscribe(net, local);
            }
        }
    }

    /// The client's connection ends, and its session too unless it is `persistent`.
    pub(super) fn note_session_end(&mut self, local: usize, persistent: bool) {
        if self.clients[local].was_up() && !persistent {
            self.verifier.end_session(local);
        }
    }

    fn end_pause(&mut self, net: &mut Net<Self>, action: u32, client: u32) {
        let local = client as usize;
        let client = &mut self.clients[local];
        let Some(effect) = client.effect.as_mut() else { return };
        if effect.action == action && effect.stage == Stage::Paused {
            effect.stage = Stage::Ready;
            if let Some(conn) = client.conn {
                net.resume_read(conn);
            }
            // Messages published during the pause wait in sockets and queues, or were dropped by
            // the broker.
            self.verifier.set_back(local, clock::now_ns());
        }
    }

    /// The client has received its CONNACK.
    pub(super) fn note_connected(&mut self, local: usize, now_ns: u64) {
        let Some(effect) = self.clients[local].effect.as_mut() else { return };
        if effect.stage == Stage::Disconnected {
            effect.stage = Stage::Connected;
            let took_ns = now_ns.saturating_sub(effect.at_ns);
            record(&mut self.actions.totals[effect.action as usize].connected, took_ns);
        }
    }

    /// The client has its session or its subscriptions.
    pub(super) fn note_ready(&mut self, local: usize, now_ns: u64) {
        let Some(effect) = self.clients[local].effect.as_mut() else { return };
        if matches!(effect.stage, Stage::Disconnected | Stage::Connected) {
            effect.stage = Stage::Ready;
            let took_ns = now_ns.saturating_sub(effect.at_ns);
            record(&mut self.actions.totals[effect.action as usize].ready, took_ns);
        }
    }

    /// An attempt to reconnect failed; `is_final` when the client is given up.
    pub(super) fn note_failed_attempt(&mut self, local: usize, why: &Failure, is_final: bool) {
        let effect = self.clients[local].effect.as_ref();
        let effect = effect.filter(|effect| effect.stage == Stage::Disconnected);
        let Some(effect) = effect else { return };
        let totals = &mut self.actions.totals[effect.action as usize];
        totals.retried += 1;
        totals.refused += u64::from(matches!(why, Failure::Refused(_)));
        totals.given_up += u64::from(is_final);
    }

    /// The client ends: a replaced connection that is still open ends too.
    pub(super) fn abort_replaced(&mut self, net: &mut Net<Self>, local: usize) {
        let effect = self.clients[local].effect.as_mut();
        if let Some(replaced) = effect.and_then(|effect| effect.replaced.take()) {
            net.abort(replaced);
        }
    }

    /// The client whose replaced connection this is.
    fn client_of_replaced(&self, conn: ConnId) -> Option<usize> {
        let client = *self.client_of.get(conn.index())? as usize;
        let effect = self.clients.get(client)?.effect.as_ref()?;
        (effect.replaced == Some(conn)).then_some(client)
    }

    /// Input of a replaced connection: only its DISCONNECT matters.
    #[cold]
    pub(super) fn replaced_input(&mut self, conn: ConnId, data: &[u8]) -> usize {
        let Some(local) = self.client_of_replaced(conn) else { return data.len() };
        let version = self.clients[local].version;
        let size_max = self.context.packet_bytes_accepted[self.clients[local].group];
        let mut used = 0;
        loop {
            let frame = match split_frame(&data[used..], size_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                // Nothing that follows can be read.
                Err(_) => return data.len(),
            };
            used += frame.total_len;
            if let Ok(Packet::Disconnect(disconnect)) =
                Packet::decode(&frame, version, Direction::ToClient)
                && disconnect.reason == ReasonCode::SESSION_TAKEN_OVER
                && let Some(effect) = self.clients[local].effect.as_ref()
            {
                self.actions.totals[effect.action as usize].taken_over += 1;
            }
        }
        // Beyond the budget the rest is discarded.
        if self.intake.keep(conn, data.len() - used) { used } else { data.len() }
    }

    /// A replaced connection has ended.
    #[cold]
    pub(super) fn replaced_closed(&mut self, conn: ConnId) {
        let Some(local) = self.client_of_replaced(conn) else { return };
        if let Some(effect) = self.clients[local].effect.as_mut() {
            effect.replaced = None;
            let took_ns = clock::now_ns().saturating_sub(effect.at_ns);
            record(&mut self.actions.totals[effect.action as usize].displaced, took_ns);
        }
    }

    /// A client here received the will of client `of`.
    #[cold]
    pub(super) fn note_will(&mut self, local: usize, of: ClientIndex, now_ns: u64) {
        let actions = &self.context.plan.actions;
        let group = self.context.cells.infos[self.context.cells.cell_of(of)].group;
        let since_ns = now_ns.saturating_sub(self.actions.start_ns);
        let last = actions.iter().enumerate().rev().find(|(_, action)| {
            let breaks = matches!(action.kind, ActionKind::Disconnect { clean: false });
            breaks && action.group == group && action.after_ns <= since_ns
        });
        let last = last.filter(|_| !self.actions.totals.is_empty());
        let Some((number, action)) = last else { return };
        if self.actions.wills.insert((number, local as u32, of)) {
            record(&mut self.actions.totals[number].wills, since_ns - action.after_ns);
        }
    }

    /// A client here received a retained message for the first time.
    #[cold]
    pub(super) fn note_retained(&mut self, local: usize, now_ns: u64) {
        if let Some(effect) = self.clients[local].effect.as_mut() {
            effect.retained += 1;
            effect.retained_ns = now_ns;
            self.actions.retained[effect.action as usize] += 1;
        }
    }

    /// The totals of all actions, once the books are closed. `was_sent` says of each stream whether
    /// it has published anything.
    pub(super) fn action_totals(
        &self,
        was_sent: impl Fn(StreamIndex) -> bool,
    ) -> Vec<ActionTotals> {
        // Clients may still reconnect after the window: the running totals are kept.
        let mut totals = self.actions.totals.clone();
        if totals.is_empty() {
            return totals;
        }
        for (local, client) in self.clients.iter().enumerate() {
            let Some(effect) = client.effect.as_ref() else { continue };
            let action = &self.context.plan.actions[effect.action as usize];
            if action.kind != ActionKind::Subscribe {
                continue;
            }
            let streams = self.verifier.streams_to(local);
            let is_due = |of: &StreamIndex| self.context.retained[of.index()] && was_sent(*of);
            let expected = streams.filter(is_due).count() as u64;
            let totals = &mut totals[effect.action as usize];
            totals.retained_expected += expected;
            totals.retained += effect.retained;
            if effect.retained >= expected && expected > 0 {
                let took_ns = effect.retained_ns.saturating_sub(effect.at_ns);
                record(&mut totals.complete, took_ns);
            }
        }
        totals
    }
}
