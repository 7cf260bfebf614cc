//! Actions: what happens to clients at times of the measured window.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use tacho_codec::{Direction, Packet, ReasonCode, split_frame};
use tacho_net::{ConnId, Net, clock};

use super::client::State;
use super::{Failure, Worker};
use crate::events::{ActionCounts, ActionTotals};
use crate::mail::ReportBody;
use crate::plan::{Action, ClientIndex, Deed};
use crate::recorder::record;

/// Clients per turn to which something happens, so that a turn stays short.
const CLIENTS_PER_TURN_MAX: usize = 256;
/// In place of a client: the action itself begins.
const BEGIN: u32 = u32::MAX;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    action: u32,
    /// Number on this thread, or [`BEGIN`].
    client: u32,
    /// A pause ends.
    ends: bool,
}

/// The actions of one thread.
#[derive(Debug, Default)]
pub(super) struct Acts {
    due: BinaryHeap<Reverse<Due>>,
    /// When the measured window began.
    start_ns: u64,
    /// By action.
    totals: Vec<ActionTotals>,
    /// Retained messages that came so far, by action.
    retained: Vec<u64>,
    /// What was told of each action.
    told: Vec<ActionCounts>,
    /// Actions and receivers that have a client's will.
    wills: HashSet<(usize, u32, ClientIndex)>,
}

/// What has happened to a client last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acting {
    action: u32,
    at_ns: u64,
    /// The connection that the current one has replaced, until it ends.
    old: Option<ConnId>,
    is_back: bool,
    is_ready: bool,
    is_paused: bool,
    /// Retained messages that came, and when the last one did.
    retained: u64,
    retained_ns: u64,
}

impl Acts {
    /// When something is to happen next.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.due.peek().map_or(u64::MAX, |due| due.0.at_ns)
    }

    fn of(&mut self, action: u32) -> &mut ActionTotals {
        &mut self.totals[action as usize]
    }

    /// What came of actions since this was asked last.
    pub(super) fn news(&mut self) -> Vec<(usize, ActionCounts)> {
        let now = self.totals.iter().zip(&self.retained).map(|(of, came)| of.counts(*came));
        let both = now.zip(&mut self.told).enumerate();
        both.filter_map(|(action, (now, told))| {
            let news = now.since(told)?;
            *told = now;
            Some((action, news))
        })
        .collect()
    }
}

impl Worker {
    /// The measured window begins.
    pub(super) fn plan_actions(&mut self, start_ns: u64) {
        let actions = &self.common.plan.actions;
        self.acts.start_ns = start_ns;
        self.acts.totals = vec![ActionTotals::default(); actions.len()];
        self.acts.retained = vec![0; actions.len()];
        self.acts.told = vec![ActionCounts::default(); actions.len()];
        self.acts.wills.clear();
        let begin = |(number, action): (usize, &Action)| {
            let at_ns = start_ns.saturating_add(action.after_ns);
            Reverse(Due { at_ns, action: number as u32, client: BEGIN, ends: false })
        };
        self.acts.due = actions.iter().enumerate().map(begin).collect();
    }

    /// Nothing more is to happen.
    pub(super) fn forget_actions(&mut self) {
        self.acts.due.clear();
    }

    /// Does what is due; true if there is more at once.
    #[inline]
    pub(super) fn act(&mut self, net: &mut Net<Self>, now_ns: u64) -> bool {
        self.acts.next_ns() <= now_ns && self.act_now(net, now_ns)
    }

    #[cold]
    fn act_now(&mut self, net: &mut Net<Self>, now_ns: u64) -> bool {
        for _ in 0..CLIENTS_PER_TURN_MAX {
            let Some(due) = self.acts.due.peek().map(|due| due.0).filter(|due| due.at_ns <= now_ns)
            else {
                return false;
            };
            self.acts.due.pop();
            match due {
                Due { client: BEGIN, .. } => self.begin_action(due),
                Due { ends: true, .. } => self.read_again(net, due),
                _ => self.happen(net, due),
            }
        }
        self.acts.next_ns() <= now_ns
    }

    /// Finds those concerned.
    fn begin_action(&mut self, due: Due) {
        let action = self.common.plan.actions[due.action as usize];
        let all = self.common.plan.groups[action.group].clients.len();
        let gap_ns = action.over_ns / u64::from(action.clients.max(1));
        let mut count = 0;
        for (client, state) in (0..).zip(&self.clients) {
            if state.group != action.group {
                continue;
            }
            if let Some(position) = action.position(state.rank, all) {
                let at_ns = due.at_ns + position * gap_ns;
                self.acts.due.push(Reverse(Due { at_ns, client, ..due }));
                count += u64::from(state.state == State::Up);
            }
        }
        self.report(ReportBody::Acted { action: due.action, clients: count });
    }

