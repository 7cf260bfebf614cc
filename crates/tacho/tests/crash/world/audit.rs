//! Audits: without further kills, every acknowledged message has to arrive.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::World;
use crate::cast::{Role, TOPICS};
use crate::client::Client;
use crate::ledger::Kind;
use crate::wire::{self, Received};

/// Time without arrivals after which an audit counts as complete.
const QUIET: Duration = Duration::from_millis(100);
/// Interval of comparisons while nothing arrives; a comparison is slow.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Retained messages as a new subscriber receives them.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// The new subscriber.
    pub(super) client: Option<usize>,
    got: BTreeMap<usize, u64>,
    number: u32,
}

impl Audit {
    pub(super) fn received(&mut self, got: &Received) {
        let topic = TOPICS.iter().position(|topic| *topic == got.topic);
        if let (Some(topic), Some(id)) = (topic, wire::number(&got.payload)) {
            self.got.insert(topic, id);
        }
    }
}

impl World {
    /// All clients reconnect, read and answer, none publishes; then the ledger is checked.
    pub(super) fn audit(&mut self) {
        self.is_calm = true;
        let arrived = self.settles(|world| {
            world.ledger.missing() == 0 && world.ledger.wills.missing() == 0 && world.all_done()
        });
        if self.is_alive {
            if !arrived {
                self.say_who_waits();
            }
            self.look_at_retained();
        }
        if self.is_alive {
            self.ledger.check_wills();
            self.ledger.settle();
        }
        self.is_calm = false;
    }

    /// All clients are connected and have their answers, except those that wait for their will.
    fn all_done(&self) -> bool {
        self.clients
            .iter()
            .all(|client| client.is_done() || client.role.mortal && client.link.is_none())
    }

    fn say_who_waits(&mut self) {
        for client in &self.clients {
            if !client.is_done() && !client.role.mortal {
                let requests = client.requests.len();
                let (name, open) = (&client.role.name, client.machine.inflight_len());
                let is_online = client.is_online();
                let text = format!(
                    "{name} (online: {is_online}) waits for {open} acknowledgements and the \
                     answers to {requests} requests"
                );
                self.ledger.findings.add(Kind::Broker, text);
            }
        }
    }

    /// Runs until `met` and no arrivals; false if that is not reached.
    fn settles(&mut self, met: impl Fn(&Self) -> bool) -> bool {
        let mut heard = self.heard;
        let mut progress = Instant::now();
        let mut look = progress + QUIET;
        while self.is_alive && !self.has_died() {
            self.tick();
            if self.heard != heard {
                (heard, progress) = (self.heard, Instant::now());
                look = progress + QUIET;
            } else if Instant::now() > look {
                if met(self) {
                    return true;
                }
                look = Instant::now() + LOOK_EVERY;
            }
            if progress.elapsed() > self.patience() {
                return false;
            }
        }
        false
    }

    /// A new subscriber receives the retained messages.
    fn look_at_retained(&mut self) {
        let index = self.clients.len();
        self.audit.number += 1;
        self.audit.got.clear();
        self.audit.client = Some(index);
        self.clients.push(Client::new(index, Role::auditor(self.audit.number)));
        self.settles(|world| {
            world.clients[index].is_done() && world.ledger.retained_is_complete(&world.audit.got)
        });
        self.clients.pop();
        self.audit.client = None;
        if self.is_alive {
            let got = std::mem::take(&mut self.audit.got);
            self.ledger.check_retained(&got);
        }
    }
}
