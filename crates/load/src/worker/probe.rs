//! The readiness probe: one message per stream, repeated every second until all receivers have it.

use std::collections::{HashSet, VecDeque};

use tacho_net::Net;

use super::Worker;
use super::send::Sent;
use super::stream::Judgement;
use crate::events::PhaseKind;
use crate::mail::Mail;
use crate::plan::{Receiver, StreamIndex};

const REPEAT_NS: u64 = 1_000_000_000;
const PROBES_PER_TURN_MAX: usize = 64;

/// Probes of one thread's streams.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// Deliveries missing, by stream.
    missing: Vec<u64>,
    total_missing: u64,
    expected: u64,
    /// Streams still to be probed in this round.
    queue: VecDeque<u32>,
    next_round_ns: Option<u64>,
    /// Shared groups that have confirmed; members on other threads may confirm again.
    confirmed: HashSet<(u32, Receiver)>,
    active: bool,
    /// Confirmations from threads that entered the phase before this one.
    early: Vec<(u32, Receiver)>,
}

impl Probes {
    pub(super) const fn is_complete(&self) -> bool {
        self.active && self.total_missing == 0
    }

    /// When the next round of probes is due.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_round_ns.unwrap_or(u64::MAX)
    }

    pub(super) const fn missing(&self) -> u64 {
        self.total_missing
    }

    pub(super) const fn expected(&self) -> u64 {
        self.expected
    }

    /// A stream whose probe is missing, by its number on this thread.
    pub(super) fn first_missing(&self) -> Option<usize> {
        self.missing.iter().position(|missing| *missing > 0)
    }
}

impl Worker {
    pub(super) fn start_probes(&mut self, net: &mut Net<Self>, start_ns: u64) {
        let missing: Vec<u64> = self
            .streams
            .iter()
            .map(|stream| if stream.judgement == Judgement::Failed { 0 } else { stream.receivers })
            .collect();
        let total = missing.iter().sum();
        let early = std::mem::take(&mut self.probes.early);
        self.probes = Probes {
            total_missing: total,
            expected: total,
            missing,
            next_round_ns: (total > 0).then_some(start_ns),
            active: true,
            ..Probes::default()
        };
        for (local, receiver) in early {
            self.probed(local, receiver);
        }
        for client in 0..self.clients.len() {
            let later = self.context.subscribes_later[self.clients[client].group];
            if later || self.verifier.is_failed(client) {
                self.waive_probes(net, client);
            }
        }
    }

    pub(super) fn stop_probes(&mut self) {
        if self.probes.active {
            self.probes = Probes::default();
        }
    }

    /// Sends the probes that are due; true if more are due immediately.
    pub(super) fn send_probes(&mut self, net: &mut Net<Self>, now_ns: u64) -> bool {
        if self.phase.kind() != Some(PhaseKind::Probe) {
            return false;
        }
        if self.probes.next_round_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.probes.next_round_ns = Some(now_ns + REPEAT_NS);
            let unprobed = (0..).zip(&self.probes.missing).filter(|(_, missing)| **missing > 0);
            self.probes.queue = unprobed.map(|(local, _)| local).collect();
        }
        for _ in 0..PROBES_PER_TURN_MAX {
            let Some(&local) = self.probes.queue.front() else { return false };
            let client = &self.clients[self.streams[local as usize].client as usize];
            if let Some(conn) = client.conn.filter(|_| client.state.is_up())
                && self.publish(net, conn, local, now_ns, now_ns, true) == Sent::Blocked
            {
                // An acknowledgement triggers the next turn.
                return false;
            }
            self.probes.queue.pop_front();
        }
        !self.probes.queue.is_empty()
    }

    /// A receiver here got a probe: confirms it to the thread of the stream.
    pub(super) fn forward_probe(
        &mut self,
        net: &mut Net<Self>,
        stream: StreamIndex,
        receiver: Receiver,
    ) {
        let home = self.context.homes[stream.index()];
        if usize::from(home.thread) == self.thread {
            self.probed(home.local, receiver);
        } else {
            let confirmed = Mail::Probed { stream: home.local, receiver };
            self.post(net, home.thread.into(), confirmed);
        }
    }

    /// A receiver got the probe of a stream of this thread.
    pub(super) fn probed(&mut self, local: u32, receiver: Receiver) {
        if !self.probes.active {
            self.probes.early.push((local, receiver));
            return;
        }
        let first = matches!(receiver, Receiver::Client(_))
            || self.probes.confirmed.insert((local, receiver));
        if let Some(missing) = self.probes.missing.get_mut(local as usize)
            && *missing > 0
            && first
        {
            *missing -= 1;
            self.probes.total_missing -= 1;
            if self.probes.total_missing == 0 {
                self.probes.next_round_ns = None;
            }
        }
    }

    /// A client failed: probes to it and from it are no longer expected.
    pub(super) fn waive_probes(&mut self, net: &mut Net<Self>, client: usize) {
        if !self.probes.active {
            return;
        }
        for local in self.clients[client].streams() {
            if let Some(missing) = self.probes.missing.get_mut(local) {
                self.probes.total_missing -= std::mem::take(missing);
            }
        }
        for (stream, receiver) in self.verifier.unprobed(client) {
            self.forward_probe(net, stream, receiver);
        }
    }
}