    fn happen(&mut self, net: &mut Net<Self>, due: Due) {
        let local = due.client as usize;
        let common = std::sync::Arc::clone(&self.common);
        let action = &common.plan.actions[due.action as usize];
        let client = &mut self.clients[local];
        let Some(conn) = client.conn.filter(|_| client.state == State::Up) else { return };
        let group = &common.plan.groups[client.group];
        let index = client.index;
        if let Some(old) = client.acting.take().and_then(|acting| acting.old) {
            net.abort(old);
        }
        let mut acting = Acting {
            action: due.action,
            at_ns: due.at_ns,
            old: None,
            is_back: matches!(action.deed, Deed::Pause { .. } | Deed::Subscribe),
            is_ready: matches!(action.deed, Deed::Pause { .. }),
            is_paused: false,
            retained: 0,
            retained_ns: 0,
        };
        self.acts.of(due.action).clients += 1;
        match action.deed {
            Deed::Disconnect { clean } => {
                if !clean {
                    let wills = common.will_receivers.get(index as usize).copied().unwrap_or(0);
                    self.acts.of(due.action).wills_expected += u64::from(wills);
                }
                self.part(net, local, clean);
                self.leave_session(local, group.is_persistent());
                self.clients[local].acting = Some(Box::new(acting));
                self.go_away(net, local, group.reconnect.map(|reconnect| reconnect.first_ns));
            }
            Deed::Pause { for_ns } => {
                net.pause_read(conn);
                acting.is_paused = true;
                client.acting = Some(Box::new(acting));
                let at_ns = due.at_ns.saturating_add(for_ns);
                self.acts.due.push(Reverse(Due { at_ns, ends: true, ..due }));
                self.verifier.set_away(local);
            }
            Deed::TakeOver => {
                acting.old = Some(conn);
                client.conn = None;
                self.totals.alive[usize::from(client.cell)] -= 1;
                client.acting = Some(Box::new(acting));
                self.leave_session(local, group.is_persistent());
                self.go_away(net, local, None);
                self.connect(net, local);
            }
            Deed::Subscribe => {
                client.wants_subscriptions = true;
                acting.at_ns = clock::now_ns();
                client.acting = Some(Box::new(acting));
                self.subscribe(net, local);
            }
        }
    }

    /// The client's connection ends, and with it its session, unless that is `persistent`.
    pub(super) fn leave_session(&mut self, local: usize, persistent: bool) {
        if self.clients[local].was_up && !persistent {
            self.verifier.end_session(local);
        }
    }

    /// A pause is over.
    fn read_again(&mut self, net: &mut Net<Self>, due: Due) {
        let client = &mut self.clients[due.client as usize];
        let Some(acting) = client.acting.as_mut() else { return };
        if acting.action == due.action && std::mem::take(&mut acting.is_paused) {
            if let Some(conn) = client.conn {
                net.resume_read(conn);
            }
            // What was published meanwhile waits in sockets and queues, or the broker dropped it.
            self.verifier.set_back(due.client as usize, clock::now_ns());
        }
    }

    /// The client has its CONNACK.
    pub(super) fn note_connected(&mut self, local: usize, now_ns: u64) {
        let Some(acting) = self.clients[local].acting.as_mut() else { return };
        if !std::mem::replace(&mut acting.is_back, true) {
            let took_ns = now_ns.saturating_sub(acting.at_ns);
            record(&mut self.acts.totals[acting.action as usize].connected, took_ns);
        }
    }

    /// The client has its session or its subscriptions.
    pub(super) fn note_ready(&mut self, local: usize, now_ns: u64) {
        let Some(acting) = self.clients[local].acting.as_mut() else { return };
        if !std::mem::replace(&mut acting.is_ready, true) {
            let took_ns = now_ns.saturating_sub(acting.at_ns);
            record(&mut self.acts.totals[acting.action as usize].ready, took_ns);
        }
    }

    /// The client did not get its connection back.
    pub(super) fn note_failed_attempt(&mut self, local: usize, why: &Failure, is_final: bool) {
        let acting = self.clients[local].acting.as_ref().filter(|acting| !acting.is_back);
        let Some(acting) = acting else { return };
        let totals = &mut self.acts.totals[acting.action as usize];
        totals.retried += 1;
        totals.refused += u64::from(matches!(why, Failure::Refused(_)));
        totals.given_up += u64::from(is_final);
    }

    /// The client leaves for good: what is left of its first connection goes too.
    pub(super) fn drop_old(&mut self, net: &mut Net<Self>, local: usize) {
        if let Some(old) = self.clients[local].acting.as_mut().and_then(|acting| acting.old.take())
        {
            net.abort(old);
        }
    }

    /// The client whose first connection this was.
    fn client_of_old(&self, conn: ConnId) -> Option<usize> {
        let client = *self.client_of.get(conn.index())? as usize;
        let acting = self.clients.get(client)?.acting.as_ref()?;
        (acting.old == Some(conn)).then_some(client)
    }

    /// Input of a connection that is not a client's current one: only its farewell counts.
    #[cold]
    pub(super) fn old_input(&mut self, conn: ConnId, data: &[u8]) -> usize {
        let Some(local) = self.client_of_old(conn) else { return data.len() };
        let version = self.clients[local].version;
        let mut used = 0;
        while let Ok(Some(frame)) = split_frame(&data[used..], u32::MAX) {
            used += frame.total_len;
            if let Ok(Packet::Disconnect(disconnect)) =
                Packet::decode(&frame, version, Direction::ToClient)
                && disconnect.reason == ReasonCode::SESSION_TAKEN_OVER
                && let Some(acting) = self.clients[local].acting.as_ref()
            {
                self.acts.totals[acting.action as usize].told += 1;
            }
        }
        used
    }

    /// The end of such a connection.
    #[cold]
    pub(super) fn old_closed(&mut self, conn: ConnId) {
        let Some(local) = self.client_of_old(conn) else { return };
        if let Some(acting) = self.clients[local].acting.as_mut() {
            acting.old = None;
            let took_ns = clock::now_ns().saturating_sub(acting.at_ns);
            record(&mut self.acts.totals[acting.action as usize].displaced, took_ns);
        }
    }

    /// A will arrived at a client here.
    #[cold]
    pub(super) fn will_arrived(&mut self, local: usize, of: ClientIndex, now_ns: u64) {
        let actions = &self.common.plan.actions;
        let group = self.common.cells.infos[self.common.cells.of(of)].group;
        let since_ns = now_ns.saturating_sub(self.acts.start_ns);
        let last = actions.iter().enumerate().rev().find(|(_, action)| {
            let breaks = matches!(action.deed, Deed::Disconnect { clean: false });
            breaks && action.group == group && action.after_ns <= since_ns
        });
        let Some((number, action)) = last.filter(|_| !self.acts.totals.is_empty()) else { return };
        if self.acts.wills.insert((number, local as u32, of)) {
            record(&mut self.acts.totals[number].wills, since_ns - action.after_ns);
        }
    }

    /// A retained message arrived at a client here, for the first time.
    #[cold]
    pub(super) fn retained_arrived(&mut self, local: usize, now_ns: u64) {
        if let Some(acting) = self.clients[local].acting.as_mut() {
            acting.retained += 1;
            acting.retained_ns = now_ns;
            self.acts.retained[acting.action as usize] += 1;
        }
    }

    /// What came of all actions, once the books are closed. `sent` tells of each stream whether
    /// anything was.
    pub(super) fn take_actions(&mut self, sent: impl Fn(u32) -> bool) -> Vec<ActionTotals> {
        // Clients may still come back when the window is over: the counts stay in place.
        let mut totals = self.acts.totals.clone();
        if totals.is_empty() {
            return totals;
        }
        for (local, client) in self.clients.iter().enumerate() {
            let Some(acting) = client.acting.as_ref() else { continue };
            let action = &self.common.plan.actions[acting.action as usize];
            if action.deed != Deed::Subscribe {
                continue;
            }
            let streams = self.verifier.streams_to(local);
            let retained = |stream: &u32| self.common.retained[*stream as usize] && sent(*stream);
            let expected = streams.filter(retained).count() as u64;
            let totals = &mut totals[acting.action as usize];
            totals.retained_expected += expected;
            totals.retained += acting.retained;
            if acting.retained >= expected && expected > 0 {
                let took_ns = acting.retained_ns.saturating_sub(acting.at_ns);
                record(&mut totals.complete, took_ns);
            }
        }
        totals
    }
}
